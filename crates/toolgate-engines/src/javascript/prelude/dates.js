// Intl.DateTimeFormat, Intl.RelativeTimeFormat and the toLocale… methods of dates.
(function (host, shared) {
  "use strict";
  const { Date, RangeError, TypeError, Number, String, Math } = globalThis;
  const locales = shared.locales();
  const zones = shared.zones();
  const { UnsupportedError } = shared;

  const OFFSET_OF_UTC = { __proto__: null, shortOffset: "GMT+0", longOffset: "GMT+00:00" };
  const two = (value) => String(value).padStart(2, "0");
  const dateFields = ["weekday", "year", "month", "day"];
  const timeFields = ["hour", "minute", "second", "fractionalSecondDigits"];
  const dateStyles = {
    __proto__: null,
    full: { weekday: "long", year: "numeric", month: "long", day: "numeric" },
    long: { year: "numeric", month: "long", day: "numeric" },
    medium: { year: "numeric", month: "short", day: "numeric" },
    short: { year: "2-digit", month: "numeric", day: "numeric" },
  };
  const timeStyles = {
    __proto__: null,
    full: { hour: "numeric", minute: "2-digit", second: "2-digit", timeZoneName: "long" },
    long: { hour: "numeric", minute: "2-digit", second: "2-digit", timeZoneName: "short" },
    medium: { hour: "numeric", minute: "2-digit", second: "2-digit" },
    short: { hour: "numeric", minute: "2-digit" },
  };
  /** Fields from the options, or those that a method means where there are none. */
  const fieldsOf = (locale, options, wanted, usual) => {
    const fields = {};
    if (options.dateStyle !== undefined || options.timeStyle !== undefined) {
      for (const name of [...dateFields, ...timeFields]) {
        if (options[name] !== undefined) throw new TypeError(`Can't set option ${name} when dateStyle or timeStyle is used`);
      }
      const style = (styles, name) => {
        if (options[name] === undefined) return {};
        const found = styles[String(options[name])];
        if (found === undefined) throw new RangeError(`Value ${options[name]} out of range for Intl.DateTimeFormat options property ${name}`);
        return found;
      };
      const date = { ...style(dateStyles, "dateStyle") };
      if (options.dateStyle === "short") {
        date.pattern = locales.dates(locale).short;
        if (!/yy/.test(date.pattern)) date.year = "numeric";
      }
      if (options.dateStyle === "medium" && locales.dates(locale).medium !== undefined) {
        date.pattern = locales.dates(locale).medium;
        date.month = "numeric";
      }
      return { ...date, ...style(timeStyles, "timeStyle") };
    }
    for (const name of [...dateFields, ...timeFields, "timeZoneName"]) {
      if (options[name] !== undefined) fields[name] = String(options[name]);
    }
    const asked = (names) => names.some((name) => fields[name] !== undefined);
    const missing = wanted === "date" ? !asked(dateFields) : wanted === "time" ? !asked(timeFields) : !asked(dateFields) && !asked(timeFields);
    if (missing) {
      if (usual !== "time") Object.assign(fields, { year: "numeric", month: "numeric", day: "numeric" });
      if (usual !== "date") Object.assign(fields, { hour: "numeric", minute: "2-digit", second: "2-digit" });
    }
    return fields;
  };

  class DateTimeFormat {
    #locale;
    #fields;
    #zone;
    #halfDay;
    #styled;
    #local;

    constructor(requested, options = {}, wanted = "any", usual = "date") {
      if (options === null) throw new TypeError("options is null");
      this.#locale = locales.choose(requested, "dates");
      this.#local = locales.dates(this.#locale);
      for (const name of ["era", "dayPeriod", "calendar", "numberingSystem"]) {
        const plain = { calendar: "gregory", numberingSystem: "latn" };
        if (options[name] !== undefined && options[name] !== plain[name]) throw new UnsupportedError(`the option ${name} of dates is not available here`);
      }
      this.#zone = zones.find(options.timeZone);
      this.#fields = fieldsOf(this.#locale, options, wanted, usual);
      this.#styled = options.dateStyle;
      const { month, weekday, timeZoneName } = this.#fields;
      const isWritten = weekday !== undefined || (month !== undefined && !/^(numeric|2-digit)$/.test(month)) || options.dateStyle !== undefined;
      if (this.#local.numeric && isWritten) {
        throw new UnsupportedError(`written dates of ${this.#locale} are not available here: only numeric ones are`);
      }
      const isNamed = timeZoneName !== undefined && (!/Offset$/.test(timeZoneName) || this.#locale === "fr-FR");
      if (isNamed) locales.american(this.#locale, "the names of time zones");
      this.#halfDay =
        options.hour12 !== undefined
          ? Boolean(options.hour12)
          : options.hourCycle !== undefined
            ? String(options.hourCycle) === "h12" || String(options.hourCycle) === "h11"
            : this.#local.halfDay === true;
      // As in the standard, `format` can be handed around on its own.
      shared.hidden(this, "format", (date) => this.formatToParts(date).map((part) => part.value).join(""));
    }

    static supportedLocalesOf(requested) {
      return locales.supported(requested, "dates");
    }

    resolvedOptions() {
      const { pattern: _, ...fields } = this.#fields;
      return {
        locale: this.#locale,
        calendar: "gregory",
        numberingSystem: "latn",
        timeZone: this.#zone.name,
        ...(this.#fields.hour !== undefined && { hourCycle: this.#halfDay ? "h12" : "h23", hour12: this.#halfDay }),
        ...fields,
      };
    }

    formatRange(from, to) {
      const [first, last] = [this.format(from), this.format(to)];
      return first === last ? first : `${first} – ${last}`;
    }

    formatToParts(input) {
      const time = input === undefined ? Date.now() : Number(input);
      if (!(Math.abs(time) <= 8.64e15)) throw new RangeError("Invalid time value");
      const moment = new Date(time + this.#zone.offset(time) * 60000);
      const date = this.#date(moment);
      const clock = this.#clock(moment, time);
      if (date.length === 0 || clock.length === 0) return [...date, ...clock];
      return [...date, { type: "literal", value: this.#between() }, ...clock];
    }

    #between() {
      const { weekday, year, month, day } = this.#fields;
      if (this.#styled === "full" || this.#styled === "long") return this.#local.at;
      if (this.#styled === undefined && month === "long") return this.#local.at;
      const isWeekday = weekday !== undefined && year === undefined && month === undefined && day === undefined;
      const isTight = isWeekday && (this.#fields.minute !== undefined || this.#locale === "en-US");
      return (isTight ? this.#local.weekdayTime : undefined) ?? this.#local.between ?? ", ";
    }

    #date(moment) {
      const { weekday, year, month, day } = this.#fields;
      const isText = month === "long" || month === "short" || month === "narrow";
      const names = locales.names(this.#local.numeric ? "en-US" : this.#locale);
      const yearText = year === "2-digit" ? two(moment.getUTCFullYear() % 100) : String(moment.getUTCFullYear());
      const dayText = day === "2-digit" ? two(moment.getUTCDate()) : String(moment.getUTCDate());
      const weekdays = weekday === "long" ? names.days : names.shortDays;
      const alone = year === undefined && month === undefined && day === undefined;
      // Beside a date, German abbreviates with a point. In Spanish, Wednesday is an X.
      const isLone = alone && this.#fields.hour === undefined;
      const point = names.language === "de" && weekday === "short" && !isLone ? "." : "";
      const letter = names.language === "es" && moment.getUTCDay() === 3 ? "X" : names.days[moment.getUTCDay()][0].toUpperCase();
      const weekdayText = weekday === undefined ? "" : weekday === "narrow" ? letter : weekdays[moment.getUTCDay()] + point;
      const part = {
        weekday: { type: "weekday", value: weekdayText },
        year: { type: "year", value: yearText },
        day: { type: "day", value: dayText },
      };
      if (isText) {
        const index = moment.getUTCMonth();
        const monthText = month === "long" ? names.months[index] : month === "short" ? (day === undefined && year === undefined ? names.bareMonths : names.shortMonths)[index] : names.months[index][0].toUpperCase();
        part.month = { type: "month", value: monthText };
        return this.#written(names.language, part);
      }
      const parts = this.#numeric(moment, part);
      if (weekday === undefined) return parts;
      if (parts.length === 0) return [part.weekday];
      if (year === undefined && month === undefined && this.#local.weekdayDay !== undefined) {
        return [...this.#local.weekdayDay].reduce((made, letter) => {
          if (letter === "w" || letter === "d") made.push(letter === "w" ? part.weekday : part.day);
          else if (made.at(-1)?.type === "literal") made.at(-1).value += letter;
          else made.push({ type: "literal", value: letter });
          return made;
        }, []);
      }
      return [part.weekday, { type: "literal", value: this.#local.weekdayDate ?? ", " }, ...parts];
    }

    /** A date with the month as a word, in the order of the language. */
    #written(language, part) {
      const { weekday, year, day } = this.#fields;
      const american = this.#locale === "en-US";
      const parts = [];
      const add = (separator, next) => {
        if (parts.length > 0) parts.push({ type: "literal", value: separator });
        parts.push(next);
      };
      if (weekday !== undefined) parts.push(part.weekday);
      if (american) {
        add(", ", part.month);
        if (day !== undefined) add(" ", part.day);
        if (year !== undefined) add(day === undefined ? " " : ", ", part.year);
        return parts;
      }
      const de = (language === "es" && this.#fields.month === "long") || language === "pt" ? " de " : " ";
      const of = language === "de" ? ". " : de;
      const isTight = /^(fr|it|nl)$/.test(language) || (language === "en" && year === undefined);
      const after = isTight ? " " : ", ";
      if (day !== undefined) {
        add(after, part.day);
        parts.push({ type: "literal", value: of });
        parts.push(part.month);
      } else add(after, part.month);
      if (year !== undefined) add(de, part.year);
      return parts;
    }

    #numeric(moment, part) {
      const { year, month, day } = this.#fields;
      const isDayMonth = year === undefined && month !== undefined && day !== undefined;
      const isMonthYear = day === undefined && month !== undefined && year !== undefined;
      const own = isDayMonth ? this.#local.dayMonth : isMonthYear ? this.#local.monthYear : undefined;
      const pattern = this.#fields.pattern ?? own ?? this.#local.pattern;
      // In Spanish a day and a month have no zeros.
      const isBare = isDayMonth && this.#locale === "es-ES";
      const separator = /[^ymd]+/.exec(pattern)[0];
      const suffix = /[^ymd]*$/.exec(pattern)[0];
      const isTwo = (field, letters) => !isBare && (field === "2-digit" || pattern.includes(letters));
      const parts = [];
      for (const letter of pattern.replace(/[^ymd]/g, "").replace(/(.)\1/g, "$1")) {
        if (letter === "y" && year === undefined) continue;
        if (letter === "m" && month === undefined) continue;
        if (letter === "d" && day === undefined) continue;
        if (parts.length > 0) parts.push({ type: "literal", value: separator });
        if (letter === "y") parts.push(pattern.includes("yy") ? { type: "year", value: two(moment.getUTCFullYear() % 100) } : part.year);
        else if (letter === "m") {
          const value = moment.getUTCMonth() + 1;
          parts.push({ type: "month", value: isTwo(month, "mm") ? two(value) : String(value) });
        } else {
          const value = moment.getUTCDate();
          parts.push({ type: "day", value: isTwo(day, "dd") && (month !== undefined || day === "2-digit") ? two(value) : String(value) });
        }
      }
      if (suffix !== "" && parts.length > 1) parts.push({ type: "literal", value: suffix });
      return parts;
    }

    #clock(moment, time) {
      const { hour, minute, second, fractionalSecondDigits, timeZoneName } = this.#fields;
      const parts = [];
      const add = (type, value) => {
        const decimal = /^en/.test(this.#locale) ? "." : ",";
        if (parts.length > 0) parts.push({ type: "literal", value: type === "fractionalSecond" ? decimal : ":" });
        parts.push({ type, value });
      };
      if (hour !== undefined) {
        const value = moment.getUTCHours();
        const shown = this.#halfDay ? value % 12 || 12 : value;
        const isTwo = hour === "2-digit" || (!this.#halfDay && !this.#local.shortHours);
        add("hour", isTwo ? two(shown) : String(shown));
      }
      const isTwo = hour !== undefined || second !== undefined;
      if (minute !== undefined) add("minute", isTwo ? two(moment.getUTCMinutes()) : String(moment.getUTCMinutes()));
      if (second !== undefined) add("second", minute !== undefined || second === "2-digit" ? two(moment.getUTCSeconds()) : String(moment.getUTCSeconds()));
      if (fractionalSecondDigits !== undefined) {
        add("fractionalSecond", String(moment.getUTCMilliseconds()).padStart(3, "0").slice(0, Number(fractionalSecondDigits)));
      }
      if (hour !== undefined && this.#halfDay) {
        const half = moment.getUTCHours() < 12 ? "AM" : "PM";
        const local = this.#local.halves?.[half === "AM" ? 0 : 1] ?? half;
        parts.push({ type: "literal", value: " " }, { type: "dayPeriod", value: local });
      }
      if (hour !== undefined && minute === undefined && !this.#halfDay && this.#local.hour !== undefined) {
        parts.push({ type: "literal", value: this.#local.hour });
      }
      if (timeZoneName !== undefined) {
        const isOffset = timeZoneName.endsWith("Offset");
        const offset = this.#zone.offset(time);
        const shown = zones.offsetName(offset, "GMT", timeZoneName === "longOffset");
        const name = isOffset ? (offset === 0 ? OFFSET_OF_UTC[timeZoneName] : shown) : this.#zone.short(time);
        if (parts.length > 0) parts.push({ type: "literal", value: " " });
        parts.push({ type: "timeZoneName", value: name });
      }
      return parts;
    }
  }

  const units = ["second", "minute", "hour", "day", "week", "month", "quarter", "year"];
  const shortUnits = { __proto__: null, second: "sec.", minute: "min.", hour: "hr.", day: "day", week: "wk.", month: "mo.", quarter: "qtr.", year: "yr." };
  const relative = {
    __proto__: null,
    day: { "-1": "yesterday", 0: "today", 1: "tomorrow" },
    second: { 0: "now" },
  };
  class RelativeTimeFormat {
    #locale;
    #options;

    constructor(requested, options = {}) {
      this.#locale = locales.choose(requested, "words");
      locales.american(this.#locale === "en-GB" ? "en-US" : this.#locale, "relative times");
      this.#options = { numeric: options?.numeric ?? "always", style: options?.style ?? "long" };
    }

    resolvedOptions() {
      return { locale: this.#locale, ...this.#options };
    }

    format(input, unit) {
      const name = String(unit).replace(/s$/, "");
      if (!units.includes(name)) throw new RangeError(`Invalid unit argument for format() '${unit}'`);
      const value = Number(input);
      if (!Number.isFinite(value)) throw new RangeError("Invalid time value");
      if (this.#options.numeric === "auto" && [-1, 0, 1].includes(value)) {
        const word = relative[name]?.[value] ?? (name === "second" || name === "minute" || name === "hour" ? (value === 0 ? `this ${name}` : undefined) : `${["last", "this", "next"][value + 1]} ${name}`);
        if (word !== undefined) return word;
      }
      const size = Math.abs(value);
      const isShort = this.#options.style !== "long";
      const plural = size !== 1 && (!isShort || name === "day");
      const counted = `${size.toLocaleString(this.#locale)} ${isShort ? shortUnits[name] : name}${plural ? "s" : ""}`;
      return value < 0 || Object.is(value, -0) ? `${counted} ago` : `in ${counted}`;
    }
  }

  const method = (wanted, usual) =>
    function (requested, options) {
      const time = shared.dateToNumber(this);
      if (time !== time) return "Invalid Date";
      return new DateTimeFormat(requested, options ?? {}, wanted, usual).format(this);
    };
  const methods = {
    toLocaleString: method("any", "all"),
    toLocaleDateString: method("date", "date"),
    toLocaleTimeString: method("time", "time"),
  };
  // A call without `new` is common, and allowed.
  const callable = new Proxy(DateTimeFormat, {
    __proto__: null,
    apply: (_, __, inputs) => new DateTimeFormat(inputs[0], inputs[1]),
    construct: (_, inputs) => new DateTimeFormat(inputs[0], inputs[1]),
  });
  return { DateTimeFormat: callable, RelativeTimeFormat, methods };
})
