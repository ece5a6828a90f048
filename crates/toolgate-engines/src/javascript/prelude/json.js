// Values across the border are JSON. Where JSON would silently lose what a script means, it is told
// what to write: in `JSON.stringify`, in arguments and in the returned value alike.
(function (host, shared) {
  "use strict";
  const { hidden, own, mapForEach, setForEach, push, String } = shared;
  const { parse, rawJSON } = JSON;
  const { BigInt, Number } = globalThis;
  const isSafeInteger = Number.isSafeInteger;
  const bigIntToString = shared.uncurry(BigInt.prototype.toString);
  const { exec } = shared;
  const integer = /^-?\d+$/;

  hidden(BigInt.prototype, "toJSON", function toJSON() {
    return rawJSON(bigIntToString(this));
  });

  hidden(Map.prototype, "toJSON", function toJSON() {
    let named = true;
    mapForEach(this, (_, key) => {
      named &&= typeof key === "string" || typeof key === "number";
    });
    const written = named ? {} : [];
    mapForEach(this, (value, key) => {
      if (named) own(written, String(key), value);
      else push(written, [key, value]);
    });
    return written;
  });

  hidden(Set.prototype, "toJSON", function toJSON() {
    const written = [];
    setForEach(this, (value) => push(written, value));
    return written;
  });

  hidden(Error.prototype, "toJSON", function toJSON() {
    const written = { name: this.name, message: this.message };
    if (this.tool !== undefined) written.tool = this.tool;
    const keys = shared.keys(this);
    for (let index = 0; index < keys.length; index++) own(written, keys[index], this[keys[index]]);
    return written;
  });

  hidden(Promise.prototype, "toJSON", function toJSON() {
    throw new TypeError(
      "a promise is not a value yet: await it first, several with await Promise.all([...])",
    );
  });

  /** JSON with integers that a number cannot hold: those become BigInt. */
  const parseExact = (text) =>
    parse(text, (_, value, context) => {
      if (typeof value !== "number" || isSafeInteger(value)) return value;
      const source = context.source;
      return source !== undefined && exec(integer, source) !== null ? BigInt(source) : value;
    });
  host.internal("parseExact", parseExact);
})
