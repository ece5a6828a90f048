// Values as text for a reader, in the manner of Node's `util.inspect`, bounded in every direction.
(function (host, shared) {
  "use strict";
  const { isArray, ownKeys, getDescriptor, getPrototypeOf, wellFormed, slice, repeat, replace } =
    shared;
  const { push, join, isError, isInstance, header, String } = shared;
  const { Map, Set, WeakMap, WeakSet, Promise, Date, RegExp, ArrayBuffer, DOMException, Number } =
    shared.constructors;
  const { regExpToString, symbolToString, exec, setHas, setAdd, setDelete, stringify } = shared;
  const isTyped = ArrayBuffer.isView;
  const { max, min, round, floor, sqrt } = shared.math;

  const limits = { depth: 8, entries: 1000, text: 256 * 1024, width: 96 };
  const newline = /\n/;
  const identifier = /^[A-Za-z_$][\w$]*$/;
  const special = /[\\'\n\r\t\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/g;
  const escapes = { __proto__: null, "\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t" };
  const hex = (character) => {
    const code = character.charCodeAt(0);
    return `\\x${code < 16 ? "0" : ""}${code.toString(16)}`;
  };
  const quote = (text) =>
    `'${replace(wellFormed(text), special, (character) => escapes[character] ?? hex(character))}'`;

  const key = (name) =>
    typeof name === "symbol"
      ? `[${symbolToString(name)}]`
      : exec(identifier, name) !== null
        ? name
        : quote(name);

  const primitive = (value) => {
    switch (typeof value) {
      case "string":
        return quote(value);
      case "bigint":
        return `${value}n`;
      case "symbol":
        return symbolToString(value);
      case "number":
        return value === 0 && 1 / value < 0 ? "-0" : `${value}`;
      default:
        return `${value}`;
    }
  };

  const className = (value) => {
    const prototype = getPrototypeOf(value);
    if (prototype === null) return "[Object: null prototype]";
    const constructor = getDescriptor(prototype, "constructor");
    const name = typeof constructor?.value === "function" && getDescriptor(constructor.value, "name");
    return typeof name?.value === "string" ? name.value : "";
  };

  const indent = (text, by) => replace(text, /\n/g, `\n${repeat(" ", by)}`);

  /** Entries between brackets: on one line where that is short, else one on each. */
  const frame = (prefix, open, entries, close) => {
    const head = prefix === "" ? "" : `${prefix} `;
    if (entries.length === 0) return `${head}${open}${close}`;
    let length = head.length;
    let lines = false;
    for (let index = 0; index < entries.length; index++) {
      length += entries[index].length + 2;
      lines ||= exec(newline, entries[index]) !== null;
    }
    if (!lines && length <= limits.width) return `${head}${open} ${join(entries, ", ")} ${close}`;
    for (let index = 0; index < entries.length; index++) entries[index] = indent(entries[index], 2);
    return `${head}${open}\n  ${join(entries, ",\n  ")}\n${close}`;
  };

  /** Short entries of a long list, several on a line and in columns, as Node does. */
  const group = (entries, count, isNumbers) => {
    let total = 0;
    let longest = 0;
    for (let index = 0; index < count; index++) {
      total += entries[index].length + 2;
      longest = max(longest, entries[index].length);
    }
    const widest = longest + 2;
    if (widest * 3 >= 80 || (total / widest <= 5 && longest > 6)) return entries;
    const biased = max(widest - 3 - sqrt(widest - total / entries.length), 1);
    const columns = min(round(sqrt(2.5 * biased * count) / biased), floor(80 / widest), 12);
    if (columns <= 1) return entries;
    const widths = [];
    for (let column = 0; column < columns; column++) {
      let width = 0;
      for (let index = column; index < count; index += columns) width = max(width, entries[index].length);
      push(widths, width);
    }
    const lines = [];
    for (let first = 0; first < count; first += columns) {
      const last = min(first + columns, count) - 1;
      let line = "";
      for (let index = first; index <= last; index++) {
        const room = repeat(" ", widths[index - first] - entries[index].length);
        const comma = index < last ? ", " : "";
        line += isNumbers ? room + entries[index] + comma : entries[index] + comma + (index < last ? room : "");
      }
      push(lines, line);
    }
    for (let index = count; index < entries.length; index++) push(lines, entries[index]);
    return lines;
  };

  class Inspection {
    constructor(depth) {
      this.depth = depth;
      this.left = limits.text;
      this.open = new Set();
    }

    value(value, level) {
      if (this.left <= 0) return "…";
      if (value === null || (typeof value !== "object" && typeof value !== "function")) {
        const text = primitive(value);
        const shown =
          text.length > this.left
            ? `${slice(text, 0, this.left)}… (${text.length - this.left} more characters)`
            : text;
        this.left -= shown.length;
        return shown;
      }
      if (setHas(this.open, value)) return "[Circular]";
      setAdd(this.open, value);
      try {
        return this.object(value, level);
      } catch {
        return "[a value that cannot be shown]";
      } finally {
        setDelete(this.open, value);
      }
    }

    object(value, level) {
      this.left -= 4;
      if (isError(value)) return this.error(value, level);
      if (typeof value === "function") return this.function(value);
      if (isInstance(value, Date)) {
        return shared.dateToNumber(value) === shared.dateToNumber(value)
          ? shared.dateToISOString(value)
          : "Invalid Date";
      }
      if (isInstance(value, RegExp)) return regExpToString(value);
      const name = className(value);
      if (isInstance(value, Promise)) return "Promise { … } (await it for its value)";
      if (isInstance(value, WeakMap) || isInstance(value, WeakSet)) return `${name} { … }`;
      if (level > this.depth) return isArray(value) ? "[Array]" : `[${name || "Object"}]`;
      if (isArray(value)) return this.list(value, value.length, name === "Array" ? "" : name, level);
      if (name === "URL" || name === "URLSearchParams") return `${name} ${quote(shared.text(value))}`;
      if (isTyped(value)) return this.list(value, value.length ?? 0, `${name}(${value.length})`, level);
      if (isInstance(value, Map)) return this.map(value, name, level);
      if (isInstance(value, Set)) return this.set(value, name, level);
      return frame(name === "Object" ? "" : name, "{", this.properties(value, level), "}");
    }

    list(value, length, prefix, level) {
      let entries = [];
      let isNumbers = true;
      const shown = length < limits.entries ? length : limits.entries;
      let holes = 0;
      const flush = () => {
        if (holes > 0) push(entries, `<${holes} empty item${holes > 1 ? "s" : ""}>`);
        holes = 0;
      };
      for (let index = 0; index < shown && this.left > 0; index++) {
        if (!(index in value)) {
          holes++;
          continue;
        }
        flush();
        const item = value[index];
        isNumbers &&= typeof item === "number" || typeof item === "bigint";
        push(entries, this.value(item, level + 1));
      }
      flush();
      const count = entries.length;
      this.rest(entries, length - shown);
      let width = prefix.length + 1;
      let isShort = count > 6;
      for (let index = 0; index < count && isShort; index++) {
        width += entries[index].length + 2;
        isShort = entries[index].length < 25 && exec(newline, entries[index]) === null;
      }
      if (isShort && width > limits.width) entries = group(entries, count, isNumbers);
      return frame(prefix, "[", entries, "]");
    }

    map(value, name, level) {
      const entries = [];
      shared.mapForEach(value, (item, itemKey) => {
        if (entries.length >= limits.entries || this.left <= 0) return;
        push(entries, `${this.value(itemKey, level + 1)} => ${this.value(item, level + 1)}`);
      });
      const size = shared.mapSize(value);
      this.rest(entries, size - entries.length);
      return frame(`${name}(${size})`, "{", entries, "}");
    }

    set(value, name, level) {
      const entries = [];
      shared.setForEach(value, (item) => {
        if (entries.length >= limits.entries || this.left <= 0) return;
        push(entries, this.value(item, level + 1));
      });
      const size = shared.setSize(value);
      this.rest(entries, size - entries.length);
      return frame(`${name}(${size})`, "{", entries, "}");
    }

    properties(value, level) {
      const entries = [];
      const names = ownKeys(value);
      for (let index = 0; index < names.length; index++) {
        const property = getDescriptor(value, names[index]);
        if (!property?.enumerable) continue;
        if (entries.length >= limits.entries || this.left <= 0) {
          this.rest(entries, names.length - index);
          break;
        }
        const name = key(names[index]);
        this.left -= name.length;
        const shown =
          property.get || property.set
            ? property.get && property.set
              ? "[Getter/Setter]"
              : property.get
                ? "[Getter]"
                : "[Setter]"
            : this.value(property.value, level + 1);
        push(entries, `${name}: ${shown}`);
      }
      return entries;
    }

    error(value, level) {
      const stack = value.stack;
      let text = header(value);
      if (isInstance(value, DOMException)) text += shared.frames(stack);
      else if (typeof stack === "string") text = wellFormed(stack);
      const entries = level > this.depth ? [] : this.properties(value, level);
      if (value.cause !== undefined && level <= this.depth) {
        push(entries, `[cause]: ${this.value(value.cause, level + 1)}`);
      }
      this.left -= text.length;
      const shown = level > 0 ? `[${text}]` : text;
      return entries.length === 0 ? shown : `${shown} ${frame("", "{", entries, "}")}`;
    }

    function(value) {
      const name = getDescriptor(value, "name")?.value;
      const isClass = slice(shared.text(value), 0, 6) === "class ";
      return `[${isClass ? "class" : "Function:"} ${typeof name === "string" && name !== "" ? name : "(anonymous)"}]`;
    }

    rest(entries, count) {
      if (count > 0) push(entries, `… ${count} more item${count > 1 ? "s" : ""}`);
    }
  }

  const inspect = (value, depth = limits.depth) => new Inspection(depth).value(value, 0);

  /** What `console.log` writes for its arguments, with the directives of a first string. */
  const format = (values) => {
    const parts = [];
    let next = 0;
    if (typeof values[0] === "string" && values.length > 1) {
      next = 1;
      const directive = /%[sdifjoOc%]/g;
      push(
        parts,
        replace(values[0], directive, (found) => {
          if (found === "%%") return "%";
          if (next >= values.length) return found;
          const value = values[next++];
          switch (found) {
            case "%s":
              return typeof value === "string" ? value : typeof value === "object" ? inspect(value, 0) : String(value);
            case "%d":
              return typeof value === "bigint" ? `${value}n` : `${Number(value)}`;
            case "%i":
              return `${Number.parseInt(value)}`;
            case "%f":
              return `${Number.parseFloat(value)}`;
            case "%j":
              return stringify(value) ?? "undefined";
            case "%c":
              return "";
            default:
              return inspect(value);
          }
        }),
      );
    }
    for (; next < values.length; next++) {
      push(parts, typeof values[next] === "string" ? values[next] : inspect(values[next]));
    }
    return wellFormed(join(parts, " "));
  };
  return { inspect, format };
})
