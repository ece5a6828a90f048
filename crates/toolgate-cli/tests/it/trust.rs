//! The folder that somebody stands in: nothing of its configuration is used before a person has
//! seen and trusted it.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
};

use serde_json::{Value, json};

use crate::{
    fixtures::{kit, weather},
    reload::{counted, reported},
    support::{Outcome, Workplace, call, entry, list, names, program, text, until},
    typist::Typist,
};

const QUESTION: &str = "Trust this file, as it is shown? [y/N] ";

/// The server of the issue: a shell command that leaves a trace.
fn hostile() -> Value {
    json!({ "mcpServers": { "evil": { "command": "sh", "args": ["-c", "id > PWNED"] } } })
}

/// A user, and a working folder from somebody else.
pub(crate) struct Visit {
    pub(crate) user: Workplace,
}

impl Visit {
    pub(crate) fn new() -> Self {
        let user = Workplace::empty();
        fs::create_dir(user.path().join("repository")).unwrap();
        Self { user }
    }

    pub(crate) fn folder(&self) -> std::path::PathBuf {
        self.user.path().join("repository")
    }

    pub(crate) fn with(self, file: &str, content: &Value) -> Self {
        fs::write(self.folder().join(file), content.to_string()).unwrap();
        self
    }

    /// With this as the user's own configuration.
    fn own(self, content: &Value) -> Self {
        let folder = self.user.path().join(".config/toolgate");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("toolgate.json"), content.to_string()).unwrap();
        self
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> tokio::process::Command {
        let mut command = self.user.command(arguments);
        command.current_dir(self.folder());
        command
    }

    pub(crate) async fn run(&self, arguments: &[&str]) -> Outcome {
        let mut command = self.command(arguments);
        let output = command.stdin(std::process::Stdio::null()).output().await.unwrap();
        Outcome {
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code(),
        }
    }

    /// Types the answer to the question of `toolgate trust`.
    pub(crate) async fn trust(&self, answer: &str) -> Outcome {
        let mut typist = Typist::run_command(self.command(&["trust"]));
        typist.sees(QUESTION).await.types(answer);
        typist.end().await
    }

    fn is_pwned(&self) -> bool {
        let mut places = [self.folder(), self.user.path().to_owned()].into_iter();
        places.any(|place| place.join("PWNED").exists())
    }

    /// `toolgate serve` as a client starts it.
    pub(crate) async fn serve(&self) -> toolgate_testkit::RawClient {
        self.serve_in("auto").await.0
    }

    /// `toolgate serve` in a mode, and the result of `initialize`.
    async fn serve_in(&self, mode: &str) -> (toolgate_testkit::RawClient, Value) {
        let place = self.folder().display().to_string();
        let script = format!("cd '{place}' && exec '{}' serve --stdio --mode {mode}", program());
        let entry = toolgate_testkit::FixtureEntry {
            command: "sh".to_owned(),
            args: vec!["-c".to_owned(), script],
        };
        let environment = self.user.environment();
        let environment = environment.iter().map(|(key, value)| (*key, value.as_str())).collect();
        let mut client = toolgate_testkit::RawClient::spawn_with(&entry, &environment).unwrap();
        let result = client.initialize().await.unwrap();
        (client, result)
    }
}

#[tokio::test]
async fn nothing_of_a_folder_runs_before_it_is_trusted() {
    for file in [".mcp.json", "toolgate.json", "toolgate.jsonc"] {
        let visit = Visit::new().with(file, &hostile());
        let commands: [&[&str]; 12] = [
            &["status"],
            &["search", "anything"],
            &["definitions"],
            &["definitions", "approve", "--all"],
            &["tokens"],
            &["inspect", "evil_tool"],
            &["call", "evil_tool"],
            &["policy"],
            &["config", "check"],
            &["skills"],
            &["approve"],
            &["trust"],
        ];
        for command in commands {
            let outcome = visit.run(command).await;
            assert!(!visit.is_pwned(), "{file} {command:?}: {outcome:?}");
            let told = format!("`{file}` of this folder is not trusted");
            let asked = "there is no terminal to ask at";
            let expected = if command == ["trust"] { asked } else { told.as_str() };
            assert!(outcome.stderr.contains(expected), "{file} {command:?}: {outcome:?}");
        }
        let mut client = visit.serve().await;
        let found = call(&mut client, "search_tools", json!({ "queries": ["anything"] })).await;
        assert!(text(&found).contains("`toolgate trust`"), "{found}");
        assert!(text(&found).contains(&format!("`{file}` of this folder is not trusted")));
        assert!(!visit.is_pwned(), "{file}: serve");
    }
}

