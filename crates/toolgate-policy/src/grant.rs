//! What people have allowed.
//!
//! A grant turns a question into a permission. It never turns a denial into one, and it covers data
//! only as far as the person who gave it was told of it.

use std::{collections::HashMap, fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;
use toolgate_catalog::{Fingerprint, ToolId};

use crate::{ArgumentConditions, Decision, LabelSet, Verdict};

/// How many grants are kept.
pub const MAX_GRANTS: usize = 10_000;

/// A moment, in milliseconds since 1970. Who asks says what time it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

/// The name by which a grant is listed and revoked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GrantId(pub Arc<str>);

/// What a person allowed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    /// Its name.
    pub id: GrantId,
    /// For how long.
    pub scope: GrantScope,
    /// To whom: the identity that somebody has made sure of. A yes to one caller is none to another.
    pub caller: Arc<str>,
    /// Which tool.
    pub tool: ToolId,
    /// What the server was that the tool is of. Another server of the same name is asked for again.
    pub endpoint: Fingerprint,
    /// With which arguments.
    pub arguments: GrantedArguments,
    /// The labels of the data that the person was told of. A call that has to do with other data is
    /// asked for again.
    #[serde(default)]
    pub labels: LabelSet,
    /// The tools that this data came from.
    #[serde(default)]
    pub origins: Vec<ToolId>,
    /// Since when.
    pub granted_at: Timestamp,
    /// Until when, this moment excluded.
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
    /// Who gave it, as the asking side calls them.
    pub by: Arc<str>,
}

/// How long a grant holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "for", content = "id")]
pub enum GrantScope {
    /// One call; then it is gone.
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
    /// Whatever they are.
    Any,
    /// Those that are JSON-equal to the ones that were shown, by their hash.
    Exactly(Fingerprint),
    /// Those that certainly fit.
    Matching(ArgumentConditions),
}

/// A call that asks for a grant.
#[derive(Debug, Clone, Copy)]
pub struct GrantRequest<'r> {
    /// Who makes it.
    pub caller: &'r str,
    /// Its tool.
    pub tool: &'r ToolId,
    /// What the server of the tool is.
    pub endpoint: Fingerprint,
    /// Its arguments.
    pub arguments: &'r Value,
    /// The labels of its data, as [`Decision::flow_labels`] has them.
    pub labels: LabelSet,
    /// The tools that it came from, as [`Decision::flow_origins`] has them.
    pub origins: &'r [ToolId],
    /// The run that it belongs to.
    pub run: Option<&'r str>,
    /// The session that it belongs to.
    pub session: Option<&'r str>,
    /// What time it is.
    pub now: Timestamp,
}

/// All grants, found by their tool.
#[derive(Debug, Clone, Default)]
pub struct Grants {
    by_tool: HashMap<ToolId, Vec<Grant>>,
    tool_of: HashMap<GrantId, ToolId>,
}

/// What a decision and the grants make of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Authorisation {
    /// It goes through: by the policy, or by a grant.
    Allowed(Option<GrantId>),
    /// A person has to be asked.
    Ask,
    /// It is refused.
    Denied,
}

/// There are [`MAX_GRANTS`] already. Those still hold; this one was not added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("there are {MAX_GRANTS} grants already: revoke some, or write a rule")]
pub struct Full;

impl GrantedArguments {
    /// These very arguments.
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
    /// In words, bounded and safe to be shown.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => formatter.write_str("any arguments"),
            Self::Exactly(_) => formatter.write_str("the arguments that were shown"),
            Self::Matching(conditions) => write!(formatter, "only where {conditions}"),
        }
    }
}

impl Grant {
    /// Whether it holds at a moment.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.granted_at <= now && self.expires_at.is_none_or(|end| now < end)
    }

    /// Whether it covers a call.
    pub fn covers(&self, request: &GrantRequest<'_>) -> bool {
        let in_scope = match &self.scope {
            GrantScope::Once | GrantScope::Always => true,
            GrantScope::Run(run) => request.run == Some(&**run),
            GrantScope::Session(session) => request.session == Some(&**session),
        };
        in_scope
            && *self.caller == *request.caller
            && self.tool == *request.tool
            && self.endpoint == request.endpoint
            && self.is_valid(request.now)
            && self.labels.is_superset(request.labels)
            && request.origins.iter().all(|origin| self.origins.contains(origin))
            && self.arguments.cover(request.arguments)
    }
}

impl Grants {
    /// Adds a grant; one of the same name is replaced.
    pub fn add(&mut self, grant: Grant) -> Result<(), Full> {
        self.revoke(&grant.id);
        if self.tool_of.len() >= MAX_GRANTS {
            return Err(Full);
        }
        self.tool_of.insert(grant.id.clone(), grant.tool.clone());
        self.by_tool.entry(grant.tool.clone()).or_default().push(grant);
        Ok(())
    }

    /// A grant that covers the call. One that outlasts the call is preferred to one that is used up
    /// by it.
    pub fn covers(&self, request: &GrantRequest<'_>) -> Option<&Grant> {
        let mut covering: Vec<&Grant> =
            self.by_tool.get(request.tool)?.iter().filter(|grant| grant.covers(request)).collect();
        covering.sort_by_key(|grant| grant.scope == GrantScope::Once);
        covering.first().copied()
    }

    /// What becomes of a call. A grant for one call is used up by it. The labels of its data are those
    /// of the decision, whatever the request says.
    ///
    /// This is the one place where grants meet verdicts: a denial stays one.
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

    /// Takes a grant back.
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

    /// Forgets those that have expired, and returns them.
    pub fn expire(&mut self, now: Timestamp) -> Vec<Grant> {
        let expired: Vec<GrantId> = self
            .iter()
            .filter(|grant| grant.expires_at.is_some_and(|end| end <= now))
            .map(|grant| grant.id.clone())
            .collect();
        expired.iter().filter_map(|id| self.revoke(id)).collect()
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
