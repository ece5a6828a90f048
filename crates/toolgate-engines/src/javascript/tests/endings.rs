//! How scripts fail.

use super::{LIMITS, assert_failures, failure, failure_of, run, run_with, value};
use crate::{EngineOutcome, FailureKind, ScriptPosition};

#[test]
fn syntax_errors_have_a_position() {
    for (source, line, column) in [
        ("const x = ;", 1, 11),
        ("const x = 1;\nconst y = ;", 2, 11),
        ("let a;\nlet a;", 2, 6),
        ("return 'é' ];", 1, 12),
        ("return (1;", 1, 10),
        ("await await", 1, 0),
        ("}", 1, 0),
        ("if (true) {", 1, 0),
        ("x = `open", 1, 0),
    ] {
        let failure = failure(source);
        assert_eq!(failure.kind, FailureKind::Syntax, "{source}");
        assert!(failure.message.starts_with("SyntaxError: "), "{source}: {}", failure.message);
        let position = failure.stack.first().map(|frame| frame.position);
        if column > 0 {
            assert_eq!(position, Some(ScriptPosition { line, column }), "{source}: {failure:?}");
        }
    }
    assert_eq!(failure("const \0 = 1").kind, FailureKind::Syntax);
    let import = failure("import fs from 'fs';\nreturn 1");
    assert_eq!(import.kind, FailureKind::Syntax);
    assert!(import.hint.expect("a hint").contains("no modules"));
    assert!(failure("export const a = 1").hint.expect("a hint").contains("return"));
}

#[test]
fn an_uncaught_error_shows_the_scripts_own_lines() {
    let source = "const rows = [1];\nfunction inner(row) {\n  return row.a.b;\n}\nrows.map((row) => inner(row));";
    let failure = failure(source);
    assert_eq!(failure.kind, FailureKind::Exception);
    assert_eq!(failure.message, "TypeError: cannot read property 'b' of undefined");
    let stack: Vec<_> = failure
        .stack
        .iter()
        .map(|frame| (frame.function.as_str(), frame.position.line, frame.position.column))
        .collect();
    assert_eq!(stack, [("inner", 3, 10), ("<anonymous>", 5, 19), ("", 5, 6)]);
}

#[test]
fn columns_count_characters_also_on_the_first_line() {
    for (source, line, column) in
        [("null.x", 1, 1), ("'äöü'; missing()", 1, 8), ("\n'äöü😀'; missing()", 2, 9)]
    {
        let failure = failure(source);
        assert_eq!(failure.stack[0].position, ScriptPosition { line, column }, "{source}");
    }
    assert_eq!(
        value("function f() { return new Error('x').stack }\nreturn f()"),
        r#""Error: x\n    at f (script.js:1:23)\n    at script.js:2:8""#
    );
}

#[test]
fn any_thrown_value_is_reported() {
    assert_failures(&[
        ("throw new Error('plain')", FailureKind::Exception, "Error: plain"),
        ("throw 'text'", FailureKind::Exception, "Uncaught text"),
        ("throw { code: 1 }", FailureKind::Exception, "Uncaught { code: 1 }"),
        ("throw undefined", FailureKind::Exception, "Uncaught undefined"),
        ("throw null", FailureKind::Exception, "Uncaught null"),
        ("await Promise.reject(null)", FailureKind::Exception, "Uncaught null"),
        (
            "throw new Error('outer', { cause: new TypeError('inner') })",
            FailureKind::Exception,
            "[cause]: TypeError: inner",
        ),
        (
            "await Promise.any([fail({}), fail({})])",
            FailureKind::Exception,
            "[1]: ToolError: the disk is full",
        ),
        (
            "class Mine extends Error { name = 'Mine' } throw new Mine('own')",
            FailureKind::Exception,
            "Mine: own",
        ),
        (
            "throw new DOMException('gone', 'AbortError')",
            FailureKind::Exception,
            "AbortError: gone",
        ),
        (
            "const e = new Error('x'); Object.defineProperty(e, 'message', { get() { throw 1 } }); throw e",
            FailureKind::Exception,
            "Error",
        ),
        ("const e = new Error('x'); e.stack = 7; throw e", FailureKind::Exception, "Error: x"),
        (
            "const e = new Error('x'); e.stack = 'at script.js:9999:9999'; throw e",
            FailureKind::Exception,
            "Error: x",
        ),
        (
            "throw new Proxy({}, { get() { throw 1 }, getPrototypeOf() { throw 2 }, ownKeys() { throw 3 } })",
            FailureKind::Exception,
            "",
        ),
        ("undeclared = 1", FailureKind::Exception, "undeclared is not defined"),
    ]);
    assert!(failure("throw new Error('x'.repeat(1e6))").message.len() < 10_000);
}

#[test]
fn a_script_that_waits_for_ever_ends() {
    assert_failures(&[
        ("await new Promise(() => {})", FailureKind::Stalled, "nothing can settle"),
        ("await echo({}); await new Promise(() => {})", FailureKind::Stalled, "nothing can settle"),
        ("await { then() {} }", FailureKind::Stalled, "nothing can settle"),
        (
            "let release; const lock = new Promise((r) => { release = r }); await lock.then(() => release())",
            FailureKind::Stalled,
            "nothing can settle",
        ),
    ]);
}

#[test]
fn a_script_may_end_itself() {
    for source in [
        "process.exit()",
        "process.exit(0)",
        "process.exitCode = 0; setTimeout(() => process.exit(), 5); await new Promise(() => {})",
        "async function main() { await echo({}); process.exit(0) } main(); return 1",
        "try { process.exit('0') } catch { console.log('caught') } finally { console.log('on') }",
        "echo({}).then(() => process.exit()).finally(() => console.log('on')); return 1",
    ] {
        let run = run(source);
        assert!(matches!(run.outcome, EngineOutcome::Value(None)), "{source}\n{:?}", run.outcome);
        assert_eq!(run.output, "", "{source}");
    }
    let message = "the script ended itself with exit code 1";
    assert_failures(&[
        ("process.exit(1)", FailureKind::Exception, message),
        ("process.exitCode = 1; process.exit()", FailureKind::Exception, message),
        (
            "async function main() { await fail({}) } main().catch((e) => { console.error(e); process.exit(1) })",
            FailureKind::Exception,
            message,
        ),
        ("process.cwd()", FailureKind::Unsupported, "process.cwd is not available here"),
        ("process.cwd()", FailureKind::Unsupported, "`console.log` writes"),
    ]);
    assert_eq!(
        value("return [process.env.HOME ?? 'none', process.argv.length, typeof process]"),
        r#"["none",0,"object"]"#
    );
}

#[test]
fn a_lost_host_ends_the_script() {
    for source in [
        "await echo({})",
        "while (true) { try { await echo({}) } catch {} }",
        "while (true) { try { echo({}) } catch {} }",
    ] {
        let failure = failure_of(source, run_with(source, LIMITS, 0));
        assert_eq!(failure.kind, FailureKind::Abandoned, "{source}");
    }
}

#[test]
fn a_long_message_keeps_its_end_and_its_line() {
    let failure = failure("const a = 1;\nthrow new Error('k l '.repeat(9000) + 'end')");
    assert_eq!(failure.stack.first().map(|frame| frame.position.line), Some(2), "{failure:?}");
    assert!(failure.message.starts_with("Error: k l "), "{failure:?}");
    assert!(failure.message.ends_with("k l end"), "{failure:?}");
    assert!(failure.message.contains(" characters left out …] "), "{failure:?}");
    assert!(failure.message.len() < 8_100);
}
