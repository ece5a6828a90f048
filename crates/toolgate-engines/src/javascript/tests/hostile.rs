//! Scripts that want more than they may have, or that rewrite the language.

use super::{assert_failures, assert_values, failure_of, run, run_with, value, world};
use crate::{EngineLimits, EngineOutcome, FailureKind};

const SMALL: EngineLimits = EngineLimits { memory_bytes: 8 << 20, ..world::LIMITS };

#[test]
fn memory_has_an_end() {
    for source in [
        "const a = []; while (true) a.push(new Array(1000).fill(1))",
        "globalThis.a = []; while (true) a.push({ x: 1 })",
        "globalThis.a = []; await echo({}); while (true) a.push({ x: 1 })",
        "const a = []; await echo({}); while (true) a.push({ x: [1] })",
        "const a = []; for (;;) a.push('x' + a.length)",
        "new Uint8Array(1e9)",
        "'x'.repeat(1e9).length",
        "new Map(Array.from({ length: 1e7 }, (_, i) => [i, i]))",
        "async function f() { const a = []; await null; for (;;) a.push('x' + a.length) } await Promise.all([f(), f()])",
        "let p = {}; const o = p; for (;;) { p.a = {}; p = p.a }",
        "const a = []; for (;;) a.push(new Promise(() => {}))",
        "const a = []; for (;;) a.push(() => a)",
    ] {
        let failure = failure_of(source, run_with(source, SMALL, usize::MAX));
        assert_eq!(failure.kind, FailureKind::Memory, "{source}\n{failure:?}");
        assert!(failure.message.contains("out of memory"), "{source}");
    }
}

#[test]
fn less_memory_than_the_engine_needs_is_raised_to_that() {
    let tiny = EngineLimits { memory_bytes: 0, stack_bytes: 0 };
    assert!(matches!(
        run_with("return 1", tiny, usize::MAX).outcome,
        EngineOutcome::Value(Some(_))
    ));
}

#[test]
fn strings_and_numbers_are_limited() {
    assert_failures(&[
        ("let s = 'x'; while (true) s += s", FailureKind::Exception, "string too long"),
        ("return new Array(2 ** 32)", FailureKind::Exception, "RangeError"),
        ("return 2n ** (2n ** 40n)", FailureKind::Exception, "RangeError"),
    ]);
}

#[test]
fn the_stack_has_an_end() {
    assert_failures(&[
        ("function f() { return f() + 1 } f()", FailureKind::Stack, "call stack"),
        ("const f = async () => { await f() }; await f()", FailureKind::Stack, "call stack"),
        ("const o = { get a() { return this.a } }; o.a", FailureKind::Stack, "call stack"),
        (
            "const o = { toJSON() { return JSON.stringify(o) } }; return o",
            FailureKind::Stack,
            "call stack",
        ),
        ("JSON.parse('['.repeat(1e5) + ']'.repeat(1e5))", FailureKind::Stack, "call stack"),
        (
            "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a",
            FailureKind::Stack,
            "call stack",
        ),
        (
            "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; await echo({ a })",
            FailureKind::Stack,
            "call stack",
        ),
        ("new Proxy({}, { get(t, k, r) { return r[k] } }).x", FailureKind::Stack, "call stack"),
    ]);
    assert_values(&[
        (
            "function f() { return f() + 1 } try { f() } catch (e) { return e.name }",
            r#""RangeError""#,
        ),
        ("let a = []; for (let i = 0; i < 1e5; i++) a = [a]; console.log(a); return 1", "1"),
        (
            "let e = new Error('0'); for (let i = 0; i < 1e4; i++) e = new Error('x', { cause: e }); console.log(e); return 1",
            "1",
        ),
    ]);
}

