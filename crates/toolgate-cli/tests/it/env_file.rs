//! `envFile`: the variables of a server from a file, and nobody else's business.

use std::{fs, os::unix::fs::symlink};

use serde_json::{Value, json};

use crate::{
    fixtures::{kit, notes},
    reload::reported,
    support::{Workplace, call, entry, entry_with, text},
    trust::Visit,
};

const SECRET: &str = "hunter2-from-the-file";
/// A key of several lines.
const FILE: &str = "\
# for the tests
export KEY='hunter2-from-the-file'
GREETING=file
PEM=\"-----BEGIN KEY-----
hunter2-second-line
-----END KEY-----\"
COMMAND=$(touch PWNED)
";

/// The fixture behind a shell that prints the secrets first.
fn talkative() -> Value {
    let fixture = entry(&kit());
    let mut args = vec![
        json!("-c"),
        json!("echo \"bad key $KEY\" >&2; echo \"$PEM\" >&2; exec \"$0\" \"$@\""),
        fixture["command"].clone(),
    ];
    args.extend(fixture["args"].as_array().unwrap().iter().cloned());
    json!({ "command": "sh", "args": args, "envFile": "secrets/.env", "env": { "GREETING": "env" } })
}

fn with_file(config: &Value) -> Workplace {
    let place = Workplace::new(config);
    fs::create_dir(place.path().join("secrets")).unwrap();
    fs::write(place.path().join("secrets/.env"), FILE).unwrap();
    place
}

