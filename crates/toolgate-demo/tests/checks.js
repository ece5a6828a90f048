// Checks of the runtime and of the servers' files. Rust runs them within a server's context.

function equal(actual, expected, about = '') {
  const [one, two] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (one !== two) throw new Error(`${about}: ${one} is not ${two}`);
}

function firstRowsFitTheirColumns() {
  for (const [name, table] of Object.entries(current.tables)) {
    equal(new Set(table.rows.map((row) => row[table.id])).size, table.rows.length, `identifiers of ${name}`);
    for (const row of table.rows) checkObject(table.columns, row, `${name}.`);
  }
}

function toolsAreAboutTablesAndColumnsThatExist() {
  for (const [name, tool] of Object.entries(current.tools)) {
    equal(tool.action in actions, true, `${name}: the action`);
    if (tool.run) continue;
    const { columns } = current.tables[tool.table];
    for (const column of [...Object.keys(tool.set ?? {}), tool.column ?? current.tables[tool.table].id]) {
      equal(column in columns, true, `${name}: ${column}`);
    }
    if (!['list', 'create'].includes(tool.action)) equal(isRequired(Object.values(tool.input)[0]), true, name);
  }
}

/** A name that nothing has is undefined, so that a typing error could pass unnoticed. */
function functionsUseNamesThatExist() {
  const guard = (target, known, about) =>
    new Proxy(target, {
      get(target, name) {
        equal(typeof name === 'symbol' || name in known, true, `${about}: ${String(name)}`);
        return target[name];
      },
    });
  // Tables look for these in the arguments that a tool passes on.
  const selected = Object.assign({ offset, limit }, ...Object.values(current.tables).map((table) => table.columns));
  for (const [name, tool] of Object.entries(current.tools)) {
    if (!tool.run) continue;
    const inputs = Object.entries(tool.input);
    const given = inputs.map(([name, field]) => [name, field.example ?? field.default ?? (isRequired(field) ? field.empty : null)]);
    const args = readArguments(tool.input, Object.fromEntries(given));
    try {
      tool.run(guard(args, { ...selected, ...tool.input }, name), guard(current.tables, current.tables, name));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
    }
  }
}

function things() {
  const columns = {
    id: text(),
    unitPrice: amount(),
    tags: list(text()),
    size: object({ width: integer(), unit: text() }, '', optional),
    at: time(),
    old: boolean('', optional),
  };
  const rows = `
    T-1 | 2.5 | red;blue | 3, cm | 2026-10-01T00:00:00Z | true
    T-2 | 10  |          |       | 2026-10-14T00:00:00Z |
  `;
  return new Table({ singular: 'thing', idPrefix: 'T-', time: 'at', columns, rows });
}

function linesBecomeRows() {
  equal(things().rows, [
    { id: 'T-1', unitPrice: 2.5, tags: ['red', 'blue'], size: { width: 3, unit: 'cm' }, at: '2026-10-01T00:00:00Z', old: true },
    { id: 'T-2', unitPrice: 10, tags: [], at: '2026-10-14T00:00:00Z' },
  ]);
}

function namesOfArgumentsSayHowToFilter() {
  const ids = (filter) => things().select(filter).rows.map((row) => row.id).join();
  equal(ids({}), 'T-1,T-2');
  equal(ids({ minUnitPrice: 3 }), 'T-2');
  equal(ids({ maxUnitPrice: 3 }), 'T-1');
  equal(ids({ tags: ['BLUE', 'red'] }), 'T-1');
  equal(ids({ tags: 'green' }), '');
  equal(ids({ since: '2d' }), 'T-2');
  equal(ids({ until: '2026-10-10' }), 'T-1');
  equal(ids({ query: 'Red t-1' }), 'T-1');
  equal(ids({ old: true }), 'T-1');
  equal(ids({ limit: 1, dry: true }), 'T-1');
  equal(ids({ offset: 1, minutes: 1, miné: 1 }), 'T-2');
}

function timesAreReadAsProgramsWriteThem() {
  const now = parseTime(NOW);
  equal(stamp(now), NOW);
  for (const text of ['2026-10-15T09:30:00.000Z', '2026-10-15T11:30:00+02:00', '2026-10-15 09:30:00']) {
    equal(parseTime(text), now, text);
  }
  equal(stamp(parseTime('2000-02-29')), '2000-02-29T00:00:00Z');
  equal(parseSince('90m'), now - 5400);
  for (const text of [
    '', 'x', '2026-13-01', '2026-02-30', '2026-10-15T', '2026-10-15T25:00:00Z', '2026-10-15T24:00:00Z', '1h', 'é',
    '2026-10-15T09:30:00.Z', '2026-10-15T09:30:00+2', '2026-10-15T09:30', '２０２６-10-15', '1969-12-31',
  ]) {
    equal(parseTime(text), null, text);
  }
  for (const text of ['', 'h', '-1h', '1y', '99999999999h', 'é']) equal(parseDuration(text), null, text);
}

function aSeedGivesTheSameNumbersWithinBounds() {
  const [one, two] = [new Random('seed'), new Random('seed')];
  for (let count = 0; count < 1000; count += 1) {
    const number = one.between(3, 9);
    equal(number, two.between(3, 9));
    equal(number >= 3 && number <= 9, true);
  }
  // The first numbers of SplitMix64 for the seed 1234567.
  const random = new Random(1234567);
  equal([random.next(), random.next()].map(String), ['6457827717110365317', '3203168211198807973']);
}

function numbersKeepTheirForm() {
  equal({ whole: 3, float: float(3), fraction: round(2.345), none: float(Infinity) }, { whole: 3, float: float(3), fraction: 2.35, none: null });
  equal(JSON.stringify([float(8000), 8000]) === '[8000.0,8000]', true);
}

function titlesAreWords() {
  for (const name of ['getLogStats', 'get_log_stats', 'get-log-stats']) equal(titleOf(name), 'Get log stats');
}
