//! The audit log and the telemetry of calls, including refused ones.

use serde_json::json;
use toolgate_host::HostSettings;
use toolgate_policy::{Mode, PolicySettings};
use toolgate_store::AuditRecord;
use toolgate_telemetry::{Telemetry, TelemetrySettings};
use toolgate_testkit::Collector;

use super::fixture::{GuardFixture, Voice, denying, said};

fn records(fixture: &GuardFixture) -> Vec<AuditRecord> {
    let mut records: Vec<AuditRecord> = Vec::new();
    fixture.store().audit().read(&mut |line| records.push(line.unwrap().1)).unwrap();
    records
}

#[tokio::test]
async fn refused_calls_are_logged_too() {
    let fixture = GuardFixture::new(denying("crm_get")).await;
    let session = fixture.host.session();
    let long = format!("nobody_{}", "x".repeat(10_000));
    for (name, arguments) in [
        (long.as_str(), json!({ "text": "y".repeat(10_000) })),
        ("crm_get", json!({})),
        ("mail_send", json!({ "body": 7 })),
    ] {
        assert!(fixture.call(&session, None, name, arguments).await.1, "{name}");
    }
    fixture.host.shutdown().await;
    let told: Vec<String> = records(&fixture)
        .iter()
        .map(|record| {
            assert!(!record.arguments_hash.is_empty() && record.tool.len() <= 128);
            let AuditRecord { kind, server, verdict, outcome, rule, .. } = record;
            format!("{kind} {server} {verdict} {outcome}: {rule}")
        })
        .collect();
    assert_eq!(
        told,
        [
            "call  deny refused: there is no such tool",
            "call  deny refused: there is no such tool",
            "call mail deny refused: its arguments do not fit",
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_collector_gets_every_call_and_no_argument() {
    let collector = Collector::start().await.unwrap();
    let settings = TelemetrySettings {
        endpoint: collector.url().parse().unwrap(),
        headers: std::collections::BTreeMap::new(),
        service_name: "test".to_owned(),
    };
    let telemetry = Telemetry::start(&settings).unwrap();
    let given = telemetry.clone();
    let fixture = GuardFixture::with(PolicySettings::of_mode(Mode::Ask), |settings| HostSettings {
        telemetry: given,
        ..settings
    })
    .await;
    let session = fixture.host.session();
    let voice = Voice::new([said("allow once"), said("deny")]);
    for id in ["secret-of-one", "secret-of-two"] {
        fixture.call(&session, Some(&voice), "store_delete", json!({ "id": id })).await;
    }
    fixture.call(&session, None, "store_delete", json!({ "id": "secret-of-three" })).await;
    fixture.call(&session, None, "crm_get", json!({})).await;
    fixture.call(&session, None, "made_up_by_a_model", json!({})).await;
    telemetry.shutdown().await;
    fixture.end().await;

    let mut calls: Vec<String> = collector
        .spans()
        .iter()
        .filter(|span| span.name.starts_with("execute_tool"))
        .map(|span| {
            let said = |key: &str| span.attributes.get(key).cloned().unwrap_or_default();
            let (verdict, outcome) = (said("toolgate.verdict"), said("toolgate.outcome"));
            format!("{} {verdict} {outcome} {}", span.name, said("error.type"))
        })
        .collect();
    calls.sort();
    assert_eq!(
        calls,
        [
            "execute_tool deny refused unknown_tool",
            "execute_tool crm_get allow ok ",
            "execute_tool store_delete ask ok ",
            "execute_tool store_delete ask refused denied",
            "execute_tool store_delete ask waiting waiting_for_approval",
        ]
        .iter()
        .map(ToString::to_string)
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect::<Vec<_>>()
    );
    let metrics = collector.metrics();
    let questions: std::collections::BTreeMap<_, _> = metrics
        .iter()
        .filter(|metric| metric.name == "toolgate.questions")
        .map(|metric| (metric.attributes["toolgate.answer"].clone(), metric.count))
        .collect();
    let expected = ["allow", "deny", "waiting"].map(|answer| (answer.to_owned(), 1));
    assert_eq!(questions, expected.into());
    let connected = metrics.iter().find(|metric| metric.name == "toolgate.servers.connected");
    assert_eq!(connected.unwrap().count, 4);
    assert!(collector.was_sent(b"store_delete"));
    for never in [&b"secret-of"[..], b"made_up_by_a_model"] {
        assert!(!collector.was_sent(never), "{}", String::from_utf8_lossy(never));
    }
}
