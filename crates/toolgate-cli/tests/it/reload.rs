//! Edits of the configuration reach a gateway that runs.

use std::fs;

use serde_json::{Value, json};
use toolgate_testkit::RawClient;

use crate::{
    asking::said,
    fixtures::{kit, notes, weather},
    support::{Gateway, Workplace, call, entry, entry_with, list, names, notification, text},
};

/// Waits for what the gateway says of its configuration.
pub(crate) async fn reported(client: &mut RawClient) -> String {
    loop {
        let line = client.stderr_line().await.expect("a line about the configuration");
        if line.contains("configuration") {
            return line;
        }
    }
}

/// How often this process of the server was called.
pub(crate) async fn counted(client: &mut RawClient) -> Value {
    call(client, "kit_counter", json!({})).await["structuredContent"]["count"].take()
}

fn with(servers: &Value) -> Value {
    json!({ "mcpServers": servers, "codeMode": { "python": "monty" } })
}

fn search(queries: &[&str]) -> Value {
    json!({ "queries": queries })
}

/// Says that it can be asked, and waits for the question.
async fn connect_asked(place: &Workplace, arguments: &[&str]) -> Gateway {
    let mut client = place.serve(arguments);
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": { "elicitation": { "form": {} } },
        "clientInfo": { "name": "asked", "version": "1" },
    });
    client.request("initialize", params).await.unwrap();
    client.notify("notifications/initialized", json!({})).await.unwrap();
    client
}

/// The id of the question that the gateway asks.
async fn question(client: &mut RawClient) -> Value {
    loop {
        let line = client.line().await.unwrap();
        let mut message: Value = serde_json::from_str(&line).unwrap();
        if message["method"] == "elicitation/create" {
            return message["id"].take();
        }
        client.asides.push(message);
    }
}

async fn answer(client: &mut RawClient, id: &Value, result: Value) {
    let message = json!({ "jsonrpc": "2.0", "id": id, "result": result });
    client.send_line(&message.to_string()).await.unwrap();
}

#[tokio::test]
async fn servers_come_and_go_and_the_session_stays() {
    let before = json!({ "kit": entry(&kit()), "notes": entry(&notes()) });
    let place = Workplace::new(&with(&before));
    let mut client = place.connect(&[]).await;
    let tools = list(&mut client).await;
    assert!(names(&tools).contains(&"notes_find_notes"), "{tools:?}");
    assert_eq!(counted(&mut client).await, 1);
    let after = json!({ "kit": entry(&kit()), "weather": entry(&weather()) });
    place.rewrite(&with(&after).to_string());
    assert_eq!(reported(&mut client).await, "configuration reloaded: +weather, -notes");
    notification(&mut client, "notifications/tools/list_changed").await;
    // A server that has just been added is waited for.
    call(&mut client, "weather_forecast", json!({ "place": "Bonn" })).await;
    let tools = list(&mut client).await;
    assert!(names(&tools).contains(&"weather_forecast"), "{tools:?}");
    assert!(!names(&tools).contains(&"notes_find_notes"), "{tools:?}");
    let gone = client.call("notes_find_notes", json!({ "words": "x" })).await.unwrap();
    assert!(gone["error"]["message"].as_str().unwrap().contains("there is no tool"), "{gone}");
    assert_eq!(counted(&mut client).await, 2, "an unchanged server is the same process");
}

/// Some editors write in place, and some programs set the time back.
#[tokio::test]
async fn an_edit_of_the_same_length_and_time_is_seen() {
    let policy =
        |word: &str| json!({ "mcpServers": { "kit": entry(&kit()) }, "policy": word }).to_string();
    let place = Workplace::with_text(&policy("allow"));
    let time = fs::metadata(place.config()).unwrap().modified().unwrap();
    let mut client = place.connect(&[]).await;
    assert_eq!(counted(&mut client).await, 1);
    // The gateway has read the file once before it watches it, and once more.
    for (word, said) in [("deny ", "must be"), ("allow", "nothing changed")] {
        fs::write(place.config(), policy(word)).unwrap();
        let file = fs::File::options().write(true).open(place.config()).unwrap();
        file.set_modified(time).unwrap();
        drop(file);
        let line = reported(&mut client).await;
        assert!(line.contains(said), "{line}");
    }
}

