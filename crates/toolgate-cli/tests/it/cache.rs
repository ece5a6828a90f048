//! The cache between starts, the configuration of servers, and unusual lists.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::fs::MetadataExt as _,
    path::PathBuf,
};

use serde_json::{Value, json};
use toolgate_testkit::{Builtin, Cursors, Faults, Fixture, FixtureEra, Pages, StartupExit};

use crate::{
    fixtures::{kit, notes, weather},
    support::{Workplace, call, call_through, entry, entry_with, names, served},
};

/// Every file under a folder.
fn files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

#[tokio::test]
async fn one_command_fills_the_cache_for_the_next() {
    let workplace = Workplace::deferred(&json!({ "notes": entry(&notes()) }));
    assert_eq!(workplace.run(&["search", "teal"]).await.code, Some(0));
    assert!(!files(&workplace.path().join("state/cache")).is_empty());
}

#[tokio::test]
async fn a_command_that_the_cache_answers_starts_no_server() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fixture");
    let server = notes().entry_through_file(&file).unwrap().to_json();
    let workplace = Workplace::deferred(&json!({ "notes": server }));
    let ask = async |arguments: &[&str]| {
        let outcome = workplace.run(arguments).await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        outcome.stdout
    };
    let questions = [&["search", "teal"][..], &["inspect", "notes_create_note"]];
    let mut first = Vec::new();
    for question in questions {
        first.push(ask(question).await);
    }
    let log = ask(&["logs", "notes"]).await;
    let exit = StartupExit { code: 1, message: "Error: gone".to_owned() };
    let gone = Faults { exit_at_start: Some(exit), ..Faults::default() };
    notes().with_faults(gone).entry_through_file(&file).unwrap();
    for (question, answer) in questions.into_iter().zip(first) {
        assert_eq!(ask(question).await, answer);
    }
    assert_eq!(ask(&["logs", "notes"]).await, log, "nothing was started");
    let outcome = workplace.run(&["call", "notes_find_notes", "-a", "words=x"]).await;
    assert!(outcome.stderr.contains("Error: gone"), "but a call needs it: {outcome:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_user_can_read_the_state_folder() {
    use std::os::unix::fs::PermissionsExt as _;
    let workplace = Workplace::deferred(&json!({ "notes": entry(&notes()) }));
    workplace.run(&["search", "teal"]).await;
    for file in files(&workplace.path().join("state")) {
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}: {mode:o}", file.display());
    }
}

#[tokio::test]
async fn a_broken_cache_is_ignored() {
    let workplace = Workplace::deferred(&json!({ "notes": entry(&notes()) }));
    workplace.run(&["search", "teal"]).await;
    let halves = |text: &[u8]| text[..text.len() / 2].to_vec();
    for damage in [|_: &[u8]| Vec::new(), |_: &[u8]| b"\xff\x00{{{".to_vec(), halves] {
        // Damages the definitions, the entry of the server, then both.
        for damaged in [&["definitions"][..], &["servers"], &["definitions", "servers"]] {
            for folder in damaged {
                for file in files(&workplace.path().join("state/cache").join(folder)) {
                    let text = std::fs::read(&file).unwrap();
                    std::fs::write(&file, damage(&text)).unwrap();
                }
            }
            let outcome = workplace.run(&["search", "teal", "--json"]).await;
            assert_eq!(outcome.json()["found"], 1, "{damaged:?}: {outcome:?}");
            let outcome = workplace.run(&["inspect", "notes_create_note", "--json"]).await;
            assert_eq!(outcome.json()[0]["definition"], notes().tools[0], "{damaged:?}");
        }
    }
}

/// The content of every file of the stored index, by name.
fn stored_index(workplace: &Workplace) -> BTreeMap<PathBuf, Vec<u8>> {
    let found = files(&workplace.path().join("state/cache/index")).into_iter();
    found.map(|file| (file.clone(), std::fs::read(file).unwrap())).collect()
}

