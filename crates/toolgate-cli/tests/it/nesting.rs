//! A toolgate that finds itself among its servers.

use std::{fs, os::unix::fs::symlink, path::Path};

use serde_json::{Value, json};

use crate::{
    fixtures::notes,
    support::{Workplace, entry, names, program, served, until},
};

/// A workplace with one server, and with toolgate itself as `entry` describes it.
fn with_itself(entry_of: impl FnOnce(&Path) -> Value) -> Workplace {
    let workplace = Workplace::new(&json!({}));
    let itself = entry_of(&workplace.config());
    let servers = json!({ "notes": entry(&notes()), "myself": itself });
    let config = json!({ "mcpServers": servers, "codeMode": { "python": "monty" } });
    workplace.rewrite(&config.to_string());
    workplace
}

fn serves(config: &Path) -> Vec<String> {
    vec!["serve".into(), "--stdio".into(), "--config".into(), config.display().to_string()]
}

const LEFT_OUT: &str = "`mcpServers.myself` is toolgate itself, and is left out";

#[tokio::test]
async fn every_command_leaves_toolgate_itself_out() {
    let workplace = with_itself(|config| json!({ "command": program(), "args": serves(config) }));
    for arguments in [
        &["status"][..],
        &["tokens"],
        &["search", "note"],
        &["config", "check"],
        &["inspect", "notes_find_notes"],
        &["policy"],
    ] {
        let outcome = workplace.run(arguments).await;
        assert_eq!(outcome.code, Some(0), "{arguments:?}: {outcome:?}");
        assert_eq!(outcome.stderr.matches(LEFT_OUT).count(), 1, "{arguments:?}: {outcome:?}");
        assert!(!outcome.stdout.contains("myself"), "{arguments:?}: {outcome:?}");
    }
    let mut client = workplace.connect(&[]).await;
    let listed = served(&mut client).await;
    assert!(names(&listed).iter().all(|name| name.starts_with("notes_")), "{listed:?}");
    assert!(!listed.is_empty());
}

#[tokio::test]
async fn another_name_of_the_program_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("gate");
    symlink(program(), &other).unwrap();
    let hard = folder.path().join("hard");
    // Another file system has no hard link to it.
    let hard = fs::hard_link(program(), &hard).map_or_else(|_| other.clone(), |()| hard);
    for command in [other, hard, "toolgate".into()] {
        let workplace = with_itself(|config| json!({ "command": command, "args": serves(config) }));
        let outcome = workplace.run(&["config", "check"]).await;
        assert!(outcome.stderr.contains(LEFT_OUT), "{command:?}: {outcome:?}");
    }
    let demo = with_itself(|_| json!({ "command": program(), "args": ["demo-server", "team"] }));
    let outcome = demo.run(&["search", "team members"]).await;
    assert!(
        outcome.stdout.contains("get_team_members"),
        "a demo server is no gateway: {outcome:?}"
    );
}

/// A script that notes its start, and then becomes toolgate.
fn wrapped(config: &Path, starts: &Path, other: Option<&Path>) -> Value {
    let script = format!("echo started >> '{}'; exec '{}' \"$@\"", starts.display(), program());
    let mut args = vec!["-c".to_owned(), script, "sh".to_owned()];
    args.extend(serves(other.unwrap_or(config)));
    json!({ "command": "sh", "args": args })
}

#[tokio::test]
async fn a_script_that_becomes_toolgate_is_recognised_by_what_it_answers() {
    let folder = tempfile::tempdir().unwrap();
    let starts = folder.path().join("starts");
    let workplace = with_itself(|config| wrapped(config, &starts, None));
    let status = workplace.run(&["status", "--json"]).await.json();
    let row = &status["servers"][1];
    assert_eq!(row["reason"], "it is toolgate itself, and is left out", "{row}");
    assert_eq!(status["servers"][0]["state"], "ready");
    assert_eq!(fs::read_to_string(&starts).unwrap().lines().count(), 1, "it starts no other");

    // One with another file has other servers. They belong into the file, not below it.
    let other = Workplace::new(&json!({ "mcpServers": { "notes": entry(&notes()) } }));
    let workplace = with_itself(|config| wrapped(config, &starts, Some(&other.config())));
    let status = workplace.run(&["status", "--json"]).await.json();
    let row = &status["servers"][1];
    assert_eq!(row["reason"], "it is toolgate itself, and is left out", "{row}");
}

