//! How data moves in scripts: each construct of both languages.

use std::fmt::Write as _;

use serde_json::json;

use super::fixture::Fake;
use crate::check::{
    Checked,
    Language::{self, Python, TypeScript},
    ProgramFlow, check,
};

/// Tools with a result (`secret`, `page`) and with arguments (`send`, `keep`).
pub(super) fn flow_of(language: Language, script: &str) -> Option<ProgramFlow> {
    checked(language, script).flow
}

fn checked(language: Language, script: &str) -> Checked {
    let any = json!({ "type": "object", "properties": { "to": {}, "body": {} } });
    let named = json!({ "type": "object", "properties": { "name": {}, "arguments": {} } });
    let none = json!({ "type": "object", "properties": { "id": {} } });
    let output =
        json!({ "type": "object", "properties": { "id": {}, "offset": {}, "pattern": {} } });
    let uri = json!({ "type": "object", "properties": { "uri": {} } });
    let types = json!({ "type": "object", "properties": { "value": {}, "type": {}, "hint": {} } });
    let tools = [
        ("secret", &none),
        ("page", &none),
        ("send", &any),
        ("keep", &any),
        ("my_send", &any),
        ("call_tool", &named),
        ("extract", &types),
        ("read_resource", &uri),
        ("read_output", &output),
    ];
    let tools = tools.map(|(name, schema)| (name.to_owned(), schema.clone())).to_vec();
    let mut fake = Fake { tools, asked: Vec::new() };
    let globals = ["URL", "URLSearchParams", "TextEncoder", "btoa", "setTimeout", "tools", "len"];
    let globals = [&globals[..], &["structuredClone", "range", "Buffer"]].concat();
    // Without a list, every module exists.
    let modules: &[&str] = if language == Python { &[] } else { &["crypto"] };
    let checked = check(language, script, &globals, modules, &mut fake);
    let errors: Vec<_> = checked.findings.iter().map(ToString::to_string).collect();
    assert!(!checked.has_errors(), "{script}\n{errors:?}");
    checked
}

/// The flows in short: `secret>send.body`, with `?` for a flow that only decides.
pub(super) fn flows(language: Language, script: &str) -> Vec<String> {
    let Some(flow) = flow_of(language, script) else { return vec!["unknown".to_owned()] };
    let tool = |call: u32| flow.calls[call as usize].tool.clone().unwrap_or("*".to_owned());
    let shown = flow.flows.iter().map(|edge| {
        let argument = edge.argument.as_deref().unwrap_or("*");
        let mark = if edge.is_choice { "?" } else { "" };
        format!("{}>{}.{argument}{mark}", tool(edge.from), tool(edge.to))
    });
    let mut shown: Vec<String> = shown.collect();
    shown.sort();
    shown.dedup();
    shown
}

pub(super) fn reaches(language: Language, script: &str) -> bool {
    let flows = flows(language, script);
    flows.iter().any(|flow| flow == "unknown" || is_sent(flow) && !flow.ends_with('?'))
}

fn is_sent(flow: &str) -> bool {
    ["secret>send.", "secret>my_send.", "secret>*."].iter().any(|start| flow.starts_with(start))
}

