//! `toolgate setup` in a home with the files of many clients: what it writes works, and undo restores every byte.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::{Path, PathBuf},
};

use futures::StreamExt as _;
use serde_json::{Map, Value, json};
use toolgate_config::{Format, as_written};
use toolgate_testkit::{FixtureEntry, RawClient, RealServers, installed_servers, within};

use crate::{
    fixtures::{kit, notes, weather},
    support::{Outcome, Workplace, call, entry, list, names, text},
    typist::{Typist, agree},
};

const SECRET: &str = "hunter2-of-the-client";

/// The program of a fixture and its arguments, each as a JSON text, which TOML and YAML read too.
fn program(fixture: &toolgate_testkit::Fixture) -> (String, String) {
    let entry = entry(fixture);
    let args: Vec<String> =
        entry["args"].as_array().unwrap().iter().map(ToString::to_string).collect();
    (entry["command"].to_string(), args.join(", "))
}

/// The files of a home, as people and clients write them, with the key that leads to the servers.
#[expect(clippy::too_many_lines, reason = "one file after the other")]
fn files() -> Vec<(&'static str, &'static str, String)> {
    let (kit, kit_args) = program(&kit());
    let (notes, notes_args) = program(&notes());
    let (weather, weather_args) = program(&weather());
    vec![
        (
            ".config/Claude/claude_desktop_config.json",
            "mcpServers",
            format!(
                "{{\n    \"mcpServers\": {{\n        \"notes\": {{\"command\": {notes}, \"args\": [{notes_args}]}}\n    }}\n}}"
            ),
        ),
        (
            ".claude.json",
            "mcpServers",
            format!(
                "{{\n  \"numStartups\": 41,\n  \"mcpServers\": {{ \"kit\": {{ \"type\": \"stdio\", \"command\": {kit}, \"args\": [{kit_args}], \"env\": {{ \"GITHUB_TOKEN\": \"{SECRET}\" }} }} }},\n  \"projects\": {{ \"/src/app\": {{ \"mcpServers\": {{ \"local\": {{ \"command\": \"x\" }} }}, \"history\": [\"fix it\"] }} }}\n}}\n"
            ),
        ),
        (
            ".cursor/mcp.json",
            "mcpServers",
            format!(
                "{{ \"mcpServers\" : {{\n\t\"github\" : {{ \"command\" : {kit}, \"args\" : [ {kit_args} ],\n\t\t\"env\" : {{ \"GITHUB_TOKEN\" : \"{SECRET}\" }} }} }} }}\r\n"
            ),
        ),
        (
            ".config/Code/User/mcp.json",
            "servers",
            format!(
                "// of VS Code\n{{\n\t\"inputs\": [ {{ \"id\": \"key\", \"type\": \"promptString\", \"description\": \"Key\", \"password\": true }}, ],\n\t\"servers\": {{\n\t\t// the weather\n\t\t\"notes\": {{ \"type\": \"stdio\", \"command\": {weather}, \"args\": [{weather_args}] }},\n\t}},\n}}\n"
            ),
        ),
        (
            ".codeium/windsurf/mcp_config.json",
            "mcpServers",
            format!(
                "{{\"mcpServers\":{{\"notes\":{{\"command\":{notes},\"args\":[{notes_args}],\"disabled\":false}},\"off\":{{\"command\":\"never\",\"disabled\":true}}}}}}"
            ),
        ),
        (
            ".gemini/settings.json",
            "mcpServers",
            format!(
                "{{\n  \"theme\": \"GitHub\", \"selectedAuthType\": \"oauth-personal\",\n  \"mcpServers\": {{ \"w\": {{ \"command\": {weather}, \"args\": [{weather_args}], \"timeout\": 30000 }} }},\n  \"mcp\": {{ \"allowed\": [\"w\"] }}\n}}\n"
            ),
        ),
        (
            ".codex/config.toml",
            "mcp_servers",
            format!(
                "model = \"o9\" # mine\nmodel_reasoning_effort = \"high\"\n\n[mcp_servers.kit] # github\ncommand = {kit}\nargs = [{kit_args},]\n\n[mcp_servers.kit.env]\nGITHUB_TOKEN = \"{SECRET}\"\n\n[tui]\nnotifications = true\n"
            ),
        ),
        (".config/.copilot-is-elsewhere", "", String::new()),
        (
            ".copilot/mcp-config.json",
            "mcpServers",
            format!(
                "{{\n  \"mcpServers\": {{\n    \"w\": {{ \"type\": \"local\", \"command\": {weather}, \"args\": [{weather_args}], \"tools\": [\"*\"] }}\n  }}\n}}\n"
            ),
        ),
        (
            ".config/zed/settings.json",
            "context_servers",
            format!(
                "// Zed settings\n//\n{{\n  \"ui_font_size\": 16,\n  \"context_servers\": {{\n    \"notes\": {{ \"source\": \"custom\", \"command\": {notes}, \"args\": [{notes_args}], \"env\": {{}} }}\n  }},\n  \"theme\": {{ \"mode\": \"system\" }}, // mine\n}}\n"
            ),
        ),
        (
            ".config/goose/config.yaml",
            "extensions",
            format!(
                "GOOSE_PROVIDER: anthropic # mine\nextensions:\n  developer:\n    enabled: true\n    type: builtin\n    name: developer\n  weather: # outside\n    enabled: true\n    type: stdio\n    name: weather\n    cmd: {weather}\n    args: [{weather_args}]\n    envs: {{}}\n    timeout: 300\nGOOSE_MODE: auto\n"
            ),
        ),
        (
            ".config/opencode/opencode.jsonc",
            "mcp",
            format!(
                "{{\n  \"$schema\": \"https://opencode.ai/config.json\",\n  // servers\n  \"mcp\": {{\n    \"notes\": {{ \"type\": \"local\", \"command\": [{notes}, {notes_args}], \"enabled\": true, \"environment\": {{}} }}, // all\n    \"team\": {{ \"enabled\": false }},\n  }},\n}}\n"
            ),
        ),
        (
            ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            "mcpServers",
            format!(
                "{{\n  \"mcpServers\": {{\n    \"github\": {{\n      \"autoApprove\": [\"echo\"],\n      \"disabled\": false,\n      \"timeout\": 60,\n      \"command\": {kit},\n      \"args\": [{kit_args}],\n      \"env\": {{ \"GITHUB_TOKEN\": \"{SECRET}\" }}\n    }}\n  }}\n}}"
            ),
        ),
        (
            ".config/amp/settings.json",
            "amp.mcpServers",
            format!(
                "{{\n  \"amp.notifications.enabled\": false, // quiet\n  \"amp.mcpServers\": {{ \"notes\": {{ \"command\": {notes}, \"args\": [{notes_args}] }} }}\n}}\n"
            ),
        ),
        (
            ".config/crush/crush.json",
            "mcp",
            format!(
                "{{\n  \"mcp\": {{ \"notes\": {{ \"type\": \"stdio\", \"command\": {notes}, \"args\": [{notes_args}], \"timeout\": 120 }} }},\n  \"lsp\": {{}}\n}}\n"
            ),
        ),
        (
            ".kiro/settings/mcp.json",
            "mcpServers",
            format!(
                "{{\"mcpServers\": {{\"notes\": {{\"command\": {notes}, \"args\": [{notes_args}], \"autoApprove\": []}}}}}}\n"
            ),
        ),
        (
            ".kimi-code/mcp.json",
            "mcpServers",
            format!(
                "{{ \"mcpServers\": {{ \"weather\": {{ \"transport\": \"stdio\", \"command\": {weather}, \"args\": [{weather_args}] }} }} }}"
            ),
        ),
        (".lmstudio/mcp.json", "mcpServers", "{\n  \"mcpServers\": {}\n}".to_owned()),
    ]
}

