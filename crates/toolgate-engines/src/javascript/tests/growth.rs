//! Work grows with the input, not faster. What is counted is how often the engine asks whether to
//! go on, which is once for some thousand steps of a script.

use super::{assert_values, world::steps_of};

/// Scripts whose work should be in proportion to `n`, with an `n` that is large enough to count.
const LINEAR: &[(u64, &str)] = &[
    (
        4_000,
        "const p = new URLSearchParams(); for (let i = 0; i < n; i++) p.append('k' + i, 'v'); String(p)",
    ),
    (
        1_000,
        "const u = new URL('http://a/'); for (let i = 0; i < n; i++) u.searchParams.append('k' + i, 'v'); u.href",
    ),
    (20_000, "new URLSearchParams('a=1%20&'.repeat(n)).size"),
    (40_000, "new URL('http://a/' + 'b/../c/'.repeat(n)).href"),
    (
        2_000,
        "const t = new EventTarget(); for (let i = 0; i < n; i++) t.addEventListener('a', () => 1); t.dispatchEvent(new Event('a'))",
    ),
    (
        2_000,
        "const t = new EventTarget(); for (let i = 0; i < n; i++) t.addEventListener('a', () => 1, { once: true }); t.dispatchEvent(new Event('a'))",
    ),
    (
        100_000,
        "const l = Array.from({ length: n }, (_, i) => i); while (l.length) l.splice(0, 10_000)",
    ),
    (40_000, "structuredClone(Array.from({ length: n }, (_, i) => ({ id: i, tags: ['x'] })))"),
    (40_000, "structuredClone(new Map(Array.from({ length: n }, (_, i) => [{ i }, { i }])))"),
    (40_000, "for (let i = 0; i < n; i++) console.log(i, 'x')"),
    (
        100_000,
        "console.log('%s '.repeat(n / 10), ...Array(5000).fill('x')); for (let i = 0; i < n; i++);",
    ),
    (100_000, "JSON.stringify(new Map(Array.from({ length: n }, (_, i) => ['k' + i, i])))"),
    (100_000, "JSON.stringify(Array.from({ length: n }, () => 12345678901234567890n))"),
    (
        40_000,
        "const d = new TextDecoder(); const b = new TextEncoder().encode('é€a'); for (let i = 0; i < n; i++) d.decode(b, { stream: true })",
    ),
    (100_000, "new TextEncoder().encodeInto('é€a'.repeat(n), new Uint8Array(n * 6))"),
    (40_000, "Buffer.concat(Array.from({ length: n }, () => Buffer.from('abc'))).toString('hex')"),
    (
        40_000,
        "const h = process.getBuiltinModule('crypto').createHash('md5'); for (let i = 0; i < n; i++) h.update('abc'); h.digest('hex')",
    ),
    (100_000, "(10n ** BigInt(n / 10)).toLocaleString(); for (let i = 0; i < n; i++);"),
    (100_000, "new Intl.ListFormat('en').format(Array.from({ length: n }, (_, i) => 'x' + i))"),
    (40_000, "'a1'.repeat(n).localeCompare('a1'.repeat(n) + 'b', 'en', { numeric: true })"),
    (100_000, "'é'.repeat(n).localeCompare('e'.repeat(n))"),
    (4_000, "for (let i = 0; i < n; i++) (i * 1000.5).toLocaleString()"),
    (2_000, "for (let i = 0; i < n; i++) new Date(i * 1e9).toLocaleString('en-US')"),
    (
        20_000,
        "await Promise.all(Array.from({ length: n }, (_, i) => new Promise((r) => setTimeout(r, i))))",
    ),
    (10_000, "for (let i = 0; i < n; i++) await echo({ i })"),
    (10_000, "await Promise.allSettled(Array.from({ length: n }, (_, i) => fail({ i })))"),
    (10_000, "for (let i = 0; i < n; i++) { try { null.x } catch (e) { e.stack } }"),
];

#[test]
fn four_times_the_input_is_at_most_five_times_the_work() {
    let mut slow = Vec::new();
    for (n, script) in LINEAR {
        let steps = |n: u64| steps_of(&format!("const n = {n};\n{script}")).max(4);
        let (once, four) = (steps(*n), steps(*n * 4));
        if four > once * 5 + 4 {
            slow.push(format!("{once} and {four}: {script}"));
        }
    }
    assert!(slow.is_empty(), "{}", slow.join("\n"));
}

#[test]
fn splice_is_that_of_the_language() {
    for list in ["[]", "[1]", "[1, 2, 3, 4, 5, 6, 7, 8]"] {
        for arguments in [
            "",
            "0",
            "2",
            "-3",
            "99",
            "-99",
            "0, 0",
            "0, 1",
            "0, 3",
            "0, 6",
            "1, 2",
            "1, 99",
            "2, -1",
            "-2, 1",
            "-1, 1, 'x'",
            "0, 0, 'a', 'b'",
            "1, 1, 'x'",
            "2, 2, 'x', 'y', 'z'",
            "undefined",
            "'1', '2'",
            "NaN, undefined",
            "1, 2.9",
            "0, 0, undefined",
        ] {
            // A subclass has the method of the engine.
            let source = format!(
                "const own = {list}; const taken = own.splice({arguments});
                 class List extends Array {{}}
                 const other = List.from({list}); const gone = other.splice({arguments});
                 return JSON.stringify([own, taken]) === JSON.stringify([[...other], [...gone]])"
            );
            assert_values(&[(&source, "true")]);
        }
    }
    assert_values(&[
        (
            "return [[].splice.name, [].splice.length, Array.isArray([1].splice(0))]",
            r#"["splice",2,true]"#,
        ),
        ("return Array.prototype.splice.call({ length: 2, 0: 'a', 1: 'b' }, 0, 1)", r#"["a"]"#),
        (
            "try { Object.freeze([1, 2]).splice(0, 1) } catch (e) { return e.name }",
            r#""TypeError""#,
        ),
    ]);
}
