// UTF-8, base64's neighbours, and random numbers that are good enough for names.
(function (host, shared) {
  "use strict";
  const { Uint8Array, ArrayBuffer, DOMException, TypeError, RangeError, Math } = globalThis;
  const { UnsupportedError, wellFormed, String } = shared;
  const random = Math.random;
  const floor = Math.floor;
  const fromCodePoint = String.fromCodePoint;

  class TextEncoder {
    get encoding() {
      return "utf-8";
    }

    encode(input = "") {
      const text = wellFormed(String(input));
      const bytes = new Uint8Array(text.length * 3);
      return bytes.slice(0, write(text, bytes).written);
    }

    encodeInto(input, target) {
      return write(wellFormed(String(input)), target);
    }
  }

  const write = (text, bytes) => {
    let read = 0;
    let written = 0;
    while (read < text.length) {
      const code = text.codePointAt(read);
      const size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
      if (written + size > bytes.length) break;
      if (size === 1) bytes[written] = code;
      else {
        bytes[written] = [0, 0, 0xc0, 0xe0, 0xf0][size] | (code >> (6 * (size - 1)));
        for (let at = 1; at < size; at++) {
          bytes[written + at] = 0x80 | ((code >> (6 * (size - 1 - at))) & 0x3f);
        }
      }
      written += size;
      read += size === 4 ? 2 : 1;
    }
    return { read, written };
  };

  const bytesOf = (input) => {
    if (input === undefined) return new Uint8Array(0);
    if (input instanceof ArrayBuffer) return new Uint8Array(input);
    if (ArrayBuffer.isView(input)) {
      return new Uint8Array(input.buffer, input.byteOffset, input.byteLength);
    }
    throw new TypeError("TextDecoder takes an ArrayBuffer or a view of one");
  };

  class TextDecoder {
    #fatal;
    #keepMark;
    #name;
    #rest = [];

    constructor(label = "utf-8", options = {}) {
      const name = String(label).trim().toLowerCase();
      if (name === "utf-8" || name === "utf8") this.#name = "utf-8";
      else if (name === "latin1" || name === "iso-8859-1" || name === "ascii") this.#name = "latin1";
      else throw new RangeError(`TextDecoder knows utf-8 and latin1, not ${label}`);
      this.#fatal = Boolean(options.fatal);
      this.#keepMark = Boolean(options.ignoreBOM);
    }

    get encoding() {
      return this.#name;
    }

    get fatal() {
      return this.#fatal;
    }

    get ignoreBOM() {
      return this.#keepMark;
    }

    decode(input, options = {}) {
      let bytes = bytesOf(input);
      if (this.#rest.length > 0) {
        const joined = new Uint8Array(this.#rest.length + bytes.length);
        joined.set(this.#rest);
        joined.set(bytes, this.#rest.length);
        bytes = joined;
        this.#rest = [];
      }
      return this.#name === "utf-8" ? this.#utf8(bytes, Boolean(options.stream)) : latin1(bytes);
    }

    #utf8(bytes, stream) {
      let text = "";
      let at = 0;
      if (!this.#keepMark && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) at = 3;
      while (at < bytes.length) {
        const first = bytes[at];
        if (first < 0x80) {
          text += fromCodePoint(first);
          at++;
          continue;
        }
        const size = first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : first >= 0xf0 && first < 0xf5 ? 4 : 0;
        let code = size === 0 ? 0 : first & (0x7f >> size);
        let taken = 1;
        while (taken < size && at + taken < bytes.length) {
          const next = bytes[at + taken];
          const low = taken > 1 ? 0x80 : first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80;
          const high = taken > 1 ? 0xbf : first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf;
          if (next < low || next > high) break;
          code = (code << 6) | (next & 0x3f);
          taken++;
        }
        if (size > 0 && taken === size) text += fromCodePoint(code);
        else if (stream && size > 0 && at + taken === bytes.length) {
          for (let kept = at; kept < bytes.length; kept++) this.#rest.push(bytes[kept]);
          break;
        } else {
          if (this.#fatal) throw new TypeError("the bytes are not UTF-8");
          text += "\ufffd";
        }
        at += taken;
      }
      return text;
    }
  }

  const latin1 = (bytes) => {
    let text = "";
    for (let at = 0; at < bytes.length; at++) text += fromCodePoint(bytes[at]);
    return text;
  };

  const byte = () => floor(random() * 256);
  const hex = (value) => (value < 16 ? "0" : "") + value.toString(16);
  const crypto = {
    getRandomValues(array) {
      const bytes = bytesOf(array);
      if (bytes.length > 65536) {
        throw new DOMException("getRandomValues takes 65536 bytes at most", "QuotaExceededError");
      }
      for (let at = 0; at < bytes.length; at++) bytes[at] = byte();
      return array;
    },
    randomUUID() {
      let text = "";
      for (let at = 0; at < 16; at++) {
        let value = byte();
        if (at === 6) value = (value & 0x0f) | 0x40;
        if (at === 8) value = (value & 0x3f) | 0x80;
        if (at === 4 || at === 6 || at === 8 || at === 10) text += "-";
        text += hex(value);
      }
      return text;
    },
    get subtle() {
      throw new UnsupportedError(
        "crypto.subtle is not available here: scripts do no cryptography. Call a tool that does",
      );
    },
  };
  return { TextEncoder, TextDecoder, crypto };
})
