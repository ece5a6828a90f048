//! What the policy says besides its rules, for the page and for `toolgate policy`.

use serde_json::{Value, json};
use toolgate_policy::{
    LabelSet, Mode, NamePattern, PolicySettings, RuleTarget, ToolPattern, Trust,
};

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
