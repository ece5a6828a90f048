//! MCP Apps: tools with a view.

use serde_json::{Value, json};
use toolgate_testkit::{Builtin, Fixture, FixtureEra, installed_servers};

use super::{ask, connect_with, modern, refused};
use crate::support::{
    META, Workplace, call, call_through, entry, entry_with, list, names, served, text, until,
};

const VIEW: &str = "ui://panel/app.html";

/// What a client that shows views declares.
fn views() -> Value {
    json!({ "io.modelcontextprotocol/ui": { "mimeTypes": ["text/html;profile=mcp-app"] } })
}

/// A server with a view, a tool for its view alone, and one without a view.
fn panel(name: &str) -> Fixture {
    let tool = |name: &str, meta: Value| {
        let description = format!("The panel: {name}.");
        json!({ "name": name, "description": description, "inputSchema": { "type": "object" }, "_meta": meta })
    };
    let policy = json!({ "ui": { "csp": { "connectDomains": ["https://x.org"] }, "permissions": { "camera": {} } } });
    Fixture::new(name)
        .with_tools([
            tool("show", json!({ "ui": { "resourceUri": VIEW }, "ui/resourceUri": VIEW, "x": 1 })),
            tool("refresh", json!({ "ui": { "resourceUri": VIEW, "visibility": ["app"] } })),
            tool("plain", json!({ "x": 1 })),
        ])
        .with_answer(
            "show",
            json!({ "content": [{ "type": "text", "text": "shown" }], "_meta": { "ui": { "resourceUri": VIEW }, "k": 1 } }),
        )
        .with_answer("refresh", json!({ "content": [{ "type": "text", "text": format!("{name} is fresh") }] }))
        .with_resources([json!({
            "uri": VIEW, "name": "panel", "mimeType": "text/html;profile=mcp-app", "_meta": policy,
        })])
        .with_builtins([Builtin::Client])
}

fn two() -> Workplace {
    Workplace::deferred(&json!({ "left": entry(&panel("left")), "right": entry(&panel("right")) }))
}

#[tokio::test]
async fn a_client_that_shows_views_lists_their_tools_in_every_mode() {
    for mode in ["stable", "dynamic", "code", "direct"] {
        let (mut client, _) = connect_with(&two(), &["--mode", mode], &views()).await;
        let tools = list(&mut client).await;
        for server in ["left", "right"] {
            let name = format!("{server}_show");
            let tool = tools.iter().find(|tool| tool["name"] == *name);
            let tool = tool.unwrap_or_else(|| panic!("{mode}: {:?}", names(&tools)));
            let uri = format!("ui://toolgate.{server}/panel/app.html");
            assert_eq!(
                tool["_meta"],
                json!({ "ui": { "resourceUri": uri }, "ui/resourceUri": uri, "x": 1 })
            );
            assert!(names(&tools).contains(&format!("{server}_refresh").as_str()), "{mode}");
            let is_listed = names(&tools).contains(&format!("{server}_plain").as_str());
            assert_eq!(is_listed, mode == "direct", "{mode}: what has no view is as before");
            // Equal URIs of two servers stay apart.
            let read = ask(&mut client, "resources/read", json!({ "uri": uri })).await;
            let content = &read["contents"][0];
            assert_eq!(content["uri"], uri);
            assert_eq!(content["mimeType"], "text/html;profile=mcp-app");
            assert_eq!(content["text"], format!("{server} has {VIEW}"));
            assert_eq!(content["_meta"]["ui"]["csp"]["connectDomains"][0], "https://x.org");
        }
        let result = call(&mut client, "left_show", json!({})).await;
        assert_eq!(
            result["_meta"]["ui"]["resourceUri"], "ui://toolgate.left/panel/app.html",
            "{result}"
        );
        assert_eq!(result["_meta"]["k"], 1);
    }
}

#[tokio::test]
async fn what_is_only_for_views_is_not_for_models() {
    let mut client = two().connect(&[]).await;
    assert_eq!(names(&list(&mut client).await), META);
    let found = call(&mut client, "search_tools", json!({ "query": "panel", "limit": 20 })).await;
    assert!(text(&found).contains("left_show") && !text(&found).contains("refresh"), "{found}");
    let details = json!({ "names": ["left_show", "left_refresh"], "format": "json" });
    let details = call(&mut client, "get_tool_details", details).await;
    let shown = &details["structuredContent"]["tools"];
    assert_eq!(
        shown[0]["definition"]["_meta"]["ui"]["resourceUri"],
        "ui://toolgate.left/panel/app.html"
    );
    assert!(text(&details).contains("ui://toolgate.left/panel/app.html"), "{details}");
    assert_eq!(shown[1]["error"], "unknown", "{details}");
    let result = call_through(&mut client, "left_refresh", json!({})).await;
    assert_eq!(result["isError"], true, "{result}");
    let result = call_through(&mut client, "left_refres", json!({})).await;
    assert!(!text(&result).contains("_refresh`"), "{result}");
    refused(&mut client, "tools/call", json!({ "name": "left_refresh", "arguments": {} })).await;
    let result = call_through(&mut client, "left_show", json!({})).await;
    assert_eq!(
        result["_meta"]["ui"]["resourceUri"], "ui://toolgate.left/panel/app.html",
        "{result}"
    );

    let (mut client, _) = connect_with(&two(), &[], &views()).await;
    list(&mut client).await;
    let result = call_through(&mut client, "left_refresh", json!({})).await;
    assert_eq!(result["isError"], true, "a model calls call_tool, and no view: {result}");
    let result = call(&mut client, "left_refresh", json!({})).await;
    assert_eq!(text(&result), "left is fresh");
}

