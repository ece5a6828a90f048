//! `toolSearch.subagent`.

use insta::assert_snapshot;

use crate::{problems, read};

fn file(search: &str) -> String {
    format!(r#"{{ "mcpServers": {{ "a": {{ "command": "x" }} }}, "toolSearch": {search} }}"#)
}

#[test]
fn a_model_is_read() {
    let configuration = read(&file(
        r#"{ "strategy": "subagent", "subagent": { "provider": "anthropic", "model": "small",
            "apiKey": "${TOKEN}", "candidates": 30, "timeoutSeconds": 1.5 } }"#,
    ));
    assert_eq!(configuration.problems, []);
    let subagent = configuration.tool_search.subagent.expect("a model");
    assert_eq!(subagent.endpoint(), "https://api.anthropic.com");
    assert_eq!(subagent.api_key.as_ref().expect("a key").expose(), "s3cr3t-t0ken");
    insta::assert_debug_snapshot!(subagent, @r#"
    SubagentConfig {
        provider: Anthropic,
        endpoint: None,
        model: "small",
        api_key: Some(
            [secret],
        ),
        candidates: 30,
        timeout: 1.5s,
    }
    "#);
    let local = r#"{ "subagent": { "endpoint": "http://${HOST}:11434/v1", "model": "m" } }"#;
    let subagent = read(&file(local)).tool_search.subagent.expect("a model");
    assert_eq!(subagent.endpoint(), "http://crm.example:11434/v1");
    assert_eq!((subagent.candidates, subagent.timeout.as_secs(), subagent.api_key), (24, 3, None));
}

#[test]
fn an_invalid_subagent_is_reported_with_a_hint() {
    let mut told = Vec::new();
    for search in [
        r#"{ "strategy": "subagent" }"#,
        r#"{ "subagent": "small" }"#,
        r#"{ "subagent": {} }"#,
        r#"{ "subagent": { "model": "m", "provider": "gemini" } }"#,
        r#"{ "subagent": { "model": "m", "endpoint": "localhost" } }"#,
        r#"{ "subagent": { "model": "m", "apiKey": "${BROKEN}" } }"#,
        r#"{ "subagent": { "model": "m", "apiKey": "${MISSING}" } }"#,
    ] {
        assert_eq!(read(&file(search)).tool_search.subagent, None, "{search}");
        told.push(problems(&file(search)));
    }
    assert_snapshot!(told.join("\n"), @r#"
    error: toolgate.json:1:74: `toolSearch.strategy` is `subagent`, but there is no model to ask
      hint: write `"subagent": { "endpoint": "http://localhost:11434/v1", "model": "…" }` in `toolSearch`, or choose another strategy
    error: toolgate.json:1:74: `toolSearch.subagent` must be an object, but is a string
      hint: write `"subagent": { "endpoint": "http://localhost:11434/v1", "model": "…" }` in `toolSearch`, or choose another strategy
    error: toolgate.json:1:74: `toolSearch.subagent` has no `model`
      hint: add `"model": "…"`, as the endpoint calls it
    error: toolgate.json:1:102: `toolSearch.subagent.provider` must be `openai` or `anthropic`
    error: toolgate.json:1:102: `toolSearch.subagent.endpoint` is not a URL that begins with `http://` or `https://`
      hint: write the base URL, such as `http://localhost:11434/v1`
    error: toolgate.json:1:100: `toolSearch.subagent.apiKey` has a line break or another character that no header can carry in its value
      hint: look at the variables that it uses
    error: toolgate.json:1:100: `toolSearch.subagent.apiKey` needs the environment variable `MISSING`, which is not set
      hint: set `MISSING`, or write `${MISSING:-default}`
    "#);
    let mild = r#"{ "subagent": { "model": "m", "candidates": 1, "baseUrl": "x" } }"#;
    assert!(read(&file(mild)).tool_search.subagent.is_some());
    assert_snapshot!(problems(&file(mild)), @r"
    warning: toolgate.json:1:104: `toolSearch.subagent.candidates` must be a whole number from 2 to 100; it is ignored
    warning: toolgate.json:1:107: `toolSearch.subagent.baseUrl` is not a known key; it is ignored
    ");
}
