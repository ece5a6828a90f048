//! The older HTTP+SSE.

use serde_json::json;
use toolgate_mcp::Era;
use toolgate_testkit::{
    AuthorizationOptions, AuthorizationServer, Builtin, Faults, Fixture, PostAddress, RunningHttp,
};
use toolgate_upstream::{
    CallError, Endpoint, HttpDialect, HttpEndpoint, OutputSource, RequestError, ServerSpec,
    StateKind,
};

use crate::{
    raw_connection::{Call, answering, open, try_open},
    support::{Gate, NAME, definition, millis, url, with_limits, within},
};

async fn serve(fixture: Fixture, post: PostAddress) -> RunningHttp {
    fixture.serve_sse(([127, 0, 0, 1], 0).into(), post, None).await.unwrap()
}

/// As a configuration with `"type": "sse"` has it.
fn declared(address: &str) -> ServerSpec {
    let endpoint = HttpEndpoint { dialect: HttpDialect::Sse, ..HttpEndpoint::new(address) };
    ServerSpec { endpoint: Endpoint::Http(endpoint), ..url(address) }
}

#[tokio::test]
async fn sse_is_used_if_declared_or_if_nothing_else_works() {
    let odd = json!({ "content": [{ "type": "hologram", "volume": 3 }], "extra": { "x": null } });
    let fixture = Fixture::new("old")
        .with_builtins([Builtin::Echo, Builtin::Counter])
        .with_tool(definition("odd"))
        .with_answer("odd", odd.clone());
    let server = serve(fixture, PostAddress::Path).await;
    for spec in [declared(server.url()), url(server.url())] {
        let gate = Gate::ready(spec).await;
        assert_eq!(gate.told.tools_of(NAME), ["echo", "counter", "odd"]);
        assert_eq!(gate.call("odd", json!({})).await.unwrap(), odd);
        let calls = (0..20).map(|_| gate.call("counter", json!({})));
        let outcomes = futures::future::join_all(calls).await;
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    }
}

#[tokio::test]
async fn a_stream_that_ends_is_opened_again_and_no_call_is_repeated() {
    let faults = Faults { crash_after_calls: Some(1), ..Faults::default() };
    let log = tempfile::NamedTempFile::new().unwrap();
    let fixture = Fixture::new("old").with_builtins([Builtin::Echo]).with_call_log(log.path());
    let server = serve(fixture.clone().with_faults(faults), PostAddress::Path).await;
    let address = server.url().to_owned();
    let gate = Gate::ready(declared(&address)).await;
    gate.call("echo", json!({ "text": "1" })).await.unwrap();
    let lost = gate.call("echo", json!({ "text": "2" })).await.unwrap_err();
    assert!(matches!(lost, CallError::Transport { .. }), "{lost}");
    assert!(lost.to_string().contains("was not repeated"), "{lost}");
    server.shutdown().await;
    let host = address.strip_prefix("http://").unwrap().strip_suffix("/sse").unwrap();
    let again = fixture.serve_sse(host.parse().unwrap(), PostAddress::Path, None).await.unwrap();
    gate.until("another connection", |gate| gate.state(NAME).kind == StateKind::Ready).await;
    gate.call("echo", json!({ "text": "3" })).await.unwrap();
    assert_eq!(again.calls(), 1);
    assert_eq!(std::fs::read_to_string(log.path()).unwrap().lines().count(), 3);
}

#[tokio::test]
async fn messages_are_posted_to_no_other_origin() {
    for address in ["http://127.0.0.1:1/messages", "//example.com/messages", "https://example.com/"]
    {
        let post = PostAddress::Elsewhere(address.to_owned());
        let server = serve(Fixture::new("old"), post).await;
        let (_gate, failure) = Gate::failure(declared(server.url())).await;
        assert!(failure.reason.contains("another origin"), "{address}: {failure:?}");
    }
}

#[tokio::test]
async fn a_silent_stream_ends_the_attempt() {
    let server = serve(Fixture::new("old"), PostAddress::Missing).await;
    let within = |spec, time| with_limits(spec, |limits| limits.connect = millis(time));
    let (_gate, failure) = Gate::failure(within(declared(server.url()), 600)).await;
    assert!(failure.reason.contains("no answer to the handshake"), "{failure:?}");
    // Where it was only a second thought, the first refusal is what is told.
    let (_gate, failure) = Gate::failure(within(url(server.url()), 6_000)).await;
    assert!(failure.reason.ends_with("answered HTTP 405"), "{failure:?}");
}

