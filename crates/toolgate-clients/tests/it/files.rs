use std::fs;

use serde_json::json;
use toolgate_clients::{Edit, Undone, WriteError, Writer, edited, undo};
use toolgate_config::Format;

fn edits() -> Vec<Edit> {
    let entry = json!({ "command": "toolgate" }).as_object().unwrap().clone();
    vec![Edit::Set { container: vec!["mcpServers".to_owned()], name: "toolgate".to_owned(), entry }]
}

#[test]
fn a_file_is_changed_and_restored_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mcp.json");
    let before = "{ // mine\r\n}";
    fs::write(&path, before).unwrap();
    #[cfg(unix)]
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
    let after = edited(before, Format::Jsonc, &edits()).unwrap();
    let mut writer = Writer::new("20260102-030405");
    writer.write(&path, Some(before), &after, &edits()).unwrap();
    let new = folder.path().join("new/toolgate.json");
    writer.write(&new, None, "{}", &[]).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), after);
    let backup = folder.path().join("mcp.json.toolgate-20260102-030405");
    assert_eq!(fs::read_to_string(&backup).unwrap(), before);
    #[cfg(unix)]
    for (path, mode) in [(&path, 0o640), (&backup, 0o640), (&new, 0o600)] {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(
            fs::metadata(path).unwrap().permissions().mode() & 0o777,
            mode,
            "{}",
            path.display()
        );
    }
    // The record survives the process.
    let text = serde_json::to_string(&writer.record).unwrap();
    let undone = undo(&serde_json::from_str(&text).unwrap(), &mut Vec::new());
    assert!(matches!(&undone[..], [Undone::Removed(_), Undone::Restored(_)]), "{undone:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    assert!(!new.exists() && !backup.exists());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left behind");
}

#[test]
fn a_file_that_somebody_else_changes_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mcp.json");
    fs::write(&path, "{}").unwrap();
    let mut writer = Writer::new("x");
    let refused = writer.write(&path, Some("{ }"), "{\n}", &[]);
    assert!(matches!(refused, Err(WriteError::Changed { .. })), "{refused:?}");
    assert!(writer.record.files.is_empty());

    let after = edited("{}", Format::Jsonc, &edits()).unwrap();
    writer.write(&path, Some("{}"), &after, &edits()).unwrap();
    let mine = after.replace("\"toolgate\"\n", "\"mine\"\n");
    assert_ne!(mine, after);
    fs::write(&path, &mine).unwrap();
    let undone = undo(&writer.record, &mut Vec::new());
    let [Undone::Changed { since, backup: Some(backup), .. }] = &undone[..] else {
        panic!("{undone:?}")
    };
    let changed: Vec<&str> =
        since.lines().skip(2).filter(|line| line.starts_with(['+', '-'])).collect();
    assert_eq!(changed.len(), 2, "only what was changed since: {since}");
    assert_eq!(fs::read_to_string(&path).unwrap(), mine);
    assert_eq!(fs::read_to_string(backup).unwrap(), "{}");
}

#[test]
fn what_a_client_has_changed_since_stays_and_the_servers_become_what_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mcp.json");
    let before = "{ \"n\": 1, \"mcpServers\": { \"a\": { \"command\": \"x\", \"env\": { \"K\": \"v\" } }, \"b\": { \"command\": \"y\" } } }";
    fs::write(&path, before).unwrap();
    let container = vec!["mcpServers".to_owned()];
    let switched = Edit::Switch {
        container: container.clone(),
        name: "a".to_owned(),
        key: "disabled".to_owned(),
        value: true,
    };
    let removed = Edit::Remove { container, name: "b".to_owned() };
    let edits = [&edits()[..], &[switched, removed]].concat();
    let after = edited(before, Format::Jsonc, &edits).unwrap();
    let mut writer = Writer::new("x");
    writer.write(&path, Some(before), &after, &edits).unwrap();
    fs::write(&path, after.replace("\"n\": 1", "\"n\": 2 /* mine */")).unwrap();
    let undone = undo(&writer.record, &mut Vec::new());
    assert!(
        matches!(&undone[..], [Undone::TakenBack { since, .. }] if since.contains("+{ \"n\": 2 /* mine */")),
        "{undone:?}"
    );
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("{ \"n\": 2 /* mine */, "), "{text}");
    let read = |text: &str| toolgate_config::as_written(text, Format::Jsonc, "").unwrap();
    assert_eq!(read(&text)["mcpServers"], read(before)["mcpServers"]);
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let (real, link) = (folder.path().join("dotfiles.json"), folder.path().join("mcp.json"));
    fs::write(&real, "{}").unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let mut writer = Writer::new("x");
    writer.write(&link, Some("{}"), "{ }", &[]).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&real).unwrap(), "{ }");
}