#[tokio::test]
async fn a_changed_server_is_started_with_its_new_settings() {
    let server = |value: &str| {
        let server = entry_with(&kit(), json!({ "env": { "GREETING": value } }));
        with(&json!({ "kit": server })).to_string()
    };
    let place = Workplace::with_text(&server("first-secret-value"));
    let mut client = place.connect(&[]).await;
    let seen = async |client: &mut Gateway| {
        let asked = json!({ "names": ["GREETING"] });
        call(client, "kit_environment", asked).await["structuredContent"]["variables"]["GREETING"]
            .take()
    };
    assert_eq!(seen(&mut client).await, "first-secret-value");
    place.rewrite(&server("second-secret-value"));
    // Neither of the two values is said.
    assert_eq!(reported(&mut client).await, "configuration reloaded: ~kit");
    assert_eq!(seen(&mut client).await, "second-secret-value");
    // What was open goes on: the same client, the same session.
    assert!(!list(&mut client).await.is_empty());
}

#[tokio::test]
async fn a_call_under_way_ends_on_the_server_that_it_was_sent_to() {
    let server = |value: &str| {
        with(&json!({ "kit": entry_with(&kit(), json!({ "env": { "GREETING": value } })) }))
            .to_string()
    };
    let place = Workplace::with_text(&server("one"));
    let mut client = connect_asked(&place, &[]).await;
    let params = json!({ "name": "kit_ask_form", "arguments": { "rounds": 1 } });
    let open = client.begin("tools/call", params).await.unwrap();
    let asked = question(&mut client).await;
    place.rewrite(&server("two"));
    assert_eq!(reported(&mut client).await, "configuration reloaded: ~kit");
    assert_eq!(
        counted(&mut client).await,
        1,
        "the new server answers while the old one has a call"
    );
    answer(&mut client, &asked, json!({ "action": "accept", "content": {} })).await;
    let ended = client.answer(open).await.unwrap();
    assert!(ended["result"].get("isError").is_none_or(|it| it == false), "{ended}");
    assert!(ended.get("error").is_none(), "{ended}");
}

