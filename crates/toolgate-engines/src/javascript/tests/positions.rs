//! An error has the line of the statement that raised it.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::{failure, run_at};
use crate::{EngineOutcome, javascript::tests::LIMITS};

/// Statements that raise, each in one line. `bad` is null.
const RAISING: &[&str] = &[
    "const { a } = bad;",
    "const { a } = await bad;",
    "const [a] = bad;",
    "const [a, ...b] = 5;",
    "let { b: { c } } = {};",
    "var { v = this.a.b } = {};",
    "[w] = bad;",
    "({ w } = bad);",
    "for (const q of 5) {}",
    "for (const q of {}) {}",
    "for (const [q] of [1]) {}",
    "for (const { a: { b } } of [{}]) { w = b; }",
    "for (const q of { [Symbol.iterator]: () => ({ next: () => 1 }) }) { w = q; }",
    "for await (const q of 5) {}",
    "for (const q in null.x) {}",
    "for (let i = null.x; ;) {}",
    "return this.a.b;",
    "return null.x;",
    "const v = null.x;",
    "const v = 'abc'.foo.bar;",
    "const v = [1, 2].foo.bar, u = 1;",
    "const v = { ...w, x: null.y };",
    "const v = `${null.x}`;",
    "const v = new 5;",
    "const v = 1n + 1;",
    "const v = Symbol() + '';",
    "if (null.x) {}",
    "if (bad) {} else if (null.x) {}",
    "if (bad === null) return this.a.b;",
    "while (null.x) {}",
    "do { w = 1; } while (null.x);",
    "switch (null.x) {}",
    "switch (1) { case 2: w = 1; case null.x: }",
    "try { w = 1; throw 1; } catch ({ a: { b } }) {}",
    "throw new Error('x');",
    "null.f();",
    "bad.x.y;",
    "delete null.x;",
    "await null.x;",
    "w = null.x;",
    "missing_name;",
    "const v = missing_name;",
    "JSON.parse('{');",
    "class D extends 5 {}",
    "class D { static x = null.y; }",
    "class D { static { null.y; } }",
    "new (class { y = null.z; })();",
    "await (async ({ a }) => a)(bad);",
    "[1].map(({ a: { b } }) => b);",
    "[1].map(() => null.x);",
    "label: for (const q of 5) { continue label; }",
    "await fail({});",
    "missing_call(\n  bad,\n  w);",
    "w = bad.call(\n  bad);",
    "await fail({\n  a: w,\n});",
    "w = [1, 2].nope(\n  ...[w],\n  (q) => q + w);",
    "throw new Error(\n  `a ${w}` +\n  w);",
];

/// What is around a statement.
#[derive(Debug, Clone, Copy)]
enum Around {
    Finally,
    Catch,
    ForOf,
    For,
    DoWhile,
    Switch,
    Labelled,
    Function,
    Arrow,
    Method,
    Constructor,
    Else,
}

const AROUND: &[Around] = &[
    Around::Finally,
    Around::Catch,
    Around::ForOf,
    Around::For,
    Around::DoWhile,
    Around::Switch,
    Around::Labelled,
    Around::Function,
    Around::Arrow,
    Around::Method,
    Around::Constructor,
    Around::Else,
];

impl Around {
    /// The lines before and after. `n` makes names unique.
    fn lines(self, n: usize) -> (String, String) {
        let (before, after) = match self {
            Self::Finally => {
                ("try {".into(), "} finally {\n  w = 1;\n  const [z] = [1];\n}".into())
            }
            Self::Catch => {
                ("try {".into(), "} catch (error) {\n  w = 2;\n  throw error;\n}".into())
            }
            Self::ForOf => (format!("for (const [x{n}] of [[1], [2]])\n{{"), "}".into()),
            Self::For => (format!("for (let i{n} = 0; i{n} < 2; i{n}++) {{"), "}".into()),
            Self::DoWhile => ("do {".into(), "}\nwhile (w > 99);".into()),
            Self::Switch => ("switch (1) {\n  case 0: w = 3;\n  default: {".into(), "}}".into()),
            Self::Labelled => (format!("l{n}: while (true) {{"), "}".into()),
            Self::Function => {
                (format!("async function f{n}() {{"), format!("}}\nw = 4;\nreturn await f{n}();"))
            }
            Self::Arrow => {
                (format!("const f{n} = async ({{ a }}) => {{"), format!("}}\nawait f{n}({{}});"))
            }
            Self::Method => (
                format!("class C{n} {{\n  y = 1;\n  static async m() {{"),
                format!("}}}}\nawait C{n}.m();"),
            ),
            Self::Constructor => (
                format!(
                    "class C{n} {{\n  z = (w, 1);\n  constructor() {{ this.p = (async () => {{"
                ),
                format!("}})(); }}}}\nawait new C{n}().p;"),
            ),
            Self::Else => ("if (w > 99) return;\nelse {".into(), "}".into()),
        };
        (before, after)
    }
}

