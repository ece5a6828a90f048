//! The fixture over Streamable HTTP.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use toolgate_testkit::{
    AnswerFault, Builtin, Faults, Fixture, FixtureEra, HttpAnswers, HttpOptions, ProbeRefusal,
    RunningHttp, StartupExit, TestkitError, fixture_binary, within,
};

use crate::http_client::HttpClient;
use crate::protocol::modern_meta;

async fn serve(fixture: Fixture) -> RunningHttp {
    fixture.serve_http("127.0.0.1:0".parse().unwrap()).await.unwrap()
}

fn fixture() -> Fixture {
    Fixture::new("web").with_builtins(Builtin::ALL)
}

fn sse() -> HttpOptions {
    HttpOptions { answers: HttpAnswers::Sse, ..HttpOptions::default() }
}

fn call(tool: &str, arguments: &Value) -> Value {
    json!({ "name": tool, "arguments": arguments })
}

fn crash(code: i32) -> String {
    let params = call("crash", &json!({ "code": code }));
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string()
}

/// A client with the headers that a modern request must have.
fn modern(running: &RunningHttp, method: &str) -> HttpClient {
    HttpClient::new(running.url())
        .with_header("mcp-protocol-version", "2026-07-28")
        .with_header("mcp-method", method)
}

fn with_meta(mut params: Value) -> Value {
    params["_meta"] = modern_meta("2026-07-28");
    params
}

#[tokio::test]
async fn a_session_is_opened_used_and_closed() {
    let running = serve(fixture()).await;
    let client = HttpClient::new(running.url()).initialize().await;
    let answer = client.request("tools/call", call("add", &json!({ "a": 1, "b": 2 }))).await;
    assert_eq!(answer.json().await["result"]["structuredContent"], json!({ "sum": 3 }));
    assert_eq!(running.calls(), 1);
    assert_eq!(client.send("DELETE", "").await.status, 204);
    assert_eq!(client.request("tools/list", json!({})).await.status, 404);
    assert_eq!(client.send("DELETE", "").await.status, 404);
}

#[tokio::test]
async fn sessions_are_required_and_may_be_lost() {
    let running = serve(fixture()).await;
    let stranger = HttpClient::new(running.url());
    assert_eq!(stranger.request("tools/list", json!({})).await.status, 400);
    let impostor = stranger.clone().with_header("mcp-session-id", "made-up");
    assert_eq!(impostor.request("tools/list", json!({})).await.status, 404);
    let client = stranger.clone().initialize().await;
    running.forget_sessions();
    assert_eq!(client.request("tools/list", json!({})).await.status, 404);

    let faults = Faults { sessions_lost_after_calls: Some(1), ..Faults::default() };
    let running = serve(fixture().with_faults(faults)).await;
    let client = HttpClient::new(running.url()).initialize().await;
    assert_eq!(client.request("tools/call", call("echo", &json!({}))).await.status, 200);
    assert_eq!(client.request("tools/call", call("echo", &json!({}))).await.status, 404);
}

#[tokio::test]
async fn events_carry_what_belongs_to_the_request() {
    let running = serve(fixture().with_http(sse())).await;
    let client = HttpClient::new(running.url()).initialize().await;
    let mut params = call("progress", &json!({ "steps": 1 }));
    params["_meta"] = json!({ "progressToken": 5 });
    let mut response = client.request("tools/call", params).await;
    assert_eq!(response.event().await.unwrap()["method"], "notifications/progress");
    assert_eq!(response.event().await.unwrap()["id"], 1);
    assert_eq!(response.event().await, None);
}

#[tokio::test]
async fn other_messages_are_on_the_get_stream() {
    let running = serve(fixture()).await;
    let client = HttpClient::new(running.url()).initialize().await;
    // Queued until somebody listens.
    client.request("tools/call", call("change_tools", &json!({ "add": "late" }))).await;
    let mut stream = client.send("GET", "").await;
    assert_eq!(stream.event().await.unwrap()["method"], "notifications/tools/list_changed");
    assert_eq!(client.send("GET", "").await.status, 409, "one stream a session");

    // A question goes the same way, and its answer comes as a POST.
    let asking = tokio::spawn({
        let client = client.clone();
        async move { client.request("tools/call", call("ask_roots", &json!({}))).await.json().await }
    });
    let question = stream.event().await.unwrap();
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "roots": [] } });
    assert_eq!(client.send("POST", &answer.to_string()).await.status, 202);
    let answer = asking.await.unwrap();
    assert_eq!(answer["result"]["structuredContent"], json!({ "result": { "roots": [] } }));
    running.shutdown().await;

    let silent = HttpOptions { notification_stream: false, ..HttpOptions::default() };
    let running = serve(fixture().with_http(silent)).await;
    let client = HttpClient::new(running.url()).initialize().await;
    assert_eq!(client.send("GET", "").await.status, 405);
}

#[tokio::test]
async fn a_bearer_token_may_be_required() {
    let http = HttpOptions { bearer: Some("secret".to_owned()), ..HttpOptions::default() };
    let running = serve(fixture().with_http(http)).await;
    let stranger = HttpClient::new(running.url());
    for verb in ["POST", "GET", "DELETE"] {
        let response = stranger.send(verb, "{}").await;
        assert_eq!(response.status, 401);
        assert_eq!(response.header("www-authenticate"), Some("Bearer"));
    }
    let wrong = stranger.clone().with_header("authorization", "Bearer guess");
    assert_eq!(wrong.send("POST", "{}").await.status, 401);
    stranger.with_header("authorization", "Bearer secret").initialize().await;
}

