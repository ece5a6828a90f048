//! What the policy says besides its rules, for the page and for `toolgate policy`.

use std::{collections::HashSet, sync::Arc};

use serde_json::{Value, json};
use toolgate_catalog::Tool;
use toolgate_host::{HiddenTool, ToolHost};
use toolgate_policy::{
    LabelSet, Mode, NamePattern, Policy, PolicySettings, READING, Rule, RuleOrigin, RuleTarget,
    ToolPattern, Trust, request_as_tool,
};

/// Which rules of a policy are about tools that are known.
#[derive(Debug)]
pub struct KnownRules {
    /// It keeps the rules at their places in memory, by which they are told apart.
    policy: Policy,
    /// The places of the rules that are about a known tool or more.
    matched: HashSet<usize>,
    /// The servers that are configured, and whether their tools are known.
    servers: Vec<(String, bool)>,
}

impl KnownRules {
    /// With the tools that the host knows now.
    pub fn of(host: &ToolHost, policy: &Policy) -> Self {
        let hidden: Vec<Tool> = host.hidden_tools().iter().map(HiddenTool::tool).collect();
        let catalog = host.catalog().read();
        let own = policy.all_rules().iter().filter(|rule| is_own(rule));
        let mut left: HashSet<usize> = own.map(place).collect();
        let mut matched = HashSet::new();
        let mut look = |tool: &Tool| {
            // To judge all of many tools takes long, and most rules are about one of the first.
            if left.is_empty() {
                return;
            }
            for rule in policy.of(tool).rules() {
                left.remove(&place(rule));
                matched.insert(place(rule));
            }
        };
        catalog.tools().chain(&hidden).for_each(&mut look);
        for entry in catalog.servers() {
            let prefix = || entry.prefix.as_deref().map(Into::into);
            let requests = READING.iter();
            requests
                .filter_map(|method| request_as_tool(&entry.name, prefix(), method))
                .for_each(|request| look(&request));
        }
        let servers = catalog.servers().map(|entry| {
            let name = entry.name.as_str();
            let is_known = !catalog.tools_of(name).is_empty()
                || hidden.iter().any(|tool| tool.id.server.as_str() == name);
            (name.to_owned(), is_known)
        });
        let servers = servers.collect();
        Self { policy: policy.clone(), matched, servers }
    }

    /// Whether it is about this policy.
    pub(crate) fn is_of(&self, policy: &Policy) -> bool {
        std::ptr::eq(self.policy.all_rules(), policy.all_rules())
    }

    /// Whether a rule is about any tool; `None` if the tools that it may be about are not known, or it is built in.
    pub fn matches(&self, rule: &Arc<Rule>) -> Option<bool> {
        if self.matched.contains(&place(rule)) {
            return Some(true);
        }
        if !is_own(rule) {
            return None;
        }
        let meant =
            |name: &str| rule.target.server.as_ref().is_none_or(|pattern| pattern.matches(name));
        let mut meant = self.servers.iter().filter(|(name, _)| meant(name));
        meant.all(|(_, is_known)| *is_known).then_some(false)
    }
}

fn is_own(rule: &Rule) -> bool {
    !matches!(rule.origin, RuleOrigin::BuiltIn(_))
}

fn place(rule: &Arc<Rule>) -> usize {
    Arc::as_ptr(rule) as usize
}

/// The settings of a policy, each with its name.
pub fn policy_words(settings: &PolicySettings) -> Vec<(&'static str, String)> {
    let mut words = vec![("default", format!("{} ({})", settings.mode, meaning(settings.mode)))];
    for (key, value) in [
        ("claims", json!(settings.claims)),
        ("flow", flow(settings)),
        ("new tools", json!(settings.new_tools)),
        ("findings", json!(settings.findings)),
    ] {
        words.push((key, value.as_str().unwrap_or_default().to_owned()));
    }
    let trusted = trusted_servers(settings);
    if !trusted.is_empty() {
        words.push(("trusted", trusted.join(", ")));
    }
    words
}

/// The labels: by pattern, of servers, of tools.
pub fn policy_labels(policy: &PolicySettings) -> Vec<(RuleTarget, LabelSet)> {
    let mut labels = policy.labels.clone();
    for (name, server) in &policy.servers {
        let of_server = RuleTarget {
            server: Some(NamePattern::Exactly(name.as_str().into())),
            ..RuleTarget::default()
        };
        for (tool, settings) in &server.tools {
            if let Some(own) = settings.labels {
                let tool = Some(ToolPattern::own_name(tool));
                labels.push((RuleTarget { tool, ..of_server.clone() }, own));
            }
        }
        if !server.labels.is_empty() {
            labels.push((of_server, server.labels));
        }
    }
    labels
}

/// The servers that are trusted.
pub fn trusted_servers(policy: &PolicySettings) -> Vec<String> {
    let trusted = policy.servers.iter().filter(|(_, server)| server.trust == Trust::Trusted);
    trusted.map(|(name, _)| name.to_string()).collect()
}

/// How data is followed, in words.
fn flow(settings: &PolicySettings) -> Value {
    let mode = json!(settings.flow);
    match (mode.as_str(), settings.branches) {
        (Some(mode), true) => json!(format!("{mode}, and branches")),
        _ => mode,
    }
}

fn meaning(mode: Mode) -> &'static str {
    match mode {
        Mode::Allow => "every call is allowed",
        Mode::AskDestructive => {
            "tools that declare themselves destructive need approval where somebody can be asked"
        }
        Mode::Ask => "read-only tools are allowed, the others need approval",
        Mode::AskAlways => "every call needs approval",
        Mode::DenyWrites => "read-only tools are allowed, the others are refused",
        Mode::Deny => "every call is refused unless a rule allows it",
    }
}
