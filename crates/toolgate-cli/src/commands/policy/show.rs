//! The policy in force.

use std::{collections::HashSet, process::ExitCode, sync::Arc};

use serde_json::{Value, json};
use toolgate_catalog::Tool;
use toolgate_policy::{
    FlowMode, Policy, READING, Rule, RuleOrigin, definitions::shown, request_as_tool,
};
use toolgate_web::{policy_labels, policy_words, trusted_servers};

use crate::{
    cli::Globals,
    failure::CommandResult,
    load::{self, Loaded},
    policy_place::WrittenPolicy,
    print,
};

/// The longest line, in characters.
const LINE: usize = 1_000;

pub(super) async fn show(globals: &Globals, as_json: bool) -> CommandResult {
    let loaded = load::load(globals)?;
    load::report(&loaded);
    let settings = loaded.policy();
    let audit = &loaded.configuration.audit;
    let labels = policy_labels(settings);
    let policy = Policy::new(settings.clone());
    let cached = CachedTools::read(&loaded, &policy).await;
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

/// The tools in the cache. No server is started.
struct CachedTools {
    /// The rules that are about one of them or more.
    matched: HashSet<*const Rule>,
    /// The servers that are configured, and whether their tools are known.
    servers: Vec<(String, bool)>,
}

impl CachedTools {
    async fn read(loaded: &Loaded, policy: &Policy) -> Self {
        let host = super::cached_host(loaded).await;
        let mut tools: Vec<Tool> = host.catalog().read().tools().cloned().collect();
        tools.extend(host.hidden_tools().iter().map(toolgate_host::HiddenTool::tool));
        let entries: Vec<_> = host.catalog().read().servers().cloned().collect();
        let servers = entries.iter().map(|entry| {
            let is_known = tools.iter().any(|tool| tool.id.server == entry.name);
            (entry.name.to_string(), is_known)
        });
        let servers = servers.collect();
        tools.extend(entries.iter().flat_map(|entry| {
            let prefix = entry.prefix.as_deref();
            READING.iter().filter_map(move |method| {
                request_as_tool(&entry.name, prefix.map(Into::into), method)
            })
        }));
        host.shutdown().await;
        let of_tool = |tool: &Tool| policy.of(tool).rules().map(Arc::as_ptr).collect::<Vec<_>>();
        Self { matched: tools.iter().flat_map(of_tool).collect(), servers }
    }

    /// Whether a rule is about any tool, as far as that is known.
    fn matches(&self, rule: &Arc<Rule>) -> Option<bool> {
        if self.matched.contains(&Arc::as_ptr(rule)) {
            return Some(true);
        }
        let meant =
            |name: &str| rule.target.server.as_ref().is_none_or(|pattern| pattern.matches(name));
        let mut meant = self.servers.iter().filter(|(name, _)| meant(name));
        meant.all(|(_, is_known)| *is_known).then_some(false)
    }
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
