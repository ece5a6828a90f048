//! What differs between two versions of a configuration.

use std::{collections::BTreeSet, fmt};

use toolgate_catalog::ServerName;
use toolgate_config::{Configuration, ServerConfig, ToolSearchConfig};
use toolgate_policy::{LabelSet, PolicySettings, Trust};

/// The differences, by what becomes of them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    added: Vec<String>,
    removed: Vec<String>,
    /// The servers that are there before and after, and have to be started anew.
    pub(super) changed: BTreeSet<ServerName>,
    policy: bool,
    /// Other sections that take effect at once, or for new sessions.
    sections: Vec<&'static str>,
    /// What takes effect after a restart.
    pub(super) restart: Vec<String>,
}

impl Changes {
    pub(super) fn between(old: &Configuration, new: &Configuration) -> Self {
        let mut changes = Self::default();
        for server in usable(new) {
            match usable(old).find(|before| before.name == server.name) {
                None => changes.added.push(server.name.clone()),
                Some(before) if connection(before) != connection(server) => {
                    changes.changed.insert(server.name.as_str().into());
                }
                Some(_) => {}
            }
        }
        let is_gone = |before: &&ServerConfig| !usable(new).any(|it| it.name == before.name);
        changes.removed = usable(old).filter(is_gone).map(|it| it.name.clone()).collect();
        // A namespace that is new has no policy that could have changed.
        let both = |name: &str| [old, new].iter().all(|it| has_namespace(it, name));
        changes.policy = policies(old, &both) != policies(new, &both);
        let namespaces = |configuration: &Configuration| {
            let namespaces = configuration.namespaces.iter();
            let parts = namespaces.map(|it| (it.name.clone(), it.servers.clone(), it.exclusive));
            parts.collect::<Vec<_>>()
        };
        let searches = |configuration| searches(configuration, &both, Clone::clone);
        let sections = [
            ("namespaces", namespaces(old) != namespaces(new)),
            ("toolSearch", searches(old) != searches(new)),
            ("codeMode", old.code_mode != new.code_mode),
            ("registry", old.registry != new.registry),
            ("skills", old.skills != new.skills),
        ];
        let differ = sections.into_iter().filter(|(_, differs)| *differs);
        changes.sections = differ.map(|(name, _)| name).collect();
        changes.restart = restart(old, new, &both);
        changes
    }

    /// Whether nothing differs.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the policy differs.
    pub(super) fn has_policy(&self) -> bool {
        self.policy
    }

    /// Whether a server was added, removed or changed.
    pub(super) fn concerns(&self, server: &str) -> bool {
        self.removed.iter().any(|name| name == server) || self.changed.contains(server)
    }
}

impl fmt::Display for Changes {
    /// For example `+github, -crm, ~files; policy changed; needs a restart: gateway`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let added = self.added.iter().map(|name| format!("+{name}"));
        let removed = self.removed.iter().map(|name| format!("-{name}"));
        let changed = self.changed.iter().map(|name| format!("~{name}"));
        let servers: Vec<String> = added.chain(removed).chain(changed).collect();
        let mut parts = Vec::new();
        if !servers.is_empty() {
            parts.push(servers.join(", "));
        }
        if self.policy {
            parts.push("policy changed".to_owned());
        }
        parts.extend(self.sections.iter().map(|section| format!("{section} changed")));
        if !self.restart.is_empty() {
            parts.push(format!("needs a restart: {}", self.restart.join(", ")));
        }
        if parts.is_empty() {
            parts.push("nothing changed".to_owned());
        }
        formatter.write_str(&parts.join("; "))
    }
}

/// The servers that are in use.
fn usable(configuration: &Configuration) -> impl Iterator<Item = &ServerConfig> {
    let servers = configuration.servers.iter();
    servers.filter(|server| server.settings.enabled && server.transport.is_ok())
}

/// What a server has to be started anew for: everything but its part of the policy.
fn connection(server: &ServerConfig) -> ServerConfig {
    let mut server = server.clone();
    server.settings.labels = LabelSet::EMPTY;
    server.settings.trust = Trust::Unknown;
    for tool in server.settings.tools.values_mut() {
        tool.approval = None;
        tool.labels = None;
        tool.allowed_callers.clear();
    }
    server
}

fn has_namespace(configuration: &Configuration, name: &str) -> bool {
    configuration.namespaces.iter().any(|it| it.name == name)
}