fn write_all(place: &Workplace) -> Vec<(PathBuf, &'static str, String)> {
    let files = files().into_iter().filter(|(_, key, _)| !key.is_empty());
    let files = files.map(|(path, key, text)| (place.path().join(path), key, text));
    let files: Vec<_> = files.collect();
    for (path, _, text) in &files {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    files
}

/// Every file below a folder with its content, but for the state folder.
pub(crate) fn all_files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        if path.ends_with("state") {
            continue;
        }
        if path.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            all.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    all
}

pub(crate) fn servers(path: &Path, key: &str) -> Map<String, Value> {
    let text = fs::read_to_string(path).unwrap();
    let root =
        as_written(&text, Format::of_file(path), "").unwrap_or_else(|error| panic!("{error}"));
    root[key].as_object().unwrap().clone()
}

/// Starts what the entry of a client says, as the client would: with its variables, and without ours.
async fn start(place: &Workplace, entry: &Value) -> RawClient {
    let words = if let Value::Array(words) = &entry["command"] {
        words.clone()
    } else {
        let command = if entry["cmd"].is_null() { &entry["command"] } else { &entry["cmd"] };
        let args = entry["args"].as_array().unwrap().iter();
        std::iter::once(command).chain(args).cloned().collect()
    };
    let words: Vec<String> = words.iter().map(|word| word.as_str().unwrap().to_owned()).collect();
    let program = FixtureEntry { command: words[0].clone(), args: words[1..].to_vec() };
    let home = place.path().display().to_string();
    let mut environment = HashMap::from([("HOME", home.as_str())]);
    for key in ["env", "environment", "envs"] {
        for (name, value) in entry[key].as_object().into_iter().flatten() {
            environment.insert(name, value.as_str().unwrap());
        }
    }
    let mut client = RawClient::spawn_with(&program, &environment).unwrap();
    client.initialize().await.unwrap();
    client
}

