//! Nothing runs before it is trusted, and no secret is shown.

use super::*;

#[cfg(unix)]
#[tokio::test]
async fn values_of_a_folder_are_not_run_or_read_before_it_is_trusted() {
    use crate::trust::Visit;

    let mut server = entry(&kit());
    server["env"] = json!({ "A": "${command:touch RAN; echo from-a-command}", "B": "${file:key}", "C": "${keychain:mine}" });
    let visit = Visit::new().with("toolgate.json", &json!({ "mcpServers": { "kit": server } }));
    fs::write(visit.folder().join("key"), "from-a-file\n").unwrap();
    visit.user.run_with_input(&["secret", "set", "mine"], "from-the-vault").await;
    for command in [&["status"][..], &["config", "check"], &["tokens"], &["trust"]] {
        let _ = visit.run(command).await;
    }
    assert!(!visit.folder().join("RAN").exists(), "nothing is run before the trust");
    let trusted = visit.trust("y\r").await;
    for line in [
        "It runs, with your rights, for a value: touch RAN; echo from-a-command",
        "It reads a value from the file",
        "It uses these of your stored values: mine",
    ] {
        assert!(format!("{trusted:?}").contains(line), "{trusted:?}");
    }
    let mut client = visit.serve().await;
    let said = call(&mut client, "kit_environment", json!({ "names": ["A", "B", "C"] })).await;
    assert_eq!(
        said["structuredContent"]["variables"],
        json!({ "A": "from-a-command", "B": "from-a-file", "C": "from-the-vault" }),
        "{said}"
    );
    assert!(!text(&said).is_empty());
    // Another content of the file is not what was trusted.
    fs::write(visit.folder().join("key"), "other\n").unwrap();
    let status = visit.run(&["status"]).await;
    assert!(status.stderr.contains("is not trusted"), "{status:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn nothing_of_a_folder_is_run_before_it_is_trusted_and_no_command_while_planning() {
    let place = Workplace::empty();
    let touch = |name: &str| format!("touch {}", place.path().join(name).display());
    let server = json!({ "command": "sh", "args": ["-c", format!("{}; cat", touch("RAN1"))] });
    put(&place, "app/.mcp.json", &json!({ "mcpServers": { "x": server } }));
    let value = format!("$({}; echo v)", touch("RAN2"));
    let crush =
        json!({ "mcp": { "y": { "type": "stdio", "command": "cat", "env": { "B": value } } } });
    put(&place, "app/crush.json", &crush);
    let ran = || ["RAN1", "RAN2"].iter().any(|name| place.path().join(name).exists());
    let folder = place.path().join("app");
    let command = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        command.current_dir(&folder);
        command
    };
    let dry = command(&["setup", "--project", "--dry-run"]).output().await.unwrap();
    assert!(dry.status.success() && !ran(), "{dry:?}");
    let mut typist = Typist::run_command(command(&["setup", "--project"]));
    typist.sees("Write these files? [y/N] ").await.types("n\r");
    let refused = typist.end().await;
    assert!(refused.code == Some(1) && !ran(), "{refused:?}");
    let done = command(&["setup", "--project", "--yes"]).output().await.unwrap();
    assert!(done.status.success() && !ran(), "{done:?}");
    assert!(String::from_utf8_lossy(&done.stderr).contains("before you trust it"), "{done:?}");

    // A person's own server is started, but no command is run for a value.
    put(&place, ".config/crush/crush.json", &crush);
    let dry = place.run(&["setup", "--dry-run", "--json"]).await;
    assert_eq!(dry.code, Some(0), "{dry:?}");
    assert_eq!(dry.json()["servers"][0]["state"], "not started", "{dry:?}");
    assert!(!ran(), "{dry:?}");
}