#[test]
fn thousands_of_promises_work() {
    assert_values(&[
        (
            "return (await Promise.all(Array.from({ length: 10_000 }, (_, i) => echo({ i })))).length",
            "10000",
        ),
        ("for (let i = 0; i < 10_000; i++) new Promise(() => {}); return 'ended'", r#""ended""#),
        (
            "const all = Array.from({ length: 10_000 }, () => fail({})); return (await Promise.allSettled(all)).length",
            "10000",
        ),
        (
            "const all = Array.from({ length: 10_000 }, (_, i) => new Promise((r) => setTimeout(r, i))); return (await Promise.all(all)).length",
            "10000",
        ),
        ("for (let i = 0; i < 10_000; i++) clearTimeout(setTimeout(() => {}, 1e6)); return 1", "1"),
    ]);
}

/// The scripts break their own language. What they call still is what arrives, and they end.
#[test]
fn changed_builtins_affect_only_the_script() {
    for tampering in [
        "Array.prototype.map = Array.prototype.push = Array.prototype.join = () => { throw 1 }",
        "Array.prototype[Symbol.iterator] = function* () { yield 'forged' }",
        "Function.prototype.call = Function.prototype.apply = Function.prototype.bind = () => 'forged'",
        "Object.prototype.get = Object.prototype.value = () => 'forged'",
        "JSON.stringify = JSON.parse = JSON.rawJSON = () => 'forged'",
        "String.prototype.toWellFormed = String.prototype.slice = String.prototype.replace = () => 'forged'",
        "Map.prototype.get = Map.prototype.set = Set.prototype.has = () => { throw 1 }",
        "Reflect.apply = Reflect.ownKeys = Reflect.defineProperty = Object.keys = () => { throw 1 }",
        "Error.prepareStackTrace = () => { throw 1 }",
        "Object.defineProperty(Error.prototype, 'stack', { get() { throw 1 } })",
        "Error.stackTraceLimit = 0; Error.prototype.name = 7",
        "Symbol.hasInstance; Object.defineProperty(Error, Symbol.hasInstance, { value: () => { throw 1 } })",
        "globalThis.Promise = globalThis.Error = globalThis.Object = globalThis.String = undefined",
        "for (const name of Object.getOwnPropertyNames(globalThis)) if (!['echo', 'console'].includes(name)) try { delete globalThis[name] } catch {}",
        "Object.freeze(Object.prototype); Object.freeze(Array.prototype); Object.freeze(globalThis)",
        "Object.setPrototypeOf(Array.prototype, null)",
    ] {
        let source = format!(
            "{tampering};\nconst r = await echo({{ a: 1 }}); console.log('out', r); await echo(r);"
        );
        let run = run(&source);
        let expected = ("echo".to_owned(), r#"{"a":1}"#.to_owned());
        assert_eq!(run.calls, [expected.clone(), expected], "{tampering}\n{:?}", run.outcome);
        assert!(run.output.starts_with("out "), "{tampering}: {:?} {:?}", run.output, run.outcome);
        assert!(
            matches!(run.outcome, EngineOutcome::Value(None)),
            "{tampering}: {:?}",
            run.outcome
        );
    }
}

#[test]
fn a_changed_promise_or_prototype_breaks_only_the_script() {
    for tampering in [
        "Promise.prototype.then = () => { throw new Error('then') }",
        "Promise.prototype.then = function () { return this }",
        "Object.defineProperty(Array.prototype, '0', { get: () => 'forged', set() { throw 1 } })",
        "Promise.resolve = Promise.reject = () => 'forged'",
        "Object.prototype.then = (resolve) => resolve('forged')",
        "Object.prototype.toJSON = () => ({ forged: true })",
        "Object.defineProperty(Promise.prototype, 'constructor', { get() { throw 1 } })",
        "Promise.prototype.constructor = class { constructor(f) { f(() => {}, () => {}) } }",
    ] {
        let run = run(&format!("{tampering};\nconst r = await echo({{ a: 1 }}); return r"));
        // One call at most, an object, and an end of some sort: that is all that is promised.
        assert!(run.calls.len() <= 1, "{tampering}");
        assert!(run.calls.iter().all(|(_, json)| json.starts_with('{')), "{tampering}");
    }
}

/// Code of the script's runs in the midst of what the host does for it.
#[test]
fn code_that_runs_during_conversion_is_safe() {
    assert_values(&[
        (
            "return { toJSON() { setTimeout(() => {}, 1); clearTimeout(1); echo({}); console.log('x'); return 1 } }",
            "1",
        ),
        (
            "return await echo({ toJSON() { echo({ b: 1 }).catch(() => {}); return { a: 1 } } })",
            r#"{"a":1}"#,
        ),
        (
            "Object.defineProperty(Object.prototype, 'then', { get() { setTimeout(() => {}, 1); tools.echo; return undefined } }); return await echo({ a: 1 })",
            r#"{"a":1}"#,
        ),
        (
            "let n = 0; const id = setInterval(() => { clearInterval(id); setTimeout(() => n++, 1); echo({}) }, 1); await new Promise((r) => setTimeout(r, 100)); return n",
            "1",
        ),
        (
            "const p = Promise.reject(new Error('x')); setTimeout(() => p.catch(() => {}), 1); return 1",
            "1",
        ),
    ]);
}

#[test]
fn the_host_is_out_of_reach() {
    assert_values(&[
        (
            "return [typeof host, typeof shared, typeof std, typeof os, typeof print, typeof require]",
            r#"["undefined","undefined","undefined","undefined","undefined","undefined"]"#,
        ),
        ("return String(echo)", r#""(...inputs) => invoke(name, example, place, inputs)""#),
        (
            "try { new Function('return process.memoryUsage')() } catch (e) { return e.name }",
            r#""UnsupportedError""#,
        ),
        ("return (0, eval)('1 + 1')", "2"),
        (
            "const seen = []; Error.prepareStackTrace = (_, sites) => { seen.push(...sites.map((s) => s.getFunction?.())); return '' }; await echo(1).catch(() => {}); return seen.filter(Boolean).length",
            "0",
        ),
        ("try { return echo.caller } catch (e) { return e.name }", r#""TypeError""#),
    ]);
    // A name of the wrapper's own means nothing inside.
    assert_eq!(value("return typeof main"), r#""undefined""#);
}