/// In each script the secret reaches what is sent.
const CARRIED_TS: &[&str] = &[
    "const s = await secret({}); await tools.my.send({ body: s });",
    "const s = await secret({}); const m = tools.my; await m.send({ body: s });",
    "const s = await secret({}); const { send: f } = tools.my as any; await f({ body: s });",
    "const s = await secret({}); const k = ['s', 'end'].join(''); await (tools.my as any)[k]({ body: s });",
    "const s = await secret({}); let t: any = tools; for (const k of ['my', 'send']) t = t[k]; await t({ body: s });",
    "const s = await secret({}); const n = 'my_send'; await (globalThis as any)[n]({ body: s });",
    "async () => { const s = await secret({}); await send({ body: s }); }",
    "export default async function () { const s = await secret({}); await send({ body: s }); }",
    "async function main() { const s = await secret({}); await send({ body: s }); }",
    "const s = await secret({}); class A { accessor x: any = ''; } const a = new A(); a.x = s; await send({ body: a.x });",
    "import { createHash } from 'node:crypto'; const s = await secret({}); await send({ body: createHash('md5').update(s).digest('hex') });",
    "const { createHash } = require('crypto'); const s = await secret({}); await send({ body: createHash('md5').update(s).digest('hex') });",
    "const s = await secret({}); await send({ body: JSON.parse(s) });",
    "const p = await page({}); const q = JSON.parse(p); q.x = await secret({}); await send({ body: p });",
    "const s = await secret({}); const b = Buffer.alloc(9); b.subarray(0).write(s.text); await send({ body: b.toString() });",
    "const s = await secret({}); const b = Buffer.alloc(9); const v = b.slice(0, 4); v[0] = s.n; await send({ body: b.toString('hex') });",
    "const s = await secret({}); await send({ body: Buffer.concat([Buffer.from(s.text)]).toString('base64') });",
    "const s = await secret({}); let m = ''; try { await keep({ body: s }); } catch (e) { m = e.message; } await send({ body: m });",
    "const s = await secret({}); let m = ''; try { await tools[s.name]({}); } catch (e) { m = e.message; } await send({ body: m });",
    "const s = await secret({}); const it: any = { next: () => ({ value: s, done: false }) }; const [a] = Iterator.from(it) as any; await send({ body: a });",
    "const s = await secret({}); class It { next() { return { value: s, done: false }; } } for (const a of Iterator.from(new It() as any)) { await send({ body: a }); }",
    "const s = await secret({}); let out = ''; const f = [() => { out += '0'; }, () => { out += '1'; }][s.n % 2]; f(); await send({ body: out });",
    "const s = await secret({}); const a = { v: 0 }, b = { v: 0 }; [a, b][s.n % 2].v = 1; await send({ body: a.v });",
    "const s = await secret({}); const a: any[] = [], b: any[] = []; [a, b][s.n % 2].push(1); await send({ body: a.length });",
    "const s = await secret({}); await send({ body: s.text });",
    "await send({ body: (await secret({})).a?.b?.[0]! });",
    "const { text: t = 'x' } = await secret({}); await send({ body: t });",
    "const [, second] = await secret({}); await send({ body: second });",
    "const [a, ...rest] = await secret({}); await send({ body: rest });",
    "let t; ({ t } = await secret({})); await send({ body: t });",
    "let t = ''; [t] = [await secret({})]; await send({ body: t });",
    "const s = await secret({}); const t = [...s.text].reverse().join(''); await send({ body: t });",
    "const s = await secret({}); let t = ''; for (const c of s.text) t = c + t; await send({ body: t });",
    "const s = await secret({}); let t = ''; for (let i = 0; i < s.n; i++) { t += s.text[i]; } await send({ body: t });",
    "const s = await secret({}); let n = 0; for (const k in s) { n += k.length; } await send({ body: n });",
    "const s = await secret({}); await send({ body: s.rows.length });",
    "const s = await secret({}); await send({ body: s.rows.map(() => 'x').length });",
    "const s = await secret({}); await send({ body: s.rows.map(() => 'x').join('') });",
    "const s = await secret({}); await send({ body: btoa(JSON.stringify(s)) });",
    "const s = await secret({}); await send({ body: JSON.parse(JSON.stringify({ s })) });",
    "const s = await secret({}); const o: any = {}; o[s.key] = 1; await send({ body: o });",
    "const s = await secret({}); const t = '0123456789'; await send({ body: t[s.n] });",
    "const s = await secret({}); const o = { a: 1, b: 2 } as any; await send({ body: o[s.key] });",
    "const s = await secret({}); const l: any[] = []; l.push('a'); l.push(s.text); await send({ body: l });",
    "const s = await secret({}); const l: any[] = []; const m = l; m.push(s.text); await send({ body: l });",
    "const s = await secret({}); const o: any = { a: 1 }; const p = o; p.a = s.text; await send({ body: o.a });",
    "const s = await secret({}); const o: any = { a: 1 }; keepIt(o); o.a = 'x'; await send({ body: held.a }); var held: any; function keepIt(x: any) { held = x; held.a = s.text; }",
    "const s = await secret({}); const o = Object.assign({}, { a: 1 }, s); await send({ body: o.a });",
    "const s = await secret({}); const o = { ...s, b: 2 }; await send(o);",
    "const s = await secret({}); const p = { body: s.text }; await send({ to: 'x', ...p });",
    "const s = await secret({}); const m = new Map(); m.set('a', s.text); await send({ body: m.get('a') });",
    "const s = await secret({}); const m = new Map([['a', s.text]]); for (const [k, v] of m) await send({ body: v });",
    "const s = await secret({}); const t = new Set(); t.add(s.text); await send({ body: [...t][0] });",
    "const s = await secret({}); await send({ body: Object.entries(s).map(([k, v]) => `${k}=${v}`).join() });",
    "const s = await secret({}); await send({ body: Object.fromEntries([['a', s.text]]) });",
    "const s = await secret({}); await send({ body: s.rows.filter((r: any) => r.ok).map((r: any) => r.id) });",
    "const s = await secret({}); await send({ body: ['a', 'b'].filter((c) => s.text.includes(c)) });",
    "const s = await secret({}); await send({ body: ['a', 'b'].find((c) => s.text.includes(c)) });",
    "const s = await secret({}); await send({ body: [3, 1, 2].sort((a, b) => s.order[a] - s.order[b]) });",
    "const s = await secret({}); await send({ body: s.rows.reduce((sum: number, r: any) => sum + r.n, 0) });",
    "const s = await secret({}); let t = ''; s.rows.forEach((r: any) => { t += r.id; }); await send({ body: t });",
    "const s = await secret({}); await send({ body: 'abc'.replace(/b/, () => s.text) });",
    "const s = await secret({}); const sep = ', '; await send({ body: sep.concat(s.text) });",
    "const s = await secret({}); const f = () => s.text; await send({ body: f() });",
    "async function get() { return (await secret({})).text; } await send({ body: await get() });",
    "const get = async () => { const s = await secret({}); return { inner: { s } }; }; const { inner: { s } } = await get(); await send({ body: s });",
    "function id<T>(x: T) { return x; } await send({ body: id(await secret({})) });",
    "const apply = (f: any, x: any) => f(x); await send({ body: apply((y: any) => y.text, await secret({})) });",
    "function all(...xs: any[]) { return xs[1]; } await send({ body: all(1, await secret({})) });",
    "function d(x: any = null) { return x; } await send({ body: d(...[await secret({})]) });",
    "const make = () => { let v: any; return { set(x: any) { v = x; }, get() { return v; } }; }; const b = make(); b.set(await secret({})); await send({ body: b.get() });",
    "const f = (await secret({})).f; const g = ((x: any) => x).bind(null, f); await send({ body: g() });",
    "const f = function (this: any) { return this.v; }; await send({ body: f.call({ v: await secret({}) }) });",
    "const f = (x: any) => x; await send({ body: f.apply(null, [await secret({})]) });",
    "function fact(n: number, a: any): any { return n ? fact(n - 1, a) : a; } await send({ body: fact(3, await secret({})) });",
    "const f = function g(n: number, a: any): any { return n ? g(n - 1, a) : a; }; await send({ body: f(3, await secret({})) });",
    "class Box { v: any; constructor(v: any) { this.v = v; } get() { return this.v; } } const b = new Box(await secret({})); await send({ body: b.get() });",
    "class Box { constructor(private v: any) {} get value() { return this.v; } } await send({ body: new Box(await secret({})).value });",
    "class Box { #v: any; set(v: any) { this.#v = v; } toString() { return `${this.#v}`; } } const b = new Box(); b.set(await secret({})); await send({ body: `${b}` });",
    "class A { v: any; keep(v: any) { this.v = v; } } class B extends A { read() { return this.v; } } const b = new B(); b.keep(await secret({})); await send({ body: b.read() });",
    "class A { v: any; constructor(v: any) { this.v = v; } } class B extends A { constructor(v: any) { super(v); } } await send({ body: new B(await secret({})).v });",
    "class A { static v: any; } A.v = await secret({}); await send({ body: A.v });",
    "class E extends Error {} try { throw new E((await secret({})).text); } catch (e: any) { await send({ body: e.message }); }",
    "try { const s = await secret({}); throw new Error(s.text); } catch (e) { await send({ body: String(e) }); }",
    "try { await secret({}); } catch (e: any) { await send({ body: e.message }); }",
    "async function f() { const s = await secret({}); throw s; } const p = f(); try { await p; } catch (e) { await send({ body: e }); }",
    "async function f() { throw await secret({}); } f().catch((e) => send({ body: e }));",
    "try { JSON.parse((await secret({})).text); } catch (e: any) { await send({ body: e.message }); }",
    "await secret({}).then((s: any) => send({ body: s.text }));",
    "await secret({}).then((s: any) => s.text).then((t: any) => send({ body: t }));",
    "const [s] = await Promise.all([secret({}), page({})]); await send({ body: s });",
    "const rs = await Promise.allSettled([secret({})]); for (const r of rs) await send({ body: (r as any).value });",
    "const s = await new Promise((resolve) => { secret({}).then(resolve); }); await send({ body: s });",
    "const s = await secret({}); setTimeout(() => send({ body: s }), 10);",
    "const s = await secret({}); setTimeout(async (x: any) => { await send({ body: x }); }, 10, s);",
    "function* g(s: any) { yield 1; yield s; } for (const x of g(await secret({}))) await send({ body: x });",
    "async function* g() { yield await secret({}); } for await (const x of g()) await send({ body: x });",
    "const s = await secret({}); switch (1) { case 1: { const t = s.text; await send({ body: t }); } }",
    "let t: any = 'a'; while (t.length < 5) { await send({ body: t }); t = (await secret({})).text; }",
    "let t: any; try { t = await secret({}); } finally { await send({ body: t }); }",
    "let t: any = 1; outer: { if (t) { t = await secret({}); break outer; } t = 2; } await send({ body: t });",
    "const o = { get v() { return s; } }; const s = await secret({}); await send({ body: o.v });",
    "const o = { t: 1 as any, put(x: any) { this.t = x; } }; o.put(await secret({})); await send({ body: o.t });",
    "const s = await secret({}); const u = new URL('https://x.example'); u.searchParams.set('q', s.text); await send({ body: u.toString() });",
    "const s = await secret({}); const p = new URLSearchParams({ q: s.text }); await send({ body: `${p}` });",
    "const s = await secret({}); const bytes = new TextEncoder().encode(s.text); await send({ body: Array.from(bytes, (b) => b ^ 7) });",
    "const s = await secret({}); await send({ body: String.raw`a${s.text}` });",
    "const tag = (t: any, ...v: any[]) => v[0]; await send({ body: tag`x${await secret({})}` });",
    "const s = await secret({}); const f = send; await f({ body: s.text });",
    "const s = await secret({}); await tools.send({ body: s.text });",
    "const s = await secret({}); const n = 'se' + 'nd'; await (tools as any)[n]({ body: s.text });",
    "const ts: any = { out: send }; await ts.out({ body: await secret({}) });",
    "await Promise.all((await secret({})).rows.map((body: any) => ({ body })).map(send));",
    "(globalThis as any).x = await secret({}); await send({ body: (globalThis as any).x });",
    "const s = await secret({}); let t: any = null; t ??= s.text; await send({ body: t });",
    "const s = await secret({}); const t = s.a || 'none'; await send({ body: t });",
    "const s = await secret({}); const x = (1, s.text); await send({ body: x });",
    "const s = await secret({}); delete s.iban; await send({ body: s });",
    "const s = await secret({}); const p = await page({}); p.note = s.text; await send({ body: p });",
    "const s = await secret({}); const parts = 'a,b'.split(','); parts.push(s.text); await send({ body: parts.join() });",
    "const s = await secret({}); const o = JSON.parse('{}'); o.x = s; await send({ body: o });",
    "const s = await secret({}); const c = structuredClone({ s }); await send({ body: c.s });",
    "const s = await secret({}); eval('send({ body: s })');",
    "const s = await secret({}); new Proxy({}, { get: () => s }); await send({ body: 'x' });",
    "const s = await secret({}); Array.prototype.push.call([], s); const l: any[] = []; Array.prototype.push.apply(l, [s]); await send({ body: l });",
    "enum K { A = 'a' } const s = await secret({}); const o: any = {}; o[K.A] = s; await send({ body: o[K.A] });",
    "const s = await secret({}); const g = Object.groupBy(s.rows, (r: any) => r.k); await send({ body: g });",
    "const s = await secret({}); await send({ body: [[s.text]].flat() });",
    "const s = await secret({}); const q: any[] = [s]; await send({ body: q.shift() });",
    "const s = await secret({}); const l = [1]; l.splice(0, 1, s.n); await send({ body: l });",
    // Elements at other positions.
    "const q: any = ['a', await secret({})]; await send({ body: q.reverse()[0] });",
    "const q: any = ['a', await secret({})]; q.shift(); await send({ body: q[0] });",
    "const q: any = [await secret({})]; q.unshift('a'); await send({ body: q[1] });",
    "const q: any = ['a', await secret({})]; await send({ body: q.slice(1)[0] });",
    "const q: any = ['a', await secret({})]; await send({ body: q.toSpliced(0, 1)[0] });",
    // What may not be evaluated.
    "let t: any = await secret({}); const f = (a: any, b: any = (a = 'x')) => a; await send({ body: f(t, 1) });",
    "let t: any = await secret({}); let x: any = null; x &&= (t = 'a'); await send({ body: t });",
    "let t: any = await secret({}); let o: any = null; o?.a.b[(t = 'a')]?.(); await send({ body: t });",
    // Exceptions of functions that nothing in the script calls here.
    "const f = async () => { throw await secret({}); }; const p = [1].map(f); try { await Promise.all(p); } catch (e) { await send({ body: e }); }",
    "function* g(s: any) { try { yield 1; } catch (e) { yield e; } } const it = g(1); it.next(); await send({ body: it.throw(await secret({})).value });",
    "function* g(s: any) { throw s; } const it = g(await secret({})); try { it.next(); } catch (e) { await send({ body: e }); }",
    "class M extends Map { set(k: any, v: any) { out.push(v); return this; } } const out: any[] = []; new M([[1, await secret({})]]); await send({ body: out[0] });",
    "const a: any[] = []; const put = a.push.bind(a); put(await secret({})); await send({ body: a[0] });",
    "const a: any[] = []; [].push.call(a, await secret({})); await send({ body: a[0] });",
    "const o: any = { f() { return this.v; } }; await send({ body: [1].map(o.f, { v: await secret({}) })[0] });",
    "const f: any = () => 1; const k = ['con', 'structor'].join(''); await secret({}); await send({ body: f[k]('return 1')() });",
];

