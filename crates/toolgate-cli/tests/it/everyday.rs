//! What people type every day.

use std::{fs, path::Path};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use toolgate_testkit::{Fixture, within};

use crate::{
    fixtures::{kit, notes, weather},
    support::{Workplace, entry},
};

/// A server that notes each of its starts.
fn counted(fixture: &Fixture, starts: &Path) -> Value {
    let entry = fixture.entry().unwrap();
    let script = format!("echo started >> '{}'; exec \"$0\" \"$@\"", starts.display());
    let mut args = vec!["-c".to_owned(), script, entry.command];
    args.extend(entry.args);
    json!({ "command": "sh", "args": args })
}

/// One good server, and one that never answers. Who waits for it waits longer than a test.
fn with_silent(starts: &Path) -> Workplace {
    let silent = json!({ "command": "sleep", "args": ["900"], "connectTimeoutSeconds": 900 });
    let servers = json!({ "notes": counted(&notes(), starts), "silent": silent });
    Workplace::new(&json!({ "mcpServers": servers }))
}

#[tokio::test]
async fn no_command_waits_for_a_server_that_it_does_not_need() {
    let folder = tempfile::tempdir().unwrap();
    let starts = folder.path().join("starts");
    let place = with_silent(&starts);
    let found = place.run(&["search", "find a note", "--server", "notes"]).await;
    assert!(found.stdout.contains("notes_find_notes"), "{found:?}");
    let before = fs::read_to_string(&starts).unwrap();

    let found = place.run(&["inspect", "notes_find_notes"]).await;
    assert_eq!(found.code, Some(0), "{found:?}");
    let wrong = place.run(&["call", "notes_find_notes", "--arg", "colour=red"]).await;
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    assert!(wrong.stderr.contains("words"), "{wrong:?}");
    let misspelt = place.run(&["inspect", "nots_find_notes"]).await;
    assert_eq!(misspelt.code, Some(1), "{misspelt:?}");
    assert!(misspelt.stdout.contains("nearest: notes_find_notes"), "{misspelt:?}");
    assert_eq!(fs::read_to_string(&starts).unwrap(), before, "the cache is enough");

    let held = place.run(&["definitions"]).await;
    assert_eq!(held.code, Some(0), "{held:?}");
    assert!(held.stderr.contains("have not answered yet: silent"), "{held:?}");
    let called = place.run(&["call", "notes_find_notes", "--arg", "words=x"]).await;
    assert_ne!(called.code, Some(2), "{called:?}");
}

#[tokio::test]
async fn a_server_that_does_not_exist_is_an_error() {
    let place = Workplace::new(&json!({ "mcpServers": { "notes": entry(&notes()) } }));
    for arguments in [
        &["search", "x", "--server", "notse"][..],
        &["policy", "suggest", "--server", "notse"],
        &["audit", "--server", "notse"],
        &["usage", "--server", "notse"],
        &["logs", "notse"],
    ] {
        let outcome = place.run(arguments).await;
        assert_eq!(outcome.code, Some(2), "{arguments:?}: {outcome:?}");
        assert!(
            outcome.stderr.contains("there is no server `notse`"),
            "{arguments:?}: {outcome:?}"
        );
        assert!(outcome.stderr.contains("did you mean notes?"), "{arguments:?}: {outcome:?}");
    }
}

#[tokio::test]
async fn a_file_needs_no_option() {
    let place = Workplace::new(&json!({ "mcpServers": { "notes": entry(&notes()) } }));
    let other = place.path().join("other.json");
    let servers = json!({ "mcpServers": { "weather": entry(&weather()) } });
    fs::write(&other, servers.to_string()).unwrap();
    for command in [&["status"][..], &["tokens"], &["doctor"], &["config", "check"]] {
        let outcome = place.run(&[command, &["other.json"]].concat()).await;
        assert_eq!(outcome.code, Some(0), "{command:?}: {outcome:?}");
        assert!(!outcome.stdout.contains("notes"), "{command:?}: {outcome:?}");
        let names = outcome.stdout.contains("weather") || outcome.stdout.contains("other.json");
        assert!(names, "{command:?}: {outcome:?}");
    }
}

