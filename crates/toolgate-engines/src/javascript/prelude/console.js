// The console. What is information goes to one stream, what is a complaint to the other. What few
// scripts use of it is in another file.
(function (host, shared) {
  "use strict";
  const { join, repeat, replace, slice, wellFormed } = shared;
  const limit = 4 * 1024 * 1024;

  const state = { depth: 0 };
  const write = (isError, text) => {
    let shown = text;
    if (shown.length > limit) {
      shown = `${slice(shown, 0, limit)}… (${text.length - limit} more characters)`;
    }
    if (state.depth > 0) {
      const margin = repeat("  ", state.depth);
      shown = margin + replace(shown, /\n/g, `\n${margin}`);
    }
    host.write(isError, `${wellFormed(shown)}\n`);
  };
  const format = (values) => {
    for (let index = 0; index < values.length; index++) {
      // Objects need looking into, and a text before others may have directives.
      if (typeof values[index] !== "string" || (values.length > 1 && index === 0)) {
        return shared.inspector().format(values);
      }
    }
    return join(values, " ");
  };
  const out = (...values) => write(false, format(values));
  const complain = (...values) => write(true, format(values));

  const console = { log: out, info: out, debug: out, warn: complain, error: complain };
  shared.console = { state, write, format };
  shared.lazy(console, shared.once("console_more"), [
    "assert",
    "clear",
    "count",
    "countReset",
    "dir",
    "dirxml",
    "group",
    "groupCollapsed",
    "groupEnd",
    "table",
    "time",
    "timeEnd",
    "timeLog",
    "trace",
  ]);
  shared.hidden(globalThis, "console", console);
})
