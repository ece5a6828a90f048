// The modules of Node that need nothing from outside.
(function (host, shared) {
  "use strict";
  const { Buffer, crypto, Promise, RangeError, TypeError, setTimeout, setImmediate, clearTimeout, Math } = globalThis;
  const { clearImmediate, setInterval, clearInterval } = globalThis;
  const { absentMember, create, getDescriptor, String } = shared;

  const hashes = ["md5", "sha1", "sha224", "sha256", "sha384", "sha512"];
  class Hash {
    #name;
    #parts = [];

    constructor(name) {
      this.#name = String(name).toLowerCase().replace(/^sha-/, "sha");
      if (!hashes.includes(this.#name)) {
        throw new TypeError(`the digest ${name} is not available here: there are ${hashes.join(", ")}`);
      }
    }

    update(data, encoding) {
      if (this.#parts === undefined) throw new TypeError("Digest already called");
      this.#parts.push(Buffer.from(data, encoding));
      return this;
    }

    digest(encoding) {
      if (this.#parts === undefined) throw new TypeError("Digest already called");
      const whole = Buffer.concat(this.#parts);
      this.#parts = undefined;
      const made = Buffer.from(host.digest(this.#name, shared.latin1(whole)));
      return encoding === undefined || encoding === "buffer" ? made : made.toString(encoding);
    }
  }

  class Hmac {
    #inner;
    #outer;

    constructor(name, key) {
      [this.#inner, this.#outer] = [new Hash(name), new Hash(name)];
      const block = /384|512/.test(name) ? 128 : 64;
      let bytes = Buffer.from(key);
      if (bytes.length > block) bytes = new Hash(name).update(bytes).digest();
      const padded = Buffer.alloc(block);
      padded.set(bytes);
      this.#inner.update(padded.map((byte) => byte ^ 0x36));
      this.#outer.update(padded.map((byte) => byte ^ 0x5c));
    }

    update(data, encoding) {
      this.#inner.update(data, encoding);
      return this;
    }

    digest(encoding) {
      return this.#outer.update(this.#inner.digest()).digest(encoding);
    }
  }

  const timingSafeEqual = (one, other) => {
    if (one.byteLength !== other.byteLength) {
      throw new RangeError("Input buffers must have the same byte length");
    }
    return Buffer.from(one).equals(Buffer.from(other));
  };

  const randomBytes = (size) => {
    const made = Buffer.alloc(size);
    for (let at = 0; at < made.length; at++) made[at] = shared.randomByte();
    return made;
  };
  const randomInt = (least, most) => {
    const [from, to] = most === undefined ? [0, least] : [least, most];
    return from + Math.floor(Math.random() * (to - from));
  };
  const waiting = (milliseconds, value) =>
    new Promise((resolve) => setTimeout(resolve, milliseconds, value));

  const known = {
    __proto__: null,
    crypto: {
      createHash: (name) => new Hash(name),
      createHmac: (name, key) => new Hmac(name, key),
      timingSafeEqual,
      hash: (name, data, encoding = "hex") => new Hash(name).update(data).digest(encoding),
      getHashes: () => [...hashes],
      randomUUID: () => crypto.randomUUID(),
      getRandomValues: (array) => crypto.getRandomValues(array),
      randomBytes,
      randomInt,
      webcrypto: crypto,
    },
    buffer: { Buffer, atob: globalThis.atob, btoa: globalThis.btoa },
    timers: { setTimeout, setImmediate, setInterval, clearTimeout, clearImmediate, clearInterval },
    "timers/promises": {
      setTimeout: waiting,
      setImmediate: (value) => new Promise((resolve) => setImmediate(resolve, value)),
      scheduler: { wait: (milliseconds) => waiting(milliseconds), yield: () => waiting(0) },
    },
    ...host.load("modules_more")(host, shared),
  };
  const modules = create(null);
  const advice = "scripts have the part of this module that needs no files, network or keys";
  for (const name of shared.keys(known)) {
    modules[name] = new Proxy(known[name], {
      __proto__: null,
      get: (target, key) =>
        key === "default"
          ? modules[name]
          : getDescriptor(target, key) !== undefined
            ? target[key]
            : absentMember(name, key, advice),
    });
  }
  return modules;
})