#[tokio::test]
async fn a_damaged_index_is_made_again_and_answers_the_same() {
    let servers = json!({ "notes": entry(&notes()), "weather": entry(&weather()) });
    let workplace = Workplace::deferred(&servers);
    let search = async || {
        let outcome =
            workplace.run(&["search", "rain tomorrow, and a note about it", "--json"]).await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        outcome.json()
    };
    let without = search().await;
    let whole = stored_index(&workplace);
    assert_eq!(whole.len(), 2, "one file a server");
    assert_eq!(search().await, without, "by the stored index");
    let others: Vec<Vec<u8>> = whole.values().rev().cloned().collect();
    let changed = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        bytes
    };
    for damage in ["cut", "empty", "changed", "of another server"] {
        for ((file, bytes), other) in whole.iter().zip(&others) {
            let damaged = match damage {
                "cut" => bytes[..bytes.len() / 2].to_vec(),
                "empty" => Vec::new(),
                "changed" => changed(bytes),
                _ => other.clone(),
            };
            std::fs::write(file, damaged).unwrap();
        }
        assert_eq!(search().await, without, "{damage}");
        assert_eq!(stored_index(&workplace), whole, "{damage}: it was written again");
    }
    std::fs::remove_dir_all(workplace.path().join("state/cache/index")).unwrap();
    assert_eq!(search().await, without, "gone");
    assert_eq!(stored_index(&workplace), whole);
}

#[tokio::test]
async fn only_a_server_that_changed_is_indexed_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fixture");
    let server = notes().entry_through_file(&file).unwrap().to_json();
    let servers = json!({ "notes": server, "weather": entry(&weather()) });
    let workplace = Workplace::deferred(&servers);
    // A file that is written again has another number, whatever its content is.
    let numbers = || -> BTreeSet<(PathBuf, u64)> {
        let found = stored_index(&workplace).into_keys();
        found.map(|file| (file.clone(), file.metadata().unwrap().ino())).collect()
    };
    workplace.run(&["search", "teal"]).await;
    let before = numbers();
    assert_eq!(before.len(), 2);
    let mut tools = notes().tools;
    tools[0]["description"] = json!("Waters the ficus.");
    let changed = Fixture { tools, ..notes() };
    changed.entry_through_file(&file).unwrap();
    let outcome = workplace.run(&["status"]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let outcome = workplace.run(&["search", "ficus", "--json"]).await;
    assert_eq!(outcome.json()["found"], 1, "{outcome:?}");
    let after = numbers();
    assert_eq!(after.difference(&before).count(), 1, "{before:?} {after:?}");
    assert_eq!(before.difference(&after).count(), 0, "{before:?} {after:?}");
}

#[tokio::test]
async fn without_a_state_folder_it_serves() {
    let workplace = Workplace::deferred(&json!({ "notes": entry(&notes()) }));
    // A file where the folder should be.
    std::fs::write(workplace.path().join("state"), "in the way").unwrap();
    let outcome = workplace.run(&["search", "teal", "--json"]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let mut client = workplace.connect(&[]).await;
    let result = call_through(&mut client, "notes_find_notes", json!({ "words": "x" })).await;
    assert_eq!(result["structuredContent"]["words"], "x");
}

#[tokio::test]
async fn a_server_that_died_of_discovery_is_not_probed_again() {
    let fragile =
        Fixture::new("fragile").with_era(FixtureEra::DiesOfProbe).with_builtins([Builtin::Echo]);
    let workplace = Workplace::deferred(&json!({ "fragile": entry(&fragile) }));
    let lines = async || {
        let outcome = workplace.run(&["status"]).await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        workplace.run(&["logs", "fragile", "--json"]).await.json().as_array().unwrap().len()
    };
    let first = lines().await;
    let second = lines().await - first;
    assert!(second < first, "the second start has less to tell: {first} lines, then {second}");
}

#[tokio::test]
async fn variables_and_the_working_folder_reach_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let settings = json!({
        "env": { "GREETING": "${TOOLGATE_TEST_NOT_SET:-good morning}", "PLAIN": "$1 and ${" },
        "cwd": root,
    });
    let workplace = Workplace::deferred(&json!({ "kit": entry_with(&kit(), settings) }));
    let mut client = workplace.connect(&[]).await;
    let names = json!({ "names": ["GREETING", "PLAIN", "HOME"] });
    let seen = call_through(&mut client, "kit_environment", names).await;
    let seen = &seen["structuredContent"];
    assert_eq!(seen["variables"]["GREETING"], "good morning");
    assert_eq!(seen["variables"]["HOME"], json!(workplace.path()), "the rest is inherited");
    assert_eq!(seen["workingDirectory"], json!(root));
}

