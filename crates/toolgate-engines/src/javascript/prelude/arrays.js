// `splice` of the engine makes a list slow for ever, as soon as it takes something out. This one
// keeps it as it is: batches with `list.splice(0, 10)` would else take hours.
(function (host, shared) {
  "use strict";
  const { isArray, getPrototypeOf, apply, uncurry } = shared;
  const { prototype } = Array;
  const native = prototype.splice;
  const slice = uncurry(prototype.slice);
  const shift = uncurry(prototype.shift);
  const push = prototype.push;
  const { Number, Math } = globalThis;
  const { trunc, max, min } = Math;

  const integer = (value) => {
    const number = trunc(Number(value));
    return number === number ? number : 0;
  };
  const append = (list, more) => {
    for (let at = 0; at < more.length; at += 4096) {
      apply(push, list, more.length <= 4096 ? more : slice(more, at, at + 4096));
    }
  };

  const holder = {
    splice(start, deleteCount, ...items) {
      if (!isArray(this) || getPrototypeOf(this) !== prototype || this.constructor !== Array) {
        return apply(native, this, arguments);
      }
      const length = this.length;
      const asked = integer(start);
      const from = asked < 0 ? max(length + asked, 0) : min(asked, length);
      const rest = length - from;
      const count = arguments.length < 2 ? (arguments.length === 0 ? 0 : rest) : min(max(integer(deleteCount), 0), rest);
      const removed = slice(this, from, from + count);
      if (items.length === count) {
        for (let at = 0; at < count; at++) this[from + at] = items[at];
      } else if (from === 0 && items.length === 0 && count <= 4) {
        for (let at = 0; at < count; at++) shift(this);
      } else {
        const tail = slice(this, from + count, length);
        this.length = from;
        append(this, items);
        append(this, tail);
      }
      return removed;
    },
  };
  shared.defineProperty(holder.splice, "length", { __proto__: null, value: 2, configurable: true });
  shared.hidden(prototype, "splice", holder.splice);
})
