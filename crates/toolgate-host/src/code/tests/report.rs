use std::time::Duration;

use serde_json::{json, value::RawValue};
use toolgate_broker::{Caller, SessionContext};
use toolgate_engines::ScriptPosition;
use toolgate_sandbox::{CallRecord, CallState, CheckSeverity, FailureKind, StackFrame};

use super::{
    super::outputs::{OutputStore, PageSize},
    *,
};

fn report(outcome: RunOutcome, output: &str) -> RunReport {
    let captured = CapturedOutput {
        head: output.to_owned(),
        total: output.len() as u64,
        ..CapturedOutput::default()
    };
    RunReport {
        outcome,
        output: captured,
        emitted: Vec::new(),
        warnings: Vec::new(),
        calls: Vec::new(),
        calls_left_out: 0,
        cpu: Duration::ZERO,
        wall: Duration::ZERO,
    }
}

fn raw(value: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap()
}

fn returned(value: &Value) -> RunOutcome {
    RunOutcome::Value(Some(raw(value)))
}

fn call(name: &str, state: CallState) -> CallRecord {
    CallRecord {
        id: 0,
        name: name.to_owned(),
        arguments: r#"{"id":7}"#.to_owned(),
        state,
        started: Duration::ZERO,
        duration: Duration::ZERO,
        result_bytes: 0,
    }
}

fn me() -> SessionContext {
    SessionContext::new(Caller::model("me"))
}

fn shown(report: &RunReport) -> RenderedRun {
    let code = "const a = 1;\nawait tickets_close({id: 7});\n";
    render(report, code, 4_000, &Media::default(), OutputStore::default().of(&me()))
}

fn text(report: &RunReport) -> String {
    shown(report).text
}

