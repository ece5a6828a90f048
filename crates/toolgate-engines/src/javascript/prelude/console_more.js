// The rest of the console.
(function (host, shared) {
  "use strict";
  const { push, join, repeat, replace, slice, isArray, keys, String } = shared;
  const { state, write, format } = shared.console;
  const inspect = shared.inspect;
  const now = performance.now.bind(performance);
  const counts = shared.create(null);
  const timers = shared.create(null);
  const out = (...values) => write(false, format(values));

  const column = (cells, key, value) => {
    if (!(key in cells.index)) {
      cells.index[key] = cells.names.length;
      push(cells.names, key);
    }
    cells.row[cells.index[key]] = value;
  };
  const table = (data, chosen) => {
    if (typeof data !== "object" || data === null) return out(data);
    const cells = { names: [], index: shared.create(null), row: undefined };
    const rows = [];
    const rowNames = isArray(data) ? data : undefined;
    const names = rowNames ? undefined : keys(data);
    const length = (names ?? data).length;
    const show = (value) => (typeof value === "string" ? value : inspect(value, 1));
    for (let index = 0; index < length && index < 1000; index++) {
      const item = names ? data[names[index]] : data[index];
      cells.row = [];
      column(cells, "(index)", names ? names[index] : `${index}`);
      if (typeof item === "object" && item !== null) {
        const fields = isArray(chosen) ? chosen : keys(item);
        for (let at = 0; at < fields.length && at < 100; at++) {
          column(cells, isArray(item) ? `${fields[at]}` : fields[at], show(item[fields[at]]));
        }
      } else column(cells, "Values", show(item));
      push(rows, cells.row);
    }
    // Bars between cells are enough to read it, and cost little.
    const line = (row) => {
      const parts = [];
      for (let at = 0; at < cells.names.length; at++) {
        push(parts, replace(row[at] ?? "", /\s*\n\s*/g, " "));
      }
      return `| ${join(parts, " | ")} |`;
    };
    const lines = [line(cells.names), `|${repeat("---|", cells.names.length)}`];
    for (let index = 0; index < rows.length; index++) push(lines, line(rows[index]));
    if (length > rows.length) push(lines, `… ${length - rows.length} more rows`);
    write(false, join(lines, "\n"));
  };

  const elapsed = (label) => `${label}: ${(now() - timers[label]).toFixed(3)}ms`;
  const more = {
    trace: (...values) => {
      const stack = new Error(format(values)).stack;
      write(true, `Trace${slice(stack, 5)}`);
    },
    assert: (condition, ...values) => {
      if (!condition) {
        write(true, `Assertion failed${values.length > 0 ? `: ${format(values)}` : ""}`);
      }
    },
    dir: (value) => write(false, inspect(value)),
    dirxml: out,
    table,
    group: (...values) => {
      if (values.length > 0) out(...values);
      if (state.depth < 20) state.depth++;
    },
    groupEnd: () => {
      if (state.depth > 0) state.depth--;
    },
    count: (label = "default") => {
      const name = String(label);
      counts[name] = (counts[name] ?? 0) + 1;
      write(false, `${name}: ${counts[name]}`);
    },
    countReset: (label = "default") => {
      counts[String(label)] = 0;
    },
    time: (label = "default") => {
      timers[String(label)] = now();
    },
    timeLog: (label = "default", ...values) => {
      const name = String(label);
      if (name in timers) {
        write(false, values.length > 0 ? `${elapsed(name)} ${format(values)}` : elapsed(name));
      }
    },
    timeEnd: (label = "default") => {
      const name = String(label);
      if (name in timers) write(false, elapsed(name));
      delete timers[name];
    },
    clear: () => {},
  };
  more.groupCollapsed = more.group;
  return more;
})
