// Tools as functions.
(function (host, shared) {
  "use strict";
  const { hidden, own, isArray, create, wellFormed } = shared;
  const { Proxy, TypeError } = globalThis;
  const reject = Promise.reject.bind(Promise);

  const invoke = (name, example, place, inputs) => {
    const given = inputs[0] === undefined ? {} : inputs[0];
    // What comes after an object is not looked at: `list.map(tool)` gives an index, and the list.
    const isLost = inputs[0] === undefined && inputs[1] !== undefined;
    if (typeof given !== "object" || given === null || isArray(given) || isLost) {
      return reject(new TypeError(`${name} takes one object: ${example}`));
    }
    const error = shared.callError(name);
    try {
      return host.call(name, given, error, place);
    } catch (thrown) {
      return reject(thrown);
    }
  };
  // Functions that take several arguments, by position.
  const positional = {
    __proto__: null,
    extract: (place, inputs) => {
      const value = inputs[0];
      const type = inputs[1];
      if (value === undefined || value === null || type === undefined) {
        return reject(new TypeError("extract takes a value and a type: extract(value, type, hint)"));
      }
      return invoke("extract", "", place, [{ value, type, hint: inputs[2] ?? undefined }]);
    },
  };
  const makeFunction = (name, example, place) => {
    const several = positional[name];
    const made = several
      ? (...inputs) => several(place, inputs)
      : (...inputs) => invoke(name, example, place, inputs);
    shared.defineProperty(made, "name", { __proto__: null, value: name, configurable: true });
    return made;
  };

  const known = create(null);
  const others = create(null);
  // Asked for by the language itself, not by a script that wants a tool.
  const passive = { __proto__: null, then: 1, toJSON: 1, constructor: 1, toString: 1, valueOf: 1 };
  const tools = new Proxy(known, {
    __proto__: null,
    get(target, name) {
      if (typeof name === "symbol" || name in passive) return undefined;
      const exposed = wellFormed(name);
      return target[exposed] ?? (others[exposed] ??= makeFunction(exposed, `${exposed}({ … })`, null));
    },
  });
  hidden(globalThis, "tools", tools);

  host.internal("define", (name, example) => {
    const made = makeFunction(name, example, null);
    own(known, name, made);
    hidden(globalThis, name, made);
  });
  // A function for one place of the script. It is no property of anything.
  host.internal("definePlace", makeFunction);

  const emit = (block) => {
    if (typeof block !== "object" || block === null || isArray(block)) {
      throw new TypeError('emit takes a content block: emit({ type: "image", data, mimeType })');
    }
    host.emit(block);
  };
  hidden(globalThis, "emit", emit);
})
