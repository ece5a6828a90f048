//! TypeScript and JavaScript.

use serde_json::json;

use super::fixture::{Fake, run};
use crate::check::{Language, typescript::NOT_RETURNED};

fn cases(cases: &[(&str, &[&str])]) {
    run(Language::TypeScript, cases);
}

#[test]
fn correct_scripts_have_no_findings() {
    let fine: &[&str] = &[
        "const issues = await github_list_issues({ owner: 'a', repo: 'b' });\nreturn issues.length;",
        "const x: number = 1; return x",
        "return await Promise.all(['a', 'b'].map(repo => github_list_issues({ owner: 'a', repo })));",
        "const p = github_list_issues({ owner: 'a', repo: 'b' }); const r = await p; return r;",
        "const all = [1, 2].map(page => github_list_issues({ owner: 'a', repo: 'b', page })); return Promise.all(all);",
        "return github_list_issues({ owner: 'a', repo: 'b' });",
        "github_list_issues({ owner: 'a', repo: 'b' }).then(r => console.log(r));",
        "void notes_clear();",
        "return false ? nope_tool({}) : 1;",
        "if (false) { nope_tool({}); nope.x(); tools.nope_tool({}); }",
        "const unused = () => github_list_issues({ owner: 1 }); return 2;",
        "async function unused() { return (await nope_tool({})).x }\nreturn 2;",
        "class Unused { async get() { return (await nope_tool({})).x } }\nreturn 2;",
        "await notes_clear({});",
        "await tools.notes_clear();",
        "await tools['notes_clear']({});",
        "const name = 'x'; await (tools as any)[name]({});",
        "async function main() { await notes_clear(); }\nmain();",
        "async function main() { await notes_clear(); }\nawait main();",
        "['a'].forEach(async owner => { await github_list_issues({ owner, repo: 'b' }); });",
        "const args = { owner: 'a', repo: 'b' }; await github_list_issues(args);",
        "const rest: any = {}; await github_list_issues({ owner: 'a', ...rest });",
        "const k = 'repo'; await github_list_issues({ owner: 'a', [k]: 'b' });",
        "const a = []; await github_list_issues(...a);",
        "await github_list_issues({ owner: 'a', repo: `b${1}`, state: 'open', labels: ['x'], page: 2 });",
        "await github_list_issues({ owner: 'a', repo: 'b', page: undefined });",
        "await github_create_issue({ title: 'x', body: null });",
        "const more = { anything: 1 }; console.log(more); await github_create_issue({ title: 'x', ...more });",
        "const issue = { title: 'x', anything: 1 }; console.log(issue); await github_create_issue(issue);",
        "const k = 'anything'; await github_create_issue({ title: 'x', [k]: 1 });",
        "await shop_buy({ lines: [{ sku: 'a', count: 1 }], payment: { kind: 'cash' }, meta: { a: 1 } });",
        "const l: any = []; await shop_buy({ lines: [...l] });",
        "const github_list_issues = async (a: any) => a; github_list_issues(1);",
        "function notes_clear(a: number) {} notes_clear(1);",
        "const results = ['x'].map(get_team_members as any); return results;",
        "if (typeof fetch === 'function') { fetch('x'); }",
        "const r = await search_tools({ query: 'x' }); return r;",
        "const { items } = await notes_list({}); return items;",
        "let p; p = notes_list({}); return await p;",
        "const p = notes_list({}); return [await p, await p];",
        "const x = true ? await notes_list({}) : null; return x;",
        "const x = await (true ? notes_list({}) : notes_list()); return x;",
        "const c: Promise<unknown>[] = []; c.push(notes_list({})); await Promise.all(c);",
        "const r = await Promise.race([notes_list({}), new Promise(r => setTimeout(r, 10))]); return r;",
        "const jobs = { a: notes_list({}) }; return await jobs.a;",
        "const p = notes_list({}); if (p) { await p; }",
        "function f() { return arguments.length; } return f();",
        "x = 5; return x;",
        "globalThis.helper = () => 1; return helper();",
        "await Promise.all([{ limit: 1 }].map(notes_list));",
        "async function main() {}\nmain().catch((e) => { console.error(e); process.exit(1); });",
        "return 'notes_list' in tools && Object.keys(tools);",
        "return tools.not_a_tool === undefined;",
        "return await globalThis.notes_list({ limit: 1 });",
        "globalThis.setTimeout(() => 1); globalThis.helper?.();",
        "const notes_list = (x: number) => x > 0 ? notes_list(x - 1) : 0; return notes_list(3);",
        "const own = (f: any) => own; const other = own(1); return other;",
        "Here is the script:\n\n```ts\nawait notes_clear();\n```\n\nIt clears them.",
        "```ts\nawait notes_clear();\n```\nIt's all.",
        "Done!\n```ts\nawait notes_clear();\n```\n",
        "/*\n```\nnot_a_tool()\n```\n*/\nreturn 1;",
        "return new URL('https://a.b').host;",
        "```ts\nawait notes_clear();\n```",
        "label: for (;;) { break label; }",
        "declare function notes_list(args?: { limit?: number }): Promise<unknown>;\nawait notes_list({ limit: 1 });",
        "declare const helper: any;\nreturn typeof helper;",
        "#!/usr/bin/env deno\nawait notes_clear();",
        "export async function main() { await notes_clear(); }\nawait main();",
        "return await tools.github.list_issues({ owner: 'a', repo: 'b' });",
        "return await tools['github'].list_issues({ owner: 'a', repo: 'b' });",
        "return tools.notes_list.name + typeof tools.notes_list.call;",
        "const n = 'notes_list'; return await globalThis[n]({ limit: 1 });",
        "import { createHash } from 'node:crypto'; return createHash('md5').update('x').digest('hex');",
        "import { setTimeout as sleep } from 'node:timers/promises'; await sleep(5);",
        "import crypto, { type Hash } from 'crypto'; const h: Hash = crypto.createHash('md5'); return h;",
        "const { createHash } = require('crypto'); return createHash('md5');",
        "const c = await import('node:crypto'); return c.randomUUID();",
        "class A { accessor x = 1; static accessor y: number; } return new A().x;",
        "const t = notes_list({}) as Promise<any>; return (await t)!.x;",
        "try { await notes_clear(); } catch { console.log('no'); } finally { }",
        "await github_list_issues({ owner: 'a', repo: 'b' } as any);",
    ];
    let cases_of: Vec<(&str, &[&str])> =
        fine.iter().map(|source| (*source, [].as_slice())).collect();
    cases(&cases_of);
}

