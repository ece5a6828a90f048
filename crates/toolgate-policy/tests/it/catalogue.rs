//! How often honest definitions are suspected.
//!
//! `TOOLGATE_CATALOGUE` names a folder of captures (`NAME.json`: `{"name", "initialize", "tools"}`).
//! Without it there is nothing to do, so that this test is ignored unless asked for.

use std::{collections::BTreeMap, fs, path::PathBuf};

use serde_json::Value;
use toolgate_catalog::{ToolId, read_list};
use toolgate_policy::definitions::{Likeness, scan, shadowing};

#[test]
#[ignore = "needs captures of real servers in TOOLGATE_CATALOGUE"]
fn few_honest_definitions_are_suspected() {
    let folder = std::env::var_os("TOOLGATE_CATALOGUE").expect("TOOLGATE_CATALOGUE is set");
    let mut captures: Vec<PathBuf> = fs::read_dir(PathBuf::from(folder))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    captures.sort();
    let mut tools: Vec<ToolId> = Vec::new();
    let mut suspected = 0_usize;
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for path in &captures {
        let server = path.file_stem().and_then(|stem| stem.to_str()).expect("a name").to_owned();
        let text = fs::read(path).expect("a capture");
        let capture: Value = serde_json::from_slice(&text).expect("JSON");
        let entries = capture["tools"].as_array().expect("a list");
        for definition in read_list(entries).0 {
            let id = ToolId::new(server.as_str(), definition.name().as_ref());
            let findings = scan(&definition);
            suspected += usize::from(!findings.is_empty());
            for finding in findings {
                *kinds.entry(format!("{:?}", finding.kind)).or_default() += 1;
                eprintln!("{server}/{}: {finding}", id.tool);
            }
            tools.push(id);
        }
    }
    let shadows = shadowing(&tools);
    let alike = shadows.iter().filter(|shadow| shadow.likeness != Likeness::Same);
    for shadow in alike {
        eprintln!("{shadow:?}");
    }
    let total = tools.len();
    let shadows = shadows.len();
    eprintln!("{suspected} of {total} tools suspected, {shadows} shadows; findings: {kinds:?}");
    assert!(suspected * 1_000 <= total, "{suspected} of {total}");
}