/// In each script the secret is read, and does not reach what is sent.
const CLEAN_TS: &[&str] = &[
    "const s = await secret({}); await keep({ body: s.text }); await send({ body: 'done' });",
    "const s = await secret({}); const p = await page({}); await send({ body: p.title });",
    "const [s, p] = await Promise.all([secret({}), page({})]); await send({ body: p.title });",
    "const all = { s: await secret({}), p: await page({}) }; await send({ body: all.p.title });",
    "const { s, ...rest } = { s: await secret({}), p: await page({}) }; await send({ body: rest });",
    "let t = (await secret({})).text; await keep({ body: t }); t = 'x'; await send({ body: t });",
    "let t; if (1) { t = (await secret({})).text; await keep({ body: t }); return; } t = 'a'; await send({ body: t });",
    "const id = (x: any) => x; const s = id(await secret({})); const p = id(await page({})); await send({ body: p });",
    "async function retry(f: any) { for (let i = 0; i < 3; i++) { try { return await f(); } catch (e) { console.log(e); } } } const s = await retry(() => secret({})); const p = await retry(() => page({})); await send({ body: p.title });",
    "class Box { v: any; constructor(v: any) { this.v = v; } get() { return this.v; } } const s = new Box(await secret({})); const p = new Box(await page({})); await send({ body: p.get() });",
    "const s = await secret({}); if (s.ok) await send({ body: 'fine' });",
    "const s = await secret({}); await send({ body: s.ok ? 'fine' : 'bad' });",
    "const s = await secret({}); for (const r of s.rows) await send({ body: 'one more' });",
    "const m = new Map(); m.set('s', await secret({})); m.set('p', await page({})); await send({ body: m.get('p') });",
    "const s = await secret({}); console.log(JSON.stringify(s)); await send({ body: 'read' });",
    "const p = await page({}); const s = await secret({}); await keep({ body: p.text.includes(s.name) }); await send({ body: p.text });",
    "const o: any = { body: (await secret({})).text }; console.log(o.body); o.body = 'x'; await send(o);",
    "const base = { body: (await secret({})).text, to: 'a' }; await send({ ...base, body: 'x' });",
    "const l: any[] = []; l.push(await secret({})); l.push(await page({})); await send({ body: l[1] });",
    "const rows = (await page({})).rows.map((r: any) => r.a); const more = (await secret({})).rows.map((r: any) => r.a); await keep({ body: more }); await send({ body: rows.join() });",
];

