//! The modes of a session.

use serde_json::{Value, json};
use toolgate_testkit::{Builtin, Faults, Fixture};

use crate::{
    fixtures::{kit, notes, odd, weather},
    support::{
        DIRECT_META, META, Workplace, call, call_through, entry, entry_with, list, names,
        notification, served, text, until,
    },
};

fn two_servers(search: &Value) -> Workplace {
    let servers = json!({ "notes": entry(&notes()), "weather": entry(&weather()) });
    Workplace::new(&json!({ "mcpServers": servers, "toolSearch": search }))
}

#[tokio::test]
async fn auto_defers_above_any_threshold() {
    for (search, deferred) in [
        (json!({}), false),
        (json!({ "contextWindow": 1_000, "thresholdPercent": 5 }), true),
        (json!({ "thresholdPercent": 0 }), true),
        (json!({ "tokenThreshold": 100 }), true),
        (json!({ "tokenThreshold": 100_000 }), false),
        (json!({ "toolThreshold": 6 }), true),
        (json!({ "toolThreshold": 7 }), false),
        (json!({ "enabled": true }), true),
        (json!({ "enabled": false, "toolThreshold": 1 }), false),
    ] {
        let mut client = two_servers(&search).connect(&[]).await;
        let tools = list(&mut client).await;
        assert_eq!(names(&tools) == META, deferred, "{search}: {:?}", names(&tools));
        let direct = 6 + DIRECT_META.len();
        assert_eq!(tools.len(), if deferred { META.len() } else { direct }, "{search}");
    }
}

#[tokio::test]
async fn the_mode_argument_overrides_the_configuration() {
    let workplace = two_servers(&json!({ "enabled": false }));
    for mode in ["deferred", "stable", "dynamic"] {
        let mut client = workplace.connect(&["--mode", mode]).await;
        assert_eq!(names(&list(&mut client).await), META, "{mode}");
    }
    let workplace = two_servers(&json!({ "enabled": true }));
    for mode in ["direct", "auto"] {
        let mut client = workplace.connect(&["--mode", mode]).await;
        assert_eq!(served(&mut client).await.len(), 6, "{mode}");
    }
}

#[tokio::test]
async fn direct_lists_definitions_unchanged_under_exposed_names() {
    let servers = json!({ "notes": entry(&notes()), "odd": entry(&odd()), "kit": entry(&kit()) });
    let workplace = Workplace::new(&json!({ "mcpServers": servers }));
    let mut client = workplace.connect(&["--mode", "direct"]).await;
    let tools = list(&mut client).await;
    assert_eq!(names(&tools[..DIRECT_META.len()]), DIRECT_META);
    let tools = tools[DIRECT_META.len()..].to_vec();
    assert!(META.iter().all(|meta| !names(&tools).contains(meta)));

    let sent = |server: &str, definitions: Vec<Value>| -> Vec<Value> {
        let usable = definitions.into_iter().filter(|definition| definition["name"].is_string());
        usable
            .map(|mut definition| {
                let name = format!("{server}_{}", definition["name"].as_str().unwrap());
                definition["name"] = json!(name);
                definition
            })
            .collect()
    };
    let builtins =
        |fixture: Fixture| fixture.builtins.iter().map(|tool| tool.definition()).collect();
    let mut expected = sent("notes", notes().tools);
    expected.extend(sent("odd", [vec![Builtin::Echo.definition()], odd().tools].concat()));
    expected.extend(sent("kit", builtins(kit())));
    let given: Vec<&Value> = tools.iter().collect();
    let missing: Vec<&Value> =
        expected.iter().filter(|definition| !given.contains(definition)).collect();
    // A definition without a usable schema is not one that a client could take.
    let missing: Vec<&str> = missing.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    insta::assert_snapshot!(missing.join(" "), @"odd_no_schema odd_boolean_schema");
    assert_eq!(tools.len(), expected.len() - missing.len());

    let sum = call(&mut client, "kit_add", json!({ "a": 1, "b": 2 })).await;
    assert_eq!(sum["structuredContent"]["sum"], 3);
    let wrong = call(&mut client, "kit_add", json!({ "a": "one" })).await;
    assert_eq!(wrong["isError"], true, "validated like any call");
}

