//! `search_tools`: lists, patterns, steps, names.

use serde_json::{Value, json};
use toolgate_testkit::Fixture;

use crate::{
    fixtures::{notes, tool, weather},
    support::{Gateway, Workplace, call, call_through, entry, list, notification, text},
};

fn workplace() -> Workplace {
    Workplace::deferred(&json!({ "notes": entry(&notes()), "weather": entry(&weather()) }))
}

/// A server of many tools, as `many_item_07`.
fn many() -> Fixture {
    let one = |number: usize| tool(&format!("item_{number:02}"), "Counts items.", &json!({}), &[]);
    Fixture::new("many").with_tools((0..60).map(one))
}

async fn search(client: &mut Gateway, arguments: Value) -> Value {
    let result = call(client, "search_tools", arguments).await;
    assert!(result.get("isError").is_none(), "{result}");
    result
}

fn found(result: &Value) -> Vec<&str> {
    let servers = result["structuredContent"]["servers"].as_array().unwrap();
    let tools = servers.iter().flat_map(|server| server["tools"].as_array().unwrap());
    tools.map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_server_without_a_query_is_listed_in_pages() {
    let place = Workplace::deferred(&json!({ "many": entry(&many()), "notes": entry(&notes()) }));
    let mut client = place.connect(&[]).await;
    let result = search(&mut client, json!({ "server": "notes" })).await;
    insta::assert_snapshot!(text(&result), @r#"
    Tools 1 to 4 of 4 of the server notes:

    notes (4 tools)
    - notes_create_note(title: string, body?: string, colour?: "amber" | "teal"): Write a new note. It is saved at once.
    - notes_find_notes(words: string): Look for notes by their words.
    - notes_delete_note(id: string): Throw a note away for good.
    - notes_shareNoteWithTeam(id: string, readers: object[]): Let others read a note.

    To call: call_tool. What parameters mean: get_tool_details.
    "#);
    let mut seen: Vec<String> = Vec::new();
    for (offset, count) in [(0, 25), (25, 25), (50, 10), (60, 0)] {
        let page = search(&mut client, json!({ "server": "many", "offset": offset })).await;
        assert_eq!(found(&page).len(), count, "{offset}");
        assert_eq!(page["structuredContent"]["total"], 60);
        let says_more = text(&page).contains(&format!("with offset {}.", offset + count));
        assert_eq!(says_more, offset + count < 60, "{}", text(&page));
        seen.extend(found(&page).into_iter().map(str::to_owned));
    }
    let expected: Vec<String> = (0..60).map(|number| format!("many_item_{number:02}")).collect();
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_pattern_finds_all_that_match_in_pages() {
    let place = Workplace::deferred(&json!({ "many": entry(&many()), "notes": entry(&notes()) }));
    let mut client = place.connect(&[]).await;
    let pattern = "item_[1-3]\\d$";
    let request = |offset: usize| json!({ "query": pattern, "strategy": "regex", "limit": 12, "offset": offset });
    let mut seen: Vec<String> = Vec::new();
    for (offset, count) in [(0, 12), (12, 12), (24, 6)] {
        let page = search(&mut client, request(offset)).await;
        assert_eq!(page["structuredContent"]["total"], 30, "{page}");
        assert_eq!(found(&page).len(), count);
        seen.extend(found(&page).into_iter().map(str::to_owned));
    }
    let expected: Vec<String> = (10..40).map(|number| format!("many_item_{number}")).collect();
    assert_eq!(seen, expected);
    insta::assert_snapshot!(text(&search(&mut client, request(30)).await), @"30 tools match, none from offset 30 on.");
    // The configured strategy takes it for words.
    let words = search(&mut client, json!({ "query": pattern, "limit": 12 })).await;
    assert!(words["structuredContent"].get("total").is_none(), "{words}");
    let wrong =
        call(&mut client, "search_tools", json!({ "query": "(", "strategy": "regex" })).await;
    assert_eq!(wrong["isError"], true, "{wrong}");
    let none =
        call(&mut client, "search_tools", json!({ "query": "x", "strategy": "subagent" })).await;
    assert!(text(&none).contains("not set up"), "{none}");
}

#[tokio::test]
async fn each_query_has_its_own_results() {
    let mut client = workplace().connect(&[]).await;
    let queries = ["throw a note away", "forecast for a town", "write a note"];
    let result = search(&mut client, json!({ "queries": queries, "limit": 1 })).await;
    insta::assert_snapshot!(text(&result), @r#"
    3 of 6 tools for "throw a note away", "forecast for a town", "write a note":

    For "throw a note away":

    notes (4 tools)
    - notes_delete_note(id: string): Throw a note away for good.

    For "forecast for a town":

    weather (2 tools)
    - weather_forecast(place: string): Weather of the next days for a place.

    For "write a note":

    notes (4 tools)
    - notes_create_note(title: string, body?: string, colour?: "amber" | "teal"): Write a new note. It is saved at once.

    To call: call_tool. What parameters mean: get_tool_details.
    "#);
    insta::assert_json_snapshot!(result["structuredContent"]["steps"], @r#"
    [
      {
        "query": "throw a note away",
        "tools": [
          "notes_delete_note"
        ]
      },
      {
        "query": "forecast for a town",
        "tools": [
          "weather_forecast"
        ]
      },
      {
        "query": "write a note",
        "tools": [
          "notes_create_note"
        ]
      }
    ]
    "#);
}

#[tokio::test]
async fn the_steps_of_a_request_have_results_too() {
    let mut client = workplace().connect(&[]).await;
    let query = "write a new note about the meeting, then show the forecast for the town";
    let result = search(&mut client, json!({ "query": query, "limit": 1 })).await;
    insta::assert_snapshot!(text(&result), @r#"
    2 of 6 tools for "write a new note about the meeting, then show the forecast for the town":

    notes (4 tools)
    - notes_create_note(title: string, body?: string, colour?: "amber" | "teal"): Write a new note. It is saved at once.

    For "write a new note about the meeting": notes_create_note (above)

    For "show the forecast for the town":

    weather (2 tools)
    - weather_forecast(place: string): Weather of the next days for a place.

    To call: call_tool. What parameters mean: get_tool_details.
    "#);
    assert_eq!(found(&result), ["notes_create_note", "weather_forecast"]);
    let steps = result["structuredContent"]["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 3, "{steps:?}");
    assert_eq!(steps[2]["query"], "show the forecast for the town");
    assert_eq!(steps[2]["tools"][0], "weather_forecast");
}

#[tokio::test]
async fn the_schema_of_results_is_shown_with_that_of_arguments() {
    let mut answering = tool("ask", "Answers a question.", &json!({}), &[]);
    answering["outputSchema"] =
        json!({ "type": "object", "properties": { "yes": { "type": "boolean" } } });
    let oracle = Fixture::new("oracle").with_tools([answering.clone()]);
    let place = Workplace::deferred(&json!({ "oracle": entry(&oracle) }));
    let mut client = place.connect(&[]).await;
    let request = json!({ "query": "answer a question", "detail": "schema" });
    let result = search(&mut client, request).await;
    let row = &result["structuredContent"]["servers"][0]["tools"][0];
    assert_eq!(row["outputSchema"], answering["outputSchema"]);
    assert!(text(&result).contains("\n  returns {\"type\":\"object\""), "{}", text(&result));
}

#[tokio::test]
async fn what_a_search_loads_is_in_its_data() {
    let servers = json!({ "notes": entry(&notes()), "weather": entry(&weather()) });
    let search_settings = json!({ "enabled": true, "deferred": "dynamic" });
    let place = Workplace::new(&json!({ "mcpServers": servers, "toolSearch": search_settings }));
    let mut client = place.connect(&[]).await;
    list(&mut client).await;
    let request = json!({ "query": "forecast of the next days", "limit": 1 });
    let first = search(&mut client, request.clone()).await;
    assert_eq!(first["structuredContent"]["newlyLoaded"], json!(["weather_forecast"]));
    notification(&mut client, "notifications/tools/list_changed").await;
    let again = search(&mut client, request).await;
    assert!(again["structuredContent"].get("newlyLoaded").is_none(), "{again}");
}

#[tokio::test]
async fn a_doubled_prefix_goes_and_all_names_of_the_tool_work() {
    let git = Fixture::new("git").with_tools([
        tool("git_commit", "Records changes.", &json!({}), &[]),
        tool("fetch_all", "Fetches from everywhere.", &json!({}), &[]),
    ]);
    let place = Workplace::deferred(&json!({ "git": entry(&git), "notes": entry(&notes()) }));
    let mut client = place.connect(&[]).await;
    let result = search(&mut client, json!({ "query": "record changes", "limit": 1 })).await;
    assert_eq!(found(&result), ["git_commit"]);
    for (name, tool, is_called) in [
        ("git_commit", "git_commit", true),
        ("git_git_commit", "git_commit", true),
        // What a server calls a tool in its texts is explained, and not called: flows, grants and rules know a
        // tool by its exposed name.
        ("fetch_all", "git_fetch_all", false),
    ] {
        let called = call_through(&mut client, name, json!({})).await;
        assert_eq!(called.get("isError").is_none(), is_called, "{name}: {called}");
        assert!(is_called || text(&called).contains(tool), "{called}");
        let shown = call(&mut client, "get_tool_details", json!({ "names": [name] })).await;
        assert_eq!(shown["structuredContent"]["tools"][0]["name"], tool, "{shown}");
    }
    // The flows of a script know its tools by the names in its text.
    let script = json!({ "code": "await git_git_commit({}); return 'done'" });
    let run = call(&mut client, "run_code", script).await;
    assert!(run["isError"] == true && text(&run).contains("git_commit"), "{run}");
}

#[tokio::test]
async fn rules_and_searches_know_both_names_of_a_doubled_prefix() {
    for (pattern, allowed) in [("git_git_*", true), ("git_commit", true), ("git_x*", false)] {
        let git = Fixture::new("git").with_tools([tool("git_commit", "Records.", &json!({}), &[])]);
        let place = Workplace::new(&json!({
            "mcpServers": { "git": entry(&git) },
            "policy": { "default": "deny", "rules": [{ "tool": pattern, "verdict": "allow" }] },
        }));
        let mut client = place.connect(&[]).await;
        let called = call_through(&mut client, "git_commit", json!({})).await;
        assert_eq!(called.get("isError").is_none(), allowed, "{pattern}: {called}");
    }
}

#[tokio::test]
async fn a_successor_comes_before_the_deprecated_tool() {
    let files = Fixture::new("files").with_tools([
        tool(
            "read_file",
            "Read the contents of a file. DEPRECATED: Use read_text instead.",
            &json!({}),
            &[],
        ),
        tool("read_text", "Read text.", &json!({}), &[]),
    ]);
    let place = Workplace::deferred(&json!({ "files": entry(&files) }));
    let mut client = place.connect(&[]).await;
    let query = json!({ "query": "read the contents of a file" });
    let result = search(&mut client, query).await;
    assert_eq!(found(&result), ["files_read_text", "files_read_file"]);
}

#[tokio::test]
async fn a_client_that_shows_one_gets_the_text_alone() {
    let place = workplace();
    for (name, has_data) in [("claude-code", false), ("a program", true)] {
        let mut client = place.serve(&[]);
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": name, "version": "1" },
        });
        client.request("initialize", hello).await.unwrap();
        client.notify("notifications/initialized", json!({})).await.unwrap();
        let result = search(&mut client, json!({ "query": "forecast" })).await;
        assert_eq!(result.get("structuredContent").is_some(), has_data, "{name}: {result}");
        assert!(text(&result).contains("weather_forecast(place: string)"), "{result}");
        // Scripts read the data in any case.
        let code = "return (await search_tools({ query: 'forecast' })).servers[0].server";
        let run = call(&mut client, "run_code", json!({ "code": code })).await;
        assert!(text(&run).contains("weather"), "{run}");
        // What a server sent is passed on.
        let called = call_through(&mut client, "weather_forecast", json!({ "place": "Ulm" })).await;
        assert_eq!(called["structuredContent"]["place"], "Ulm", "{called}");
    }
}
