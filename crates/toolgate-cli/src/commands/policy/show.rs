//! The policy in force.

use std::process::ExitCode;

use serde_json::{Value, json};
use toolgate_policy::{FlowMode, Policy, Rule, RuleOrigin, definitions::shown};
use toolgate_web::{KnownRules, policy_labels, policy_words, trusted_servers};

use crate::{cli::Globals, failure::CommandResult, load, policy_place::WrittenPolicy, print};

/// The longest line, in characters.
const LINE: usize = 1_000;

pub(super) async fn show(globals: &Globals, as_json: bool) -> CommandResult {
    let loaded = load::load(globals)?;
    load::report(&loaded);
    let settings = loaded.policy();
    let audit = &loaded.configuration.audit;
    let labels = policy_labels(settings);
    let policy = Policy::new(settings.clone());
    // The tools in the cache: no server is started.
    let host = super::cached_host(&loaded).await;
    let cached = KnownRules::of(&host, &policy);
    host.shutdown().await;
    // The built-in rules are about labels only.
    let is_idle = labels.is_empty() || settings.flow == FlowMode::Off;
    let rules = policy
        .all_rules()
        .iter()
        .filter(|rule| !(is_idle && matches!(rule.origin, RuleOrigin::BuiltIn(_))));
    let written = WrittenPolicy::of(&loaded);
    if as_json {
        let rules: Vec<Value> = rules.map(|rule| row(rule, cached.matches(rule))).collect();
        let labels = labels.iter().map(|(target, labels)| {
            let mut row = target.to_map();
            row.insert("labels".to_owned(), json!(labels));
            row
        });
        print::json(&json!({
            "source": written.source(),
            "default": settings.mode, "claims": settings.claims, "flow": settings.flow,
            "branches": settings.branches,
            "newTools": settings.new_tools, "findings": settings.findings, "rules": rules,
            "labels": labels.collect::<Vec<_>>(), "trusted": trusted_servers(settings),
            "audit": {
                "enabled": audit.enabled,
                "arguments": audit.arguments,
                "required": audit.required,
                "maxMegabytes": audit.max_megabytes,
                "keepFiles": audit.keep_files,
            },
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if written.version().is_some() {
        print::line(shown(&format!("policy: {}", written.origin()), LINE));
    }
    for (what, value) in policy_words(settings) {
        print::line(shown(&format!("{what}: {value}"), LINE));
    }
    for rule in rules {
        let Rule { verdict, origin, .. } = &**rule;
        let reason = rule.reason.as_ref().map(|reason| format!(": \"{reason}\""));
        let mark = match cached.matches(rule) {
            Some(false) => " (matches no tool that is known)",
            Some(true) | None => "",
        };
        let line = format!("{verdict} {rule}; {origin}{}{mark}", reason.unwrap_or_default());
        print::line(shown(&line, LINE));
    }
    for (target, labels) in labels {
        print::line(shown(&format!("label {target}: {labels}"), LINE));
    }
    Ok(ExitCode::SUCCESS)
}

fn row(rule: &Rule, matches: Option<bool>) -> Value {
    let mut row = rule.to_value();
    row["rule"] = json!(rule.origin);
    row["verdict"] = json!(rule.verdict);
    row["specificity"] = json!(rule.specificity());
    row["reason"] = json!(rule.reason);
    row["matchesKnownTool"] = json!(matches);
    row
}
