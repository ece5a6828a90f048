//! What people type every day.

use std::{fs, path::Path};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use toolgate_testkit::{Faults, Fixture, within};

use crate::{
    fixtures::{kit, notes, weather},
    support::{Workplace, entry, served, until},
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
    fs::write(place.path().join("a.ts"), "return typeof notes_find_notes").unwrap();
    let ran = place.run(&["run", "a.ts"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "function\n"), "{ran:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn the_command_of_a_value_runs_when_its_server_starts() {
    let folder = tempfile::tempdir().unwrap();
    let (runs, got) = (folder.path().join("runs"), folder.path().join("got"));
    let entry = notes().entry().unwrap();
    let script = format!("echo \"$KEY\" > '{}'; exec \"$0\" \"$@\"", got.display());
    let mut args = vec!["-c".to_owned(), script, entry.command];
    args.extend(entry.args);
    let line = format!("echo run >> '{}'; echo hunter2", runs.display());
    let env = json!({ "KEY": format!("${{command:{line}}}") });
    let server = json!({ "command": "sh", "args": args, "env": env });
    let broken = json!({ "command": "true", "env": { "KEY": "${command:exit 3}" } });
    let place = Workplace::new(&json!({ "mcpServers": { "notes": server, "broken": broken } }));
    let found = place.run(&["search", "find a note", "--server", "notes"]).await;
    assert!(found.stdout.contains("notes_find_notes"), "{found:?}");
    assert_eq!(fs::read_to_string(&got).unwrap(), "hunter2\n");
    assert_eq!(fs::read_to_string(&runs).unwrap(), "run\n", "{found:?}");

    for arguments in [&["search", "find a note", "--server", "notes"][..], &["config", "check"]] {
        let outcome = place.run(arguments).await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert_eq!(fs::read_to_string(&runs).unwrap(), "run\n", "{arguments:?}");
    }
    let status = place.run(&["status", "--json"]).await;
    assert!(status.stdout.contains("${command:exit 3} failed with exit code 3"), "{status:?}");
    assert_eq!(fs::read_to_string(&runs).unwrap(), "run\nrun\n", "it was started again");
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
    for command in [
        &["policy"][..],
        &["definitions"],
        &["skills"],
        &["engines"],
        &["secret", "list"],
        &["runs", "--namespace", "team"],
    ] {
        let outcome = place.run(&[command, &["missing.json"]].concat()).await;
        assert_eq!(outcome.code, Some(2), "{command:?}: {outcome:?}");
        assert!(outcome.stderr.contains("cannot read missing.json"), "{command:?}: {outcome:?}");
    }
    let usage = place.run(&["usage", "other.json", "--server", "weather"]).await;
    assert_eq!(usage.code, Some(0), "{usage:?}");
    let service = place.run(&["service", "install", "other.json", "--dry-run"]).await;
    assert!(service.stdout.contains("other.json"), "{service:?}");
    let misspelt = place.run(&["usage", "erse"]).await;
    assert_eq!(misspelt.code, Some(2), "{misspelt:?}");
    assert!(misspelt.stderr.contains("neither such a file nor such a command"), "{misspelt:?}");
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

#[tokio::test]
async fn a_search_answers_from_what_is_known_and_names_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let place = with_silent(&folder.path().join("starts"));
    // Nothing is known yet: the server that answers is waited for, and the other one only for a short time.
    let first = place.run(&["search", "find a note"]).await;
    assert_eq!(first.code, Some(0), "{first:?}");
    assert!(first.stdout.contains("notes_find_notes"), "{first:?}");
    assert_eq!(first.stderr, "not searched: silent (not answered yet)\n");
    // It is not waited for again.
    for words in ["find a note", "qwxyz"] {
        let next = place.run(&["search", words]).await;
        let told = "not searched: silent (it did not answer the last time; `toolgate status` waits for it)\n";
        assert_eq!(next.stderr, told, "{next:?}");
    }
    // Nor is it by those who name something that it cannot have.
    for arguments in [&["definitions", "approve", "nope"][..], &["definitions", "diff", "notes_x"]]
    {
        let refused = place.run(arguments).await;
        assert_eq!(refused.code, Some(2), "{arguments:?}: {refused:?}");
        assert!(refused.stderr.contains("is held back"), "{arguments:?}: {refused:?}");
    }
}

#[tokio::test]
async fn the_first_search_waits_for_a_slow_server() {
    // Longer than a search waits once it knows some tools.
    let slow = notes().with_faults(Faults { start_delay_ms: 4_000, ..Faults::default() });
    let place = Workplace::new(&json!({ "mcpServers": { "notes": entry(&slow) } }));
    let first = place.run(&["search", "find a note"]).await;
    assert!(first.stdout.contains("notes_find_notes"), "{first:?}");
    assert_eq!(first.stderr, "");
}

#[tokio::test]
async fn the_predicted_mode_is_that_of_a_session() {
    let modes = async |other: Value| {
        let servers = json!({ "notes": entry(&notes()), "other": other });
        let place = Workplace::new(&json!({ "mcpServers": servers }));
        let status = place.run(&["status", "--json"]).await.json();
        let tokens = place.run(&["tokens", "--json"]).await.json();
        let mut client = place.connect(&[]).await;
        let is_direct = !served(&mut client).await.is_empty();
        let predicted = [&status["exposure"][0]["mode"], &tokens["exposure"]];
        assert_eq!(predicted, [if is_direct { "direct" } else { "stable" }; 2], "{status}");
        assert_eq!(status["reason"], tokens["reason"]);
        (is_direct, status["reason"].as_str().unwrap().to_owned())
    };
    // Longer than a session waits for it.
    let silent = json!({ "command": "sleep", "args": ["900"], "connectTimeoutSeconds": 5 });
    let (is_direct, reason) = modes(silent).await;
    assert!(!is_direct);
    assert_eq!(
        reason,
        "the tools of other are not known yet, and what is unknown must not flood a context"
    );
    let (is_direct, reason) = modes(json!({ "command": "false" })).await;
    assert!(is_direct, "one that fails at once has no tools");
    assert!(reason.contains("fit into the 10,000 allowed"), "{reason}");
}

#[tokio::test]
async fn a_threshold_that_decides_is_named() {
    let servers = json!({ "notes": entry(&notes()) });
    let search = json!({ "toolThreshold": 4 });
    let place = Workplace::new(&json!({ "mcpServers": servers, "toolSearch": search }));
    let told = place.run(&["tokens", "--json"]).await.json();
    assert_eq!(told["modes"]["recommended"], "stable", "{told}");
    assert_eq!(told["modes"]["why"], "there are 4 tools, and toolThreshold is 4");
    let cheaper = told["modes"]["cheaper"].to_string();
    assert!(cheaper.contains("Direct costs ") || cheaper.contains("Code costs "), "{cheaper}");
    assert!(cheaper.contains("Without toolgate a session costs "), "{cheaper}");
}

#[tokio::test]
async fn a_server_that_prints_something_else_is_not_told_to_take_longer() {
    let garbage = json!({
        "command": "sh", "args": ["-c", "echo hello; exec sleep 900"], "connectTimeoutSeconds": 1,
    });
    let place = Workplace::new(&json!({ "mcpServers": { "garbage": garbage } }));
    let row = place.run(&["status", "--json"]).await.json()["servers"][0].clone();
    assert!(row["reason"].as_str().unwrap().contains("what is not MCP: `hello`"), "{row}");
    let action = row["action"].as_str().unwrap();
    assert!(action.starts_with("check that its `command` and `args` start an MCP server"), "{row}");
    assert!(!action.contains("connectTimeoutSeconds"), "{row}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_service_that_cannot_be_installed_leaves_nothing_and_a_gateway_can_be_shared() {
    use std::os::unix::fs::PermissionsExt as _;

    let place = Workplace::new(&json!({ "mcpServers": { "notes": entry(&notes()) } }));
    let bin = place.path().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("systemctl"), "#!/bin/sh\necho 'no bus' >&2; exit 1\n").unwrap();
    fs::set_permissions(bin.join("systemctl"), fs::Permissions::from_mode(0o755)).unwrap();
    let failed = place.run(&["service", "install"]).await;
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(failed.stderr.contains("nothing was installed"), "{failed:?}");
    assert!(
        failed.stderr.contains("`toolgate serve --http 127.0.0.1:8808 --config "),
        "{failed:?}"
    );
    assert!(!place.path().join(".config").exists(), "{failed:?}");
    // What was there stays as it was.
    let unit = place.path().join(".config/systemd/user/toolgate.service");
    fs::create_dir_all(unit.parent().unwrap()).unwrap();
    fs::write(&unit, "mine").unwrap();
    assert_eq!(place.run(&["service", "install"]).await.code, Some(1));
    assert_eq!(fs::read_to_string(&unit).unwrap(), "mine");

    let cursor = place.path().join(".cursor/mcp.json");
    fs::create_dir_all(cursor.parent().unwrap()).unwrap();
    fs::write(&cursor, json!({ "mcpServers": {} }).to_string()).unwrap();
    let share = ["setup", "--yes", "--no-probe", "--client", "cursor", "--transport", "http"];
    let refused = place.run(&share).await;
    assert!(refused.stderr.contains("there is no gateway that clients could share"), "{refused:?}");
    let gateway = place.serve_http(&[]).await;
    until("its address", async || {
        let live = place.run(&["status", "--live", "--json"]).await.json();
        live[0]["address"].is_string().then_some(())
    })
    .await;
    let shared = place.run(&share).await;
    assert_eq!(shared.code, Some(0), "{shared:?}");
    let written: Value = serde_json::from_str(&fs::read_to_string(&cursor).unwrap()).unwrap();
    assert_eq!(written["mcpServers"]["toolgate"]["url"], gateway.url(), "{shared:?}");
    gateway.stop().await;
}
