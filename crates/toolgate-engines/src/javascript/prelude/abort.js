// Events and abort signals: enough for code that passes a signal along and listens to it.
(function (host, shared) {
  "use strict";
  const { DOMException, Map, Number } = globalThis;

  class Event {
    constructor(type, options = {}) {
      this.type = String(type);
      this.cancelable = Boolean(options.cancelable);
      this.defaultPrevented = false;
      this.target = null;
    }

    preventDefault() {
      if (this.cancelable) this.defaultPrevented = true;
    }
  }

  class EventTarget {
    #listeners = new Map();

    addEventListener(type, listener, options = {}) {
      if (typeof listener !== "function" && typeof listener?.handleEvent !== "function") return;
      const known = this.#listeners.get(type) ?? new Map();
      if (!known.has(listener)) known.set(listener, Boolean(options?.once));
      this.#listeners.set(type, known);
    }

    removeEventListener(type, listener) {
      this.#listeners.get(type)?.delete(listener);
    }

    dispatchEvent(event) {
      event.target = this;
      const handler = this[`on${event.type}`];
      if (typeof handler === "function") handler.call(this, event);
      for (const [listener, once] of [...(this.#listeners.get(event.type) ?? [])]) {
        if (once) this.removeEventListener(event.type, listener);
        if (typeof listener === "function") listener.call(this, event);
        else listener.handleEvent(event);
      }
      return !event.defaultPrevented;
    }
  }

  let abort;
  class AbortSignal extends EventTarget {
    #aborted = false;
    #reason;
    onabort = null;

    static {
      abort = (signal, reason) => {
        if (signal.#aborted) return;
        signal.#aborted = true;
        signal.#reason =
          reason === undefined ? new DOMException("This operation was aborted", "AbortError") : reason;
        signal.dispatchEvent(new Event("abort"));
      };
    }

    get aborted() {
      return this.#aborted;
    }

    get reason() {
      return this.#reason;
    }

    throwIfAborted() {
      if (this.#aborted) throw this.#reason;
    }

    static abort(reason) {
      const signal = new AbortSignal();
      abort(signal, reason);
      return signal;
    }

    static timeout(milliseconds) {
      const signal = new AbortSignal();
      const end = () => abort(signal, new DOMException("The operation timed out", "TimeoutError"));
      // It alone does not keep a script from ending.
      host.startTimer(end, Number(milliseconds) || 0, "background");
      return signal;
    }

    static any(signals) {
      const joined = new AbortSignal();
      for (const signal of signals) {
        if (signal.aborted) abort(joined, signal.reason);
        else signal.addEventListener("abort", () => abort(joined, signal.reason));
      }
      return joined;
    }
  }

  class AbortController {
    signal = new AbortSignal();

    abort(reason) {
      abort(this.signal, reason);
    }
  }

  return { Event, EventTarget, AbortController, AbortSignal };
})
