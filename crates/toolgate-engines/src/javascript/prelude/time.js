// The clock and the dice are the host's: a run that is run again meets the same ones. Time stands
// still while a script computes.
(function (host, shared) {
  "use strict";
  const { construct, defineProperty, ownKeys, getOwnPropertyDescriptor } = Reflect;
  const { now, elapsed, random } = host;
  const Native = Date;
  const toText = Function.prototype.call.bind(Native.prototype.toString);

  const Clock = function Date(year, month, day, hours, minutes, seconds, milliseconds) {
    if (new.target === undefined) return toText(construct(Native, [now()]));
    return construct(Native, arguments.length === 0 ? [now()] : arguments, new.target);
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
