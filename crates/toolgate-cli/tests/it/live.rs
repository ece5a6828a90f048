//! `toolgate status --live`: the sessions of running gateways, from outside.

use serde_json::{Value, json};

use crate::{
    fixtures::{notes, weather},
    support::{Workplace, call, entry, list, names, notification, until},
};

fn workplace(dynamic: bool) -> Workplace {
    let deferred = if dynamic { "dynamic" } else { "stable" };
    Workplace::new(&json!({
        "mcpServers": { "notes": entry(&notes()), "weather": entry(&weather()) },
        "toolSearch": { "enabled": true, "deferred": deferred },
    }))
}

async fn live(workplace: &Workplace) -> Vec<Value> {
    let outcome = workplace.run(&["status", "--live", "--json"]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    outcome.json().as_array().unwrap().clone()
}

/// Waits until the only session looks like this.
async fn session(workplace: &Workplace, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
    until(what, async || {
        let gateways = live(workplace).await;
        let found = gateways.first().map(|gateway| gateway["sessions"][0].clone());
        found.filter(|session| fits(session))
    })
    .await
}

#[tokio::test]
async fn a_live_session_shows_its_mode_what_it_found_and_what_it_saved() {
    let workplace = workplace(false);
    let outcome = workplace.run(&["status", "--live"]).await;
    assert_eq!(outcome.stdout, "No gateway runs. `toolgate serve` starts one.\n", "{outcome:?}");
    let mut client = workplace.connect(&[]).await;
    list(&mut client).await;
    let query = json!({ "query": "weather of tomorrow", "limit": 1 });
    call(&mut client, "search_tools", query).await;
    let shown = session(&workplace, "the search is shown", |it| it["searches"] == 1).await;
    assert_eq!((&shown["mode"], &shown["reason"]), (&json!("stable"), &json!("it was asked for")));
    assert_eq!(shown["found"].as_array().unwrap().len(), 1, "{shown}");
    assert!(shown["found"][0].as_str().unwrap().starts_with("weather_"), "{shown}");
    assert_eq!((&shown["loaded"], &shown["calls"]), (&json!([]), &json!(1)));
    let all: u64 = shown["allTokens"].as_u64().unwrap();
    assert!(all > 0 && shown["listedTokens"].as_u64().unwrap() > 0, "{shown}");
    assert_eq!(shown["allTools"], 6);
    let saved = all.saturating_sub(shown["listedTokens"].as_u64().unwrap());
    assert_eq!(shown["savedTokens"], saved);

    let outcome = workplace.run(&["status", "--live"]).await;
    let id = shown["id"].as_str().unwrap();
    for part in [id, "stable: it was asked for", "1 search, 1 call\n", "found: weather_", "saved"] {
        assert!(outcome.stdout.contains(part), "{part}: {}", outcome.stdout);
    }
    // A gateway that has ended is not shown.
    client.close_stdin();
    client.wait().await.unwrap();
    assert!(live(&workplace).await.is_empty());
}

#[tokio::test]
async fn a_reset_from_outside_unloads_what_a_session_has_found() {
    let workplace = workplace(true);
    let mut client = workplace.connect(&[]).await;
    let before = list(&mut client).await;
    call(&mut client, "search_tools", json!({ "query": "weather", "limit": 2 })).await;
    notification(&mut client, "notifications/tools/list_changed").await;
    let loaded = list(&mut client).await;
    assert!(loaded.len() > before.len(), "{:?}", names(&loaded));
    let found = |it: &Value| it["loaded"].as_array().is_some_and(|all| !all.is_empty());
    let shown = session(&workplace, "the loaded tools are shown", found).await;
    let id = shown["id"].as_str().unwrap();

    let reset = workplace.run(&["status", "--reset", id]).await;
    assert_eq!(reset.code, Some(0), "{reset:?}");
    // It shows what is so now.
    assert!(reset.stdout.contains(id) && !reset.stdout.contains("loaded:"), "{reset:?}");
    notification(&mut client, "notifications/tools/list_changed").await;
    assert_eq!(names(&list(&mut client).await), names(&before));
    let empty = |it: &Value| it["loaded"] == json!([]) && it["found"] == json!([]);
    session(&workplace, "nothing is loaded", empty).await;

    let unknown = workplace.run(&["status", "--live", "--reset", "s_0"]).await;
    insta::assert_snapshot!(unknown.shown(), @r"
    exit code 2
    --- stdout
    --- stderr
    error: no running gateway has a session `s_0`
      hint: `toolgate status --live` shows the sessions
    ");
}

#[tokio::test]
async fn a_session_that_is_passed_through_is_shown() {
    let workplace = workplace(false);
    let mut client = workplace.connect(&["--passthrough", "notes"]).await;
    list(&mut client).await;
    let shown = session(&workplace, "the session is shown", Value::is_object).await;
    assert_eq!(shown["mode"], "pass-through");
    assert_eq!(shown["reason"], "the server `notes` is served as it is");
    assert_eq!(shown["calls"], 0);
    let tool = list(&mut client).await[0]["name"].as_str().unwrap().to_owned();
    call(&mut client, &tool, json!({})).await;
    session(&workplace, "its call is counted", |it| it["calls"] == 1).await;
}
