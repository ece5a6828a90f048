//! Work grows with the input, not faster. What is counted is how often the engine asks whether to
//! go on, which is once for some thousand steps of a script.

use super::{assert_values, world::steps_of};

/// Scripts whose work should be in proportion to `n`, with an `n` that is just large enough to count:
/// some ten times.
const LINEAR: &[(u64, &str)] = &[
    (
        2_000,
        "const p = new URLSearchParams(); for (let i = 0; i < n; i++) p.append('k' + i, 'v'); String(p)",
    ),
    (
        1_000,
        "const u = new URL('http://a/'); for (let i = 0; i < n; i++) u.searchParams.append('k' + i, 'v'); u.href",
    ),
    (500, "new URLSearchParams('a=1%20&'.repeat(n)).size"),
    (2_000, "new URL('http://a/' + 'b/../c/'.repeat(n)).href"),
    (
        2_000,
        "const t = new EventTarget(); for (let i = 0; i < n; i++) t.addEventListener('a', () => 1); t.dispatchEvent(new Event('a'))",
    ),
    (
        2_000,
        "const t = new EventTarget(); for (let i = 0; i < n; i++) t.addEventListener('a', () => 1, { once: true }); t.dispatchEvent(new Event('a'))",
    ),
    (
        50_000,
        "const l = Array.from({ length: n }, (_, i) => i); while (l.length) l.splice(0, 5_000)",
    ),
    (600, "structuredClone(Array.from({ length: n }, (_, i) => ({ id: i, tags: ['x'] })))"),
    (400, "structuredClone(new Map(Array.from({ length: n }, (_, i) => [{ i }, { i }])))"),
    (1_400, "for (let i = 0; i < n; i++) console.log(i, 'x')"),
    (
        30_000,
        "console.log('%s '.repeat(n / 10), ...Array(5000).fill('x')); for (let i = 0; i < n; i++);",
    ),
    (8_000, "JSON.stringify(new Map(Array.from({ length: n }, (_, i) => ['k' + i, i])))"),
    (14_000, "JSON.stringify(Array.from({ length: n }, () => 12345678901234567890n))"),
    (
        1_000,
        "const d = new TextDecoder(); const b = new TextEncoder().encode('é€a'); for (let i = 0; i < n; i++) d.decode(b, { stream: true })",
    ),
    (1_800, "new TextEncoder().encodeInto('é€a'.repeat(n), new Uint8Array(n * 6))"),
    (2_200, "Buffer.concat(Array.from({ length: n }, () => Buffer.from('abc'))).toString('hex')"),
    (
        2_000,
        "const h = process.getBuiltinModule('crypto').createHash('md5'); for (let i = 0; i < n; i++) h.update('abc'); h.digest('hex')",
    ),
    (30_000, "(10n ** BigInt(n / 10)).toLocaleString(); for (let i = 0; i < n; i++);"),
    (25_000, "new Intl.ListFormat('en').format(Array.from({ length: n }, (_, i) => 'x' + i))"),
    (1_000, "'a1'.repeat(n).localeCompare('a1'.repeat(n) + 'b', 'en', { numeric: true })"),
    (6_000, "'é'.repeat(n).localeCompare('e'.repeat(n))"),
    (600, "for (let i = 0; i < n; i++) (i * 1000.5).toLocaleString()"),
    (200, "for (let i = 0; i < n; i++) new Date(i * 1e9).toLocaleString('en-US')"),
    (
        5_000,
        "await Promise.all(Array.from({ length: n }, (_, i) => new Promise((r) => setTimeout(r, i))))",
    ),
    (3_500, "for (let i = 0; i < n; i++) await echo({ i })"),
    (3_000, "await Promise.allSettled(Array.from({ length: n }, (_, i) => fail({ i })))"),
    (2_000, "for (let i = 0; i < n; i++) { try { null.x } catch (e) { e.stack } }"),
];

#[test]
fn four_times_the_input_is_at_most_five_times_the_work() {
    let slow: Vec<String> =
        LINEAR.iter().filter_map(|(n, script)| grows_faster(*n, script)).collect();
    assert!(slow.is_empty(), "{}", slow.join("\n"));
    // The count is fine enough to find what grows with the square.
    let square = "const l = []; for (let i = 0; i < n; i++) { for (const x of l) x; l.push(i) }";
    assert!(grows_faster(300, square).is_some());
}

/// Both counts, if four times the input is clearly more than four times the work.
fn grows_faster(n: u64, script: &str) -> Option<String> {
    let steps = |n: u64| steps_of(&format!("const n = {n};\n{script}")).max(4);
    let (once, four) = (steps(n), steps(n * 4));
    (four > once * 5 + 4).then(|| format!("{once} and {four}: {script}"))
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
