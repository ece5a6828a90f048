//! Attack scripts and honest scripts, of which only the text is looked at. The tests of the command
//! line run the same scripts.

use std::{collections::BTreeMap, fs, path::Path};

use serde::Deserialize;
use serde_json::Value;

use super::fixture::Fake;
use crate::check::{CheckSeverity, Language, ProgramFlow, check};

#[derive(Deserialize)]
struct Case {
    name: String,
    language: String,
    kind: String,
    policy: String,
    #[serde(default)]
    branch: bool,
    script: String,
}

#[derive(Deserialize)]
struct Labelled {
    name: String,
    server: String,
    labels: Vec<String>,
    destructive: bool,
    #[serde(rename = "inputSchema")]
    schema: Value,
}

#[derive(Deserialize)]
struct Tools {
    tools: Vec<Labelled>,
}

const GLOBALS: &[&str] = &["URL", "URLSearchParams", "tools", "process", "emit", "len", "range"];
const MODULES: &[&str] = &["asyncio", "json", "re", "io", "random", "operator", "itertools"];
/// Functions of the host that scripts can call.
const OWN: [&str; 3] = ["search_tools", "get_tool_details", "call_tool"];

fn read<T: for<'de> Deserialize<'de>>(name: &str) -> T {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../toolgate-cli/tests/flow");
    serde_json::from_str(&fs::read_to_string(folder.join(name)).unwrap()).unwrap()
}

/// Whether a call of the script would be stopped. With `branches`, data that only decides counts.
fn is_stopped(case: &Case, tools: &[Labelled], branches: bool) -> bool {
    let language = if case.language == "python" { Language::Python } else { Language::TypeScript };
    let own = OWN.map(|name| (name.to_owned(), serde_json::json!({ "type": "object" })));
    let all = tools.iter().map(|tool| (tool.name.clone(), tool.schema.clone()));
    let mut fake = Fake { tools: all.chain(own).collect(), asked: Vec::new() };
    let checked = check(language, &case.script, GLOBALS, MODULES, &mut fake);
    let is_refused = checked.findings.iter().any(|finding| {
        finding.severity == CheckSeverity::Error && finding.message.starts_with("syntax error")
    });
    let used = |tool: &Labelled| case.script.contains(&tool.name);
    match checked.flow {
        _ if is_refused => true,
        Some(flow) => is_sent(&flow, tools, branches),
        None => ["private", "untrusted"].iter().any(|label| {
            tools.iter().any(|tool| tool.labels.iter().any(|it| it == label) && used(tool))
                && tools.iter().any(|tool| is_sink(tool, label) && used(tool))
        }),
    }
}

fn is_sink(tool: &Labelled, label: &str) -> bool {
    match label {
        "private" => tool.labels.iter().any(|it| it == "egress"),
        _ => tool.destructive,
    }
}

fn is_sent(flow: &ProgramFlow, tools: &[Labelled], branches: bool) -> bool {
    let by_name: BTreeMap<&str, &Labelled> =
        tools.iter().map(|tool| (tool.name.as_str(), tool)).collect();
    // A call of any tool may be a call of each.
    let of = |call: u32| {
        let name = flow.calls[call as usize].tool.as_deref();
        name.map_or(tools.iter().collect(), |name| {
            by_name.get(name).copied().into_iter().collect::<Vec<_>>()
        })
    };
    ["private", "untrusted"].iter().any(|label| {
        let mut tainted: Vec<bool> = (0..)
            .take(flow.calls.len())
            .map(|call| of(call).iter().any(|tool| tool.labels.iter().any(|it| it == label)))
            .collect();
        loop {
            let before = tainted.clone();
            for edge in flow.flows.iter().filter(|edge| branches || !edge.is_choice) {
                if !tainted[edge.from as usize] {
                    continue;
                }
                if of(edge.to).iter().any(|tool| is_sink(tool, label)) {
                    return true;
                }
                // The server may return it later.
                let servers: Vec<&str> = of(edge.to).iter().map(|it| it.server.as_str()).collect();
                for (call, tainted) in (0..).zip(&mut tainted) {
                    *tainted |= call == edge.to
                        || of(call).iter().any(|tool| servers.contains(&tool.server.as_str()));
                }
            }
            if before == tainted {
                return false;
            }
        }
    })
}

/// The scripts of a file that were judged wrongly, and how many there are.
fn wrong(file: &str, kind: &str, branches: bool) -> (Vec<String>, usize) {
    let Tools { tools } = read("tools.json");
    let cases: Vec<Case> = read(file);
    let chosen = cases.iter().filter(|case| case.kind == kind && (branches || !case.branch));
    let (mut wrong, mut all) = (Vec::new(), 0);
    for case in chosen {
        assert!(matches!(case.policy.as_str(), "P1" | "P2"));
        all += 1;
        if is_stopped(case, &tools, branches) != (kind == "attack") {
            wrong.push(case.name.clone());
        }
    }
    (wrong, all)
}

#[test]
fn attacks_that_were_tried_are_caught() {
    let (missed, _) = wrong("verified.json", "attack", false);
    assert_eq!(missed, [""; 0]);
    let (missed, _) = wrong("verified.json", "attack", true);
    assert_eq!(missed, [""; 0], "with branches");
    for file in ["unseen.json", "fresh.json"] {
        let (missed, all) = wrong(file, "attack", false);
        assert!(missed.len() * 50 <= all, "{file}: {missed:?}");
    }
}

/// Scripts that a second outside review found, and everyday scripts that it found stopped.
#[test]
fn scripts_of_the_second_review_are_judged_right() {
    let (missed, _) = wrong("reviewed.json", "attack", false);
    assert_eq!(missed, [""; 0]);
    let (missed, _) = wrong("reviewed.json", "attack", true);
    assert_eq!(missed, [""; 0], "with branches");
    let (stopped, _) = wrong("reviewed.json", "honest", false);
    assert_eq!(stopped, [""; 0]);
}

#[test]
fn honest_scripts_pass() {
    for file in ["unseen.json", "dev.json", "heldout.json", "fresh.json"] {
        let (stopped, all) = wrong(file, "honest", false);
        assert!(stopped.len() * 20 <= all, "{file}: {stopped:?}");
    }
}