/// Which elements of a list come to a call may be decided before.
#[test]
fn elements_that_may_not_come_to_a_call_are_not_refused() {
    let rows =
        "const rows = [{ id: 1, skip: false, kind: 'a' }, { id: 'x', skip: true, kind: 'b' }];";
    let fine = [
        "const ids = [null, 2]; return Promise.all(ids.filter(Boolean).map((limit) => notes_list({ limit })));",
        "const ids = [null, 2]; return Promise.all(ids.filter((x) => x !== null).map((limit) => notes_list({ limit })));",
        "const ids = ['a', 2]; const nums = ids.filter((x): x is number => typeof x === 'number');\nfor (const limit of nums) await notes_list({ limit });",
        "const ids = ['header', 1, 2]; for (const limit of ids.slice(1)) await notes_list({ limit });",
        "const ids = ['header', 1]; for (let i = 1; i < 2; i++) await notes_list({ limit: ids[i] });",
        "const ids = [1, 'x']; for (const limit of ids) { await notes_list({ limit }); break; }",
        "const ids = [1, 'x']; const one = ids.find((id) => Number.isInteger(id)); await notes_list({ limit: one });",
        "const ids = [1, 'x']; ids.some(async (limit) => { await notes_list({ limit }); return true; });",
        "const list = [{ limit: '5' }]; list.forEach((o) => { o.limit = +o.limit }); await notes_list(list[0]);",
        "const list = [{ limit: '5' }]; for (const o of list) o.limit = 5; await notes_list(list[0]);",
        "const list = [{ limit: '5' }]; const fix = (o) => { o.limit = 5 }; list.forEach(fix); await notes_list(list[0]);",
        "const list = [{ limit: '5' }]; const first = list[0]; first.limit = 5; await notes_list(list[0]);",
        "const list = [{ limit: '5' }]; const [first] = list; first.limit = 5; await notes_list(list[0]);",
        "const o = { in: { limit: '5' } }; const fix = (p) => { p.limit = 5 }; fix(o.in); await notes_list(o.in);",
        "const o = { in: { limit: '5' } }; const { in: p } = o; p.limit = 5; await notes_list(o.in);",
    ];
    for script in fine {
        cases(&[(script, &[])]);
    }
    for script in [
        "for (const r of rows) { if (r.skip) continue; await notes_list({ limit: r.id }); }",
        "for (const r of rows) { if (r.kind.startsWith('b')) continue; await notes_list({ limit: r.id }); }",
        "for (const { id, skip } of rows) { if (skip) continue; await notes_list({ limit: id }); }",
        "for (const { id, kind } of rows) { switch (kind) { case 'a': await notes_list({ limit: id }); } }",
        "await Promise.all(rows.filter((r) => !r.skip).map((r) => notes_list({ limit: r.id })));",
        "await Promise.all(rows.map((r) => r.skip ? null : notes_list({ limit: r.id })));",
        "await Promise.all(rows.map(({ id, skip }) => !skip && notes_list({ limit: id })));",
        "const good = rows.find((r) => Number.isInteger(r.id)); await notes_list({ limit: good.id });",
    ] {
        cases(&[(&format!("{rows}\n{script}"), &[])]);
    }
    // All of them come to it, or none of them fits.
    let wrong = "1 `limit` takes an integer, not a string";
    cases(&[
        (
            "const ids = [1, 'x']; await Promise.all(ids.map((limit) => notes_list({ limit })));",
            &[wrong],
        ),
        ("const ids = [1, 'x']; for (const limit of ids) await notes_list({ limit });", &[wrong]),
        (
            "const ids = ['a', 'b']; for (const limit of ids.slice(1)) await notes_list({ limit });",
            &[wrong, wrong],
        ),
        (
            "const list = [{ limit: '5' }]; list.forEach((o) => console.log(o.limit)); await notes_list(list[0]);",
            &[wrong],
        ),
        (
            "const o = { limit: '5' }; const show = (x) => console.log(x); show(o.limit); await notes_list(o);",
            &[wrong],
        ),
    ]);
}

