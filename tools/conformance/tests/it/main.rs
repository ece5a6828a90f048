//! Runs the client against the server.

#![allow(
    clippy::unwrap_used,
    reason = "everything here is a test, helpers included; clippy only knows of the test functions"
)]

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use toolgate_testkit::within;

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate-conformance"));
    command.kill_on_drop(true);
    command
}

/// A server, and where it is.
async fn server() -> (Child, String) {
    let mut command = program();
    command.args(["server", "--http", "127.0.0.1:0"]).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = within("the address of the server", lines.next_line()).await;
    (child, first.unwrap().unwrap())
}

/// Has the client use everything of the server that it can, in one version of the protocol.
async fn use_everything(version: &str, tools: &str) {
    let (_server, url) = server().await;
    let mut command = program();
    command
        .args(["client", &url])
        .env("MCP_CONFORMANCE_PROTOCOL_VERSION", version)
        .env("MCP_CONFORMANCE_CONTEXT", format!(r#"{{"toolCalls":[{tools}]}}"#));
    let output = within("the end of the client", command.output()).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn the_client_uses_the_server_in_the_older_protocol() {
    let tools = r#"{"name":"test_simple_text"},{"name":"test_elicitation_sep1330_enums"},
        {"name":"test_sampling","arguments":{"prompt":"Who are you?"}}"#;
    use_everything("2025-11-25", tools).await;
}

#[tokio::test]
async fn the_client_uses_the_server_in_the_newer_protocol() {
    let tools = r#"{"name":"test_simple_text"},{"name":"test_input_required_result_multi_round"},
        {"name":"test_x_mcp_header","arguments":{"region":"north"}}"#;
    use_everything("2026-07-28", tools).await;
}

#[tokio::test]
async fn a_client_that_calls_a_missing_tool_fails() {
    let (_server, url) = server().await;
    let mut command = program();
    command.args(["client", &url]);
    command.env("MCP_CONFORMANCE_CONTEXT", r#"{"toolCalls":[{"name":"no_such_tool"}]}"#);
    let output = within("the end of the client", command.output()).await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("unknown tool"));
}
