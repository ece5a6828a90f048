// What the demo's servers share: times, seeded numbers, fields with their checks, tables, actions.
//
// A server's file calls `server` with its tables and tools. Most tools name an action on a table. A
// tool with the action `compute` (reads only) or `change` has a function `run(args, tables)`.
// The host sets `NOW`, the time at which the demo takes place, and calls `describe` and `call`.

/** A call that is refused, with a message for the caller. */
class Refusal extends Error {}

function require(condition, message) {
  if (!condition) throw new Refusal(message);
}

/** A number that JSON writes with a decimal point, even where it is whole: 8000.0. */
class Float extends Number {
  toJSON() {
    return Number.isInteger(+this) ? JSON.rawJSON(this.toFixed(1)) : +this;
  }
}

const float = (value) => new Float(value);
const round = (value, digits = 2) => float(Math.round(value * 10 ** digits) / 10 ** digits);
const sum = (values) => values.reduce((total, value) => total + value, 0);
const union = (one, two) => two.reduce((all, item) => (all.includes(item) ? all : [...all, item]), one);
/** The bytes of a text in UTF-8, as characters. */
const utf8 = (text) => unescape(encodeURIComponent(text));

/** The sum of `value` for each key. An item whose key is a list counts for each of its items. */
function totals(items, key, value = () => 1) {
  const totals = new Map();
  for (const item of items) {
    for (const name of [key(item) ?? []].flat()) totals.set(name, (totals.get(name) ?? 0) + value(item));
  }
  return Object.fromEntries(totals);
}

// Times, in seconds since 1970.

const DAY = 86_400;
const stamp = (seconds) => `${new Date(seconds * 1000).toISOString().slice(0, 19)}Z`;
const dateOf = (seconds) => stamp(seconds).slice(0, 10);

/** Reads a date, or a date and time with or without an offset; null for anything else. */
function parseTime(text) {
  const form = /^(\d{4}-\d\d-\d\d)(?:[T ]((?:[01]\d|2[0-3]):\d\d:\d\d)(?:\.\d+)?(Z|[+-]\d\d:\d\d)?)?$/i;
  const [, date, time = '00:00:00', zone = 'Z'] = form.exec(text) ?? [];
  const [year, month, day] = date?.split('-') ?? [];
  // `Date` takes the 30th of February for the 2nd of March.
  if (!date || dateOf(Date.UTC(year, month - 1, day) / 1000) !== date) return null;
  const seconds = Date.parse(`${date}T${time}${zone.toUpperCase()}`) / 1000;
  return seconds >= 0 ? seconds : null;
}

/** Reads 45s, 90m, 6h, 2d or 1w as seconds, up to a century; null for anything else. */
function parseDuration(text) {
  const [, count, unit] = /^\+?(\d+)([smhdw])$/.exec(text) ?? [];
  if (!unit || count > 36_500) return null;
  return Math.min(count * { s: 1, m: 60, h: 3600, d: DAY, w: 7 * DAY }[unit], 36_500 * DAY);
}

/** Reads a time, or a duration back from the demo's present. */
function parseSince(text) {
  const duration = parseDuration(text);
  return duration === null ? parseTime(text) : parseTime(NOW) - duration;
}

/** SplitMix64: a seed gives the same numbers in every run. The seed of a text is its FNV-1a hash. */
class Random {
  constructor(seed) {
    const add = (hash, byte) => BigInt.asUintN(64, (hash ^ BigInt(byte.charCodeAt())) * 0x100000001b3n);
    this.state = typeof seed === 'string' ? [...utf8(seed)].reduce(add, 0xcbf29ce484222325n) : BigInt(seed);
  }

  next() {
    const mix = (value, shift, factor) => BigInt.asUintN(64, (value ^ (value >> shift)) * factor);
    this.state = BigInt.asUintN(64, this.state + 0x9e3779b97f4a7c15n);
    return mix(mix(mix(this.state, 30n, 0xbf58476d1ce4e5b9n), 27n, 0x94d049bb133111ebn), 31n, 1n);
  }

  below(bound) {
    return Number(this.next() >> 32n) % bound;
  }