pub(crate) fn quiet(outcome: &Outcome) {
    assert!(!format!("{outcome:?}").contains("hunter2"), "a secret is shown: {outcome:?}");
}

#[tokio::test]
async fn seventeen_clients_use_toolgate_and_get_their_files_back() {
    let place = Workplace::empty();
    let files = write_all(&place);
    assert_eq!(files.len(), 17);
    let before = all_files(place.path());

    let dry = place.run(&["setup", "--dry-run", "--no-probe"]).await;
    assert_eq!(dry.code, Some(0), "{dry:?}");
    quiet(&dry);
    assert!(
        dry.stdout.contains("Nothing was written") && dry.stdout.contains("+++ ~/.cursor/mcp.json"),
        "{}",
        dry.stdout
    );
    assert!(all_files(place.path()) == before, "--dry-run writes nothing");

    let done = place.run(&["setup", "--yes"]).await;
    assert_eq!(done.code, Some(0), "{}\n{}", done.stdout, done.stderr);
    quiet(&done);
    assert!(done.stdout.contains("tokens of tools and instructions instead of"), "{}", done.stdout);
    assert!(done.stdout.contains("Cursor: it reloads by itself"), "{}", done.stdout);
    assert!(
        done.stdout.contains("a secret goes into the vault, as ${keychain:kit/GITHUB_TOKEN}"),
        "{}",
        done.stdout
    );

    // One file with each server once, and no secret in it.
    let own = place.path().join(".config/toolgate/toolgate.json");
    let text = fs::read_to_string(&own).unwrap();
    assert!(!text.contains("hunter2"), "{text}");
    let imported = servers(&own, "mcpServers");
    assert_eq!(imported.keys().collect::<Vec<_>>(), ["notes", "kit", "notes-2"], "{text}");
    assert_eq!(imported["kit"]["env"]["GITHUB_TOKEN"], "${keychain:kit/GITHUB_TOKEN}");

    // Servers that were taken over are off or gone, and the rest is as it was.
    for (path, key, _) in &files {
        let left = servers(path, key);
        assert!(left.contains_key("toolgate"), "{}", path.display());
        for (name, entry) in
            left.iter().filter(|(name, _)| *name != "toolgate" && *name != "developer")
        {
            let is_off = entry["enabled"] == false || entry["disabled"] == true;
            assert!(is_off, "{name} of {} is still on", path.display());
        }
    }
    let zed = fs::read_to_string(place.path().join(".config/zed/settings.json")).unwrap();
    assert!(
        zed.starts_with("// Zed settings\n//\n{\n  \"ui_font_size\": 16,")
            && zed.ends_with("\"theme\": { \"mode\": \"system\" }, // mine\n}\n"),
        "{zed}"
    );
    let code = fs::read_to_string(place.path().join(".config/Code/User/mcp.json")).unwrap();
    assert!(code.contains("\"inputs\": [ { \"id\": \"key\""), "{code}");

    // What is in the file of each client starts, answers, and has the secret of the server.
    let uses = files.iter().map(async |(path, key, _)| {
        let mut client = start(&place, &servers(path, key)["toolgate"]).await;
        let tools = list(&mut client).await;
        assert!(names(&tools).contains(&"kit_echo"), "{}: {:?}", path.display(), names(&tools));
        let said = call(&mut client, "kit_environment", json!({ "names": ["GITHUB_TOKEN"] })).await;
        let variables = &said["structuredContent"]["variables"];
        assert_eq!(variables["GITHUB_TOKEN"], SECRET, "{}", path.display());
    });
    // As many at once as the machine has processors, more or less.
    futures::stream::iter(uses).buffer_unordered(4).collect::<Vec<()>>().await;

    // A second time there is nothing to do.
    let between = all_files(place.path());
    let again = place.run(&["setup", "--yes"]).await;
    assert!(again.stdout.contains("nothing to write"), "{}", again.stdout);
    assert!(all_files(place.path()) == between);

    // All other commands find the file, and say which it is.
    let status = place.run(&["search", "forecast"]).await;
    assert_eq!(status.code, Some(0), "{status:?}");
    assert!(status.stderr.contains("using ~/.config/toolgate/toolgate.json"), "{status:?}");

    let undone = place.run(&["setup", "--undo"]).await;
    assert_eq!(undone.code, Some(0), "{undone:?}");
    assert!(
        all_files(place.path()) == before,
        "every byte is what it was, and nothing is left: {undone:?}"
    );
    let nothing = place.run(&["setup", "--undo"]).await;
    assert_eq!(nothing.code, Some(2), "{nothing:?}");
}

