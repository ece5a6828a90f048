//! The settings that a policy is compiled from.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use toolgate_catalog::ServerName;

use crate::{
    CallLimit, CallPath, CallerCondition, Claims, FindingsMode, FlowMode, LabelSet, Mode,
    NamePattern, NewTools, PatternError, Presence, Rule, RuleOrigin, RuleTarget, ToolPattern,
    Trust, Verdict,
};

/// How many rules a policy may have.
pub const MAX_RULES: usize = 10_000;

/// The settings of a policy. By default every call is allowed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PolicySettings {
    /// The mode for tools that no rule matches.
    pub mode: Mode,
    /// Which servers' claims of harmlessness count.
    pub claims: Claims,
    /// How the data of a call is determined.
    pub flow: FlowMode,
    /// How long what a caller has read counts for the caller's other sessions.
    pub remember: RememberTime,
    /// Whether a result that only decides counts as well: whether a script makes a call, or which of
    /// several values it sends.
    pub branches: bool,
    /// How new tools of a known server are treated.
    pub new_tools: NewTools,
    /// How tools with suspicious definitions are treated.
    pub findings: FindingsMode,
    /// The rules, in the order of the file.
    pub rules: Vec<Rule>,
    /// Labels for tools by pattern.
    pub labels: Vec<(RuleTarget, LabelSet)>,
    /// The settings of the servers and their tools.
    pub servers: BTreeMap<ServerName, ServerPolicy>,
    /// How a person who allows something shows that they are there.
    pub presence: Presence,
    /// How many calls may be made.
    pub limits: Vec<Arc<CallLimit>>,
    /// Another policy that decides about every call as well. Of the two decisions the stricter one
    /// holds. [`PolicySettings::under`] sets it.
    pub above: Option<Arc<PolicySettings>>,
}

/// How long after the end of a session its labelled results count for the other sessions of the
/// same caller. Zero keeps sessions apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RememberTime(pub Duration);

/// The policy settings of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerPolicy {
    /// Whether the server's claims about its tools are believed.
    pub trust: Trust,
    /// The labels of its tools, unless a tool has its own.
    pub labels: LabelSet,
    /// The settings of single tools, by the names that the server gives them.
    pub tools: BTreeMap<Arc<str>, ToolPolicySettings>,
    /// Where the entry is written, such as `mcpServers.github` and `toolgate.json:3:5`.
    pub origin: Option<RuleOrigin>,
}

/// The policy settings of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolPolicySettings {
    /// The verdict about its calls, which is a rule for this tool.
    pub approval: Option<Verdict>,
    /// Its labels. They replace those of its server and those by pattern.
    pub labels: Option<LabelSet>,
    /// The only way in which it may be called. `None` allows both.
    pub only_from: Option<CallPath>,
}

impl Default for RememberTime {
    fn default() -> Self {
        Self(Duration::from_hours(1))
    }
}

impl RuleTarget {
    /// Reads the target of a rule or of labels.
    ///
    /// With `server`, `tool` is a name that the server gives or an exposed name. Without, it is an
    /// exposed name or `server/tool`. All of them may be patterns.
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
    /// Settings with nothing but a mode.
    pub fn of_mode(mode: Mode) -> Self {
        Self { mode, ..Self::default() }
    }

    /// These settings with another policy above them, which they cannot loosen: what `above` denies
    /// or asks about stays denied or asked about.
    ///
    /// What `above` says in favour of its own servers does not count here: a server of the same name
    /// is another server.
    #[must_use]
    pub fn under(mut self, above: &Self) -> Self {
        self.claims = self.claims.max(above.claims);
        self.flow = self.flow.max(above.flow);
        self.remember = self.remember.max(above.remember);
        self.branches |= above.branches;
        self.new_tools = self.new_tools.max(above.new_tools);
        self.findings = self.findings.max(above.findings);
        self.presence = self.presence.max(above.presence);
        let mut above = above.clone();
        for server in above.servers.values_mut() {
            server.trust = Trust::Unknown;
            for tool in server.tools.values_mut() {
                tool.approval = tool.approval.filter(|verdict| *verdict != Verdict::Allow);
            }
        }
        self.above = (!above.is_idle()).then(|| Arc::new(above));
        self
    }

    /// The same settings without positions in the file, to compare two versions of a file.
    #[must_use]
    pub fn without_positions(&self) -> Self {
        let mut plain = self.clone();
        for rule in &mut plain.rules {
            if let RuleOrigin::Configured { position, .. } = &mut rule.origin {
                *position = None;
            }
        }
        plain.servers.values_mut().for_each(|server| server.origin = None);
        plain.above = plain.above.map(|above| Arc::new(above.without_positions()));
        plain
    }

    /// Whether these settings can never refuse, ask about or hold back anything.
    pub fn is_idle(&self) -> bool {
        let labels = |server: &ServerPolicy| server.labels.is_empty() && server.tools.is_empty();
        self.mode == Mode::Allow
            && self.findings == FindingsMode::Warn
            && self.rules.is_empty()
            && self.limits.is_empty()
            && self.labels.is_empty()
            && self.servers.values().all(labels)
            && self.above.as_ref().is_none_or(|above| above.is_idle())
    }

    /// Whether rules about data can apply: some tool has labels, and data is tracked.
    pub fn watches_data(&self) -> bool {
        let is_labelled = |server: &ServerPolicy| {
            !server.labels.is_empty()
                || server.tools.values().any(|tool| tool.labels.is_some_and(|it| !it.is_empty()))
        };
        let own = !self.labels.is_empty() || self.servers.values().any(is_labelled);
        (own && self.flow != FlowMode::Off)
            || self.above.as_ref().is_some_and(|above| above.watches_data())
    }

    /// All rules in the order in which a later rule overrides an equally specific earlier one: the
    /// built-in ones, the approvals and allowed callers at tools, the rules of the policy.
    pub(crate) fn all_rules(&mut self) -> Vec<Rule> {
        let mut rules: Vec<Rule> = Rule::built_in().into();
        for (server, settings) in &self.servers {
            for (tool, of_tool) in &settings.tools {
                let target = RuleTarget {
                    server: Some(NamePattern::Exactly(server.as_str().into())),
                    tool: Some(ToolPattern::own_name(tool)),
                    ..RuleTarget::default()
                };
                let origin = |key: &str| origin(server, settings, tool, key);
                if let Some(verdict) = of_tool.approval {
                    rules.push(Rule::new(target.clone(), verdict, origin("approval")));
                }
                if let Some(only) = of_tool.only_from {
                    let from = Some(only.other());
                    let reason = match only {
                        CallPath::Direct => "it may be called directly alone, not by a script",
                        CallPath::Script => "it may be called by scripts alone: use `run_code`",
                    };
                    rules.push(Rule {
                        caller: CallerCondition { from, ..CallerCondition::default() },
                        reason: Some(reason.into()),
                        ..Rule::new(target, Verdict::Deny, origin("allowedCallers"))
                    });
                }
            }
        }
        rules.append(&mut self.rules);
        rules
    }
}

/// Where a key of a tool is written.
fn origin(server: &ServerName, settings: &ServerPolicy, tool: &str, key: &str) -> RuleOrigin {
    let (path, position) = match &settings.origin {
        Some(RuleOrigin::Configured { path, position }) => (path.to_string(), position.clone()),
        Some(RuleOrigin::BuiltIn(_)) | None => (format!("mcpServers.{server}"), None),
    };
    RuleOrigin::Configured { path: format!("{path}.tools.{tool}.{key}").into(), position }
}