#[test]
fn unknown_arguments_are_refused() {
    let none = "1 `github_create_issue` has no parameter `anything`";
    cases(&[
        ("await github_create_issue({ title: 'x', anything: 1 });", &[none]),
        (
            "const more: any = {}; await github_create_issue({ ...more, title: 'x', anything: 1 });",
            &[none],
        ),
        (
            "await get_budget_by_level({ level: 1, extra: 2 });",
            &["1 `get_budget_by_level` has no parameter `extra`"],
        ),
    ]);
    // These say that they take others.
    for more in [
        json!({ "additionalProperties": true }),
        json!({ "additionalProperties": { "type": "integer" } }),
        json!({ "patternProperties": { "^x": {} } }),
        json!({ "propertyNames": { "maxLength": 3 } }),
        json!({ "allOf": [{ "properties": { "foo": {} } }] }),
    ] {
        let mut schema =
            json!({ "type": "object", "properties": { "limit": { "type": "integer" } } });
        for (keyword, value) in more.as_object().unwrap() {
            schema[keyword] = value.clone();
        }
        let source = "return await tool({ limit: 1, foo: 2 });";
        let checked = Fake::with("tool", schema).check(Language::TypeScript, source);
        assert!(!checked.has_errors(), "{more}\n{:?}", checked.findings);
    }
}

#[test]
fn syntax() {
    cases(&[
        ("const a = ;", &["1 syntax error: Unexpected token"]),
        ("await notes_clear(;", &["1 syntax error: Unexpected token"]),
        (
            "const a = 1;\nconst a = 2;",
            &["2 syntax error: Identifier `a` has already been declared"],
        ),
        (
            "[1].map(x => { await notes_clear(); });",
            &[
                "1 syntax error: `await` is only allowed within async functions and at the top levels of modules",
            ],
        ),
        ("break;", &["1 syntax error: Illegal break statement"]),
        (
            "def f():\n    return 1",
            &[
                "1 syntax error: Expected a semicolon or an implicit semicolon after a statement, but found none",
            ],
        ),
    ]);
}