#[tokio::test]
async fn servers_with_unusual_names_have_separate_logs_and_tools() {
    let odd = ["../../etc", "my server/ü", "A", "a", "CON", "日本語"];
    let servers: serde_json::Map<String, Value> =
        odd.iter().map(|name| ((*name).to_owned(), entry(&kit()))).collect();
    let workplace = Workplace::deferred(&Value::Object(servers));
    let mut client = workplace.connect(&["--mode", "direct"]).await;
    let tools = served(&mut client).await;
    assert_eq!(tools.len(), odd.len() * Builtin::ALL.len());
    for (index, name) in odd.iter().enumerate() {
        let stderr = Builtin::ALL.iter().position(|tool| *tool == Builtin::Stderr).unwrap();
        let tool = tools[index * Builtin::ALL.len() + stderr]["name"].as_str().unwrap();
        call(&mut client, tool, json!({ "lines": index })).await;
        let search = json!({ "query": "add two numbers", "server": name });
        let found = call(&mut client, "search_tools", search).await;
        assert_eq!(found["structuredContent"]["servers"][0]["server"], *name);
    }
    client.close_stdin();
    client.wait().await.unwrap();
    for (index, name) in odd.iter().enumerate() {
        let outcome = workplace.run(&["logs", name]).await;
        let lines = outcome.stdout.lines().filter(|line| line.contains("fixture stderr")).count();
        assert_eq!(lines, index, "{name}: {}", outcome.stdout);
    }
    assert!(files(workplace.path()).iter().all(|file| file.starts_with(workplace.path())));
}

fn paged(size: usize, cursors: Cursors) -> Value {
    let pages = Some(Pages { size, cursors });
    entry(&notes().with_faults(Faults { pages, ..Faults::default() }))
}

#[tokio::test]
async fn lists_in_pages_and_lists_that_never_end() {
    let servers = json!({
        "honest": paged(1, Cursors::Honest), "again": paged(2, Cursors::Repeating),
        "endless": paged(500, Cursors::Endless), "weather": entry(&weather()),
    });
    let workplace = Workplace::new(&json!({ "mcpServers": servers }));
    let status = workplace.run(&["status", "--json"]).await.json();
    let rows = status["servers"].as_array().unwrap();
    let told: Vec<String> = rows
        .iter()
        .map(|row| {
            let problems = row["problems"].as_array().map_or(vec![], Clone::clone);
            let problems: Vec<&str> = problems.iter().filter_map(Value::as_str).collect();
            let (server, state) = (row["server"].as_str().unwrap(), row["state"].as_str().unwrap());
            let tools = if server == "endless" { "many".into() } else { row["tools"].to_string() };
            format!("{server}: {state}, {tools} tools {}", problems.join("; "))
                .trim_end()
                .to_owned()
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"), @"
    honest: ready, 4 tools
    again: ready, 2 tools the list of tools repeats itself after page 2; the tools up to there are used; tool `create_note` is left out: the list has it twice, with the same definition; the first one is used; tool `find_notes` is left out: the list has it twice, with the same definition; the first one is used
    endless: ready, many tools the list of tools does not end; the first 1003 are used
    weather: ready, 2 tools
    ");
}

#[tokio::test]
async fn two_tools_of_one_name() {
    let plain = |about: &str| json!({ "name": "same", "description": about, "inputSchema": { "type": "object" } });
    let fixture = Fixture::new("twins").with_tools([plain("The first."), plain("The second.")]);
    let workplace = Workplace::new(&json!({ "mcpServers": { "twins": entry(&fixture) } }));
    let outcome = workplace.run(&["status"]).await;
    insta::assert_snapshot!(outcome.shown(), @r#"
    exit code 1
    --- stdout
     server  state  tools  loaded  deferred  protocol    remarks
     twins   ready      0       0         0  2025-11-25  tool `same` is left out: the server lists it with different definitions, so none of them is used

    A session of all clients is direct: 389 tokens fit into the 10,000 allowed.

     a session         tools  definitions  instructions  together
     without toolgate      0            0             0         0
     direct                3          389            62       451  now, recommended
     stable                6          729            62       791
     dynamic               6          737            62       799
     code                  5          664            50       714

    Recommended: direct, because it costs no more than the meta-tools, and no search is needed.

    No policy is set: a person is asked before a tool is called that declares itself destructive, if the client shows forms or there is a terminal; all other calls go through. Set `policy` in toolgate.json: "ask" asks before every change, "off" never asks.
    Data flow is not watched, since no tool has labels: `toolgate policy suggest` proposes them.
    --- stderr
    "#);
    let mut client = workplace.connect(&["--mode", "direct"]).await;
    assert_eq!(names(&served(&mut client).await), [""; 0]);
}