#[tokio::test]
async fn what_fails_is_a_row_and_stops_nothing() {
    let place = Workplace::empty();
    let notes = entry(&notes());
    let cursor = place.path().join(".cursor/mcp.json");
    fs::create_dir_all(cursor.parent().unwrap()).unwrap();
    let broken = json!({ "command": "no-such-program-of-setup" });
    let unset = json!({ "command": "x", "env": { "A": "${input:my-key}" } });
    fs::write(
        &cursor,
        json!({ "mcpServers": { "notes": notes, "broken": broken, "unset": unset } }).to_string(),
    )
    .unwrap();
    let kiro = place.path().join(".kiro/settings/mcp.json");
    fs::create_dir_all(kiro.parent().unwrap()).unwrap();
    fs::write(&kiro, "{ not json").unwrap();

    let done = place.run(&["setup", "--yes", "--json"]).await;
    assert_eq!(done.code, Some(1), "{done:?}");
    let report = done.json();
    let rows = report["servers"].as_array().unwrap();
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap();
    assert_eq!(row("notes")["state"], "ready");
    assert!(row("broken")["reason"].is_string() && row("broken")["action"].is_string(), "{report}");
    // What toolgate cannot use stays where it works.
    assert_eq!(
        row("unset")["action"],
        "it stays in Cursor as it is; store it: `toolgate secret set my-key`, and run setup again"
    );
    assert_eq!(servers(&cursor, "mcpServers").keys().collect::<Vec<_>>(), ["unset", "toolgate"]);
    let kiro_row =
        report["clients"].as_array().unwrap().iter().find(|it| it["client"] == "kiro").unwrap();
    let problem = kiro_row["problem"].as_str().unwrap();
    assert!(problem.starts_with("~/.kiro/settings/mcp.json:1:"), "{report}");
    assert_eq!(fs::read_to_string(&kiro).unwrap(), "{ not json");
    assert!(report["tokensBefore"].as_u64().unwrap() > 0, "{report}");

    // The value can be set, and is used from then on.
    let stored = place.run_with_input(&["secret", "set", "my-key"], "hunter2\n").await;
    assert_eq!(stored.code, Some(0), "{stored:?}");
    quiet(&stored);
    let again = place.run(&["setup", "--yes", "--no-probe"]).await;
    assert!(!servers(&cursor, "mcpServers").contains_key("unset"), "{again:?}");
    let listed = place.run(&["list", "--json"]).await.json();
    assert_eq!(listed["file"], "~/.config/toolgate/toolgate.json");
    let unset = listed["servers"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["name"] == "unset")
        .unwrap()
        .clone();
    assert_eq!(unset["state"], "enabled", "{listed}");

    // What was changed since stays, and is shown.
    fs::write(&cursor, fs::read_to_string(&cursor).unwrap().replace("\"toolgate\"", "\"mine\""))
        .unwrap();
    let undone = place.run(&["setup", "--undo"]).await;
    assert_eq!(undone.code, Some(0), "{undone:?}");
    assert!(undone.stdout.contains("\"mine\""), "{undone:?}");
    let own = place.path().join(".config/toolgate/toolgate.json");
    for _ in 0..2 {
        // The entry in the file that stays still works.
        let undone = place.run(&["setup", "--undo"]).await;
        assert_eq!(undone.code, Some(1), "{undone:?}");
        assert!(undone.stdout.contains("stays, because ~/.cursor/mcp.json uses it"), "{undone:?}");
        assert!(own.exists(), "{undone:?}");
    }
    fs::write(&cursor, "{}").unwrap();
    let undone = place.run(&["setup", "--undo"]).await;
    assert_eq!(undone.code, Some(0), "{undone:?}");
    assert!(!own.exists(), "{undone:?}");
    let back = servers(&cursor, "mcpServers");
    assert_eq!(back.keys().collect::<Vec<_>>(), ["notes", "broken"], "{undone:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_person_is_asked_where_two_differ_and_before_anything_is_written() {
    let place = Workplace::empty();
    let mut one = entry(&kit());
    one["env"] = json!({ "REGION": "north" });
    let mut two = one.clone();
    two["env"] = json!({ "REGION": "south" });
    for (file, server) in [(".cursor/mcp.json", &one), (".kiro/settings/mcp.json", &two)] {
        let path = place.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, json!({ "mcpServers": { "kit": server } }).to_string()).unwrap();
    }
    let before = all_files(place.path());
    let mut typist = Typist::start(&place, &["setup", "--no-probe"]);
    typist.sees("Use the [F]irst, the [s]econd, or [b]oth? ").await.types("s\r");
    typist.sees("Write these files? [y/N] ").await.types("n\r");
    let refused = typist.end().await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(all_files(place.path()) == before);

    let mut typist = Typist::start(&place, &["setup", "--no-probe"]);
    typist.sees("[b]oth? ").await.types("b\r");
    typist.sees("Write these files? [y/N] ").await.types("y\r");
    let done = typist.end().await;
    assert_eq!(done.code, Some(0), "{done:?}");
    let own = servers(&place.path().join(".config/toolgate/toolgate.json"), "mcpServers");
    assert_eq!(
        (&own["kit"]["env"]["REGION"], &own["kit-2"]["env"]["REGION"]),
        (&json!("north"), &json!("south"))
    );
    assert!(done.stdout.contains("`kit` of Kiro is called `kit-2`"), "{done:?}");
    // Without a terminal and --yes nothing is done.
    let alone = place.run(&["setup"]).await;
    assert_eq!(alone.code, Some(2), "{alone:?}");
}