#[test]
fn tools_that_do_not_exist() {
    cases(&[
        ("await github_list_isues({});", &["1 there is no tool `github_list_isues`"]),
        ("await tools.github_list_isues({});", &["1 there is no tool `github_list_isues`"]),
        ("await tools['nope']({});", &["1 there is no tool `nope`"]),
        ("\n\nawait github.list_issues({ owner: 'a', repo: 'b' });", &["3 there is no `github`"]),
        ("await something_else();", &["1 there is no tool `something_else`"]),
        ("const issues = []; return isues.length;", &["1 `isues` is not defined"]),
        ("return undefinedThing;", &["1 `undefinedThing` is not defined"]),
        ("await fetch('https://x');", &["1 a script has no network"]),
        ("const fs = require('fs');", &["1 a script has no modules but some of Node"]),
        (
            "console.log(Deno.env.get('X'));",
            &["1 a script has no files, no processes and no environment"],
        ),
        ("import axios from 'axios';\naxios.get('x');", &["1 there is no module `axios`"]),
        (
            "import { github_list_issues } from './tools';\nawait github_list_issues({ owner: 'a', repo: 'b' });",
            &["1 there is no module `./tools`"],
        ),
        (
            "const m = await import('fs'); return m;",
            &["1 a script has no modules but some of Node"],
        ),
        ("export * from 'fs';", &["1 a script has no modules but some of Node"]),
        ("export { a } from './a';", &["1 a script has no modules but some of Node"]),
        ("import { readFile } from 'node:fs';", &["1 there is no module `node:fs`"]),
        ("const fs = require('node:fs');", &["1 a script has no modules but some of Node"]),
        ("return Temporal.Now.instant();", &["1 there is no `Temporal`"]),
        ("await tools.github.list_isues({});", &["1 there is no tool `github_list_isues`"]),
        (
            "await tools['github']['list_issues']({ owner: 'a' });",
            &["1 `github_list_issues` needs `repo`"],
        ),
        ("print('x')", &["1 there is no `print`"]),
    ]);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn arguments_that_do_not_fit() {
    cases(&[
        ("await github_list_issues();", &["1 `github_list_issues` needs `owner` and `repo`"]),
        ("await github_list_issues({});", &["1 `github_list_issues` needs `owner` and `repo`"]),
        ("await github_list_issues({ owner: 'a' });", &["1 `github_list_issues` needs `repo`"]),
        (
            "await github_list_issues('a', 'b');",
            &["1 `github_list_issues` takes one object, not 2 arguments"],
        ),
        ("await github_list_issues('a');", &["1 `github_list_issues` takes one object"]),
        ("await github_list_issues(['a']);", &["1 `github_list_issues` takes one object"]),
        ("await github_list_issues(null);", &["1 `github_list_issues` takes one object"]),
        (
            "await notes_list({}, { timeout: 1 });",
            &["1? `notes_list` takes one object, not 2 arguments"],
        ),
        (
            "await Promise.all([{}].map((x, i) => notes_list(x, i)));",
            &["1? `notes_list` takes one object, not 2 arguments"],
        ),
        (
            "await globalThis.notes_list({ limit: 'x' });",
            &["1 `limit` takes an integer, not a string"],
        ),
        (
            "await github_list_issues({ owner: 'a', repo: 'b', per_page: 1 });",
            &["1 `github_list_issues` has no parameter `per_page`"],
        ),
        (
            "await github_list_issues({ owner: 'a', repos: 'b' });",
            &["1 `github_list_issues` has no parameter `repos`"],
        ),
        (
            "await github_list_issues({ owner: 'a', repo: 1 });",
            &["1 `repo` takes a string, not a number"],
        ),
        (
            "await github_list_issues({ owner: 'a', repo: 'b', page: '2' });",
            &["1 `page` takes an integer, not a string"],
        ),
        (
            "await github_list_issues({ owner: 'a', repo: 'b', page: 1.5 });",
            &["1 `page` takes an integer, not 1.5"],
        ),
        (
            "await github_list_issues({ owner: 'a', repo: 'b', page: 0 });",
            &["1 `page` takes at least 1"],
        ),
        (
            "await github_list_issues({ owner: 'a', repo: 'b', page: -1 });",
            &["1 `page` takes at least 1"],
        ),
        (
            "await github_list_issues({ owner: 'a', repo: 'b', state: 'opened' });",
            &["1 `state` is one of `\"open\"`, `\"closed\"`, `\"all\"`"],
        ),
        (
            "await github_list_issues({ owner: 'a', repo: 'b', labels: 'x' });",
            &["1 `labels` takes an array, not a string"],
        ),
        (
            "await github_list_issues({ owner: 'a', repo: 'b', labels: ['x', 1] });",
            &["1 `labels[1]` takes a string, not a number"],
        ),
        (
            "await github_list_issues({ owner: 'a', repo: 'b', labels: ['1', '2', '3', '4'] });",
            &["1 `labels` takes at most 3 items"],
        ),
        (
            "await github_list_issues({ owner: 'a', repo: 'b', archived: 'true' });",
            &["1 `archived` takes a boolean, not a string"],
        ),
        (
            "await github_list_issues({ owner: 'a', repo: 'b', archived: null });",
            &["1 `archived` takes a boolean, not null"],
        ),
        (
            "await github_list_issues({ owner: null, repo: 'b' });",
            &["1 `owner` takes a string, not null"],
        ),
        (
            "const page = 'x';\nawait github_list_issues({ owner: 'a', repo: 'b', page });",
            &["2 `page` takes an integer, not a string"],
        ),
        (
            "await github_list_issues({ owner: 'a', repo: 'b', page: `${1}` });",
            &["1 `page` takes an integer, not a string"],
        ),
        (
            "await github_list_issues({ owner: 'a', repo: 'b', page: 1 > 2 });",
            &["1 `page` takes an integer, not a boolean"],
        ),
        ("await github_create_issue({ title: '' });", &["1 `title` takes at least 1 character"]),
        (
            "await github_create_issue({ title: 'x', body: 1 });",
            &["1 `body` takes a string or null, not a number"],
        ),
        (
            "await github_create_issue({ titel: 'x' });",
            &["1 `github_create_issue` has no parameter `titel`"],
        ),
        (
            "await github_create_issue({ title: 'x', label: ['y'] });",
            &["1 `github_create_issue` has no parameter `label`"],
        ),
        ("await shop_buy({ lines: [] });", &["1 `lines` takes at least 1 item"]),
        (
            "await shop_buy({\n  lines: [\n    { sku: 'a', count: 'two' },\n    { sku: 1 },\n  ],\n});",
            &[
                "3 `lines[0].count` takes an integer, not a string",
                "4 `lines[1]` needs `count`",
                "4 `lines[1].sku` takes a string, not a number",
            ],
        ),
        (
            "await shop_buy({ lines: [{ sku: 'a', count: 1, colour: 'red' }] });",
            &["1 `lines[0]` has no property `colour`"],
        ),
        (
            "await shop_buy({ lines: [{ sku: 'a', count: 1 }], payment: { kind: 'card' } });",
            &["1 `payment` needs `number`"],
        ),
        (
            "await shop_buy({ lines: [{ sku: 'a', count: 1 }], meta: { a: 'x' } });",
            &["1 `meta.a` takes a number, not a string"],
        ),
        ("await notes_clear({ all: true });", &["1 `notes_clear` has no parameter `all`"]),
        (
            "await tools.github_list_issues({ owner: 'a' });",
            &["1 `github_list_issues` needs `repo`"],
        ),
        (
            "const x: any = { owner: 1 }; await github_list_issues({ ...x, owner: 1 });",
            &["1 `owner` takes a string, not a number"],
        ),
        ("const x: any = {}; await github_list_issues({ owner: 1, ...x });", &[]),
        (
            "const x = {}; await github_list_issues({ owner: 1, ...x });",
            &["1 `github_list_issues` needs `repo`", "1 `owner` takes a string, not a number"],
        ),
        ("if (false) { await github_list_issues({}); }", &[]),
        ("return 1; await github_list_issues({});", &[]),
        (
            "const r = await notes_list({}); return r.structuredContent;",
            &["1? the result of `notes_list` may have no `structuredContent`"],
        ),
        (
            "const r = await notes_list({}); return r.content[0].text;",
            &["1? the result of `notes_list` may have no `content`"],
        ),
        ("const r = await notes_list({}); return r.content;", &[]),
        (
            "declare function notes_list(args?: { limit?: number }): Promise<unknown>;\nawait notes_list({ limit: 'x' });",
            &["2 `limit` takes an integer, not a string"],
        ),
        ("await search_tools({ query: 1 });", &["1 `query` takes a string, not a number"]),
    ]);
}

#[test]
fn promises_that_are_not_awaited() {
    let dropped: &[&str] = &["1 the call of `notes_list` is never awaited"];
    let taken: &[&str] = &["1 this is the promise of `notes_list`, not its result"];
    let named: &[&str] = &["1 `p` is the promise of `notes_list`, not its result"];
    cases(&[
        ("notes_list({});", dropped),
        ("true && notes_list({});", dropped),
        ("const p = notes_list({});", dropped),
        ("(notes_list({}), 1);", dropped),
        ("Promise.all([notes_list({})]);", dropped),
        ("Promise.all([1].map(() => notes_list({})));", dropped),
        ("const p = Promise.all([notes_list({})]); return p.length;", named),
        ("function f() { notes_list({}); } f();", dropped),
        ("return notes_list({}).items;", taken),
        ("return notes_list({})[0];", taken),
        ("return notes_list({}).map(x => x);", taken),
        ("return JSON.stringify(notes_list({}));", taken),
        ("console.log(notes_list({}));", taken),
        ("return `a ${notes_list({})}`;", taken),
        ("return 'a' + notes_list({});", taken),
        ("for (const x of notes_list({})) { }", taken),
        ("return [...notes_list({})];", taken),
        ("return { ...notes_list({}) };", taken),
        ("if (notes_list({})) { }", taken),
        ("return !notes_list({});", taken),
        ("const { items } = notes_list({});", taken),
        ("const [a] = notes_list({});", taken),
        ("await github_create_issue({ title: notes_list({}) });", taken),
        ("const p = notes_list({}); return p.items;", named),
        ("const p = notes_list({}); for (const x of p) { }", named),
        ("const p = notes_list({}); return `${p}`;", named),
        (
            "const p = notes_list({});\nconsole.log(p);",
            &["2 `p` is the promise of `notes_list`, not its result"],
        ),
    ]);
}

#[test]
fn the_check_returns_the_tools_and_their_parameters() {
    let mut fake = Fake::new();
    let source = "await notes_list(); return [1].map(get_expenses) && tools.notes_clear && tools.get_team_members({department: 'x'});";
    let checked = fake.check(Language::TypeScript, source);
    let names: Vec<_> = checked.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["get_expenses", "get_team_members", "notes_clear", "notes_list"]);
    assert_eq!(checked.tools[0].parameters, ["user_id", "quarter"]);
    assert_eq!(fake.asked.len(), 1);
    let source = source.replace("notes_list()", "_0        ()");
    let source = source.replace("tools.get_team_members({", "_1                    ({");
    assert_eq!(checked.source, source);
}