#[tokio::test]
async fn a_servers_setting_beats_the_threshold_and_a_tools_beats_its_servers() {
    let loaded =
        json!({ "deferLoading": false, "tools": { "find_notes": { "deferLoading": true } } });
    let deferred =
        json!({ "deferLoading": true, "tools": { "forecast": { "deferLoading": false } } });
    let servers = json!({
        "notes": entry_with(&notes(), loaded), "weather": entry_with(&weather(), deferred),
        "kit": entry(&Fixture::new("kit").with_builtins([Builtin::Echo])),
    });
    let small = Workplace::new(&json!({ "mcpServers": servers }));
    let mut client = small.connect(&[]).await;
    let always =
        ["notes_create_note", "notes_delete_note", "notes_shareNoteWithTeam", "weather_forecast"];
    let tools = list(&mut client).await;
    assert_eq!(names(&tools), [&META[..], &always, &["kit_echo"]].concat());

    let large = Workplace::deferred(&servers);
    let mut client = large.connect(&[]).await;
    assert_eq!(names(&list(&mut client).await), [&META[..], &always].concat());
    // Loaded ones can be called natively.
    let result = call(&mut client, "weather_forecast", json!({ "place": "Ulm" })).await;
    assert_eq!(result["structuredContent"]["place"], "Ulm");

    let mut client = large.connect(&["--mode", "direct"]).await;
    assert_eq!(served(&mut client).await.len(), 7, "asked for outright, nothing is deferred");
}

