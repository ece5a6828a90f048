//! A server is told who calls only if its configuration says so.

use serde_json::{Value, json};
use toolgate_testkit::FixtureEra;

use crate::{
    fixtures::kit,
    support::{Workplace, call, entry_with},
};

/// What the server was told, directly and by a script. The client claims to be somebody else.
async fn told(tell: Option<bool>) -> [Value; 2] {
    let settings = tell.map_or(json!({}), |tell| json!({ "tellCaller": tell }));
    let kit = kit().with_era(FixtureEra::Modern);
    let workplace = Workplace::new(&json!({
        "mcpServers": { "kit": entry_with(&kit, settings) }, "toolSearch": { "enabled": true },
    }));
    let mut client = workplace.connect(&[]).await;
    let request = json!({
        "name": "call_tool", "arguments": { "name": "kit_client", "arguments": {} },
        "_meta": { "toolgate/caller": { "id": "root", "from": "direct" }, "x/y": 1 },
    });
    let direct = client.request("tools/call", request).await.unwrap();
    let direct = direct["result"]["structuredContent"].clone();
    assert_eq!(direct["x/y"], 1, "what else a client says is passed on: {direct}");
    let code = json!({ "code": "return await kit_client({})" });
    let script = call(&mut client, "run_code", code).await;
    let text = script["content"][0]["text"].as_str().unwrap().lines().next().unwrap();
    let script: Value = serde_json::from_str(text).unwrap();
    [direct["toolgate/caller"].clone(), script["toolgate/caller"].clone()]
}

#[tokio::test]
async fn a_server_is_told_who_calls_only_if_it_is_configured() {
    for tell in [None, Some(false)] {
        assert_eq!(told(tell).await, [Value::Null, Value::Null], "not even what a client forges");
    }
    let caller = |from: &str| json!({ "id": "local", "from": from });
    assert_eq!(told(Some(true)).await, [caller("direct"), caller("script")]);
}