  /** A number from `low` to `high`, both included. */
  between(low, high) {
    return low + this.below(high - low + 1);
  }

  pick(choices) {
    return choices[this.below(choices.length)];
  }
}

// Fields: one description of a parameter, a column or a part of a result. A field has a JSON Schema,
// words for what it expects and a test of it, the value of a column that nobody has set, and a reader
// of a table's cell. `more` may have `optional`, `default` and `example`.

const isText = (value) => typeof value === 'string';
const isNumber = (value) => typeof value === 'number' || value instanceof Float;
const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value) && !isNumber(value);
const isRequired = (field) => !field.optional && field.default === undefined;

const fieldType = (schema, expected, fits, empty, read = (cell) => cell) => (about, more) =>
  ({ schema: () => schema, expected, fits, empty, read, about, ...more });

const optional = { optional: true };
const text = fieldType({ type: 'string' }, 'a string of at most 20000 characters',
  (value) => isText(value) && (value.length <= 20_000 || [...value].length <= 20_000), '', (cell) => cell.replaceAll(' // ', '\n'));
const number = fieldType({ type: 'number' }, 'a number', isNumber, 0, Number);
const amount = fieldType({ type: 'number', minimum: 0 }, 'a number of at least 0',
  (value) => isNumber(value) && value >= 0, 0, Number);
const boolean = fieldType({ type: 'boolean' }, 'true or false',
  (value) => typeof value === 'boolean', false, (cell) => cell === 'true');
const date = fieldType({ type: 'string', format: 'date' }, 'a date such as 2026-10-15',
  (value) => isText(value) && value.length === 10 && parseTime(value) !== null, NOW.slice(0, 10));
const time = fieldType({ type: 'string', format: 'date-time' }, 'a date and time such as 2026-10-15T09:30:00Z',
  (value) => isText(value) && parseTime(value) !== null, NOW);
/** A time, or a duration back from the demo's present. */
const since = fieldType({ type: 'string' }, `${time().expected}, or a duration such as 90m, 6h or 2d`,
  (value) => isText(value) && parseSince(value) !== null, '');

const choice = (of, about, more) =>
  fieldType({ type: 'string', enum: of }, `one of ${of.join(', ')}`, (value) => of.includes(value), of[0])(about, more);
const integer = (about, { range: [minimum, maximum] = [], ...more } = {}) =>
  fieldType({ type: 'integer', minimum, maximum },
    minimum === undefined ? 'an integer' : `an integer from ${minimum} to ${maximum}`,
    (value) => Number.isInteger(value) && !(value < minimum || value > maximum), 0, Number)(about, more);
const list = (of, about, more) => ({
  schema: (closed) => ({ type: 'array', items: schemaOf(of, closed) }),
  expected: 'an array of at most 200 items',
  fits: (value) => Array.isArray(value) && value.length <= 200,
  checkInside: (value, path) => value.forEach((item, index) => check(of, item, `${path}[${index}]`)),
  empty: [],
  read: (cell) => cell.split(';').map((part) => of.read(part.trim())),
  of, about, ...more,
});
/** Any names, with values of one type. */
const map = (of, about, more) => ({
  schema: (closed) => ({ type: 'object', additionalProperties: schemaOf(of, closed) }),
  expected: 'an object of at most 200 properties',
  fits: (value) => isObject(value) && Object.keys(value).length <= 200,
  checkInside: (value, path) => Object.values(value).forEach((item) => check(of, item, path)),
  empty: {},
  about, ...more,
});
const object = (fields, about, more) => ({
  schema: (closed) => objectSchema(fields, closed),
  expected: 'an object',
  fits: isObject,
  checkInside: (value, path) => checkObject(fields, value, `${path}.`),
  empty: {},
  read(cell) {
    const names = Object.keys(fields);
    return Object.fromEntries(cell.split(',').map((part, at) => [names[at], fields[names[at]].read(part.trim())]));
  },
  fields, about, ...more,
});

const limit = (most, usual) =>
  integer('Maximum number of results to return; the first ones in order are kept.', { range: [1, most], default: usual });
const offset =
  integer('Number of results to skip before the first one returned, for paging.', { range: [0, 100_000], default: 0 });

