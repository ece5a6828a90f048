//! What a decision costs, by the number of rules.
//!
//! `cargo bench -p toolgate-policy`

#![expect(clippy::expect_used, reason = "a benchmark fails like a test")]

use divan::{Bencher, black_box};
use serde_json::json;
use toolgate_catalog::{Definition, ToolId};
use toolgate_policy::{
    Annotations, ArgumentConditions, Flow, Mode, Policy, PolicySettings, Rule, RuleOrigin,
    RuleTarget, Verdict, definitions::scan,
};

const COUNTS: [usize; 4] = [0, 100, 1_000, 10_000];

fn main() {
    divan::main();
}

/// Rules of every kind; a handful of them are about the one tool.
fn policy(count: usize) -> Policy {
    let conditions = json!({ "repo": { "matches": "ada/.*" }, "path": { "under": "/srv" } });
    let conditions = ArgumentConditions::from_value(&conditions).expect("sound conditions");
    let rules = (0..count).map(|number| {
        let (server, tool) = match number % 4 {
            0 => (Some(format!("server{number}")), None),
            1 => (None, Some(format!("server{number}_*"))),
            2 => (None, Some(format!("server{number}/tool"))),
            _ => (Some("github".to_owned()), Some(format!("tool{number}"))),
        };
        let target = RuleTarget::read(server.as_deref(), tool.as_deref()).expect("a sound pattern");
        let origin = RuleOrigin::Configured { path: "policy.rules".into(), position: None };
        Rule { arguments: conditions.clone(), ..Rule::new(target, Verdict::Ask, origin) }
    });
    let settings = PolicySettings { rules: rules.collect(), ..PolicySettings::of_mode(Mode::Ask) };
    Policy::new(settings)
}

#[divan::bench(args = COUNTS)]
fn prepare_a_tool(bencher: Bencher<'_, '_>, count: usize) {
    let policy = policy(count);
    let id = ToolId::new("github", "tool3");
    bencher.bench(|| policy.tool(black_box(&id), "github_tool3", Annotations::default()));
}

#[divan::bench(args = COUNTS)]
fn decide_a_call(bencher: Bencher<'_, '_>, count: usize) {
    let policy = policy(count);
    let tool = policy.tool(&ToolId::new("github", "tool3"), "github_tool3", Annotations::default());
    let arguments = json!({ "repo": "ada/toolgate", "path": "/srv/data/a.txt", "body": "text" });
    bencher.bench(|| tool.decide(black_box(&arguments), &Flow::NONE));
}

#[divan::bench(args = COUNTS, sample_count = 10)]
fn compile(count: usize) -> Policy {
    policy(count)
}

#[divan::bench(args = [1_usize, 10, 100])]
fn scan_a_definition(bencher: Bencher<'_, '_>, kilobytes: usize) {
    let sentence = "Lists what there is, the newest first, and tells how many more there are. ";
    let text = sentence.repeat(kilobytes * 1_024 / sentence.len());
    let value = json!({ "name": "list", "description": text, "inputSchema": {} });
    let definition = Definition::from_value(&value).expect("a sound definition");
    bencher.bench(|| scan(black_box(&definition)));
}