#[tokio::test]
async fn secrets_of_all_kinds_go_into_the_vault_and_are_never_shown() {
    let place = Workplace::empty();
    let servers_there = json!({
        "a": { "url": "http://127.0.0.1:9/mcp?api_key=hunter2a" },
        "b": { "url": "https://bob:hunter2b@x.example/mcp" },
        "c": { "command": "npx", "args": ["mcp-remote", "https://x.example", "--header", "Authorization: Bearer hunter2c"] },
        "d": { "command": "d", "args": ["X-Api-Key:hunter2d", "-k", "hunter2e", "postgresql://bob:hunter2f@db/x"] },
        "e": { "command": "e", "args": ["--connection-string", "Server=x;Password=hunter2g;"] },
        "f": { "command": "f", "env": { "DATABASE_URL": "hunter2h", "MY_AUTH": "hunter2i", "DB_PASS": "hunter2j",
            "OPENAPI_MCP_HEADERS": "{\"Authorization\":\"Bearer hunter2k\"}" } },
    });
    let cursor = put(&place, ".cursor/mcp.json", &json!({ "mcpServers": servers_there }));
    // A secret in a comment is one too.
    let text = fs::read_to_string(&cursor).unwrap();
    fs::write(&cursor, format!("// \"apiKey\": \"hunter2z\"\n{text}")).unwrap();
    let before = fs::read_to_string(&cursor).unwrap();
    let dry = place.run(&["setup", "--dry-run", "--no-probe"]).await;
    let done = place.run(&["setup", "--yes", "--no-probe"]).await;
    for outcome in [&dry, &done] {
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        quiet(outcome);
    }
    let own = place.path().join(".config/toolgate/toolgate.json");
    let text = fs::read_to_string(&own).unwrap();
    assert!(!text.contains("hunter2"), "{text}");
    assert!(text.contains("?api_key=${keychain:a/api_key}"), "{text}");
    for arguments in [
        &["add", "g", "https://g.example/mcp?token=hunter2l"][..],
        &[
            "add",
            "h",
            "--",
            "npx",
            "mcp-remote",
            "https://x.example",
            "--header",
            "Authorization: Bearer hunter2m",
        ],
    ] {
        let added = place.run(arguments).await;
        assert_eq!(added.code, Some(0), "{added:?}");
        quiet(&added);
    }
    let text = fs::read_to_string(&own).unwrap();
    assert!(!text.contains("hunter2"), "{text}");
    // With the stored values it is the same server again, so that there is nothing new.
    fs::write(&cursor, before).unwrap();
    let again = place.run(&["setup", "--dry-run", "--no-probe", "--json"]).await.json();
    assert_eq!(again["secrets"], json!([]), "{again}");
    assert_eq!(again["clients"][0]["servers"], json!(["a", "b", "c", "d", "e", "f"]), "{again}");
}

#[cfg(unix)]
#[tokio::test]
async fn toolgate_is_not_imported_into_itself() {
    use std::os::unix::fs::PermissionsExt as _;

    let place = Workplace::empty();
    let path = |name: &str| place.path().join(name);
    std::os::unix::fs::symlink(crate::support::program(), path("tg")).unwrap();
    let script = |name: &str, text: &str| {
        fs::write(path(name), text).unwrap();
        fs::set_permissions(path(name), fs::Permissions::from_mode(0o755)).unwrap();
    };
    script("wrap.sh", "#!/bin/sh\nexec toolgate serve --stdio\n");
    // Nothing in this one tells what it starts.
    script(
        "hidden.sh",
        "#!/bin/sh\nexec \"$HOME/tg\" \"$VERB\" --stdio --config \"$HOME/other.json\"\n",
    );
    put(&place, "other.json", &json!({ "mcpServers": {} }));
    let home = place.path().to_str().unwrap();
    let servers_there = json!({
        "notes": entry(&notes()),
        "link": { "command": path("tg"), "args": ["serve", "--stdio"] },
        "wrap": { "command": path("wrap.sh") },
        "npx": { "command": "npx", "args": ["-y", "toolgate", "serve", "--stdio"] },
        "http": { "url": "http://127.0.0.1:8808/mcp" },
        "hidden": { "command": path("hidden.sh"), "env": { "VERB": "serve", "HOME": home } },
    });
    let cursor = put(&place, ".cursor/mcp.json", &json!({ "mcpServers": servers_there }));
    let done = place.run(&["setup", "--yes"]).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    let own = servers(&path(".config/toolgate/toolgate.json"), "mcpServers");
    assert_eq!(own.keys().collect::<Vec<_>>(), ["notes"], "{done:?}");
    let left = servers(&cursor, "mcpServers");
    for name in ["link", "wrap", "npx", "http", "hidden"] {
        let line = format!("note: `{name}` of Cursor is toolgate itself: it is left out");
        assert_eq!(done.stdout.matches(&line).count(), 1, "{line}: {}", done.stdout);
        assert_eq!(left[name], servers_there[name]);
    }
}
