// UTF-8, base64's neighbours, and random numbers that are good enough for names.
(function (host, shared) {
  "use strict";
  const { Uint8Array, ArrayBuffer, DOMException, TypeError, RangeError, Math } = globalThis;
  const { UnsupportedError, wellFormed, String } = shared;
  const random = Math.random;
  const floor = Math.floor;

  class TextEncoder {
    get encoding() {
      return "utf-8";
    }

    encode(input = "") {
      return host.bytesOf(wellFormed(String(input)), "utf8");
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
    #rest = new Uint8Array(0);

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
      }
      return this.#name === "utf-8" ? this.#utf8(bytes, Boolean(options.stream)) : shared.latin1(bytes);
    }

    #utf8(bytes, stream) {
      const marked = !this.#keepMark && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
      const whole = marked ? bytes.subarray(3) : bytes;
      // The start of a character at the end is kept for what comes next.
      const rest = stream ? host.unfinished(shared.latin1(whole.subarray(-3))) : 0;
      const end = whole.length - rest;
      this.#rest = whole.slice(end);
      const text = host.textOf(shared.latin1(whole.subarray(0, end)), this.#fatal ? "utf8 only" : "utf8");
      if (text === undefined) throw new TypeError("the bytes are not UTF-8");
      return text;
    }
  }

  const byte = () => floor(random() * 256);
  shared.randomByte = byte;
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
