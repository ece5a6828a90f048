// Time zones that people name, with the rules of today, and since when they hold: there is no other
// history in here, and no zone whose clocks follow anything but these four rules. Others can be written
// as offsets.
(function (host, shared) {
  "use strict";
  const { Date, RangeError, String, Number, Math } = globalThis;
  const { UnsupportedError } = shared;
  const hour = 60;

  // Standard offset in minutes east of Greenwich, the rule of summer time, the short names.
  const groups = [
    [0, "", "UTC", "UTC Etc/UTC GMT Etc/GMT Africa/Abidjan Atlantic/Reykjavik"],
    [-5 * hour, "us", "EST EDT", "America/New_York America/Detroit America/Toronto US/Eastern EST5EDT"],
    [-6 * hour, "us", "CST CDT", "America/Chicago America/Winnipeg US/Central CST6CDT"],
    [-7 * hour, "us", "MST MDT", "America/Denver America/Edmonton America/Boise US/Mountain MST7MDT"],
    [-8 * hour, "us", "PST PDT", "America/Los_Angeles America/Vancouver America/Tijuana US/Pacific PST8PDT"],
    [-9 * hour, "us", "AKST AKDT", "America/Anchorage"],
    [-4 * hour, "us", "AST ADT", "America/Halifax"],
    [-3.5 * hour, "us", "NST NDT", "America/St_Johns"],
    [-7 * hour, "", "MST", "America/Phoenix"],
    [-10 * hour, "", "HST", "Pacific/Honolulu"],
    [-6 * hour, "", "", "America/Mexico_City America/Costa_Rica America/Guatemala"],
    [-5 * hour, "", "", "America/Bogota America/Lima America/Panama"],
    [-4 * hour, "", "", "America/Puerto_Rico America/Caracas America/La_Paz"],
    [-3 * hour, "", "", "America/Sao_Paulo America/Argentina/Buenos_Aires America/Buenos_Aires America/Montevideo"],
    [0, "eu", "GMT BST", "Europe/London"],
    [0, "eu", "", "Europe/Dublin Europe/Lisbon"],
    [hour, "eu", "", "Europe/Berlin Europe/Paris Europe/Madrid Europe/Rome Europe/Amsterdam Europe/Brussels Europe/Vienna Europe/Zurich Europe/Stockholm Europe/Oslo Europe/Copenhagen Europe/Prague Europe/Warsaw Europe/Budapest Europe/Belgrade Europe/Zagreb Europe/Luxembourg CET"],
    [2 * hour, "eu", "", "Europe/Athens Europe/Helsinki Europe/Bucharest Europe/Sofia Europe/Kiev Europe/Kyiv Europe/Riga Europe/Vilnius Europe/Tallinn"],
    [2 * hour, "", "", "Africa/Johannesburg Europe/Kaliningrad Africa/Harare"],
    [3 * hour, "", "", "Europe/Moscow Europe/Istanbul Africa/Nairobi Asia/Riyadh Asia/Baghdad Asia/Qatar Asia/Kuwait Europe/Minsk"],
    [hour, "", "", "Africa/Lagos Africa/Algiers"],
    [4 * hour, "", "", "Asia/Dubai Asia/Baku Asia/Tbilisi"],
    [3.5 * hour, "", "", "Asia/Tehran"],
    [5 * hour, "", "", "Asia/Karachi Asia/Tashkent Asia/Almaty"],
    [5.5 * hour, "", "", "Asia/Kolkata Asia/Calcutta Asia/Colombo"],
    [5.75 * hour, "", "", "Asia/Kathmandu"],
    [6 * hour, "", "", "Asia/Dhaka"],
    [7 * hour, "", "", "Asia/Bangkok Asia/Jakarta Asia/Ho_Chi_Minh Asia/Saigon"],
    [8 * hour, "", "", "Asia/Shanghai Asia/Hong_Kong Asia/Singapore Asia/Taipei Asia/Manila Asia/Kuala_Lumpur Australia/Perth"],
    [9 * hour, "", "", "Asia/Tokyo Asia/Seoul"],
    [10 * hour, "au", "", "Australia/Sydney Australia/Melbourne Australia/Hobart Australia/Canberra"],
    [10 * hour, "", "", "Australia/Brisbane"],
    [9.5 * hour, "au", "", "Australia/Adelaide"],
    [9.5 * hour, "", "", "Australia/Darwin"],
    [12 * hour, "nz", "", "Pacific/Auckland"],
  ];
  // The first day on which the rules of today hold. `scripts/zones-since` writes this table.
  const beginnings = [
    ["1903-03-01", "Africa/Harare"],
    ["1908-04-23", "America/Panama"],
    ["1912-01-02", "Africa/Abidjan"],
    ["1919-09-01", "Africa/Lagos"],
    ["1920-01-01", "Asia/Dubai"],
    ["1920-04-01", "Asia/Bangkok"],
    ["1932-03-22", "America/La_Paz"],
    ["1942-08-01", "Africa/Nairobi"],
    ["1944-03-19", "Africa/Johannesburg"],
    ["1944-03-26", "Australia/Darwin"],
    ["1945-10-01", "America/Puerto_Rico"],
    ["1945-10-15", "Asia/Kolkata Asia/Calcutta"],
    ["1947-03-14", "Asia/Riyadh"],
    ["1947-06-09", "Pacific/Honolulu"],
    ["1950-01-01", "Asia/Kuwait"],
    ["1951-09-09", "Asia/Tokyo"],
    ["1964-01-01", "Asia/Jakarta"],
    ["1967-10-30", "America/Phoenix"],
    ["1968-04-08", "Atlantic/Reykjavik"],
    ["1972-06-01", "Asia/Qatar"],
    ["1975-06-13", "Asia/Ho_Chi_Minh Asia/Saigon"],
    ["1979-10-01", "Asia/Taipei"],
    ["1979-10-21", "Asia/Hong_Kong"],
    ["1981-05-01", "Africa/Algiers"],
    ["1982-01-01", "Asia/Singapore Asia/Kuala_Lumpur"],
    ["1986-01-01", "Asia/Kathmandu"],
    ["1988-10-09", "Asia/Seoul"],
    ["1990-07-29", "Asia/Manila"],
    ["1991-09-15", "Asia/Shanghai"],
    ["1991-09-29", "Asia/Tashkent"],
    ["1992-03-01", "Australia/Brisbane"],
    ["1992-03-16", "America/Costa_Rica"],
    ["1993-02-08", "America/Bogota"],
    ["1994-04-02", "America/Lima"],
    ["1995-10-30", "Europe/London Europe/Dublin Europe/Berlin Europe/Paris Europe/Madrid Europe/Rome Europe/Amsterdam Europe/Brussels Europe/Vienna Europe/Zurich Europe/Stockholm Europe/Oslo Europe/Copenhagen Europe/Prague Europe/Warsaw Europe/Budapest Europe/Belgrade Europe/Zagreb Europe/Luxembourg CET Europe/Athens Europe/Helsinki"],
    ["1996-04-01", "Europe/Lisbon Europe/Kiev Europe/Kyiv"],
    ["1996-10-28", "Europe/Bucharest Europe/Sofia"],
    ["2000-10-30", "Europe/Riga"],
    ["2001-10-29", "Europe/Tallinn"],
    ["2002-10-28", "Europe/Vilnius"],
    ["2005-03-27", "Asia/Tbilisi"],
    ["2006-04-15", "Asia/Colombo"],
    ["2006-10-02", "America/Guatemala"],
    ["2006-11-06", "America/New_York America/Detroit America/Toronto US/Eastern EST5EDT America/Chicago America/Winnipeg US/Central CST6CDT America/Denver America/Edmonton America/Boise US/Mountain MST7MDT America/Los_Angeles America/Vancouver US/Pacific PST8PDT America/Anchorage America/Halifax"],
    ["2007-04-01", "Australia/Hobart Pacific/Auckland"],
    ["2007-10-01", "Asia/Baghdad"],
    ["2007-10-28", "Australia/Sydney Australia/Melbourne Australia/Canberra Australia/Adelaide"],
    ["2009-03-16", "America/Argentina/Buenos_Aires America/Buenos_Aires"],
    ["2009-03-29", "Australia/Perth"],
    ["2009-11-01", "Asia/Karachi"],
    ["2009-11-02", "America/Tijuana"],
    ["2010-01-01", "Asia/Dhaka"],
    ["2011-03-14", "America/St_Johns"],
    ["2011-03-27", "Europe/Minsk"],
    ["2014-10-26", "Europe/Kaliningrad Europe/Moscow"],
    ["2015-03-09", "America/Montevideo"],
    ["2015-10-25", "Asia/Baku"],
    ["2016-03-28", "Europe/Istanbul"],
    ["2016-05-02", "America/Caracas"],
    ["2019-02-18", "America/Sao_Paulo"],
    ["2022-09-22", "Asia/Tehran"],
    ["2022-10-31", "America/Mexico_City"],
    ["2024-03-01", "Asia/Almaty"],
  ];
  const zones = { __proto__: null };
  for (const [standard, rule, short, names] of groups) {
    for (const name of names.split(" ")) {
      zones[name.toLowerCase()] = { name, standard, rule, short: short === "" ? [] : short.split(" ") };
    }
  }

  for (const [day, names] of beginnings) {
    for (const name of names.split(" ")) zones[name.toLowerCase()].since = Date.parse(day);
  }

  /** The day of a month that is its nth Sunday, or its last one. */
  const sunday = (year, month, nth) => {
    if (nth > 0) {
      const first = new Date(Date.UTC(year, month, 1)).getUTCDay();
      return 1 + ((7 - first) % 7) + 7 * (nth - 1);
    }
    const last = new Date(Date.UTC(year, month + 1, 0));
    return last.getUTCDate() - last.getUTCDay();
  };
  // When summer time begins and ends in a year, in milliseconds of UTC.
  const at = (year, month, nth, minutes) => Date.UTC(year, month, sunday(year, month, nth), 0, minutes);
  const rules = {
    __proto__: null,
    us: (year, standard) => [at(year, 2, 2, 120 - standard), at(year, 10, 1, 60 - standard)],
    eu: (year) => [at(year, 2, 0, 60), at(year, 9, 0, 60)],
    au: (year, standard) => [at(year, 9, 1, 120 - standard), at(year, 3, 1, 120 - standard)],
    nz: (year, standard) => [at(year, 8, 0, 120 - standard), at(year, 3, 1, 120 - standard)],
  };
  const isSummer = (zone, time) => {
    if (zone.rule === "") return false;
    const year = new Date(time + zone.standard * 60000).getUTCFullYear();
    const [begin, end] = rules[zone.rule](year, zone.standard);
    return begin < end ? time >= begin && time < end : time >= begin || time < end;
  };

  const offsetName = (minutes, prefix, always) => {
    const size = Math.abs(minutes);
    const sign = minutes < 0 ? "-" : "+";
    const whole = Math.floor(size / 60);
    const rest = String(size % 60).padStart(2, "0");
    if (always) return `${prefix}${sign}${String(whole).padStart(2, "0")}:${rest}`;
    return size === 0 ? prefix : `${prefix}${sign}${whole}${rest === "00" ? "" : `:${rest}`}`;
  };

  /** The zone of a name; that of the clock where there is none. */
  const find = (requested) => {
    if (requested === undefined) {
      const offset = (time) => -new Date(time).getTimezoneOffset();
      const now = offset(Date.now());
      return { name: now === 0 ? "UTC" : offsetName(now, "", true), offset, short: (time) => offsetName(offset(time), offset(time) === 0 ? "UTC" : "GMT") };
    }
    const name = String(requested);
    const fixed = /^([+-])(\d\d)(?::?(\d\d))?$/.exec(name);
    if (fixed !== null) {
      const minutes = (fixed[1] === "-" ? -1 : 1) * (Number(fixed[2]) * 60 + Number(fixed[3] ?? 0));
      return { name: offsetName(minutes, "", true), offset: () => minutes, short: () => offsetName(minutes, "GMT") };
    }
    const zone = zones[name.toLowerCase()];
    if (zone === undefined) {
      if (!/^[A-Za-z]+(\/[A-Za-z0-9_+-]+)+$/.test(name)) throw new RangeError(`Invalid time zone specified: ${name}`);
      throw new UnsupportedError(`the time zone ${name} is not known here: give its offset instead, as in timeZone: "+02:00"`);
    }
    const offset = (time) => {
      if (time < zone.since) {
        const [day, year] = [new Date(zone.since).toISOString().slice(0, 10), new Date(time).getUTCFullYear()];
        const example = offsetName(zone.standard, "", true);
        throw new RangeError(
          `the clocks of ${zone.name} in ${year} are not known here, only those since ${day}: give the offset instead, as in timeZone: "${example}"`,
        );
      }
      return zone.standard + (isSummer(zone, time) ? 60 : 0);
    };
    return {
      name: zone.name,
      offset,
      short: (time) => zone.short[isSummer(zone, time) ? 1 : 0] ?? offsetName(offset(time), "GMT"),
    };
  };
  return { find, offsetName };
})
