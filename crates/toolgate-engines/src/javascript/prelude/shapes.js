// What a result looks like, for a script that took it for something else.
(function (host, shared) {
  "use strict";
  const { isArray, keys, slice, stringify, join, push } = shared;
  const limits = { depth: 3, names: 12, text: 600, elements: 10, shapes: 3 };

  const typeOf = (value) => {
    if (value === null) return "null";
    if (typeof value === "bigint") return "integer (BigInt)";
    return typeof value;
  };

  /** The different shapes of the elements of a list, such as texts and pictures. */
  const elements = (list, level) => {
    const told = [];
    for (let index = 0; index < list.length && index < limits.elements; index++) {
      const next = shape(list[index], level);
      let isNew = true;
      for (let at = 0; at < told.length; at++) isNew &&= told[at] !== next;
      if (isNew && told.length < limits.shapes) push(told, next);
    }
    return told.length === 1 ? told[0] : `(${join(told, " | ")})`;
  };

  const shape = (value, level) => {
    if (typeof value !== "object" || value === null) return typeOf(value);
    if (isArray(value)) {
      if (value.length === 0) return "[] (empty)";
      return level >= limits.depth ? "[…]" : `${elements(value, level + 1)}[] (${value.length})`;
    }
    const names = keys(value);
    if (names.length === 0) return "{}";
    if (level >= limits.depth) return "{ … }";
    const parts = [];
    for (let index = 0; index < names.length && index < limits.names; index++) {
      const name = names[index];
      push(parts, `${/^[A-Za-z_$][\w$]*$/.test(name) ? name : stringify(slice(name, 0, 40))}: ${shape(value[name], level + 1)}`);
    }
    if (names.length > limits.names) push(parts, `… ${names.length - limits.names} more`);
    return `{ ${join(parts, ", ")} }`;
  };

  /** The shape of a value in a few words. */
  const describe = (value) => {
    if (typeof value === "string") {
      const start = slice(value, 0, 60);
      return `a text of ${value.length} characters, ${stringify(start.length < value.length ? `${start}…` : start)}`;
    }
    const told = shape(value, 0);
    return told.length > limits.text ? `${slice(told, 0, limits.text)}…` : told;
  };
  host.internal("shape", describe);
})