/// Statements that raise nothing.
const FILLING: &[&str] = &[
    "console.log('first');",
    "w = await echo({ i: 1 }) && 1;",
    "{ const [k, l = 2] = [1]; w = k + l; }",
    "for (const k of [1]) w += k;",
    "if (w) w = 1; else w = 2;",
    "try { null.x } catch (e) { w = 1 }",
    "w = [1]\n  .map((k) => k + 1)\n  .length;",
    "// a comment, and an é",
    "",
    "/* é */ var filling = 1, { v: filled = 1 } = {};",
];

#[derive(Debug, Clone)]
struct Case {
    raising: &'static str,
    around: Vec<(Around, Vec<&'static str>)>,
    filling: Vec<&'static str>,
    after: Vec<&'static str>,
}

impl Case {
    /// The script, and the line that raises.
    fn script(&self) -> (String, usize) {
        let mut text = "const bad = null; let w = 0;\n".to_owned();
        let mut ends = Vec::new();
        for (n, (around, filling)) in self.around.iter().enumerate() {
            for line in filling {
                let _ = writeln!(text, "{line}");
            }
            let (before, after) = around.lines(n);
            let _ = writeln!(text, "{before}");
            ends.push(after);
        }
        for line in &self.filling {
            let _ = writeln!(text, "{line}");
        }
        let line = text.matches('\n').count() + 1;
        let _ = writeln!(text, "  {}", self.raising);
        for line in &self.after {
            let _ = writeln!(text, "{line}");
        }
        for end in ends.iter().rev() {
            let _ = writeln!(text, "{end}");
        }
        (text, line)
    }
}

fn fillings() -> impl Strategy<Value = Vec<&'static str>> {
    proptest::collection::vec(proptest::sample::select(FILLING), 0..3)
}

fn cases() -> impl Strategy<Value = Case> {
    let around = (proptest::sample::select(AROUND), fillings());
    let around = proptest::collection::vec(around, 0..4);
    let raising = proptest::sample::select(RAISING);
    (raising, around, fillings(), fillings()).prop_map(|(raising, around, filling, after)| Case {
        raising,
        around,
        filling,
        after,
    })
}

fn assert_line(source: &str, line: usize) {
    let failure = failure(source);
    let found = failure.stack.first().map(|frame| frame.position);
    let found = found.unwrap_or_else(|| panic!("no line\n{source}\n{failure:?}"));
    assert_eq!(usize::try_from(found.line), Ok(line), "{source}\n{failure:?}");
    assert!(found.column > 0, "{source}\n{failure:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn the_line_is_that_of_the_statement(case in cases()) {
        let (source, line) = case.script();
        assert_line(&source, line);
    }
}

#[test]
fn every_operation_has_its_line() {
    for raising in RAISING {
        for (filling, line) in [("", 1), ("console.log('first');\nlet n = 1, w;\n", 3)] {
            let head = "let bad = null, w; ";
            let source = match filling {
                "" => format!("{head}{raising}"),
                filling => format!("{filling}let bad = null; {raising}"),
            };
            assert_line(&source, line);
        }
    }
}

#[test]
fn an_error_has_the_line_where_it_is_thrown() {
    for (source, line) in [
        (
            "class X extends Error {\n  constructor(m) {\n    super(m);\n    this.name = 'X';\n  }\n}\nthrow new X('bad');",
            7,
        ),
        (
            "class X extends Error {}\nclass Y extends X {}\nfunction f() {\n  throw new Y('bad');\n}\nf();",
            4,
        ),
        (
            "class X extends Error {\n  constructor() {\n    super(null.x);\n  }\n}\nthrow new X();",
            3,
        ),
        ("const a = 1;\nthrow 'text';", 2),
        ("const a = 1;\nif (a) {\n  throw { code: 5 };\n}", 3),
        ("try {\n  throw 'one';\n} catch (error) {\n  throw 'two';\n}", 4),
    ] {
        assert_line(source, line);
    }
    // It may be either.
    let unclear = "const f = (x) => {\n  if (x) throw x;\n  throw [x];\n};\nf(5);";
    assert!(failure(unclear).stack.is_empty(), "{unclear}");
    let rejected = "const a = 1;\nif (!a) throw a;\nawait Promise.reject('text');";
    assert!(failure(rejected).stack.is_empty(), "{rejected}");
}

