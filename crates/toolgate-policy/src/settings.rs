//! What a configuration says, before it becomes a policy.

use std::{collections::BTreeMap, sync::Arc};

use toolgate_catalog::ServerName;

use crate::{
    Claims, Findings, FlowMode, LabelSet, Mode, NamePattern, NewTools, PatternError, Rule,
    RuleOrigin, RuleTarget, ToolPattern, Trust, Verdict,
};

/// How many rules a policy may have.
pub const MAX_RULES: usize = 10_000;

/// What a policy is made of. Without anything set, every call goes through.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PolicySettings {
    /// What holds for a tool that no rule speaks of.
    pub mode: Mode,
    /// Whose claims of harmlessness count.
    pub claims: Claims,
    /// How it is judged which data a call carries.
    pub flow: FlowMode,
    /// What becomes of tools that a known server did not have before.
    pub new_tools: NewTools,
    /// What becomes of tools with something suspicious in their definition.
    pub findings: Findings,
    /// The rules, in the order of the file.
    pub rules: Vec<Rule>,
    /// Labels of tools by pattern.
    pub labels: Vec<(RuleTarget, LabelSet)>,
    /// What is set at the servers and their tools.
    pub servers: BTreeMap<ServerName, ServerPolicy>,
}

/// What the entry of a server says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerPolicy {
    /// Whether what it says of its tools is believed.
    pub trust: Trust,
    /// The labels of its tools, unless they have their own.
    pub labels: LabelSet,
    /// What is set for single tools, by the names that the server gives them.
    pub tools: BTreeMap<Arc<str>, ToolPolicySettings>,
    /// Where the entry is written, such as `mcpServers.github` and `toolgate.json:3:5`.
    pub origin: Option<RuleOrigin>,
}

/// What the entry of a tool says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolPolicySettings {
    /// What becomes of its calls: a rule for this one tool.
    pub approval: Option<Verdict>,
    /// Its labels, in the place of its server's and of those by pattern.
    pub labels: Option<LabelSet>,
}

impl RuleTarget {
    /// Reads a target as rules and labels write it.
    ///
    /// With a `server`, `tool` is a name that the server gives or an exposed one. Without, it is an
    /// exposed name or `server/tool`. All may be patterns.
    pub fn read(server: Option<&str>, tool: Option<&str>) -> Result<Self, PatternError> {
        let (server, tool) = match (server, tool) {
            (None, None) => (None, None),
            (Some(server), None) => (Some(NamePattern::new(server)?), None),
            (Some(server), Some(tool)) => {
                (Some(NamePattern::new(server)?), Some(ToolPattern::of_server(tool)?))
            }
            (None, Some(tool)) => {
                let (server, tool) = ToolPattern::new(tool)?;
                (server, Some(tool))
            }
        };
        Ok(Self { server, tool, ..Self::default() })
    }
}

impl PolicySettings {
    /// The mode alone: what one line of a configuration says.
    pub fn of_mode(mode: Mode) -> Self {
        Self { mode, ..Self::default() }
    }

    /// Whether nothing in it could ever refuse, ask about or hold back anything.
    pub fn is_idle(&self) -> bool {
        let labels = |server: &ServerPolicy| server.labels.is_empty() && server.tools.is_empty();
        self.mode == Mode::Allow
            && self.findings == Findings::Warn
            && self.rules.is_empty()
            && self.labels.is_empty()
            && self.servers.values().all(labels)
    }

    /// All rules in the order in which a later one wins over an equal earlier one: those that
    /// toolgate brings, the approvals at the tools, then the rules of the policy.
    pub(crate) fn all_rules(&mut self) -> Vec<Rule> {
        let mut rules: Vec<Rule> = Rule::built_in().into();
        for (server, settings) in &self.servers {
            for (tool, verdict) in settings
                .tools
                .iter()
                .filter_map(|(tool, settings)| Some((tool, settings.approval?)))
            {
                let target = RuleTarget {
                    server: Some(NamePattern::Exactly(server.as_str().into())),
                    tool: Some(ToolPattern::own_name(tool)),
                    ..RuleTarget::default()
                };
                rules.push(Rule::new(target, verdict, approval_origin(server, settings, tool)));
            }
        }
        rules.append(&mut self.rules);
        rules
    }
}

fn approval_origin(server: &ServerName, settings: &ServerPolicy, tool: &str) -> RuleOrigin {
    let (path, place) = match &settings.origin {
        Some(RuleOrigin::Configured { path, place }) => (path.to_string(), place.clone()),
        Some(RuleOrigin::BuiltIn(_)) | None => (format!("mcpServers.{server}"), None),
    };
    RuleOrigin::Configured { path: format!("{path}.tools.{tool}.approval").into(), place }
}
