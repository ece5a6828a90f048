// The clock and the dice are the host's: a run that is run again meets the same ones. Time stands
// still while a script computes.
(function (host, shared) {
  "use strict";
  const { construct, defineProperty, ownKeys, getOwnPropertyDescriptor } = Reflect;
  const { now, elapsed, random } = host;
  const Native = Date;
  const toText = Function.prototype.call.bind(Native.prototype.toString);

  // The engine reads a zone right after the time of day as another time, or not at all.
  const uncurry = Function.prototype.bind.bind(Function.prototype.call);
  const exec = uncurry(RegExp.prototype.exec);
  const slice = uncurry(String.prototype.slice);
  const toUpperCase = uncurry(String.prototype.toUpperCase);
  const parseNative = Native.parse;
  const longest = 128;
  const readable = (text) => {
    if (typeof text !== "string" || text.length > longest) return text;
    if (exec(/^\d{4}-\d\d-\d\d[tT][\d:.+tzTZ-]*$/, text) !== null) return toUpperCase(text);
    const time = exec(/\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?=[+-]\d|Z)/i, text);
    if (time === null || exec(/\dT\d/, text) !== null) return text;
    const end = time.index + time[0].length;
    return `${slice(text, 0, end)} ${slice(text, end)}`;
  };

  const Clock = function Date(year, month, day, hours, minutes, seconds, milliseconds) {
    if (new.target === undefined) return toText(construct(Native, [now()]));
    const given = arguments.length === 0 ? [now()] : arguments.length === 1 ? [readable(year)] : arguments;
    return construct(Native, given, new.target);
  };
  const names = ownKeys(Native);
  for (let index = 0; index < names.length; index++) {
    const name = names[index];
    if (name !== "now") defineProperty(Clock, name, getOwnPropertyDescriptor(Native, name));
  }
  const hidden = (target, name, value) =>
    defineProperty(target, name, {
      __proto__: null,
      value,
      writable: true,
      enumerable: false,
      configurable: true,
    });
  hidden(Clock, "parse", { parse: (text) => parseNative(readable(text)) }.parse);
  hidden(Clock, "now", { now: () => now() }.now);
  hidden(Native.prototype, "constructor", Clock);
  hidden(globalThis, "Date", Clock);
  hidden(Math, "random", { random: () => random() }.random);
  // The engine's own cannot be changed, only replaced.
  hidden(globalThis, "performance", {
    now: () => elapsed(),
    get timeOrigin() {
      return now() - elapsed();
    },
  });
})
