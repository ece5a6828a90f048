// structuredClone.
(function (host, shared) {
  "use strict";
  const { isArray, isError, isInstance, keys, own } = shared;
  const { Map, Set, Date, RegExp, ArrayBuffer, DataView, DOMException, Promise } = globalThis;
  const { WeakMap, WeakSet, WeakRef, Error } = globalThis;
  const boxes = [String, Number, Boolean];
  const errors = { __proto__: null, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };

  const refuse = (value) => {
    const name = typeof value === "symbol" ? "a symbol" : typeof value === "function" ? "a function" : "this object";
    throw new DOMException(`${name} cannot be cloned`, "DataCloneError");
  };

  const clone = (value, seen) => {
    if (typeof value === "function" || typeof value === "symbol") refuse(value);
    if (typeof value !== "object" || value === null) return value;
    const known = seen.get(value);
    if (known !== undefined) return known;
    const keep = (made) => {
      seen.set(value, made);
      return made;
    };
    if (isArray(value)) {
      const made = keep([]);
      made.length = value.length;
      return copy(value, made, seen);
    }
    if (isInstance(value, Date)) return keep(new Date(value.getTime()));
    if (isInstance(value, RegExp)) return keep(new RegExp(value.source, value.flags));
    if (isInstance(value, ArrayBuffer)) return keep(value.slice(0));
    if (ArrayBuffer.isView(value)) {
      const buffer = clone(value.buffer, seen);
      const length = isInstance(value, DataView) ? value.byteLength : value.length;
      return keep(new value.constructor(buffer, value.byteOffset, length));
    }
    if (isInstance(value, Map)) {
      const made = keep(new Map());
      shared.mapForEach(value, (item, key) => made.set(clone(key, seen), clone(item, seen)));
      return made;
    }
    if (isInstance(value, Set)) {
      const made = keep(new Set());
      shared.setForEach(value, (item) => made.add(clone(item, seen)));
      return made;
    }
    for (const box of boxes) if (isInstance(value, box)) return keep(Object(value.valueOf()));
    if (isError(value)) {
      const made = keep(new (errors[value.name] ?? Error)(value.message));
      if (value.stack !== undefined) shared.hidden(made, "stack", value.stack);
      if (value.cause !== undefined) shared.hidden(made, "cause", clone(value.cause, seen));
      return made;
    }
    if ([Promise, WeakMap, WeakSet, WeakRef].some((other) => isInstance(value, other))) refuse(value);
    return copy(value, keep({}), seen);
  };

  const copy = (value, made, seen) => {
    const names = keys(value);
    for (let index = 0; index < names.length; index++) {
      own(made, names[index], clone(value[names[index]], seen));
    }
    return made;
  };

  return { structuredClone: (value) => clone(value, new Map()) };
})