#[test]
fn columns_are_those_of_the_script() {
    for (source, line, column) in [
        ("const { a } = null;", 1, 1),
        ("const é = 1; const { a } = null;", 1, 14),
        ("const a = 1; const b = 2; if (a) throw new Error('x')", 1, 40),
        ("const a = 1; if (a) return missing;", 1, 28),
        ("for (const q of [1]) {\n  const a = 1; const [b] = q;\n}", 2, 16),
        ("let a = 1; let a = 2;", 1, 18),
    ] {
        let position = failure(source).stack.first().map(|frame| frame.position);
        let position = position.map(|found| (found.line, found.column));
        assert_eq!(position, Some((line, column)), "{source}");
    }
    let stack = "const a = 1; const f = () => { const { b } = null; };\ntry { f() } catch (e) { return e.stack }";
    match run_at(stack, &[], LIMITS, usize::MAX).outcome {
        EngineOutcome::Value(Some(stack)) => {
            assert!(
                stack.get().contains("at f (script.js:1:32)\\n    at script.js:2:7\""),
                "{stack}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_error_that_is_made_over_several_lines_has_the_line_where_that_begins() {
    for (source, line, column) in [
        ("const x = 5;\nthrow new Error(\n  'a' +\n  x\n);", 2, 7),
        ("const x = 5;\nthrow new Error('a' + x);", 2, 7),
        ("const x = 5;\nthrow new Error;", 2, 7),
        ("const x = 5;\nthrow new Error(\n);", 2, 7),
        (
            "const l = [1];\nthrow new Error('first ' +\n  l.map((i) => i * 2)\n    .join(', '));",
            2,
            7,
        ),
        ("const x = 5;\nconst e = new TypeError(\n  'a',\n  { cause: x },\n);\nthrow e;", 2, 11),
        (
            "class MyError extends Error {}\nconst x = 5;\nthrow new MyError(\n  'a' +\n  x,\n);",
            3,
            7,
        ),
        // The argument is what fails.
        ("const m = null;\nthrow new Error(\n  'x',\n  m.b\n);", 4, 3),
        ("throw new Error(\n  'x',\n  [1].map((i) => {\n    return missing;\n  })\n);", 4, 12),
        (
            "throw new Error(\n  'x',\n  (() => {\n    throw new Error(\n      `é${1}`);\n  })()\n);",
            4,
            11,
        ),
    ] {
        let stack = failure(source).stack;
        let position = stack.first().map(|frame| (frame.position.line, frame.position.column));
        assert_eq!(position, Some((line, column)), "{source}\n{stack:?}");
    }
    // So has a caller's frame.
    let source = "class Shape {\n  constructor(n) {\n    if (n) throw new RangeError('bad');\n  }\n}\nconst n = 1;\nnew Shape(\n  n,\n);";
    let lines: Vec<u32> = failure(source).stack.iter().map(|frame| frame.position.line).collect();
    assert_eq!(lines, [3, 7]);
}

/// Calls that raise, over several lines. The name that is called, `raise` or `fail`, is in the first.
const CALLS: &[&str] = &[
    "raise(\n  x,\n);",
    "raise(\n);",
    "raise( );",
    "raise(\n  1, 'a',\n);",
    "const r = raise(\n  [\n    { id: 1, v: { n: x } },\n    { id: x },\n  ],\n);",
    "const r = o.raise(\n  o.id(x),\n  [x].map((i) => i + x),\n);",
    "const r = o?.raise(\n  x);",
    "const r = o.raise?.(\n  x);",
    "const r = (raise)(\n  x);",
    "const r = o['raise'](\n  x);",
    "return raise(\n  x, (i) => x);",
    "return raise(\n  (i) => x,\n  async function () { return x; });",
    "return raise(\n  ...[x],\n  ...o.id([x]));",
    "const { a } = raise(\n  x);",
    "o.id(1, raise(\n  x), x);",
    "[1].map((i) => raise(\n  i + x,\n  x));",
    "new Raise(\n  x);",
    "new Raise(\n);",
    "new Raise;",
    "await new Promise((go) => raise(\n  go, x));",
    "await fail({\n  a: x + String(\n    o.x),\n});",
    "await fail(\n  { a: x },\n);",
    "return fail(\n  { a: `${x}`, b: [x] },\n);",
    "await Promise.all([x].map((i) => fail({\n  a: i, x,\n})));",
    "await tools.fail({\n  a: x,\n});",
];

#[test]
fn a_call_over_several_lines_has_the_line_of_its_name() {
    let head = "const x = 1;\nconst o = { x, id: (i) => i, raise: (a) => { throw new Error('bad'); } };\n\
                const raise = o.raise;\nclass Raise { constructor(a) { throw new Error('bad'); } }\n";
    for call in CALLS {
        let source = format!("{head}try {{\n  {call}\n}} finally {{ o.id(x); }}");
        let stack = failure(&source).stack;
        let frame = stack.iter().find(|frame| frame.position.line > 4);
        let found = frame.map(|frame| (frame.position.line, frame.position.column));
        // The column is that of the name, of `new`, or of what has a computed name.
        let name =
            ["new Raise", "o['raise']", "raise", "fail"].iter().find_map(|name| call.find(name));
        let column = name.and_then(|at| u32::try_from(at).ok()).map(|at| at + 3);
        assert_eq!(found, column.map(|column| (6, column)), "{source}\n{stack:?}");
    }
}

#[test]
fn a_mark_changes_nothing_else() {
    for (source, expected) in [
        (
            "const f = (g) => g.name; return [f(() => 1), f(function () {}), f((() => 1)), f(class {})]",
            r#"["","","",""]"#,
        ),
        ("const f = (...a) => a; return f(...[1, 2], ...[3])", "[1,2,3]"),
        ("const $_ = 1; const f = (a) => a + $_; return f(f(1))", "3"),
        (
            "'use strict'; return [(function () { return this === undefined })(), ((a) => a)(1), arguments.length]",
            "[true,1,0]",
        ),
        (
            "function* g(a) { const b = yield a(1); return a(yield b) } const i = g((x) => x); i.next(); i.next(2); return i.next(3)",
            r#"{"value":3,"done":true}"#,
        ),
        (
            "class A { #p = 1; get(o) { return Number(#p in o) } } class B extends A { constructor(x) { super(x); } } return new B(1).get(new A())",
            "1",
        ),
        ("const f = async (a) => a; return await f(await f(2))", "2"),
    ] {
        match run_at(source, &[], LIMITS, usize::MAX).outcome {
            EngineOutcome::Value(Some(value)) => assert_eq!(value.get(), expected, "{source}"),
            other => panic!("{source}\n{other:?}"),
        }
    }
}

#[test]
fn the_hint_is_about_the_result_of_that_line() {
    let source = "const r = await text({ value: 'null' });\nconst n = 1;\nconst { a } = r;";
    let failure = failure(source);
    assert_eq!(failure.hint.as_deref(), Some("the last result of `text` is null"), "{failure:?}");
}

#[test]
fn what_is_not_a_function_is_named() {
    for (source, message) in [
        ("const r = {}; r.foo(1);", "r.foo is not a function"),
        ("const r = { a: {} };\nconst q = r.a.foo(1, 2);", "r.a.foo is not a function"),
        ("const f = 5; f();", "f is not a function"),
        ("const r = {}; await r['x'](1)", "r['x'] is not a function"),
        ("const r = {}; new r.X()", "r.X is not a function"),
        ("const r = { a: {} };\nr.a\n  .b(1)", "b is not a function"),
        ("const r = []; r.map((x) => x).nope()", "nope is not a function"),
        (
            "const api = {}; const id = 3;\nawait api.fetch({\n  id: id,\n  nested: { id },\n});",
            "api.fetch is not a function",
        ),
        ("const r = {}; const k = 'a'; r['x_' + k]({ k })", "r['x_' + k] is not a function"),
        // It is the argument that is no function.
        ("[1].map(5)", "not a function"),
        ("5()", "not a function"),
    ] {
        assert_eq!(failure(source).message, format!("TypeError: {message}"), "{source}");
    }
}