const CARRIED_PY: &[&str] = &[
    "s = await secret()\nm = ''\ntry:\n    await keep(body=s)\nexcept Exception as e:\n    m = str(e)\nawait send(body=m)",
    "s = await secret()\nm = ''\ntry:\n    await call_tool(s['name'], {})\nexcept Exception as e:\n    m = str(e)\nawait send(body=m)",
    "from functools import partial\ns = await secret()\nf = partial(lambda a, b: b, 1)\nawait send(body=f(s))",
    "from functools import partial\ns = await secret()\nf = partial(lambda a, b: a, s)\nawait send(body=f(1))",
    "from dataclasses import dataclass, field\n@dataclass\nclass A:\n    rows: list = field(default_factory=list)\na = A()\na.rows.append(await secret())\nawait send(body=a.rows)",
    "from collections import defaultdict\ns = await secret()\nd = defaultdict(lambda: s)\nawait send(body=d['k'])",
    "from collections import defaultdict\ns = await secret()\nd = defaultdict(int)\nd[s['k']]\nawait send(body=list(d))",
    "s = await secret()\nawait send(body=list(map(str.upper, s['rows'])))",
    "s = await secret()\nconv = {'a': int, 'b': str}\nawait send(body=conv['a'](s['n']))",
    "s = await secret()\nrun = {'a': lambda x: x}\nawait send(body=run['a'](s))",
    "s = await secret()\nout = []\n[lambda: out.append('0'), lambda: out.append('1')][s['n'] % 2]()\nawait send(body=out)",
    "s = await secret()\na, b = {'v': 0}, {'v': 0}\n[a, b][s['n'] % 2]['v'] = 1\nawait send(body=a['v'])",
    "s = await secret()\nawait send(body=s['text'])",
    "s = await secret()\nawait send('x', s)",
    "s = await secret()\nawait send(**{'body': s})",
    "s = await secret()\nargs = {'to': 'a'}\nargs['body'] = s['text']\nawait send(**args)",
    "s = await secret()\nawait send(*['x', s])",
    "a, b = (await secret(), 1)\nawait send(body=a)",
    "a, *rest = await secret()\nawait send(body=rest)",
    "*rest, last = await secret()\nawait send(body=last)",
    "s = await secret()\nawait send(body=s['text'][::-1])",
    "s = await secret()\nawait send(body=f\"{s['n']:>{s['w']}}\")",
    "s = await secret()\nawait send(body='%s' % s['text'])",
    "s = await secret()\nawait send(body='{x}'.format(x=s))",
    "s = await secret()\nawait send(body=', '.join(str(r) for r in s['rows']))",
    "s = await secret()\nsep = ','\nawait send(body=sep.join(s['rows']))",
    "s = await secret()\nawait send(body=len(s['rows']))",
    "s = await secret()\nawait send(body=len([1 for _ in s['rows']]))",
    "s = await secret()\nawait send(body=[c for c in 'abc' if c in s['text']])",
    "s = await secret()\nawait send(body={k: v for k, v in s.items()})",
    "s = await secret()\nd = {}\nfor k, v in s.items():\n    d.setdefault(k, []).append(v)\nawait send(body=d)",
    "s = await secret()\nd = {}\nd[s['k']] = 1\nawait send(body=list(d))",
    "s = await secret()\nl = []\nl += [s]\nawait send(body=l)",
    "s = await secret()\nl = [1] + [s]\nawait send(body=l[1])",
    "s = await secret()\nl = []\nm = l\nm.append(s)\nawait send(body=l)",
    "s = await secret()\nd = {'a': 1}\nd.update({'b': s})\nawait send(body=d['b'])",
    "s = await secret()\nd = dict(a=s)\nawait send(body=d['a'])",
    "s = await secret()\nd = {**{'a': s}}\nawait send(body=d['a'])",
    "s = await secret()\nawait send(body=sorted([3, 1], key=lambda x: s[str(x)]))",
    "s = await secret()\nawait send(body=list(map(lambda r: r['id'], s['rows'])))",
    "s = await secret()\nfor i, r in enumerate(s['rows']):\n    await send(body=i)",
    "s = await secret()\nfor a, b in zip([1], s['rows']):\n    await send(body=b)",
    "s = await secret()\nawait send(body=max(s['rows'], key=len))",
    "s = await secret()\nawait send(body=sum(r['n'] for r in s['rows']))",
    "def f(x, y=None, *rest, **more):\n    return more\nawait send(body=f(1, k=await secret()))",
    "def f(x, y=None, *rest, **more):\n    return rest\nawait send(body=f(1, 2, await secret()))",
    "def f(x, y=None):\n    return y\nawait send(body=f(1, y=await secret()))",
    "s = await secret()\ndef f(x=s):\n    return x\nawait send(body=f())",
    "async def get():\n    return await secret()\nawait send(body=await get())",
    "def outer():\n    v = None\n    def put(x):\n        nonlocal v\n        v = x\n    def get():\n        return v\n    return put, get\nput, get = outer()\nput(await secret())\nawait send(body=get())",
    "v = None\ndef put(x):\n    global v\n    v = x\nput(await secret())\nawait send(body=v)",
    "class Box:\n    def __init__(self, v):\n        self.v = v\n    def get(self):\n        return self.v\nawait send(body=Box(await secret()).get())",
    "class A:\n    def __init__(self, v):\n        self.v = v\nclass B(A):\n    def __init__(self, v):\n        super().__init__(v)\nawait send(body=B(await secret()).v)",
    "class A:\n    def __init__(self):\n        self.rows = []\n    def add(self, r):\n        self.rows.append(r)\n    def __str__(self):\n        return str(self.rows)\na = A()\na.add(await secret())\nawait send(body=str(a))",
    "class A:\n    def __init__(self, v):\n        self._v = v\n    @property\n    def v(self):\n        return self._v\nawait send(body=A(await secret()).v)",
    "class A:\n    items = []\n    @classmethod\n    def put(cls, x):\n        cls.items.append(x)\nA.put(await secret())\nawait send(body=A.items)",
    "from collections import defaultdict\ns = await secret()\nd = defaultdict(list)\nfor r in s['rows']:\n    d[r['k']].append(r)\nawait send(body=d)",
    "from collections import defaultdict\ns = await secret()\nd = defaultdict(list)\nfor r in s:\n    d[r['k']].append(1)\nawait send(body=' '.join(d.keys()))",
    "from dataclasses import dataclass\n@dataclass\nclass P:\n    a: str\n    b: str = ''\np = P('x', await secret())\nawait send(body=p.b)",
    "try:\n    s = await secret()\n    raise ValueError(s['text'])\nexcept ValueError as e:\n    await send(body=str(e))",
    "try:\n    await secret()\nexcept Exception as e:\n    await send(body=f'{e}')",
    "s = await secret()\ntry:\n    int(s['text'])\nexcept ValueError as e:\n    await send(body=str(e))",
    "s = await secret()\ntry:\n    {}[s['k']]\nexcept KeyError as e:\n    await send(body=str(e))",
    "import asyncio\ns, p = await asyncio.gather(secret(), page())\nawait send(body=s)",
    "import asyncio\nt = asyncio.create_task(secret())\nawait send(body=await t)",
    "import json\ns = await secret()\nd = json.loads(json.dumps(s))\nawait send(body=d)",
    "import json\ns = await secret()\nd = json.loads('{}')\nd['s'] = s\nawait send(body=d)",
    "import re\ns = await secret()\nm = re.search(r'a(.)', s['text'])\nawait send(body=m.group(1))",
    "import re\ns = await secret()\nawait send(body=re.sub('a', lambda m: s['text'], 'a'))",
    "def g(s):\n    yield 1\n    yield s\nfor x in g(await secret()):\n    await send(body=x)",
    "s = await secret()\nif (t := s['text']):\n    pass\nawait send(body=t)",
    "s = await secret()\nmatch s:\n    case {'text': t}:\n        await send(body=t)",
    "s = await secret()\nt = s.get('a', 'b')\nawait send(body=t)",
    "s = await secret()\nt = getattr(s, 'x', None)\nawait send(body=t)",
    "s = await secret()\nt = s['a'] if 1 else 2\nawait send(body=t)",
    "s = await secret()\nf = send\nawait f(body=s)",
    "t = ''\nfor i in range(3):\n    await send(body=t)\n    t = await secret()",
    "s = await secret()\nawait call_tool('se' + 'nd', {'body': s})",
    "s = await secret()\nt = 'a'.split(',')\nt.append(s)\nawait send(body=t)",
    "from functools import reduce\ns = await secret()\nawait send(body=reduce(lambda a, b: a + b['n'], s['rows'], 0))",
    "import functools\nasync def f(a, b):\n    await send(body=b)\ng = functools.partial(f, 1)\nawait g(await secret())",
    "q = ['a', await secret()]\nq.reverse()\nawait send(body=q[0])",
    "q = ['a', await secret()]\nawait send(body=q[1:][0])",
    "q = ['a', await secret()]\ndel q[0]\nawait send(body=q[0])",
    "q = ['a']\nq[0:1] = [1, await secret()]\nawait send(body=q[0])",
    "t = await secret()\n[(t := 'a') for _ in []]\nawait send(body=t)",
    "t = await secret()\n1 > 2 > (t := 'a')\nawait send(body=t)",
    "class Quiet:\n    def __enter__(self): return self\n    def __exit__(self, *a): return True\nt = await secret()\nwith Quiet():\n    int('x')\n    t = 'a'\nawait send(body=t)",
    "import traceback\ns = await secret()\ntry:\n    raise ValueError(s)\nexcept ValueError:\n    await send(body=traceback.format_exc())",
    "import io, csv\nb = io.StringIO()\nw = csv.writer(b)\nw.writerow([await secret()])\nawait send(body=b.getvalue())",
    "from html.parser import HTMLParser\nclass P(HTMLParser):\n    def handle_data(self, d):\n        self.seen = d\np = P()\np.feed(await secret())\nawait send(body=p.seen)",
    "def g():\n    try:\n        yield 1\n    except ValueError as e:\n        yield e\ni = g()\nnext(i)\nawait send(body=str(i.throw(ValueError(await secret()))))",
    "s = await secret()\ndef f(x):\n    raise ValueError(s)\nm = map(f, [1])\ntry:\n    list(m)\nexcept ValueError as e:\n    await send(body=str(e))",
    "s = await secret()\nclass A:\n    def __eq__(self, o):\n        return self.log.append(o)\n    log = []\n[A()].count(s)\nawait send(body=A.log[0])",
    "a = []\ngetattr(a, 'app' + 'end')(await secret())\nawait send(body=a[0])",
    "class A: pass\nA.v = await secret()\nawait send(body='{0.v}'.format(A()))",
    "import operator\na = []\noperator.methodcaller('append', await secret())(a)\nawait send(body=a[0])",
    "def helper(self, x):\n    self.out = x\nclass A:\n    put = helper\na = A()\na.put(await secret())\nawait send(body=a.out)",
];

