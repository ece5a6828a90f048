//! Grants: what people have allowed.
//!
//! A grant replaces a question to a person. It never overrides a denial, and it covers only data
//! that the person was informed of.

use std::{collections::HashMap, fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;
use toolgate_catalog::{Fingerprint, ToolId};

use crate::{ArgumentConditions, Decision, LabelSet, Presence, Verdict};

/// The largest number of grants.
pub const MAX_GRANTS: usize = 10_000;

/// A time in milliseconds since 1970. The caller supplies the current time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

/// The id by which a grant is listed and revoked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GrantId(pub Arc<str>);

/// A stored permission for later calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    /// The id of the grant.
    pub id: GrantId,
    /// How long the grant holds.
    pub scope: GrantScope,
    /// The run that made the call. A grant for one call is used by that run alone, and a grant for a
    /// call outside of runs by no run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Arc<str>>,
    /// The authenticated caller that the grant belongs to. It does not cover other callers.
    pub caller: Arc<str>,
    /// The tool.
    pub tool: ToolId,
    /// The fingerprint of the tool's server. Another server of the same name is not covered.
    pub endpoint: Fingerprint,
    /// The definition of the tool that the person decided about. Another one is not covered. Grants
    /// of earlier versions have none, and cover all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Fingerprint>,
    /// The arguments that the grant covers.
    pub arguments: GrantedArguments,
    /// The hash of what the client sent beside the arguments, in `_meta`; `None` for nothing. A call
    /// with another `_meta` is not covered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Fingerprint>,
    /// The labels of the data that the person was informed of. A call with other data is not
    /// covered.
    #[serde(default)]
    pub labels: LabelSet,
    /// The tools that this data came from.
    #[serde(default)]
    pub origins: Vec<ToolId>,
    /// When the grant was given.
    pub granted_at: Timestamp,
    /// When the grant expires. At this time it no longer holds.
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
    /// The name of the person who gave the grant, as reported by the approval channel.
    pub by: Arc<str>,
    /// How the person showed that they were there. A call that requires more is not covered.
    #[serde(default, skip_serializing_if = "Presence::is_terminal")]
    pub presence: Presence,
}

/// How long a grant holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "for", content = "id")]
pub enum GrantScope {
    /// One call, which uses up the grant.
    Once,
    /// The calls of one run.
    Run(Arc<str>),
    /// The calls of one session.
    Session(Arc<str>),
    /// All calls of the caller.
    Always,
}

/// Which arguments a grant covers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GrantedArguments {
    /// All arguments.
    Any,
    /// Arguments that are JSON-equal to the ones that the person saw, by their hash.
    Exactly(Fingerprint),
    /// Arguments that certainly fulfil the conditions.
    Matching(ArgumentConditions),
}

/// A call for which a grant is looked up.
#[derive(Debug, Clone, Copy)]
pub struct GrantRequest<'r> {
    /// The caller.
    pub caller: &'r str,
    /// The tool.
    pub tool: &'r ToolId,
    /// The fingerprint of the tool's server.
    pub endpoint: Fingerprint,
    /// The fingerprint of the tool's definition.
    pub definition: Fingerprint,
    /// The arguments.
    pub arguments: &'r Value,
    /// The hash of what the client sends beside the arguments, in `_meta`.
    pub meta: Option<Fingerprint>,
    /// The labels of the data, from [`Decision::flow_labels`].
    pub labels: LabelSet,
    /// The tools that the data came from, from [`Decision::flow_origins`].
    pub origins: &'r [ToolId],
    /// The run that the call belongs to.
    pub run: Option<&'r str>,
    /// The session that the call belongs to.
    pub session: Option<&'r str>,
    /// How a person who allows the call has to show that they are there.
    pub presence: Presence,
    /// The current time.
    pub now: Timestamp,
}

/// All grants, indexed by tool.
#[derive(Debug, Clone, Default)]
pub struct Grants {
    by_tool: HashMap<ToolId, Vec<Grant>>,
    tool_of: HashMap<GrantId, ToolId>,
}

/// The result of a decision and the grants.
#[derive(Debug, Clone, PartialEq)]
pub enum Authorisation {
    /// The call is allowed, by the policy or by this grant.
    Allowed(Option<GrantId>),
    /// A person has to be asked.
    Ask,
    /// The call is refused.
    Denied,
}

/// There are already [`MAX_GRANTS`] grants. They stay valid; the new one was not added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("there are {MAX_GRANTS} grants already: revoke some, or write a rule")]
pub struct GrantsFull;

