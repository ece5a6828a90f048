//! What the console shows.

use super::run;

#[track_caller]
fn assert_output(cases: &[(&str, &str)]) {
    for (source, expected) in cases {
        let run = run(source);
        assert_eq!(run.output, *expected, "{source}\n{:?}", run.outcome);
    }
}

#[test]
fn values_are_shown_as_readers_expect() {
    assert_output(&[
        ("console.log('plain', 'text')", "plain text\n"),
        ("console.log()", "\n"),
        ("console.log('it\\'s', [\"it's\"])", "it's [ 'it\\'s' ]\n"),
        (
            "console.log(1, -0, 10n, true, null, undefined, Symbol('s'))",
            "1 -0 10n true null undefined Symbol(s)\n",
        ),
        (
            "console.log({ a: 1, 'b-c': [1, 2], d: { e: {} } })",
            "{ a: 1, 'b-c': [ 1, 2 ], d: { e: {} } }\n",
        ),
        ("console.log([], {}, [[]], [undefined, null])", "[] {} [ [] ] [ undefined, null ]\n"),
        ("console.log([1, , 3])", "[ 1, <1 empty item>, 3 ]\n"),
        (
            "console.log(new Map([['k', { v: 1 }]]), new Set([1]))",
            "Map(1) { 'k' => { v: 1 } } Set(1) { 1 }\n",
        ),
        (
            "console.log(new Date(0), new Date(NaN), /x/g)",
            "1970-01-01T00:00:00.000Z Invalid Date /x/g\n",
        ),
        (
            "class Point { x = 1 } console.log(new Point(), Point, () => 1, echo)",
            "Point { x: 1 } [class Point] [Function: (anonymous)] [Function: echo]\n",
        ),
        (
            "console.log(Object.create(null), new Uint8Array(2))",
            "[Object: null prototype] {} Uint8Array(2) [ 0, 0 ]\n",
        ),
        ("const a = { n: 1 }; a.self = a; console.log(a)", "{ n: 1, self: [Circular] }\n"),
        ("console.log({ get a() { throw 1 }, set b(x) {} })", "{ a: [Getter], b: [Setter] }\n"),
        ("console.log(echo({}))", "Promise { … } (await it for its value)\n"),
        ("console.log('\\ud800', ['\\ud800'])", "\u{fffd} [ '\u{fffd}' ]\n"),
        ("console.log(['a\\nb\\u0007'])", "[ 'a\\nb\\x07' ]\n"),
        ("console.log(new URL('https://a.b/c'))", "URL 'https://a.b/c'\n"),
        (
            "console.log({ __proto__: null, ['__proto__']: 1 })",
            "[Object: null prototype] { __proto__: 1 }\n",
        ),
        ("console.log(new Proxy({ a: 1 }, {}))", "{ a: 1 }\n"),
    ]);
}

#[test]
fn long_values_are_broken_into_lines() {
    assert_output(&[(
        "console.log([{ id: 1, name: 'a'.repeat(60) }, { id: 2, name: 'b'.repeat(60) }])",
        &format!(
            "[\n  {{ id: 1, name: '{}' }},\n  {{ id: 2, name: '{}' }}\n]\n",
            "a".repeat(60),
            "b".repeat(60)
        ),
    )]);
    // As Node shows them.
    assert_output(&[
        (
            "console.log(Array.from({ length: 60 }, (_, i) => i * 7))",
            "[\n    0,   7,  14,  21,  28,  35,  42,  49,  56,  63,\n   70,  77,  84,  91,  98, 105, 112, 119, 126, 133,\n  140, 147, 154, 161, 168, 175, 182, 189, 196, 203,\n  210, 217, 224, 231, 238, 245, 252, 259, 266, 273,\n  280, 287, 294, 301, 308, 315, 322, 329, 336, 343,\n  350, 357, 364, 371, 378, 385, 392, 399, 406, 413\n]\n",
        ),
        (
            "console.log(Array.from({ length: 24 }, (_, i) => 'w'.repeat(1 + (i % 5))))",
            "[\n  'w',     'ww',    'www',   'wwww',\n  'wwwww', 'w',     'ww',    'www',\n  'wwww',  'wwwww', 'w',     'ww',\n  'www',   'wwww',  'wwwww', 'w',\n  'ww',    'www',   'wwww',  'wwwww',\n  'w',     'ww',    'www',   'wwww'\n]\n",
        ),
    ]);
}

