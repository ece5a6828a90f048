//! What `toolgate setup` takes over, what it leaves in a client, and what it says about it.

use std::fs;

use serde_json::{Value, json};

use crate::{
    fixtures::kit,
    setup::{all_files, put, quiet, servers},
    support::{Workplace, call, entry},
};

const OWN: &str = ".config/toolgate/toolgate.json";

#[tokio::test]
async fn a_server_has_its_own_variables_and_stays_in_its_client_if_it_cannot_be_used() {
    let place = Workplace::empty();
    let mut remote = entry(&kit());
    remote["args"]
        .as_array_mut()
        .unwrap()
        .extend([json!("--header"), json!("Authorization:${AUTH_HEADER}")]);
    remote["env"] = json!({ "AUTH_HEADER": "Bearer hunter2" });
    let broken = json!({ "command": "x", "args": ["${NOT_SET_ANYWHERE}"] });
    let there = json!({ "mcpServers": { "rem": remote, "broken": broken } });
    let file = put(&place, ".config/Claude/claude_desktop_config.json", &there);
    for arguments in [&["setup", "--dry-run"][..], &["setup", "--yes", "--no-probe"]] {
        let done = place.run(arguments).await;
        assert_eq!(done.code, Some(1), "{done:?}");
        quiet(&done);
        assert!(done.stdout.contains("NOT_SET_ANYWHERE"), "{done:?}");
        assert!(done.stdout.contains("it stays in Claude Desktop as it is"), "{done:?}");
        assert!(!done.stdout.contains("AUTH_HEADER`, which is not set"), "{done:?}");
    }
    let left = servers(&file, "mcpServers");
    assert_eq!(left.keys().collect::<Vec<_>>(), ["broken", "toolgate"]);
    assert_eq!(left["broken"], broken);
    let own = servers(&place.path().join(OWN), "mcpServers");
    assert_eq!(own.keys().collect::<Vec<_>>(), ["rem"]);
    assert!(own["rem"]["args"].to_string().contains("Authorization:${AUTH_HEADER}"), "{own:?}");
    assert_eq!(own["rem"]["env"]["AUTH_HEADER"], "Bearer ${keychain:rem/AUTH_HEADER}");
}

