// Buffer, as far as it only makes bytes of texts and texts of bytes.
(function (host, shared) {
  "use strict";
  const { Uint8Array, ArrayBuffer, TypeError, Math } = globalThis;
  const { isArray, String, wellFormed } = shared;
  const encodings = {
    __proto__: null,
    utf8: "utf8",
    "utf-8": "utf8",
    hex: "hex",
    base64: "base64",
    base64url: "base64url",
    ascii: "latin1",
    latin1: "latin1",
    binary: "latin1",
    utf16le: "utf16le",
    "utf-16le": "utf16le",
    ucs2: "utf16le",
    "ucs-2": "utf16le",
  };
  const encodingOf = (name) => {
    const found = encodings[String(name ?? "utf8").toLowerCase()];
    if (found === undefined) throw new TypeError(`Unknown encoding: ${name}`);
    return found;
  };
  const bytesOf = (text, name) => {
    const encoding = encodingOf(name);
    return host.bytesOf(wellFormed(text), encoding);
  };
  const viewOf = (value) =>
    ArrayBuffer.isView(value)
      ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
      : new Uint8Array(value);
  const refuse = (value) => {
    throw new TypeError(`a Buffer is made of a text, bytes or a list of numbers, not of ${value === null ? "null" : typeof value}`);
  };

  class Buffer extends Uint8Array {
    static from(value, second, third) {
      if (typeof value === "string") return own(bytesOf(value, second));
      if (value instanceof ArrayBuffer) return new Buffer(value, second, third);
      if (ArrayBuffer.isView(value) || isArray(value)) return own(Uint8Array.from(value));
      if (value?.type === "Buffer" && isArray(value.data)) return own(Uint8Array.from(value.data));
      return refuse(value);
    }

    static alloc(size, fill, encoding) {
      const made = new Buffer(size);
      return fill === undefined ? made : made.fill(fill, encoding);
    }

    static allocUnsafe(size) {
      return new Buffer(size);
    }

    static concat(list, length) {
      const parts = [...list];
      const whole = new Buffer(length ?? parts.reduce((sum, part) => sum + part.length, 0));
      let at = 0;
      for (const part of parts) {
        if (at >= whole.length) break;
        whole.set(part.subarray(0, whole.length - at), at);
        at += part.length;
      }
      return whole;
    }

    static byteLength(value, encoding) {
      return typeof value === "string" ? bytesOf(value, encoding).length : value.byteLength;
    }

    static isBuffer(value) {
      return value instanceof Buffer;
    }

    static isEncoding(name) {
      return typeof name === "string" && name.toLowerCase() in encodings;
    }

    static compare(a, b) {
      return own(viewOf(a)).compare(b);
    }

    toString(encoding, start = 0, end = this.length) {
      const bytes = shared.latin1(viewOf(this).subarray(Math.max(0, start), end));
      const known = encodingOf(encoding);
      return known === "latin1" ? bytes : host.textOf(bytes, known);
    }

    toJSON() {
      return { type: "Buffer", data: [...this] };
    }

    slice(start, end) {
      return this.subarray(start, end);
    }

    equals(other) {
      return this.compare(other) === 0;
    }

    compare(other) {
      const length = Math.min(this.length, other.length);
      for (let at = 0; at < length; at++) {
        if (this[at] !== other[at]) return this[at] < other[at] ? -1 : 1;
      }
      return Math.sign(this.length - other.length);
    }

    fill(value, encoding) {
      if (typeof value !== "string") return super.fill(value);
      const bytes = bytesOf(value, typeof encoding === "string" ? encoding : undefined);
      for (let at = 0; at < this.length; at++) this[at] = bytes[at % bytes.length];
      return this;
    }

    write(text, offset = 0, length = this.length - offset, encoding = "utf8") {
      const bytes = bytesOf(String(text), encoding).subarray(0, length);
      this.set(bytes, offset);
      return bytes.length;
    }

    includes(value, from, encoding) {
      return this.indexOf(value, from, encoding) >= 0;
    }

    indexOf(value, from = 0, encoding) {
      if (typeof value === "number") return super.indexOf(value & 255, from);
      // As texts with a character for each byte, which the engine searches fast.
      const wanted = typeof value === "string" ? bytesOf(value, encoding) : viewOf(value);
      return shared.latin1(viewOf(this)).indexOf(shared.latin1(wanted), from < 0 ? this.length + from : from);
    }
  }
  const own = (bytes) => new Buffer(bytes.buffer, bytes.byteOffset, bytes.length);

  // The numbers in a Buffer: `readUInt16BE(offset)`, `writeDoubleLE(value, offset)` and so on.
  const numbers = (name, method, size, least, most) => {
    const read = DataView.prototype[`get${method}`];
    const write = DataView.prototype[`set${method}`];
    const at = (buffer, offset) => {
      if (typeof offset !== "number") throw new TypeError(`The "offset" must be a number, not ${typeof offset}`);
      if (!(Number.isInteger(offset) && offset >= 0 && offset + size <= buffer.length)) {
        throw new RangeError(`The "offset" ${offset} is out of range: ${size} bytes of ${buffer.length}`);
      }
      return new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength);
    };
    const checked = (value) => {
      if (most === undefined) return value;
      if (typeof value !== typeof most) throw new TypeError(`The "value" must be a ${typeof most}, not ${typeof value}`);
      if (value < least || value > most) throw new RangeError(`The "value" ${value} is out of range: ${least} to ${most}`);
      return value;
    };
    const orders = size === 1 ? [["", false]] : [["BE", false], ["LE", true]];
    for (const [order, little] of orders) {
      const methods = {
        [`read${name}${order}`](offset = 0) {
          return shared.apply(read, at(this, offset), [offset, little]);
        },
        [`write${name}${order}`](value, offset = 0) {
          shared.apply(write, at(this, offset), [offset, checked(value), little]);
          return offset + size;
        },
      };
      for (const key of shared.keys(methods)) {
        shared.hidden(Buffer.prototype, key, methods[key]);
        // Node has both spellings.
        const other = shared.replace(key, "UInt", "Uint");
        if (other !== key) shared.hidden(Buffer.prototype, other, methods[key]);
      }
    }
  };
  numbers("UInt8", "Uint8", 1, 0, 0xff);
  numbers("Int8", "Int8", 1, -0x80, 0x7f);
  numbers("UInt16", "Uint16", 2, 0, 0xffff);
  numbers("Int16", "Int16", 2, -0x8000, 0x7fff);
  numbers("UInt32", "Uint32", 4, 0, 0xffffffff);
  numbers("Int32", "Int32", 4, -0x80000000, 0x7fffffff);
  numbers("BigUInt64", "BigUint64", 8, 0n, 0xffffffffffffffffn);
  numbers("BigInt64", "BigInt64", 8, -0x8000000000000000n, 0x7fffffffffffffffn);
  numbers("Float", "Float32", 4);
  numbers("Double", "Float64", 8);
  return { Buffer };
})