/** The JSON Schema of a field. A closed one forbids properties that it does not list. */
function schemaOf(field, closed) {
  const examples = field.example === undefined ? undefined : [field.example];
  return { ...field.schema(closed), description: field.about, default: field.default, examples };
}

function objectSchema(fields, closed) {
  const names = Object.keys(fields);
  const required = names.filter((name) => isRequired(fields[name]));
  return {
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name, schemaOf(fields[name], closed)])),
    required: required.length > 0 ? required : undefined,
    additionalProperties: closed ? false : undefined,
  };
}

function requireArgument(condition, path, problem) {
  require(condition, `Invalid argument \`${path}\`: ${problem}`);
}

function check(field, value, path) {
  requireArgument(field.fits(value), path, `must be ${field.expected}`);
  field.checkInside?.(value, path);
}

function checkObject(fields, value, path) {
  const unknown = Object.keys(value).find((name) => !Object.hasOwn(fields, name));
  const shown = [...(unknown ?? '')].slice(0, 80).join('');
  requireArgument(unknown === undefined, path + shown, `is not known; there are: ${Object.keys(fields).join(', ')}`);
  for (const [name, field] of Object.entries(fields)) {
    if (Object.hasOwn(value, name)) check(field, value[name], path + name);
    else requireArgument(!isRequired(field), path + name, 'is required');
  }
}

/** Checks a call's arguments and fills in the defaults. */
function readArguments(fields, given) {
  requireArgument(isObject(given ?? {}), 'arguments', 'must be an object');
  // Many callers send null for what they leave out.
  const isGiven = ([name, value]) => value !== null || (Object.hasOwn(fields, name) && isRequired(fields[name]));
  const args = Object.fromEntries(Object.entries(given ?? {}).filter(isGiven));
  checkObject(fields, args, '');
  for (const [name, field] of Object.entries(fields)) if (field.default !== undefined) args[name] ??= field.default;
  return args;
}

// Tables, in memory. A row is replaced and never changed in place.

const counts = { created: 0, changes: 0 };

/** The time of a change: each is a second after the one before. */
const tick = () => stamp(parseTime(NOW) + ++counts.changes);

/** Whether a column's value is what a filter wants. A list must include all that is wanted. */
function includes(value, wanted) {
  if (Array.isArray(value) && Array.isArray(wanted)) return wanted.every((one) => includes(value, one));
  if (Array.isArray(value)) return value.some((one) => includes(one, wanted));
  if (Array.isArray(wanted)) return wanted.some((one) => includes(value, one));
  const plain = (value) => (isText(value) ? value.replace(/[A-Z]/g, (letter) => letter.toLowerCase()) : value?.valueOf());
  return plain(value) === plain(wanted);
}

/** All texts within a value, in lower case. */
function textsOf(value) {
  if (isText(value)) return value.toLowerCase();
  return value instanceof Object && !isNumber(value) ? Object.values(value).map(textsOf).join('\n') : '';
}