#[test]
fn variables_that_hide_a_tool() {
    let hides: &[&str] = &["1 the variable `notes_list` hides the tool of that name"];
    cases(&[
        ("const notes_list = await notes_list({}); return notes_list;", hides),
        ("let notes_list = (await notes_list()).items; return notes_list;", hides),
        ("const { notes_list } = await notes_list({}); return notes_list;", hides),
        ("async function f() { const notes_list = await notes_list({}); return 1 } f();", hides),
        ("const notes_list = await tools.notes_list({}); return notes_list;", &[]),
    ]);
}

#[test]
fn a_last_value_that_is_not_returned() {
    let is_warned = |source: &str| {
        let checked = Fake::new().check(Language::TypeScript, source);
        assert!(!checked.has_errors(), "{source}\n{:?}", checked.findings);
        checked.findings.iter().any(|finding| finding.message == NOT_RETURNED)
    };
    for source in [
        "const x = await notes_list({});\nx.items",
        "const x = await notes_list({});\nx.items.map((item) => item.id)",
        "const x = await notes_list({});\nJSON.stringify(x)",
        "const x = await notes_list({});\nx ? x.items : []",
        "const x = 1;\n({ x })",
    ] {
        assert!(is_warned(source), "{source}");
    }
    for source in [
        "return 1;\n1",
        "if (1) { return 2; }\nawait notes_clear();",
        "const f = () => { return 1; };\nif (f()) { return 2; }\nf();",
        "console.log(1);\nawait notes_clear();",
        "emit({ type: 'text', text: 'x' });",
        "let x = 1;\nx = 2;",
        "let x = 1;\nx++;",
        "[1].forEach((x) => x);",
        "void notes_clear();",
        "const x = await notes_list({});",
        // What a call is made for is not known.
        "await notes_clear({});",
        "notes_clear({}).then((done) => done);",
        "await tools.notes_clear({});",
        "const x = notes_clear({});\nawait x;",
        "await Promise.all([1, 2].map((id) => notes_clear({})));",
        "const x = 1;\nx && await notes_clear({});",
        "const seen = new Map();\nseen.set(1, 2);",
        "async function main() { await notes_clear({}); }\nawait main();",
        "(async () => { await notes_clear({}); })();",
        "",
    ] {
        assert!(!is_warned(source), "{source}");
    }
}

