// Timers and microtasks. Time passes in the host, which knows how long to wait.
(function (host, shared) {
  "use strict";
  const { hidden, apply } = shared;
  const { Promise, TypeError, Number } = globalThis;
  const then = shared.uncurry(Promise.prototype.then);
  const resolved = Promise.resolve();

  const callable = (name, callback) => {
    if (typeof callback !== "function") throw new TypeError(`${name} takes a function`);
  };
  const start = (name, kind) => (callback, delay, ...inputs) => {
    callable(name, callback);
    const run = inputs.length === 0 ? callback : () => apply(callback, undefined, inputs);
    return host.startTimer(run, Number(delay) || 0, kind);
  };
  const stop = (id) => {
    if (typeof id === "number") host.stopTimer(id);
  };
  hidden(globalThis, "setTimeout", start("setTimeout", "once"));
  hidden(globalThis, "setInterval", start("setInterval", "interval"));
  hidden(globalThis, "setImmediate", (callback, ...inputs) => {
    callable("setImmediate", callback);
    return host.startTimer(() => apply(callback, undefined, inputs), 0, "once");
  });
  hidden(globalThis, "clearTimeout", stop);
  hidden(globalThis, "clearInterval", stop);
  hidden(globalThis, "clearImmediate", stop);

  // The engine's own forgets what a microtask throws; a promise's rejection is seen.
  hidden(globalThis, "queueMicrotask", (callback) => {
    callable("queueMicrotask", callback);
    then(resolved, () => void callback());
  });
})