/// The policies of the file and of these namespaces. Where they are written does not matter.
fn policies(configuration: &Configuration, of: &impl Fn(&str) -> bool) -> Vec<PolicySettings> {
    let namespaces = configuration.namespaces.iter().filter(|it| of(&it.name)).map(|it| &it.policy);
    let all = std::iter::once(&configuration.policy).chain(namespaces);
    all.map(PolicySettings::without_positions).collect()
}

fn searches<'c, T>(
    configuration: &'c Configuration,
    of: &impl Fn(&str) -> bool,
    part: impl Fn(&'c ToolSearchConfig) -> T,
) -> Vec<T> {
    let namespaces = configuration.namespaces.iter().filter(|it| of(&it.name));
    let searches = namespaces.map(|it| &it.tool_search);
    std::iter::once(&configuration.tool_search).chain(searches).map(part).collect()
}

/// What differs and cannot change while the gateway runs.
fn restart(old: &Configuration, new: &Configuration, both: &impl Fn(&str) -> bool) -> Vec<String> {
    let ranking = |configuration| {
        searches(configuration, both, |it| (it.strategy, it.usage_memory, it.embeddings.clone()))
    };
    let workers = |configuration: &Configuration| {
        let code = &configuration.code_mode;
        (code.warm_workers, code.max_runs, code.max_parallel_calls)
    };
    let sections = [
        ("gateway", old.gateway != new.gateway),
        ("audit", old.audit != new.audit),
        ("telemetry", old.telemetry != new.telemetry),
        ("strategy, usageMemory and embeddings of toolSearch", ranking(old) != ranking(new)),
        ("workers and parallel calls of codeMode", workers(old) != workers(new)),
    ];
    let differ = sections.into_iter().filter(|(_, differs)| *differs);
    let mut restart: Vec<String> = differ.map(|(name, _)| name.to_owned()).collect();
    let added = new.namespaces.iter().map(|it| &it.name).filter(|name| !both(name));
    restart.extend(added.map(|name| format!("namespace {name}")));
    restart
}

#[cfg(test)]
mod tests {
    use toolgate_config::Format;

    use super::*;

    fn between(old: &str, new: &str) -> String {
        let parse = |text| toolgate_config::parse(text, Format::Jsonc, "f", &|_| None).unwrap();
        Changes::between(&parse(old), &parse(new)).to_string()
    }

    #[test]
    fn what_moves_in_the_file_does_not_change() {
        let old = r#"{ "mcpServers": { "a": { "command": "x", "labels": ["private"] } },
            "policy": { "rules": [{ "tool": "a_b", "verdict": "deny" }] } }"#;
        assert_eq!(between(old, &old.replace(", ", ",\n\n")), "nothing changed");
    }

    #[test]
    fn servers_policy_sections_and_what_needs_a_restart() {
        let old = r#"{ "mcpServers": { "a": { "command": "x" }, "b": { "command": "y" } } }"#;
        let new = r#"{ "mcpServers": { "a": { "command": "x", "env": { "K": "secret" } },
            "c": { "command": "z" } }, "policy": "ask", "toolSearch": { "maxResults": 7 },
            "gateway": { "maxSessions": 9 },
            "namespaces": { "n": { "servers": ["a"] } } }"#;
        assert_eq!(
            between(old, new),
            "+c, -b, ~a; policy changed; namespaces changed; toolSearch changed; needs a restart: \
             gateway, namespace n"
        );
    }

    #[test]
    fn labels_and_approvals_restart_no_server() {
        let old = r#"{ "mcpServers": { "a": { "command": "x" } } }"#;
        let new = r#"{ "mcpServers": { "a": { "command": "x", "labels": ["egress"],
            "tools": { "t": { "approval": "deny" } } } } }"#;
        assert_eq!(
            between(
                old,
                &new.replace(r#""tools": { "t": { "approval": "deny" } }"#, r#""trusted": true"#)
            ),
            "policy changed"
        );
        assert!(between(old, new).contains("policy changed"));
    }

    #[test]
    fn a_server_that_is_disabled_is_removed() {
        let old = r#"{ "mcpServers": { "a": { "command": "x" } } }"#;
        let new = r#"{ "mcpServers": { "a": { "command": "x", "enabled": false } } }"#;
        assert_eq!(between(old, new), "-a");
        assert_eq!(between(new, old), "+a");
    }
}