#[tokio::test]
async fn the_last_lines_of_the_audit_log() {
    let place = Workplace::new(&json!({ "mcpServers": { "kit": entry(&kit()) } }));
    for text in ["one", "two", "three"] {
        let message = format!("message={text}");
        let called = place.run(&["call", "kit_echo", "--arg", &message]).await;
        assert_eq!(called.code, Some(0), "{called:?}");
    }
    let all = place.run(&["audit", "--tool", "kit_echo"]).await.stdout;
    let last = place.run(&["audit", "--tool", "kit_echo", "-n", "2"]).await.stdout;
    let all: Vec<&str> = all.lines().collect();
    assert_eq!(last.lines().collect::<Vec<_>>(), all[all.len() - 2..], "{all:?}");
}

#[tokio::test]
async fn logs_and_states_are_followed() {
    let place = Workplace::new(&json!({ "mcpServers": { "notes": entry(&notes()) } }));
    place.run(&["search", "note"]).await;
    let mut child = place.command(&["logs", "notes", "--follow"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let connected = async |lines: &mut tokio::io::Lines<_>| loop {
        let line: String = lines.next_line().await.unwrap().expect("a line");
        if line.contains("connected with protocol version") {
            return;
        }
    };
    within("the lines so far", connected(&mut lines)).await;
    place.run(&["status"]).await;
    within("a new line", connected(&mut lines)).await;
    child.kill().await.unwrap();

    let mut child = place.command(&["status", "--watch"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..2 {
        let row = async {
            loop {
                let line = lines.next_line().await.unwrap().expect("a line");
                if line.starts_with(" notes") && line.contains("ready") {
                    return;
                }
            }
        };
        within("the state", row).await;
    }
    child.kill().await.unwrap();
}

#[tokio::test]
async fn doctor_says_what_is_wrong_and_what_to_do() {
    let place = Workplace::new(&json!({ "mcpServers": { "notes": entry(&notes()) } }));
    let well = place.run(&["doctor", "--json"]).await;
    assert_eq!(well.code, Some(0), "{well:?}");
    let told = well.json();
    let subjects: Vec<&str> = told["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| check["subject"].as_str().unwrap())
        .collect();
    for subject in ["toolgate", "configuration", "state folder", "server notes", "scripts"] {
        assert!(subjects.contains(&subject), "{subject}: {subjects:?}");
    }
    let bad = json!({ "mcpServers": {
        "notes": entry(&notes()), "gone": { "command": "no-such-command-anywhere --now" }, "empty": {},
    } });
    place.rewrite(&bad.to_string());
    let outcome = place.run(&["doctor"]).await;
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    let lines = outcome.stdout.replace('\n', " ");
    assert!(lines.contains("error    server gone: "), "{lines}");
    assert!(lines.contains("fix: split into args"), "{lines}");
    assert!(lines.contains("ok       server notes: ready, 4 tools"), "{lines}");
    assert!(lines.contains("has neither a `command` nor a `url`"), "{lines}");
    let offline = place.run(&["doctor", "--offline"]).await;
    assert!(offline.stdout.contains("server notes: runs "), "{offline:?}");

    // The files of clients.
    std::fs::create_dir_all(place.path().join(".cursor")).unwrap();
    let cursor = place.path().join(".cursor/mcp.json");
    let client = async |servers: Value| {
        std::fs::write(&cursor, json!({ "mcpServers": servers }).to_string()).unwrap();
        place.run(&["doctor", "--offline"]).await.stdout.replace('\n', " ")
    };
    let lines = client(json!({ "a": { "command": "a" } })).await;
    assert!(lines.contains("has 1 servers, without toolgate"), "{lines}");
    assert!(lines.contains("fix: toolgate setup --client cursor"), "{lines}");
    let serve = json!(["serve", "--stdio"]);
    let lines = client(json!({ "toolgate": { "command": "/gone/toolgate", "args": serve } })).await;
    assert!(lines.contains("starts `/gone/toolgate`, which does not exist"), "{lines}");
    let lines = client(json!({ "toolgate": { "command": "toolgate", "args": serve } })).await;
    assert!(lines.contains("mcp.json uses toolgate"), "{lines}");
    place.rewrite(&json!({ "mcpServers": { "gone": { "command": "nowhere" } } }).to_string());
    let outcome = place.run(&["doctor"]).await;
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(outcome.stdout.contains("servers: none of them can be used"), "{outcome:?}");
    let outcome = place.run(&["usage", "erase", "--server", "nope"]).await;
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    place.rewrite("{,}");
    assert_eq!(place.run(&["doctor"]).await.code, Some(2));
}

#[tokio::test]
async fn colours_are_for_terminals_that_want_them() {
    let place = Workplace::new(&json!({ "mcpServers": { "notes": entry(&notes()) } }));
    let run = async |variables: &[(&str, &str)]| {
        let mut command = place.command(&["doctor", "--offline"]);
        command.env_remove("NO_COLOR").envs(variables.iter().copied());
        let output = within("the end", command.output()).await.unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(run(&[("CLICOLOR_FORCE", "1")]).await.contains("\u{1b}[32mok"));
    for variables in [&[][..], &[("CLICOLOR", "0")], &[("NO_COLOR", "1")]] {
        assert!(!run(variables).await.contains('\u{1b}'), "{variables:?}");
    }
}

/// The mode of a session with these settings, and its reason.
async fn mode_of(search: Value, arguments: &[&str]) -> (String, String) {
    let servers = json!({ "notes": entry(&notes()) });
    let place = Workplace::new(&json!({ "mcpServers": servers, "toolSearch": search }));
    let outcome = place.run(&[&["status", "--json"], arguments].concat()).await;
    let status = outcome.json();
    (status["exposure"][0]["mode"].as_str().unwrap().to_owned(), outcome.stderr)
}

#[tokio::test]
async fn one_set_of_words_for_modes() {
    for (word, mode) in [
        ("auto", "direct"),
        ("direct", "direct"),
        ("stable", "stable"),
        ("dynamic", "dynamic"),
        ("code", "code"),
    ] {
        assert_eq!(mode_of(json!({ "enabled": word }), &[]).await, (mode.into(), String::new()));
        assert_eq!(mode_of(json!({}), &["--mode", word]).await, (mode.into(), String::new()));
    }
    for (search, arguments) in
        [(json!({ "enabled": "deferred" }), &[][..]), (json!({}), &["--mode", "deferred"])]
    {
        let (mode, said) = mode_of(search, arguments).await;
        assert_eq!(mode, "stable");
        assert!(said.contains("hint: write `stable`, or `dynamic`"), "{said}");
    }
}

#[tokio::test]
async fn thresholds_mean_what_they_mean_elsewhere() {
    let modes = [
        (json!({ "enabled": true }), "stable"),
        (json!({ "enabled": true, "tokenThreshold": 100_000 }), "direct"),
        (json!({ "enabled": true, "tokenThreshold": 100 }), "stable"),
        (json!({ "enabled": true, "toolThreshold": 5 }), "direct"),
        (json!({ "enabled": true, "toolThreshold": 4 }), "stable"),
        (json!({ "enabled": false, "toolThreshold": 1 }), "direct"),
    ];
    for (search, mode) in modes {
        assert_eq!(mode_of(search.clone(), &[]).await.0, mode, "{search}");
    }
}

#[tokio::test]
async fn one_key_makes_servers_lazy() {
    let servers = json!({
        "notes": entry(&notes()), "weather": entry(&weather()), "kit": entry(&kit()),
    });
    let mut config = json!({ "mcpServers": servers, "lazyExcept": ["notes", "nobody"] });
    config["mcpServers"]["kit"]["lazy"] = json!(false);
    let place = Workplace::new(&config);
    let outcome = place.run(&["status", "--json"]).await;
    assert!(outcome.stderr.contains("`lazyExcept[1]` names no server"), "{outcome:?}");
    let status = outcome.json();
    let rows: Vec<_> = status["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (&row["lazy"], &row["state"]))
        .collect();
    let (lazy, not) = (json!(true), json!(false));
    let (idle, ready) = (json!("idle"), json!("ready"));
    assert_eq!(rows, [(&not, &ready), (&lazy, &idle), (&not, &ready)]);
}

#[tokio::test]
async fn a_gateway_says_that_it_lives() {
    let place = Workplace::new(&json!({ "mcpServers": { "notes": entry(&notes()) } }));
    let gateway = place.serve_http(&[]).await;
    let url = gateway.url().replace("/mcp", "/health");
    let client = toolgate_http::client_builder().build().unwrap();
    let answer = client.get(&url).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.json::<Value>().await.unwrap(), json!({ "status": "ok" }));
    assert_eq!(client.post(&url).send().await.unwrap().status(), 405);
    let strange = client.get(&url).header("host", "evil.example").send().await.unwrap();
    assert_eq!(strange.status(), 403);
    gateway.stop().await;
}
