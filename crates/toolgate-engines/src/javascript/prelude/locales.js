// What is known of locales. English is complete; of the others, how numbers and dates are written,
// and for some the names of months and days. A locale that is not here is treated as its language,
// and a language that is not here as English.
(function (host, shared) {
  "use strict";
  const { RangeError, String } = globalThis;

  // Decimal and group separators, where the currency stands, where a percent sign is set apart.
  const plain = { decimal: ".", group: ",", currency: "before", percent: "" };
  const points = { decimal: ",", group: ".", currency: "after", percent: "\u00a0" };
  const spaces = { decimal: ",", group: "\u00a0", currency: "after", percent: "\u00a0" };
  const numbers = {
    __proto__: null,
    en: plain,
    "en-IN": { ...plain, indian: true },
    hi: { ...plain, indian: true },
    ja: plain,
    zh: plain,
    ko: plain,
    th: plain,
    he: { ...plain, currency: "after" },
    de: points,
    "de-CH": { decimal: ".", group: "’", currency: "apart", percent: "" },
    "de-AT": { ...points, group: "\u00a0", currency: "apart" },
    es: { ...points, leastGrouped: 5 },
    "es-MX": plain,
    "es-US": plain,
    it: { ...points, percent: "" },
    pt: { ...points, currency: "apart", percent: "" },
    "pt-PT": { ...spaces, percent: "", leastGrouped: 5 },
    nl: { ...points, currency: "apart", percent: "" },
    da: points,
    id: { ...points, currency: "apart", percent: "" },
    tr: { ...points, currency: "before", percent: "" },
    el: { ...points, percent: "" },
    vi: { ...points, percent: "" },
    fr: { ...spaces, group: "\u202f", percent: "\u202f\u00a0".slice(0, 1) },
    sv: spaces,
    nb: spaces,
    no: spaces,
    fi: spaces,
    cs: spaces,
    sk: spaces,
    ru: spaces,
    uk: { ...spaces, percent: "" },
    bg: { ...spaces, percent: "" },
    hu: { ...spaces, percent: "" },
    pl: { ...spaces, percent: "", leastGrouped: 5 },
    ro: points,
  };

  // Numeric dates as patterns: y, m, d, two letters for two digits.
  const dates = {
    __proto__: null,
    en: "m/d/y",
    "en-GB": "dd/mm/y",
    "en-AU": "dd/mm/y",
    "en-NZ": "d/mm/y",
    "en-IE": "d/m/y",
    "en-IN": "d/m/y",
    "en-ZA": "y/mm/dd",
    "en-CA": "y-mm-dd",
    de: "d.m.y",
    fr: "dd/mm/y",
    "fr-CA": "y-mm-dd",
    es: "d/m/y",
    it: "d/m/y",
    pt: "dd/mm/y",
    nl: "d-m-y",
    da: "d.m.y",
    nb: "d.m.y",
    no: "d.m.y",
    sv: "y-mm-dd",
    fi: "d.m.y",
    cs: "d. m. y",
    sk: "d. m. y",
    pl: "d.mm.y",
    ru: "dd.mm.y",
    uk: "dd.mm.y",
    tr: "dd.mm.y",
    ja: "y/m/d",
    zh: "y/m/d",
    ko: "y. m. d.",
    hi: "d/m/y",
    he: "d.m.y",
    el: "d/m/y",
    hu: "y. mm. dd.",
    ro: "dd.mm.y",
    bg: "d.mm.y г.",
    id: "d/m/y",
    vi: "d/m/y",
    th: "d/m/y",
  };

  // Months and days in full, and how many letters make the short form where that is the rule.
  const names = {
    __proto__: null,
    en: {
      months: "January February March April May June July August September October November December",
      days: "Sunday Monday Tuesday Wednesday Thursday Friday Saturday",
    },
    de: {
      months: "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
      shortMonths: "Jan. Feb. März Apr. Mai Juni Juli Aug. Sept. Okt. Nov. Dez.",
      days: "Sonntag Montag Dienstag Mittwoch Donnerstag Freitag Samstag",
      shortDays: "So Mo Di Mi Do Fr Sa",
    },
    fr: {
      months: "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
      shortMonths: "janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc.",
      days: "dimanche lundi mardi mercredi jeudi vendredi samedi",
      shortDays: "dim. lun. mar. mer. jeu. ven. sam.",
    },
    es: {
      months: "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
      shortMonths: "ene feb mar abr may jun jul ago sept oct nov dic",
      days: "domingo lunes martes miércoles jueves viernes sábado",
      shortDays: "dom lun mar mié jue vie sáb",
    },
    it: {
      months: "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
      days: "domenica lunedì martedì mercoledì giovedì venerdì sabato",
    },
    pt: {
      months: "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
      shortMonths: "jan. fev. mar. abr. mai. jun. jul. ago. set. out. nov. dez.",
      days: "domingo segunda-feira terça-feira quarta-feira quinta-feira sexta-feira sábado",
      shortDays: "dom. seg. ter. qua. qui. sex. sáb.",
    },
    nl: {
      months: "januari februari maart april mei juni juli augustus september oktober november december",
      shortMonths: "jan feb mrt apr mei jun jul aug sep okt nov dec",
      days: "zondag maandag dinsdag woensdag donderdag vrijdag zaterdag",
      shortDays: "zo ma di wo do vr za",
    },
  };

  /** The first locale of a request, in its canonical spelling: `en-US` where there is none. */
  const choose = (requested) => {
    const first = shared.isArray(requested) ? requested[0] : requested;
    if (first === undefined) return "en-US";
    const tag = String(first);
    if (!/^[a-z]{2,8}([-_][a-z0-9]{1,8})*$/i.test(tag)) {
      throw new RangeError(`Incorrect locale information provided: ${tag}`);
    }
    const [language, ...rest] = tag.replace(/_/g, "-").split("-");
    const kept = [];
    for (const part of rest) {
      // Extensions choose calendars and digits, of which there is one kind here.
      if (part.length === 1) break;
      kept.push(part.length === 2 ? part.toUpperCase() : part.length === 4 ? part[0].toUpperCase() + part.slice(1).toLowerCase() : part);
    }
    return [language.toLowerCase(), ...kept].join("-");
  };
  const lookUp = (table, locale) => {
    const language = locale.split("-")[0];
    const region = /-([A-Z]{2})\b/.exec(locale)?.[1];
    return table[`${language}-${region}`] ?? table[language] ?? table.en;
  };
  const list = (text) => text.split(" ");

  return {
    choose,
    numbers: (locale) => lookUp(numbers, locale),
    datePattern: (locale) => lookUp(dates, locale),
    isNumbersKnown: (locale) => locale.split("-")[0] in numbers,
    names: (locale) => {
      const found = names[locale.split("-")[0]] ?? names.en;
      const short = (full) => list(full).map((name) => name.slice(0, 3));
      return {
        language: names[locale.split("-")[0]] === undefined ? "en" : locale.split("-")[0],
        months: list(found.months),
        shortMonths: found.shortMonths === undefined ? short(found.months) : list(found.shortMonths),
        days: list(found.days),
        shortDays: found.shortDays === undefined ? short(found.days) : list(found.shortDays),
      };
    },
  };
})
