//! Servers that are added, listed and removed, and the gateway that clients share.

use super::*;

#[tokio::test]
async fn servers_are_added_listed_and_removed_in_place() {
    let place = Workplace::empty();
    let own = place.path().join(".config/toolgate/toolgate.json");
    let FixtureEntry { command, args } = kit().entry().unwrap();
    let mut words =
        vec!["add", "kit", "--env", "API_KEY=hunter2", "--env", "REGION=north", "--", &command];
    words.extend(args.iter().map(String::as_str));
    let added = place.run(&words).await;
    assert_eq!(added.code, Some(0), "{added:?}");
    assert_eq!(
        added.stdout,
        "Added kit to ~/.config/toolgate/toolgate.json.\nIts secret is in the vault: ${keychain:kit/API_KEY}.\n"
    );
    let commented = fs::read_to_string(&own).unwrap().replacen('{', "{ // mine", 1);
    fs::write(&own, &commented).unwrap();
    let added = place
        .run(&["add", "https://mcp.linear.app/mcp", "--header", "Authorization: Bearer hunter2"])
        .await;
    assert_eq!(added.code, Some(0), "{added:?}");
    let twice = place.run(&["add", "linear", "https://mcp.linear.app/mcp"]).await;
    assert_eq!(twice.code, Some(2), "{twice:?}");
    let text = fs::read_to_string(&own).unwrap();
    assert!(text.starts_with("{ // mine") && !text.contains("hunter2"), "{text}");
    let said = place
        .run(&["call", "kit_environment", "--arg", "names=[\"API_KEY\",\"REGION\"]", "--json"])
        .await
        .json();
    assert_eq!(
        said["structuredContent"]["variables"],
        json!({ "API_KEY": "hunter2", "REGION": "north" }),
        "{said}"
    );
    let listed = place.run(&["list"]).await;
    assert!(
        listed.stdout.contains("linear") && listed.stdout.contains("https://mcp.linear.app/mcp\n"),
        "{listed:?}"
    );
    let removed = place.run(&["remove", "linear"]).await;
    assert_eq!(
        removed.stdout,
        "Removed linear from ~/.config/toolgate/toolgate.json.\nIts secret is no longer in the vault: linear/Authorization.\n"
    );
    assert_eq!(fs::read_to_string(&own).unwrap(), commented, "everything else is as it was");
    let unknown = place.run(&["remove", "kitt"]).await;
    assert!(unknown.stderr.contains("did you mean kit?"), "{unknown:?}");
    let nothing = place.run(&["add", "nothing"]).await;
    assert_eq!(nothing.code, Some(2), "{nothing:?}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_service_is_installed_shared_and_removed() {
    use std::os::unix::fs::PermissionsExt as _;

    let place = Workplace::empty();
    let bin = place.path().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("systemctl"), "#!/bin/sh\necho \"$@\" >> \"$HOME/systemctl.log\"\n")
        .unwrap();
    fs::set_permissions(bin.join("systemctl"), fs::Permissions::from_mode(0o755)).unwrap();
    let unit = place.path().join(".config/systemd/user/toolgate.service");
    let early = place.run(&["service", "install"]).await;
    assert!(early.stderr.contains("there is no configuration for the service"), "{early:?}");
    let cursor = place.path().join(".cursor/mcp.json");
    fs::create_dir_all(cursor.parent().unwrap()).unwrap();
    fs::write(&cursor, json!({ "mcpServers": { "notes": entry(&notes()) } }).to_string()).unwrap();
    let refused = place.run(&["setup", "--yes", "--transport", "http"]).await;
    assert!(refused.stderr.contains("toolgate service install"), "{refused:?}");
    assert_eq!(place.run(&["setup", "--yes", "--no-probe"]).await.code, Some(0));

    let dry = place.run(&["service", "install", "--dry-run"]).await;
    assert!(dry.stdout.contains("ExecStart=") && !unit.exists(), "{dry:?}");
    let public = place.run(&["service", "install", "--http", "0.0.0.0:1"]).await;
    assert_eq!(public.code, Some(2), "{public:?}");
    let port =
        std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let installed = place.run(&["service", "install", "--http", &port]).await;
    assert_eq!(installed.code, Some(0), "{installed:?}");
    let text = fs::read_to_string(&unit).unwrap();
    assert!(text.contains(&format!("\"serve\" \"--http\" \"{port}\" \"--config\"")), "{text}");
    let ran = fs::read_to_string(place.path().join("systemctl.log")).unwrap();
    assert_eq!(ran, "--user daemon-reload\n--user enable --now toolgate.service\n");
    let status = place.run(&["service", "status", "--json"]).await;
    assert_eq!(status.json()["installed"], true);
    assert_eq!(status.json()["answers"], false);

    let shared = place.run(&["setup", "--yes", "--no-probe", "--transport", "http"]).await;
    assert_eq!(shared.code, Some(0), "{shared:?}");
    assert_eq!(
        servers(&cursor, "mcpServers")["toolgate"],
        json!({ "url": format!("http://{port}/mcp") })
    );
    let removed = place.run(&["service", "remove"]).await;
    assert_eq!(removed.code, Some(0), "{removed:?}");
    assert!(!unit.exists());
    assert_eq!(place.run(&["service", "status"]).await.code, Some(1));
}