#[test]
fn errors_are_shown_with_their_positions() {
    assert_output(&[
        ("console.log(new Error('x'))", "Error: x\n    at script.js:1:13\n"),
        ("console.log([new TypeError('x')])", "[\n  [TypeError: x\n      at script.js:1:14]\n]\n"),
        (
            "try { await fail({}) } catch (e) { console.log(e) }",
            "ToolError: the disk is full\n    at script.js:1:13\n",
        ),
        (
            "const e = new Error('a'); e.message = 'b'; e.code = 1; console.log(e)",
            "Error: b\n    at script.js:1:11 { code: 1 }\n",
        ),
    ]);
}

#[test]
fn directives_are_filled_in() {
    assert_output(&[
        ("console.log('%s is %d, %i, %f', 'Bob', '42', 4.9, '1.5')", "Bob is 42, 4, 1.5\n"),
        ("console.log('%j %o %O %%', { a: 1 }, [1], { b: 2 })", "{\"a\":1} [ 1 ] { b: 2 } %\n"),
        ("console.log('%s')", "%s\n"),
        ("console.log('%s', 'a', 'b')", "a b\n"),
        ("console.log('100%', 5)", "100% 5\n"),
        ("console.log('%c styled', 'color: red')", " styled\n"),
    ]);
}

#[test]
fn warnings_and_errors_go_to_stderr() {
    let run = run(
        "console.error('e', { a: 1 }); console.warn('w'); console.info('i'); console.debug('d'); console.assert(1 === 2, 'why'); console.assert(true, 'not')",
    );
    assert_eq!(run.complaints, "e { a: 1 }\nw\nAssertion failed: why\n");
    assert_eq!(run.output, "i\nd\n");
}

#[test]
fn the_rest_of_the_console_works() {
    assert_output(&[
        (
            "console.table([{ a: 1, b: 'x' }, { a: 2, c: [1] }])",
            "| (index) | a | b | c |\n|---|---|---|---|\n| 0 | 1 | x |  |\n| 1 | 2 |  | [ 1 ] |\n",
        ),
        ("console.table({ r: { a: 1 } }, ['a'])", "| (index) | a |\n|---|---|\n| r | 1 |\n"),
        ("console.table([1, 'two'])", "| (index) | Values |\n|---|---|\n| 0 | 1 |\n| 1 | two |\n"),
        ("console.table('text')", "text\n"),
        (
            "console.group('g'); console.log('a\\nb'); console.groupEnd(); console.groupEnd(); console.log('c')",
            "g\n  a\n  b\nc\n",
        ),
        ("console.count(); console.count('x'); console.count()", "default: 1\nx: 1\ndefault: 2\n"),
        ("console.dir({ a: 1 }); console.clear()", "{ a: 1 }\n"),
    ]);
    let timed = run("console.time('t'); console.timeEnd('t'); console.timeEnd('t')");
    assert!(timed.output.starts_with("t: ") && timed.output.ends_with("ms\n"), "{}", timed.output);
    assert!(
        run("console.trace('here')").complaints.starts_with("Trace: here\n    at script.js:1:")
    );
}

#[test]
fn output_is_bounded() {
    for source in [
        "console.log(Array.from({ length: 1e5 }, (_, i) => i))",
        "console.log({ text: 'x'.repeat(5e6) })",
        "console.log(Array.from({ length: 1000 }, () => 'y'.repeat(1e4)))",
        "const wide = () => Object.fromEntries(Array.from({ length: 50 }, (_, i) => ['key' + i, 1])); const deep = Array.from({ length: 50 }, () => Array.from({ length: 50 }, wide)); console.log(deep)",
        "console.table(Array.from({ length: 5000 }, (_, a) => ({ a })))",
    ] {
        let output = run(source).output;
        assert!(output.len() < 2_000_000, "{source}: {}", output.len());
        assert!(output.contains('…'), "{source}: says that there is more");
    }
    let text = run("console.log('x'.repeat(5e6))").output;
    assert!(text.len() < 4_500_000 && text.contains("more characters"));
}
