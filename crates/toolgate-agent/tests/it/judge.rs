//! Every request that the scenarios send, and every answer that they script, judged by the types of the official SDKs.

use std::{path::Path, process::Command};

use serde_json::{Value, json};
use toolgate_testkit::installed_servers;

use crate::{cancel, code, discovery, endpoint::EXCHANGES, limits, ordinary, prefix, retry, saved};

fn judge(exchanges: &[Value]) -> Option<(bool, String)> {
    let python = installed_servers()?.provider_sdks()?;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), Value::from(exchanges).to_string()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/judge.py");
    let output = Command::new(python).arg(script).arg(file.path()).output().unwrap();
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Some((output.status.success(), text))
}

#[tokio::test]
async fn the_sdks_accept_every_request_and_every_scripted_answer() {
    ordinary::all().await;
    discovery::all().await;
    code::all().await;
    limits::all().await;
    retry::all().await;
    cancel::all().await;
    prefix::all().await;
    saved::all().await;
    let exchanges = EXCHANGES.lock().clone();
    let Some((accepted, text)) = judge(&exchanges) else { return };
    assert!(accepted, "{text}");
    // A judge that sees nothing accepts everything.
    let judged: usize = text.lines().last().unwrap().trim_start_matches("judged ").parse().unwrap();
    assert!(judged > 500, "{text}");
}

#[test]
fn the_judge_refuses_what_the_types_refuse() {
    let request = |tools: Value, content: Value| {
        let body = json!({"model": "m", "max_tokens": 1, "stream": true, "tools": tools, "messages": [{"role": "user", "content": content}]});
        json!({"path": "/v1/messages", "beta": null, "request": body.to_string(), "streamed": true, "answers": [], "foreign": false})
    };
    let good_tool = json!({"name": "t", "input_schema": {"type": "object"}, "defer_loading": true});
    let result =
        |part: Value| json!([{"type": "tool_result", "tool_use_id": "x", "content": [part]}]);
    let reference = json!({"type": "tool_reference", "tool_name": "t"});
    let wrong = [
        (
            request(
                json!([{"name": "t", "input_schema": {"type": "object"}, "defer_load": true}]),
                json!("x"),
            ),
            "defer_load",
        ),
        (
            request(json!([good_tool]), result(json!({"type": "tool_reference", "name": "t"}))),
            "tool_name",
        ),
        (
            request(json!([good_tool]), json!([{"type": "tool_result", "content": []}])),
            "tool_use_id",
        ),
        (
            request(
                json!([{"name": "t", "input_schema": {"type": "object"}, "allowed_callers": ["anybody"]}]),
                json!("x"),
            ),
            "allowed_callers",
        ),
    ];
    let good = request(json!([good_tool]), result(reference));
    let all: Vec<Value> =
        [good].into_iter().chain(wrong.iter().map(|(request, _)| request.clone())).collect();
    let Some((accepted, text)) = judge(&all) else { return };
    assert!(!accepted && !text.contains("#0:"), "{text}");
    for (number, (_, sign)) in wrong.iter().enumerate() {
        let number = format!("#{}:", number + 1);
        assert!(
            text.lines().any(|line| line.contains(&number) && line.contains(sign)),
            "{sign}: {text}"
        );
    }
}