const CLEAN_PY: &[&str] = &[
    "s = await secret()\nawait keep(body=s)\nawait send(body='done')",
    "s = await secret()\np = await page()\nawait send(body=p['title'])",
    "import asyncio\ns, p = await asyncio.gather(secret(), page())\nawait send(body=p['title'])",
    "r = await secret()\nawait keep(body=r)\nr = await page()\nawait send(body=r)",
    "def pick(x, k):\n    return x[k]\na = pick(await secret(), 'a')\nb = pick(await page(), 'a')\nawait send(body=b)",
    "d = {'s': await secret(), 'p': await page()}\nawait send(body=d['p'])",
    "s = await secret()\nif s['ok']:\n    await send(body='fine')",
    "s = await secret()\nawait send(body='fine' if s['ok'] else 'bad')",
    "s = await secret()\nprint(len(s))\nawait send(body='read')",
    "m = {'body': (await secret())['t']}\nprint(m['body'])\nm['body'] = 'x'\nawait send(**m)",
    "class Box:\n    def __init__(self, v):\n        self.v = v\ns = Box(await secret())\np = Box(await page())\nawait send(body=p.v)",
    "async def main():\n    s = await secret()\n    await keep(body=s)\n    p = await page()\n    await send(body=p['title'])\nawait main()",
];