#[tokio::test]
async fn what_is_not_taken_over_is_named_and_lists_of_tools_are() {
    let place = Workplace::empty();
    let mut one = entry(&kit());
    one["type"] = json!("local");
    one["tools"] = json!(["echo"]);
    put(&place, ".copilot/mcp-config.json", &json!({ "mcpServers": { "kit": one } }));
    let codex = place.path().join(".codex/config.toml");
    fs::create_dir_all(codex.parent().unwrap()).unwrap();
    fs::write(
        &codex,
        "[mcp_servers.remote]\nurl = \"https://a.example/mcp\"\ndefault_tools_approval_mode = \"prompt\"\nscopes = [\"read\"]\noauth_resource = \"https://a.example\"\n",
    )
    .unwrap();
    put(
        &place,
        ".gemini/settings.json",
        &json!({ "mcpServers": { "g": { "httpUrl": "https://g.example/mcp", "authProviderType": "google_credentials" } } }),
    );
    put(
        &place,
        ".cursor/mcp.json",
        &json!({ "mcpServers": { "c": { "url": "https://c.example/mcp", "auth": { "CLIENT_ID": "me", "CLIENT_SECRET": "hunter2", "scopes": ["a"] } } } }),
    );
    let done = place.run(&["setup", "--yes", "--no-probe"]).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    quiet(&done);
    for line in [
        "`default_tools_approval_mode` of `remote` of Codex is not taken over: toolgate's own policy",
        "`oauth_resource` of `remote` of Codex is not taken over",
        "`authProviderType` of `g` of Gemini CLI is not taken over",
    ] {
        assert!(done.stdout.contains(line), "{line}: {}", done.stdout);
    }
    assert_eq!(done.stdout.matches("is not taken over").count(), 3, "{}", done.stdout);
    let own = servers(&place.path().join(OWN), "mcpServers");
    assert_eq!(own["kit"]["includeTools"], json!(["echo"]));
    assert_eq!(own["remote"]["oauth"], json!({ "scopes": ["read"] }));
    assert_eq!(
        own["c"]["oauth"],
        json!({ "clientId": "me", "clientSecret": "${keychain:c/clientSecret}", "scopes": ["a"] })
    );
    let listed = place.run(&["search", "echo", "--server", "kit", "--json"]).await;
    assert!(listed.stdout.contains("kit_echo"), "{listed:?}");
    let other = place.run(&["call", "kit_environment", "--arg", "names=[]"]).await;
    assert_ne!(other.code, Some(0), "{other:?}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_token_is_in_the_diff_and_ends_with_undo() {
    use std::os::unix::fs::PermissionsExt as _;

    let place = Workplace::empty();
    let bin = place.path().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("systemctl"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(bin.join("systemctl"), fs::Permissions::from_mode(0o755)).unwrap();
    let config =
        json!({ "gateway": { "requireToken": true }, "mcpServers": { "kit": entry(&kit()) } });
    put(&place, OWN, &config);
    let cursor = put(&place, ".cursor/mcp.json", &json!({}));
    // A gateway needs a token to start, and setup makes one before it runs.
    let refused = place.run(&["serve", "--http", "127.0.0.1:0"]).await;
    assert!(refused.stderr.contains("toolgate token create"), "{refused:?}");
    let before = fs::read_to_string(&cursor).unwrap();
    let first = place.run(&["setup", "--yes", "--no-probe", "--transport", "http"]).await;
    assert_eq!(first.code, Some(0), "{first:?}");
    assert!(first.stderr.contains("start it after this: `toolgate serve --http"), "{first:?}");
    let url = &servers(&cursor, "mcpServers")["toolgate"]["url"];
    assert_eq!(*url, json!("http://127.0.0.1:8808/mcp"));
    let made = place.run(&["token", "list"]).await;
    assert!(made.stdout.contains("setup-cursor"), "so the gateway starts: {made:?}");
    assert_eq!(place.run(&["setup", "--undo"]).await.code, Some(0));
    assert_eq!(fs::read_to_string(&cursor).unwrap(), before);
    assert_eq!(place.run(&["service", "install"]).await.code, Some(0));
    let done = place.run(&["setup", "--yes", "--no-probe", "--transport", "http"]).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(
        done.stdout.contains("\"Authorization\": \"[hidden]\"") && !done.stdout.contains("tgt_"),
        "{done:?}"
    );
    let entry = &servers(&cursor, "mcpServers")["toolgate"];
    let header = entry["headers"]["Authorization"].as_str().unwrap();
    assert!(header.starts_with("Bearer tgt_"), "{entry}");
    let again = place.run(&["setup", "--yes", "--no-probe", "--transport", "http"]).await;
    assert!(again.stdout.contains("nothing to write"), "{again:?}");
    let tokens = || async { place.run(&["token", "list"]).await };
    assert!(tokens().await.stdout.contains("setup-cursor"));
    // Also after the client has written to its file.
    let text = fs::read_to_string(&cursor).unwrap();
    fs::write(&cursor, text.replacen('{', "{ \"mine\": 1,", 1)).unwrap();
    let undone = place.run(&["setup", "--undo"]).await;
    assert_eq!(undone.code, Some(0), "{undone:?}");
    let left: Value = serde_json::from_str(&fs::read_to_string(&cursor).unwrap()).unwrap();
    assert_eq!(left["mine"], 1);
    assert!(left["mcpServers"].get("toolgate").is_none(), "{left}");
    let listed = tokens().await;
    assert!(!listed.stdout.contains("setup-cursor"), "{listed:?}");
}

#[tokio::test]
async fn a_file_that_has_changed_stops_no_undo() {
    let place = Workplace::empty();
    let before = all_files(place.path());
    for client in ["windsurf", "cursor"] {
        let done = place.run(&["setup", "--yes", "--no-probe", "--client", client]).await;
        assert_eq!(done.code, Some(0), "{done:?}");
    }
    let cursor = place.path().join(".cursor/mcp.json");
    fs::write(&cursor, fs::read_to_string(&cursor).unwrap() + " \n").unwrap();
    for _ in 0..2 {
        let undone = place.run(&["setup", "--undo"]).await;
        assert_eq!(undone.code, Some(0), "{undone:?}");
    }
    assert!(all_files(place.path()) == before);
    assert_eq!(place.run(&["setup", "--undo"]).await.code, Some(2));

    // An entry that somebody has changed stays, and the setup before it is undone by the next undo.
    let windsurf = put(&place, ".codeium/windsurf/mcp_config.json", &json!({}));
    let cursor = put(&place, ".cursor/mcp.json", &json!({ "a": 1 }));
    for client in ["windsurf", "cursor"] {
        let done = place.run(&["setup", "--yes", "--no-probe", "--client", client]).await;
        assert_eq!(done.code, Some(0), "{done:?}");
    }
    let text = fs::read_to_string(&cursor).unwrap();
    fs::write(&cursor, text.replace("--stdio", "--http")).unwrap();
    let first = place.run(&["setup", "--undo"]).await;
    assert_eq!(first.code, Some(1), "{first:?}");
    assert_eq!(fs::read_to_string(&windsurf).unwrap(), "{}", "{first:?}");
    // The way out that it names.
    let line = first.stdout.lines().find_map(|line| line.split_once("undo again: cp ")).unwrap().1;
    let (backup, file) = line.split_once(' ').unwrap();
    let real = |shown: &str| place.path().join(shown.strip_prefix("~/").unwrap());
    fs::copy(real(backup), real(file)).unwrap();
    // One for each setup.
    assert!(place.path().join(OWN).exists(), "the entry that stayed used it");
    for _ in 0..2 {
        let last = place.run(&["setup", "--undo"]).await;
        assert_eq!(last.code, Some(0), "{last:?}");
    }
    assert!(!place.path().join(OWN).exists());
    assert_eq!(fs::read_to_string(&cursor).unwrap(), json!({ "a": 1 }).to_string());
    assert_eq!(place.run(&["setup", "--undo"]).await.code, Some(2));
}

#[cfg(unix)]
#[tokio::test]
async fn two_clients_with_one_file_are_set_up_once() {
    let place = Workplace::empty();
    let kiro =
        put(&place, ".kiro/settings/mcp.json", &json!({ "mcpServers": { "kit": entry(&kit()) } }));
    let cursor = place.path().join(".cursor/mcp.json");
    fs::create_dir_all(cursor.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&kiro, &cursor).unwrap();
    let done = place.run(&["setup", "--yes", "--no-probe"]).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stdout.contains("Kiro has the same file as Cursor"), "{done:?}");
    assert!(servers(&kiro, "mcpServers").contains_key("toolgate"));
    assert!(fs::symlink_metadata(&cursor).unwrap().is_symlink());
}

#[tokio::test]
async fn the_variables_of_a_server_come_before_ours() {
    let mut server = entry(&kit());
    server["command"] = json!("${PROGRAM}");
    server["env"] = json!({ "PROGRAM": entry(&kit())["command"], "HOME_OF": "${PATH}" });
    let place = Workplace::new(&json!({ "mcpServers": { "kit": server } }));
    let mut client = place.connect(&[]).await;
    let said = call(&mut client, "kit_environment", json!({ "names": ["PROGRAM"] })).await;
    assert_eq!(
        said["structuredContent"]["variables"]["PROGRAM"],
        entry(&kit())["command"],
        "{said}"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn servers_are_added_in_the_words_of_the_file_and_mistakes_are_refused() {
    let place = Workplace::empty();
    for (file, text, key, expected) in [
        (
            "crush.json",
            r#"{ "mcp": { "a": { "type": "stdio", "command": "a" } } }"#,
            "mcp",
            json!({ "type": "stdio", "command": "echo", "args": ["hi"] }),
        ),
        (
            "opencode.json",
            r#"{ "mcp": { "a": { "type": "local", "command": ["a"] } } }"#,
            "mcp",
            json!({ "type": "local", "command": ["echo", "hi"], "enabled": true }),
        ),
        (
            "goose.yaml",
            "extensions:\n  a:\n    cmd: a\n    type: stdio\n",
            "extensions",
            json!({ "name": "new", "type": "stdio", "cmd": "echo", "args": ["hi"], "enabled": true, "timeout": 300 }),
        ),
    ] {
        let path = place.path().join(file);
        fs::write(&path, text).unwrap();
        let added = place.run(&["add", "new", "--config", file, "--", "echo", "hi"]).await;
        assert_eq!(added.code, Some(0), "{added:?}");
        assert_eq!(servers(&path, key)["new"], expected);
        let listed = place.run(&["list", file]).await;
        assert!(listed.stdout.contains("echo hi"), "{listed:?}");
        let removed = place.run(&["remove", "new", "--config", file]).await;
        assert_eq!(removed.code, Some(0), "{removed:?}");
        assert_eq!(servers(&path, key).keys().collect::<Vec<_>>(), ["a"]);
    }
    std::os::unix::fs::symlink(crate::support::program(), place.path().join("tg")).unwrap();
    let link = place.path().join("tg").display().to_string();
    for (arguments, said) in [
        (&["add", "tg", "--", "toolgate", "serve", "--stdio"][..], "toolgate itself"),
        (&["add", "tg", "--", &link, "serve", "--stdio"], "toolgate itself"),
        (&["add", "", "--", "echo"], "needs a name"),
        (&["add", "x", "--", "prog --flag x"], "split into args: toolgate add x -- prog --flag x"),
        (&["add", "r2", "https://h.example/mcp", "-e", "A=b"], "--env"),
    ] {
        let refused = place.run(arguments).await;
        assert_eq!(refused.code, Some(2), "{arguments:?}: {refused:?}");
        assert!(refused.stderr.contains(said), "{refused:?}");
    }
    assert!(!place.path().join(OWN).exists());
}

#[tokio::test]
async fn a_removed_server_takes_its_secret_with_it_and_no_value_is_listed() {
    let place = Workplace::empty();
    let secrets = async |arguments: &[&str]| place.run(arguments).await;
    for name in ["sec", "other"] {
        let added = place.run(&["add", name, "--env", "API_KEY=hunter2", "--", "echo"]).await;
        assert_eq!(added.code, Some(0), "{added:?}");
    }
    let listed = secrets(&["secret", "list"]).await;
    assert_eq!(listed.stdout, "other/API_KEY\nsec/API_KEY\n", "{listed:?}");
    let removed = place.run(&["remove", "sec"]).await;
    assert!(removed.stdout.contains("no longer in the vault: sec/API_KEY"), "{removed:?}");
    // Another entry that names it finds nothing.
    let text = fs::read_to_string(place.path().join(OWN)).unwrap();
    fs::write(place.path().join(OWN), text.replace("other/API_KEY", "sec/API_KEY")).unwrap();
    let listed = secrets(&["secret", "list"]).await;
    assert_eq!(listed.stdout, "sec/API_KEY (no value is stored)\n", "{listed:?}");

    let stored = place.run_with_input(&["secret", "set", "tok"], "hunter2\n").await;
    assert_eq!(stored.code, Some(0), "{stored:?}");
    put(
        &place,
        OWN,
        &json!({ "mcpServers": {
            "a": { "command": "run-${keychain:tok}" },
            "b": { "command": "SECRET_TOK=hunter2 node" },
            "c": { "command": "true", "args": ["${keychain:tok}", "--port", "80"] },
            "d": { "url": "http://127.0.0.1:9/mcp?api_key=hunter2" },
        } }),
    );
    for arguments in
        [&["list"][..], &["list", "--json"], &["status"], &["doctor"], &["doctor", "--offline"]]
    {
        let outcome = place.run(arguments).await;
        quiet(&outcome);
    }
    let listed = place.run(&["list"]).await.stdout;
    assert!(listed.contains("true ${keychain:tok} --port 80"), "{listed}");
    assert!(listed.contains("http://127.0.0.1:9/mcp?api_key=[hidden]"), "{listed}");
}

#[cfg(unix)]
#[tokio::test]
async fn commands_use_the_trusted_file_of_a_folder() {
    use crate::trust::Visit;

    let visit = Visit::new()
        .with("toolgate.json", &json!({ "mcpServers": { "mine": { "command": "echo" } } }));
    let before = visit.run(&["list"]).await;
    assert!(!before.stdout.contains("mine"), "{before:?}");
    visit.trust("y\r").await;
    let listed = visit.run(&["list"]).await;
    assert!(listed.stdout.contains("mine"), "{listed:?}");
    let added = visit.run(&["add", "new", "--", "echo"]).await;
    assert!(added.stdout.contains("Run `toolgate trust` again"), "{added:?}");
    assert!(servers(&visit.folder().join("toolgate.json"), "mcpServers").contains_key("new"));
    visit.trust("y\r").await;
    let removed = visit.run(&["remove", "new"]).await;
    assert_eq!(removed.code, Some(0), "{removed:?}");
    assert!(!servers(&visit.folder().join("toolgate.json"), "mcpServers").contains_key("new"));
}

#[tokio::test]
async fn doctor_finds_what_is_dead_and_says_what_to_do() {
    let place = Workplace::empty();
    let program = crate::support::program();
    put(
        &place,
        ".cursor/mcp.json",
        &json!({ "mcpServers": { "toolgate": { "url": "http://127.0.0.1:9/mcp" } } }),
    );
    put(
        &place,
        ".kiro/settings/mcp.json",
        &json!({ "mcpServers": { "toolgate": { "command": program, "args": ["serve", "--stdio", "--config", "/gone/toolgate.json"] } } }),
    );
    put(
        &place,
        OWN,
        &json!({
            "mcpServers": { "lazy": { "command": "no-such-program-of-doctor", "lazy": true }, "toolgate": { "command": "toolgate", "args": ["serve"] } },
            "policy": { "rules": [{ "tool": "*", "verdict": "perhaps" }] },
            "codeMode": { "timeoutSeconds": "x" },
        }),
    );
    put(
        &place,
        "app/.mcp.json",
        &json!({ "mcpServers": { "toolgate": { "command": "/gone/toolgate", "args": ["serve"] } } }),
    );
    let mut command = place.command(&["doctor", "--json"]);
    let output = command.current_dir(place.path().join("app")).output().await.unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = told["checks"].as_array().unwrap();
    let said = |text: &str| {
        let found = checks.iter().find(|it| it["message"].as_str().unwrap().contains(text));
        found.unwrap_or_else(|| panic!("{text}: {told:#}"))["severity"].clone()
    };
    assert_eq!(said("nothing answers there"), "error");
    assert_eq!(said("/gone/toolgate.json, which does not exist"), "error");
    assert_eq!(said("`/gone/toolgate`, which does not exist"), "error");
    assert_eq!(said("`no-such-program-of-doctor` was not found"), "error");
    assert_eq!(said("is toolgate itself"), "ok");
    for check in checks.iter().filter(|it| it["severity"] != "ok") {
        assert!(check["fix"].as_str().is_some_and(|fix| !fix.is_empty()), "{check}");
    }
    put(&place, ".config/bad/bad.json", &json!([]));
    let bad = place.run(&["doctor", ".config/bad/bad.json", "--json"]).await.json();
    let bad = bad["checks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["subject"] == "configuration")
        .unwrap();
    assert!(bad["fix"].is_string(), "{bad}");
}

#[tokio::test]
async fn setup_names_the_way_in_a_project_and_without_a_terminal() {
    let place = Workplace::empty();
    put(&place, "app/.mcp.json", &json!({ "mcpServers": { "kit": entry(&kit()) } }));
    let mut command = place.command(&["setup", "--dry-run"]);
    let output = command.current_dir(place.path().join("app")).output().await.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("toolgate setup --project"), "{said}");
    let alone = place.run(&["setup"]).await;
    assert!(alone.stderr.contains("--yes") && alone.stderr.contains("--dry-run"), "{alone:?}");
    // What a server costs that did not answer is not known.
    put(
        &place,
        ".cursor/mcp.json",
        &json!({ "mcpServers": { "x": { "command": "no-such-program-of-setup" } } }),
    );
    let report = place.run(&["setup", "--dry-run", "--json"]).await.json();
    assert_eq!(report["clients"][0]["tokensNow"], Value::Null, "{report}");
    // The server of a tool that nobody knows may be the reason.
    place.run(&["setup", "--yes", "--no-probe"]).await;
    let inspected = place.run(&["inspect", "x_tool"]).await;
    assert!(inspected.stdout.contains("x_tool: x cannot be asked"), "{inspected:?}");
}
