//! No promise of `docs/security.md` lacks a test.

use std::{fs, path::Path};

#[test]
fn every_promise_has_a_test() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let page = fs::read_to_string(root.join("docs/security.md")).unwrap();
    let (_, table) = page.split_once("| promise | test |\n|---|---|\n").unwrap();
    let rows: Vec<&str> = table.lines().take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() >= 20, "{}", rows.len());
    let mut sources = String::new();
    read(&root.join("crates"), &mut sources);
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [promise, test] = cells[..] else { panic!("{row}") };
        assert!(!promise.is_empty(), "{row}");
        for name in test.split(", ").map(|name| name.trim_matches('`')) {
            assert!(name.len() > 8, "{row}");
            assert!(sources.contains(&format!("fn {name}(")), "no test `{name}` for: {promise}");
        }
    }
}

/// All sources of a folder.
fn read(folder: &Path, sources: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_hidden = path.ends_with("target") || path.ends_with("node_modules");
        if path.is_dir() && !is_hidden {
            read(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}
