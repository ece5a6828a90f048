//! What differs between two versions of a configuration.

use std::{collections::BTreeSet, fmt, sync::Arc};

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
    /// Whether the audit log is written in another way.
    audit: bool,
    /// The namespaces that are new.
    pub(super) namespaces: Vec<String>,
    /// What takes effect after a restart, whatever is served.
    restart: Vec<&'static str>,
    /// What of a host takes effect after a restart.
    host_restart: Vec<&'static str>,
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
        // So has a server.
        let stays = |name: &ServerName| [old, new].iter().all(|it| has_server(it, name));
        changes.policy = policies(old, &both, &stays) != policies(new, &both, &stays);
        let namespaces = |configuration: &Configuration| {
            let namespaces = configuration.namespaces.iter();
            let parts = namespaces.map(|it| (it.name.clone(), it.servers.clone(), it.exclusive));
            parts.collect::<Vec<_>>()
        };
        let searches = |configuration| searches(configuration, &both, Clone::clone);
        changes.sections = named([
            ("namespaces", namespaces(old) != namespaces(new)),
            ("toolSearch", searches(old) != searches(new)),
            ("codeMode", old.code_mode != new.code_mode),
            ("registry", old.registry != new.registry),
            ("skills", old.skills != new.skills),
        ]);
        changes.audit = old.audit != new.audit;
        let added = new.namespaces.iter().filter(|it| !both(&it.name));
        changes.namespaces = added.map(|it| it.name.clone()).collect();
        changes.restart = named([
            ("gateway", old.gateway != new.gateway),
            ("telemetry", old.telemetry != new.telemetry),
        ]);
        changes.host_restart = host_restart(old, new, &both);
        changes
    }

    /// Whether nothing differs.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What the differences mean for one server that is passed through.
    pub(super) fn of_server(&self, server: &str) -> String {
        let mut parts = Vec::new();
        if self.policy {
            parts.push("policy changed".to_owned());
        }
        if self.audit {
            parts.push("audit changed".to_owned());
        }
        // Each session is a connection to the server.
        if self.changed.contains(server) {
            parts.push(format!("{server} changed, for new sessions"));
        }
        if self.removed.iter().any(|name| name == server) {
            parts.push(format!("{server} is gone from the file, and stays until a restart"));
        }
        push_restart(&self.restart, &mut parts);
        if parts.is_empty() {
            parts.push(format!("nothing changed for {server}"));
        }
        parts.join("; ")
    }
}