#[tokio::test]
async fn a_gateway_does_not_connect_to_itself_and_may_connect_to_another() {
    let workplace = Workplace::deferred(&json!({ "notes": entry(&notes()) }));
    let mut gateway = workplace.serve_http(&[]).await;
    let servers = json!({ "notes": entry(&notes()), "myself": { "url": gateway.url() } });
    let config = json!({ "mcpServers": servers, "toolSearch": { "enabled": true } });
    workplace.rewrite(&config.to_string());
    gateway.says("configuration").await;
    let client = gateway.client();
    until("it knows itself", async || {
        let found = client.call("search_tools", json!({ "query": "xylophone" })).await;
        found.to_string().contains("myself (it is toolgate itself, and is left out)").then_some(())
    })
    .await;

    // Another one is a server like others, also in the other direction: then it is a circle.
    let second = Workplace::deferred(&json!({ "first": { "url": gateway.url() } }));
    let front = second.serve_http(&[]).await;
    let client = front.client();
    until("the tools of the first", async || {
        let found = client.call("search_tools", json!({ "query": "find a tool" })).await;
        found.to_string().contains("first_search_tools").then_some(())
    })
    .await;
    let config = json!({ "mcpServers": { "second": { "url": front.url() } }, "toolSearch": { "enabled": true } });
    workplace.rewrite(&config.to_string());
    gateway.says("configuration").await;
    let client = gateway.client();
    until("the circle is known", async || {
        let found = client.call("search_tools", json!({ "query": "xylophone" })).await;
        found.to_string().contains("second (it is toolgate itself, and is left out)").then_some(())
    })
    .await;
    front.stop().await;
    gateway.stop().await;
}

#[tokio::test]
async fn another_process_with_the_file_of_a_gateway_does_not_list_everything_twice() {
    let workplace = Workplace::new(&json!({ "mcpServers": { "notes": entry(&notes()) } }));
    let mut gateway = workplace.serve_http(&[]).await;
    let servers = json!({ "notes": entry(&notes()), "myself": { "url": gateway.url() } });
    workplace.rewrite(&json!({ "mcpServers": servers }).to_string());
    gateway.says("configuration").await;
    let status = workplace.run(&["status", "--json"]).await.json();
    let row = &status["servers"][1];
    assert_eq!(row["reason"], "it is toolgate itself, and is left out", "{row}");
    let mut client = workplace.connect(&[]).await;
    let listed = served(&mut client).await;
    assert!(!listed.is_empty());
    assert!(names(&listed).iter().all(|name| name.starts_with("notes_")), "{listed:?}");
    gateway.stop().await;
}

#[tokio::test]
async fn a_gateway_is_never_listed_from_the_cache() {
    let workplace = Workplace::deferred(&json!({ "notes": entry(&notes()) }));
    let mut gateway = workplace.serve_http(&[]).await;
    let servers = json!({ "notes": entry(&notes()), "myself": { "url": gateway.url() } });
    let config = json!({ "mcpServers": servers, "toolSearch": { "enabled": true } }).to_string();
    // Another process may use it as a server, with the same cache.
    fs::write(workplace.path().join("other.json"), &config).unwrap();
    let status = workplace.run(&["status", "other.json", "--json"]).await.json();
    assert_eq!(status["servers"][1]["state"], "ready", "{status}");
    // The gateway itself may not.
    workplace.rewrite(&config);
    gateway.says("configuration").await;
    let client = gateway.client();
    let search = async || {
        let found = client.call("search_tools", json!({ "query": "search tools" })).await;
        assert!(!found.to_string().contains("myself_"), "{found}");
        found
    };
    until("it knows itself", async || {
        let found = search().await.to_string();
        found.contains("myself (it is toolgate itself, and is left out)").then_some(())
    })
    .await;
    search().await;
    gateway.stop().await;
    // Nothing answers any more, and nothing is remembered.
    let found = workplace.run(&["search", "search tools", "--config", "other.json"]).await;
    assert!(!found.stdout.contains("myself_"), "{found:?}");
    assert!(found.stdout.contains("Not connected: myself"), "{found:?}");
}
