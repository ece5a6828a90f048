//! Groups (draft): ours for clients, and those of servers.

use serde_json::{Value, json};
use toolgate_testkit::{Fixture, FixtureEra};

use super::{ask, connect_with, modern, refused};
use crate::{
    fixtures::{notes, weather},
    support::{META, Workplace, call, call_through, entry, list, names, text},
};

fn spoken() -> Value {
    json!({ "io.modelcontextprotocol/groups": {} })
}

fn workplace(servers: &Value, groups: bool) -> Workplace {
    let search = json!({ "enabled": "stable", "groups": groups });
    Workplace::new(&json!({ "mcpServers": servers, "toolSearch": search }))
}

fn tool(name: &str) -> Value {
    json!({ "name": name, "description": format!("Digs: {name}."), "inputSchema": { "type": "object" } })
}

/// A server whose tools are in groups: one below another, one in a circle, one that cannot be read.
fn mine(era: FixtureEra) -> Fixture {
    let group = |name: &str| json!({ "name": name, "description": format!("The {name}.") });
    let got = |tools: &[Value], groups: &[Value]| json!({ "contents": { "tools": tools, "groups": groups } });
    Fixture::new("mine")
        .with_era(era)
        .with_capability("extensions", json!({ "io.modelcontextprotocol/groups": {} }))
        .with_tool(tool("top"))
        .with_method("groups/list", json!({ "groups": [group("upper"), group("missing")] }))
        .with_method_for(
            "groups/get",
            "upper",
            got(&[tool("upper_shaft"), tool("shared")], &[group("lower")]),
        )
        .with_method_for(
            "groups/get",
            "lower",
            got(&[tool("lower_shaft"), tool("shared")], &[group("upper")]),
        )
}

#[tokio::test]
async fn tools_in_the_groups_of_a_server_are_found_and_called() {
    for era in [FixtureEra::Legacy, FixtureEra::Modern] {
        let servers = json!({ "mine": entry(&mine(era)) });
        let mut client = workplace(&servers, true).connect(&[]).await;
        let found =
            call(&mut client, "search_tools", json!({ "query": "digs shaft", "limit": 20 })).await;
        for name in ["mine_upper_shaft", "mine_lower_shaft"] {
            assert!(text(&found).contains(name), "{name}: {found}");
        }
        let found =
            call(&mut client, "search_tools", json!({ "query": "digs", "limit": 20 })).await;
        assert_eq!(found["structuredContent"]["found"], 4, "each once: {found}");
        let called = call_through(&mut client, "mine_lower_shaft", json!({ "k": 1 })).await;
        // The fixture refuses what it does not list, so that its refusal shows where the call went.
        assert!(text(&called).contains("server `mine` refused `lower_shaft`"), "{called}");

        let mut client = workplace(&servers, false).connect(&[]).await;
        let found =
            call(&mut client, "search_tools", json!({ "query": "digs", "limit": 20 })).await;
        assert_eq!(found["structuredContent"]["found"], 1, "only with the switch: {found}");
    }
}

#[tokio::test]
async fn a_listed_tool_is_not_lost_to_one_of_a_group() {
    let other = json!({ "name": "top", "description": "Digs otherwise.", "inputSchema": { "type": "object" } });
    let group = |tools: &[Value]| json!({ "contents": { "tools": tools } });
    let twice = mine(FixtureEra::Legacy)
        .with_method_for("groups/get", "upper", group(&[other, tool("shaft")]))
        .with_method_for("groups/get", "missing", group(&[tool("top"), tool("deep")]));
    let place = workplace(&json!({ "mine": entry(&twice) }), true);
    let mut client = place.connect(&[]).await;
    let found = call(&mut client, "search_tools", json!({ "query": "digs", "limit": 20 })).await;
    assert_eq!(found["structuredContent"]["found"], 3, "{found}");
    assert!(!text(&found).contains("otherwise"), "{found}");
    let called = call_through(&mut client, "mine_top", json!({ "k": 1 })).await;
    assert_eq!(called["isError"], json!(null), "{called}");
    let status = place.run(&["status"]).await;
    let said = "1 tools of its groups are left out, because listed tools have their names";
    assert!(status.stdout.contains(said), "{status:?}");
}

