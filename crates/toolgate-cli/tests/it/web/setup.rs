//! Clients that are set up from the page.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use toolgate_testkit::Fixture;

use super::{OpenPage, records, workplace};
use crate::{
    fixtures::tool,
    support::{Workplace, entry, entry_with},
};

/// The number of the setup that a screen shows.
fn shown_setup(html: &str) -> &str {
    let (_, rest) = html.split_once("value=\"set-up\"").unwrap_or_else(|| panic!("{html}"));
    let (_, rest) = rest.split_once("name=\"what\" value=\"").unwrap();
    rest.split('"').next().unwrap()
}

#[tokio::test]
async fn clients_are_set_up_and_restored_from_the_page() {
    let place = workplace();
    let file = place.path().join(".cursor/mcp.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    // The same server with another value, another one, and one that does not start.
    let same = entry_with(&records(), json!({ "env": { "API_KEY": "hunter2-of-cursor" } }));
    let other = Fixture::new("notes").with_tools([tool("read", "Read.", &json!({}), &[])]);
    let before = json!({ "mcpServers": {
        "curs": same, "uniq": entry(&other), "bad": { "command": "/no/such/prog" },
    } });
    let before = serde_json::to_string_pretty(&before).unwrap();
    fs::write(&file, &before).unwrap();
    let page = OpenPage::start(&place).await;
    let shown = page.get("/ui/access").await;
    assert!(shown.contains("Cursor") && !shown.contains("Write these changes"), "{shown}");
    let plan = async |differing: &str| {
        let fields = [("action", "plan-setup"), ("differing", differing)];
        page.post("/ui/access", &fields).await.text().await.unwrap()
    };
    // The command says the same.
    let first = plan("first").await;
    let command = place.run(&["setup", "--dry-run"]).await;
    assert!(command.stdout.contains("the first one is used"), "{}", command.shown());
    assert!(command.stdout.contains("it stays in Cursor as it is"), "{}", command.shown());
    for line in command.stdout.lines().filter(|line| !line.starts_with("Nothing was written")) {
        let line = line.replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
        assert!(first.contains(line.trim_end()), "{line}\n---\n{first}");
    }
    let both = plan("both").await;
    assert!(both.contains("both are used") && !both.contains("hunter2-of-cursor"), "{both}");
    assert_eq!(fs::read_to_string(&file).unwrap(), before, "nothing is written yet");
    // Another setup was shown since.
    page.post("/ui/access", &[("action", "set-up"), ("what", shown_setup(&first))]).await;
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    page.post("/ui/access", &[("action", "set-up"), ("what", shown_setup(&both))]).await;
    let after: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let left: Vec<&String> = after["mcpServers"].as_object().unwrap().keys().collect();
    assert_eq!(left, ["bad", "toolgate"], "what does not start stays");
    let config = fs::read_to_string(place.config()).unwrap();
    for name in ["\"records\"", "\"curs\"", "\"uniq\""] {
        assert!(config.contains(name), "{name}: {config}");
    }
    assert!(!config.contains("hunter2-of-cursor") && !config.contains("/no/such"), "{config}");
    let shown = page.get("/ui/access").await;
    assert!(shown.contains("Restore these files"), "{shown}");
    page.post("/ui/access", &[("action", "undo-setup")]).await;
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
}

/// Puts a server into the file of a client. Returns the file and its text.
pub(super) fn put(place: &Workplace, file: &str, name: &str, server: &Value) -> (PathBuf, String) {
    let path = place.path().join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text = json!({ "mcpServers": { name: server } }).to_string();
    fs::write(&path, &text).unwrap();
    (path, text)
}

async fn planned(page: &OpenPage, differing: &str) -> String {
    let fields = [("action", "plan-setup"), ("differing", differing)];
    page.post("/ui/access", &fields).await.text().await.unwrap()
}

/// What the screen says after the setup that it shows was written.
async fn written(page: &OpenPage, shown: &str) -> String {
    page.post("/ui/access", &[("action", "set-up"), ("what", shown_setup(shown))]).await;
    let html = page.get("/ui/access").await;
    let (_, rest) = html.split_once("<p class=\"notice\" role=\"status\">").unwrap();
    rest.split("</p>").next().unwrap().to_owned()
}

#[tokio::test]
async fn a_setup_is_written_as_a_whole_or_not_at_all() {
    let place = workplace();
    let notes = Fixture::new("notes").with_tools([tool("read", "Read.", &json!({}), &[])]);
    let (cursor, before) = put(&place, ".cursor/mcp.json", "one", &entry(&notes));
    let (kiro, of_kiro) = put(&place, ".kiro/settings/mcp.json", "two", &entry(&records()));
    let config = fs::read_to_string(place.config()).unwrap();
    let page = OpenPage::start(&place).await;
    let files = |folder: &Path| fs::read_dir(folder).unwrap().count();
    let is_untouched = || {
        assert_eq!(fs::read_to_string(&cursor).unwrap(), before);
        assert_eq!(fs::read_to_string(place.config()).unwrap(), config);
        assert_eq!(files(cursor.parent().unwrap()), 1, "no back-up is left");
    };
    // The last file has changed since the setup was shown.
    let shown = planned(&page, "both").await;
    fs::write(&kiro, "{}").unwrap();
    let said = written(&page, &shown).await;
    assert!(
        said.contains("Nothing was changed") && said.contains("has changed meanwhile"),
        "{said}"
    );
    assert!(said.contains("kiro"), "{said}");
    is_untouched();
    // It cannot be written: its back-up would have too long a name.
    let long = kiro.with_file_name("x".repeat(250));
    fs::write(&long, &of_kiro).unwrap();
    fs::remove_file(&kiro).unwrap();
    std::os::unix::fs::symlink(&long, &kiro).unwrap();
    let shown = planned(&page, "both").await;
    let said = written(&page, &shown).await;
    assert!(said.contains("Nothing was changed") && said.contains("xxx"), "{said}");
    is_untouched();
    assert!(!page.get("/ui/access").await.contains("Restore these files"));
    // Now it can, and the page says which files were written.
    fs::remove_file(&kiro).unwrap();
    fs::write(&kiro, &of_kiro).unwrap();
    let shown = planned(&page, "both").await;
    let said = written(&page, &shown).await;
    for file in ["toolgate.json", ".cursor/mcp.json", ".kiro/settings/mcp.json"] {
        assert!(said.contains(file), "{file}: {said}");
    }
    assert!(said.contains("Undo restores what was written"), "{said}");
    page.post("/ui/access", &[("action", "undo-setup")]).await;
    is_untouched();
}

#[tokio::test]
async fn of_twins_one_is_used() {
    let place = workplace();
    let notes = Fixture::new("notes").with_tools([tool("read", "Read.", &json!({}), &[])]);
    let other = entry_with(&notes, json!({ "env": { "REGION": "south" } }));
    put(&place, ".cursor/mcp.json", "notes", &entry(&notes));
    put(&place, ".kiro/settings/mcp.json", "notes", &other);
    put(&place, ".codeium/windsurf/mcp_config.json", "remarks", &other);
    let page = OpenPage::start(&place).await;
    let shown = planned(&page, "both").await;
    written(&page, &shown).await;
    let config = fs::read_to_string(place.config()).unwrap();
    let config: Value = serde_json::from_str(&config).unwrap();
    let names: Vec<&String> = config["mcpServers"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["records", "notes", "remarks"]);
}
