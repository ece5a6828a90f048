// Intl.Collator, Intl.ListFormat and localeCompare: an order that people expect of names, without
// the tables of the Unicode standard. Letters first, then accents, then case.
(function (host, shared) {
  "use strict";
  const { String, Map, Object } = globalThis;
  const locales = shared.locales();

  const normalize = shared.uncurry(String.prototype.normalize);
  const toLowerCase = shared.uncurry(String.prototype.toLowerCase);
  const exec = shared.uncurry(RegExp.prototype.exec);
  const marks = /\p{M}/gu;
  const ascii = /^[\x20-\x7e]*$/;
  // Letters that are no letter and an accent, and are sorted as if they were.
  const folds = { __proto__: null, ß: "ss", æ: "ae", œ: "oe", ø: "o", ł: "l", đ: "d", ð: "d", ſ: "s" };
  // Letters of their own behind others, and signs that differ from others as capital letters do.
  Object.assign(folds, { þ: "z\uffff", ı: "i\uffff", "\u00a0": " " });
  for (const sign of "‘’‚‛") folds[sign] = "'";
  for (const sign of "“”„‟") folds[sign] = '"';
  const foldable = /[ßæœøłđðſþı\u00a0‘’‚‛“”„‟]/g;
  const base = (text, isSpanish) => {
    let lower = toLowerCase(text);
    if (exec(ascii, lower) !== null) return lower;
    // A letter of its own, after n.
    if (isSpanish) lower = shared.replace(normalize(lower, "NFC"), /ñ/g, "n\uffff");
    return shared.replace(shared.replace(normalize(lower, "NFD"), marks, ""), foldable, (letter) => folds[letter]);
  };
  // Spaces, then signs in the order of the Unicode standard, then digits, then letters.
  const signs =
    "\t\n\v\f\r _-‐‒–—―⁓,;⁏:!¡?¿‽.·⁕⁖⁘⁙⁚⁛⁜⁝⁞'‹›\"«»()[]{}⁅⁆‖§¶⁋@*⁎⁑/\\&⁊#%‰‱†‡•‣‧⁃⁌⁍′‵‸※‿⁔⁀⁐⁁⁂`^°©®←→↑↓+±÷×<=>¬|¦~⁒⁄¤¢$£¥₠₡₢₣₤₥₦₩₪₫€₭₮₯₰₱₲₳₴₵₶₷₸₹₺₻₼₽₾₿";
  const signRanks = new Map();
  for (let at = 0; at < signs.length; at++) signRanks.set(signs[at], at);
  const rankOf = shared.uncurry(Map.prototype.get);
  const rank = (character) => {
    if (character >= "a" && character <= "z") return 3000;
    if (character >= "0" && character <= "9") return 2000;
    return rankOf(signRanks, character) ?? (character > "\x7f" ? 4000 : -1);
  };
  const compareUnits = (a, b) => {
    const length = a.length < b.length ? a.length : b.length;
    for (let at = 0; at < length; at++) {
      const [left, right] = [a.charCodeAt(at), b.charCodeAt(at)];
      if (left !== right) return rank(a[at]) - rank(b[at]) || left - right;
    }
    return a.length - b.length;
  };
  // Accents in the order of the Unicode standard, from the first letter on.
  const accents = "\u0301\u0300\u0306\u0302\u030c\u030a\u0308\u030b\u0303\u0307\u0338\u0327\u0328\u0304";
  const accentOf = (mark) => {
    const at = accents.indexOf(mark);
    return at < 0 ? accents.length + mark.charCodeAt(0) : at + 1;
  };
  const compareAccents = (a, b) => {
    const [x, y] = [normalize(a, "NFD"), normalize(b, "NFD")];
    let [at, other] = [0, 0];
    while (at < x.length || other < y.length) {
      const isMark = (text, index) => index < text.length && /\p{M}/u.test(text[index]);
      const [left, right] = [isMark(x, at), isMark(y, other)];
      if (left || right) {
        const order = (left ? accentOf(x[at]) : 0) - (right ? accentOf(y[other]) : 0);
        if (order !== 0) return order;
      }
      at++;
      other++;
    }
    // Letters such as ß differ from what they are sorted as.
    return compareUnits(x, y);
  };
  const sign = (value) => (value < 0 ? -1 : value > 0 ? 1 : 0);

  const compareNumeric = (a, b) => {
    const pieces = (text) => text.match(/\d+|\D+/g) ?? [];
    const [left, right] = [pieces(a), pieces(b)];
    for (let at = 0; at < left.length && at < right.length; at++) {
      const [x, y] = [left[at], right[at]];
      if (/^\d/.test(x) && /^\d/.test(y)) {
        const [short, long] = [x.replace(/^0+/, ""), y.replace(/^0+/, "")];
        const order = short.length - long.length || (short < long ? -1 : short > long ? 1 : 0);
        if (order !== 0) return order;
      } else {
        const order = compareUnits(x, y);
        if (order !== 0) return order;
      }
    }
    return left.length - right.length;
  };

  const compare = (a, b, options) => {
    if (a === b) return 0;
    const [first, second] = [base(a, options.isSpanish), base(b, options.isSpanish)];
    const letters = options.numeric ? compareNumeric(first, second) : compareUnits(first, second);
    if (letters !== 0 || options.sensitivity === "base") return sign(letters);
    if (options.sensitivity !== "case") {
      const order = compareAccents(toLowerCase(a), toLowerCase(b));
      if (order !== 0 || options.sensitivity === "accent") return sign(order);
    }
    // Small letters come first unless asked otherwise.
    const [x, y] = [normalize(a, "NFC"), normalize(b, "NFC")];
    const cased = x === y ? 0 : x > y ? -1 : 1;
    return options.caseFirst === "upper" ? sign(-cased) : sign(cased);
  };

  class Collator {
    #options;

    constructor(requested, options = {}) {
      const tag = String((shared.isArray(requested) ? requested[0] : requested) ?? "");
      this.#options = {
        locale: locales.choose(requested, "words"),
        usage: options?.usage ?? "sort",
        sensitivity: options?.sensitivity ?? "variant",
        ignorePunctuation: Boolean(options?.ignorePunctuation),
        numeric: Boolean(options?.numeric ?? /-u-.*kn(-true)?\b/.test(tag)),
        caseFirst: options?.caseFirst ?? "false",
      };
      const settings = { ...this.#options, isSpanish: this.#options.locale === "es-ES" };
      const clean = (text) => (settings.ignorePunctuation ? String(text).replace(/[\p{P}\s]/gu, "") : String(text));
      // As in the standard, `compare` can be handed around on its own.
      shared.hidden(this, "compare", (a, b) => compare(clean(a), clean(b), settings));
    }

    static supportedLocalesOf(requested) {
      return locales.supported(requested, "words");
    }

    resolvedOptions() {
      return { ...this.#options };
    }
  }

  const words = {
    __proto__: null,
    en: ["and", "or", true],
    de: ["und", "oder", false],
    fr: ["et", "ou", false],
    es: ["y", "o", false],
    it: ["e", "o", false],
    pt: ["e", "ou", false],
    nl: ["en", "of", false],
  };
  class ListFormat {
    #locale;
    #options;

    constructor(requested, options = {}) {
      this.#locale = locales.choose(requested, "words");
      this.#options = { type: options?.type ?? "conjunction", style: options?.style ?? "long" };
    }

    resolvedOptions() {
      return { locale: this.#locale, ...this.#options };
    }

    format(list) {
      const items = [...list].map(String);
      const { type, style } = this.#options;
      if (items.length < 2) return items.join("");
      if (type === "unit") {
        locales.american(this.#locale === "en-GB" ? "en-US" : this.#locale, "lists of units");
        return items.join(style === "narrow" ? " " : ", ");
      }
      const isBare = style === "narrow" && type === "conjunction" && !/^(de|es|it)/.test(this.#locale);
      if (isBare) return items.join(", ");
      const [and, or, serial] = words[this.#locale.split("-")[0]];
      const last = items.pop();
      let word = type === "disjunction" ? or : /^(en-US|nl-NL)$/.test(this.#locale) && style !== "long" ? "&" : and;
      // In Spanish the word changes before its own sound.
      if (word === "y" && /^(i|hi(?!e))/i.test(last)) word = "e";
      else if (this.#locale === "es-ES" && word === "o" && /^(h?o|8)/i.test(last)) word = "u";
      const comma = serial && this.#locale !== "en-GB" && items.length > 1 ? "," : "";
      return `${items.join(", ")}${comma} ${word} ${last}`;
    }
  }

  const plain = { sensitivity: "variant", numeric: false };
  const cached = new Map();
  const methods = {
    localeCompare(that, requested, options) {
      if (options === undefined && (requested === undefined || typeof requested === "string")) {
        if (requested === undefined) return compare(`${this}`, `${that}`, plain);
        if (!cached.has(requested)) cached.set(requested, new Collator(requested));
        return cached.get(requested).compare(this, that);
      }
      return new Collator(requested, options).compare(this, that);
    },
  };
  return { Collator: shared.callable(Collator), ListFormat, methods };
})