#[tokio::test]
async fn groups_without_end_are_bounded() {
    let many: Vec<Value> = (0..500)
        .map(|number| json!({ "name": format!("g{number}"), "description": "x" }))
        .collect();
    let endless = mine(FixtureEra::Legacy)
        .with_method("groups/list", json!({ "groups": many, "nextCursor": "again" }))
        .with_method("groups/get", json!({ "contents": { "tools": [tool("deep")] } }));
    let workplace = workplace(&json!({ "mine": entry(&endless) }), true);
    let mut client = workplace.connect(&[]).await;
    let found = call(&mut client, "search_tools", json!({ "query": "digs", "limit": 20 })).await;
    assert_eq!(found["structuredContent"]["found"], 2, "{found}");
    let status = workplace.run(&["status"]).await;
    assert!(status.stdout.contains("some of its groups could not be read"), "{status:?}");
}

#[tokio::test]
async fn a_client_gets_a_group_for_each_server() {
    let servers = json!({
        "notes": entry(&notes().with_instructions("Write little.")), "My Weather": entry(&weather()),
    });
    let place = workplace(&servers, true);
    let (mut client, told) = connect_with(&place, &[], &spoken()).await;
    assert_eq!(told["capabilities"]["extensions"], spoken());
    assert_eq!(names(&list(&mut client).await), META);
    let listed = ask(&mut client, "groups/list", json!({})).await;
    insta::assert_json_snapshot!(listed, @r#"
    {
      "groups": [
        {
          "name": "notes",
          "title": "notes",
          "description": "The tools of server notes: create_note, find_notes, delete_note, shareNoteWithTeam"
        },
        {
          "name": "my-weather",
          "title": "My Weather",
          "description": "The tools of server My Weather: forecast, current_conditions"
        }
      ]
    }
    "#);
    let group = ask(&mut client, "groups/get", json!({ "name": "notes" })).await;
    assert_eq!(group["instructions"], "Write little.");
    let tools = group["contents"]["tools"].as_array().unwrap();
    assert_eq!(
        names(tools),
        ["notes_create_note", "notes_find_notes", "notes_delete_note", "notes_shareNoteWithTeam"]
    );
    assert!(tools[0]["inputSchema"]["properties"]["title"].is_object(), "the whole definition");
    let found = call(&mut client, "notes_find_notes", json!({ "words": "x" })).await;
    assert_eq!(found["structuredContent"]["words"], "x", "it is called as a tool");
    let error = refused(&mut client, "groups/get", json!({ "name": "none" })).await;
    assert_eq!(error["code"], -32002, "{error}");

    let mut client = place.serve(&[]);
    let error =
        refused(&mut client, "groups/get", modern(json!({ "name": "none" }), &spoken())).await;
    assert_eq!(error["code"], -32002, "in both eras: {error}");
}

#[tokio::test]
async fn groups_are_only_for_clients_that_have_them_and_behind_a_switch() {
    let servers = json!({ "notes": entry(&notes()) });
    let mut client = workplace(&servers, true).connect(&[]).await;
    assert_eq!(refused(&mut client, "groups/list", json!({})).await["code"], -32601);
    let (mut client, told) = connect_with(&workplace(&servers, false), &[], &spoken()).await;
    assert_eq!(told["capabilities"].get("extensions"), None, "{told}");
    assert_eq!(refused(&mut client, "groups/list", json!({})).await["code"], -32601);
    // What is listed is in no group.
    let (mut client, _) =
        connect_with(&workplace(&servers, true), &["--mode", "direct"], &spoken()).await;
    let groups = ask(&mut client, "groups/list", json!({})).await;
    assert_eq!(groups["groups"][0]["name"], "notes", "{groups}");
    let group = ask(&mut client, "groups/get", json!({ "name": "notes" })).await;
    assert_eq!(group.get("contents"), None, "{group}");
}
