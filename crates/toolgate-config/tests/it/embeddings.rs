//! The encoder of `toolSearch.embeddings`.

use std::time::Duration;

use insta::assert_snapshot;
use toolgate_config::{EmbeddingsConfig, Secret};

use crate::{problems, read, shown};

fn text(body: &str) -> String {
    let servers = r#""mcpServers": { "a": { "command": "x" } }"#;
    format!("{{ {servers}, \"toolSearch\": {{\n\"embeddings\": {body} }} }}")
}

fn sound(body: &str) -> EmbeddingsConfig {
    let configuration = read(&text(body));
    assert_eq!(shown(&configuration), "");
    configuration.tool_search.embeddings.expect("an encoder")
}

#[test]
fn an_endpoint_and_a_folder() {
    let read = sound(
        r#"{ "endpoint": "http://${HOST}:11434/v1", "model": "nomic", "apiKey": "${TOKEN}",
             "dimensions": 256, "queryPrefix": "query: ", "timeoutSeconds": 0.5 }"#,
    );
    let url = read.endpoint.as_ref().map(Secret::expose);
    assert_eq!((url, read.model.as_str()), (Some("http://crm.example:11434/v1"), "nomic"));
    assert_eq!(read.api_key.as_ref().map(Secret::expose), Some("s3cr3t-t0ken"));
    assert_eq!((read.dimensions, read.query_prefix.as_str()), (Some(256), "query: "));
    assert_eq!(read.timeout, Duration::from_millis(500));
    let told = format!("{read:?}");
    assert!(!told.contains("s3cr3t") && !told.contains("crm.example"), "{told}");

    let read = sound(r#"{ "folder": "${HOME}/minilm" }"#);
    assert_eq!(read.folder, Some("/home/ada/minilm".into()));
    assert_eq!((read.timeout, read.document_prefix.as_str()), (Duration::from_secs(2), ""));
    assert_eq!(crate::read(&text("null")).tool_search.embeddings, None);
}

#[test]
fn an_invalid_encoder_affects_nothing_else() {
    let told = |body: &str| {
        let configuration = read(&text(body));
        assert_eq!(configuration.tool_search.embeddings, None, "{body}");
        assert!(configuration.servers[0].transport.is_ok());
        shown(&configuration)
    };
    assert_snapshot!(told(r#""minilm""#), @r#"
    error: toolgate.json:2:15: `toolSearch.embeddings` must be an object, but is a string
      hint: write `{ "endpoint": "http://localhost:11434/v1", "model": "…" }` or `{ "folder": "…" }`
    "#);
    assert_snapshot!(told("{}"), @r#"
    error: toolgate.json:2:15: `toolSearch.embeddings` has neither an `endpoint` nor a `folder`
      hint: add `"endpoint": "http://localhost:11434/v1"` and a `model`, or the `folder` of a model
    "#);
    assert_snapshot!(told(r#"{ "endpoint": "localhost:11434" }"#), @r#"
    error: toolgate.json:2:15: `toolSearch.embeddings` has no `model`
      hint: add `"model": "…"`, as the endpoint calls it
    error: toolgate.json:2:29: `toolSearch.embeddings.endpoint` is not a URL that begins with `http://` or `https://`
      hint: write the base URL, such as `http://localhost:11434/v1`
    "#);
    assert_snapshot!(told(r#"{ "endpoint": "http://a/v1", "model": "m", "folder": "f" }"#), @r"
    error: toolgate.json:2:15: `toolSearch.embeddings` has both an `endpoint` and a `folder`
      hint: keep the one that makes the vectors
    ");
    assert_snapshot!(told(r#"{ "endpoint": "http://a/v1", "model": "m", "apiKey": "${NONE}" }"#), @r"
    error: toolgate.json:2:68: `toolSearch.embeddings.apiKey` needs the environment variable `NONE`, which is not set
      hint: set `NONE`, or write `${NONE:-default}`
    ");
    assert_snapshot!(told(r#"{ "endpoint": "http://a/v1", "model": "m", "apiKey": "${BROKEN}" }"#), @r"
    error: toolgate.json:2:68: `toolSearch.embeddings.apiKey` has a line break or another character that no header can carry in its value
      hint: look at the variables that it uses
    ");
    assert_snapshot!(told(r#"{ "endpoint": "${NOT_A_URL}", "model": 7 }"#), @r"
    error: toolgate.json:2:29: `toolSearch.embeddings.endpoint` is not a URL that begins with `http://` or `https://`
      hint: write the base URL, such as `http://localhost:11434/v1`
    error: toolgate.json:2:54: `toolSearch.embeddings.model` must be a string, but is a number
    ");
}

#[test]
fn what_can_be_left_out_is() {
    assert_snapshot!(
        problems(&text(r#"{ "folder": "f", "model": "m", "queryPrefx": "q", "documentPrefix": 1, "timeoutSeconds": 0 }"#)),
        @r"
    warning: toolgate.json:2:32: `toolSearch.embeddings.model` belongs to an `endpoint`; it is ignored
    warning: toolgate.json:2:46: `toolSearch.embeddings.queryPrefx` is not a known key; it is ignored
      hint: did you mean `queryPrefix`?
    warning: toolgate.json:2:83: `toolSearch.embeddings.documentPrefix` must be a string of at most 1,000 characters; it is ignored
    warning: toolgate.json:2:104: `toolSearch.embeddings.timeoutSeconds` must be a number from 0.1 to 60; it is ignored
    "
    );
}