#[tokio::test]
async fn dynamic_appends_found_tools_in_order() {
    let workplace = two_servers(&json!({ "enabled": true, "deferred": "dynamic" }));
    let mut client = workplace.connect(&[]).await;
    assert_eq!(names(&list(&mut client).await), META);

    let forecast = json!({ "query": "forecast of the next days", "limit": 1 });
    let result = call(&mut client, "search_tools", forecast.clone()).await;
    insta::assert_snapshot!(text(&result), @r#"
    1 of 6 tools for "forecast of the next days":

    weather (2 tools)
    - weather_forecast(place: string): Weather of the next days for a place.

    The tools found are loaded now: call them by name.
    "#);
    notification(&mut client, "notifications/tools/list_changed").await;
    let tools = list(&mut client).await;
    assert_eq!(names(&tools), [&META[..], &["weather_forecast"]].concat());
    let mut sent = weather().tools[0].clone();
    sent["name"] = json!("weather_forecast");
    assert_eq!(tools[META.len()], sent);

    let notes = json!({ "query": "throw a note away", "limit": 1 });
    call(&mut client, "search_tools", notes).await;
    notification(&mut client, "notifications/tools/list_changed").await;
    let expected = [&META[..], &["weather_forecast", "notes_delete_note"]].concat();
    assert_eq!(names(&list(&mut client).await), expected);
    let result = call(&mut client, "weather_forecast", json!({ "place": "Ulm" })).await;
    assert_eq!(result["structuredContent"]["place"], "Ulm");

    // Found again: marked, not listed twice, not announced.
    let again = call(&mut client, "search_tools", forecast).await;
    assert!(
        text(&again).contains("- weather_forecast(place: string) [loaded]"),
        "{}",
        text(&again)
    );
    assert_eq!(names(&list(&mut client).await), expected);
    assert!(client.asides.is_empty(), "{:?}", client.asides);
}

#[tokio::test]
async fn found_tools_are_unloaded_on_request() {
    let search = json!({ "enabled": true, "deferred": "dynamic", "keepLoadedTools": false });
    let mut client = two_servers(&search).connect(&[]).await;
    let tools = list(&mut client).await;
    assert!(tools[0]["inputSchema"]["properties"]["unload"].is_object(), "it is offered");
    call(&mut client, "search_tools", json!({ "query": "forecast of the next days", "limit": 1 }))
        .await;
    notification(&mut client, "notifications/tools/list_changed").await;
    assert_eq!(list(&mut client).await.len(), META.len() + 1);
    let unload = json!({ "query": "throw a note away", "limit": 1, "unload": true });
    call(&mut client, "search_tools", unload).await;
    notification(&mut client, "notifications/tools/list_changed").await;
    let expected = [&META[..], &["notes_delete_note"]].concat();
    assert_eq!(names(&list(&mut client).await), expected);

    let kept = json!({ "enabled": true, "deferred": "dynamic" });
    let mut client = two_servers(&kept).connect(&[]).await;
    let tools = list(&mut client).await;
    assert!(tools[0]["inputSchema"]["properties"].get("unload").is_none(), "it is not offered");
}

#[tokio::test]
async fn a_changed_server_changes_a_direct_list_and_is_announced() {
    let workplace = Workplace::new(&json!({ "mcpServers": {
        "kit": entry(&Fixture::new("kit").with_builtins([Builtin::ChangeTools, Builtin::Echo])),
        "notes": entry(&notes()),
    } }));
    let mut client = workplace.connect(&[]).await;
    let before = served(&mut client).await;
    assert_eq!(before.len(), 6);
    let change = json!({ "add": "later", "remove": "echo" });
    call(&mut client, "kit_change_tools", change).await;
    notification(&mut client, "notifications/tools/list_changed").await;
    let after = served(&mut client).await;
    assert_eq!(names(&after[..2]), ["kit_change_tools", "kit_later"]);
    assert_eq!(after[2..], before[2..], "the other server is as it was");
    let gone = client.call("kit_echo", json!({})).await.unwrap();
    assert_eq!(gone["error"]["code"], -32602, "{gone}");
    call(&mut client, "kit_later", json!({})).await;
}

#[tokio::test]
async fn a_changed_server_is_indexed_again_and_a_stable_list_stays() {
    let fixture = Fixture::new("kit").with_builtins([Builtin::ChangeTools]);
    let workplace = Workplace::deferred(&json!({ "kit": entry(&fixture) }));
    let mut client = workplace.connect(&[]).await;
    assert_eq!(names(&list(&mut client).await), META);
    call_through(&mut client, "kit_change_tools", json!({ "add": "zebra_counter" })).await;
    until("the new tool is found", async || {
        let result = call(&mut client, "search_tools", json!({ "query": "zebra" })).await;
        (result["structuredContent"]["found"] == 1).then_some(())
    })
    .await;
    call_through(&mut client, "kit_change_tools", json!({ "remove": "zebra_counter" })).await;
    until("it is gone", async || {
        let result = call(&mut client, "search_tools", json!({ "query": "zebra" })).await;
        (result["structuredContent"]["found"] == 0).then_some(())
    })
    .await;
    assert_eq!(names(&list(&mut client).await), META);
    assert!(client.asides.is_empty(), "a list that stays is not announced: {:?}", client.asides);
}

#[tokio::test]
async fn prefixes_collisions_and_names_of_meta_tools() {
    let (long, longer) = ("x".repeat(99), "x".repeat(100));
    let all = [
        ("short", Some("s"), vec!["one"]),
        ("bare", Some(""), vec!["solo", "search_tools", "call_tool", "run_code"]),
        ("a-b", None, vec!["c", "wörter im kopf"]),
        ("a", None, vec!["b_c", "delete"]),
        ("a_b", None, vec![&longer, &long]),
    ];
    // Each tool answers who it is.
    let mut servers = serde_json::Map::new();
    for (server, prefix, tools) in &all {
        let mut fixture = Fixture::new(*server);
        for tool in tools {
            fixture = fixture
                .with_tool(json!({ "name": tool, "inputSchema": { "type": "object" } }))
                .with_answer(*tool, json!({ "content": [], "structuredContent": [server, tool] }));
        }
        let settings = prefix.map_or(json!({}), |prefix| json!({ "prefix": prefix }));
        servers.insert((*server).to_owned(), entry_with(&fixture, settings));
    }
    let workplace = Workplace::new(&json!({ "mcpServers": servers }));
    let mut client = workplace.connect(&["--mode", "direct"]).await;
    let first = served(&mut client).await;
    insta::assert_snapshot!(names(&first).join("\n"), @"
    s_one
    solo
    search_tools_cfa10ba1
    call_tool_b7602b58
    run_code_7ba5a149
    a_b_c_82a0696c
    a_b_w_rter_im_kopf
    a_b_c_72a3687c
    a_delete
    a_b_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx_32430324
    a_b_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx_d0fa5249
    ");
    for name in names(&first) {
        assert!(name.len() <= 64 && !name.starts_with(|first: char| first.is_ascii_digit()));
        assert!(
            name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
        );
    }
    let identities = all
        .iter()
        .flat_map(|(server, _, tools)| tools.iter().map(move |tool| json!([server, tool])));
    for (name, identity) in names(&first).into_iter().zip(identities) {
        let answer = call(&mut client, name, json!({})).await;
        assert_eq!(answer["structuredContent"], identity, "{name} reaches the right tool");
    }
    drop(client);
    let mut client = workplace.connect(&["--mode", "direct"]).await;
    assert_eq!(served(&mut client).await, first, "the same after a restart");
    // The meta-tool wins over any tool that would like its name.
    let result = call(&mut client, "search_tools", json!({ "query": "solo" })).await;
    let tools = &result["structuredContent"]["servers"][0]["tools"];
    assert!(tools[0]["name"].as_str().unwrap().contains("solo"), "{result}");
}

#[tokio::test]
async fn tools_that_are_excluded_or_denied_do_not_exist() {
    let settings = json!({
        "includeTools": ["find_notes", "delete_note", "create_note"], "excludeTools": ["create_note"],
        "tools": { "delete_note": { "approval": "deny" } },
    });
    let workplace =
        Workplace::new(&json!({ "mcpServers": { "notes": entry_with(&notes(), settings) } }));
    let mut client = workplace.connect(&["--mode", "direct"]).await;
    assert_eq!(names(&served(&mut client).await), ["notes_find_notes"]);
    for hidden in ["notes_delete_note", "notes_create_note", "notes_shareNoteWithTeam"] {
        let result = call_through(&mut client, hidden, json!({ "id": "1" })).await;
        assert_eq!(result["isError"], true, "{hidden} is not callable either");
    }
}

#[tokio::test]
async fn unknown_tools_are_deferred() {
    let silent = Faults { start_delay_ms: 600_000, ..Faults::default() };
    let servers = json!({ "notes": entry(&notes()), "slow": entry(&kit().with_faults(silent)) });
    let mut client = Workplace::new(&json!({ "mcpServers": servers })).connect(&[]).await;
    assert_eq!(names(&list(&mut client).await), META);
    call_through(&mut client, "notes_find_notes", json!({ "words": "x" })).await;
}

#[tokio::test]
async fn a_server_that_is_late_joins_a_direct_list() {
    let late = Faults { start_delay_ms: 4_000, ..Faults::default() };
    let servers =
        json!({ "notes": entry(&notes()), "weather": entry(&weather().with_faults(late)) });
    let workplace = Workplace::new(&json!({ "mcpServers": servers }));
    let mut client = workplace.connect(&["--mode", "direct"]).await;
    let early = served(&mut client).await;
    if early.len() == 4 {
        notification(&mut client, "notifications/tools/list_changed").await;
    }
    assert_eq!(served(&mut client).await.len(), 6);
}