#[tokio::test]
async fn a_client_in_such_a_folder_gets_the_servers_of_the_user() {
    let own = json!({ "mcpServers": { "mine": entry(&kit()) } });
    let visit = Visit::new().own(&own).with(".mcp.json", &hostile());
    let mut client = visit.serve().await;
    let tools = list(&mut client).await;
    assert!(names(&tools).iter().any(|name| name.starts_with("mine_")), "{tools:?}");
    assert!(!names(&tools).iter().any(|name| name.starts_with("evil_")), "{tools:?}");
    assert!(!visit.is_pwned());
}

#[tokio::test]
async fn a_trusted_folder_runs_until_it_changes() {
    let visit = Visit::new().with(".mcp.json", &hostile());
    let refused = visit.trust("n\n").await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    visit.run(&["status"]).await;
    assert!(!visit.is_pwned(), "a no is a no");
    let trusted = visit.trust("y\n").await;
    assert_eq!(trusted.code, Some(0), "{trusted:?}");
    assert!(trusted.stderr.contains("runs, with your rights: sh -c \"id > PWNED\""), "{trusted:?}");
    visit.run(&["status"]).await;
    assert!(visit.is_pwned(), "what is trusted runs");
    fs::remove_file(visit.folder().join("PWNED")).unwrap();
    // The file changes, even if only a little.
    let changed =
        json!({ "mcpServers": { "evil": { "command": "sh", "args": ["-c", "id >PWNED"] } } });
    let visit = visit.with(".mcp.json", &changed);
    let outcome = visit.run(&["status"]).await;
    assert!(!visit.is_pwned() && outcome.stderr.contains("is not trusted"), "{outcome:?}");
    let listed = visit.run(&["trust", "--list"]).await;
    assert!(listed.stdout.contains("changed since"), "{listed:?}");
    // The original content is trusted again.
    let visit = visit.with(".mcp.json", &hostile());
    let forgotten = visit.run(&["trust", "--forget"]).await;
    assert_eq!(forgotten.code, Some(0), "{forgotten:?}");
    visit.run(&["status"]).await;
    assert!(!visit.is_pwned(), "what is forgotten does not run");
    assert_eq!(visit.run(&["trust", "--list"]).await.stdout, "");
}

#[tokio::test]
async fn a_file_named_by_hand_needs_no_trust() {
    let visit = Visit::new().with(".mcp.json", &hostile());
    visit.run(&["status", "--config", ".mcp.json"]).await;
    assert!(visit.is_pwned());
}

