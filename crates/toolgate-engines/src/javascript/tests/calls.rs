//! Tools as functions.

use super::{LIMITS, assert_failures, assert_values, failure, failure_of, run, run_at, value};
use crate::{EngineOutcome, FailureKind};

#[test]
fn a_call_returns_what_the_tool_gave() {
    assert_values(&[
        (
            "return await echo({ value: [1, 'two', null, true] })",
            r#"{"value":[1,"two",null,true]}"#,
        ),
        ("return await echo()", "{}"),
        ("return await echo({ a: undefined, b: 1 })", r#"{"b":1}"#),
        ("return await echo(undefined)", "{}"),
        ("return (await text({ value: '\"plain\"' })).toUpperCase()", r#""PLAIN""#),
        ("return echo({}) instanceof Promise", "true"),
        ("return echo({ a: 1 }).then(({ a }) => a)", "1"),
        ("return echo.name + typeof echo", r#""echofunction""#),
        ("return await Promise.all([{ a: 1 }, { a: 2 }].map(echo))", r#"[{"a":1},{"a":2}]"#),
        ("return await echo(new Map([['a', 1]]))", r#"{"a":1}"#),
        ("return await echo({ when: new Date(0) })", r#"{"when":"1970-01-01T00:00:00.000Z"}"#),
    ]);
}

#[test]
fn any_tool_can_be_called_by_a_computed_name() {
    assert_values(&[
        ("return await tools.echo({ a: 1 })", r#"{"a":1}"#),
        ("return await tools['echo']({ a: 1 })", r#"{"a":1}"#),
        ("return tools.echo === tools.echo && tools.other === tools.other", "true"),
        ("return Object.keys(tools).includes('echo')", "true"),
        ("return ['echo' in tools, 'nothing' in tools]", "[true,false]"),
        ("return (await tools) === tools", "true"),
        ("const name = 'echo'; return await globalThis[name]({ a: 1 })", r#"{"a":1}"#),
        (
            "const t = 'log'; return await globalThis[\"git_\" + t]({ a: 1 }).catch((e) => e.tool)",
            r#""git_log""#,
        ),
        (
            "return typeof globalThis['no_such'] + typeof globalThis.also_not",
            r#""undefinedundefined""#,
        ),
        ("const n = 'Deno_x'; globalThis[n] = 1; return [globalThis[n], Deno_x]", "[1,1]"),
        (
            "const k = 'parseInt'; return [globalThis[k]('7'), typeof globalThis['nothing']]",
            r#"[7,"undefined"]"#,
        ),
        (
            "try { await tools.unknown_one({}) } catch (e) { return [e.tool, e.message] }",
            r#"["unknown_one","no such tool"]"#,
        ),
    ]);
    for (source, tool) in [
        ("await tools.unknown_one({ a: 1 }).catch(() => {})", "unknown_one"),
        ("await tools.my_server.some_tool({ a: 1 }).catch(() => {})", "my_server_some_tool"),
        ("await tools['my-server']['get.it']({ a: 1 }).catch(() => {})", "my_server_get_it"),
        ("const s = tools.git; await s.log({ a: 1 }).catch(() => {})", "git_log"),
        ("const n = 'git_log'; await globalThis[n]({ a: 1 }).catch(() => {})", "git_log"),
        ("await tools.git_log.call(null, { a: 1 }).catch(() => {})", "git_log"),
    ] {
        assert_eq!(run(source).calls, [(tool.to_owned(), r#"{"a":1}"#.to_owned())], "{source}");
    }
}

#[test]
fn a_part_that_is_read_from_a_promise_is_told() {
    for (source, told) in [
        (
            "const rs = [1, 2, 3, 4].map((n) => echo({ n })); console.log(rs.map((r) => r.n), rs[0].m)",
            "`n`, `m`: read from promises, which have no such part, 5 times: write `await`",
        ),
        (
            "const rs = [1, 2].map((n) => echo({ n })); for (const r of rs) r.n; null.x",
            "`n`: read from promises, which have no such part, 2 times: write `await`",
        ),
    ] {
        let run = run(source);
        assert!(run.complaints.starts_with(told), "{source}: {}", run.complaints);
        assert_eq!(run.complaints.matches("promises").count(), 1, "{}", run.complaints);
    }
    for (source, part) in [
        ("const get = (n) => echo({ n }); const r = get(1); console.log(r.customer)", "customer"),
        ("const get = async (n) => echo({ n }); console.log(`${get(1).title}`)", "title"),
        ("const r = echo({}); const { items } = r", "items"),
    ] {
        let run = run(source);
        let told =
            format!("`{part}` is read from a promise, which has no such part: write `await`");
        assert!(run.complaints.contains(&told), "{source}: {}", run.complaints);
    }
    for source in [
        "const x = [1, 2].map((i) => echo({ i })); console.log(x.reduce((a, b) => a + b, 0))",
        "const x = [1, 2].map((i) => echo({ i })); console.log(`${x[0]}`, x[1] > 1)",
        "const x = [1, 2].map((i) => echo({ i })); console.log(Math.max(...x))",
    ] {
        let told =
            "promises are used as texts or numbers, which they are not, 2 times: write `await`";
        let run = run(source);
        assert!(run.complaints.starts_with(told), "{source}: {}", run.complaints);
    }
    let both = run("const o = { a: echo({}) }; console.log(o.a + 1, o.a.n)");
    let told = "`n` is read from a promise, which has no such part; a promise is used as a text or a \
                number, which it is not: write `await`";
    assert!(both.complaints.starts_with(told), "{}", both.complaints);
    for source in [
        "const p = echo({}); console.log(p, JSON.stringify(p), typeof p, [p].length, p instanceof Object, p.hasOwnProperty('x'), 'x' in p)",
        "await Promise.all([echo({}), echo({})]); await echo({}).finally(() => {}); Promise.resolve(1).constructor",
        "const p = echo({}); p.own = 1; console.log(p.own, Promise.prototype.x, typeof p, { ...p }, Object.keys(p))",
        "class Mine extends Promise { n = 1 }; const p = new Mine((resolve) => resolve(2)); console.log(p.n, await p)",
        "return [await Promise.allSettled([echo({})]), structuredClone({ a: 1 })]",
    ] {
        assert_eq!(run(source).complaints, "", "{source}");
    }
}

#[test]
fn a_tools_error_is_an_exception() {
    assert_values(&[
        (
            "try { await fail({}) } catch (e) { return e.content }",
            r#"[{"type":"text","text":"the disk is full"}]"#,
        ),
        (
            "const content = [{ type: 'text', text: 'a' }, { type: 'image', data: 'h' }, { n: 1 }];
             try { await fail({ content }) } catch (e) { return [e.message, e.content, Object.keys(e)] }",
            r#"["no",[{"type":"text","text":"a"},{"type":"image","data":"h"},{"n":1}],[]]"#,
        ),
        ("return new ToolError('x').content", r#"[{"type":"text","text":"x"}]"#),
        (
            "try { await fail({}) } catch (e) { return [e instanceof ToolError, e instanceof Error, e.name, e.tool, e.message] }",
            r#"[true,true,"ToolError","fail","the disk is full"]"#,
        ),
        ("return await fail({}).catch((e) => `${e}`)", r#""ToolError: the disk is full""#),
        (
            "return (await Promise.allSettled([fail({}), echo({ a: 1 })])).map((r) => r.status)",
            r#"["rejected","fulfilled"]"#,
        ),
        (
            "return await Promise.allSettled([fail({})])",
            r#"[{"status":"rejected","reason":{"name":"ToolError","message":"the disk is full","tool":"fail"}}]"#,
        ),
        (
            "try { await fail({}) } catch (e) { return e.stack }",
            r#""ToolError: the disk is full\n    at script.js:1:13""#,
        ),
    ]);
    let failed = failure(
        "const x = 1;\nasync function load() {\n  return await fail({});\n}\nawait load();",
    );
    assert_eq!(failed.kind, FailureKind::Exception);
    assert_eq!(failed.message, "ToolError: the disk is full");
    let places: Vec<_> =
        failed.stack.iter().map(|frame| (frame.function.as_str(), frame.position.line)).collect();
    assert_eq!(places, [("load", 3), ("", 5)]);
}

#[test]
fn a_call_takes_one_object() {
    for argument in ["'text'", "1", "null", "[1]", "true", "() => 1", "undefined, {}", "1, 2"] {
        let failed = failure(&format!("await echo({argument})"));
        assert_eq!(
            failed.message, "TypeError: echo takes one object: echo({ value })",
            "{argument}"
        );
        assert_eq!(failed.stack[0].position.line, 1);
    }
    assert_failures(&[
        ("await echo(new Date(0))", FailureKind::Exception, "echo takes one object"),
        ("await echo({ a: echo({}) })", FailureKind::Exception, "await it first"),
        ("const a = {}; a.a = a; await echo(a)", FailureKind::Exception, "circular reference"),
        ("await Promise.all(['a', 'b'].map(echo))", FailureKind::Exception, "takes one object"),
    ]);
}

#[test]
fn calls_made_together_run_in_parallel() {
    let together = run(
        "return (await Promise.all(Array.from({ length: 100 }, (_, i) => echo({ i })))).length",
    );
    assert_eq!(together.most_at_once, 100);
    let one_by_one = run("for (let i = 0; i < 100; i++) await echo({ i })");
    assert_eq!(one_by_one.most_at_once, 1);
    assert_eq!(one_by_one.calls.len(), 100);
}

#[test]
fn calls_may_be_answered_in_any_order() {
    assert_eq!(
        value(
            "const seen = []; await Promise.all([last({ a: 1 }).then(() => seen.push('last')), echo({}).then(() => seen.push('echo'))]); return seen"
        ),
        r#"["echo","last"]"#
    );
    assert_eq!(value("return await Promise.race([last({ a: 1 }), echo({ b: 2 })])"), r#"{"b":2}"#);
}

#[test]
fn calls_that_are_not_awaited_are_made_and_their_errors_count() {
    let unawaited = run("[1, 2, 3].forEach(async (i) => { await echo({ i }); console.log(i); })");
    assert!(matches!(unawaited.outcome, EngineOutcome::Value(None)));
    assert_eq!(unawaited.calls.len(), 3);
    assert_eq!(unawaited.output.lines().count(), 3);
    assert_failures(&[
        ("fail({}); return 1", FailureKind::Exception, "the disk is full"),
        (
            "[1].forEach(async () => { await echo({}); throw new Error('inside') })",
            FailureKind::Exception,
            "inside",
        ),
        ("Promise.reject(new Error('alone')); await echo({})", FailureKind::Exception, "alone"),
        ("queueMicrotask(() => { throw new Error('micro') })", FailureKind::Exception, "micro"),
        (
            "new Promise(async () => { throw new Error('executor') }); await new Promise(() => {})",
            FailureKind::Exception,
            "executor",
        ),
    ]);
    assert_values(&[
        // Handled late is handled, as is what Promise.all has seen.
        (
            "const p = fail({}); await echo({}); try { await p } catch { return 'late' }",
            r#""late""#,
        ),
        (
            "try { await Promise.all([fail({}), fail({}), echo({})]) } catch (e) { return e.message }",
            r#""the disk is full""#,
        ),
        ("fail({}).catch(() => {}); return 1", "1"),
    ]);
}

#[test]
fn content_blocks_are_handed_on() {
    let emitted = run(
        "emit({ type: 'image', data: 'aGk=', mimeType: 'image/png' }); emit({ type: 'text', text: '\\ud800' })",
    );
    assert_eq!(
        emitted.blocks,
        [
            r#"{"type":"image","data":"aGk=","mimeType":"image/png"}"#.to_owned(),
            "{\"type\":\"text\",\"text\":\"\u{fffd}\"}".to_owned(),
        ]
    );
    assert_failures(&[("emit('x')", FailureKind::Exception, "emit takes a content block")]);
}

#[test]
fn a_call_reports_the_place_that_made_it() {
    let places = |source: &str| run_at(source, &["_0", "_1"], LIMITS, usize::MAX).places;
    let (first, second) = (Some(0), Some(1));
    for (source, expected) in [
        ("await _1({}); await _0({}); await echo({})", vec![second, first, None]),
        ("for (const n of [1, 2]) await _0({ n })", vec![first; 2]),
        ("const f = () => _0({}); await Promise.all([1, 2].map(f))", vec![first; 2]),
        ("await Promise.all([{}, {}].map(echo)); await tools.echo({})", vec![None; 3]),
        ("await _0?.({})", vec![first]),
        ("const f = _1; await f({})", vec![second]),
        // Only the text of the script can name a place.
        (
            "const n = '_0'; for (const o of [globalThis, tools]) try { await o[n]?.({}) } catch {}",
            vec![None],
        ),
        ("return (0, eval)('typeof _0')", vec![]),
    ] {
        assert_eq!(places(source), expected, "{source}");
    }
}

#[test]
fn a_failure_at_a_place_is_that_of_the_tool() {
    let run = |source: &str| run_at(source, &["_0"], LIMITS, usize::MAX);
    let failure = failure_of("_0", run("let x = 1;\n  await _0  (1)"));
    assert!(failure.message.contains("echo takes one object: echo({ value })"), "{failure:?}");
    let failure = failure_of("_0", run("let x = 1;\n  x.y.z; _0  ({})"));
    assert_eq!((failure.stack[0].position.line, failure.stack[0].position.column), (2, 3));
    let failure = failure_of("_0", run("if (_0({}) {"));
    assert_eq!(failure.kind, FailureKind::Syntax);
}

#[test]
fn parsing_what_is_data_gives_the_data() {
    assert_values(&[
        ("return JSON.parse(await echo({ a: [1] }))", r#"{"a":[1]}"#),
        ("return JSON.parse(await text({ value: '[1]' }))", "[1]"),
        ("return JSON.parse(await text({ value: '[\"7\"]' }))", r#"["7"]"#),
        ("return JSON.parse((await echo({ list: [{ b: 2 }] })).list)", r#"[{"b":2}]"#),
        (
            "return JSON.parse(await text({ value: '12345678901234567890' }))",
            "12345678901234567890",
        ),
        (
            "return JSON.parse(await echo({ a: 1 }), (k, v) => (k === 'a' ? v + 1 : v))",
            r#"{"a":2}"#,
        ),
        // As the language has it.
        ("return JSON.parse('{\"a\":1}')", r#"{"a":1}"#),
        (
            "return [JSON.parse(5), JSON.parse(true), JSON.parse(null), JSON.parse([1])]",
            "[5,true,null,1]",
        ),
        ("return JSON.parse({ toString: () => '[2]' })", "[2]"),
        ("return JSON.parse(new String('3'))", "3"),
        ("try { JSON.parse('nope') } catch (e) { return e.name }", r#""SyntaxError""#),
        ("try { JSON.parse(undefined) } catch (e) { return e.name }", r#""SyntaxError""#),
        ("try { JSON.parse(new Date(0)) } catch (e) { return e.name }", r#""SyntaxError""#),
        ("try { JSON.parse(new (class A {})()) } catch (e) { return e.name }", r#""SyntaxError""#),
        ("try { JSON.parse(() => 1) } catch (e) { return e.name }", r#""SyntaxError""#),
        ("return [JSON.parse.name, JSON.parse.length]", r#"["parse",2]"#),
    ]);
}

/// A result that was taken for something else is described in the hint.
#[test]
fn a_failure_on_a_result_says_what_the_result_is() {
    let result = "{ issues: [{ number: 7, title: 'x', user: { login: 'a' } }], total: 1 }";
    let shape = "the last result of `echo` is { issues: { number: number, title: string, user: \
                 { … } }[] (1), total: number }";
    for source in [
        format!("const r = await echo({result});\nreturn r.content[0].text;"),
        format!("const r = await echo({result});\nreturn r.structuredContent.issues;"),
        format!("const r = await echo({result});\nreturn r.map((x) => x.title);"),
        format!("const r = await echo({result});\nconst first = r.items;\nreturn first[0].title;"),
        format!("const r = await echo({result});\nfor (const x of r) console.log(x);"),
        format!("return (await echo({result})).items.length;"),
        format!("const {{ data }} = await echo({result});\nreturn data.issues;"),
        format!(
            "const r = await tools.echo({result});\nr.issues.forEach((issue) => {{\n  console.log(issue.owner.name);\n}});"
        ),
    ] {
        let hint = failure(&source).hint.unwrap_or_else(|| panic!("{source}"));
        assert!(hint.contains(shape), "{source}\n{hint}");
        let envelope = source.contains(".content[") || source.contains("structuredContent");
        assert_eq!(hint.contains("without an MCP result around it"), envelope, "{hint}");
    }
    let told = |source: &str| failure(source).hint.unwrap_or_default();
    assert!(
        told("const t = await text({ value: '\"plain prose\"' });\nreturn t.items.length")
            .contains(r#"`text` is a text of 11 characters, "plain prose""#)
    );
    assert!(
        told("const t = await text({ value: '\"plain prose\"' });\nreturn JSON.parse(t)")
            .contains("`text` is a text of 11")
    );
    // A large result is not kept, and its shape is.
    assert!(
        told("const big = await echo({ list: Array(40000).fill('x') });\nbig.rows.length")
            .contains("`echo` is { list: string[] (40000) }")
    );
    // What has nothing to do with a result gets no hint.
    for source in [
        "await echo({ a: 1 });\nconst o = {};\no.x.y",
        "const o = {};\nawait o.f()",
        "const r = await echo({ a: 1 });\nthrow new Error('own')",
    ] {
        assert_eq!(failure(source).hint, None, "{source}");
    }
    // A hint shows a place under the name of its tool.
    let source = "const r = await _0({ a: 1 });\nr.b.c";
    let hint = failure_of(source, run_at(source, &["_0"], LIMITS, usize::MAX)).hint;
    assert_eq!(hint.as_deref(), Some("the last result of `echo` is { a: number }"));
}

#[test]
fn a_hint_shows_every_kind_of_block() {
    let blocks = r#"[{"type":"text","text":"a"},{"type":"image","data":"b","mimeType":"c"}]"#;
    let failure = failure(&format!("const r = await text({{ value: '{blocks}' }});\nr.nope.x"));
    let hint = failure.hint.expect("a hint");
    assert!(hint.contains("({ type: string, text: string } | { type: string, data: string, mimeType: string })[] (2)"), "{hint}");
}

#[test]
fn a_tool_that_does_not_exist_is_called_by_its_name_in_quotes_too() {
    let failure = failure("await globalThis[\"zoo_nope\"]({})");
    assert!(failure.message.starts_with("ToolError: no such tool"), "{failure:?}");
    assert_eq!(value("return typeof globalThis['my_cache']"), r#""undefined""#);
}