#[tokio::test]
async fn a_view_calls_the_tools_of_its_server_by_their_own_names() {
    let (mut client, _) = connect_with(&two(), &[], &views()).await;
    list(&mut client).await;
    let own = json!({ "name": "refresh", "arguments": {} });
    refused(&mut client, "tools/call", own.clone()).await;
    let view = |server: &str| json!({ "uri": format!("ui://toolgate.{server}/panel/app.html") });
    ask(&mut client, "resources/read", view("right")).await;
    let result = ask(&mut client, "tools/call", own.clone()).await;
    assert_eq!(text(&result), "right is fresh");
    ask(&mut client, "resources/read", view("left")).await;
    let error = refused(&mut client, "tools/call", own).await;
    insta::assert_snapshot!(error["message"].as_str().unwrap(), @"the views of several servers have this tool: call left_refresh or right_refresh");
}

#[tokio::test]
async fn the_policy_holds_for_tools_with_a_view() {
    let denied = json!({ "tools": { "show": { "approval": "deny" } } });
    let servers = json!({ "left": entry_with(&panel("left"), denied) });
    let (mut client, _) = connect_with(&Workplace::deferred(&servers), &[], &views()).await;
    assert_eq!(names(&served(&mut client).await), ["left_refresh"]);
    let rule = json!({ "rules": [{ "tool": "left/resources/read", "verdict": "deny" }] });
    let config = json!({ "mcpServers": { "left": entry(&panel("left")) }, "policy": rule });
    let (mut client, _) = connect_with(&Workplace::new(&config), &[], &views()).await;
    list(&mut client).await;
    refused(&mut client, "resources/read", json!({ "uri": "ui://toolgate.left/panel/app.html" }))
        .await;
}

#[tokio::test]
async fn servers_of_both_eras_learn_that_views_are_shown() {
    let servers = json!({
        "old": entry(&panel("old")),
        "new": entry(&panel("new").with_era(FixtureEra::Modern)),
    });
    let workplace = Workplace::deferred(&servers);
    let said = |result: &Value| result["structuredContent"].clone();
    let of_request = "io.modelcontextprotocol/clientCapabilities";
    let (mut client, _) = connect_with(&workplace, &[], &views()).await;
    let old = said(&call_through(&mut client, "old_client", json!({})).await);
    assert_eq!(old["capabilities"]["extensions"], views(), "{old}");
    let new = said(&call_through(&mut client, "new_client", json!({})).await);
    assert_eq!(new[of_request]["extensions"], views(), "{new}");
    // Another client shows none, and a modern server learns that with each call.
    let mut client = workplace.connect(&[]).await;
    let new = said(&call_through(&mut client, "new_client", json!({})).await);
    assert_eq!(new[of_request].get("extensions"), None, "{new}");
    let mut client = workplace.serve(&[]);
    let request = json!({ "name": "call_tool", "arguments": { "name": "new_client" } });
    let new = said(&ask(&mut client, "tools/call", modern(request, &views())).await);
    assert_eq!(new[of_request]["extensions"], views(), "{new}");
}

#[tokio::test]
async fn a_real_view_is_shown_through_the_gateway() {
    let Some(servers) = installed_servers() else { return };
    let app = servers.app();
    let mut server = app.entry.to_json();
    server["connectTimeoutSeconds"] = json!(80);
    let workplace = Workplace::deferred(&json!({ "app": server }));
    let (mut client, _) = connect_with(&workplace, &[], &views()).await;
    let tool = until("the tool is listed", async || {
        let tools = list(&mut client).await;
        tools.into_iter().find(|tool| tool["name"] == "app_get_time")
    })
    .await;
    let uri = tool["_meta"]["ui"]["resourceUri"].clone();
    assert_eq!(uri, "ui://toolgate.app/get-time/mcp-app.html");
    let read = ask(&mut client, "resources/read", json!({ "uri": uri })).await;
    assert_eq!(read["contents"][0]["mimeType"], "text/html;profile=mcp-app");
    assert!(read["contents"][0]["text"].as_str().unwrap().contains("<html"), "{read}");
    // The page itself knows the tool as `get-time`.
    let result = call(&mut client, "get-time", json!({})).await;
    assert!(result["structuredContent"]["time"].is_string(), "{result}");
}
