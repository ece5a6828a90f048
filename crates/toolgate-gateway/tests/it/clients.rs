//! rmcp's own client, and a host with servers behind the endpoint.

use std::sync::Arc;

use rmcp::{
    ServiceExt as _,
    model::{CallToolRequestParams, ClientConfig, ProtocolVersion},
    service::{ClientLifecycleMode, serve_client_with_lifecycle},
    transport::StreamableHttpClientTransport,
};
use serde_json::{Value, json};
use toolgate_gateway::AggregateFactory;
use toolgate_host::{HostSettings, ServerSetup, ToolHost};
use toolgate_testkit::{Builtin, Fixture, FixtureEra};
use toolgate_upstream::{Endpoint as Address, ServerSpec, StdioEndpoint};

use crate::support::{Endpoint, Events, body};

fn host() -> ToolHost {
    host_of([("old", FixtureEra::Legacy), ("new", FixtureEra::Modern)].map(|(name, era)| {
        let fixture = Fixture::new(name).with_era(era).with_builtins([Builtin::Echo]);
        spec(name, &fixture)
    }))
}

/// A host with these servers, and all of their tools in the list.
pub(crate) fn host_of(servers: impl IntoIterator<Item = ServerSpec>) -> ToolHost {
    ToolHost::start(HostSettings::new(servers.into_iter().map(ServerSetup::new).collect()))
}

/// How a fixture is started.
pub(crate) fn spec(name: &str, fixture: &Fixture) -> ServerSpec {
    let entry = fixture.entry().unwrap();
    let endpoint = Address::Stdio(StdioEndpoint {
        command: entry.command,
        args: entry.args,
        env: std::iter::empty().collect(),
        cwd: None,
    });
    ServerSpec::new(name, endpoint)
}

async fn endpoint(host: &ToolHost) -> Endpoint {
    let factory = Arc::new(AggregateFactory::new(host.clone()));
    Endpoint::of(factory, Arc::default(), |_| {}).await
}

#[tokio::test]
async fn rmcp_as_a_client_of_the_legacy_era() {
    let host = host();
    let endpoint = endpoint(&host).await;
    let info = ClientConfig::default().with_protocol_version(ProtocolVersion::V_2025_11_25);
    let client = info.serve(StreamableHttpClientTransport::from_uri(endpoint.url())).await.unwrap();
    let tools = client.list_all_tools().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    assert_eq!(names, ["read_output", "old_echo", "new_echo"]);
    for name in ["old_echo", "new_echo"] {
        let arguments = json!({ "message": name }).as_object().unwrap().clone();
        let call = CallToolRequestParams::new(name).with_arguments(arguments);
        let result = client.call_tool(call).await.unwrap();
        assert_eq!(result.structured_content.unwrap()["message"], name);
    }
    client.cancel().await.unwrap();
    host.shutdown().await;
}

#[tokio::test]
async fn rmcp_as_a_client_of_the_modern_era() {
    let host = host();
    let endpoint = endpoint(&host).await;
    let lifecycle =
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    let transport = StreamableHttpClientTransport::from_uri(endpoint.url());
    let client =
        serve_client_with_lifecycle(ClientConfig::default(), transport, lifecycle).await.unwrap();
    assert_eq!(client.list_all_tools().await.unwrap().len(), 3);
    for name in ["old_echo", "new_echo"] {
        let arguments = json!({ "message": name }).as_object().unwrap().clone();
        let call = CallToolRequestParams::new(name).with_arguments(arguments);
        let result = client.call_tool(call).await.unwrap();
        assert_eq!(result.structured_content.unwrap()["message"], name);
    }
    client.cancel().await.unwrap();
    host.shutdown().await;
}

#[tokio::test]
async fn a_host_for_clients_of_the_modern_era() {
    let host = host();
    let endpoint = endpoint(&host).await;
    let listed = body(endpoint.modern("tools/list", json!({}))).await;
    let result = &listed["result"];
    assert_eq!(result["tools"].as_array().unwrap().len(), 3);
    assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(0), &json!("private")));
    for name in ["old_echo", "new_echo"] {
        let params = json!({ "name": name, "arguments": { "message": "m" } });
        let answer = body(endpoint.modern("tools/call", params)).await;
        assert_eq!(answer["result"]["structuredContent"]["message"], "m");
        assert_eq!(answer["result"]["resultType"], "complete");
    }
    let forged = json!({ "name": "old_echo", "requestState": "forged" });
    let answer: Value = body(endpoint.modern("tools/call", forged)).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    host.shutdown().await;
}

#[tokio::test]
async fn changes_reach_subscribers() {
    let fixture = Fixture::new("kit").with_builtins([Builtin::ChangeTools]);
    let host = host_of([spec("kit", &fixture)]);
    let endpoint = endpoint(&host).await;
    let wanted = json!({ "toolsListChanged": true, "promptsListChanged": true, "odd": true });
    let listening = endpoint.modern("subscriptions/listen", json!({ "notifications": wanted }));
    let mut events = Events::new(listening.send().await.unwrap());
    let acknowledged = events.message().await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    let accepted = json!({ "toolsListChanged": true, "promptsListChanged": true });
    assert_eq!(acknowledged["params"]["notifications"], accepted);
    let subscription = &acknowledged["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(subscription, 1);
    let params = json!({ "name": "kit_change_tools", "arguments": { "add": "later" } });
    let answer = body(endpoint.modern("tools/call", params)).await;
    assert!(answer["result"].is_object(), "{answer}");
    let changed = events.message().await;
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    assert_eq!(changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
    drop(events);
    host.shutdown().await;
}
