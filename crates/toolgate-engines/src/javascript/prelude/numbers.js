// Intl.NumberFormat, Intl.PluralRules and toLocaleString of numbers.
(function (host, shared) {
  "use strict";
  const { RangeError, TypeError, Number, BigInt, String, Math } = globalThis;
  const locales = shared.locales();
  const { UnsupportedError } = shared;

  // The shortest signs of currencies, where the locales agree on them.
  const narrow = { __proto__: null, ARS: "$", AUD: "$", BDT: "৳", BRL: "R$", CAD: "$", CLP: "$", CNY: "¥", COP: "$", CRC: "₡", CZK: "Kč", DKK: "kr", EUR: "€", GBP: "£", GEL: "₾", HKD: "$", HUF: "Ft", IDR: "Rp", ILS: "₪", INR: "₹", ISK: "kr", JPY: "¥", KRW: "₩", KZT: "₸", MXN: "$", MYR: "RM", NGN: "₦", NZD: "$", PHP: "₱", PKR: "Rs", PLN: "zł", PYG: "₲", RUB: "₽", SEK: "kr", SGD: "$", THB: "฿", TRY: "₺", UAH: "₴", USD: "$", UYU: "$", VND: "₫", XCD: "$", ZAR: "R" };
  const currencyNames = { __proto__: null, USD: ["US dollar", "US dollars"], EUR: ["euro", "euros"], GBP: ["British pound", "British pounds"], JPY: ["Japanese yen", "Japanese yen"], CAD: ["Canadian dollar", "Canadian dollars"], AUD: ["Australian dollar", "Australian dollars"], CHF: ["Swiss franc", "Swiss francs"], INR: ["Indian rupee", "Indian rupees"], CNY: ["Chinese yuan", "Chinese yuan"] };
  const currencyDigits = { __proto__: null };
  for (const code of "AFN ALL BIF CLP COP DJF GNF HUF IDR IQD IRR ISK JPY KMF KPW KRW LAK LBP MGA MMK PKR PYG RWF SLL SOS SYP UGX VND VUV XAF XOF XPF YER".split(" ")) currencyDigits[code] = 0;
  for (const code of "BHD JOD KWD LYD OMR TND".split(" ")) currencyDigits[code] = 3;
  const units = { __proto__: null, byte: "byte", kilobyte: "kB", megabyte: "MB", gigabyte: "GB", terabyte: "TB", petabyte: "PB", bit: "bit", kilobit: "kb", megabit: "Mb", gigabit: "Gb", meter: "m", kilometer: "km", centimeter: "cm", millimeter: "mm", mile: "mi", foot: "ft", inch: "in", gram: "g", kilogram: "kg", pound: "lb", ounce: "oz", liter: "L", milliliter: "mL", second: "sec", minute: "min", hour: "hr", day: "day", week: "wk", month: "mth", year: "yr", millisecond: "ms", microsecond: "μs", celsius: "°C", fahrenheit: "°F", percent: "%", degree: "deg" };
  const tight = /^(%|°C|°F)$/;
  const plural = /^(day|wk|mth|yr)$/;
  const compactSteps = [
    { from: 12, short: "T", long: " trillion" },
    { from: 9, short: "B", long: " billion" },
    { from: 6, short: "M", long: " million" },
    { from: 3, short: "K", long: " thousand" },
  ];

  const oneOf = (options, name, allowed, fallback) => {
    const value = options[name];
    if (value === undefined) return fallback;
    const text = String(value);
    if (!allowed.includes(text)) throw new RangeError(`Value ${text} out of range for Intl.NumberFormat options property ${name}`);
    return text;
  };
  const digits = (options, name, least, most) => {
    const value = options[name];
    if (value === undefined) return undefined;
    const number = Number(value);
    if (!(number >= least && number <= most)) throw new RangeError(`${name} value is out of range.`);
    return Math.floor(number);
  };

  /** Exact decimal digits of a finite number, without an exponent, rounded half away from zero. */
  const decimals = (value, fraction) => {
    if (typeof value === "bigint") return String(value);
    const size = Math.abs(value);
    let text = String(size);
    if (!text.includes("e") && (text.split(".")[1] ?? "").length <= fraction) return text;
    // toFixed rounds what the double is; formats round what it is written as, as in 1.005.
    const [mantissa, exponent = "0"] = text.split("e");
    const [whole, part = ""] = mantissa.split(".");
    const shift = Number(exponent) + fraction;
    const all = whole + part;
    const cut = whole.length + shift;
    if (cut < 0) return "0";
    if (cut >= all.length) text = all + "0".repeat(cut - all.length);
    else {
      const kept = BigInt(all.slice(0, cut) || "0");
      text = String(all[cut] >= "5" ? kept + 1n : kept);
    }
    text = text.padStart(fraction + 1, "0");
    return fraction === 0 ? text : `${text.slice(0, -fraction)}.${text.slice(-fraction)}`;
  };

  const significant = (value, least, most) => {
    const size = Number(value);
    const exponent = size === 0 ? 0 : Number(size.toExponential().split("e")[1]);
    const fraction = most - 1 - exponent;
    let text = fraction >= 0 ? decimals(size, fraction) : decimals(Number(size.toPrecision(most)), 0);
    if (text.includes(".")) text = text.replace(/\.?0+$/, "");
    const count = text.replace(".", "").replace(/^0+/, "").length || 1;
    if (count < least) text += (text.includes(".") ? "" : ".") + "0".repeat(least - count);
    return text;
  };

  /** A hundred times a number, by its digits: 0.07 * 100 is not 7. */
  const percent = (value) => (Number.isFinite(value) && !/e/.test(value) ? Number(`${value}e2`) : value * 100);

  /** A number times a power of ten, by its digits. */
  const scale = (value, power) => {
    const [mantissa, exponent = "0"] = String(value).split("e");
    return Number(`${mantissa}e${Number(exponent) + power}`);
  };
  const wholeDigits = (parts) => parts.filter((part) => part.type === "integer").map((part) => part.value).join("").replace(/^0+/, "").length;

  class NumberFormat {
    #locale;
    #options;
    #local;

    constructor(requested, options = {}) {
      if (options === null) throw new TypeError("options is null");
      this.#locale = locales.choose(requested, "numbers");
      this.#local = locales.numbers(this.#locale);
      if ((options.numberingSystem ?? "latn") !== "latn") throw new UnsupportedError("there are only the digits 0 to 9 here: numberingSystem is latn");
      const style = oneOf(options, "style", ["decimal", "percent", "currency", "unit"], "decimal");
      const notation = oneOf(options, "notation", ["standard", "scientific", "engineering", "compact"], "standard");
      if (notation !== "standard") locales.american(this.#locale, "shortened and scientific numbers");
      if (style === "unit") locales.american(this.#locale, "units");
      let currency;
      if (style === "currency") {
        if (options.currency === undefined) throw new TypeError("Currency code is required with currency style.");
        currency = String(options.currency).toUpperCase();
        if (!/^[A-Z]{3}$/.test(currency)) throw new RangeError(`Invalid currency code : ${options.currency}`);
      }
      if (style === "unit" && options.unit === undefined) throw new TypeError("Unit is required with unit style.");
      const ofCurrency = currencyDigits[currency] ?? 2;
      const usual = style === "currency" && notation !== "compact" ? [ofCurrency, ofCurrency] : [0, style === "percent" || notation === "compact" ? 0 : 3];
      const least = digits(options, "minimumFractionDigits", 0, 100);
      const most = digits(options, "maximumFractionDigits", 0, 100);
      if (least !== undefined && most !== undefined && least > most) throw new RangeError("maximumFractionDigits value is out of range.");
      const leastSignificant = digits(options, "minimumSignificantDigits", 1, 21);
      const mostSignificant = digits(options, "maximumSignificantDigits", 1, 21);
      const bySignificance = leastSignificant !== undefined || mostSignificant !== undefined;
      this.#options = {
        locale: this.#locale,
        numberingSystem: "latn",
        style,
        ...(style === "currency" && { currency, currencyDisplay: options.currencyDisplay ?? "symbol", currencySign: options.currencySign ?? "standard" }),
        ...(style === "unit" && { unit: String(options.unit), unitDisplay: options.unitDisplay ?? "short" }),
        minimumIntegerDigits: digits(options, "minimumIntegerDigits", 1, 21) ?? 1,
        ...(bySignificance
          ? { minimumSignificantDigits: leastSignificant ?? 1, maximumSignificantDigits: mostSignificant ?? 21 }
          : {
              minimumFractionDigits: least ?? Math.min(usual[0], most ?? usual[0]),
              maximumFractionDigits: most ?? Math.max(usual[1], least ?? usual[1]),
            }),
        useGrouping: options.useGrouping ?? true,
        notation,
        ...(notation === "compact" && {
          compactDisplay: options.compactDisplay ?? "short",
          // Two digits where nobody asked for a number of them: 1.2K, 12K.
          roundCompact: least === undefined && most === undefined && !bySignificance,
        }),
        signDisplay: oneOf(options, "signDisplay", ["auto", "never", "always", "exceptZero", "negative"], "auto"),
      };
      // As in the standard, `format` can be handed around on its own.
      shared.hidden(this, "format", (value) => this.formatToParts(value).map((part) => part.value).join(""));
    }

    static supportedLocalesOf(requested) {
      return locales.supported(requested, "numbers");
    }

    resolvedOptions() {
      const { roundCompact: _, ...shown } = this.#options;
      return shown;
    }

    formatRange(from, to) {
      return `${this.format(from)}–${this.format(to)}`;
    }

    formatToParts(input) {
      let value = typeof input === "bigint" ? input : Number(input);
      const options = this.#options;
      if (options.style === "percent") value = typeof value === "bigint" ? value * 100n : percent(value);
      const negative = value < 0 || Object.is(value, -0);
      const body = this.#digits(value);
      const isZero = body.every((part) => !/integer|fraction|infinity/.test(part.type) || /^[0.,\s]*$/.test(part.value));
      const parts = this.#dress(body, value);
      const sign = this.#sign(negative, isZero);
      if (sign === "()") return [{ type: "literal", value: "(" }, ...parts, { type: "literal", value: ")" }];
      if (sign === "") return parts;
      const at = this.#local.signInside && options.style === "currency" ? parts.findIndex((part) => part.type === "integer") : 0;
      if (at > 0) return [...parts.slice(0, at), { type: "minusSign", value: sign }, ...parts.slice(at)];
      return [{ type: sign === "-" ? "minusSign" : "plusSign", value: sign }, ...parts];
    }

    #sign(negative, isZero) {
      const { signDisplay, currencySign } = this.#options;
      const minus = currencySign === "accounting" && this.#local.brackets ? "()" : "-";
      if (signDisplay === "never") return "";
      if (signDisplay === "always") return negative ? minus : "+";
      if (signDisplay === "exceptZero") return isZero ? "" : negative ? minus : "+";
      if (signDisplay === "negative") return negative && !isZero ? minus : "";
      return negative ? minus : "";
    }

    #digits(value) {
      if (typeof value === "number" && !Number.isFinite(value)) {
        return [{ type: Number.isNaN(value) ? "nan" : "infinity", value: Number.isNaN(value) ? "NaN" : "∞" }];
      }
      const { notation } = this.#options;
      const size = typeof value === "bigint" ? (value < 0n ? -value : value) : Math.abs(value);
      if (notation === "compact") return this.#compact(size);
      if (notation === "scientific" || notation === "engineering") {
        const step = notation === "engineering" ? 3 : 1;
        const scaled = (exponent) => this.#plain(size == 0 ? 0 : scale(Number(size), -exponent));
        const found = size == 0 ? 0 : Number(Number(size).toExponential().split("e")[1]);
        let exponent = Math.floor(found / step) * step;
        let parts = scaled(exponent);
        // 9.9999 is written as 10, which is one more in the exponent.
        if (wholeDigits(parts) > step && size != 0) {
          exponent += step;
          parts = scaled(exponent);
        }
        return [...parts, { type: "exponentSeparator", value: "E" }, ...(exponent < 0 ? [{ type: "exponentMinusSign", value: "-" }] : []), { type: "exponentInteger", value: String(Math.abs(exponent)) }];
      }
      return this.#plain(size);
    }

    #compact(size) {
      const { compactDisplay, roundCompact } = this.#options;
      const value = Number(size);
      let step = compactSteps.find(({ from }) => value >= 10 ** from);
      const written = (chosen) => {
        const scaled = chosen === undefined ? value : scale(value, -chosen.from);
        if (!roundCompact) return this.#plain(scaled);
        return this.#split(String(scaled < 100 ? Number(significant(scaled, 1, 2)) : Math.round(scaled)));
      };
      let parts = written(step);
      // 999,999 is a million, not a thousand thousands.
      if (wholeDigits(parts) > 3 && step !== compactSteps[0]) {
        const at = compactSteps.indexOf(step);
        step = at < 0 ? compactSteps[compactSteps.length - 1] : compactSteps[at - 1];
        parts = written(step);
      }
      if (step !== undefined) parts.push({ type: "compact", value: compactDisplay === "long" ? step.long : step.short });
      return parts;
    }

    #plain(size) {
      const options = this.#options;
      if (options.maximumSignificantDigits !== undefined) {
        return this.#split(significant(size, options.minimumSignificantDigits, options.maximumSignificantDigits));
      }
      const text = decimals(size, options.maximumFractionDigits);
      let [whole, fraction = ""] = text.split(".");
      while (fraction.length > options.minimumFractionDigits && fraction.endsWith("0")) fraction = fraction.slice(0, -1);
      fraction = fraction.padEnd(options.minimumFractionDigits, "0");
      return this.#split(fraction === "" ? whole : `${whole}.${fraction}`);
    }

    #split(text) {
      const { minimumIntegerDigits, useGrouping } = this.#options;
      const { decimal, group, indian, leastGrouped = 4 } = this.#local;
      let [whole, fraction] = text.split(".");
      whole = whole.padStart(minimumIntegerDigits, "0");
      const grouped = useGrouping !== false && useGrouping !== "false" && whole.length >= (useGrouping === "always" ? 4 : leastGrouped);
      const parts = [];
      if (grouped) {
        const pieces = [];
        let end = whole.length;
        while (end > 0) {
          const size = indian && pieces.length > 0 ? 2 : 3;
          pieces.push(whole.slice(Math.max(0, end - size), end));
          end -= size;
        }
        pieces.reverse();
        pieces.forEach((piece, index) => {
          if (index > 0) parts.push({ type: "group", value: group });
          parts.push({ type: "integer", value: piece });
        });
      } else parts.push({ type: "integer", value: whole });
      if (fraction !== undefined && fraction !== "") {
        parts.push({ type: "decimal", value: decimal }, { type: "fraction", value: fraction });
      }
      return parts;
    }

    #dress(body, value) {
      const { style } = this.#options;
      if (style === "percent") return [...body, ...(this.#local.percent ? [{ type: "literal", value: this.#local.percent }] : []), { type: "percentSign", value: "%" }];
      if (style === "unit") return [...body, ...this.#unit(value)];
      if (style === "currency") return this.#currency(body, value);
      return body;
    }

    #currency(body, value) {
      const { currency, currencyDisplay } = this.#options;
      if (currencyDisplay === "name") {
        locales.american(this.#locale, "the names of currencies");
        const one = Math.abs(Number(value)) === 1 && !body.some((part) => part.type === "fraction");
        const name = currencyNames[currency]?.[one ? 0 : 1] ?? currency;
        return [...body, { type: "literal", value: " " }, { type: "currency", value: name }];
      }
      const own = this.#local.signs.split(" ").findLast((sign) => sign.startsWith(`${currency}:`))?.slice(4);
      const shown = currencyDisplay === "code" ? currency : currencyDisplay === "narrowSymbol" ? (narrow[currency] ?? own ?? currency) : (own ?? currency);
      const sign = { type: "currency", value: shown };
      if (this.#local.currency === "after") return [...body, { type: "literal", value: "\u00a0" }, sign];
      const apart = this.#local.currency === "apart" || /[A-Za-z]$/.test(shown);
      return [sign, ...(apart ? [{ type: "literal", value: "\u00a0" }] : []), ...body];
    }

    #unit(value) {
      const { unit, unitDisplay } = this.#options;
      const one = Math.abs(Number(value)) === 1;
      const [over, under] = unit.split("-per-");
      if (!(over in units) || (under !== undefined && !(under in units))) throw new RangeError(`Invalid unit argument for Intl.NumberFormat() '${unit}'`);
      if (unitDisplay === "long") {
        const many = over === "foot" ? "feet" : over === "inch" ? "inches" : over === "celsius" || over === "fahrenheit" ? `degrees ${over === "celsius" ? "Celsius" : "Fahrenheit"}` : over === "percent" ? over : `${over}s`;
        return [{ type: "literal", value: " " }, { type: "unit", value: `${one ? over : many}${under === undefined ? "" : ` per ${under}`}` }];
      }
      let short = units[over];
      if (!one && plural.test(short)) short += "s";
      if (under !== undefined) short = under === "hour" ? (over === "mile" ? "mph" : `${short}/h`) : `${short}/${under === "second" ? "s" : units[under]}`;
      const gap = unitDisplay === "narrow" || tight.test(short) ? "" : " ";
      return [...(gap === "" ? [] : [{ type: "literal", value: gap }]), { type: "unit", value: short }];
    }
  }

  class PluralRules {
    #locale;
    #type;

    constructor(requested, options = {}) {
      this.#locale = locales.choose(requested, "words");
      this.#type = options?.type ?? "cardinal";
    }

    static supportedLocalesOf(requested) {
      return locales.supported(requested, "words");
    }

    resolvedOptions() {
      return { locale: this.#locale, type: this.#type };
    }

    select(input) {
      const value = Math.abs(Number(input));
      const language = this.#locale.split("-")[0];
      const [ten, hundred] = [value % 10, value % 100];
      if (this.#type === "ordinal") {
        if (language === "fr") return value === 1 ? "one" : "other";
        if (language === "it") return [8, 11, 80, 800].includes(value) ? "many" : "other";
        if (language !== "en") return "other";
        if (ten === 1 && hundred !== 11) return "one";
        if (ten === 2 && hundred !== 12) return "two";
        return ten === 3 && hundred !== 13 ? "few" : "other";
      }
      const isOne = language === "fr" || language === "pt" ? value < 2 : value === 1;
      if (isOne) return "one";
      const hasMillions = ["fr", "es", "it", "pt"].includes(language);
      return hasMillions && value !== 0 && value % 1000000 === 0 ? "many" : "other";
    }
  }

  const cached = new Map();
  const methods = {
    toLocaleString(requested, options) {
      if (options !== undefined || (requested !== undefined && typeof requested !== "string")) {
        return new NumberFormat(requested, options).format(this);
      }
      if (!cached.has(requested)) cached.set(requested, new NumberFormat(requested));
      return cached.get(requested).format(this);
    },
  };
  return { NumberFormat: shared.callable(NumberFormat), PluralRules, methods };
})
