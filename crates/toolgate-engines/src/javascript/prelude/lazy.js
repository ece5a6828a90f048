// What is compiled on first use, and by what it is found.
(function (host, shared) {
  "use strict";
  const { once, lazy, lazyMethod } = shared;

  shared.inspector = once("inspect");
  shared.inspect = (value, depth) => shared.inspector().inspect(value, depth);
  lazy(globalThis, once("encoding"), ["TextEncoder", "TextDecoder", "crypto"]);
  lazy(globalThis, once("bytes"), ["Buffer"]);
  lazy(globalThis, once("url"), ["URL", "URLSearchParams"]);
  lazy(globalThis, once("clone"), ["structuredClone"]);
  lazy(globalThis, once("abort"), ["Event", "EventTarget", "AbortController", "AbortSignal"]);

  shared.locales = once("locales");
  shared.zones = once("zones");
  const numbers = once("numbers");
  const dates = once("dates");
  const texts = once("texts");
  const Intl = {};
  lazy(Intl, numbers, ["NumberFormat", "PluralRules"]);
  lazy(Intl, dates, ["DateTimeFormat", "RelativeTimeFormat"]);
  lazy(Intl, texts, ["Collator", "ListFormat"]);
  shared.hidden(Intl, "getCanonicalLocales", (locales) =>
    (shared.isArray(locales) ? locales : locales === undefined ? [] : [locales]).map(String),
  );
  shared.hidden(Intl, Symbol.toStringTag, "Intl");
  shared.hidden(globalThis, "Intl", Intl);

  lazyMethod(Number.prototype, "toLocaleString", () => numbers().methods);
  lazyMethod(BigInt.prototype, "toLocaleString", () => numbers().methods);
  lazyMethod(Date.prototype, "toLocaleString", () => dates().methods);
  lazyMethod(Date.prototype, "toLocaleDateString", () => dates().methods);
  lazyMethod(Date.prototype, "toLocaleTimeString", () => dates().methods);
  lazyMethod(String.prototype, "localeCompare", () => texts().methods);
})
