// More modules of Node that need nothing from outside: `path`, `util` and `assert`.
(function (host, shared) {
  "use strict";
  const { Error, TypeError, Promise, RegExp, Map, Set, Date, ArrayBuffer, Number, String, Object, Symbol } = globalThis;
  const { isArray, getPrototypeOf, isError } = shared;

  const texts = (...values) => {
    for (const value of values) {
      if (typeof value !== "string") {
        throw new TypeError(
          `The "path" argument must be of type string. Received ${value === null ? "null" : typeof value}`,
        );
      }
    }
  };

  const parts = (path, isAbsolute) => {
    const kept = [];
    for (const part of path.split("/")) {
      if (part === "" || part === ".") continue;
      if (part !== "..") kept.push(part);
      else if (kept.length > 0 && kept.at(-1) !== "..") kept.pop();
      else if (!isAbsolute) kept.push("..");
    }
    return kept.join("/");
  };
  const normalize = (path) => {
    texts(path);
    if (path === "") return ".";
    const isAbsolute = path.startsWith("/");
    let kept = parts(path, isAbsolute);
    if (kept === "") return isAbsolute ? "/" : path.endsWith("/") ? "./" : ".";
    if (path.endsWith("/")) kept += "/";
    return isAbsolute ? `/${kept}` : kept;
  };
  const resolve = (...paths) => {
    texts(...paths);
    let whole = "";
    for (const path of paths.reverse()) {
      if (path !== "") whole = whole === "" ? path : `${path}/${whole}`;
      if (path.startsWith("/")) break;
    }
    // A script has no folder: it works at the root.
    return `/${parts(`/${whole}`, true)}`;
  };
  const trimmed = (path) => {
    let end = path.length;
    while (end > 1 && path[end - 1] === "/") end--;
    return path.slice(0, end);
  };
  const dirname = (path) => {
    texts(path);
    if (path === "") return ".";
    const whole = trimmed(path);
    const at = whole.lastIndexOf("/");
    return at < 0 ? "." : at === 0 ? "/" : trimmed(whole.slice(0, at));
  };
  const basename = (path, suffix) => {
    texts(path);
    const whole = trimmed(path);
    const name = whole === "/" ? "" : whole.slice(whole.lastIndexOf("/") + 1);
    return suffix !== undefined && name !== suffix && name.endsWith(suffix)
      ? name.slice(0, name.length - suffix.length)
      : name;
  };
  const extname = (path) => {
    const name = basename(path);
    const at = name.lastIndexOf(".");
    return at <= 0 || name === ".." ? "" : name.slice(at);
  };
  const relative = (from, to) => {
    texts(from, to);
    const split = (path) => resolve(path).split("/").filter((part) => part !== "");
    const [start, end] = [split(from), split(to)];
    let same = 0;
    while (same < start.length && same < end.length && start[same] === end[same]) same++;
    return [...start.slice(same).map(() => ".."), ...end.slice(same)].join("/");
  };
  const path = {
    sep: "/",
    delimiter: ":",
    normalize,
    resolve,
    dirname,
    basename,
    extname,
    relative,
    isAbsolute: (path) => (texts(path), path.startsWith("/")),
    join: (...paths) => {
      texts(...paths);
      return normalize(paths.filter((path) => path !== "").join("/"));
    },
    parse: (path) => {
      const [base, ext] = [basename(path), extname(path)];
      const root = path.startsWith("/") ? "/" : "";
      const folder = dirname(path);
      const dir = folder === "." && !trimmed(path).startsWith("./") ? "" : folder;
      return { root, dir, base, ext, name: ext === "" ? base : base.slice(0, -ext.length) };
    },
    format: ({ root = "", dir, base, name = "", ext = "" }) => {
      const dot = ext === "" || ext.startsWith(".") ? "" : ".";
      const file = base ?? `${name}${dot}${ext}`;
      const folder = dir ?? root;
      return folder === "" ? file : folder === root ? `${folder}${file}` : `${folder}/${file}`;
    },
  };
  path.posix = path;

  // Equality as `assert` and `util.isDeepStrictEqual` mean it.
  const tag = (value) => Object.prototype.toString.call(value);
  const equal = (one, other, isStrict, open) => {
    if (isStrict ? Object.is(one, other) : one == other || (one !== one && other !== other)) return true;
    if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false;
    if (tag(one) !== tag(other) || isArray(one) !== isArray(other)) return false;
    if (isStrict && getPrototypeOf(one) !== getPrototypeOf(other)) return false;
    if (open.get(one) === other) return true;
    open.set(one, other);
    try {
      return contentsEqual(one, other, isStrict, open);
    } finally {
      open.delete(one);
    }
  };
  const contentsEqual = (one, other, isStrict, open) => {
    const same = (a, b) => equal(a, b, isStrict, open);
    if (one instanceof Date && !Object.is(one.getTime(), other.getTime())) return false;
    if (one instanceof RegExp && String(one) !== String(other)) return false;
    if (isError(one) && (one.name !== other.name || one.message !== other.message)) return false;
    if (one instanceof Number || one instanceof String) {
      if (!Object.is(one.valueOf(), other.valueOf())) return false;
    }
    if (one instanceof Set) {
      if (one.size !== other.size) return false;
      const left = [...other];
      for (const item of one) {
        const at = left.findIndex((candidate) => same(item, candidate));
        if (at < 0) return false;
        left.splice(at, 1);
      }
    }
    if (one instanceof Map) {
      if (one.size !== other.size) return false;
      const left = [...other];
      for (const [key, value] of one) {
        const at = left.findIndex((entry) => same(key, entry[0]) && same(value, entry[1]));
        if (at < 0) return false;
        left.splice(at, 1);
      }
    }
    const keys = Object.keys(one);
    if (keys.length !== Object.keys(other).length || one.length !== other.length) return false;
    return keys.every((key) => Object.hasOwn(other, key) && same(one[key], other[key]));
  };
  const isDeepEqual = (one, other) => equal(one, other, false, new Map());
  const isDeepStrictEqual = (one, other) => equal(one, other, true, new Map());

  const inspect = (value, options) => {
    const depth = typeof options === "object" && options !== null ? options.depth : undefined;
    return shared.inspect(value, depth === null ? Infinity : depth);
  };
  inspect.custom = Symbol.for("nodejs.util.inspect.custom");
  const promisify = (callee) => {
    if (typeof callee !== "function") throw new TypeError('The "original" argument must be of type function');
    return function (...inputs) {
      return new Promise((resolve, reject) => {
        shared.apply(callee, this, [...inputs, (error, value) => (error ? reject(error) : resolve(value))]);
      });
    };
  };
  const callbackify = (callee) =>
    function (...inputs) {
      const callback = inputs.pop();
      shared.apply(callee, this, inputs).then(
        (value) => callback(null, value),
        (error) => callback(error),
      );
    };
  const isTagged = (name) => (value) => tag(value) === `[object ${name}]`;
  const types = {
    isArrayBuffer: isTagged("ArrayBuffer"),
    isAsyncFunction: isTagged("AsyncFunction"),
    isBoxedPrimitive: (value) => typeof value === "object" && /(Number|String|Boolean|BigInt|Symbol)\]/.test(tag(value)),
    isDate: (value) => value instanceof Date,
    isGeneratorFunction: isTagged("GeneratorFunction"),
    isMap: (value) => value instanceof Map,
    isNativeError: (value) => isError(value),
    isPromise: (value) => value instanceof Promise,
    isRegExp: (value) => value instanceof RegExp,
    isSet: (value) => value instanceof Set,
    isTypedArray: (value) => ArrayBuffer.isView(value) && !(value instanceof globalThis.DataView),
    isUint8Array: (value) => value instanceof globalThis.Uint8Array,
  };
  const util = {
    inspect,
    format: (...values) => shared.inspector().format(values),
    isDeepStrictEqual,
    promisify,
    callbackify,
    types,
    inherits: (derived, base) => {
      Object.setPrototypeOf(derived.prototype, base.prototype);
      Object.setPrototypeOf(derived, base);
    },
    deprecate: (callee) => callee,
    stripVTControlCharacters: (text) => String(text).replace(/\u001b\[[0-9;?]*[ -/]*[@-~]/g, ""),
    toUSVString: (text) => String(text).toWellFormed(),
    isArray,
    get TextEncoder() {
      return globalThis.TextEncoder;
    },
    get TextDecoder() {
      return globalThis.TextDecoder;
    },
  };

  class AssertionError extends Error {
    constructor({ message, actual, expected, operator } = {}) {
      super(message);
      this.name = "AssertionError";
      this.code = "ERR_ASSERTION";
      Object.assign(this, { generatedMessage: false, actual, expected, operator });
    }
  }
  const show = (value) => shared.inspect(value, 3);
  const refuse = (given, message, actual, expected, operator) => {
    if (isError(given)) throw given;
    throw new AssertionError({ message: given ?? message, actual, expected, operator });
  };
  const compare = (operator, holds, words) => (actual, expected, message) => {
    if (!holds(actual, expected)) {
      refuse(message, `${words}:\n\n${show(actual)}\n\n${show(expected)}\n`, actual, expected, operator);
    }
  };
  const matches = (thrown, expected, message) => {
    if (expected === undefined || typeof expected === "string") return;
    if (expected instanceof RegExp) {
      if (!expected.test(String(thrown))) {
        refuse(message, `The input did not match the regular expression ${expected}. Input:\n\n${show(String(thrown))}\n`, thrown, expected, "throws");
      }
    } else if (typeof expected === "function") {
      if (expected.prototype !== undefined && thrown instanceof expected) return;
      // The function may be a class of errors, or one that looks at the error.
      if (expected.prototype !== undefined && (expected === Error || expected.prototype instanceof Error)) throw thrown;
      if (expected(thrown) !== true) refuse(message, "The validation function is expected to return true.", thrown, expected, "throws");
    } else {
      for (const key of Object.keys(expected)) {
        const wanted = expected[key];
        const fits = wanted instanceof RegExp && typeof thrown?.[key] === "string"
          ? wanted.test(thrown[key])
          : isDeepStrictEqual(thrown?.[key], wanted);
        if (!fits) refuse(message, `Expected values to be strictly deep-equal:\n\n${show(thrown?.[key])}\n\n${show(wanted)}\n`, thrown, expected, "throws");
      }
    }
  };
  const missing = (what, expected, message) => {
    const given = typeof expected === "string" ? expected : message;
    refuse(given, `Missing expected ${what}.`, undefined, expected, "throws");
  };
  const ok = (...given) => {
    const [value, message] = given;
    if (given.length === 0) refuse(undefined, "No value argument passed to `assert.ok()`", undefined, true, "==");
    if (!value) refuse(message, "The expression evaluated to a falsy value", value, true, "==");
  };
  const checks = {
    ok,
    AssertionError,
    fail: (message = "Failed") => refuse(message),
    equal: compare("==", (a, b) => a == b || (a !== a && b !== b), "Expected values to be loosely equal"),
    notEqual: compare("!=", (a, b) => !(a == b || (a !== a && b !== b)), 'Expected "actual" to be loosely unequal to'),
    strictEqual: compare("strictEqual", Object.is, "Expected values to be strictly equal"),
    notStrictEqual: compare("notStrictEqual", (a, b) => !Object.is(a, b), 'Expected "actual" to be strictly unequal to'),
    deepEqual: compare("deepEqual", isDeepEqual, "Expected values to be loosely deep-equal"),
    notDeepEqual: compare("notDeepEqual", (a, b) => !isDeepEqual(a, b), 'Expected "actual" not to be loosely deep-equal to'),
    deepStrictEqual: compare("deepStrictEqual", isDeepStrictEqual, "Expected values to be strictly deep-equal"),
    notDeepStrictEqual: compare("notDeepStrictEqual", (a, b) => !isDeepStrictEqual(a, b), 'Expected "actual" not to be strictly deep-equal to'),
    match: compare("match", (text, pattern) => typeof text === "string" && pattern.test(text), "The input did not match the regular expression"),
    doesNotMatch: compare("doesNotMatch", (text, pattern) => !pattern.test(text), "The input was expected to not match the regular expression"),
    throws: (callee, expected, message) => {
      try {
        callee();
      } catch (thrown) {
        return matches(thrown, expected, message);
      }
      missing("exception", expected, message);
    },
    doesNotThrow: (callee) => void callee(),
    rejects: async (given, expected, message) => {
      try {
        await (typeof given === "function" ? given() : given);
      } catch (thrown) {
        return matches(thrown, expected, message);
      }
      missing("rejection", expected, message);
    },
    doesNotReject: async (given) => void (await (typeof given === "function" ? given() : given)),
    ifError: (value) => {
      if (value !== null && value !== undefined) throw value;
    },
  };
  const assert = Object.assign((...given) => ok(...given), checks);
  const strict = Object.assign((...given) => ok(...given), checks, {
    equal: checks.strictEqual,
    notEqual: checks.notStrictEqual,
    deepEqual: checks.deepStrictEqual,
    notDeepEqual: checks.notDeepStrictEqual,
  });
  assert.strict = strict.strict = strict;

  return { path, "path/posix": path, util, assert, "assert/strict": strict };
})
