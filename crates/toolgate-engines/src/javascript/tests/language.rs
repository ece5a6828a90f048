//! What scripts may write, and what becomes of values.

use super::{assert_failures, assert_values, run, value};
use crate::{EngineOutcome, FailureKind};

#[test]
fn a_script_is_the_body_of_an_async_function() {
    assert_values(&[
        ("return 1 + 1", "2"),
        ("const x = await Promise.resolve(3); return x", "3"),
        ("if (true) return 'early'; return 'late'", r#""early""#),
        ("// only a comment\nreturn 1 // and another", "1"),
        ("return 1\n// the end", "1"),
        ("'use strict'; return this === undefined", "true"),
        ("for await (const x of [Promise.resolve(1), 2]) if (x === 2) return x", "2"),
        (
            "const { a, ...rest } = { a: 1, b: 2, c: 3 }; return { rest, c: rest?.c ?? 0 }",
            r#"{"rest":{"b":2,"c":3},"c":3}"#,
        ),
        (
            "async function* g() { yield 1; yield 2 } const out = []; for await (const v of g()) out.push(v); return out",
            "[1,2]",
        ),
        (
            "return Object.groupBy([1, 2, 3], (n) => n % 2 ? 'odd' : 'even')",
            r#"{"odd":[1,3],"even":[2]}"#,
        ),
        (
            "class A { #x = 1; static s = 2; get x() { return this.#x } } return [new A().x, A.s]",
            "[1,2]",
        ),
        ("return [3, 1, 2].toSorted().at(-1)", "3"),
        ("label: for (;;) { break label } return `a${1}b`", r#""a1b""#),
    ]);
    for source in [
        "1 + 1",
        "",
        "// nothing",
        "return",
        "return undefined",
        "return () => 1",
        "return Symbol('x')",
    ] {
        assert!(matches!(run(source).outcome, EngineOutcome::Value(None)), "{source}");
    }
}

#[test]
fn values_become_json() {
    assert_values(&[
        ("return null", "null"),
        ("return -0", "0"),
        (
            "return [NaN, Infinity, -Infinity, null, { a: NaN }]",
            r#"["NaN","Infinity","-Infinity",null,{"a":"NaN"}]"#,
        ),
        ("return { a: undefined, b: () => 1, c: [undefined] }", r#"{"c":[null]}"#),
        ("return new Date(0)", r#""1970-01-01T00:00:00.000Z""#),
        ("return new Map([['a', 1], ['__proto__', 2]])", r#"{"a":1,"__proto__":2}"#),
        ("return new Map([[{ k: 1 }, 1]])", r#"[[{"k":1},1]]"#),
        ("return { s: new Set([1, 'a']) }", r#"{"s":[1,"a"]}"#),
        ("return 2n ** 64n", "18446744073709551616"),
        ("return { n: [-(2n ** 63n)] }", r#"{"n":[-9223372036854775808]}"#),
        (
            "return JSON.stringify({ n: 12345678901234567890n })",
            r#""{\"n\":12345678901234567890}""#,
        ),
        ("return { toJSON() { return { own: true } } }", r#"{"own":true}"#),
        ("return new Error('x')", r#"{"name":"Error","message":"x"}"#),
        (
            "return Object.assign(new TypeError('x'), { code: 7 })",
            r#"{"name":"TypeError","message":"x","code":7}"#,
        ),
        ("return JSON.parse('{\"__proto__\": {\"a\": 1}}')", r#"{"__proto__":{"a":1}}"#),
        ("return 'a\\ud800b'", "\"a\u{fffd}b\""),
        ("return { '\\udc00': 1 }", "{\"\u{fffd}\":1}"),
        ("return 'tab\\t \\u0000 \\u2028 😀'", "\"tab\\t \\u0000 \u{2028} 😀\""),
        ("return new Proxy([1, 2], {})", "[1,2]"),
    ]);
    assert_failures(&[
        (
            "const a = []; a.push(a); return a",
            FailureKind::Exception,
            "cannot be written as JSON: TypeError: circular",
        ),
        ("return [echo({})]", FailureKind::Exception, "await Promise.all"),
        (
            "return { toJSON() { throw new RangeError('no') } }",
            FailureKind::Exception,
            "RangeError: no",
        ),
    ]);
}

#[test]
fn long_integers_keep_their_digits() {
    assert_values(&[
        (
            "const r = await text({ value: '[9007199254740993, 9007199254740991, -9007199254740993]' }); return r.map((n) => typeof n)",
            r#"["bigint","number","bigint"]"#,
        ),
        (
            "return await text({ value: '{\"id\": 12345678901234567890, \"x\": [1e3, 1.5]}' })",
            r#"{"id":12345678901234567890,"x":[1000,1.5]}"#,
        ),
        (
            "const { id } = await text({ value: '{\"id\": 1145678901234567890}' }); return (await echo({ id })).id === id",
            "true",
        ),
        ("return (await text({ value: '9223372036854775807' })) + 1n", "9223372036854775808"),
        ("return await text({ value: '\"9007199254740993\"' })", r#""9007199254740993""#),
    ]);
    let mixed = super::failure("const n = await text({ value: '9007199254740993' }); return n + 1");
    assert!(mixed.hint.expect("a hint").contains("Number(x)"));
}

#[test]
fn timers_go_off_in_order() {
    assert_values(&[
        (
            "const seen = []; setTimeout(() => seen.push('late'), 60_000); await new Promise((r) => setTimeout(r, 30_000)); seen.push('awaited'); await new Promise((r) => setTimeout(r, 40_000)); return seen",
            r#"["awaited","late"]"#,
        ),
        ("return await new Promise((r) => setTimeout((a, b) => r(a + b), 0, 1, 2))", "3"),
        (
            "let n = 0; return await new Promise((r) => { const id = setInterval(() => { if (++n === 3) { clearInterval(id); r(n) } }, 10_000) })",
            "3",
        ),
        (
            "const id = setTimeout(() => { throw new Error('cleared') }, 1); clearTimeout(id); clearTimeout(undefined); clearTimeout({}); return typeof id",
            r#""number""#,
        ),
        (
            "const seen = []; setTimeout(() => seen.push('timer')); queueMicrotask(() => seen.push('micro')); setImmediate(() => seen.push('immediate')); await new Promise((r) => setTimeout(r, 1000)); return seen",
            r#"["micro","timer","immediate"]"#,
        ),
        // A timeout that lost its race goes off for nobody.
        (
            "return await Promise.race([echo({ a: 1 }), new Promise((_, reject) => setTimeout(reject, 60_000))])",
            r#"{"a":1}"#,
        ),
        ("const s = AbortSignal.timeout(90_000); return s.aborted", "false"),
        (
            "const s = AbortSignal.timeout(10); return await new Promise((r) => s.addEventListener('abort', () => r(s.reason.name)))",
            r#""TimeoutError""#,
        ),
    ]);
    let late = run("setTimeout(() => console.log('after the end'), 60_000); return 1");
    assert_eq!(late.output, "after the end\n");
    assert_failures(&[
        ("setTimeout('code')", FailureKind::Exception, "setTimeout takes a function"),
        (
            "setTimeout(() => { throw new Error('in a timer') }, 1); await new Promise(() => {})",
            FailureKind::Exception,
            "in a timer",
        ),
    ]);
}

#[test]
fn a_zone_right_after_the_time_is_read() {
    for (text, time) in [
        ("2024-01-05 10:00:00-08:00", "1704477600000"),
        ("2024-01-05 10:00:00+02:00", "1704441600000"),
        ("2024-01-05 10:00:00.123-05:00", "1704466800123"),
        ("2024-01-05 10:00:00.5Z", "1704448800500"),
        ("2024-01-05 10:00+01:00", "1704445200000"),
        ("2024-01-05 10:00Z", "1704448800000"),
        ("2024-01-05 10:00:00-08", "1704477600000"),
        ("2024-01-05 10:00:00-0830", "1704479400000"),
        ("2024-01-05 10:00:00 -08:00", "1704477600000"),
        ("2024-1-5 10:00:00-03:30", "1704461400000"),
        ("2024/01/05 10:00:00-03:30", "1704461400000"),
        ("Jan 5 2024 10:00:00-08:00", "1704477600000"),
        ("01/05/2024 10:00-05:00", "1704466800000"),
        ("2024-01-05t10:00:00z", "1704448800000"),
        ("2024-01-05T10:00:00-08:00", "1704477600000"),
        ("2024-01-05T10:00:00+0530", "1704429000000"),
        ("2024-01-05 10:00:00-24:00", "\"NaN\""),
        ("Sat Jan 06 2024 10:00:00 GMT+0100 (CET)", "1704531600000"),
    ] {
        let source = format!(
            "const t = '{text}'; return [new Date(t).getTime(), Date.parse(t), +new Date(t)]"
        );
        assert_eq!(value(&source), format!("[{time},{time},{time}]"), "{text}");
    }
}