#[test]
fn data_is_followed_through_every_construct() {
    let mut lost = String::new();
    for (language, scripts) in [(TypeScript, CARRIED_TS), (Python, CARRIED_PY)] {
        for script in scripts {
            if !reaches(language, script) {
                writeln!(lost, "{script}\n  {:?}", flows(language, script)).unwrap();
            }
        }
    }
    assert!(lost.is_empty(), "the secret is lost in:\n{lost}");
}

#[test]
fn what_is_read_and_not_sent_stops_nothing() {
    let mut wrong = String::new();
    for (language, scripts) in [(TypeScript, CLEAN_TS), (Python, CLEAN_PY)] {
        for script in scripts {
            if reaches(language, script) {
                writeln!(wrong, "{script}\n  {:?}", flows(language, script)).unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "the secret is sent in:\n{wrong}");
}

#[test]
fn a_decision_is_told_apart_from_data() {
    let cases = [
        (TypeScript, "const s = await secret({}); if (s.ok) await send({ body: 'x' });"),
        (TypeScript, "const s = await secret({}); await send({ body: s.ok ? 'x' : 'y' });"),
        (TypeScript, "const s = await secret({}); if (!s.ok) return; await send({ body: 'x' });"),
        (
            TypeScript,
            "const s = await secret({}); let t = 'x'; if (s.ok) t = 'y'; await send({ body: t });",
        ),
        (
            TypeScript,
            "const s = await secret({}); for (const r of s.rows) await send({ body: 'x' });",
        ),
        (TypeScript, "const s = await secret({}); s.ok && await send({ body: 'x' });"),
        (
            TypeScript,
            "const s = await secret({}); switch (s.k) { case 'a': await send({ body: 'x' }); }",
        ),
        (
            TypeScript,
            "async function f() { await send({ body: 'x' }); } const s = await secret({}); if (s.ok) await f();",
        ),
        (
            TypeScript,
            "const s = await secret({}); let k = 0; s.rows.forEach(() => { k++; }); await send({ body: k });",
        ),
        (
            TypeScript,
            "const s = await secret({}); const f = { a: () => send({ body: 'x' }) }; await f[s.k]();",
        ),
        (
            Python,
            "s = await secret()\nx = '0'\ntry:\n    int(s)\n    x = '1'\nexcept ValueError:\n    pass\nawait send(body=x)",
        ),
        (Python, "s = await secret()\nif s['ok']:\n    await send(body='x')"),
        (Python, "s = await secret()\nwhile s['ok']:\n    await send(body='x')"),
        (
            Python,
            "s = await secret()\nfor r in s:\n    if r:\n        continue\n    await send(body='x')",
        ),
        (Python, "s = await secret()\nl = []\nif s['ok']:\n    l.append(1)\nawait send(body=l)"),
    ];
    for (language, script) in cases {
        let flows = flows(language, script);
        assert!(
            flows.iter().any(|flow| flow.starts_with("secret>send") && flow.ends_with('?')),
            "{script}: {flows:?}"
        );
        assert!(!reaches(language, script), "{script}: {flows:?}");
    }
}

#[test]
fn arguments_and_ways_are_named() {
    let script = "const rows = await secret({});\nconst p = await page({});\nconst text = rows.map((r: any) => r.id).join();\nawait send({ to: p.owner, body: text });";
    let flow = flow_of(TypeScript, script).unwrap();
    let shown: Vec<_> = flow
        .flows
        .iter()
        .map(|edge| {
            let tool = |call: u32| flow.calls[call as usize].tool.as_deref().unwrap_or("*");
            format!(
                "{} > {}.{} by {:?}",
                tool(edge.from),
                tool(edge.to),
                edge.argument.as_deref().unwrap_or("*"),
                edge.through
            )
        })
        .collect();
    insta::assert_debug_snapshot!(shown, @r#"
    [
        "secret > send.body by [\"rows\", \"text\"]",
        "page > send.to by [\"p\"]",
    ]
    "#);
    assert_eq!(flow.calls.iter().map(|call| call.line).collect::<Vec<_>>(), [1, 2, 4]);
}

#[test]
fn what_is_too_much_is_unknown_and_ends() {
    // Each line doubles the values that the next one holds.
    let mut script = String::from("const o: any = await secret({}); let x0: any = [o];\n");
    for at in 0..5_000 {
        writeln!(script, "const f{at} = (y: any) => [y, x0, f{}]; x0 = f{at}(x0);", at.max(1) - 1)
            .unwrap();
    }
    script.push_str("await send({ body: x0 });");
    assert!(reaches(TypeScript, &script));
    let mut calls = String::new();
    for at in 0..1_500 {
        writeln!(calls, "await send(body=await secret(id={at}))").unwrap();
    }
    assert_eq!(flow_of(Python, &calls), None);
}

/// Scripts, and the source that runs.
#[rustfmt::skip]
const PLACES: &[(Language, &str, &str)] = &[
    (TypeScript, "const s = await secret({}); await send({ body: s });", "const s = await _0    ({}); await _1  ({ body: s });"),
    (TypeScript, "const s: any = await tools.secret({}) as string;", "const s      = await _0          ({})          ;"),
    (TypeScript, "await tools\n  .secret({});", "await _0             \n({});"),
    (TypeScript, "await (secret as any)?.({});", "await (_0           )?.({});"),
    (TypeScript, "const _0 = 1; await secret({ id: `${_0}` });", "const _0 = 1; await _1    ({ id: `${_0}` });"),
    (TypeScript, "const o = { '_0': 1 }; await secret({ id: o['_0'] });", "const o = { '_0': 1 }; await _1    ({ id: o['_0'] });"),
    (TypeScript, "const f = secret; await f({}); [{}].map(send);", "const f = secret; await f({}); [{}].map(send);"),
    (TypeScript, "const n = 'secret'; await tools[n]({}); await secret.call(null, {});", "const n = 'secret'; await tools[n]({}); await secret.call(null, {});"),
    (TypeScript, "secret = async () => 1; await secret({}); await send({});", "secret = async () => 1; await secret({}); await _0  ({});"),
    (TypeScript, "tools.secret = async () => 1; await tools.secret({}); await send({});", "tools.secret = async () => 1; await tools.secret({}); await _0  ({});"),
    (TypeScript, "{ function secret(x: any) { return x; } secret({}); } await secret({});", "{ function secret(x     ) { return x; } secret({}); } await secret({});"),
    (TypeScript, "await call_tool({ name: 'secret', arguments: {} });", "await _0       ({ name: 'secret', arguments: {} });"),
    (TypeScript, "const x = 1; await secret({ id: eval('x') });", "const x = 1; await secret({ id: eval('x') });"),
    (Python, "s = await secret()\nawait send(body=f'{await secret(id=s)}')", "s = await _0    ()\nawait _1  (body=f'{await _2    (id=s)}')"),
    (Python, "_1 = 2\nawait secret(id=_1)\nawait send('x', _1)", "_1 = 2\nawait _0    (id=_1)\nawait _2  ('x', _1)"),
    (Python, "def f(t):\n    return t()\nawait f(secret)\nawait send('x')", "def f(t):\n    return t()\nawait f(secret)\nawait _0  ('x')"),
    (Python, "def g(secret):\n    return secret()\nawait g(send)\nawait secret()", "def g(secret):\n    return secret()\nawait g(send)\nawait secret()"),
    (Python, "await call_tool('secret', {'id': 1})", "await _0       ('secret', {'id': 1})"),
];

#[test]
fn a_direct_call_of_a_tool_gets_a_name_that_nothing_else_has() {
    for (language, script, source) in PLACES {
        let checked = checked(*language, script);
        assert_eq!(checked.source, *source, "{script}");
        for place in &checked.places {
            assert!(!script.contains(&format!("{}(", place.alias)), "{script}");
            assert!(script.contains(&place.function), "{script}");
        }
        let calls = checked.flow.map(|flow| flow.calls).unwrap_or_default();
        let mut placed: Vec<u32> = calls.iter().filter_map(|call| call.place).collect();
        placed.sort_unstable();
        let all: Vec<u32> = (0..).take(checked.places.len()).collect();
        assert_eq!(placed, all, "each place is that of one call: {script}");
    }
}

#[test]
fn two_calls_of_a_tool_are_two_origins() {
    let scripts = [
        (
            TypeScript,
            "const a = await secret({});\nconst b = await secret({});\nawait send({ body: b });\nconsole.log(a);\nawait send({ to: 'x' });",
        ),
        (
            Python,
            "a = await secret()\nb = await secret()\nawait send(body=b)\nprint(a)\nawait send(to='x')",
        ),
    ];
    for (language, script) in scripts {
        let flow = flow_of(language, script).unwrap();
        let line = |call: u32| flow.calls[call as usize].line;
        let lines: Vec<_> = flow.flows.iter().map(|it| (line(it.from), line(it.to))).collect();
        assert_eq!(lines, [(2, 3)], "{script}");
    }
}

#[test]
fn what_is_read_in_a_script_is_data_of_a_call() {
    for (language, script, expected) in [
        (
            TypeScript,
            "const r = await read_resource('a:b'); await send({ body: r.text });",
            "read_resource>send.body",
        ),
        (
            TypeScript,
            "const o = await read_output('out_1', 5); await send({ body: o.text.length });",
            "read_output>send.body",
        ),
        (
            TypeScript,
            "const o = await read_output({ id: 'out_1' }); await send({ body: o.text });",
            "read_output>send.body",
        ),
        (
            TypeScript,
            "const s = await secret({}); await read_resource(`a:${s.id}`);",
            "secret>read_resource.uri",
        ),
        (Python, "r = await read_resource('a:b')\nawait send(body=r)", "read_resource>send.body"),
        (
            Python,
            "s = await secret()\nr = await read_resource(uri=s['id'])\nawait send(body=r)",
            "secret>read_resource.uri",
        ),
    ] {
        let found = flows(language, script);
        assert!(found.iter().any(|flow| flow == expected), "{script}: {found:?}");
    }
}

#[test]
fn what_extract_makes_of_data_is_that_data() {
    for (language, script) in [
        (
            TypeScript,
            "const s = await secret({}); const t = await extract(s.text, 'string', 'a hint'); await send({ body: t });",
        ),
        (
            TypeScript,
            "const s = await secret({}); const t = await tools.extract(s, { type: 'object' }); await send({ body: t.name });",
        ),
        (
            TypeScript,
            "const f = extract; const s = await secret({}); await send({ body: await f([s], 'string') });",
        ),
        (
            TypeScript,
            "const s = await secret({}); const t = await extract('x', 'string', s.text); await send({ body: t });",
        ),
        (
            TypeScript,
            "const s = await secret({}); try { await extract(s, 'string') } catch (error) { await send({ body: error.message }) }",
        ),
        (Python, "s = await secret()\nt = await extract(s['text'], 'string')\nawait send(body=t)"),
        (
            Python,
            "s = await secret()\nt = await extract(value=s, type={'type': 'object'}, hint='x')\nawait send(body=t['name'])",
        ),
    ] {
        let found = flows(language, script);
        assert!(
            found.iter().any(|flow| flow.starts_with("secret>extract.")),
            "{script}: {found:?}"
        );
        assert!(found.iter().any(|flow| flow == "extract>send.body"), "{script}: {found:?}");
        assert!(found.iter().any(|flow| flow == "secret>send.body"), "{script}: {found:?}");
    }
    let apart = "const s = await secret({}); await extract(s, 'string'); await send({ body: await extract('x', 'string') });";
    let found = flows(TypeScript, apart);
    assert!(!found.iter().any(|flow| flow == "secret>send.body"), "{found:?}");
}