fn push_restart(restart: &[&str], parts: &mut Vec<String>) {
    if !restart.is_empty() {
        parts.push(format!("needs a restart: {}", restart.join(", ")));
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
        let mut restart = self.restart.clone();
        restart.extend(self.audit.then_some("audit"));
        restart.extend(&self.host_restart);
        push_restart(&restart, &mut parts);
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

fn has_server(configuration: &Configuration, name: &ServerName) -> bool {
    usable(configuration).any(|it| it.name == name.as_str())
}

/// The policies of the file and of these namespaces, for these servers. Where they are written does not
/// matter.
fn policies(
    configuration: &Configuration,
    of: &impl Fn(&str) -> bool,
    stays: &impl Fn(&ServerName) -> bool,
) -> Vec<PolicySettings> {
    let namespaces = configuration.namespaces.iter().filter(|it| of(&it.name)).map(|it| &it.policy);
    let all = std::iter::once(&configuration.policy).chain(namespaces);
    all.map(|policy| effective(policy, stays)).collect()
}

/// What a policy says about these servers, without a policy above it that says the same.
fn effective(policy: &PolicySettings, stays: &impl Fn(&ServerName) -> bool) -> PolicySettings {
    let mut plain = policy.without_positions();
    plain.servers.retain(|name, _| stays(name));
    let above = plain.above.take().map(|above| effective(&above, stays));
    plain.above = above.filter(|above| *above != plain).map(Arc::new);
    plain
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

/// What differs and cannot change while a host runs.
fn host_restart(
    old: &Configuration,
    new: &Configuration,
    both: &impl Fn(&str) -> bool,
) -> Vec<&'static str> {
    let ranking = |configuration| {
        searches(configuration, both, |it| (it.strategy, it.usage_memory, it.embeddings.clone()))
    };
    let workers = |configuration: &Configuration| {
        let code = &configuration.code_mode;
        (code.warm_workers, code.max_runs, code.max_parallel_calls)
    };
    named([
        ("strategy, usageMemory and embeddings of toolSearch", ranking(old) != ranking(new)),
        ("workers and parallel calls of codeMode", workers(old) != workers(new)),
    ])
}

/// The names of what differs.
fn named<const COUNT: usize>(sections: [(&'static str, bool); COUNT]) -> Vec<&'static str> {
    sections.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use toolgate_config::Format;

    use super::*;

    fn between(old: &str, new: &str) -> String {
        let parse =
            |text: &str| toolgate_config::parse(text, Format::Jsonc, "f", &|_| None).unwrap();
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
            "+c, -b, ~a; policy changed; namespaces changed; toolSearch changed; needs a restart: gateway"
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
    fn a_server_with_labels_comes_without_another_policy() {
        let old = r#"{ "mcpServers": { "a": { "command": "x" } } }"#;
        let new = r#"{ "mcpServers": { "a": { "command": "x" },
            "b": { "command": "y", "labels": ["private"] } } }"#;
        assert_eq!(between(old, new), "+b");
        assert_eq!(between(new, old), "-b");
    }

    #[test]
    fn no_policy_under_no_policy_is_no_change() {
        let parse =
            |text: &str| toolgate_config::parse(text, Format::Jsonc, "f", &|_| None).unwrap();
        let own = parse(r#"{ "mcpServers": { "a": { "command": "x" } } }"#);
        let held = |text: &str| {
            let mut folders = parse(text);
            folders.policy = folders.policy.under(&own.policy);
            folders
        };
        let folders = held(r#"{ "mcpServers": { "a": { "command": "x" } } }"#);
        assert_ne!(folders.policy, own.policy);
        assert_eq!(Changes::between(&own, &folders).to_string(), "nothing changed");
        assert_eq!(Changes::between(&folders, &own).to_string(), "nothing changed");
        let strict = held(r#"{ "mcpServers": { "a": { "command": "x" } }, "policy": "ask" }"#);
        assert_eq!(Changes::between(&own, &strict).to_string(), "policy changed");
    }

    #[test]
    fn what_is_said_of_a_server_that_is_passed_through() {
        let parse =
            |text: &str| toolgate_config::parse(text, Format::Jsonc, "f", &|_| None).unwrap();
        let said = |old: &str, new: &str| Changes::between(&parse(old), &parse(new)).of_server("a");
        let old = r#"{ "mcpServers": { "a": { "command": "x" }, "b": { "command": "x" } } }"#;
        let changed = r#"{ "mcpServers": { "a": { "command": "y" } }, "policy": "ask",
            "audit": false, "gateway": { "maxSessions": 9 }, "codeMode": { "warmWorkers": 3 } }"#;
        assert_eq!(
            said(old, changed),
            "policy changed; audit changed; a changed, for new sessions; needs a restart: gateway"
        );
        let other = r#"{ "mcpServers": { "a": { "command": "x" } } }"#;
        assert_eq!(said(old, other), "nothing changed for a");
        let gone = r#"{ "mcpServers": { "b": { "command": "x" } } }"#;
        assert_eq!(said(old, gone), "a is gone from the file, and stays until a restart");
    }

    #[test]
    fn a_server_that_is_disabled_is_removed() {
        let old = r#"{ "mcpServers": { "a": { "command": "x" } } }"#;
        let new = r#"{ "mcpServers": { "a": { "command": "x", "enabled": false } } }"#;
        assert_eq!(between(old, new), "-a");
        assert_eq!(between(new, old), "+a");
    }
}
