// Names that scripts for other hosts use: each says what to write instead.
(function (host, shared) {
  "use strict";
  const { hidden, UnsupportedError } = shared;
  const { Proxy } = globalThis;

  const refuse = (name, advice) => {
    throw new UnsupportedError(`${name} is not available here: ${advice}`);
  };
  /** A property of something that is not there. */
  shared.absentMember = (name, key, advice) =>
    // What inspecting, awaiting or comparing asks for says nothing about a use.
    typeof key === "symbol" || key === "then" || key === "toJSON"
      ? undefined
      : refuse(`${name}.${key}`, advice);

  host.internal("withhold", (name, advice, isFunction) => {
    if (isFunction) {
      const stub = function () {
        refuse(name, advice);
      };
      shared.defineProperty(stub, "name", { __proto__: null, value: name, configurable: true });
      hidden(globalThis, name, stub);
    } else {
      const target = shared.create(null);
      const handler = {
        __proto__: null,
        get: (_, key) => shared.absentMember(name, key, advice),
      };
      hidden(globalThis, name, new Proxy(target, handler));
    }
  });
})