#[test]
fn python_is_recognised() {
    for source in [
        "async def main():\n    return await notes_list()\nawait main()",
        "def f(x):\n    return x",
        "x = 1\nprint(f\"{x} of {x}\")",
        "import json\nfor x in [1]:\n    print(json.dumps(x))",
        "from datetime import datetime\nprint(datetime.now())",
        // Not right as Python either.
        "def f(x):\n    return (x\n",
        "Sure!\n```python\nimport json\nx = f'{1}'\n```\n",
    ] {
        let checked = Fake::new().check(Language::TypeScript, source);
        let hint = checked.findings[0].hint.as_deref().unwrap_or_default();
        assert!(hint.ends_with("set `language` to \"python\""), "{source}\n{:?}", checked.findings);
    }
    let checked = Fake::new().check(Language::TypeScript, "const a = ;");
    assert_eq!(checked.findings[0].hint, None);
}

/// The source that runs, on one line.
fn source(script: &str) -> String {
    let checked = Fake::new().check(Language::TypeScript, script);
    assert!(!checked.has_errors(), "{script}\n{:#?}", checked.findings);
    checked.source
}

#[test]
fn a_script_that_is_a_function_is_called() {
    for (script, expected) in [
        ("async () => { return 1; }", "return(async () => { return 1; })()"),
        ("(async () => {\n  return 1;\n})", "return((async () => {\n  return 1;\n}))()"),
        ("async function () { return 1; };", "return(async function () { return 1; })();"),
        ("() => 1", "return(() => 1)()"),
        // The tools are what functions get in other systems, under several names.
        ("async (tools) => await tools.x()", "return(async (tools) => await tools.x())(tools)"),
        ("async ({ tools }) => tools.x()", "return(async ({ tools }) => tools.x())({tools})"),
        ("({ tools: t, x }) => t.y(x)", "return(({ tools: t, x }) => t.y(x))({tools,x:tools.x})"),
        ("({ tools } = {}) => 1", "return(({ tools } = {}) => 1)({tools})"),
        ("(n = 1, tools) => n", "return((n = 1, tools) => n)(undefined,tools)"),
        ("(ctx) => ctx.tools.x()", "return((ctx) => ctx.tools.x())({tools})"),
        ("(t, { a }) => t.x()", "return((t, { a }) => t.x())(tools)"),
        ("async function (t) { t.x() }", "return(async function (t) { t.x() })(tools)"),
        ("async function ({ tools }) {}", "return(async function ({ tools }) {})({tools})"),
        (
            "async function run(codemode) { return codemode.x(); }",
            "async function run(codemode) { return codemode.x(); };return run(tools);",
        ),
        (
            "async function main({ tools }) { return tools.x(); }",
            "async function main({ tools }) { return tools.x(); };return main({tools});",
        ),
        (
            "export default async function ({ tools }) { return 1; }",
            "var $main=     async function ({ tools }) { return 1; };return $main({tools});",
        ),
        (
            "export default async (api) => api.x();",
            "var $main=     async (api) => api.x();;return $main(tools);",
        ),
        (
            "async function main() { return 1; }",
            "async function main() { return 1; };return main();",
        ),
        ("const main = async () => 1;", "const main = async () => 1;;return main();"),
        (
            "async function main() { return helper(); }\nfunction helper() { return 1; }",
            "async function main() { return helper(); }\nfunction helper() { return 1; };return main();",
        ),
        (
            "export default async function () { return 1; }",
            "var $main=     async function () { return 1; };return $main();",
        ),
        (
            "export default async function go() { return 1; }",
            "               async function go() { return 1; };return go();",
        ),
        ("export default () => 1;", "var $main=     () => 1;;return $main();"),
        (
            "const a = 1;\nexport default { a };",
            "const a = 1;\nvar $main=     { a };;return typeof $main===\"function\"?$main():$main;",
        ),
        (
            "export async function main() { return 1; }",
            "       async function main() { return 1; };return main();",
        ),
        ("export const run = async () => 1", "       const run = async () => 1;return run();"),
        (
            "function f() { return 1 }\nexport { f as default };",
            "function f() { return 1 }\n;                       ;return typeof f===\"function\"?f(tools):f;",
        ),
        (
            "const N = 2;\nasync function count() { return N; }",
            "const N = 2;\nasync function count() { return N; };return count();",
        ),
        // These are scripts already: a function that nothing calls may be meant to stay so.
        ("const helper = () => 1;\nconst X = 5;", "const helper = () => 1;\nconst X = 5;"),
        ("function helper() { return 1 }\n5;", "function helper() { return 1 }\n5;"),
        (
            "const r = await notes_list({}); const clear = () => notes_clear();",
            "const r = await _0        ({}); const clear = () => notes_clear();",
        ),
        // What the call returns that the script ends with is meant, too.
        (
            "async function main() { return 1; }\nawait main();",
            "async function main() { return 1; }\nreturn await main();",
        ),
        ("const f = async () => 1;\nf();", "const f = async () => 1;\nreturn f();"),
        ("(async () => 1)();", "return (async () => 1)();"),
        ("await (async () => 1)();", "return await (async () => 1)();"),
        ("function f() {}\nf().catch(() => 1);", "function f() {}\nreturn f().catch(() => 1);"),
        (
            "function f() {}\nawait notes_clear();\nf();",
            "function f() {}\nawait _0         ();\nf();",
        ),
        ("const f = () => 1; return f();", "const f = () => 1; return f();"),
        ("function f(x) { return x; }", "function f(x) { return x; }"),
        (
            "export const a = 1; export { a as b }; return a;",
            "       const a = 1; ;                  return a;",
        ),
    ] {
        assert_eq!(source(script), expected, "{script}");
    }
    // The findings have the positions of the script.
    let checked = Fake::new().check(Language::TypeScript, "async () => { return await nope_x(); }");
    insta::assert_snapshot!(checked.findings[0], @r"
    1:28 there is no tool `nope_x`
      | async () => { return await nope_x(); }
      |                            ^
      = `await search_tools({ query })` finds tools
    ");
}

#[test]
fn modules_and_accessors_become_plain_javascript() {
    for (script, expected) in [
        (
            "import { createHash as h, randomUUID } from 'node:crypto';\nreturn h;",
            ";const { \"createHash\": h, \"randomUUID\": randomUUID } = process.getBuiltinModule(\"crypto\");\nreturn h;",
        ),
        (
            "import * as c from 'crypto'; return c;",
            ";const c = process.getBuiltinModule(\"crypto\"); return c;",
        ),
        ("import 'node:buffer'; return 1;", "; return 1;"),
        (
            "const c = require('node:crypto'); return c;",
            "const c = process.getBuiltinModule(\"crypto\"); return c;",
        ),
        (
            "return await import('crypto');",
            "return await Promise.resolve(process.getBuiltinModule(\"crypto\"));",
        ),
        (
            "class A { private accessor x: number = 1; }\nreturn 1;",
            "class A { #accessor0 = 1;; get x() { return this.#accessor0; } set x(value) { this.#accessor0 = value; } }\nreturn 1;",
        ),
        (
            "class A { static accessor 'a b'; }\nreturn 1;",
            "class A { static #accessor0; static get 'a b'() { return this.#accessor0; } static set 'a b'(value) { this.#accessor0 = value; } }\nreturn 1;",
        ),
    ] {
        assert_eq!(source(script), expected, "{script}");
    }
}
