use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use serde_json::{Map, Value, json};
use toolgate_telemetry::{CallSpanEnd, FleetGauges, Operation, Telemetry, TelemetrySettings};
use toolgate_testkit::{CollectedSpan, Collector};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn settings(url: &str) -> TelemetrySettings {
    TelemetrySettings {
        endpoint: url.parse().unwrap(),
        headers: BTreeMap::from([("x-key".to_owned(), "hush".to_owned())]),
        service_name: "gate".to_owned(),
    }
}

fn meta(text: &str) -> Option<Map<String, Value>> {
    json!({ "traceparent": text, "tracestate": "vendor=1", "other": 1 }).as_object().cloned()
}

fn ended() -> CallSpanEnd<'static> {
    CallSpanEnd {
        verdict: "allow",
        rule: "the default",
        outcome: "ok",
        argument_bytes: 7,
        result_bytes: Some(9),
        ..CallSpanEnd::default()
    }
}

fn named<'s>(spans: &'s [CollectedSpan], name: &str) -> &'s CollectedSpan {
    let found = spans.iter().find(|span| span.name == name);
    found.unwrap_or_else(|| panic!("no {name} in {spans:#?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_a_run_and_its_calls_are_one_trace() {
    let collector = Collector::start().await.unwrap();
    let telemetry = Telemetry::start(&settings(collector.url())).unwrap();
    let client = meta(&format!("00-{TRACE}-00f067aa0ba902b7-01"));
    let operation = Operation { method: "tools/call", tool: Some("run_code"), session: "s_1" };
    let request = telemetry.request(&operation, client.as_ref());
    let mut passed = client.clone();
    request.pass_on(&mut passed);
    let run = telemetry.run("run_1", "typescript", "s_1", passed.as_ref());
    run.pass_on(&mut passed);
    let call = telemetry.call(Some(("crm", "crm_find")), "s_1", Some("run_1"), passed.as_ref());
    call.pass_on(&mut passed);
    call.end(&ended());
    drop(telemetry.call(None, "s_1", None, passed.as_ref()));
    run.end(None, 1);
    request.end(Some("tool_error"));
    telemetry.watch_servers(|| Some(2));
    telemetry.watch_servers(|| None);
    telemetry.watch_fleet(|| FleetGauges { nodes: 3, is_away: true, waiting_bytes: 700 });
    telemetry.shutdown().await;

    let spans = collector.spans();
    assert!(spans.iter().all(|span| span.trace == TRACE), "{spans:#?}");
    let request = named(&spans, "tools/call run_code");
    let run = named(&spans, "run typescript");
    let call = named(&spans, "execute_tool crm_find");
    assert_eq!(request.parent, "00f067aa0ba902b7");
    assert_eq!((&run.parent, &call.parent), (&request.id, &run.id));
    assert!(request.failed && !call.failed && !run.failed);
    assert_eq!(request.attributes["error.type"], "tool_error");
    let expected = [
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "crm_find"),
        ("mcp.method.name", "tools/call"),
        ("mcp.session.id", "s_1"),
        ("toolgate.argument_bytes", "7"),
        ("toolgate.outcome", "ok"),
        ("toolgate.result_bytes", "9"),
        ("toolgate.rule", "the default"),
        ("toolgate.run", "run_1"),
        ("toolgate.server", "crm"),
        ("toolgate.verdict", "allow"),
    ];
    let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(call.attributes, BTreeMap::from(expected));
    // The server is told whose part it is, and everything else as it was.
    let passed = passed.unwrap();
    assert_eq!(passed["traceparent"], format!("00-{TRACE}-{}-01", call.id));
    assert_eq!((&passed["tracestate"], &passed["other"]), (&json!("vendor=1"), &json!(1)));
    // One that was never ended was cancelled; a tool that is unknown has no name.
    assert_eq!(named(&spans, "execute_tool").attributes["error.type"], "cancelled");

    let metrics = collector.metrics();
    let count = |name: &str| -> u64 {
        metrics.iter().filter(|metric| metric.name == name).map(|metric| metric.count).sum()
    };
    assert_eq!(count("toolgate.calls"), 2);
    assert_eq!(count("mcp.client.operation.duration"), 2);
    assert_eq!(count("mcp.server.operation.duration"), 1);
    assert_eq!(count("toolgate.call.result"), 1);
    assert_eq!(count("toolgate.servers.connected"), 2);
    for (name, value) in [("nodes", 3), ("database.away", 1), ("audit.waiting", 700)] {
        assert_eq!(count(&format!("toolgate.fleet.{name}")), value, "{name}");
    }
    assert!(!collector.header("x-key").is_empty());
    assert!(collector.header("x-key").iter().all(|value| value == "hush"));
    assert_eq!(telemetry.missing(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unsampled_trace_is_not_exported() {
    let collector = Collector::start().await.unwrap();
    let telemetry = Telemetry::start(&settings(collector.url())).unwrap();
    let unsampled = meta(&format!("00-{TRACE}-00f067aa0ba902b7-00"));
    let mut passed = unsampled.clone();
    let call = telemetry.call(Some(("crm", "crm_find")), "s_1", None, unsampled.as_ref());
    call.pass_on(&mut passed);
    call.end(&ended());
    telemetry.shutdown().await;
    assert_eq!(collector.spans(), []);
    assert_eq!(collector.metrics().iter().filter(|it| it.name == "toolgate.calls").count(), 1);
    let passed = passed.unwrap()["traceparent"].as_str().unwrap().to_owned();
    assert!(passed.starts_with(&format!("00-{TRACE}-")) && passed.ends_with("-00"), "{passed}");
}

/// A port where nobody listens costs a call nothing, and the end a bounded time; what is lost is
/// counted, and so is what does not fit into the queue.
#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_collector_delays_nothing() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let telemetry = Telemetry::start(&settings(&format!("http://{address}"))).unwrap();
    for _ in 0..20_000 {
        telemetry.call(Some(("crm", "crm_find")), "s_1", None, None).end(&ended());
    }
    let started = Instant::now();
    telemetry.shutdown().await;
    assert!(started.elapsed() < toolgate_testkit::scaled(Duration::from_secs(10)));
    assert_eq!(telemetry.missing(), 20_000);
}

/// One that takes the connection and never answers, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_collector_delays_nothing() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let telemetry = Telemetry::start(&settings(&format!("http://{address}"))).unwrap();
    telemetry.call(Some(("crm", "crm_find")), "s_1", None, None).end(&ended());
    let started = Instant::now();
    telemetry.shutdown().await;
    assert!(started.elapsed() < toolgate_testkit::scaled(Duration::from_secs(10)));
    assert_eq!(telemetry.missing(), 1);
}

#[test]
fn disabled_telemetry_creates_nothing() {
    let telemetry = Telemetry::off();
    let mut meta = None;
    let call = telemetry.call(Some(("crm", "crm_find")), "s_1", None, None);
    call.pass_on(&mut meta);
    call.end(&ended());
    assert_eq!(meta, None);
    assert!(!telemetry.is_on());
}