#[tokio::test]
async fn a_server_gets_its_env_file_and_nobody_else_does() {
    let place = with_file(&json!({
        "mcpServers": { "kit": talkative(), "other": entry(&kit()) },
    }));
    let mut client = place.connect(&[]).await;
    let names = json!({ "names": ["KEY", "GREETING", "PEM", "COMMAND"] });
    let seen = call(&mut client, "kit_environment", names.clone()).await;
    let seen = &seen["structuredContent"]["variables"];
    assert_eq!(seen["KEY"], SECRET);
    assert_eq!(seen["GREETING"], "env", "`env` wins");
    assert_eq!(seen["PEM"], "-----BEGIN KEY-----\nhunter2-second-line\n-----END KEY-----");
    assert_eq!(seen["COMMAND"], "$(touch PWNED)", "nothing is run");
    assert!(!place.path().join("PWNED").exists());
    let other = call(&mut client, "other_environment", names).await.to_string();
    assert!(!other.contains("hunter2") && !other.contains("\"file\""), "{other}");
    drop(client);
    // What the server printed is stored without the values.
    let logs = place.run(&["logs", "kit"]).await;
    assert!(logs.stdout.contains("bad key [hidden]"), "{logs:?}");
    assert!(!format!("{logs:?}").contains("hunter2"), "{logs:?}");
    let mut stored = vec![place.path().join("state")];
    while let Some(path) = stored.pop() {
        if path.is_dir() {
            stored.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.is_file() {
            let bytes = fs::read(&path).unwrap();
            let has = bytes.windows(7).any(|window| window == b"hunter2");
            assert!(!has, "a value is in {}", path.display());
        }
    }
}

#[tokio::test]
async fn a_server_that_fails_says_nothing_of_its_env_file() {
    let failing = json!({
        "command": "sh", "args": ["-c", "echo \"bad key $KEY\" >&2; exit 3"], "envFile": "secrets/.env",
    });
    let place = with_file(&json!({ "mcpServers": { "kit": failing, "notes": entry(&notes()) } }));
    let status = place.run(&["status"]).await;
    assert!(status.stdout.contains("kit"), "{status:?}");
    assert!(!format!("{status:?}").contains("hunter2"), "{status:?}");
    let mut client = place.connect(&["--mode", "stable"]).await;
    let found = call(&mut client, "search_tools", json!({ "queries": ["anything"] })).await;
    assert!(!found.to_string().contains("hunter2"), "{found}");
}

#[tokio::test]
async fn config_check_names_the_file_that_is_missing() {
    let server = |file: &str| json!({ "command": "x", "envFile": file });
    let place = with_file(&json!({
        "mcpServers": { "good": server("secrets/.env"), "bad": server("none/.env") },
    }));
    let checked = place.run(&["config", "check"]).await;
    assert_eq!(checked.code, Some(1), "{checked:?}");
    assert!(
        checked.stderr.contains("`mcpServers.bad.envFile` names a file that does not exist"),
        "{checked:?}"
    );
    assert!(checked.stderr.contains("hint: create it, correct the path, or remove `envFile`"));
    assert!(checked.stdout.contains("1 of 2 servers can be used"), "{checked:?}");
    // A line that is not understood is a secret, too.
    fs::write(place.path().join("secrets/.env"), "KEY=1\nhunter2\n").unwrap();
    let checked = place.run(&["config", "check"]).await;
    assert!(checked.stderr.contains("its line 2 is not `NAME=value`"), "{checked:?}");
    assert!(!format!("{checked:?}").contains("hunter2"), "{checked:?}");
}

#[tokio::test]
async fn a_change_of_the_env_file_reaches_a_running_gateway() {
    let server = entry_with(&kit(), json!({ "envFile": "${workspaceFolder}/secrets/.env" }));
    let place = with_file(&json!({ "mcpServers": { "kit": server, "notes": entry(&notes()) } }));
    let mut client = place.connect(&[]).await;
    let names = json!({ "names": ["KEY"] });
    let seen = call(&mut client, "kit_environment", names.clone()).await;
    assert_eq!(seen["structuredContent"]["variables"]["KEY"], SECRET);
    fs::write(place.path().join("secrets/.env"), "KEY=hunter2-another\n").unwrap();
    assert_eq!(reported(&mut client).await, "configuration reloaded: ~kit");
    let seen = call(&mut client, "kit_environment", names).await;
    assert_eq!(seen["structuredContent"]["variables"]["KEY"], "hunter2-another");
    fs::remove_file(place.path().join("secrets/.env")).unwrap();
    let said = reported(&mut client).await;
    assert!(said.contains("not reloaded") && said.contains("does not exist"), "{said}");
}

#[tokio::test]
async fn trust_covers_the_content_of_env_files_and_shows_names_alone() {
    let server = |file: &str| entry_with(&kit(), json!({ "envFile": file }));
    let visit = Visit::new().with(
        "toolgate.json",
        &json!({ "mcpServers": {
            "inside": server(".env"), "linked": server("link.env"), "outside": server("../own.env"),
            "missing": server("none.env"), "broken": server("broken.env"),
        } }),
    );
    let at = |name: &str| visit.folder().join(name);
    fs::write(at(".env"), FILE).unwrap();
    fs::write(at("broken.env"), "hunter2").unwrap();
    fs::write(visit.user.path().join("own.env"), "TOKEN=hunter2-of-the-user").unwrap();
    symlink(visit.user.path().join("own.env"), at("link.env")).unwrap();
    let shown = visit.run(&["trust"]).await.stdout;
    assert!(!shown.contains("hunter2"), "{shown}");
    let lines: Vec<&str> = shown.lines().filter(|line| line.starts_with("It passes")).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    It passes on the variables of ../own.env (that is ~/own.env), which is outside of this folder: TOKEN
    It passes on the variables of .env: COMMAND, GREETING, KEY, PEM
    It passes on the variables of broken.env: no env file: its line 1 is not `NAME=value`
    It passes on the variables of link.env (that is ~/own.env), which is outside of this folder: TOKEN
    It passes on the variables of none.env: not there, or it cannot be read
    ");
    let trusted = visit.trust("y\n").await;
    assert_eq!(trusted.code, Some(0), "{trusted:?}");
    assert!(!format!("{trusted:?}").contains("hunter2"), "{trusted:?}");
    let is_trusted = async || !visit.run(&["status"]).await.stderr.contains("is not trusted");
    assert!(is_trusted().await);
    let listed = visit.run(&["trust", "--list"]).await;
    assert!(listed.stdout.contains("toolgate.json: trusted"), "{listed:?}");
    // Any change of a value asks again: inside, outside, and where there was no file.
    for (file, before) in [
        (at(".env"), Some(FILE)),
        (visit.user.path().join("own.env"), Some("TOKEN=hunter2-of-the-user")),
        (at("none.env"), None),
    ] {
        fs::write(&file, "KEY=hunter2-changed").unwrap();
        assert!(!is_trusted().await, "{}", file.display());
        let listed = visit.run(&["trust", "--list"]).await;
        assert!(listed.stdout.contains("changed since"), "{listed:?}");
        match before {
            Some(before) => fs::write(&file, before).unwrap(),
            None => fs::remove_file(&file).unwrap(),
        }
        assert!(is_trusted().await, "{}", file.display());
    }
}

#[tokio::test]
async fn a_gateway_in_a_trusted_folder_does_not_use_a_changed_env_file() {
    let visit = Visit::new().with(
        "toolgate.json",
        &json!({ "mcpServers": { "kit": entry_with(&kit(), json!({ "envFile": ".env" })) } }),
    );
    let file = visit.folder().join(".env");
    fs::write(&file, FILE).unwrap();
    assert_eq!(visit.trust("y\n").await.code, Some(0));
    let mut client = visit.serve().await;
    let names = json!({ "names": ["KEY", "LD_PRELOAD"] });
    let seen = call(&mut client, "kit_environment", names.clone()).await;
    assert_eq!(seen["structuredContent"]["variables"]["KEY"], SECRET);
    fs::write(&file, "LD_PRELOAD=/tmp/hunter2.so\n").unwrap();
    let said = reported(&mut client).await;
    assert!(said.contains("`toolgate.json` of this folder, or a file of its `envFile`,"), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
    let seen = call(&mut client, "kit_environment", names.clone()).await;
    assert_eq!(seen["structuredContent"]["variables"]["KEY"], SECRET, "the old one stays");
    assert_eq!(visit.trust("y\n").await.code, Some(0));
    assert_eq!(reported(&mut client).await, "configuration reloaded: ~kit");
    let seen = call(&mut client, "kit_environment", names).await;
    assert!(seen["structuredContent"]["variables"].get("KEY").is_none_or(Value::is_null), "{seen}");
    let found = call(&mut client, "kit_echo", json!({ "message": "still here" })).await;
    assert!(text(&found).contains("still here"), "{found}");
}