class Table {
  /**
   * The first column is the identifier, and those of new rows start with `idPrefix`. `time` is the
   * column that `since` and `until` are about. `rows` is a function of all tables, or a text with a
   * row a line: `|` is between cells, `;` between items of a list, `,` between parts of an object,
   * ` // ` between lines of a text. An empty cell of an optional column is left out.
   */
  constructor({ singular, idPrefix = '', time, columns, rows = '' }, tables) {
    const lines = () => rows.split('\n').filter((line) => line.trim());
    const firstRows = () => (isText(rows) ? lines().map((line) => this.#read(line)) : rows(tables));
    Object.assign(this, { singular, idPrefix, time, columns, firstRows, id: Object.keys(columns)[0] });
  }

  get rows() {
    if (!this.stored) {
      this.stored = this.firstRows();
      // Clear of every identifier that the first rows have.
      this.nextId = Math.max(1001, this.stored.length + 1);
    }
    return this.stored;
  }

  #read(line) {
    const row = {};
    const cells = line.split('|').map((cell) => cell.trim());
    Object.entries(this.columns).forEach(([name, column], index) => {
      if (cells[index]) row[name] = column.read(cells[index]);
      else if (isRequired(column)) row[name] = column.empty;
    });
    return row;
  }

  lookup(id) {
    return this.rows.find((row) => row[this.id] === id);
  }

  find(id) {
    const row = this.lookup(id);
    require(row, `No ${this.singular} with id \`${id}\``);
    return row;
  }

  where(column, value) {
    return this.rows.filter((row) => row[column] === value);
  }

  /** The rows that match, after paging, and how many match before it. */
  select({ offset = 0, limit = Infinity, ...filter } = {}) {
    const given = Object.entries(filter).filter(([, wanted]) => wanted !== undefined);
    const tests = given.map(([name, wanted]) => this.#test(name, wanted));
    const rows = this.rows.filter((row) => tests.every((test) => test(row)));
    return { rows: rows.slice(offset, offset + limit), total: rows.length };
  }

  /**
   * The test of an argument, which its name says:
   * - a column's name: equal to it, or among it where the column is a list
   * - `query`: every word occurs somewhere in the row
   * - `since`, `from`: not before this; `until`, `to`: before this
   * - `min_price`, `minPrice`, `max_price`, `maxPrice`: bounds of a column
   */
  #test(name, wanted) {
    if (name in this.columns) return (row) => name in row && includes(row[name], wanted);
    if (name === 'query') {
      const words = wanted.toLowerCase().split(/\s+/);
      return (row, texts = textsOf(row)) => words.every((word) => texts.includes(word));
    }
    const timeOf = (row) => parseTime(row[this.time]);
    if (this.time && ['since', 'from', 'until', 'to'].includes(name)) {
      const wantedTime = parseSince(wanted);
      if (['until', 'to'].includes(name)) return (row) => timeOf(row) < wantedTime;
      // The demo's clock stands still and a caller's does not: say so instead of giving an empty list.
      const newest = Math.max(...this.rows.map(timeOf));
      if (this.rows.length > 0 && wantedTime > newest) {
        const newestRow = `newest ${this.singular}, which is of ${stamp(newest)}`;
        requireArgument(false, name, `is after the ${newestRow}; give a duration such as 6h instead`);
      }
      return (row) => timeOf(row) >= wantedTime;
    }
    const [, bound, rest] = /^(min|max)(_.+|[A-Z].*)$/.exec(name) ?? [];
    const column = rest?.startsWith('_') ? rest.slice(1) : rest && rest[0].toLowerCase() + rest.slice(1);
    if (!(column in this.columns)) return () => true;
    return (row) => (bound === 'min' ? row[column] >= wanted : row[column] <= wanted);
  }

  /** Adds a row. What `values` lacks is made up. */
  insert(values) {
    require(counts.created < 1000, 'The demo keeps no more new records; restart it');
    counts.created += 1;
    const now = tick();
    const rows = this.rows;
    const stamps = ['createdAt', 'created_at', 'updatedAt', 'updated_at', 'at', 'sent_at', this.time];
    const row = {};
    for (const [name, column] of Object.entries(this.columns)) {
      const value = values[name] ?? (name === this.id ? `${this.idPrefix}${this.nextId}` : column.default);
      if (value !== undefined) row[name] = value;
      else if (stamps.includes(name)) row[name] = now;
      else if (isRequired(column)) row[name] = column.empty;
    }
    require(!this.lookup(row[this.id]), `There is a ${this.singular} with id ${JSON.stringify(row[this.id])} already`);
    this.nextId += 1;
    rows.push(row);
    return row;
  }

  /** Puts values into the columns of a row, except its identifier. */
  update(id, values) {
    const now = tick();
    const row = { ...this.find(id) };
    for (const name of ['updatedAt', 'updated_at']) if (name in this.columns) row[name] = now;
    for (const [name, value] of Object.entries(values)) if (name in this.columns && name !== this.id) row[name] = value;
    this.rows[this.rows.findIndex((other) => other[this.id] === id)] = row;
    return row;
  }

  /** Updates the row with the identifier of this one, or inserts it. */
  put(row) {
    return this.lookup(row[this.id]) ? this.update(row[this.id], row) : this.insert(row);
  }

  /** Adds an item to a column that is a list: of objects, or of single values. */
  append(id, column, values) {
    const at = tick();
    const items = this.find(id)[column];
    require(items.length < 500, `There is no room for more ${column}`);
    const { fields } = this.columns[column].of;
    const known = Object.entries({ ...values, at }).filter(([name]) => fields && name in fields);
    return this.update(id, { [column]: [...items, fields ? Object.fromEntries(known) : Object.values(values)[0]] });
  }

  remove(id) {
    this.rows.splice(this.rows.indexOf(this.find(id)), 1);
    return { deleted: true, id };
  }
}

// Tools.

/** The server of this context. */
let current;

function server(file) {
  const tables = {};
  for (const [name, table] of Object.entries(file.tables)) tables[name] = new Table(table, tables);
  current = { ...file, tables };
}

const reads = { readOnlyHint: true, openWorldHint: false };
const adds = { readOnlyHint: false, destructiveHint: false, idempotentHint: false };
const sets = { readOnlyHint: false, destructiveHint: false, idempotentHint: true };
const destroys = { readOnlyHint: false, destructiveHint: true };

function listRows({ page }, table, args) {
  const { rows, total } = table.select(args);
  return page ? { [page]: rows, total } : rows;
}

/** The actions: the hints of a tool's annotations, and what a call does. `id` is the first argument. */
const actions = {
  list: [reads, listRows],
  get: [reads, (tool, table, args, id) => table.find(id)],
  create: [adds, ({ set }, table, args) => table.insert({ ...args, ...set })],
  update: [sets, ({ set }, table, args, id, rest) => table.update(id, { ...rest, ...set })],
  /** The same as `update`, for what cannot be taken back. */
  destroy: [destroys, ({ set }, table, args, id, rest) => table.update(id, { ...rest, ...set })],
  append: [adds, ({ column }, table, args, id, rest) => table.append(id, column, rest)],
  delete: [destroys, (tool, table, args, id) => table.remove(id)],
  compute: [reads, (tool, table, args) => tool.run(args, current.tables)],
  change: [adds, (tool, table, args) => tool.run(args, current.tables)],
};

function outputSchema({ action, table, page, output }) {
  const total = { type: 'integer', description: 'Number of matches before paging.' };
  let schema = output === 'row' ? objectSchema(current.tables[table].columns) : output?.schema();
  if (output === 'row' && action === 'list') schema = { type: 'array', items: schema };
  if (page && schema) return { type: 'object', properties: { [page]: schema, total }, required: [page, 'total'] };
  // Structured content is an object, so that a list is its property `result`.
  return schema?.type === 'array' ? { type: 'object', properties: { result: schema }, required: ['result'] } : schema;
}

/** `getLogStats`, `get_log_stats` and `get-log-stats` as "Get log stats". */
function titleOf(name) {
  const words = name.replace(/[_-]/g, ' ').replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return words[0].toUpperCase() + words.slice(1);
}

/** The server and its definitions, as JSON. */
function describe() {
  const { tables, tools, annotations, ...about } = current;
  const definitions = Object.entries(tools).map(([name, tool]) => ({
    name,
    description: tool.about,
    inputSchema: objectSchema(tool.input, true),
    outputSchema: outputSchema(tool),
    annotations: annotations ? { title: titleOf(name), ...actions[tool.action][0] } : undefined,
  }));
  return JSON.stringify({ ...about, definitions });
}

/** Calls a tool with arguments as JSON. Gives `{"value": …}` or `{"refused": message}`, as JSON. */
function call(name, json) {
  const isFraction = (value, source) => typeof value === 'number' && /[.e]/i.test(source);
  try {
    const given = JSON.parse(json, (_, value, { source }) => (isFraction(value, source) ? float(value) : value));
    const tool = current.tools[name];
    const args = readArguments(tool.input, given);
    const { [Object.keys(tool.input)[0]]: id, ...rest } = args;
    const [, run] = actions[tool.action];
    return JSON.stringify({ value: run(tool, current.tables[tool.table], args, id, rest) });
  } catch (error) {
    if (error instanceof Refusal) return JSON.stringify({ refused: error.message });
    throw error;
  }
}
