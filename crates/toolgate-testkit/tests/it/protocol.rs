//! The eras: handshakes, probes, and what each makes of the other's requests.

use serde_json::{Value, json};
use toolgate_testkit::{Builtin, Fixture, FixtureEra, ProbeRefusal, malformed};

use crate::{connect, start};

/// The `_meta` that each modern request carries.
pub(crate) fn modern_meta(version: &str) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": { "name": "raw-client", "version": "1.0.0" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

fn modern() -> Value {
    json!({ "_meta": modern_meta("2026-07-28") })
}

#[tokio::test]
async fn legacy_negotiates_a_version_it_knows() {
    let fixture = Fixture::new("old").with_instructions("Be kind.");
    for (requested, answered) in [("2024-11-05", "2024-11-05"), ("2031-01-01", "2025-11-25")] {
        let mut client = start(&fixture);
        let params = json!({ "protocolVersion": requested, "capabilities": {} });
        let answer = client.request("initialize", params).await.unwrap();
        assert_eq!(
            answer["result"],
            json!({
                "protocolVersion": answered,
                "capabilities": { "tools": { "listChanged": true } },
                "serverInfo": { "name": "old", "version": "1.0.0" },
                "instructions": "Be kind.",
            })
        );
    }
}

#[tokio::test]
async fn legacy_refuses_the_probe_and_early_requests_then_serves() {
    for (refusal, code) in [
        (ProbeRefusal::MethodNotFound, -32601),
        (ProbeRefusal::InvalidParams, -32602),
        (ProbeRefusal::NotInitialized, -32000),
    ] {
        let mut client = start(&Fixture::new("old").with_probe_refusal(refusal));
        let answer = client.request("server/discover", modern()).await.unwrap();
        assert_eq!(answer["error"]["code"], code);
        let answer = client.request("tools/list", json!({})).await.unwrap();
        assert_eq!(answer["error"]["code"], -32600);
        client.initialize().await.unwrap();
        let answer = client.request("tools/list", json!({})).await.unwrap();
        assert_eq!(answer["result"], json!({ "tools": [] }));
        let answer = client.request("resources/list", json!({})).await.unwrap();
        assert_eq!(answer["error"]["code"], -32601);
    }
}

#[tokio::test]
async fn a_modern_server_requires_meta_in_each_request() {
    let fixture = Fixture::new("new").with_era(FixtureEra::Modern).with_builtins([Builtin::Add]);
    let mut client = start(&fixture);
    let answer = client.request("server/discover", modern()).await.unwrap();
    assert_eq!(
        answer["result"],
        json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": { "tools": { "listChanged": true } },
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "new", "version": "1.0.0" } },
        })
    );

    let list = client.request("tools/list", modern()).await.unwrap();
    assert_eq!(list["result"]["tools"], json!([Builtin::Add.definition()]));
    assert_eq!(list["result"]["resultType"], "complete");
    assert_eq!(list["result"]["cacheScope"], "private");

    let answer = client.request("tools/list", json!({})).await.unwrap();
    assert_eq!(answer["error"]["code"], -32602);
    let old = json!({ "_meta": modern_meta("2025-11-25") });
    let answer = client.request("tools/list", old).await.unwrap();
    assert_eq!(answer["error"]["code"], -32022);
    assert_eq!(answer["error"]["data"]["supported"], json!(["2026-07-28"]));
    let answer = client.initialize().await.unwrap();
    assert_eq!(answer["error"]["code"], -32022);
}

#[tokio::test]
async fn both_eras_share_a_connection() {
    let fixture = Fixture::new("bridge").with_era(FixtureEra::Both).with_builtins([Builtin::Echo]);
    let mut client = start(&fixture);
    let answer = client.request("server/discover", modern()).await.unwrap();
    assert_eq!(answer["result"]["supportedVersions"][4], "2026-07-28");
    client.initialize().await.unwrap();
    let legacy = client.request("tools/list", json!({})).await.unwrap();
    assert!(legacy["result"].get("resultType").is_none());
    let modern = client.request("tools/list", modern()).await.unwrap();
    assert_eq!(modern["result"]["resultType"], "complete");
}

#[tokio::test]
async fn faulty_servers_are_silent_or_exit() {
    let mut silent = start(&Fixture::new("silent").with_era(FixtureEra::SilentOnProbe));
    let probe = silent.begin("server/discover", modern()).await.unwrap();
    // The answer to a later request shows that the probe was passed over.
    silent.initialize().await.unwrap();
    silent.request("ping", json!({})).await.unwrap();
    assert!(!silent.asides.iter().any(|message| message["id"] == probe));

    let fixture = Fixture::new("fragile").with_era(FixtureEra::SilentThenDies);
    let mut fragile = start(&fixture);
    fragile.begin("server/discover", modern()).await.unwrap();
    fragile.initialize().await.unwrap_err();
    assert_eq!(fragile.wait().await.unwrap().code(), Some(1));
    connect(&fixture).await;

    let fixture = Fixture::new("allergic").with_era(FixtureEra::DiesOfProbe);
    let mut allergic = start(&fixture);
    allergic.request("server/discover", modern()).await.unwrap_err();
    assert_eq!(allergic.wait().await.unwrap().code(), Some(1));
    connect(&fixture).await;
}

#[tokio::test]
async fn modern_subscribers_get_changes() {
    let fixture =
        Fixture::new("new").with_era(FixtureEra::Modern).with_builtins([Builtin::ChangeTools]);
    let mut client = start(&fixture);
    let mut params = modern();
    params["notifications"] = json!({ "toolsListChanged": true });
    let subscription = client.begin("subscriptions/listen", params).await.unwrap();
    let line = client.line().await.unwrap();
    let acknowledgement: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(acknowledgement["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(
        acknowledgement["params"],
        json!({
            "_meta": { "io.modelcontextprotocol/subscriptionId": subscription },
            "notifications": { "toolsListChanged": true },
        })
    );
    let mut call = modern();
    call["name"] = json!("change_tools");
    call["arguments"] = json!({ "add": "late" });
    client.request("tools/call", call).await.unwrap();
    assert_eq!(client.asides.len(), 1);
    assert_eq!(client.asides[0]["method"], "notifications/tools/list_changed");
    let id = &client.asides[0]["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(id, subscription);
}

#[tokio::test]
async fn malformed_definitions_are_listed_as_given() {
    let fixture = Fixture::new("odd").with_tools(malformed::all());
    let mut client = connect(&fixture).await;
    let list = client.request("tools/list", json!({})).await.unwrap();
    assert_eq!(list["result"]["tools"], json!(malformed::all()));
    let answer = client.call("no_schema", json!({ "a": 1 })).await.unwrap();
    assert_eq!(answer["result"]["structuredContent"], json!({ "a": 1 }));
}

#[tokio::test]
async fn an_invalid_message_gets_an_error() {
    let mut client = start(&Fixture::new("strict"));
    client.send_line("hello").await.unwrap();
    assert!(client.line().await.unwrap().contains("-32700"));
    client.send_line("{}").await.unwrap();
    assert!(client.line().await.unwrap().contains("-32600"));
}
