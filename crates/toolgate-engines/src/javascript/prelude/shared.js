// What the other files of the prelude need of the language, as it was before any script ran:
// a script may replace every one of these, and only harm itself.
(function (host, shared) {
  "use strict";
  const uncurry = Function.prototype.call.bind.bind(Function.prototype.call);

  shared.uncurry = uncurry;
  shared.apply = Reflect.apply;
  shared.ownKeys = Reflect.ownKeys;
  shared.defineProperty = Reflect.defineProperty;
  shared.getDescriptor = Reflect.getOwnPropertyDescriptor;
  shared.getPrototypeOf = Reflect.getPrototypeOf;
  shared.keys = Object.keys;
  shared.create = Object.create;
  shared.isArray = Array.isArray;
  shared.String = String;
  shared.wellFormed = uncurry(String.prototype.toWellFormed);
  shared.slice = uncurry(String.prototype.slice);
  shared.replace = uncurry(String.prototype.replace);
  shared.repeat = uncurry(String.prototype.repeat);
  shared.push = uncurry(Array.prototype.push);
  shared.join = uncurry(Array.prototype.join);
  shared.includes = uncurry(Array.prototype.includes);
  shared.mapForEach = uncurry(Map.prototype.forEach);
  shared.mapSize = uncurry(Reflect.getOwnPropertyDescriptor(Map.prototype, "size").get);
  shared.setForEach = uncurry(Set.prototype.forEach);
  shared.setSize = uncurry(Reflect.getOwnPropertyDescriptor(Set.prototype, "size").get);
  shared.setHas = uncurry(Set.prototype.has);
  shared.setAdd = uncurry(Set.prototype.add);
  shared.setDelete = uncurry(Set.prototype.delete);
  shared.regExpToString = uncurry(RegExp.prototype.toString);
  shared.symbolToString = uncurry(Symbol.prototype.toString);
  shared.exec = uncurry(RegExp.prototype.exec);
  shared.stringify = JSON.stringify;
  shared.math = { __proto__: null, max: Math.max, min: Math.min, round: Math.round, floor: Math.floor, sqrt: Math.sqrt };
  shared.constructors = {
    __proto__: null,
    Map,
    Set,
    WeakMap,
    WeakSet,
    Promise,
    Date,
    RegExp,
    ArrayBuffer,
    DOMException,
    AggregateError,
    RangeError,
    Number,
  };
  shared.dateToISOString = uncurry(Date.prototype.toISOString);
  shared.dateToNumber = uncurry(Date.prototype.getTime);

  /** A property as the language itself has them: not listed, and free to be replaced. */
  shared.hidden = (target, name, value) =>
    shared.defineProperty(target, name, {
      __proto__: null,
      value,
      writable: true,
      enumerable: false,
      configurable: true,
    });

  /** A property that any JSON object may have, `__proto__` included. */
  shared.own = (target, name, value) =>
    shared.defineProperty(target, name, {
      __proto__: null,
      value,
      writable: true,
      enumerable: true,
      configurable: true,
    });

  /** Bytes as a text with a character for each of them. */
  const { fromCharCode } = String;
  const subarray = uncurry(Reflect.getPrototypeOf(Uint8Array.prototype).subarray);
  shared.latin1 = (bytes) => {
    const parts = [];
    for (let at = 0; at < bytes.length; at += 4096) {
      shared.push(parts, shared.apply(fromCharCode, undefined, subarray(bytes, at, at + 4096)));
    }
    return shared.join(parts, "");
  };

  /** A class that may be called without `new`, as some classes of Intl. */
  shared.callable = (made) => {
    const callable = new Proxy(made, { __proto__: null, apply: (_, __, inputs) => new made(...inputs) });
    shared.hidden(made.prototype, "constructor", callable);
    return callable;
  };

  /** What a file of the prelude gives, compiled when it is first asked for. */
  shared.once = (chunk) => {
    let loaded;
    return () => (loaded ??= host.load(chunk)(host, shared));
  };

  /** Properties that are compiled when a script first reads one of them. */
  shared.lazy = (target, load, names) => {
    for (let index = 0; index < names.length; index++) {
      const name = names[index];
      shared.defineProperty(target, name, {
        __proto__: null,
        get() {
          const value = load()[name];
          shared.hidden(target, name, value);
          return value;
        },
        set(value) {
          shared.hidden(target, name, value);
        },
        enumerable: false,
        configurable: true,
      });
    }
  };

  /** A method of a built-in prototype whose code is compiled when it is first called. */
  shared.lazyMethod = (prototype, name, load) => {
    let method;
    const holder = {
      [name](...inputs) {
        method ??= load()[name];
        return shared.apply(method, this, inputs);
      },
    };
    shared.hidden(prototype, name, holder[name]);
  };
})
