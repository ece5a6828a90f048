//! How often honest definitions are suspected, and how good proposed labels are.
//!
//! `TOOLGATE_CATALOGUE` names a folder of captures (`NAME.json`: `{"name", "initialize", "tools"}`).
//! Without it there is nothing to do, so that this test is ignored unless asked for.

use std::{collections::BTreeMap, fs, path::PathBuf};

use serde_json::Value;
use toolgate_catalog::{Definition, ServerName, ToolId, read_list};
use toolgate_policy::{
    Label,
    definitions::{
        DefinitionFinding, Likeness, ServerEntry, ToolNames, scan, scan_value, shadowing,
    },
    suggest,
};

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
    let mut names = ToolNames::default();
    let mut servers: Vec<(ServerName, Vec<Definition>, Option<String>)> = Vec::new();
    for path in &captures {
        let server: ServerName = path.file_stem().and_then(|stem| stem.to_str()).unwrap().into();
        let text = fs::read(path).expect("a capture");
        let capture: Value = serde_json::from_slice(&text).expect("JSON");
        let definitions = read_list(capture["tools"].as_array().expect("a list")).0;
        names.replace(&server, None, &definitions);
        let instructions = capture["initialize"]["instructions"].as_str().map(str::to_owned);
        servers.push((server, definitions, instructions));
    }
    let mut tools: Vec<ToolId> = Vec::new();
    let mut suspected = 0_usize;
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    let mut suspect = |what: &str, findings: Vec<DefinitionFinding>| {
        suspected += usize::from(!findings.is_empty());
        for finding in findings {
            *kinds.entry(format!("{:?}", finding.kind)).or_default() += 1;
            eprintln!("{what}: {finding}");
        }
    };
    // All servers at once: nobody has so many tools of others beside his own.
    for (server, definitions, instructions) in &servers {
        for definition in definitions {
            let id = ToolId::new(server.clone(), definition.name().as_ref());
            let mut findings = scan(definition);
            findings.extend(names.scan(server, &definition.to_value()));
            suspect(&format!("{server}/{}", id.tool), findings);
            tools.push(id);
        }
        if let Some(instructions) = instructions {
            let entry = ServerEntry::instructions(server, instructions);
            let mut findings = scan_value(&entry.value);
            findings.extend(names.scan(server, &entry.value));
            suspect(&entry.to_string(), findings);
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

/// How often the proposals agree with the labels that were set by hand.
#[derive(Default)]
struct Agreement {
    both: f64,
    proposed_alone: f64,
    by_hand_alone: f64,
}

impl Agreement {
    fn precision(&self) -> f64 {
        100.0 * self.both / (self.both + self.proposed_alone)
    }

    fn recall(&self) -> f64 {
        100.0 * self.both / (self.both + self.by_hand_alone)
    }
}

/// Prints the table of docs/security.md.
#[test]
#[ignore = "needs captures of real servers in TOOLGATE_CATALOGUE"]
fn labels_are_proposed_as_a_person_sets_them() {
    let folder = std::env::var_os("TOOLGATE_CATALOGUE").expect("TOOLGATE_CATALOGUE is set");
    let by_hand = include_str!("../labels/by-hand.txt");
    let mut found: BTreeMap<(bool, Label), Agreement> = BTreeMap::new();
    let mut definitions: BTreeMap<String, Definition> = BTreeMap::new();
    let (mut server, mut is_aside, mut tools) = (String::new(), false, [0, 0]);
    for line in by_hand.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some((name, rest)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            (server, is_aside) = (name.to_owned(), rest.trim() == "aside");
            let path = PathBuf::from(&folder).join(format!("{server}.json"));
            let capture: Value =
                serde_json::from_slice(&fs::read(path).expect("a capture")).expect("JSON");
            let entries = capture["tools"].as_array().expect("a list");
            let read = read_list(entries).0.into_iter();
            definitions = read.map(|it| (it.name().to_string(), it)).collect();
            continue;
        }
        let (tool, labels) = line.split_once(':').expect("a tool and its labels");
        tools[usize::from(is_aside)] += 1;
        let suggested = suggest(&server, &definitions[tool]).labels;
        for label in Label::ALL {
            let agreement = found.entry((is_aside, label)).or_default();
            let is_proposed = suggested.iter().any(|it| it.label == label);
            match (is_proposed, labels.split_whitespace().any(|it| it == label.as_str())) {
                (true, true) => agreement.both += 1.0,
                (true, false) => agreement.proposed_alone += 1.0,
                (false, true) => agreement.by_hand_alone += 1.0,
                (false, false) => {}
            }
        }
    }
    for ((is_aside, label), agreement) in &found {
        let (set, count) = if *is_aside { ("aside", tools[1]) } else { ("seen", tools[0]) };
        let (label, precision) = (label.as_str(), agreement.precision());
        eprintln!("{set} ({count} tools) {label}: {precision:.0} % {:.0} %", agreement.recall());
    }
    for ((is_aside, label), agreement) in &found {
        let least = if *is_aside { 50.0 } else { 80.0 };
        assert!(agreement.precision() >= least, "{label:?}: {}", agreement.precision());
        assert!(agreement.recall() >= least, "{label:?}: {}", agreement.recall());
    }
}
