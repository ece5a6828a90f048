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

  /** A long message without its middle: the end often says what went wrong. */
  const short = (told) => {
    const more = told.length - host.messageLimit;
    if (more <= 0) return told;
    const end = told.length - (host.messageLimit >> 2);
    const start = end - more;
    return wellFormed(`${slice(told, 0, start)} [… ${more} characters left out …] ${slice(told, end)}`);
  };

  const sort = (error) => {
    if (isInstance(error, UnsupportedError)) return "unsupported";
    if (isInstance(error, RangeError) && error.message === "Maximum call stack size exceeded") {
      return "stack";
    }
    return "error";
  };

  /** Of something thrown: which sort it is, what it says, its stack as text, and who raised it. */
  const describe = (value) => {
    if (isError(value)) {
      let stack = "";
      const head = header(value);
      let told = head;
      try {
        // A DOMException keeps its stack as the engine wrote it.
        stack = isInstance(value, DOMException) ? shared.frames(value.stack) : text(value.stack);
        // A long message would take the place of the lines.
        if (slice(stack, 0, head.length) === head) stack = slice(stack, head.length);
        told += causes(value, 3);
      } catch {
        // A getter of the script's own that throws: the rest is told without it.
      }
      return [sort(value), short(told), slice(stack, 0, host.messageLimit), shared.isOfEngine(value) ? "engine" : ""];
    }
    let told;
    try {
      told = typeof value === "string" ? wellFormed(value) : shared.inspect(value);
    } catch {
      told = `a value of type ${typeof value}`;
    }
    return ["thrown", short(`Uncaught ${told}`), ""];
  };
  host.internal("describe", describe);
})