#[tokio::test]
async fn an_event_over_the_limit_ends_the_stream_and_not_the_server() {
    let faults = Faults { oversized_results: Some(200_000), ..Faults::default() };
    let fixture = Fixture::new("old").with_builtins([Builtin::Echo]).with_faults(faults);
    let server = serve(fixture, PostAddress::Path).await;
    let spec = with_limits(declared(server.url()), |limits| {
        (limits.max_message_bytes, limits.max_kept_bytes) = (100_000, 0);
    });
    let gate = Gate::ready(spec).await;
    let lost = gate.call("echo", json!({ "text": "x" })).await.unwrap_err();
    assert!(matches!(lost, CallError::Transport { .. }), "{lost}");
    gate.until("a word of it", |gate| {
        gate.told.output(OutputSource::Stdout).iter().any(|line| line.contains("over the limit"))
    })
    .await;
    gate.until("another connection", |gate| gate.told.listings_of(NAME) == 2).await;
    assert_eq!(server.calls(), 1);
}

#[tokio::test]
async fn a_protected_stream_requires_a_login() {
    let authorization = AuthorizationServer::start(AuthorizationOptions::default()).await.unwrap();
    let fixture = Fixture::new("old");
    let address = ([127, 0, 0, 1], 0).into();
    let server = fixture.serve_sse(address, PostAddress::Path, Some(&authorization)).await.unwrap();
    for spec in [declared(server.url()), url(server.url())] {
        let (_gate, failure) = Gate::failure(spec).await;
        assert!(failure.reason.contains("asks for authorization (401)"), "{failure:?}");
    }
}

#[tokio::test]
async fn a_raw_connection_over_sse_passes_everything() {
    let odd = json!({ "content": [{ "type": "hologram", "volume": 3 }], "extra": { "x": null } });
    let fixture = Fixture::new("old")
        .with_builtins([Builtin::AskForm, Builtin::Progress, Builtin::Client])
        .with_tool(definition("odd"))
        .with_answer("odd", odd.clone());
    let server = serve(fixture, PostAddress::Path).await;
    for spec in [declared(server.url()), url(server.url())] {
        let answer = json!({ "action": "accept", "content": { "name": "ada" } });
        let (connection, heard) = answering(&spec, Ok(answer.clone())).await;
        assert_eq!(connection.era(), Era::Legacy);
        let call = |tool: &str| json!({ "name": tool, "arguments": {} });
        assert_eq!(connection.ask("tools/call", call("odd")).await.unwrap(), odd);
        let asked = connection.ask("tools/call", call("ask_form")).await.unwrap();
        assert_eq!(asked["structuredContent"]["answers"][0]["form"], answer, "{asked}");
        assert_eq!(heard.next_question().await.1.method, "elicitation/create");
        let progress = json!({ "name": "progress", "arguments": { "steps": 1 },
                               "_meta": { "progressToken": "t" } });
        connection.ask("tools/call", progress).await.unwrap();
        let (about, (method, params)) = heard.next_notification().await;
        assert_eq!((about, method.as_str()), (Some(json!("key")), "notifications/progress"));
        assert_eq!(params.unwrap()["progressToken"], "t");
        connection.notify("notifications/odd", Some(json!({ "x": 1 }))).await.unwrap();
        let told = connection.ask("fixture/heard", json!({})).await.unwrap();
        let last = told["heard"].as_array().unwrap().last().unwrap();
        assert_eq!(*last, json!({ "method": "notifications/odd", "params": { "x": 1 } }));
        connection.close().await;
        within("the end", connection.closed()).await;
    }
}

#[tokio::test]
async fn a_raw_connection_ends_with_its_stream() {
    let server = serve(Fixture::new("old").with_builtins([Builtin::Echo]), PostAddress::Path).await;
    let (connection, _heard) = open(&declared(server.url())).await;
    server.shutdown().await;
    within("the end", connection.closed()).await;
    let lost = connection.ask("tools/list", json!({})).await.unwrap_err();
    assert!(matches!(lost, RequestError::Transport { .. }), "{lost}");
}

#[tokio::test]
async fn failures_of_a_raw_connection_over_sse_are_reported() {
    let elsewhere = PostAddress::Elsewhere("http://127.0.0.1:1/messages".to_owned());
    let server = serve(Fixture::new("old"), elsewhere).await;
    let failure = try_open(&declared(server.url()), None).await.unwrap_err();
    assert!(failure.reason.contains("another origin"), "{failure:?}");

    let server = serve(Fixture::new("old"), PostAddress::Missing).await;
    let spec = with_limits(declared(server.url()), |limits| limits.connect = millis(600));
    let failure = try_open(&spec, None).await.unwrap_err();
    assert!(failure.reason.contains("no answer to the handshake"), "{failure:?}");
    let failure = try_open(&url(server.url()), None).await.unwrap_err();
    assert!(failure.reason.ends_with("answered HTTP 405"), "{failure:?}");

    let authorization = AuthorizationServer::start(AuthorizationOptions::default()).await.unwrap();
    let address = ([127, 0, 0, 1], 0).into();
    let starting = Fixture::new("old").serve_sse(address, PostAddress::Path, Some(&authorization));
    let server = starting.await.unwrap();
    for spec in [declared(server.url()), url(server.url())] {
        let failure = try_open(&spec, None).await.unwrap_err();
        assert!(failure.reason.contains("asks for authorization (401)"), "{failure:?}");
    }
}
