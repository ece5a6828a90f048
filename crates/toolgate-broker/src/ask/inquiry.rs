//! What a person is asked.

use std::{fmt, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_catalog::{Fingerprint, Tool, ToolId};
use toolgate_policy::{
    Contact, Decision, Evidence, Grant, GrantId, GrantScope, GrantedArguments, Ground, LabelSet,
    Timestamp, definitions::shown,
};

use super::{Extent, Lasts, PersonAnswer, arguments::overview};
use crate::context::{CallContext, new_id};

/// A question about one call. Everything in it that others wrote is made safe and bounded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Inquiry {
    /// The tool.
    pub tool: ToolId,
    /// What its server is.
    pub endpoint: Fingerprint,
    /// Its exposed name.
    pub name: String,
    /// The arguments, with what is long in them shortened.
    pub arguments: String,
    /// All of them, where they were shortened; the start, where that is too much to be kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all_arguments: Option<String>,
    /// All of them, by their hash.
    pub arguments_hash: Fingerprint,
    /// The rule that asks.
    pub rule: String,
    /// Why, in the words of the configuration.
    pub reason: Option<String>,
    /// Which argument came from which result.
    pub evidence: Vec<String>,
    /// The labels of the data that the call has to do with.
    pub labels: LabelSet,
    /// The tools that this data came from.
    #[serde(default)]
    pub origins: Vec<ToolId>,
    /// The conversation.
    pub session: Arc<str>,
    /// The run.
    pub run: Option<Arc<str>>,
    /// Who is at the other end, as people call them.
    pub caller: Arc<str>,
    /// The same, as somebody has made sure of: a yes is for them.
    pub identity: Arc<str>,
}

/// How much of the arguments is shown, without what is said of the rest.
const ARGUMENTS: usize = 1_500;
const REST: usize = 100;
/// How much of them is kept for who wants to see all.
const ALL_ARGUMENTS: usize = 64 * 1024;
const NAME: usize = 128;
const CALLER: usize = 256;
const MOST_EVIDENCE: usize = 8;
const MOST_ORIGINS: usize = 16;
/// How long a yes to one call waits for the call.
const ONCE: Duration = Duration::from_hours(24);
/// How long a yes for a run or a session is kept at most: neither lives as long.
const WHILE: Duration = Duration::from_hours(7 * 24);

impl Inquiry {
    pub(crate) fn new(
        context: &CallContext,
        tool: &Tool,
        endpoint: Fingerprint,
        arguments: &Value,
        decision: &Decision,
    ) -> Self {
        let overview = overview(arguments, ARGUMENTS);
        let all = arguments.to_string();
        Self {
            tool: tool.id.clone(),
            endpoint,
            name: tool.name.to_string(),
            arguments: shown(&overview, ARGUMENTS + REST),
            all_arguments: (overview != all).then(|| shown(&all, ALL_ARGUMENTS)),
            arguments_hash: Fingerprint::of(arguments),
            rule: rule(decision),
            reason: decision.reason().map(str::to_owned),
            evidence: evidence(decision),
            labels: decision.flow_labels(),
            origins: decision.flow_origins(),
            session: Arc::clone(context.session.id()),
            run: context.run.as_ref().map(|(run, _)| Arc::clone(run.id())),
            caller: Arc::clone(&context.session.caller().name),
            identity: Arc::clone(context.identity()),
        }
    }

    /// The same for the same call of the same caller, so that a person is asked once however many
    /// conversations make it. A run has questions of its own: it is the run that waits for the answer.
    pub fn subject(&self) -> String {
        let Self { tool: ToolId { server, tool }, endpoint, arguments_hash, labels, .. } = self;
        let place = self.run.as_deref().unwrap_or_default();
        let who = &self.identity;
        format!("{server}/{tool} {endpoint} {arguments_hash} {labels} {place} {who}")
    }

    /// Whether an answer to the other question is one to this, too: it was asked in the same run, or
    /// else in the same conversation.
    pub(crate) fn is_of_the_same_place(&self, other: &Self) -> bool {
        match &self.run {
            Some(run) => other.run.as_ref() == Some(run),
            None => other.run.is_none() && other.session == self.session,
        }
    }

    /// How long a yes can hold.
    pub fn choices(&self) -> impl Iterator<Item = Lasts> {
        let all = [Lasts::Once, Lasts::Run, Lasts::Session, Lasts::Always];
        let in_run = self.run.is_some();
        all.into_iter().filter(move |lasts| in_run || *lasts != Lasts::Run)
    }

