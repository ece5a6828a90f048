//! `toolgate setup` in a home with the files of many clients: what it writes works, and undo restores every byte.

mod people;
mod safety;
mod servers;

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
    let action = row("broken")["action"].as_str().unwrap();
    assert!(row("broken")["reason"].is_string(), "{report}");
    // It may work in the client, with what is not known here.
    assert!(action.starts_with("it stays in Cursor as it is; install it"), "{report}");
    assert!(action.ends_with("and run setup again, or add --all"), "{report}");
    // What toolgate cannot use stays where it works.
    assert_eq!(
        row("unset")["action"],
        "it stays in Cursor as it is; store it: `toolgate secret set my-key`, and run setup again"
    );
    assert_eq!(
        servers(&cursor, "mcpServers").keys().collect::<Vec<_>>(),
        ["broken", "unset", "toolgate"]
    );
    let imported = servers(&place.path().join(".config/toolgate/toolgate.json"), "mcpServers");
    assert_eq!(imported.keys().collect::<Vec<_>>(), ["notes"]);
    let all = place.run(&["setup", "--dry-run", "--all", "--json"]).await.json();
    assert_eq!(all["clients"][0]["servers"], json!(["broken"]), "{all}");
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
    assert_eq!(back.keys().collect::<Vec<_>>(), ["notes"], "what the first one took: {undone:?}");
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

/// Writes a file of the home.
pub(crate) fn put(place: &Workplace, path: &str, content: &Value) -> PathBuf {
    let path = place.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content.to_string()).unwrap();
    path
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
