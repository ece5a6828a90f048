// The engine frees an object as soon as nothing holds it, even between two lines of a script. A
// `WeakRef` must keep its object at least until the script waits, so this one simply keeps it.
(function (host, shared) {
  "use strict";
  const { TypeError } = globalThis;

  class WeakRef {
    #target;

    constructor(target) {
      const isHeld = (typeof target === "object" && target !== null) || typeof target === "function" || typeof target === "symbol";
      if (!isHeld) throw new TypeError("WeakRef: the target must be an object");
      this.#target = target;
    }

    deref() {
      return this.#target;
    }
  }
  shared.defineProperty(WeakRef.prototype, Symbol.toStringTag, {
    __proto__: null,
    value: "WeakRef",
    configurable: true,
  });
  shared.hidden(globalThis, "WeakRef", WeakRef);
})