#[tokio::test]
async fn modern_requests_need_no_session_but_matching_headers() {
    let running = serve(fixture().with_era(FixtureEra::Modern)).await;
    let discover = modern(&running, "server/discover");
    let answer = discover.request("server/discover", with_meta(json!({}))).await.json().await;
    assert_eq!(answer["result"]["supportedVersions"], json!(["2026-07-28"]));

    let params = with_meta(call("echo", &json!({ "message": "hi" })));
    let named = modern(&running, "tools/call").with_header("mcp-name", "echo");
    let response = named.request("tools/call", params.clone()).await;
    assert_eq!(response.header("mcp-session-id"), None);
    let answer = response.json().await;
    assert_eq!(answer["result"]["resultType"], "complete");

    let nameless = modern(&running, "tools/call").request("tools/call", params).await;
    assert_eq!(nameless.status, 400);
    assert_eq!(nameless.json().await["error"]["code"], -32020);
    let initialize = HttpClient::new(running.url()).with_header("mcp-method", "initialize");
    let refused = initialize.request("initialize", json!({})).await;
    assert_eq!(refused.status, 400);
    assert_eq!(refused.json().await["error"]["code"], -32022);
}

#[tokio::test]
async fn a_modern_client_cancels_by_disconnecting() {
    for http in [HttpOptions::default(), sse()] {
        let running = serve(fixture().with_era(FixtureEra::Modern).with_http(http)).await;
        let sleeper = modern(&running, "tools/call").with_header("mcp-name", "sleep");
        let params = with_meta(call("sleep", &json!({ "ms": 600_000 })));
        let sleeping = tokio::spawn(async move {
            let mut response = sleeper.request("tools/call", params).await;
            response.event().await
        });
        let called = async {
            while running.calls() == 0 {
                tokio::task::yield_now().await;
            }
        };
        within("the call", called).await;
        sleeping.abort();
        let reporter = modern(&running, "tools/call").with_header("mcp-name", "last_cancelled");
        // The server notices when it notices; what it reports then is certain.
        let report = async {
            loop {
                let params = with_meta(call("last_cancelled", &json!({})));
                let mut response = reporter.request("tools/call", params).await;
                let answer = match response.header("content-type") {
                    Some("text/event-stream") => response.event().await.unwrap(),
                    _ => response.json().await,
                };
                let report = answer["result"]["structuredContent"]["lastCancelled"].clone();
                if !report.is_null() {
                    break report;
                }
            }
        };
        let report = within("the notice of the cancellation", report).await;
        assert_eq!(report, json!({ "requestId": 1, "reason": "disconnected" }));
    }
}

#[tokio::test]
async fn modern_subscribers_get_a_stream() {
    let running = serve(fixture().with_era(FixtureEra::Modern)).await;
    let params = with_meta(json!({ "notifications": { "toolsListChanged": true } }));
    let listen = modern(&running, "subscriptions/listen");
    let mut stream = listen.request("subscriptions/listen", params).await;
    let acknowledged = "notifications/subscriptions/acknowledged";
    assert_eq!(stream.event().await.unwrap()["method"], acknowledged);
    let change = modern(&running, "tools/call").with_header("mcp-name", "change_tools");
    change.request("tools/call", with_meta(call("change_tools", &json!({ "add": "x" })))).await;
    assert_eq!(stream.event().await.unwrap()["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn a_legacy_server_refuses_the_probe() {
    for (refusal, status, code) in
        [(ProbeRefusal::MethodNotFound, 200, -32601), (ProbeRefusal::NotInitialized, 400, -32000)]
    {
        let running = serve(fixture().with_probe_refusal(refusal)).await;
        let probe = modern(&running, "server/discover");
        let response = probe.request("server/discover", with_meta(json!({}))).await;
        assert_eq!(response.status, status);
        assert_eq!(response.json().await["error"]["code"], code);
    }
}

#[tokio::test]
async fn faults_and_crashes_stay_in_the_server() {
    let faults = Faults::broken_answer("tools/list", AnswerFault::WrongId);
    let running = serve(fixture().with_faults(faults)).await;
    let client = HttpClient::new(running.url()).initialize().await;
    let answer = client.request("tools/list", json!({})).await.json().await;
    assert_eq!(answer["id"], "nobody-asked");
    assert_eq!(client.send("POST", "{").await.status, 400);
    assert!(client.try_send("POST", &crash(4)).await.is_none());
    assert_eq!(running.ended().await, 4);
    running.shutdown().await;

    let exit = StartupExit { code: 7, message: "not today".to_owned() };
    let faults = Faults { exit_at_start: Some(exit), ..Faults::default() };
    let served = fixture().with_faults(faults).serve_http("127.0.0.1:0".parse().unwrap()).await;
    assert!(matches!(served, Err(TestkitError::Exited { code: 7 })));
}

#[tokio::test]
async fn the_binary_prints_its_url_first() {
    let json = serde_json::to_string(&fixture()).unwrap();
    let mut child = tokio::process::Command::new(fixture_binary().unwrap())
        .args(["--http", "127.0.0.1:0", "--fixture", &json])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let url = lines.next_line().await.unwrap().unwrap();
    let client = HttpClient::new(&url).initialize().await;
    assert!(client.try_send("POST", &crash(5)).await.is_none());
    assert_eq!(child.wait().await.unwrap().code(), Some(5));
}
