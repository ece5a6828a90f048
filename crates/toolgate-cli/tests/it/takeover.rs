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
    // Neither of the two needs the other first.
    let refused = place.run(&["serve", "--http", "127.0.0.1:0"]).await;
    assert!(refused.stderr.contains("toolgate token create"), "{refused:?}");
    let refused = place.run(&["setup", "--yes", "--no-probe", "--transport", "http"]).await;
    assert!(refused.stderr.contains("toolgate token create"), "{refused:?}");
    assert_eq!(place.run(&["service", "install"]).await.code, Some(0));
    let done = place.run(&["setup", "--yes", "--no-probe", "--transport", "http"]).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stdout.contains("Bearer [hidden]") && !done.stdout.contains("tgt_"), "{done:?}");
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
    let last = place.run(&["setup", "--undo"]).await;
    assert_eq!(last.code, Some(0), "{last:?}");
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
