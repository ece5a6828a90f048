// The language JavaScript: each tool is an async function, and the script is the body of one.
import { now, print, submit, wait } from 'toolgate:script/host@0.1.0';

const AsyncFunction = (async () => {}).constructor;
// How many lines the head of a function has before its body.
const HEAD = 2;

/** The calls without an outcome, by their numbers. */
const calls = new Map();

class ToolError extends Error {
  constructor(tool, message) {
    super(`${tool}: ${message}`);
    this.name = 'ToolError';
    this.tool = tool;
    this.content = [{ type: 'text', text: message }];
  }
}

function call(name, args = {}) {
  return new Promise((resolve, reject) => {
    const text = JSON.stringify(args);
    if (text === undefined) throw new TypeError(`${name}: the arguments have no JSON`);
    calls.set(submit(name, text), { name, resolve, reject });
  });
}

/** All tools by their names. */
const tools = new Proxy({}, { get: (_, name) => (args) => call(String(name), args) });

function shown(value) {
  if (typeof value === 'string') return value;
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  if (value !== null && typeof value === 'object') return JSON.stringify(value) ?? String(value);
  return String(value);
}

function log(...values) {
  print(`${values.map(shown).join(' ')}\n`);
}

const console = { log, info: log, debug: log, warn: log, error: log };

/** The failure of a script, with the lines of the script. */
function failureOf(error) {
  if (!(error instanceof Error)) return { message: `uncaught ${shown(error)}`, stack: [] };
  const stack = [];
  for (const line of String(error.stack ?? '').split('\n')) {
    const place = /^(.*)@.*> (?:Async)?Function:(\d+):(\d+)$/.exec(line);
    if (place === null) continue;
    const name = /^(?:async\*)?(?:anonymous)?$/.test(place[1]) ? '' : place[1].replace(/^async\*/, '');
    stack.push({ function: name, line: Math.max(1, Number(place[2]) - HEAD), column: Number(place[3]) });
  }
  return { message: `${error.name}: ${error.message}`, stack };
}

/** Lets everything run that need not wait. */
function settled() {
  return new Promise((resolve) => setTimeout(resolve, 0));
}

async function execute(script, known) {
  const functions = known.map(({ name }) => (args) => call(name, args));
  const names = known.map(({ name }) => name);
  const body = new AsyncFunction('console', 'tools', 'ToolError', 'sleep', ...names, script);
  const sleep = (milliseconds) => {
    const until = now() + BigInt(Math.ceil(milliseconds * 1e6));
    return new Promise((resolve) => timers.push({ until, resolve }));
  };
  let end;
  body(console, tools, ToolError, sleep, ...functions).then(
    (value) => { end = { value }; },
    (error) => { end = { error }; },
  );
  for (;;) {
    await settled();
    if (end !== undefined) break;
    timers.sort((a, b) => (a.until < b.until ? -1 : 1));
    const ended = wait(timers.length > 0 ? timers[0].until : undefined);
    if (ended === undefined) {
      while (timers.length > 0 && timers[0].until <= now()) timers.shift().resolve();
      continue;
    }
    const [number, outcome] = ended;
    const { name, resolve, reject } = calls.get(number);
    calls.delete(number);
    if (outcome.tag === 'ok') resolve(JSON.parse(outcome.val));
    else reject(new ToolError(name, outcome.val));
  }
  if ('error' in end) throw end.error;
  return end.value === undefined ? undefined : JSON.stringify(end.value);
}

const timers = [];

export async function run(script, known) {
  try {
    return await execute(script, known);
  } catch (error) {
    throw Object.assign(new Error('the script failed'), { payload: failureOf(error) });
  }
}
