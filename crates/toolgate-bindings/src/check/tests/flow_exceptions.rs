//! Exceptions as decisions: what may throw decides whether the calls after it are made.

use super::flow::{flows, reaches};
use crate::check::Language::{self, Python, TypeScript};

/// Whether `send` is only called if the data of `secret` permits it.
fn decides(language: Language, script: &str) -> bool {
    flows(language, script)
        .iter()
        .any(|flow| flow.starts_with("secret>send") && flow.ends_with('?'))
}

const CHECK: &str =
    "const s = await secret({}); const check = (x: any) => { if (x.ok) throw new Error('x'); }; ";

const CHECK_PY: &str =
    "s = await secret()\ndef check(x):\n    if x['ok']:\n        raise ValueError('x')\n";

#[test]
fn what_may_throw_decides_about_the_calls_after_it() {
    for rest in [
        "check(s); await send({ body: 'a' });",
        "const outer = (x: any) => { check(x); }; outer(s); await send({ body: 'a' });",
        "s.rows.forEach(check); await send({ body: 'a' });",
        "['a'].forEach(() => check(s)); await send({ body: 'a' });",
        "const f = async () => { check(s); }; await f(); await send({ body: 'a' });",
        "for (const i of [1, 2]) { await send({ body: 'a' }); check(s); }",
        "let n = 0; while (n++ < 2) { await send({ body: 'a' }); if (n) { check(s); } }",
        "if (1 > 0) { check(s); } await send({ body: 'a' });",
        "try { check(s); } finally { console.log(1); } await send({ body: 'a' });",
        "try { check(s); } catch (e) { throw e; } await send({ body: 'a' });",
        "try { check(s); } catch (e) { return; } await send({ body: 'a' });",
        "try { check(s); await send({ body: 'a' }); } catch {}",
        "try { s.rows[5].x; await send({ body: 'a' }); } catch {}",
        "try { JSON.parse(s.text); await send({ body: 'a' }); } catch {}",
        "try { new URL(s.text); const go = () => send({ body: 'a' }); await go(); } catch {}",
        "const post = async () => { await send({ body: 'a' }); }; check(s); await post();",
        "class A { constructor(x: any) { check(x); } } new A(s); await send({ body: 'a' });",
        "const o = { get v() { check(s); return 1; } }; console.log(o.v); await send({ body: 'a' });",
        "function* g() { check(s); yield 1; } for (const x of g()) console.log(x); await send({ body: 'a' });",
    ] {
        let script = format!("{CHECK}{rest}");
        assert!(decides(TypeScript, &script), "{script}\n{:?}", flows(TypeScript, &script));
    }
    for rest in [
        "check(s)\nawait send(body='a')",
        "def outer(x):\n    check(x)\nouter(s)\nawait send(body='a')",
        "list(map(check, s['rows']))\nawait send(body='a')",
        "for i in [1, 2]:\n    await send(body='a')\n    check(s)",
        "try:\n    check(s)\nexcept KeyError:\n    pass\nawait send(body='a')",
        "try:\n    check(s)\n    await send(body='a')\nexcept ValueError:\n    pass",
        "try:\n    int(s['n'])\n    await send(body='a')\nexcept ValueError:\n    pass",
        "try:\n    s['rows'][5]\n    await send(body='a')\nexcept IndexError:\n    pass",
        "async def f():\n    assert s['ok']\nawait f()\nawait send(body='a')",
    ] {
        let script = format!("{CHECK_PY}{rest}");
        assert!(decides(Python, &script), "{script}\n{:?}", flows(Python, &script));
    }
}

#[test]
fn what_throws_later_or_is_caught_decides_nothing() {
    for rest in [
        "await send({ body: 'a' }); check(s);",
        "try { await send({ body: 'a' }); s.rows[5].x; } catch {}",
        "try { check(s); } catch {} await send({ body: 'a' });",
        "const log = (x: any) => { console.log(x); }; log(s); await send({ body: 'a' });",
        "const log = (x: any) => { console.log(x.name); }; if (s.ok) { log(s); } await send({ body: 'a' });",
        "const names = s.rows.map((r: any) => r.name); console.log(names); await send({ body: 'a' });",
    ] {
        let script = format!("{CHECK}{rest}");
        assert!(!decides(TypeScript, &script), "{script}\n{:?}", flows(TypeScript, &script));
    }
    for rest in [
        "await send(body='a')\ncheck(s)",
        "def log(x):\n    print(x)\nlog(s)\nawait send(body='a')",
        "try:\n    print(s['name'])\nexcept KeyError:\n    pass\nawait send(body='a')",
    ] {
        let script = format!("{CHECK_PY}{rest}");
        assert!(!decides(Python, &script), "{script}\n{:?}", flows(Python, &script));
    }
}

#[test]
fn an_own_next_under_a_computed_name_is_followed() {
    const STEP: &str = "const s = await secret({}); const k = ['ne', 'xt'].join(''); const step = () => ({ value: s.text, done: false });";
    for rest in [
        "function* g() { yield 'x'; } const it: any = g(); it[k] = step; for (const a of it) { await send({ body: a }); break; }",
        "const it: any = ['x'].values(); it[k] = step; for (const a of it) { await send({ body: a }); break; }",
        "const it: any = new Map([['x', 'y']]).keys(); it[k] = step; const [a] = it; await send({ body: a });",
        "class It { [k]() { return step(); } } for (const a of Iterator.from(new It() as any)) { await send({ body: a }); break; }",
        "const it: any = { [k]: step }; const [a] = Iterator.from(it) as any; await send({ body: a });",
    ] {
        let script = format!("{STEP} {rest}");
        assert!(reaches(TypeScript, &script), "{script}\n{:?}", flows(TypeScript, &script));
    }
    let clean = "const s = await secret({}); const todo = [() => page({}), () => page({})]; for (const f of todo) { await send({ body: (await f()).title }); } console.log(s);";
    assert!(!reaches(TypeScript, clean), "{:?}", flows(TypeScript, clean));
}
