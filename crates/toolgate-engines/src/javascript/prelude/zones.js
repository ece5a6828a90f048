// Time zones that people name, with the rules of today: there is no history in here, and no zone
// whose clocks follow anything but these four rules. Others can be written as offsets.
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
  const zones = { __proto__: null };
  for (const [standard, rule, short, names] of groups) {
    for (const name of names.split(" ")) {
      zones[name.toLowerCase()] = { name, standard, rule, short: short === "" ? [] : short.split(" ") };
    }
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
    const offset = (time) => zone.standard + (isSummer(zone, time) ? 60 : 0);
    return {
      name: zone.name,
      offset,
      short: (time) => zone.short[isSummer(zone, time) ? 1 : 0] ?? offsetName(offset(time), "GMT"),
    };
  };
  return { find, offsetName };
})
