// Errors: those of tools, and stacks that show the script alone.
(function (host, shared) {
  "use strict";
  const { hidden, wellFormed, exec, String } = shared;
  const { Error, DOMException } = globalThis;
  const hasInstance = shared.uncurry(Function.prototype[Symbol.hasInstance]);
  const isInstance = (value, constructor) => hasInstance(constructor, value);

  const ofText = (text) => [{ type: "text", text }];
  class ToolError extends Error {
    constructor(message, tool, content) {
      super(message);
      hidden(this, "tool", tool);
      hidden(this, "content", content ?? ofText(this.message));
    }
  }
  hidden(ToolError.prototype, "name", "ToolError");
  hidden(globalThis, "ToolError", ToolError);

  class UnsupportedError extends Error {}
  hidden(UnsupportedError.prototype, "name", "UnsupportedError");

  const text = (value) => {
    try {
      return wellFormed(String(value));
    } catch {
      return "";
    }
  };
  const header = (error) => {
    let name = "Error";
    let message = "";
    try {
      name = error.name === undefined ? "Error" : text(error.name);
      message = error.message === undefined ? "" : text(error.message);
    } catch {
      // A getter of the script's own that throws: the rest is told without it.
    }
    return name === "" ? message : message === "" ? name : `${name}: ${message}`;
  };

  /** The names of the classes of an error that the script has declared. */
  const classes = (error) => {
    const names = [];
    let prototype = shared.getPrototypeOf(error);
    for (let depth = 0; depth < 8 && prototype !== null && prototype !== Error.prototype; depth++) {
      const constructor = shared.getDescriptor(prototype, "constructor")?.value;
      const name = typeof constructor === "function" ? shared.getDescriptor(constructor, "name")?.value : undefined;
      if (typeof name === "string" && name !== "") shared.push(names, name);
      prototype = shared.getPrototypeOf(prototype);
    }
    return names;
  };

  /** The script's own lines of a stack as the engine writes it. Those of `own` constructors at its top are left out. */
  const frames = (stack, own = []) => {
    if (typeof stack !== "string") return "";
    let isInside = own.length > 0;
    let skipped = "";
    const pattern = /^ {4}at (?:(.*) \()?([^\s()]*):(\d+):(\d+)\)?$/gm;
    let lines = "";
    for (let found; (found = exec(pattern, stack)) !== null; ) {
      // The script is wrapped, which takes a line before it.
      const number = found[3] - 1;
      if (found[2] !== host.file || number < 1) continue;
      const place = `${host.file}:${host.position(number, +found[4])}`;
      const name = found[1];
      const line =
        name === undefined || name === host.main ? `\n    at ${place}` : `\n    at ${name} (${place})`;
      isInside &&= shared.includes(own, name);
      if (isInside) skipped += line;
      else lines += line;
    }
    return lines === "" ? skipped : lines;
  };

  // The engine keeps bare lines. What reads them expects the message first, as it is now.
  const native = shared.getDescriptor(Error.prototype, "stack");
  const nativeStack = shared.uncurry(native.get);
  shared.defineProperty(Error.prototype, "stack", {
    __proto__: null,
    get() {
      const stack = nativeStack(this);
      return stack === undefined ? undefined : header(this) + frames(stack, classes(this));
    },
    set(value) {
      hidden(this, "stack", value);
    },
    enumerable: false,
    configurable: true,
  });

  // The engine's error has no message.
  const { Promise, AggregateError } = globalThis;
  const anyOf = shared.uncurry(Promise.any);
  const then = shared.uncurry(Promise.prototype.then);
  const explain = (error) => {
    if (isInstance(error, AggregateError) && shared.getDescriptor(error, "message") === undefined) {
      hidden(error, "message", "All promises were rejected");
    }
    throw error;
  };
  hidden(Promise, "any", {
    any(values) {
      return then(anyOf(this, values), undefined, explain);
    },
  }.any);

  // Call sites would hand the prelude's own functions to the script.
  hidden(Error, "prepareStackTrace", undefined);

  /** The error of a call, made where the call is made so that its stack shows the place. */
  shared.callError = (tool) => new ToolError(undefined, tool);
  host.internal("failCall", (error, message, tool, content) => {
    hidden(error, "message", message);
    hidden(error, "tool", tool);
    hidden(error, "content", content ?? ofText(message));
    return error;
  });

  shared.isError = (value) =>
    typeof value === "object" &&
    value !== null &&
    (isInstance(value, Error) || isInstance(value, DOMException));
  shared.isInstance = isInstance;
  shared.header = header;
  shared.frames = frames;
  /** Whether a function of the engine raised an error, such as `map`. */
  shared.isOfEngine = (error) => exec(/^\s*at .*\(native\)/, String(nativeStack(error))) !== null;
  shared.text = text;
  shared.UnsupportedError = UnsupportedError;
})