#[tokio::test]
async fn a_client_is_set_up_by_name_and_a_project_by_itself() {
    let place = Workplace::empty();
    let done = place.run(&["setup", "--yes", "--no-probe", "--client", "cursor"]).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(servers(&place.path().join(".cursor/mcp.json"), "mcpServers").contains_key("toolgate"));
    let folder = place.path().join("app");
    fs::create_dir(&folder).unwrap();
    let folder = folder.canonicalize().unwrap();
    let notes = entry(&notes());
    fs::write(folder.join(".mcp.json"), json!({ "mcpServers": { "notes": notes } }).to_string())
        .unwrap();
    let local = json!({ "projects": { folder.to_str().unwrap(): { "mcpServers": { "w": entry(&weather()) } }, "/other": { "mcpServers": { "x": { "command": "x" } } } } });
    fs::write(place.path().join(".claude.json"), local.to_string()).unwrap();
    let mut command = place.command(&["setup", "--project", "--yes", "--no-probe"]);
    let output = command.current_dir(&folder).output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    let own = servers(&folder.join("toolgate.json"), "mcpServers");
    assert_eq!(own.keys().collect::<Vec<_>>(), ["notes", "w"]);
    let project = servers(&folder.join(".mcp.json"), "mcpServers");
    assert_eq!(
        project["toolgate"]["args"],
        json!(["serve", "--stdio"]),
        "the folder's file needs trust"
    );
    let claude: Value =
        serde_json::from_str(&fs::read_to_string(place.path().join(".claude.json")).unwrap())
            .unwrap();
    assert!(
        claude["projects"][folder.to_str().unwrap()]["mcpServers"]["toolgate"].is_object(),
        "{claude}"
    );
    assert_eq!(claude["projects"]["/other"], local["projects"]["/other"]);
}

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