#[tokio::test]
async fn a_stricter_policy_holds_for_an_open_session() {
    let config = |policy: Value| {
        json!({ "mcpServers": { "kit": entry(&kit()) }, "policy": policy }).to_string()
    };
    let place = Workplace::with_text(&config(json!("allow")));
    let mut client = place.connect(&[]).await;
    list(&mut client).await;
    call(&mut client, "kit_echo", json!({ "message": "m" })).await;
    call(&mut client, "kit_add", json!({ "a": 1, "b": 2 })).await;
    place.rewrite(&config(json!({ "default": "allow", "rules": [
        { "tool": "kit_echo", "verdict": "deny" },
        { "tool": "kit_add", "when": { "arguments": { "a": { "equals": 1 } } }, "verdict": "deny" },
    ] })));
    assert_eq!(reported(&mut client).await, "configuration reloaded: policy changed");
    notification(&mut client, "notifications/tools/list_changed").await;
    let tools = list(&mut client).await;
    assert!(!names(&tools).contains(&"kit_echo"), "{tools:?}");
    let refused = client.call("kit_echo", json!({ "message": "m" })).await.unwrap();
    assert!(
        refused["error"]["message"].as_str().unwrap().contains("there is no tool"),
        "{refused}"
    );
    let refused = call(&mut client, "kit_add", json!({ "a": 1, "b": 2 })).await;
    assert!(text(&refused).contains("the policy denies it"), "{refused}");
    // And back again.
    place.rewrite(&config(json!("allow")));
    assert_eq!(reported(&mut client).await, "configuration reloaded: policy changed");
    call(&mut client, "kit_echo", json!({ "message": "m" })).await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_call_that_waits_for_a_person_is_judged_by_the_new_policy() {
    // A tool that is denied is gone. One that is denied with these arguments is still there.
    let gone = (json!({}), "there is no tool");
    let if_one = json!({ "arguments": { "a": { "equals": 1 } } });
    let denied = (json!({ "when": if_one }), "the policy denies it");
    let ways = [&[][..], &["--passthrough", "kit"]];
    let cases = ways.into_iter().flat_map(|way| [(way, gone.clone()), (way, denied.clone())]);
    for (arguments, (condition, told_to_model)) in cases {
        let place = Workplace::empty();
        let log = place.path().join("calls.log");
        let server = entry(&kit().with_call_log(&log));
        let config = |policy: Value| {
            json!({ "mcpServers": { "kit": server }, "policy": policy }).to_string()
        };
        place.rewrite(&config(json!("ask-always")));
        let mut client = connect_asked(&place, arguments).await;
        let name = if arguments.is_empty() { "kit_add" } else { "add" };
        let params = json!({ "name": name, "arguments": { "a": 1, "b": 2 } });
        let open = client.begin("tools/call", params).await.unwrap();
        let asked = question(&mut client).await;
        let mut rule = json!({ "tool": "kit_add", "verdict": "deny" });
        rule.as_object_mut().unwrap().extend(condition.as_object().unwrap().clone());
        place.rewrite(&config(json!({ "default": "allow", "rules": [rule] })));
        assert_eq!(reported(&mut client).await, "configuration reloaded: policy changed");
        answer(&mut client, &asked, said("allow once")).await;
        let ended = client.answer(open).await.unwrap();
        assert!(ended.to_string().contains(told_to_model), "{ended}");
        assert!(!log.exists(), "nothing was sent");
    }
}

#[tokio::test]
async fn a_broken_file_changes_nothing_until_it_is_corrected() {
    let place = Workplace::new(&with(&json!({ "kit": entry(&kit()) })));
    let mut client = place.connect(&["--mode", "stable"]).await;
    let found = call(&mut client, "search_tools", search(&["echo"])).await;
    assert!(!text(&found).contains("not in use"), "{found}");
    place.rewrite("{ \"mcpServers\": { \"kit\": { \"env\": { \"K\": \"hunter2\" \"L\": \"");
    let said = reported(&mut client).await;
    assert!(said.starts_with("warning: configuration not reloaded, the old one stays"), "{said}");
    assert!(said.contains("toolgate.json:1:"), "the position: {said}");
    assert!(!said.contains("hunter2"), "{said}");
    let params = json!({ "name": "kit_echo", "arguments": { "message": "still" } });
    let result = call(&mut client, "call_tool", params).await;
    assert!(result.to_string().contains("still"), "{result}");
    let found = call(&mut client, "search_tools", search(&["echo"])).await;
    assert!(text(&found).contains("has changed and is not in use"), "{found}");
    assert!(text(&found).contains("toolgate.json:1:"), "{found}");
    let hint = "correct the file; `toolgate config check` shows the place";
    assert!(text(&found).contains(&format!("Hint: {hint}.")), "{found}");
    assert!(client.stderr_line().await.unwrap().contains(&format!("hint: {hint}")));
    assert!(!text(&found).contains("hunter2"), "{found}");
    // An entry that costs a server is a broken file, too.
    let typo = json!({ "kit": entry(&kit()), "notes": { "comand": "x" } });
    place.rewrite(&with(&typo).to_string());
    let said = reported(&mut client).await;
    assert!(said.contains("not reloaded") && said.contains("`mcpServers.notes.comand`"), "{said}");
    assert!(client.stderr_line().await.unwrap().contains("hint: rename `comand`"));
    let found = call(&mut client, "search_tools", search(&["echo"])).await;
    assert!(text(&found).contains("Hint: rename `comand` to `command`."), "{found}");
    assert!(text(&found).contains("toolgate.json:1:"), "{found}");
    let fixed = json!({ "kit": entry(&kit()), "notes": entry(&notes()) });
    place.rewrite(&with(&fixed).to_string());
    assert_eq!(reported(&mut client).await, "configuration reloaded: +notes");
    let found = call(&mut client, "search_tools", search(&["look for notes"])).await;
    assert!(text(&found).contains("notes_find_notes"), "{found}");
    assert!(!text(&found).contains("not in use"), "{found}");
}

#[tokio::test]
async fn a_file_that_is_gone_changes_nothing_until_it_is_back() {
    let place = Workplace::new(&with(&json!({ "kit": entry(&kit()) })));
    let mut client = place.connect(&[]).await;
    call(&mut client, "kit_counter", json!({})).await;
    fs::remove_file(place.config()).unwrap();
    let said = reported(&mut client).await;
    assert!(said.contains("not reloaded") && said.contains("cannot read"), "{said}");
    assert_eq!(counted(&mut client).await, 2);
    let config = with(&json!({ "kit": entry(&kit()), "weather": entry(&weather()) }));
    place.rewrite(&config.to_string());
    assert_eq!(reported(&mut client).await, "configuration reloaded: +weather");
    assert_eq!(counted(&mut client).await, 3);
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_is_replaced_or_is_a_link_is_followed() {
    use std::os::unix::fs::symlink;

    let config = |servers: Value| with(&servers).to_string();
    let place = Workplace::empty();
    let at = |name: &str| place.path().join(name);
    fs::write(at("first.json"), config(json!({ "kit": entry(&kit()) }))).unwrap();
    symlink("first.json", place.config()).unwrap();
    let mut client = place.connect(&[]).await;
    call(&mut client, "kit_counter", json!({})).await;
    // As an editor does it: another file, renamed over the old one. Twice, because the gateway reads
    // the file once in any case after it has started.
    let one = config(json!({ "kit": entry(&kit()) }));
    let both = config(json!({ "kit": entry(&kit()), "notes": entry(&notes()) }));
    for (text, change) in [(&both, "+notes"), (&one, "-notes")] {
        fs::write(at("first.json.new"), text).unwrap();
        fs::rename(at("first.json.new"), at("first.json")).unwrap();
        assert_eq!(reported(&mut client).await, format!("configuration reloaded: {change}"));
    }
    // As a mounted volume does it: the link points elsewhere.
    fs::write(at("second.json"), both).unwrap();
    symlink("second.json", at("link")).unwrap();
    fs::rename(at("link"), place.config()).unwrap();
    assert_eq!(reported(&mut client).await, "configuration reloaded: +notes");
    assert_eq!(counted(&mut client).await, 2);
}

#[tokio::test]
async fn what_needs_a_restart_is_said() {
    let place = Workplace::new(&with(&json!({ "kit": entry(&kit()) })));
    let mut client = place.connect(&[]).await;
    place.rewrite(
        &json!({
            "mcpServers": { "kit": entry(&kit()) },
            "codeMode": { "python": "monty" },
            "audit": false,
            "toolSearch": { "maxResults": 3 },
            "namespaces": { "few": { "servers": ["kit"] } },
        })
        .to_string(),
    );
    assert_eq!(
        reported(&mut client).await,
        "configuration reloaded: namespaces changed; toolSearch changed; needs a restart: audit"
    );
}

#[tokio::test]
async fn a_passed_through_server_gets_the_new_policy() {
    let config = |policy: Value| {
        json!({ "mcpServers": { "kit": entry(&kit()) }, "policy": policy }).to_string()
    };
    let place = Workplace::with_text(&config(json!("allow")));
    let mut client = place.connect(&["--passthrough", "kit"]).await;
    assert!(names(&list(&mut client).await).contains(&"add"));
    call(&mut client, "add", json!({ "a": 1, "b": 2 })).await;
    place.rewrite(&config(json!({ "rules": [{ "tool": "kit_add", "verdict": "deny" }] })));
    assert_eq!(reported(&mut client).await, "configuration reloaded: policy changed");
    notification(&mut client, "notifications/tools/list_changed").await;
    assert!(!names(&list(&mut client).await).contains(&"add"));
    let refused = client.call("add", json!({ "a": 1, "b": 2 })).await.unwrap();
    assert_eq!(refused["error"]["message"], "there is no tool `add`", "{refused}");
}

#[tokio::test]
async fn new_sessions_of_a_passed_through_server_get_its_new_settings() {
    let config = |value: &str| {
        let server = entry_with(&kit(), json!({ "env": { "GREETING": value } }));
        with(&json!({ "kit": server })).to_string()
    };
    let place = Workplace::with_text(&config("one"));
    let mut gateway = place.serve_http(&["--passthrough", "kit"]).await;
    let seen = async |client: &crate::http::HttpClient| {
        let mut result = client.call("environment", json!({ "names": ["GREETING"] })).await;
        result["structuredContent"]["variables"]["GREETING"].take()
    };
    let before = gateway.client();
    assert_eq!(seen(&before).await, "one");
    place.rewrite(&config("two"));
    assert_eq!(
        gateway.says("configuration").await,
        "configuration reloaded: kit changed, for new sessions"
    );
    // A client of the newer protocol has no session: each of its requests is a new one.
    assert_eq!(seen(&before).await, "two");
    gateway.stop().await;
}

#[tokio::test]
async fn a_limit_of_a_passed_through_server_counts_on_after_a_reload() {
    let config = |policy: &str| {
        json!({
            "mcpServers": { "kit": entry(&kit()) }, "policy": policy,
            "limits": [{ "tool": "kit_add", "perMinute": 2 }],
        })
        .to_string()
    };
    let place = Workplace::with_text(&config("allow"));
    let mut client = place.connect(&["--passthrough", "kit"]).await;
    let sum = json!({ "a": 1, "b": 2 });
    call(&mut client, "add", sum.clone()).await;
    place.rewrite(&config("ask-destructive"));
    assert_eq!(reported(&mut client).await, "configuration reloaded: policy changed");
    call(&mut client, "add", sum.clone()).await;
    let refused = client.call("add", sum).await.unwrap().to_string();
    assert!(refused.contains("2 calls a minute"), "{refused}");
}

#[tokio::test]
async fn a_namespace_that_is_new_is_served_without_a_restart() {
    let config = |namespaces: Value| {
        json!({
            "mcpServers": { "kit": entry(&kit()), "notes": entry(&notes()) },
            "limits": [{ "tool": "kit_add", "perMinute": 2 }],
            "namespaces": namespaces,
        })
        .to_string()
    };
    let few = json!({ "servers": ["kit"], "mode": "direct" });
    let place = Workplace::with_text(&config(json!({ "few": few })));
    let mut gateway = place.serve_http(&[]).await;
    let sum = json!({ "a": 1, "b": 2 });
    gateway.client_of("few").call("kit_add", sum.clone()).await;
    place.rewrite(&config(json!({ "few": few, "more": few })));
    assert_eq!(gateway.says("configuration").await, "configuration reloaded: namespaces changed");
    let address = gateway.says("namespace more").await;
    assert!(address.ends_with("/mcp/more"), "{address}");
    let more = gateway.client_of("more");
    let tools = more.list().await;
    assert!(names(&tools).contains(&"kit_add") && !names(&tools).contains(&"notes_find_notes"));
    // A limit of the file holds for all namespaces together.
    more.call("kit_add", sum.clone()).await;
    let third = more.call("kit_add", sum).await.to_string();
    assert!(third.contains("2 calls a minute"), "{third}");
    // It goes, and comes back.
    place.rewrite(&config(json!({ "few": few })));
    gateway.says("configuration reloaded: namespaces changed").await;
    assert!(!names(&gateway.client_of("more").list().await).contains(&"kit_echo"));
    place.rewrite(&config(json!({ "few": few, "more": few })));
    gateway.says("configuration reloaded: namespaces changed").await;
    gateway.client_of("more").call("kit_echo", json!({ "message": "back" })).await;
    gateway.stop().await;
}

#[tokio::test]
async fn every_namespace_of_a_gateway_over_http_is_reloaded() {
    let config = |verdict: &str, servers: &[&str]| {
        json!({
            "mcpServers": { "kit": entry(&kit()), "notes": entry(&notes()) },
            "policy": { "default": "allow", "rules": [{ "tool": "kit_add", "verdict": verdict }] },
            "namespaces": { "few": { "servers": servers, "mode": "direct" } },
            "toolSearch": { "enabled": false },
        })
        .to_string()
    };
    let place = Workplace::with_text(&config("allow", &["kit"]));
    let mut gateway = place.serve_http(&[]).await;
    let clients = [gateway.client(), gateway.client_of("few")];
    for client in &clients {
        client.call("kit_add", json!({ "a": 1, "b": 2 })).await;
    }
    place.rewrite(&config("deny", &["kit", "notes"]));
    assert_eq!(
        gateway.says("configuration").await,
        "configuration reloaded: policy changed; namespaces changed"
    );
    let few = gateway.client_of("few").list().await;
    assert!(names(&few).contains(&"notes_find_notes"), "{few:?}");
    for client in &clients {
        let arguments = json!({ "name": "kit_add", "arguments": { "a": 1, "b": 2 } });
        let refused = client.refused("tools/call", arguments).await;
        assert!(refused["message"].as_str().unwrap().contains("there is no tool"), "{refused}");
    }
    gateway.stop().await;
}
