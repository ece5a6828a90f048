// As much of Node's process as scripts use to end themselves.
(function (host, shared) {
  "use strict";
  const { hidden, create, getDescriptor, replace, String } = shared;
  const modules = shared.once("modules");
  const { Proxy, Number } = globalThis;

  const later = globalThis.queueMicrotask;
  const stream = (isError) => ({
    isTTY: false,
    write(text) {
      host.write(isError, shared.wellFormed(String(text)));
      return true;
    },
  });

  host.internal("makeProcess", (advice) => {
    const process = {
      __proto__: null,
      env: create(null),
      argv: [],
      exitCode: undefined,
      stdout: stream(false),
      stderr: stream(true),
      nextTick(callback, ...inputs) {
        later(() => shared.apply(callback, undefined, inputs));
      },
      // What an `import` of a module of Node becomes.
      getBuiltinModule: (name) => modules()[replace(String(name), /^node:/, "")],
      exit(code) {
        host.exit(Number(code ?? process.exitCode ?? 0));
        // The engine is asked to stop whenever a loop has gone on for a while; nothing of the
        // script, no `catch` and no `finally`, runs any more.
        for (;;);
      },
    };
    const handler = {
      __proto__: null,
      get: (target, key) =>
        getDescriptor(target, key) !== undefined
          ? target[key]
          : shared.absentMember("process", key, advice),
    };
    hidden(globalThis, "process", new Proxy(process, handler));
  });
})
