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

  // Models parse what is data already: the result of a tool, or a part of it. The language would make
  // a text of it first.
  const { SyntaxError, WeakSet } = globalThis;
  const results = new WeakSet();
  const isResult = shared.uncurry(WeakSet.prototype.has);
  const addResult = shared.uncurry(WeakSet.prototype.add);
  host.internal("markResult", (value) => void addResult(results, value));
  const isData = (value) => {
    if (shared.isArray(value)) return true;
    const prototype = shared.getPrototypeOf(value);
    return prototype === null || prototype === objects;
  };
  const objects = Object.prototype;
  const holder = {
    parse(text, reviver) {
      if (typeof text === "bigint") return text;
      if (typeof text !== "object" || text === null) return parse(text, reviver);
      const asData = () =>
        typeof reviver === "function" ? parse(shared.stringify(text), reviver) : text;
      if (isResult(results, text)) return asData();
      try {
        return parse(text, reviver);
      } catch (thrown) {
        if (shared.isInstance(thrown, SyntaxError) && isData(text)) return asData();
        throw thrown;
      }
    },
  };
  shared.defineProperty(holder.parse, "length", { __proto__: null, value: 2, configurable: true });
  hidden(JSON, "parse", holder.parse);

  /** JSON with integers that a number cannot hold: those become BigInt. */
  const parseExact = (text) =>
    parse(text, (_, value, context) => {
      if (typeof value !== "number" || isSafeInteger(value)) return value;
      const source = context.source;
      return source !== undefined && exec(integer, source) !== null ? BigInt(source) : value;
    });
  host.internal("parseExact", parseExact);
})
