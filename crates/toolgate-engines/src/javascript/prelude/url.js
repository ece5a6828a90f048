// URL and URLSearchParams, after the URL standard. Hosts are taken as they are written, in lower
// case: neither international names nor odd spellings of IPv4 addresses are rewritten.
(function (host, shared) {
  "use strict";
  const { TypeError, String, encodeURIComponent, Symbol } = globalThis;
  const { wellFormed, hidden } = shared;

  const defaultPorts = { __proto__: null, http: "80", https: "443", ws: "80", wss: "443", ftp: "21", file: "" };
  const isSpecial = (scheme) => scheme in defaultPorts;
  const invalid = (input) => new TypeError(`Invalid URL: ${input}`);

  /** Escapes what matches, and leaves escapes that are there already. */
  const escape = (text, pattern) => wellFormed(text).replace(pattern, (found) => encodeURIComponent(found).replace(/'/g, "%27"));
  const inPath = /[^!-;=@-_a-z|~%]|[?#^`{}]|[\u{80}-\u{10ffff}]/gu;
  const inQuery = /[^!$-&(-;=?-~%]|[\u{80}-\u{10ffff}]/gu;
  const inFragment = /[^!#-;=?-_a-~%]|[\u{80}-\u{10ffff}]/gu;
  const inUser = /[^!$%&'()*+,\-.0-9A-Za-z_~]/gu;

  const decodePart = (text) => {
    const spaced = text.replace(/\+/g, " ");
    if (!spaced.includes("%")) return spaced;
    // Escapes that are not UTF-8 are no error in a query.
    const bytes = [];
    let decoded = "";
    const flush = () => {
      if (bytes.length > 0) decoded += new TextDecoder().decode(new Uint8Array(bytes.splice(0)));
    };
    for (let at = 0; at < spaced.length; at++) {
      const code = spaced[at] === "%" ? spaced.slice(at + 1, at + 3) : "";
      if (/^[0-9a-f]{2}$/i.test(code)) {
        bytes.push(parseInt(code, 16));
        at += 2;
      } else {
        flush();
        decoded += spaced[at];
      }
    }
    flush();
    return decoded;
  };
  const encodePart = (text) =>
    encodeURIComponent(wellFormed(text)).replace(/[!'()~]|%20/g, (found) =>
      found === "%20" ? "+" : `%${found.charCodeAt(0).toString(16).toUpperCase()}`,
    );

  let read;
  class URLSearchParams {
    #pairs = [];
    #changed;

    static {
      read = (query, changed) => {
        const made = new URLSearchParams(query);
        made.#changed = changed;
        return made;
      };
    }

    constructor(init = "") {
      if (typeof init === "object" && init !== null) {
        const entries = typeof init[Symbol.iterator] === "function" ? init : Object.entries(init);
        for (const pair of entries) {
          const [name, value, ...more] = pair;
          if (value === undefined || more.length > 0) {
            throw new TypeError("URLSearchParams takes pairs of a name and a value");
          }
          this.#pairs.push([String(name), String(value)]);
        }
        return;
      }
      for (const part of String(init).replace(/^\?/, "").split("&")) {
        if (part === "") continue;
        const at = part.indexOf("=");
        const name = at < 0 ? part : part.slice(0, at);
        this.#pairs.push([decodePart(name), at < 0 ? "" : decodePart(part.slice(at + 1))]);
      }
    }

    #change(pairs) {
      this.#pairs = pairs;
      this.#changed?.();
    }

    get size() {
      return this.#pairs.length;
    }

    append(name, value) {
      this.#pairs.push([String(name), String(value)]);
      this.#changed?.();
    }

    delete(name, value) {
      const gone = (pair) => pair[0] === String(name) && (value === undefined || pair[1] === String(value));
      this.#change(this.#pairs.filter((pair) => !gone(pair)));
    }

    get(name) {
      return this.#pairs.find((pair) => pair[0] === String(name))?.[1] ?? null;
    }

    getAll(name) {
      return this.#pairs.filter((pair) => pair[0] === String(name)).map((pair) => pair[1]);
    }

    has(name, value) {
      return this.#pairs.some((pair) => pair[0] === String(name) && (value === undefined || pair[1] === String(value)));
    }

    set(name, value) {
      const key = String(name);
      const first = this.#pairs.findIndex((pair) => pair[0] === key);
      if (first < 0) return this.append(key, value);
      const kept = this.#pairs.filter((pair, at) => at <= first || pair[0] !== key);
      kept[first] = [key, String(value)];
      this.#change(kept);
    }

    sort() {
      this.#change([...this.#pairs].sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0)));
    }

    forEach(callback, self) {
      for (const [name, value] of this.#pairs) callback.call(self, value, name, this);
    }

    *entries() {
      for (const [name, value] of this.#pairs) yield [name, value];
    }

    *keys() {
      for (const pair of this.#pairs) yield pair[0];
    }

    *values() {
      for (const pair of this.#pairs) yield pair[1];
    }

    toString() {
      return this.#pairs.map(([name, value]) => `${encodePart(name)}=${encodePart(value)}`).join("&");
    }
  }
  hidden(URLSearchParams.prototype, Symbol.iterator, URLSearchParams.prototype.entries);
  hidden(URLSearchParams.prototype, Symbol.toStringTag, "URLSearchParams");

  const parseAuthority = (parts, authority, input) => {
    const at = authority.lastIndexOf("@");
    if (at >= 0) {
      const user = authority.slice(0, at);
      const colon = user.indexOf(":");
      parts.username = escape(colon < 0 ? user : user.slice(0, colon), inUser);
      parts.password = colon < 0 ? "" : escape(user.slice(colon + 1), inUser);
    }
    const match = /^(\[[0-9a-f:.]+\]|[^:\[\]]*)(?::(\d*))?$/i.exec(authority.slice(at + 1));
    if (match === null) throw invalid(input);
    setHost(parts, match[1], input);
    setPort(parts, match[2] ?? "", input);
  };
  const setHost = (parts, name, input) => {
    let hostname = name;
    try {
      if (isSpecial(parts.scheme)) hostname = decodeURIComponent(name).toLowerCase();
    } catch {
      throw invalid(input);
    }
    if (/[\s#%/:<>?@\\^|\x00-\x1f]/.test(hostname.replace(/^\[.*\]$/, ""))) throw invalid(input);
    if (hostname === "" && isSpecial(parts.scheme) && parts.scheme !== "file") throw invalid(input);
    parts.hostname = hostname;
  };
  const setPort = (parts, text, input) => {
    if (text !== "" && Number(text) > 65535) throw invalid(input);
    const port = text === "" ? "" : String(Number(text));
    parts.port = port === defaultPorts[parts.scheme] ? "" : port;
  };

  const normalisePath = (path, special) => {
    const segments = [];
    const pieces = (special ? path.replace(/\\/g, "/") : path).split("/").slice(1);
    pieces.forEach((piece, index) => {
      const last = index === pieces.length - 1;
      const dots = piece.replace(/%2e/gi, ".");
      if (dots === "..") {
        segments.pop();
        if (last) segments.push("");
      } else if (dots === ".") {
        if (last) segments.push("");
      } else segments.push(escape(piece, inPath));
    });
    return `/${segments.join("/")}`;
  };

  const parse = (input, base) => {
    const text = String(input).trim().replace(/[\t\n\r]/g, "");
    const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(text);
    const [, body, , query, , fragment] = /^([^?#]*)((?:\?)([^#]*))?((?:#)(.*))?$/su.exec(
      scheme === null ? text : text.slice(scheme[0].length),
    );
    const parts = { scheme: "", username: "", password: "", hostname: null, port: "", path: "", search: "", hash: "" };
    if (query !== undefined && query !== "") parts.search = `?${escape(query, inQuery)}`;
    if (fragment !== undefined && fragment !== "") parts.hash = `#${escape(fragment, inFragment)}`;
    let rest = body;
    if (scheme !== null) {
      parts.scheme = scheme[1].toLowerCase();
      if (isSpecial(parts.scheme)) {
        const full = /^[\/\\]*([^\/\\]*)(.*)$/s.exec(rest);
        if (parts.scheme === "file") parseFile(parts, rest, input);
        else {
          parseAuthority(parts, full[1], input);
          parts.path = normalisePath(full[2] === "" ? "/" : full[2], true);
        }
      } else if (rest.startsWith("//")) {
        const full = /^\/\/([^/]*)(.*)$/s.exec(rest);
        parseAuthority(parts, full[1], input);
        parts.path = full[2] === "" ? "" : normalisePath(full[2], false);
      } else if (rest.startsWith("/")) parts.path = normalisePath(rest, false);
      else parts.path = wellFormed(rest).replace(/[^\x20-\x7e]/gu, (found) => encodeURIComponent(found));
      return parts;
    }
    if (base === undefined || (base.hostname === null && !base.path.startsWith("/"))) throw invalid(input);
    const special = isSpecial(base.scheme);
    if (special) rest = rest.replace(/\\/g, "/");
    parts.scheme = base.scheme;
    if (rest.startsWith("//")) {
      const full = /^\/\/([^/]*)(.*)$/s.exec(rest);
      parseAuthority(parts, full[1], input);
      parts.path = normalisePath(full[2] === "" ? "/" : full[2], special);
      return parts;
    }
    for (const part of ["username", "password", "hostname", "port"]) parts[part] = base[part];
    if (rest === "") {
      parts.path = base.path;
      if (query === undefined) parts.search = base.search;
    } else {
      const directory = base.path.slice(0, base.path.lastIndexOf("/") + 1) || "/";
      parts.path = normalisePath(rest.startsWith("/") ? rest : directory + rest, special);
    }
    return parts;
  };
  const parseFile = (parts, rest, input) => {
    const full = /^\/\/([^\/\\]*)(.*)$/s.exec(rest.replace(/\\/g, "/"));
    const name = full === null ? "" : full[1];
    setHost(parts, name === "localhost" ? "" : name, input);
    parts.path = normalisePath((full === null ? rest : full[2]) || "/", true);
  };

  class URL {
    #parts;
    #query;

    constructor(input, base) {
      const against = base === undefined ? undefined : parse(base);
      this.#parts = parse(input, against);
      this.#listen();
    }

    static canParse(input, base) {
      return URL.parse(input, base) !== null;
    }

    static parse(input, base) {
      try {
        return new URL(input, base);
      } catch {
        return null;
      }
    }

    // The query is written anew when something reads it, not with each change.
    #isStale = false;

    #listen() {
      this.#isStale = false;
      this.#query = read(this.#parts.search, () => {
        this.#isStale = true;
      });
    }

    #search() {
      if (this.#isStale) {
        const query = this.#query.toString();
        this.#parts.search = query === "" ? "" : `?${query}`;
        this.#isStale = false;
      }
      return this.#parts.search;
    }

    #set(change) {
      const changed = { ...this.#parts };
      try {
        change(changed);
      } catch {
        // A setter that is given nonsense leaves the URL as it is.
        return;
      }
      this.#parts = changed;
    }

    get href() {
      const search = this.#search();
      const { scheme, username, password, hostname, path, hash } = this.#parts;
      const user = username + (password === "" ? "" : `:${password}`);
      const authority = hostname === null ? "" : `//${user === "" ? "" : `${user}@`}${this.host}`;
      return `${scheme}:${authority}${path}${search}${hash}`;
    }

    set href(value) {
      this.#parts = parse(value);
      this.#listen();
    }

    get origin() {
      const { scheme } = this.#parts;
      return isSpecial(scheme) && scheme !== "file" ? `${scheme}://${this.host}` : "null";
    }

    get protocol() {
      return `${this.#parts.scheme}:`;
    }

    set protocol(value) {
      this.#set((parts) => {
        const scheme = /^([a-z][a-z0-9+.-]*):?/i.exec(String(value))[1].toLowerCase();
        if (isSpecial(scheme) !== isSpecial(parts.scheme)) return;
        parts.scheme = scheme;
        setPort(parts, parts.port, value);
      });
    }

    get username() {
      return this.#parts.username;
    }

    set username(value) {
      this.#set((parts) => (parts.username = escape(String(value), inUser)));
    }

    get password() {
      return this.#parts.password;
    }

    set password(value) {
      this.#set((parts) => (parts.password = escape(String(value), inUser)));
    }

    get host() {
      const { hostname, port } = this.#parts;
      return `${hostname ?? ""}${port === "" ? "" : `:${port}`}`;
    }

    set host(value) {
      this.#set((parts) => {
        const [, name, port] = /^(\[.*\]|[^:/?#]*)(?::(\d*))?/.exec(String(value));
        setHost(parts, name, value);
        if (port !== undefined) setPort(parts, port, value);
      });
    }

    get hostname() {
      return this.#parts.hostname ?? "";
    }

    set hostname(value) {
      this.#set((parts) => setHost(parts, /^(\[.*\]|[^:/?#]*)/.exec(String(value))[1], value));
    }

    get port() {
      return this.#parts.port;
    }

    set port(value) {
      this.#set((parts) => setPort(parts, /^\d*/.exec(String(value))[0], value));
    }

    get pathname() {
      return this.#parts.path;
    }

    set pathname(value) {
      const path = String(value).replace(/[?#]/g, (found) => encodeURIComponent(found));
      this.#set((parts) => {
        parts.path = normalisePath(path.startsWith("/") ? path : `/${path}`, isSpecial(parts.scheme));
      });
    }

    get search() {
      return this.#search();
    }

    set search(value) {
      const query = String(value).replace(/^\?/, "");
      this.#parts.search = query === "" ? "" : `?${escape(query, inQuery)}`;
      this.#listen();
    }

    get hash() {
      return this.#parts.hash;
    }

    set hash(value) {
      const fragment = String(value).replace(/^#/, "");
      this.#parts.hash = fragment === "" ? "" : `#${escape(fragment, inFragment)}`;
    }

    get searchParams() {
      return this.#query;
    }

    toString() {
      return this.href;
    }

    toJSON() {
      return this.href;
    }
  }
  hidden(URL.prototype, Symbol.toStringTag, "URL");
  return { URL, URLSearchParams };
})