/// Writes a file of the home.
pub(crate) fn put(place: &Workplace, path: &str, content: &Value) -> PathBuf {
    let path = place.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content.to_string()).unwrap();
    path
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

#[tokio::test]
async fn two_setups_at_once_are_undone_one_after_the_other() {
    let place = Workplace::empty();
    let cursor = put(&place, ".cursor/mcp.json", &json!({}));
    let windsurf = put(&place, ".codeium/windsurf/mcp_config.json", &json!({}));
    let before = all_files(place.path());
    for client in ["cursor", "windsurf"] {
        let done = place.run(&["setup", "--yes", "--no-probe", "--client", client]).await;
        assert_eq!(done.code, Some(0), "{done:?}");
    }
    for file in [&windsurf, &cursor] {
        assert_ne!(fs::read_to_string(file).unwrap(), "{}");
        let undone = place.run(&["setup", "--undo"]).await;
        assert_eq!(undone.code, Some(0), "{undone:?}");
        assert_eq!(fs::read_to_string(file).unwrap(), "{}", "{undone:?}");
    }
    assert!(all_files(place.path()) == before);
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

#[cfg(unix)]
#[tokio::test]
async fn differences_of_tools_are_named_and_costs_are_honest() {
    let place = Workplace::empty();
    let mut less = entry(&kit());
    less["disabled_tools"] = json!(["echo"]);
    let mut approved = entry(&kit());
    approved["alwaysAllow"] = json!(["echo"]);
    put(&place, ".cursor/mcp.json", &json!({ "mcpServers": { "kit": entry(&kit()) } }));
    put(&place, ".config/crush/crush.json", &json!({ "mcp": { "c1": less } }));
    put(&place, ".roo/unused.json", &json!({}));
    put(&place, ".kiro/settings/mcp.json", &json!({ "mcpServers": { "kit": approved } }));
    put(&place, ".codeium/windsurf/mcp_config.json", &json!({ "mcpServers": {} }));
    let dry = place.run(&["setup", "--dry-run"]).await;
    assert_eq!(dry.code, Some(0), "{dry:?}");
    for line in [
        "`c1` of Crush is the same server as `kit` of Cursor, but has another disabled_tools: the first one is used",
        "`alwaysAllow` of `kit` of Kiro is not taken over",
        "Windsurf: a session starts with ",
    ] {
        assert!(dry.stdout.contains(line), "{line}: {}", dry.stdout);
    }
    let report = place.run(&["setup", "--dry-run", "--json"]).await.json();
    let tokens = place.run(&["tokens", "--json", "--config", ".cursor/mcp.json"]).await.json();
    assert_eq!(report["tokensBefore"], tokens["modes"]["without"]["together"], "{tokens}");
    let cursor = report["clients"].as_array().unwrap().iter().find(|it| it["client"] == "cursor");
    assert_eq!(cursor.unwrap()["tokensNow"], report["tokensBefore"], "{report}");

    // No answer but the three is taken for one of them.
    let before = all_files(place.path());
    let mut typist = Typist::start(&place, &["setup", "--no-probe"]);
    typist.sees("[b]oth? ").await.types("n\r");
    let refused = typist.end().await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(all_files(place.path()) == before);
}

/// The output of a real client in this home.
async fn asked(
    servers: &RealServers,
    place: &Workplace,
    program: &str,
    arguments: &[&str],
) -> String {
    let mut command =
        tokio::process::Command::new(servers.node_modules().join(".bin").join(program));
    command.args(arguments).current_dir(place.path()).env_clear().kill_on_drop(true);
    command.env("PATH", std::env::var("PATH").unwrap()).env("HOME", place.path());
    // Nothing of the network is needed for this.
    command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1").env("DISABLE_AUTOUPDATER", "1");
    let output =
        within(program, command.stdin(std::process::Stdio::null()).output()).await.unwrap();
    assert!(output.status.success(), "{output:?}");
    // Gemini CLI lists on stderr.
    let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    String::from_utf8(text).unwrap()
}

#[tokio::test]
async fn real_clients_use_what_was_written_and_it_is_taken_back_after_they_ran() {
    let Some(servers) = installed_servers() else { return };
    let place = Workplace::empty();
    let wanted =
        [".claude.json", ".codex/config.toml", ".cursor/mcp.json", ".gemini/settings.json"];
    let files: Vec<_> = files().into_iter().filter(|(path, ..)| wanted.contains(path)).collect();
    for (path, _, text) in &files {
        let path = place.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let done = place.run(&["setup", "--yes", "--no-probe"]).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    let listed: Value =
        serde_json::from_str(&asked(&servers, &place, "codex", &["mcp", "list", "--json"]).await)
            .unwrap();
    let state = |name: &str| {
        listed
            .as_array()
            .unwrap()
            .iter()
            .find(|it| it["name"] == name)
            .map(|it| it["enabled"] == true)
    };
    assert_eq!((state("toolgate"), state("kit")), (Some(true), Some(false)), "{listed}");
    // These start the server, and ask for its tools.
    let listed = asked(&servers, &place, "claude", &["mcp", "list"]).await;
    let lines: Vec<&str> = listed.lines().filter(|line| line.contains(": ")).collect();
    assert_eq!(lines.len(), 1, "{listed}");
    assert!(lines[0].starts_with("toolgate: ") && lines[0].ends_with("Connected"), "{listed}");
    // A person has trusted the folder.
    let folder = place.path().canonicalize().unwrap();
    let trusted = json!({ folder.to_str().unwrap(): "TRUST_FOLDER" }).to_string();
    fs::write(place.path().join(".gemini/trustedFolders.json"), trusted).unwrap();
    let listed = asked(&servers, &place, "gemini", &["mcp", "list"]).await;
    let lines: Vec<&str> = listed.lines().filter(|line| line.contains("(stdio)")).collect();
    assert_eq!(lines.len(), 1, "{listed}");
    assert!(lines[0].contains(" toolgate: ") && lines[0].ends_with("Connected"), "{listed}");
    let FixtureEntry { command, args } = servers.inspector();
    let mut inspector = tokio::process::Command::new(command);
    inspector.args(args).args(["--config", ".cursor/mcp.json", "--server", "toolgate"]);
    inspector.args(["--method", "tools/list"]).current_dir(place.path()).kill_on_drop(true);
    inspector.envs(place.environment()).stdin(std::process::Stdio::null());
    let output = within("the Inspector", inspector.output()).await.unwrap();
    let listed = String::from_utf8_lossy(&output.stdout);
    assert!(listed.contains("\"name\": \"run_code\""), "{output:?}");

    // Claude Code has written to its file meanwhile.
    let of = |path: &str| fs::read_to_string(place.path().join(path)).unwrap();
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let after = read(&of(".claude.json"));
    let undone = place.run(&["setup", "--undo"]).await;
    assert_eq!(undone.code, Some(0), "{undone:?}");
    for (path, _, text) in &files {
        if *path == ".claude.json" {
            let (restored, before) = (read(&of(path)), read(text));
            assert_eq!(restored["mcpServers"], before["mcpServers"], "{undone:?}");
            let rest = |value: &Value| {
                let mut rest = value.as_object().unwrap().clone();
                rest.remove("mcpServers");
                rest
            };
            assert_ne!(rest(&after), rest(&before), "it has changed nothing of its file");
            assert_eq!(rest(&restored), rest(&after));
        } else {
            assert_eq!(of(path), *text, "{undone:?}");
        }
    }
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