    /// Whether a yes of this extent means the call itself; nothing where not all of its arguments are
    /// kept.
    pub fn is_meant_by(&self, extent: &Extent) -> Option<bool> {
        let all = self.all_arguments.as_ref().unwrap_or(&self.arguments);
        let arguments: Value = serde_json::from_str(all).ok()?;
        let whole = Fingerprint::of(&arguments) == self.arguments_hash;
        whole.then(|| extent.covers(&arguments))
    }

    /// What a yes allows from now on. `None` for a no, and for the run of a call that has none.
    pub fn grant(
        &self,
        answer: &PersonAnswer,
        by: &str,
        now: Timestamp,
        expires: Option<Duration>,
    ) -> Option<Grant> {
        let PersonAnswer::Allow { lasts, extent } = answer else { return None };
        let (scope, at_most) = match lasts {
            Lasts::Once => (GrantScope::Once, Some(ONCE)),
            Lasts::Run => (GrantScope::Run(self.run.clone()?), Some(WHILE)),
            Lasts::Session => (GrantScope::Session(Arc::clone(&self.session)), Some(WHILE)),
            Lasts::Always => (GrantScope::Always, None),
        };
        let arguments = match extent {
            _ if *lasts == Lasts::Once => GrantedArguments::Exactly(self.arguments_hash),
            Extent::These => GrantedArguments::Exactly(self.arguments_hash),
            Extent::Any => GrantedArguments::Any,
            Extent::Where(conditions) => GrantedArguments::Matching(conditions.clone()),
        };
        let ends = expires.into_iter().chain(at_most).min();
        let until = |length: Duration| {
            Timestamp(now.0.saturating_add(u64::try_from(length.as_millis()).unwrap_or(u64::MAX)))
        };
        Some(Grant {
            id: GrantId(new_id("g")),
            scope,
            caller: Arc::clone(&self.identity),
            tool: self.tool.clone(),
            endpoint: self.endpoint,
            arguments,
            labels: self.labels,
            origins: self.origins.clone(),
            granted_at: now,
            expires_at: ends.map(until),
            by: by.into(),
        })
    }
}

impl fmt::Display for Inquiry {
    /// The question for a person, in a few lines.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (server, name) = (shown(self.tool.server.as_str(), NAME), &self.name);
        let script = if self.run.is_some() { "A script of " } else { "" };
        let who = shown(&self.caller, CALLER);
        write!(formatter, "{script}{who} wants to call {name} of the server {server}")?;
        write!(formatter, "\nwith {}", self.arguments)?;
        match &self.reason {
            Some(reason) => write!(formatter, "\nAsked because {reason} ({})", self.rule)?,
            None => write!(formatter, "\nAsked because of {}", self.rule)?,
        }
        for line in &self.evidence {
            write!(formatter, "\n- {line}")?;
        }
        Ok(())
    }
}

/// What decided, in words.
pub(crate) fn rule(decision: &Decision) -> String {
    match &decision.ground {
        Ground::Rule(rule) => rule.origin.to_string(),
        Ground::Mode(mode) => format!("the default \"{mode}\""),
    }
}

/// Which argument came from which result, of each tool something: a yes is for the data of them all.
fn evidence(decision: &Decision) -> Vec<String> {
    let all = decision.evidence();
    let first = &all[..all.len().min(MOST_EVIDENCE)];
    let mut others = decision.flow_origins();
    others.retain(|tool| !first.iter().any(|evidence| evidence.tool == *tool));
    let mut lines: Vec<String> = first.iter().map(|evidence| told(evidence)).collect();
    if !others.is_empty() {
        let names = others.iter().take(MOST_ORIGINS);
        let names: Vec<String> = names
            .map(|tool| {
                format!("{}/{}", shown(tool.server.as_str(), NAME), shown(&tool.tool, NAME))
            })
            .collect();
        let more = others.len().saturating_sub(MOST_ORIGINS);
        let more = if more > 0 { format!(" and {more} more tools") } else { String::new() };
        lines.push(format!("also data of {}{more}", names.join(", ")));
    }
    lines
}

fn told(evidence: &Evidence) -> String {
    let Evidence { tool, call, labels, contact, argument, .. } = evidence;
    let (server, tool) = (shown(tool.server.as_str(), NAME), shown(&tool.tool, NAME));
    let place = shown(argument.as_deref().unwrap_or("the arguments"), NAME);
    if *call == 0 {
        return format!("{server}/{tool} was read in an earlier session, which is {labels}");
    }
    match contact {
        Contact::Carried => {
            format!("{place} has data of {server}/{tool} (result {call}), which is {labels}")
        }
        Contact::Steered => {
            format!("{server}/{tool} (result {call}) was read before, which is {labels}")
        }
        Contact::Touched => {
            format!("{server}/{tool} (result {call}) was touched, which is {labels}")
        }
    }
}