#[test]
fn output_and_value() {
    assert_eq!(text(&report(RunOutcome::Value(None), "hello\n")), "hello\n");
    assert_eq!(text(&report(returned(&json!({"a": [1]})), "")), r#"{"a":[1]}"#);
    assert_eq!(text(&report(returned(&json!("done")), "")), "done");
    assert_eq!(text(&report(returned(&json!(3)), "hello")), "hello\nReturned: 3");
    insta::assert_snapshot!(text(&report(RunOutcome::Value(None), "")), @"The script ran to its end without output: print, or return a value.");
    let mut called = report(returned(&json!("ok")), "");
    called.calls = vec![
        call("a_b", CallState::Completed),
        call("a_b", CallState::Completed),
        call("c_d", CallState::Completed),
        call("c_d", CallState::Failed("no".to_owned())),
    ];
    insta::assert_snapshot!(text(&called), @r"
    ok
    Calls completed: a_b ×2, c_d.
    Failed: c_d.
    ");
}

#[test]
fn an_error_shows_its_line_and_the_calls_made() {
    let failure = ScriptFailure {
        kind: FailureKind::Exception,
        message: "ToolError: tickets_close: no such ticket".to_owned(),
        stack: vec![
            StackFrame { function: String::new(), position: ScriptPosition { line: 2, column: 7 } },
            StackFrame {
                function: "helper".to_owned(),
                position: ScriptPosition { line: 9, column: 0 },
            },
        ],
        hint: Some("list the tickets first".to_owned()),
    };
    let mut failed = report(RunOutcome::Failed(failure), "so far\n");
    failed.calls = vec![
        call("tickets_open", CallState::Completed),
        call("tickets_close", CallState::Failed("no such ticket".to_owned())),
        call("mail_send", CallState::InFlight),
    ];
    let shown = shown(&failed);
    assert!(shown.is_error);
    insta::assert_snapshot!(shown.text, @r#"
    so far
    ToolError: tickets_close: no such ticket
      at line 2, column 7: await tickets_close({id: 7});
      at helper line 9
    hint: list the tickets first
    Calls completed: tickets_open.
    Failed: tickets_close.
      tickets_close({"id":7}): no such ticket
    In flight at the end, effect unknown: mail_send.
      mail_send({"id":7})
    "#);
}

#[test]
fn a_long_message_hides_neither_the_line_nor_the_calls() {
    let message = format!("Error: begin {}end", "k l ".repeat(1_500));
    let frame =
        StackFrame { function: String::new(), position: ScriptPosition { line: 2, column: 7 } };
    let failure = ScriptFailure {
        kind: FailureKind::Exception,
        message: message.clone(),
        stack: vec![frame; 8],
        hint: Some("list the tickets first".to_owned()),
    };
    let mut failed = report(RunOutcome::Failed(failure), "so far\n");
    failed.calls = vec![call("tickets_open", CallState::Completed)];
    failed.calls.extend(vec![call("tickets_close", CallState::Failed("x y ".repeat(999))); 9]);
    failed.calls.extend(vec![call("mail_send", CallState::InFlight); 9]);
    let (outputs, me) = (OutputStore::default(), me());
    let code = "const a = 1;\nawait tickets_close({id: 7});\n";
    for tokens in [4_000, 1_000, 100] {
        let shown = render(&failed, code, tokens, &Media::default(), outputs.of(&me));
        let text = &shown.text;
        let id = shown.output_id.unwrap();
        for part in [
            "so far",
            "Error: begin k l",
            " bytes left out: read_output(id: \"",
            &id,
            "l end\n  at line 2, column 7: await tickets_close({id: 7});\n",
            "hint: list the tickets first\n",
            "Calls completed: tickets_open.\n",
            "Failed: tickets_close ×9.",
            "In flight at the end, effect unknown: mail_send ×9.",
        ] {
            assert!(text.contains(part), "{part}\n{tokens}\n{text}");
        }
        let whole = outputs.of(&me).page(&id, 0, PageSize::Bytes(1 << 20)).unwrap();
        assert_eq!(whole.text, message);
    }
}

#[test]
fn a_limit_says_which() {
    let mut stopped =
        report(RunOutcome::Stopped(LimitReached::Wall { limit: Duration::from_secs(30) }), "a\n");
    stopped.calls = vec![call("slow_one", CallState::InFlight); 7];
    insta::assert_snapshot!(text(&stopped), @r#"
    a
    The run was ended: the script took more than 30 s; codeMode.timeoutSeconds raises the limit.
    In flight at the end, effect unknown: slow_one ×7.
      slow_one({"id":7})
      slow_one({"id":7})
      slow_one({"id":7})
      slow_one({"id":7})
      slow_one({"id":7})
      … and 2 more
    "#);
    let crashed = report(RunOutcome::Crashed("it broke the protocol".to_owned()), "");
    insta::assert_snapshot!(text(&crashed), @r"
    The run was ended: it broke the protocol.
    No call was made.
    ");
}

#[test]
fn output_that_does_not_fit_can_be_read() {
    let lines: Vec<String> = (0..9_000).map(|line| format!("line {line}\n")).collect();
    let long = lines.concat();
    let outputs = OutputStore::default();
    let report = report(returned(&json!("the end")), &long);
    let me = me();
    let shown = render(&report, "", 500, &Media::default(), outputs.of(&me));
    let cost = toolgate_catalog::TokenCounter::shared().count(&shown.text);
    assert!((400..=500).contains(&cost), "{cost}");
    assert!(shown.text.starts_with("line 0\n") && shown.text.ends_with("Returned: the end"));
    let id = shown.output_id.unwrap();
    assert!(shown.text.contains(&format!("bytes left out: read_output(id: \"{id}\", offset: ")));
    assert!(shown.text.contains("the script ran to the end; "));
    assert_eq!(
        outputs.of(&me).page(&id, 0, PageSize::Tokens(10)).unwrap().total,
        long.len() + "Returned: the end".len()
    );
}

#[test]
fn every_kind_of_value_is_shown() {
    assert_eq!(text(&report(returned(&json!(null)), "")), "Returned: null");
    assert_eq!(text(&report(returned(&json!("")), "")), "Returned: \"\"");
    let digits = RawValue::from_string("[123456789012345678901234567890]".to_owned()).unwrap();
    let shown = text(&report(RunOutcome::Value(Some(digits)), ""));
    assert_eq!(shown, "[123456789012345678901234567890]");
    let deep = format!("{}1{}", "[".repeat(400), "]".repeat(400));
    let raw = RawValue::from_string(deep.clone()).unwrap();
    assert_eq!(text(&report(RunOutcome::Value(Some(raw)), "")), deep);
    let hidden = text(&report(returned(&json!({"a": "\u{9b}\u{202e}\u{e0041}"})), ""));
    assert_eq!(hidden, r#"{"a":"\u009b\u202e\udb40\udc41"}"#);
}

#[test]
fn only_content_blocks_are_emitted() {
    let mut run = report(RunOutcome::Value(None), "");
    let link = json!({"type": "resource_link", "uri": "file:///a", "name": "a"});
    run.emitted = vec![raw(&link), raw(&json!({"type": "image"})), raw(&json!(7))];
    let shown = shown(&run);
    assert_eq!(shown.content, [link]);
    assert_eq!(
        shown.text,
        "[2 emitted values were left out: emit() takes text blocks, and media from results]"
    );
}

#[test]
fn images_are_content_and_never_text() {
    let data = "aGVs".repeat(20);
    let image = json!({"type": "image", "mimeType": "image/png", "data": data});
    let mut returned = report(returned(&json!({"picture": image})), "");
    returned.emitted = vec![raw(&image), raw(&json!({"type": "text", "text": "caption"}))];
    let shown = shown(&returned);
    assert_eq!(shown.text, r#"{"picture":"[image image/png]"}"#);
    assert_eq!(shown.content, [image.clone(), json!({"type": "text", "text": "caption"}), image]);
}

#[test]
fn control_characters_are_spelled_out() {
    assert_eq!(safe("a\u{1b}[31mb\r\nc\td\u{202e}e\u{0}"), "a\\x1b[31mb\nc\td\\u{202e}e\\x00");
    for kept in [
        "👩\u{200d}👩",
        "می\u{200c}خواهم",
        "a\u{200b}b\u{200f}c\u{feff}d\u{ad}e\u{2060}",
        "🏴\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}",
    ] {
        assert_eq!(safe(kept), kept);
    }
    assert_eq!(safe("a\u{e0041}"), "a\\u{e0041}");
}

#[test]
fn everything_that_is_text_shares_one_budget() {
    let line = |from: u32| {
        let lines = (from..from + 2_000).map(|n| format!("line {n}\n"));
        lines.collect::<Vec<_>>().concat()
    };
    let resource = json!({ "uri": "a:b", "text": line(4_000), "more": "x".repeat(9_999) });
    let mut emits = report(returned(&json!("the end")), &line(0));
    emits.emitted = vec![
        raw(&json!({ "type": "text", "text": line(2_000) })),
        raw(&json!({ "type": "resource", "resource": resource })),
        raw(&json!({ "type": "resource", "resource": { "uri": "x".repeat(9_999), "text": "y" } })),
        raw(&json!({ "type": "resource_link", "uri": "a:c", "name": "n".repeat(50_000) })),
    ];
    let (outputs, me) = (OutputStore::default(), me());
    let rendered = render(&emits, "", 1_000, &Media::default(), outputs.of(&me));
    let shown = format!("{}{:?}", rendered.text, rendered.content);
    let tokens = toolgate_catalog::TokenCounter::shared().count(&shown);
    assert!(tokens <= 1_200, "{tokens}");
    assert!(rendered.text.starts_with("line 0\n") && rendered.text.contains("read_output(id:"));
    let all = outputs.of(&me).page(&rendered.output_id.unwrap(), 0, PageSize::Bytes(1 << 20));
    let all = all.unwrap().text;
    assert!(all.starts_with(&line(0)) && all.contains("[1 emitted values were left out"));
    assert!(all.contains(&line(2_000)) && all.contains(&line(4_000)));
}

#[test]
fn warnings_are_no_matter_after_an_error() {
    let warning = |message: &str| CheckFinding {
        line: 1,
        column: 1,
        source_line: "x".to_owned(),
        caret: 0,
        message: message.to_owned(),
        hint: None,
        severity: CheckSeverity::Warning,
    };
    for message in [toolgate_sandbox::NOT_RETURNED, "it may have no `structuredContent`"] {
        let mut fine = report(RunOutcome::Value(None), "");
        fine.warnings = vec![warning(message)];
        assert!(text(&fine).contains(message));
        let failure = ScriptFailure {
            kind: FailureKind::Exception,
            message: "TypeError: it is no list".to_owned(),
            stack: Vec::new(),
            hint: None,
        };
        for outcome in [RunOutcome::Cancelled, RunOutcome::Failed(failure)] {
            let mut failed = report(outcome, "");
            failed.warnings = vec![warning(message)];
            assert!(!text(&failed).contains(message), "{}", text(&failed));
        }
    }
}

#[test]
fn replaced_characters_are_noted() {
    let mut shown = text(&report(returned(&json!("a\u{fffd}b")), ""));
    add_replaced(&mut shown, 0);
    assert_eq!(shown, "a\u{fffd}b");
    add_replaced(&mut shown, 1);
    assert_eq!(shown, "a\u{fffd}b\n[1 characters were not valid Unicode and are \u{fffd} here]");
}