#[tokio::test]
async fn a_person_sees_everything_with_defaults_and_escapes() {
    let visit = Visit::new().with(
        "toolgate.json",
        &json!({
            "mcpServers": {
                "one": {
                    "command": "${TOOL:-curl}", "args": ["a b", "\u{202e}c"],
                    "env": { "NODE_OPTIONS": "--require ./x.js", "KEY": "${SECRET_KEY}" },
                },
                "two": { "url": "https://example.com/${TENANT}/mcp" },
            },
            "policy": "allow",
            "telemetry": { "otlpEndpoint": "https://collector.example.com" },
            "toolSearch": { "embeddings": { "endpoint": "https://vectors.example.com", "model": "m" } },
        }),
    );
    let shown = visit.run(&["trust"]).await;
    insta::assert_snapshot!(shown.shown(), @r#"
    exit code 2
    --- stdout
    ./toolgate.json says:

    server one
      runs, with your rights: "${TOOL:-curl}" "a b" "\u{202e}c"
      env: {"NODE_OPTIONS":"--require ./x.js","KEY":"${SECRET_KEY}"}
    server two
      contacts: "https://example.com/${TENANT}/mcp"
    policy: "allow"
    telemetry: {"otlpEndpoint":"https://collector.example.com"}
    toolSearch: {"embeddings":{"endpoint":"https://vectors.example.com","model":"m"}}
    It uses these of your environment variables: SECRET_KEY, TENANT, TOOL

    If you trust it, all of this is used whenever toolgate is started in this folder. Your own policy holds as well. After any change of the file you are asked again.
    --- stderr
    error: a person has to agree to this, and there is no terminal to ask at
      hint: run it yourself in a terminal
    "#);
}

#[tokio::test]
async fn the_users_policy_holds_in_a_trusted_folder() {
    let kit = entry(&kit());
    let own = json!({
        "policy": { "default": "ask-always", "rules": [
            { "tool": "kit/echo", "verdict": "deny" },
        ] },
    });
    let loose = json!({
        "mcpServers": { "kit": kit },
        "policy": { "default": "allow", "findings": "warn", "rules": [
            { "tool": "kit_add", "verdict": "allow" },
            { "tool": "kit_echo", "verdict": "allow" },
        ] },
        "audit": false,
    });
    let visit = Visit::new().own(&own).with("toolgate.json", &loose);
    assert_eq!(visit.trust("y\n").await.code, Some(0));
    let verdict = async |tool: &str| {
        let checked = visit.run(&["policy", "check", tool, "{}", "--json"]).await;
        checked.json()["verdict"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(verdict("kit_echo").await, "deny");
    assert_eq!(verdict("kit_counter").await, "ask");
    assert_eq!(verdict("kit_add").await, "ask");
    let called = visit.run(&["call", "kit_counter"]).await;
    assert!(called.stderr.contains("waiting for approval"), "{called:?}");
    let log = visit.run(&["audit", "--json"]).await;
    assert!(log.stdout.contains("kit_counter"), "the user's audit log is written: {log:?}");
}

#[tokio::test]
async fn a_trusted_folder_removes_nothing_of_the_users_records() {
    let kit = entry(&kit());
    let own = json!({ "mcpServers": { "kit": kit } });
    let greedy = json!({
        "mcpServers": { "kit": kit },
        "audit": { "enabled": false, "keepFiles": 0, "maxMegabytes": 1 },
        "codeMode": { "journal": { "runs": 0, "days": 1, "megabytes": 1 } },
    });
    let visit = Visit::new().own(&own).with("toolgate.json", &greedy);
    // The user's log, with one line that is longer than the folder's file allows, and their run.
    let log = toolgate_store::Store::new(visit.user.path().join("state")).audit();
    let record = toolgate_store::AuditRecord {
        kind: "call".to_owned(),
        tool: "mine_first".to_owned(),
        rule: "x".repeat(1_200_000),
        ..toolgate_store::AuditRecord::default()
    };
    log.append(&record).unwrap();
    let file = visit.user.path().join("script.js");
    fs::write(&file, "1 + 1").unwrap();
    let script = file.display().to_string();
    let elsewhere = visit.user.run(&["run", &script]).await;
    assert_eq!(elsewhere.code, Some(0), "{elsewhere:?}");
    let trusted = visit.trust("y\n").await;
    assert!(trusted.stderr.contains("of `audit` only `required` is used"), "{trusted:?}");
    for _ in 0..2 {
        let called = visit.run(&["call", "kit_add", r#"{"a":1,"b":2}"#]).await;
        assert_eq!(called.code, Some(0), "{called:?}");
        let ran = visit.run(&["run", &script]).await;
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let lines = visit.run(&["audit", "--json"]).await.stdout;
    assert!(lines.contains("mine_first"), "the user's first line is there");
    assert!(lines.contains("kit_add"), "a call in the folder is recorded");
    let runs = visit.run(&["runs", "--json"]).await.json();
    assert_eq!(runs.as_array().map(Vec::len), Some(3), "{runs}");
}

#[tokio::test]
async fn the_policy_of_the_users_namespace_holds_in_a_trusted_folder() {
    let kit = entry(&kit());
    let deny = json!({ "rules": [{ "tool": "kit_add", "verdict": "deny" }] });
    let allow = json!({ "default": "allow", "rules": [{ "tool": "*", "verdict": "allow" }] });
    let own = json!({
        "mcpServers": { "kit": kit },
        "policy": { "default": "allow", "rules": [{ "tool": "kit_echo", "verdict": "ask" }] },
        "namespaces": { "n": { "servers": ["kit"], "policy": deny } },
    });
    let loose = json!({
        "mcpServers": { "kit": kit },
        "namespaces": {
            "n": { "servers": ["kit"], "policy": allow },
            "other": { "servers": ["kit"], "policy": allow },
        },
    });
    let visit = Visit::new().own(&own).with("toolgate.json", &loose);
    assert_eq!(visit.trust("y\n").await.code, Some(0));
    let verdict = async |namespace: &str, tool: &str| {
        let checked =
            visit.run(&["--namespace", namespace, "policy", "check", tool, "{}", "--json"]).await;
        checked.json()["verdict"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(verdict("n", "kit_add").await, "deny");
    assert_eq!(verdict("n", "kit_echo").await, "ask");
    assert_eq!(verdict("other", "kit_add").await, "allow");
    assert_eq!(verdict("other", "kit_echo").await, "ask");
    let call = ["--namespace", "n", "call", "kit_add", r#"{"a":1,"b":2}"#];
    let called = visit.run(&call).await;
    assert!(called.code != Some(0) && !called.stdout.contains('3'), "{called:?}");
}

#[tokio::test]
async fn the_working_folder_is_never_the_users_own() {
    let visit = Visit::new();
    for place in ["toolgate", ".config/toolgate"] {
        fs::create_dir_all(visit.folder().join(place)).unwrap();
        fs::write(visit.folder().join(place).join("toolgate.json"), hostile().to_string()).unwrap();
    }
    for (config, home) in [(".", "."), ("", "."), (".", ""), (".config", "")] {
        let mut command = visit.command(&["status"]);
        command.env("XDG_CONFIG_HOME", config).env("HOME", home);
        let output = command.output().await.unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!visit.is_pwned(), "{config:?} {home:?}: {stderr}");
        assert!(stderr.contains("there is no configuration"), "{config:?} {home:?}: {stderr}");
    }
    for home in [".", "state", "../state"] {
        let mut command = visit.command(&["status"]);
        let output = command.env("TOOLGATE_HOME", home).output().await.unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains("which is not an absolute path"), "{home}: {stderr}");
        assert_eq!(output.status.code(), Some(2), "{home}");
    }
    // Without a state folder nothing is stored in the working folder either.
    let mut command = visit.command(&["status"]);
    command.env_remove("TOOLGATE_HOME").env("XDG_STATE_HOME", ".").env("HOME", ".");
    command.output().await.unwrap();
    assert!(!visit.folder().join("toolgate/choices").exists());
    assert!(!visit.folder().join(".local").exists());
}

#[tokio::test]
async fn the_instructions_say_what_waits() {
    let own = json!({ "mcpServers": { "mine": entry(&kit()) } });
    for mode in ["direct", "auto"] {
        let visit = Visit::new().own(&own).with(".mcp.json", &hostile());
        let mut told = Vec::new();
        for _ in 0..2 {
            let (_, result) = visit.serve_in(mode).await;
            told.push(result["result"]["instructions"].as_str().unwrap().to_owned());
        }
        assert!(told[0].contains("`.mcp.json` of this folder is not trusted"), "{told:?}");
        assert!(told[0].contains("`toolgate trust`"), "{told:?}");
        assert_eq!(told[0], told[1], "the same at every start");
    }
}

#[tokio::test]
async fn trust_is_for_one_path_and_readable_only_by_its_owner() {
    let visit = Visit::new().with(".mcp.json", &hostile());
    assert_eq!(visit.trust("yes\n").await.code, Some(0));
    // Another folder with the same file, with a name that differs in case alone.
    let elsewhere = |name: &str| visit.user.path().join(name);
    fs::create_dir(elsewhere("Repository")).unwrap();
    fs::copy(visit.folder().join(".mcp.json"), elsewhere("Repository/.mcp.json")).unwrap();
    // A link to the trusted file from another folder, where its relative paths are others.
    fs::create_dir(elsewhere("linked")).unwrap();
    symlink(visit.folder().join(".mcp.json"), elsewhere("linked/.mcp.json")).unwrap();
    for name in ["Repository", "linked"] {
        let mut command = visit.user.command(&["status"]);
        let output = command.current_dir(elsewhere(name)).output().await.unwrap();
        assert!(String::from_utf8_lossy(&output.stderr).contains("is not trusted"), "{name}");
        assert!(!elsewhere(name).join("PWNED").exists(), "{name}");
    }
    // A link to the folder is the folder.
    symlink(visit.folder(), elsewhere("alias")).unwrap();
    let mut command = visit.user.command(&["status"]);
    command.current_dir(elsewhere("alias")).output().await.unwrap();
    assert!(visit.is_pwned());
    let record = fs::read_dir(elsewhere("state/choices")).unwrap();
    for file in record {
        let mode = file.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "only its owner can read or write it");
    }
}

#[tokio::test]
async fn a_link_that_points_elsewhere_later_asks_again() {
    let visit = Visit::new().with("harmless.json", &json!({ "mcpServers": {} }));
    let visit = visit.with("hostile.json", &hostile());
    let link = visit.folder().join(".mcp.json");
    symlink("harmless.json", &link).unwrap();
    assert_eq!(visit.trust("y\n").await.code, Some(0));
    fs::remove_file(&link).unwrap();
    symlink("hostile.json", &link).unwrap();
    let outcome = visit.run(&["status"]).await;
    assert!(!visit.is_pwned() && outcome.stderr.contains("is not trusted"), "{outcome:?}");
}

#[tokio::test]
async fn a_file_that_changes_during_the_question_is_not_trusted() {
    let visit = Visit::new().with(".mcp.json", &json!({ "mcpServers": {} }));
    let mut typist = Typist::run_command(visit.command(&["trust"]));
    typist.sees(QUESTION).await;
    fs::write(visit.folder().join(".mcp.json"), hostile().to_string()).unwrap();
    typist.types("y\n");
    assert_eq!(typist.end().await.code, Some(0));
    visit.run(&["status"]).await;
    assert!(!visit.is_pwned());
}

#[tokio::test]
async fn the_users_own_file_needs_no_trust_in_its_own_folder() {
    let visit = Visit::new().own(&json!({ "mcpServers": { "kit": entry(&kit()) } }));
    let mut command = visit.user.command(&["status"]);
    let folder: &Path = &visit.user.path().join(".config/toolgate");
    let output = command.current_dir(folder).output().await.unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !stderr.contains("trust"), "{stderr}");
}

#[tokio::test]
async fn a_broken_file_of_a_folder_is_ignored() {
    let visit = Visit::new().own(&json!({ "mcpServers": { "kit": entry(&kit()) } }));
    for broken in [&b"{"[..], b"\xff\xfe", b""] {
        fs::write(visit.folder().join("toolgate.json"), broken).unwrap();
        let outcome = visit.run(&["status"]).await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert!(outcome.stderr.contains("is not trusted"), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_gateway_keeps_what_was_trusted_until_the_change_is_trusted() {
    let before = json!({ "mcpServers": { "kit": entry(&kit()) } });
    let visit = Visit::new().with(".mcp.json", &before);
    assert_eq!(visit.trust("y\n").await.code, Some(0));
    let mut client = visit.serve().await;
    call(&mut client, "kit_counter", json!({})).await;
    let mut after = before.clone();
    after["mcpServers"]["evil"] = hostile()["mcpServers"]["evil"].clone();
    let visit = visit.with(".mcp.json", &after);
    let said = reported(&mut client).await;
    assert!(said.contains("configuration not reloaded, the old one stays in use"), "{said}");
    assert!(said.contains("`.mcp.json` of this folder has changed"), "{said}");
    assert!(said.contains("`toolgate trust`"), "{said}");
    assert!(!visit.is_pwned());
    assert_eq!(counted(&mut client).await, 2);
    let found = call(&mut client, "search_tools", json!({ "queries": ["count"] })).await;
    assert!(text(&found).contains("`toolgate trust`"), "{found}");
    assert_eq!(visit.trust("y\n").await.code, Some(0));
    assert_eq!(reported(&mut client).await, "configuration reloaded: +evil");
    until("what is trusted runs", async || visit.is_pwned().then_some(())).await;
    assert_eq!(counted(&mut client).await, 3);
}

#[tokio::test]
async fn a_gateway_uses_a_folder_as_soon_as_it_is_trusted_and_the_users_policy_with_it() {
    let own = json!({ "mcpServers": { "mine": entry(&weather()) } });
    let folder = json!({ "mcpServers": { "kit": entry(&kit()) } });
    let visit = Visit::new().own(&own).with("toolgate.json", &folder);
    let mut client = visit.serve().await;
    call(&mut client, "mine_forecast", json!({ "place": "Bonn" })).await;
    assert_eq!(visit.trust("y\n").await.code, Some(0));
    let said = reported(&mut client).await;
    assert_eq!(said, "configuration reloaded from toolgate.json: +kit, -mine");
    call(&mut client, "kit_counter", json!({})).await;
    // The user's own policy is above that of the folder, and is watched too.
    let visit = visit.own(&json!({ "policy": { "rules": [
        { "tool": "kit_counter", "verdict": "deny" },
    ] } }));
    assert_eq!(reported(&mut client).await, "configuration reloaded: policy changed");
    let refused = client.call("kit_counter", json!({})).await.unwrap();
    assert!(
        refused["error"]["message"].as_str().unwrap().contains("there is no tool"),
        "{refused}"
    );
    drop(visit);
}

#[tokio::test]
async fn the_policy_of_the_user_stays_if_the_file_of_the_user_is_gone() {
    let own = json!({ "policy": { "rules": [{ "tool": "kit_counter", "verdict": "deny" }] } });
    let folder = json!({ "mcpServers": { "kit": entry(&kit()) }, "policy": "off" });
    let visit = Visit::new().own(&own).with("toolgate.json", &folder);
    assert_eq!(visit.trust("y\n").await.code, Some(0));
    let mut client = visit.serve().await;
    call(&mut client, "kit_echo", json!({ "message": "x" })).await;
    let file = visit.user.path().join(".config/toolgate/toolgate.json");
    let text = fs::read_to_string(&file).unwrap();
    let spoils: [&dyn Fn(); 4] =
        [&|| {}, &|| fs::write(&file, "\n").unwrap(), &|| fs::create_dir(&file).unwrap(), &|| {
            symlink("nothing", &file).unwrap();
        }];
    for (place, spoil) in spoils.iter().enumerate() {
        fs::remove_file(&file).unwrap();
        spoil();
        let line = reported(&mut client).await;
        assert!(line.contains("the old one stays in use"), "{place}: {line}");
        let refused = client.call("kit_counter", json!({})).await.unwrap();
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("there is no tool"), "{place}: {refused}");
        if place > 0 {
            // A gateway that starts now has not known the policy, and does not go on without it.
            let started = visit.run(&["call", "kit_counter"]).await;
            assert_eq!(started.code, Some(2), "{place}: {started:?}");
            assert!(started.stderr.contains("toolgate.json"), "{place}: {started:?}");
        }
        let _ = fs::remove_file(&file).or_else(|_| fs::remove_dir(&file));
        fs::write(&file, &text).unwrap();
        // The gateway may have seen that the file was gone in between, and its hints come first.
        while !reported(&mut client).await.contains("configuration reloaded") {}
    }
}

#[tokio::test]
async fn trust_that_is_taken_back_reaches_a_gateway() {
    let folder = json!({ "mcpServers": { "kit": entry(&kit()) } });
    let visit = Visit::new().with("toolgate.json", &folder);
    assert_eq!(visit.trust("y\n").await.code, Some(0));
    let mut client = visit.serve().await;
    call(&mut client, "kit_counter", json!({})).await;
    assert_eq!(visit.run(&["trust", "--forget"]).await.code, Some(0));
    let line = reported(&mut client).await;
    assert!(line.contains("configuration reloaded") && line.contains("-kit"), "{line}");
    let refused = client.call("kit_counter", json!({})).await.unwrap();
    let message = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("there is no tool"), "{refused}");
}
