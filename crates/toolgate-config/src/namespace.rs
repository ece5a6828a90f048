//! The `namespaces` key: sets of servers that are served apart.

use toolgate_catalog::{DeferredStyle, RequestedMode};
use toolgate_policy::PolicySettings;

use crate::document::Member;
use crate::scope::Scope;
use crate::section::{
    Choice as _, Definitions, Flag, Section as _, Word, Wrong, choices, section, strings_schema,
};
use crate::{Configuration, ProblemSeverity, ToolSearchConfig, policy, tool_search};

section! {
    /// A subset of the servers, served at its own path.
    pub struct NamespaceConfig as "Namespace" fields {
        /// The end of the path: 1 to 64 lower-case letters, digits, `-` and `_`.
        name: String;
        /// Its servers, each of them a server of the file.
        servers: Vec<String>;
        /// When tools are deferred and how they are found: the settings of the file, replaced by
        /// those of the namespace.
        tool_search: ToolSearchConfig;
        /// Who may call what: the policy of the file, then the rules and labels of the namespace.
        /// Other values of the namespace replace those of the file.
        policy: PolicySettings;
    } keys {
        /// Its servers, by their names in this file.
        "servers" => strings_schema;
        /// Values that replace those of the file's `toolSearch`.
        "toolSearch" => Definitions::reference::<ToolSearchConfig>;
        /// The policy of the namespace. Its rules and labels are added to those of the file, so
        /// that a `deny` of the file also denies here. Its other values replace those of the file.
        "policy" => policy::schema;
        /// What a session lists: every tool (`direct`), the meta-tools with a fixed list (`stable`)
        /// or a growing list (`dynamic`), or the meta-tools without `call_tool` (`code`). The
        /// default comes from `toolSearch`.
        "mode" => |_| ExposureMode::schema();
    } {
        /// Whether toolgate leaves its servers out at `/mcp`.
        "exclusive" => exclusive: bool = false, Flag(Wrong::Becomes(true));
    }
}

/// The mode of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExposureMode {
    /// The meta-tools once a threshold of `toolSearch` is passed, else every tool.
    Auto,
    /// Every tool.
    Direct,
    /// The meta-tools, in the style of `toolSearch.deferred`.
    Deferred,
    /// The meta-tools, in a list that never changes.
    Stable,
    /// The meta-tools, in a list that found tools are added to.
    Dynamic,
    /// Search, details and scripts.
    Code,
}

choices! {
    ExposureMode: "auto" => Auto, "direct" => Direct, "stable" => Stable, "dynamic" => Dynamic,
        "code" => Code | "deferred" => Deferred;
}

impl ExposureMode {
    /// What to write instead of `deferred`, an older word.
    pub const INSTEAD_OF_DEFERRED: &'static str =
        "write `stable`, or `dynamic` for a list that grows";

    /// Tells of the older word, which is still read.
    pub(crate) fn hint_of_old_word(self, scope: &mut Scope<'_, '_>, member: &Member<'_>) {
        if self == Self::Deferred {
            scope.warn(member, "has an older word for the mode", Self::INSTEAD_OF_DEFERRED);
        }
    }

    /// Writes the mode into the settings that it stands for.
    pub fn apply(self, search: &mut ToolSearchConfig) {
        (search.enabled, search.deferred) = match self {
            Self::Auto => (RequestedMode::Auto, search.deferred),
            Self::Direct => (RequestedMode::Direct, search.deferred),
            Self::Deferred => (RequestedMode::Deferred, search.deferred),
            Self::Stable => (RequestedMode::Deferred, DeferredStyle::Stable),
            Self::Dynamic => (RequestedMode::Deferred, DeferredStyle::Dynamic),
            Self::Code => (RequestedMode::Code, search.deferred),
        };
    }
}

/// How many namespaces are read.
pub(crate) const MOST: usize = 100;
/// The longest name.
const LONGEST_NAME: usize = 64;

/// Reads the namespaces. An invalid one is left out, with an error, because it might show what
/// should be separate. Their policies extend `base`.
pub(crate) fn read(
    scope: &mut Scope<'_, '_>,
    member: &Member<'_>,
    configuration: &Configuration,
    base: &PolicySettings,
) -> Vec<NamespaceConfig> {
    let hint = "write `\"namespaces\": { \"work\": { \"servers\": [\"…\"] } }`";
    let namespaces = scope.section(member, ProblemSeverity::Error, "", hint, |scope| {
        let mut namespaces = Vec::new();
        for member in &scope.object.members {
            if let Some(predicate) = refusal(&member.key, namespaces.len()) {
                let at = scope.at.key(member);
                scope.complain(ProblemSeverity::Error, &at, &predicate, "");
                continue;
            }
            namespaces.extend(read_one(scope, member, configuration, base));
        }
        namespaces
    });
    namespaces.unwrap_or_default()
}

fn refusal(name: &str, count: usize) -> Option<String> {
    let plain = |character: char| {
        character.is_ascii_lowercase() || character.is_ascii_digit() || "-_".contains(character)
    };
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(plain) {
        return Some(format!(
            "is ignored: the name of a namespace must have 1 to {LONGEST_NAME} lower-case letters, \
             digits, `-` and `_`, since it is part of a path"
        ));
    }
    (count >= MOST).then(|| format!("is ignored: a file may have at most {MOST} namespaces"))
}

fn read_one(
    scope: &mut Scope<'_, '_>,
    member: &Member<'_>,
    configuration: &Configuration,
    base: &PolicySettings,
) -> Option<NamespaceConfig> {
    let namespace = scope.section(member, ProblemSeverity::Error, "", "", |scope| {
        scope.report_unknown::<NamespaceConfig>();
        if scope.first_error.is_some() {
            // It is unknown what it should protect.
            return None;
        }
        let Some(listed) = scope.object.get("servers") else {
            scope.at.offset = member.key_offset;
            scope.require("servers", "add `\"servers\": [\"…\"]`");
            return None;
        };
        let mut namespace = NamespaceConfig {
            name: member.key.to_string(),
            tool_search: configuration.tool_search.clone(),
            policy: configuration.policy.clone(),
            ..NamespaceConfig::default()
        };
        for (name, at) in scope.strings(listed)? {
            if !configuration.servers.iter().any(|server| server.name == name) {
                let predicate = "names no server of this file; it is ignored";
                scope.complain(ProblemSeverity::Warning, &at, predicate, "");
            } else if !namespace.servers.iter().any(|server| server == name) {
                namespace.servers.push(name.to_owned());
            }
        }
        namespace.read_keys(scope);
        if let Some(member) = scope.object.get("toolSearch") {
            namespace.tool_search = tool_search::read(scope, member, namespace.tool_search);
        }
        if let Some(mode) = scope.setting("mode", &Word::<ExposureMode>(Wrong::Ignored)) {
            if let Some(member) = scope.object.get("mode") {
                mode.hint_of_old_word(scope, member);
            }
            mode.apply(&mut namespace.tool_search);
        }
        if let Some(member) = scope.object.written("policy") {
            let servers = namespace.policy.servers;
            let base = PolicySettings { servers, ..base.clone() };
            namespace.policy = policy::read(scope, member, base);
        }
        Some(namespace)
    });
    namespace.flatten()
}
