//! Traces and metrics of the program as a whole.

use serde_json::{Value, json};
use toolgate_testkit::{CollectedSpan, Collector};

use crate::{
    fixtures::kit,
    support::{Workplace, entry, text},
};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";
const WORDS: &str = "words that are nobody else's business";

fn workplace(url: &str) -> Workplace {
    let mut server = entry(&kit());
    server["env"] = json!({ "KEY": "a-secret-of-the-server" });
    Workplace::new(&json!({
        "mcpServers": { "kit": server },
        "toolSearch": { "enabled": true },
        "telemetry": { "otlpEndpoint": url, "serviceName": "gate" },
    }))
}

fn traced(mut params: Value) -> Value {
    params["_meta"] = json!({ "traceparent": format!("00-{TRACE}-{PARENT}-01") });
    params
}

fn named<'s>(spans: &'s [CollectedSpan], name: &str) -> Vec<&'s CollectedSpan> {
    let found: Vec<_> = spans.iter().filter(|span| span.name == name).collect();
    assert!(!found.is_empty(), "no {name} in {spans:#?}");
    found
}

#[tokio::test]
async fn a_script_and_its_calls_are_parts_of_the_clients_trace() {
    let collector = Collector::start().await.unwrap();
    let workplace = workplace(collector.url());
    let mut client = workplace.connect(&[]).await;
    let code = format!(
        "await kit_echo({{ message: \"{WORDS}\" }}); await kit_add({{ a: 1, b: 2 }}); return 1"
    );
    let params = traced(json!({ "name": "run_code", "arguments": { "code": code } }));
    let ran = client.request("tools/call", params).await.unwrap();
    assert!(ran["result"].get("isError").is_none(), "{ran}");
    let arguments = json!({ "name": "kit_echo", "arguments": { "message": WORDS } });
    let params = traced(json!({ "name": "call_tool", "arguments": arguments }));
    let called = client.request("tools/call", params).await.unwrap();
    client.close_stdin();
    client.wait().await.unwrap();

    let spans = collector.spans();
    assert!(spans.iter().all(|span| span.trace == TRACE), "{spans:#?}");
    let request = named(&spans, "tools/call run_code")[0];
    let run = named(&spans, "run typescript")[0];
    assert_eq!((request.parent.as_str(), &run.parent), (PARENT, &request.id));
    assert_eq!(named(&spans, "execute_tool kit_add")[0].parent, run.id);
    let direct = named(&spans, "tools/call call_tool")[0];
    let echoes = named(&spans, "execute_tool kit_echo");
    let parents: Vec<_> = echoes.iter().map(|span| &span.parent).collect();
    assert!(parents.contains(&&run.id) && parents.contains(&&direct.id), "{echoes:#?}");
    // The server gets the trace.
    let heard = &called["result"]["_meta"]["fixture/requestMeta"]["traceparent"];
    let echo = echoes.iter().find(|span| span.parent == direct.id).unwrap();
    assert_eq!(*heard, format!("00-{TRACE}-{}-01", echo.id), "{called}");
    let calls: u64 = collector
        .metrics()
        .iter()
        .filter(|metric| metric.name == "toolgate.calls")
        .map(|metric| metric.count)
        .sum();
    assert_eq!(calls, 3);
    for never in [WORDS, "a-secret-of-the-server"] {
        assert!(!collector.was_sent(never.as_bytes()), "{never}");
    }
}

/// The trace of a header is that of the request, and what the client sent reaches the server
/// though nothing is traced here.
#[tokio::test]
async fn without_a_collector_the_clients_trace_reaches_the_server_as_it_was() {
    let workplace = Workplace::new(&json!({
        "mcpServers": { "kit": entry(&kit()) },
        "toolSearch": { "enabled": false },
    }));
    let gateway = workplace.serve_http(&[]).await;
    let mut client = gateway.client();
    let heard = |result: &Value| result["_meta"]["fixture/requestMeta"]["traceparent"].clone();
    let plain = client.call("kit_echo", json!({ "message": "m" })).await;
    assert_eq!(heard(&plain), Value::Null, "{plain}");
    let parent = format!("00-{TRACE}-{PARENT}-01");
    client.send_header("traceparent", &parent);
    let traced = client.call("kit_echo", json!({ "message": "m" })).await;
    assert_eq!(heard(&traced), parent, "{}", text(&traced));
    gateway.stop().await;
}

#[tokio::test]
async fn an_unreachable_collector_is_reported_once() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let workplace = workplace(&format!("http://{address}"));
    let called = workplace.run(&["call", "kit_add", r#"{"a":1,"b":2}"#]).await;
    assert_eq!(called.code, Some(0), "{called:?}");
    let told = called.stderr.lines().filter(|line| line.contains("telemetry does not reach"));
    assert_eq!(told.count(), 1, "{called:?}");
    assert!(called.stderr.contains("spans of telemetry were lost"), "{called:?}");
}
