// Tools as functions.
(function (host, shared) {
  "use strict";
  const { hidden, own, isArray, create, wellFormed, replace, exec } = shared;
  const { Promise, Proxy, TypeError } = globalThis;
  const { get: getPart, setPrototypeOf } = Reflect;
  const { toPrimitive } = Symbol;
  const reject = Promise.reject.bind(Promise);

  const invoke = (name, example, place, inputs) => {
    const given = inputs[0] === undefined ? {} : inputs[0];
    // What comes after an object is not looked at: `list.map(tool)` gives an index, and the list.
    const isLost = inputs[0] === undefined && inputs[1] !== undefined;
    if (typeof given !== "object" || given === null || isArray(given) || isLost) {
      return reject(new TypeError(`${name} takes one object: ${example}`));
    }
    const error = shared.callError(name);
    try {
      return host.call(name, given, error, place);
    } catch (thrown) {
      return reject(thrown);
    }
  };
  // Functions that take several arguments, by position.
  const positional = {
    __proto__: null,
    extract: (place, inputs) => {
      const value = inputs[0];
      const type = inputs[1];
      if (value === undefined || value === null || type === undefined) {
        return reject(new TypeError("extract takes a value and a type: extract(value, type, hint)"));
      }
      return invoke("extract", "", place, [{ value, type, hint: inputs[2] ?? undefined }]);
    },
    // These also take one object.
    read_resource: (place, inputs) => {
      const given = typeof inputs[0] === "string" ? { uri: inputs[0] } : inputs[0];
      return invoke("read_resource", "read_resource(uri)", place, [given]);
    },
    read_output: (place, inputs) => {
      const [id, offset, pattern] = [inputs[0], inputs[1], inputs[2]];
      const given = typeof id === "string" ? { id, offset: offset ?? 0, pattern: pattern ?? undefined } : id;
      return invoke("read_output", "read_output(id, offset, pattern)", place, [given]);
    },
  };
  const makeFunction = (name, example, place) => {
    const several = positional[name];
    const made = several
      ? (...inputs) => several(place, inputs)
      : (...inputs) => invoke(name, example, place, inputs);
    shared.defineProperty(made, "name", { __proto__: null, value: name, configurable: true });
    return made;
  };

  const known = create(null);
  const others = create(null);
  // Asked for by the language itself, not by a script that wants a tool.
  const passive = { __proto__: null, then: 1, toJSON: 1, constructor: 1, toString: 1, valueOf: 1 };
  const find = (name) => known[name] ?? (others[name] ??= named(name));
  // A name that the script computes may be that of a server: `tools.server.tool(…)`.
  const named = (name) =>
    new Proxy(makeFunction(name, `${name}({ … })`, null), {
      __proto__: null,
      get(target, part) {
        if (typeof part === "symbol" || part in target || part in passive) return target[part];
        return find(replace(wellFormed(`${name}_${part}`), /\W/g, "_"));
      },
    });
  const tools = new Proxy(known, {
    __proto__: null,
    get(target, name) {
      if (typeof name === "symbol" || name in passive) return undefined;
      return find(wellFormed(name));
    },
  });
  hidden(globalThis, "tools", tools);

  // Promises have no other parts than their methods: a script that reads one has forgotten `await`.
  const isPromise = (value) => shared.isInstance(value, Promise) && value !== Promise.prototype;
  // The first few names, how often a script has read any of them, and how often it has made a text or a
  // number of a promise.
  const names = [];
  let reads = 0;
  let conversions = 0;
  const parts = new Proxy(create(Object.prototype), {
    __proto__: null,
    get(target, name, receiver) {
      const isPart = typeof name === "string" && !(name in target) && !(name in passive);
      if (isPart && isPromise(receiver)) {
        reads++;
        if (names.length < 5 && !names.includes(name)) names.push(name);
      }
      // The language asks for it when it needs a text or a number.
      if (name === toPrimitive && isPromise(receiver)) conversions++;
      return getPart(target, name, receiver);
    },
  });
  setPrototypeOf(Promise.prototype, parts);

  // Says so once, at the end.
  host.internal("tellReads", () => {
    if (reads === 0 && conversions === 0) return;
    const advice = "write `await` before the call that makes it, or `await Promise.all(…)` around a list";
    const listed = names.map((name) => `\`${name}\``).join(", ");
    const told =
      reads === 1
        ? `${listed} is read from a promise, which has no such part`
        : `${listed}: read from promises, which have no such part, ${reads} times`;
    const used =
      conversions === 1
        ? "a promise is used as a text or a number, which it is not"
        : `promises are used as texts or numbers, which they are not, ${conversions} times`;
    const all = conversions === 0 ? told : reads === 0 ? used : `${told}; ${used}`;
    shared.console.write(true, `${all}: ${advice}`);
  });

  // For scripts with `globalThis[name]`: a name like that of a tool is one, unless it is defined.
  host.internal("openGlobal", () => {
    const exposed = /^[A-Za-z][A-Za-z0-9]*_\w+$/;
    const global = new Proxy(globalThis, {
      __proto__: null,
      get(target, name) {
        const isTool = typeof name === "string" && !(name in target) && exec(exposed, name) !== null;
        return isTool ? find(name) : target[name];
      },
    });
    hidden(globalThis, "globalThis", global);
  });

  host.internal("define", (name, example) => {
    const made = makeFunction(name, example, null);
    own(known, name, made);
    hidden(globalThis, name, made);
  });
  // A function for one place of the script. It is no property of anything.
  host.internal("definePlace", makeFunction);

  const emit = (block) => {
    if (typeof block !== "object" || block === null || isArray(block)) {
      throw new TypeError('emit takes a content block: emit({ type: "image", data, mimeType })');
    }
    host.emit(block);
  };
  hidden(globalThis, "emit", emit);
})
