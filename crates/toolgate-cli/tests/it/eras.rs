//! Clients and servers of all protocol versions, in any combination.

use serde_json::{Value, json};
use toolgate_testkit::{Builtin, Fixture, FixtureEra, RawClient};

use crate::{
    fixtures::{notes, weather},
    support::{DIRECT_META, META, Workplace, call, call_through, entry, list, names, until},
};

/// The parameters of a request of 2026-07-28.
fn modern(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "raw-client", "version": "1.0.0" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}

async fn modern_call(client: &mut RawClient, tool: &str, arguments: Value) -> Value {
    let params = modern(json!({ "name": tool, "arguments": arguments }));
    let mut answer = client.request("tools/call", params).await.unwrap();
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].take()
}

/// One server of each kind.
fn mixed() -> Workplace {
    let echo = |era: FixtureEra| {
        entry(&Fixture::new("s").with_era(era).with_builtins([Builtin::Echo, Builtin::Media]))
    };
    Workplace::deferred(&json!({
        "old": echo(FixtureEra::Legacy), "new": echo(FixtureEra::Modern), "both": echo(FixtureEra::Both),
        "fragile": echo(FixtureEra::DiesOfProbe),
    }))
}

#[tokio::test]
async fn a_modern_client_discovers_lists_searches_and_calls() {
    let mut client = mixed().serve(&[]);
    let answer = client.request("server/discover", modern(json!({}))).await.unwrap();
    let found = &answer["result"];
    let versions = found["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")), "{answer}");
    assert_eq!(
        found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "toolgate",
        "{answer}"
    );
    assert!(found["instructions"].as_str().unwrap().contains("search_tools"));

    let answer = client.request("tools/list", modern(json!({}))).await.unwrap();
    let result = &answer["result"];
    assert_eq!(result["resultType"], "complete");
    assert!(result["ttlMs"].is_u64() && result["cacheScope"].is_string(), "{answer}");
    let tools = result["tools"].as_array().unwrap();
    assert_eq!(names(tools), META);

    let result =
        modern_call(&mut client, "search_tools", json!({ "query": "return arguments unchanged" }))
            .await;
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["structuredContent"]["servers"].as_array().unwrap().len(), 4, "{result}");
    for server in ["old", "new", "both", "fragile"] {
        let name = format!("{server}_echo");
        let request = json!({ "name": name, "arguments": { "message": server } });
        let result = modern_call(&mut client, "call_tool", request).await;
        assert_eq!(result["structuredContent"]["message"], server);
        assert_eq!(result["resultType"], "complete", "{result}");
        // Each server gets the words of its own era.
        let meta = &result["_meta"]["fixture/requestMeta"];
        let version = meta.get("io.modelcontextprotocol/protocolVersion");
        let modern = matches!(server, "new" | "both");
        assert_eq!(version.is_some(), modern, "{server}: {meta}");
    }
}

#[tokio::test]
async fn a_legacy_client_gets_results_of_modern_servers_in_its_own_form() {
    let mut client = mixed().connect(&[]).await;
    for server in ["old", "new", "both", "fragile"] {
        let name = format!("{server}_media");
        let result = call_through(&mut client, &name, json!({})).await;
        assert_eq!(result["content"].as_array().unwrap().len(), 6, "{server}");
        assert_eq!(result["_meta"]["fixture/result"], true);
    }
}

#[tokio::test]
async fn a_modern_request_without_its_metadata_is_refused() {
    let mut client = mixed().serve(&[]);
    client.request("server/discover", modern(json!({}))).await.unwrap();
    let answer = client.request("tools/list", json!({})).await.unwrap();
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let mut params = modern(json!({}));
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2031-01-01");
    let answer = client.request("tools/list", params).await.unwrap();
    assert_eq!(answer["error"]["code"], -32022, "{answer}");
    let answer = client.request("tools/list", modern(json!({}))).await.unwrap();
    assert!(answer["result"]["tools"].is_array(), "and it goes on: {answer}");
}

#[tokio::test]
async fn a_modern_client_may_begin_without_discovery() {
    let mut client = mixed().serve(&[]);
    let answer = client.request("tools/list", modern(json!({}))).await.unwrap();
    assert_eq!(answer["result"]["tools"].as_array().unwrap().len(), META.len(), "{answer}");
}

#[tokio::test]
async fn dynamic_is_stable_for_a_modern_client() {
    let servers = json!({ "notes": entry(&notes()), "weather": entry(&weather()) });
    let search = json!({ "enabled": true, "deferred": "dynamic" });
    let workplace = Workplace::new(&json!({ "mcpServers": servers, "toolSearch": search }));
    let mut client = workplace.serve(&[]);
    client.request("server/discover", modern(json!({}))).await.unwrap();
    let before = client.request("tools/list", modern(json!({}))).await.unwrap();
    let result = modern_call(&mut client, "search_tools", json!({ "query": "forecast" })).await;
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("\n\nTo call: call_tool. "), "{text}");
    let after = client.request("tools/list", modern(json!({}))).await.unwrap();
    assert_eq!(after["result"], before["result"]);
    let described = before["result"]["tools"][0]["description"].as_str().unwrap();
    assert!(described.contains("call_tool"), "as a stable session is told: {described}");
    assert!(client.asides.is_empty(), "{:?}", client.asides);
}

#[tokio::test]
async fn a_direct_list_follows_its_servers_for_a_modern_client() {
    let fixture = Fixture::new("kit").with_builtins([Builtin::ChangeTools]);
    let workplace = Workplace::new(&json!({ "mcpServers": { "kit": entry(&fixture) } }));
    let mut client = workplace.serve(&["--mode", "direct"]);
    let before = client.request("tools/list", modern(json!({}))).await.unwrap();
    assert_eq!(
        before["result"]["tools"].as_array().unwrap().len(),
        DIRECT_META.len() + 1,
        "{before}"
    );
    modern_call(&mut client, "kit_change_tools", json!({ "add": "later" })).await;
    // There is no notification, but the next list is correct.
    until("the new tool is listed", async || {
        let after = client.request("tools/list", modern(json!({}))).await.unwrap();
        (after["result"]["tools"].as_array().unwrap().len() == DIRECT_META.len() + 2).then_some(())
    })
    .await;
    assert!(client.asides.is_empty(), "{:?}", client.asides);
}

#[tokio::test]
async fn clients_of_every_older_version() {
    let workplace = mixed();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = workplace.serve(&[]);
        let params = json!({
            "protocolVersion": version, "capabilities": {},
            "clientInfo": { "name": "raw-client", "version": "1.0.0" },
        });
        let answer = client.request("initialize", params).await.unwrap();
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        client.notify("notifications/initialized", json!({})).await.unwrap();
        assert_eq!(list(&mut client).await.len(), META.len(), "{version}");
        let request = json!({ "name": "new_echo", "arguments": { "message": version } });
        let result = call(&mut client, "call_tool", request).await;
        assert_eq!(result["structuredContent"]["message"], version);
    }
}

#[tokio::test]
async fn a_client_of_a_future_version_gets_a_known_version() {
    let mut client = mixed().serve(&[]);
    let params = json!({
        "protocolVersion": "2031-01-01", "capabilities": {},
        "clientInfo": { "name": "raw-client", "version": "1.0.0" },
    });
    let answer = client.request("initialize", params).await.unwrap();
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
}
