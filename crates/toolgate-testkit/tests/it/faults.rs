//! The faults, over stdio.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolgate_testkit::{
    AnswerFault, Builtin, Cursors, Faults, Fixture, Pages, StartupExit, StrayOutput,
};

use crate::{connect, start};

fn faulty(faults: Faults) -> Fixture {
    Fixture::new("faulty").with_builtins([Builtin::Echo, Builtin::Counter]).with_faults(faults)
}

#[tokio::test]
async fn it_is_slow_on_request() {
    let fixture = faulty(Faults { start_delay_ms: 200, call_delay_ms: 100, ..Faults::default() });
    let start = Instant::now();
    let mut client = connect(&fixture).await;
    assert!(start.elapsed() >= Duration::from_millis(200));
    let start = Instant::now();
    client.call("echo", json!({})).await.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(100));
}

#[tokio::test]
async fn it_exits_at_once() {
    let exit = StartupExit { code: 3, message: "no licence".to_owned() };
    let mut client = start(&faulty(Faults { exit_at_start: Some(exit), ..Faults::default() }));
    assert_eq!(client.wait().await.unwrap().code(), Some(3));
    assert_eq!(client.stderr().await.unwrap(), ["no licence"]);
}

#[tokio::test]
async fn it_floods_stderr() {
    let bytes = 3 * 1024 * 1024;
    let mut client = connect(&faulty(Faults { stderr_bytes: bytes, ..Faults::default() })).await;
    client.close_stdin();
    let lines = client.stderr().await.unwrap();
    assert_eq!(lines.iter().map(|line| line.len() + 1).sum::<usize>() as u64, bytes);
}

#[tokio::test]
async fn it_crashes_after_the_effect_of_a_call() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("calls");
    let faults = Faults { crash_after_calls: Some(1), ..Faults::default() };
    let mut client = connect(&faulty(faults).with_call_log(&log)).await;
    client.call("counter", json!({})).await.unwrap();
    client.call("counter", json!({ "second": true })).await.unwrap_err();
    assert_eq!(client.wait().await.unwrap().code(), Some(101));
    let lines = std::fs::read_to_string(&log).unwrap();
    let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!(lines.lines().count(), 2);
    assert_eq!(last, json!({ "name": "counter", "arguments": { "second": true } }));
}

#[tokio::test]
async fn each_nth_call_fails() {
    let mut client = connect(&faulty(Faults { error_every: Some(2), ..Faults::default() })).await;
    for fails in [false, true, false, true] {
        let answer = client.call("echo", json!({})).await.unwrap();
        assert_eq!(answer["result"]["isError"] == true, fails);
    }
}

#[tokio::test]
async fn the_list_changes_after_some_calls() {
    let faults = Faults { list_changed_after_calls: Some(2), ..Faults::default() };
    let mut client = connect(&faulty(faults)).await;
    client.call("echo", json!({})).await.unwrap();
    assert!(client.asides.is_empty());
    client.call("echo", json!({})).await.unwrap();
    assert_eq!(client.asides[0]["method"], "notifications/tools/list_changed");
    let list = client.request("tools/list", json!({})).await.unwrap();
    assert_eq!(list["result"]["tools"][2]["name"], "appeared");
}

#[tokio::test]
async fn lists_come_in_pages() {
    let pages = Pages { size: 1, cursors: Cursors::Honest };
    let mut client = connect(&faulty(Faults { pages: Some(pages), ..Faults::default() })).await;
    let first = client.request("tools/list", json!({})).await.unwrap();
    assert_eq!(first["result"]["tools"], json!([Builtin::Echo.definition()]));
    let cursor = json!({ "cursor": first["result"]["nextCursor"] });
    let second = client.request("tools/list", cursor).await.unwrap();
    assert_eq!(second["result"], json!({ "tools": [Builtin::Counter.definition()] }));
}

#[tokio::test]
async fn stray_lines_surround_the_messages() {
    let stray_output =
        StrayOutput { at_start: true, between_messages: true, long_line_bytes: 300_000 };
    let mut client = start(&faulty(Faults { stray_output, ..Faults::default() }));
    client.initialize().await.unwrap();
    let lengths: Vec<usize> =
        client.asides.iter().map(|line| line.as_str().unwrap().len()).collect();
    assert_eq!(lengths.len(), 3);
    assert_eq!(lengths[1], 300_000);
}

#[tokio::test]
async fn results_are_oversized() {
    let faults = Faults { oversized_results: Some(200_000), ..Faults::default() };
    let mut client = connect(&faulty(faults)).await;
    let answer = client.call("echo", json!({})).await.unwrap();
    assert_eq!(answer["result"]["content"][0]["text"].as_str().unwrap().len(), 200_000);
}

#[tokio::test]
async fn it_ignores_its_shutdown() {
    let fixture = faulty(Faults { ignores_shutdown: true, ..Faults::default() });
    let mut client = connect(&fixture).await;
    let pid = client.pid().unwrap().to_string();
    let kill = |signal: &str| {
        std::process::Command::new("kill").args([signal, &pid]).status().unwrap().success()
    };
    assert!(kill("-TERM"));
    // It still answers, so the signal did nothing.
    client.call("echo", json!({})).await.unwrap();
    client.close_stdin();
    assert_eq!(client.stderr_line().await.unwrap(), "fixture: stdin has ended; staying");
    assert!(kill("-TERM"));
    // Only this ends it: the exit status has the signal that did.
    assert!(kill("-KILL"));
    let status = client.wait().await.unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
}

#[tokio::test]
async fn answers_are_broken_on_request() {
    for (fault, expected) in [
        (AnswerFault::Garbage, Some("<html>")),
        (AnswerFault::Truncated, Some("{\"jsonrpc\":\"2.0\",\"id\":2,\"result\"")),
        (AnswerFault::WrongId, Some("{\"jsonrpc\":\"2.0\",\"id\":\"nobody-asked\",\"result\"")),
        (AnswerFault::Hollow, Some("{\"jsonrpc\":\"2.0\",\"id\":2}")),
        (AnswerFault::Silence, None),
    ] {
        let mut client = connect(&faulty(Faults::broken_answer("tools/list", fault))).await;
        client.begin("tools/list", json!({})).await.unwrap();
        if let Some(expected) = expected {
            let line = client.line().await.unwrap();
            assert!(line.starts_with(expected), "{fault:?}: {line}");
        }
        client.request("ping", json!({})).await.unwrap();
        assert!(client.asides.is_empty(), "{fault:?}: {:?}", client.asides);
    }
}

#[tokio::test]
async fn it_asks_right_after_the_handshake() {
    let mut client =
        connect(&faulty(Faults { asks_after_handshake: true, ..Faults::default() })).await;
    client.request("ping", json!({})).await.unwrap();
    let methods: Vec<&Value> = client.asides.iter().map(|message| &message["method"]).collect();
    assert_eq!(methods, ["roots/list", "ping"]);
}

#[tokio::test]
async fn a_large_fixture_goes_through_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let tools = (0..2_000).map(|number| {
        let description = "words ".repeat(20);
        json!({ "name": format!("tool_{number}"), "description": description, "inputSchema": {} })
    });
    let fixture = Fixture::new("large").with_tools(tools);
    let entry = fixture.entry_through_file(&directory.path().join("fixture.json")).unwrap();
    let mut client = toolgate_testkit::RawClient::spawn(&entry).unwrap();
    client.initialize().await.unwrap();
    let list = client.request("tools/list", json!({})).await.unwrap();
    assert_eq!(list["result"]["tools"], json!(fixture.tools));
}
