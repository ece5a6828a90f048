// What is known of locales. What is here is right; for everything else there is an error that says
// what there is.
(function (host, shared) {
  "use strict";
  const { RangeError, String } = globalThis;
  const { UnsupportedError } = shared;

  // Decimal and group separators, where the currency stands, where a percent sign is set apart, and
  // the signs of currencies that have another name than their code.
  const plain = { decimal: ".", group: ",", currency: "before", percent: "", brackets: true };
  const points = { decimal: ",", group: ".", currency: "after", percent: "\u00a0" };
  const common = "BRL:R$ CAD:CA$ CNY:CN¥ EUR:€ GBP:£ HKD:HK$ ILS:₪ INR:₹ KRW:₩ MXN:MX$ NZD:NZ$ TWD:NT$ VND:₫ XAF:FCFA XCD:EC$ XCG:Cg. XOF:F\u202fCFA XPF:CFPF";
  const numbers = {
    __proto__: null,
    "en-US": { ...plain, signs: `${common} AUD:A$ JPY:¥ PHP:₱ USD:$` },
    "en-GB": { ...plain, signs: `${common} AUD:A$ JPY:JP¥ PHP:₱ USD:US$` },
    "en-IN": { ...plain, indian: true, signs: `${common} AUD:A$ JPY:JP¥ PHP:₱ USD:$` },
    "de-DE": { ...points, signs: `${common} AUD:AU$ JPY:¥ THB:฿ USD:$` },
    "fr-FR": {
      ...points,
      group: "\u202f",
      brackets: true,
      signs: "ARS:$AR AUD:$AU BMD:$BM BND:$BN BRL:R$ BZD:$BZ CAD:$CA CLP:$CL COP:$CO EUR:€ FJD:$FJ FKP:£FK GBP:£GB GIP:£GI ILS:₪ INR:₹ KRW:₩ LBP:£LB MXN:$MX NAD:$NA NZD:$NZ SBD:$SB SGD:$SG SRD:$SR TTD:$TT USD:$US UYU:$UY VND:₫ WST:$WS XAF:FCFA XCG:Cg. XOF:F\u202fCFA XPF:FCFP",
    },
    "es-ES": { ...points, leastGrouped: 5, signs: "EUR:€ THB:฿ USD:US$ VND:₫ XCG:Cg. XPF:CFPF" },
    "it-IT": {
      ...points,
      percent: "",
      leastGrouped: 5,
      signs: "AUD:A$ CAD:CA$ CNY:CN¥ EUR:€ GBP:£ ILS:₪ NZD:NZ$ PHP:₱ THB:฿ XAF:FCFA XCD:EC$ XCG:Cf XOF:F\u202fCFA XPF:CFPF",
    },
    "pt-BR": { ...points, currency: "apart", percent: "", signs: `${common} AUD:AU$ JPY:JP¥ THB:฿ USD:US$` },
    "nl-NL": {
      ...points,
      currency: "apart",
      percent: "",
      signInside: true,
      brackets: true,
      signs: `${common} AUD:AU$ CAD:C$ FJD:FJ$ JPY:JP¥ SBD:SI$ THB:฿ USD:US$ XPF:XPF ZWG:ZiG`,
    },
  };

  // Numeric dates as patterns: y, m, d, two letters for two digits. `short` is that of `dateStyle`.
  const dates = {
    __proto__: null,
    "en-US": { pattern: "m/d/y", short: "m/d/yy", at: " at ", halfDay: true, weekdayTime: " ", weekdayDay: "d w" },
    "en-GB": { pattern: "dd/mm/y", short: "dd/mm/y", at: " at ", halves: ["am", "pm"], weekdayTime: " ", weekdayDay: "w d" },
    "de-DE": { pattern: "d.m.y", short: "dd.mm.yy", medium: "dd.mm.y", at: " um ", dayMonth: "d.m.", monthYear: "m/y", hour: " Uhr", weekdayDay: "w, d." },
    "fr-FR": { pattern: "dd/mm/y", short: "dd/mm/y", at: " à ", between: " ", hour: " h", weekdayDate: " ", weekdayDay: "w d" },
    "es-ES": { pattern: "d/m/y", short: "d/m/yy", at: " a las ", shortHours: true, halves: ["a. m.", "p. m."], weekdayDay: "w d" },
    "it-IT": { pattern: "dd/mm/y", short: "dd/mm/yy", at: " alle ore ", weekdayTime: " ", weekdayDate: " ", weekdayDay: "w d" },
    "pt-BR": { pattern: "dd/mm/y", short: "dd/mm/y", at: " às " },
    "nl-NL": { pattern: "d-m-y", short: "dd-mm-y", at: " om ", halves: ["a.m.", "p.m."], weekdayTime: " ", weekdayDate: " ", weekdayDay: "w d" },
    // Only numeric dates, which scripts use for their order.
    "en-CA": { pattern: "y-mm-dd", halfDay: true, halves: ["a.m.", "p.m."], numeric: true },
    "sv-SE": { pattern: "y-mm-dd", between: " ", dayMonth: "d/m", halves: ["fm", "em"], numeric: true },
  };

  // Months and days in full and in short, and the first letters of the days.
  const names = {
    __proto__: null,
    en: [
      "January February March April May June July August September October November December",
      "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec",
      "Sunday Monday Tuesday Wednesday Thursday Friday Saturday",
      "Sun Mon Tue Wed Thu Fri Sat",
    ],
    de: [
      "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
      "Jan. Feb. März Apr. Mai Juni Juli Aug. Sept. Okt. Nov. Dez.",
      "Sonntag Montag Dienstag Mittwoch Donnerstag Freitag Samstag",
      "So Mo Di Mi Do Fr Sa",
      "Jan Feb Mär Apr Mai Jun Jul Aug Sep Okt Nov Dez",
    ],
    fr: [
      "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
      "janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc.",
      "dimanche lundi mardi mercredi jeudi vendredi samedi",
      "dim. lun. mar. mer. jeu. ven. sam.",
    ],
    es: [
      "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
      "ene feb mar abr may jun jul ago sept oct nov dic",
      "domingo lunes martes miércoles jueves viernes sábado",
      "dom lun mar mié jue vie sáb",
    ],
    it: [
      "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
      "gen feb mar apr mag giu lug ago set ott nov dic",
      "domenica lunedì martedì mercoledì giovedì venerdì sabato",
      "dom lun mar mer gio ven sab",
    ],
    pt: [
      "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
      "jan. fev. mar. abr. mai. jun. jul. ago. set. out. nov. dez.",
      "domingo segunda-feira terça-feira quarta-feira quinta-feira sexta-feira sábado",
      "dom. seg. ter. qua. qui. sex. sáb.",
    ],
    nl: [
      "januari februari maart april mei juni juli augustus september oktober november december",
      "jan feb mrt apr mei jun jul aug sep okt nov dec",
      "zondag maandag dinsdag woensdag donderdag vrijdag zaterdag",
      "zo ma di wo do vr za",
    ],
  };
  const words = { __proto__: null };
  for (const tag of shared.keys(numbers)) if (tag !== "en-IN") words[tag] = true;
  const tables = { __proto__: null, numbers, dates, words };
  // The region that a language stands for.
  const home = { __proto__: null, en: "en-US", de: "de-DE", fr: "fr-FR", es: "es-ES", it: "it-IT", pt: "pt-BR", nl: "nl-NL", sv: "sv-SE" };

  /** A tag in its canonical spelling. */
  const canonical = (given) => {
    const tag = String(given);
    if (!/^[a-z]{2,8}([-_][a-z0-9]{1,8})*$/i.test(tag)) {
      throw new RangeError(`Incorrect locale information provided: ${tag}`);
    }
    const [language, ...rest] = tag.replace(/_/g, "-").split("-");
    const kept = [];
    for (const part of rest) {
      if (part.length === 1) break;
      kept.push(part.length === 2 ? part.toUpperCase() : part.length === 4 ? part[0].toUpperCase() + part.slice(1).toLowerCase() : part);
    }
    if (/-u-.*\b(ca|nu)-/.test(`${tag}-`) && !/-u-.*\b(ca-gregory|nu-latn)\b/.test(tag)) {
      throw new UnsupportedError(`the locale ${tag} is not available here: there is only the Gregorian calendar, and only the digits 0 to 9`);
    }
    const base = [language.toLowerCase(), ...kept].join("-");
    return home[base] ?? base;
  };

  /** The first of the requested locales that there is; `en-US` if none is requested. */
  const choose = (requested, what) => {
    const list = shared.isArray(requested) ? requested : requested === undefined ? [] : [requested];
    const table = tables[what];
    if (list.length === 0) return "en-US";
    const tags = list.map(canonical);
    const found = tags.find((tag) => tag in table);
    if (found === undefined) refuse(tags[0], what, table);
    return found;
  };
  const refuse = (tag, what, table) => {
    const there = shared.keys(table).filter((name) => !table[name].numeric).join(", ");
    const kind = what === "words" ? "texts" : what;
    throw new UnsupportedError(`the locale ${tag} is not available here for ${kind}: there are ${there}. Leave it out for en-US, or put the text together yourself`);
  };
  const list = (text) => text.split(" ");

  return {
    choose,
    /** Refuses what is only known for American English. */
    american: (tag, what) => {
      if (tag !== "en-US") throw new UnsupportedError(`${what} of ${tag} are not available here: there are only those of en-US`);
    },
    supported: (requested, what) =>
      [].concat(requested ?? []).filter((tag) => canonical(tag) in tables[what]),
    canonical,
    numbers: (tag) => numbers[tag],
    dates: (tag) => dates[tag],
    names: (tag) => {
      const language = tag.split("-")[0];
      const [months, shortMonths, days, shortDays, bareMonths = shortMonths] = names[language];
      const british = tag === "en-GB";
      const short = (text) => list(british ? text.replace("Sep", "Sept") : text);
      return { language, months: list(months), shortMonths: short(shortMonths), days: list(days), shortDays: list(shortDays), bareMonths: short(bareMonths) };
    },
  };
})