#[tokio::test]
async fn a_server_of_a_registry_is_added_after_a_person_has_seen_it() {
    let place = Workplace::empty();
    let own = place.path().join(".config/toolgate/toolgate.json");
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    fs::write(&own, "{\n  // mine\n  \"registry\": { \"sources\": [\"./servers\"] }\n}\n").unwrap();
    let folder = own.parent().unwrap().join("servers");
    fs::create_dir(&folder).unwrap();
    let server = json!({
        "name": "io.github.acme/sums", "version": "1.0.0", "description": "Adds numbers up",
        "packages": [{ "registryType": "npm", "identifier": "@acme/sums", "version": "1.0.0",
            "environmentVariables": [{ "name": "SUMS_KEY", "isSecret": true }] }],
    });
    fs::write(folder.join("sums.json"), server.to_string()).unwrap();
    let other = json!({ "name": "io.github.acme/notes", "version": "2.0.0", "description": "Keeps \u{202e}notes" });
    fs::write(folder.join("notes.json"), other.to_string()).unwrap();
    let all = place.run(&["list", "--registry"]).await;
    assert!(
        all.stdout.contains("io.github.acme/sums") && all.stdout.contains("Keeps \\u{202e}notes"),
        "{all:?}"
    );
    let found = place.run(&["list", "--registry=NUMBERS acme", "--json"]).await.json();
    assert_eq!(found["servers"].as_array().unwrap().len(), 1, "{found}");
    assert_eq!(found["servers"][0]["name"], "io.github.acme/sums");
    let none = place.run(&["list", "--registry=nothing like it"]).await;
    assert!(none.stderr.contains("No server of the registry has these words"), "{none:?}");
    let arguments = ["add", "io.github.acme/sums", "--from-registry"];
    let before = fs::read_to_string(&own).unwrap();
    let alone = place.run(&arguments).await;
    assert_eq!(alone.code, Some(2), "{alone:?}");
    assert_eq!(fs::read_to_string(&own).unwrap(), before, "nobody has agreed");
    let added = agree(&place, &arguments).await;
    assert_eq!(added.code, Some(0), "{added:?}");
    assert!(
        added.stderr.contains("It runs, with your rights: npx -y @acme/sums@1.0.0"),
        "{added:?}"
    );
    let text = fs::read_to_string(&own).unwrap();
    assert!(text.starts_with("{\n  // mine\n"), "{text}");
    let entry = &servers(&own, "mcpServers")["sums"];
    assert_eq!(entry["args"], json!(["-y", "@acme/sums@1.0.0"]), "{text}");
    assert_eq!(entry["inheritEnv"], json!(["SUMS_KEY"]), "{text}");
}

#[tokio::test]
async fn the_file_for_continue_is_printed_and_can_be_read() {
    let place = Workplace::empty();
    put(&place, ".cursor/mcp.json", &json!({ "mcpServers": { "notes": entry(&notes()) } }));
    let without = place.run(&["setup", "--dry-run", "--no-probe"]).await;
    assert!(!without.stdout.contains("Continue"), "{without:?}");
    let folder = place.path().join(".continue/mcpServers");
    fs::create_dir_all(&folder).unwrap();
    let shown = place.run(&["setup", "--yes", "--no-probe"]).await;
    let (_, text) = shown.stdout.split_once("toolgate.yaml yourself:\n").unwrap();
    let (text, _) = text.split_once("\n\n").unwrap();
    let file = folder.join("toolgate.yaml");
    fs::write(&file, text).unwrap();
    let checked =
        place.run(&["config", "check", ".continue/mcpServers/toolgate.yaml", "--json"]).await;
    // It is read as an entry, and recognised.
    assert!(checked.stdout.contains("is toolgate itself"), "{checked:?}");
    let again = place.run(&["setup", "--dry-run", "--no-probe"]).await;
    assert!(!again.stdout.contains("Continue"), "{again:?}");
}