impl GrantedArguments {
    /// A grant for exactly these arguments.
    pub fn exactly(arguments: &Value) -> Self {
        Self::Exactly(Fingerprint::of(arguments))
    }

    fn cover(&self, arguments: &Value) -> bool {
        match self {
            Self::Any => true,
            Self::Exactly(hash) => Fingerprint::of(arguments) == *hash,
            Self::Matching(conditions) => conditions.apply(arguments, Verdict::Allow),
        }
    }
}

impl fmt::Display for GrantedArguments {
    /// Displays the arguments with a size limit and without control characters.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => formatter.write_str("any arguments"),
            Self::Exactly(_) => formatter.write_str("the arguments that were shown"),
            Self::Matching(conditions) => write!(formatter, "only where {conditions}"),
        }
    }
}

impl Grant {
    /// Whether the grant holds at `now`.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.granted_at <= now && self.expires_at.is_none_or(|end| now < end)
    }

    /// Whether the grant covers a call.
    pub fn covers(&self, request: &GrantRequest<'_>) -> bool {
        let in_scope = match &self.scope {
            GrantScope::Always => true,
            GrantScope::Once => request.run == self.run.as_deref(),
            GrantScope::Run(run) => request.run == Some(&**run),
            GrantScope::Session(session) => request.session == Some(&**session),
        };
        in_scope
            && *self.caller == *request.caller
            && self.tool == *request.tool
            && self.endpoint == request.endpoint
            && self.definition.is_none_or(|definition| definition == request.definition)
            && self.meta == request.meta
            && self.is_valid(request.now)
            && self.presence >= request.presence
            && self.labels.is_superset(request.labels)
            && request.origins.iter().all(|origin| self.origins.contains(origin))
            && self.arguments.cover(request.arguments)
    }
}

impl Grants {
    /// Adds a grant. A grant with the same id is replaced.
    pub fn add(&mut self, grant: Grant) -> Result<(), GrantsFull> {
        self.revoke(&grant.id);
        if self.tool_of.len() >= MAX_GRANTS {
            return Err(GrantsFull);
        }
        self.tool_of.insert(grant.id.clone(), grant.tool.clone());
        self.by_tool.entry(grant.tool.clone()).or_default().push(grant);
        Ok(())
    }

    /// A grant that covers the call. A lasting grant is preferred to one for a single call.
    pub fn covers(&self, request: &GrantRequest<'_>) -> Option<&Grant> {
        let mut covering: Vec<&Grant> =
            self.by_tool.get(request.tool)?.iter().filter(|grant| grant.covers(request)).collect();
        covering.sort_by_key(|grant| grant.scope == GrantScope::Once);
        covering.first().copied()
    }

    /// Decides about a call and uses up a grant for a single call. The labels of the data come from
    /// the decision, whatever the request contains.
    ///
    /// Only this function combines grants with verdicts. A denial stays a denial.
    pub fn authorise(&mut self, decision: &Decision, request: &GrantRequest<'_>) -> Authorisation {
        match decision.verdict {
            Verdict::Allow => Authorisation::Allowed(None),
            Verdict::Deny => Authorisation::Denied,
            Verdict::Ask => {
                let (labels, origins) = (decision.flow_labels(), decision.flow_origins());
                match self.take(&GrantRequest { labels, origins: &origins, ..*request }) {
                    Some(id) => Authorisation::Allowed(Some(id)),
                    None => Authorisation::Ask,
                }
            }
        }
    }

    /// Revokes a grant.
    pub fn revoke(&mut self, id: &GrantId) -> Option<Grant> {
        let tool = self.tool_of.remove(id)?;
        let grants = self.by_tool.get_mut(&tool)?;
        let position = grants.iter().position(|grant| grant.id == *id)?;
        let revoked = grants.remove(position);
        if grants.is_empty() {
            self.by_tool.remove(&tool);
        }
        Some(revoked)
    }

    /// All grants, by tool and then by age.
    pub fn iter(&self) -> impl Iterator<Item = &Grant> {
        let mut grants: Vec<&Grant> = self.by_tool.values().flatten().collect();
        grants.sort_by(|one, other| {
            (&one.tool, one.granted_at, &one.id).cmp(&(&other.tool, other.granted_at, &other.id))
        });
        grants.into_iter()
    }

    fn take(&mut self, request: &GrantRequest<'_>) -> Option<GrantId> {
        let grant = self.covers(request)?;
        let id = grant.id.clone();
        if grant.scope == GrantScope::Once {
            self.revoke(&id);
        }
        Some(id)
    }
}
