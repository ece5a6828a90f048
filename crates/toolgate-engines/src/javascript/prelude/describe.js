// What is told of something that was thrown and not caught.
(function (host, shared) {
  "use strict";
  const { isArray, isError, isInstance, header, text, slice, wellFormed } = shared;
  const { RangeError, AggregateError, DOMException } = shared.constructors;
  const { UnsupportedError } = shared;

  const causes = (error, depth) => {
    let told = "";
    if (depth === 0) return told;
    const cause = error.cause;
    if (cause !== undefined) {
      told += `\n  [cause]: ${isError(cause) ? header(cause) : text(cause)}`;
      if (isError(cause)) told += causes(cause, depth - 1);
    }
    if (isInstance(error, AggregateError) && isArray(error.errors)) {
      for (let index = 0; index < error.errors.length && index < 10; index++) {
        const inner = error.errors[index];
        told += `\n  [${index}]: ${isError(inner) ? header(inner) : text(inner)}`;
      }
    }
    return told;
  };

  const sort = (error) => {
    if (isInstance(error, UnsupportedError)) return "unsupported";
    if (isInstance(error, RangeError) && error.message === "Maximum call stack size exceeded") {
      return "stack";
    }
    return "error";
  };

  /** Of something thrown: which sort it is, what it says, and its stack as text. */
  const describe = (value) => {
    if (isError(value)) {
      let stack = "";
      let told = header(value);
      try {
        // A DOMException keeps its stack as the engine wrote it.
        stack = isInstance(value, DOMException) ? shared.frames(value.stack) : text(value.stack);
        told += causes(value, 3);
      } catch {
        // A getter of the script's own that throws: the rest is told without it.
      }
      return [sort(value), slice(told, 0, host.messageLimit), slice(stack, 0, host.messageLimit)];
    }
    let told;
    try {
      told = typeof value === "string" ? wellFormed(value) : shared.inspect(value);
    } catch {
      told = `a value of type ${typeof value}`;
    }
    return ["thrown", slice(`Uncaught ${told}`, 0, host.messageLimit), ""];
  };
  host.internal("describe", describe);
})
