//! Asks a person whether a call may be made.
//!
//! There are three ways, in this order: an elicitation to the client that made the call, the
//! session's [`ApprovalPrompt`] (the person at a terminal), and the queue of approvals in the
//! journal. A model is never asked: no tool and no script leads here.

mod arguments;

use std::{fmt, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolgate_catalog::{Fingerprint, Tool, ToolId};
use toolgate_policy::{
    ArgumentConditions, Contact, Decision, Evidence, Grant, GrantId, GrantScope, GrantedArguments,
    Ground, LabelSet, Presence, ScriptWay, Timestamp, ToolPolicy, Verdict, definitions::shown,
};
use toolgate_upstream::{InputHandler, InputRequest, can_answer};

use self::arguments::{ArgumentRoute, matter_first, overview, route};
use crate::{
    context::{CallContext, new_id},
    data_flow::{chosen_meta, granted_meta},
};

/// Asks a person who is present, such as the one at a terminal.
pub trait ApprovalPrompt: fmt::Debug + Send + Sync {
    /// Asks, and returns `None` if there is no answer, so that the next way is tried.
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Option<PersonAnswer>>;
}

/// The answer of a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PersonAnswer {
    /// The call is allowed.
    Allow {
        /// How long the grant holds.
        lasts: GrantDuration,
        /// For which arguments the grant holds.
        extent: GrantExtent,
    },
    /// The call is denied.
    Deny,
}

/// The arguments that a grant covers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GrantExtent {
    /// Any arguments.
    Any,
    /// Only the arguments that were shown.
    These,
    /// Arguments that certainly meet these conditions.
    Where(ArgumentConditions),
}

/// How long a grant holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GrantDuration {
    /// For this call only.
    Once,
    /// Until the run ends that makes the call.
    Run,
    /// Until the session ends.
    Session,
    /// Until it is revoked.
    Always,
}

impl PersonAnswer {
    /// Allows this call only.
    pub const ONCE: Self = Self::Allow { lasts: GrantDuration::Once, extent: GrantExtent::These };
}

impl GrantExtent {
    /// Whether the grant covers the arguments of the call that was asked about.
    pub(crate) fn covers(&self, arguments: &Value) -> bool {
        match self {
            Self::Any | Self::These => true,
            Self::Where(conditions) => conditions.apply(arguments, Verdict::Allow),
        }
    }
}

impl GrantDuration {
    /// The name in JSON and in the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Run => "run",
            Self::Session => "session",
            Self::Always => "always",
        }
    }
}

/// A question to a person about one call. Text of clients and servers in it is escaped and bounded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRequest {
    /// The tool.
    pub tool: ToolId,
    /// The fingerprint of the server's endpoint.
    pub endpoint: Fingerprint,
    /// The fingerprint of the tool's definition. Questions of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Fingerprint>,
    /// The exposed name of the tool.
    pub name: String,
    /// The arguments, with long values shortened.
    pub arguments: String,
    /// All arguments, if they were shortened; only their beginning if they are very large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all_arguments: Option<String>,
    /// The hash of all arguments.
    pub arguments_hash: Fingerprint,
    /// What the client sends beside the arguments, in `_meta`, with long values shortened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<String>,
    /// All of it, if it was shortened; only its beginning if it is very large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all_meta: Option<String>,
    /// The hash of the part of it that a grant covers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta_hash: Option<Fingerprint>,
    /// The rule that requires the approval.
    pub rule: String,
    /// The reason from the configuration.
    pub reason: Option<String>,
    /// Which argument came from which result.
    pub evidence: Vec<String>,
    /// The labels of the data that the call carries or depends on.
    pub labels: LabelSet,
    /// The tools that this data came from.
    #[serde(default)]
    pub origins: Vec<ToolId>,
    /// The session that makes the call.
    pub session: Arc<str>,
    /// The run that makes the call.
    pub run: Option<Arc<str>>,
    /// The display name of the caller.
    pub caller: Arc<str>,
    /// The authenticated identity of the caller. A grant belongs to it.
    pub identity: Arc<str>,
    /// How a person who answers shows that they are there, at least.
    #[serde(default, skip_serializing_if = "Presence::is_terminal")]
    pub presence: Presence,
}

/// How many characters of the arguments are shown, without the note about the rest.
const ARGUMENTS: usize = 1_500;
const REST: usize = 100;
/// How many characters of `_meta` are shown.
const META: usize = 500;
/// How many bytes of the full arguments are stored for people who want to see all.
const ALL_ARGUMENTS: usize = 64 * 1024;
const NAME: usize = 128;
const CALLER: usize = 256;
const MAX_EVIDENCE: usize = 8;
const MAX_ORIGINS: usize = 16;
/// How long a grant for one call waits for that call.
const ONCE_EXPIRES: Duration = Duration::from_hours(24);
/// The longest time that a grant for a run or a session is stored. Neither lives as long.
const SCOPED_EXPIRES: Duration = Duration::from_hours(7 * 24);

impl ApprovalRequest {
    pub(crate) fn new(
        context: &CallContext,
        tool: &Tool,
        endpoint: Fingerprint,
        (arguments, meta): (&Value, Option<&Map<String, Value>>),
        decision: &Decision,
        policy: &ToolPolicy,
    ) -> Self {
        let routes = routes(policy, decision);
        let routes: Vec<&[String]> = routes.iter().map(Vec::as_slice).collect();
        let ordered = matter_first(arguments, &routes);
        let short = overview(&ordered, ARGUMENTS);
        let all = ordered.to_string();
        let meta = meta.and_then(chosen_meta);
        let meta_hash = meta.as_ref().and_then(granted_meta);
        let meta = meta.map(Value::Object);
        let meta_overview = meta.as_ref().map(|meta| overview(meta, META));
        let all_meta = meta.map(|meta| meta.to_string());
        let all_meta = all_meta.filter(|all| meta_overview.as_ref() != Some(all));
        Self {
            tool: tool.id.clone(),
            endpoint,
            definition: Some(tool.definition.fingerprint()),
            name: tool.name.to_string(),
            arguments: shown(&short, ARGUMENTS + REST),
            all_arguments: (short != all).then(|| shown(&all, ALL_ARGUMENTS)),
            arguments_hash: Fingerprint::of(arguments),
            meta: meta_overview.map(|meta| shown(&meta, META + REST)),
            all_meta: all_meta.map(|all| shown(&all, ALL_ARGUMENTS)),
            meta_hash,
            rule: rule(decision),
            reason: decision.reason().map(str::to_owned),
            evidence: evidence(decision),
            labels: decision.flow_labels(),
            origins: decision.flow_origins(),
            session: Arc::clone(context.session.id()),
            run: context.run.as_ref().map(|(run, _)| Arc::clone(run.id())),
            caller: Arc::clone(&context.session.caller().name),
            identity: Arc::clone(context.identity()),
            presence: Presence::Terminal,
        }
    }

    /// Equal for equal calls of one caller, so that a person is asked once, however many sessions
    /// make the call. Each run has its own approvals, because the run waits for the answer.
    pub fn subject(&self) -> String {
        let Self { tool: ToolId { server, tool }, endpoint, arguments_hash, labels, .. } = self;
        let run = self.run.as_deref().unwrap_or_default();
        let caller = &self.identity;
        let presence = match self.presence {
            Presence::Terminal => "",
            Presence::Desktop => " desktop",
            Presence::Password => " password",
        };
        let definition = self.definition.map(|definition| format!(" {definition}"));
        let definition = definition.unwrap_or_default();
        let meta = self.meta_hash.map(|meta| format!(" meta {meta}")).unwrap_or_default();
        format!(
            "{server}/{tool} {endpoint} {arguments_hash} {labels} {run} {caller}{presence}{definition}{meta}"
        )
    }

    /// Whether an answer to the other request applies to this one: both come from the same run, or
    /// else from the same session.
    pub(crate) fn has_same_scope(&self, other: &Self) -> bool {
        match &self.run {
            Some(run) => other.run.as_ref() == Some(run),
            None => other.run.is_none() && other.session == self.session,
        }
    }

    /// Whether the other request was about the same call of the same run, whoever resumed it.
    pub(crate) fn is_same_call(&self, other: &Self) -> bool {
        let call = |it: &Self| {
            let hashes = (it.arguments_hash, it.meta_hash, it.definition, it.endpoint);
            (it.tool.clone(), hashes, it.run.clone(), it.identity.clone())
        };
        self.run.is_some() && call(self) == call(other)
    }

    /// The durations that a person can choose from.
    pub fn choices(&self) -> impl Iterator<Item = GrantDuration> {
        let all = [
            GrantDuration::Once,
            GrantDuration::Run,
            GrantDuration::Session,
            GrantDuration::Always,
        ];
        let in_run = self.run.is_some();
        all.into_iter().filter(move |lasts| in_run || *lasts != GrantDuration::Run)
    }

    /// Whether a grant of this extent covers the call itself; `None` if not all of its arguments
    /// are stored.
    pub fn is_covered_by(&self, extent: &GrantExtent) -> Option<bool> {
        let all = self.all_arguments.as_ref().unwrap_or(&self.arguments);
        let arguments: Value = serde_json::from_str(all).ok()?;
        let whole = Fingerprint::of(&arguments) == self.arguments_hash;
        whole.then(|| extent.covers(&arguments))
    }

    /// The grant that an answer gives. `None` if the answer denies, or if it allows a run and the
    /// call has none.
    pub fn grant(
        &self,
        answer: &PersonAnswer,
        by: &str,
        now: Timestamp,
        expires: Option<Duration>,
    ) -> Option<Grant> {
        let PersonAnswer::Allow { lasts, extent } = answer else { return None };
        let (scope, at_most) = match lasts {
            GrantDuration::Once => (GrantScope::Once, Some(ONCE_EXPIRES)),
            GrantDuration::Run => (GrantScope::Run(self.run.clone()?), Some(SCOPED_EXPIRES)),
            GrantDuration::Session => {
                (GrantScope::Session(Arc::clone(&self.session)), Some(SCOPED_EXPIRES))
            }
            GrantDuration::Always => (GrantScope::Always, None),
        };
        let arguments = match extent {
            _ if *lasts == GrantDuration::Once => GrantedArguments::Exactly(self.arguments_hash),
            GrantExtent::These => GrantedArguments::Exactly(self.arguments_hash),
            GrantExtent::Any => GrantedArguments::Any,
            GrantExtent::Where(conditions) => GrantedArguments::Matching(conditions.clone()),
        };
        let ends = expires.into_iter().chain(at_most).min();
        let until = |length: Duration| {
            Timestamp(now.0.saturating_add(u64::try_from(length.as_millis()).unwrap_or(u64::MAX)))
        };
        Some(Grant {
            id: GrantId(new_id("g")),
            scope,
            run: self.run.clone(),
            caller: Arc::clone(&self.identity),
            tool: self.tool.clone(),
            endpoint: self.endpoint,
            definition: self.definition,
            arguments,
            meta: self.meta_hash,
            labels: self.labels,
            origins: self.origins.clone(),
            granted_at: now,
            expires_at: ends.map(until),
            by: by.into(),
            presence: self.presence,
        })
    }
}

impl fmt::Display for ApprovalRequest {
    /// Writes the question in a few lines.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (server, name) = (shown(self.tool.server.as_str(), NAME), &self.name);
        let script = if self.run.is_some() { "A script of " } else { "" };
        let who = shown(&self.caller, CALLER);
        write!(formatter, "{script}{who} wants to call {name} of the server {server}")?;
        write!(formatter, "\nwith {}", self.arguments)?;
        if let Some(meta) = &self.meta {
            write!(formatter, "\nand _meta {meta}")?;
        }
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

/// The arguments that rules about the tool name, and those that carry labelled data.
fn routes(policy: &ToolPolicy, decision: &Decision) -> Vec<ArgumentRoute> {
    let named = policy.rules().flat_map(|rule| rule.arguments.arguments());
    let named = named.map(|names| names.into_iter().map(str::to_owned).collect());
    let evidence = decision.evidence();
    let carrying = evidence.iter().filter_map(|evidence| evidence.argument.as_deref());
    named.chain(carrying.map(route)).collect()
}

/// Names what decided.
pub(crate) fn rule(decision: &Decision) -> String {
    match &decision.ground {
        Ground::Rule(rule) => rule.origin.to_string(),
        Ground::Mode(mode) => format!("the default \"{mode}\""),
    }
}

/// Says which argument came from which result, with at least one line for each tool: a grant covers
/// the data of all of them.
fn evidence(decision: &Decision) -> Vec<String> {
    let all = decision.evidence();
    let first = &all[..all.len().min(MAX_EVIDENCE)];
    let mut others = decision.flow_origins();
    others.retain(|tool| !first.iter().any(|evidence| evidence.tool == *tool));
    let mut lines: Vec<String> = first.iter().map(|evidence| describe(evidence)).collect();
    if !others.is_empty() {
        let names = others.iter().take(MAX_ORIGINS);
        let names: Vec<String> = names
            .map(|tool| {
                format!("{}/{}", shown(tool.server.as_str(), NAME), shown(&tool.tool, NAME))
            })
            .collect();
        let more = others.len().saturating_sub(MAX_ORIGINS);
        let more = if more > 0 { format!(" and {more} more tools") } else { String::new() };
        lines.push(format!("also data of {}{more}", names.join(", ")));
    }
    lines
}

fn describe(evidence: &Evidence) -> String {
    let Evidence { tool, call, labels, contact, argument, way, .. } = evidence;
    let (server, tool) = (shown(tool.server.as_str(), NAME), shown(&tool.tool, NAME));
    let place = shown(argument.as_deref().unwrap_or("the arguments"), NAME);
    if *call == 0 && argument.is_some() {
        return format!(
            "{place} has data of {server}/{tool}, read in another session, which is {labels}"
        );
    }
    if *call == 0 {
        return format!("{server}/{tool} was read in an earlier session, which is {labels}");
    }
    if let Some(ScriptWay { through, is_choice }) = way {
        let through: Vec<String> =
            through.iter().map(|name| format!("`{}`", shown(name, NAME))).collect();
        let way = match through.as_slice() {
            [] => String::new(),
            names => format!(", by way of {}", names.join(" and ")),
        };
        let place = place.strip_prefix('/').map(|name| format!("`{name}`"));
        let origin = format!("what {server}/{tool} returned (result {call})");
        return match (is_choice, place) {
            (false, Some(place)) => format!("{place} contains {origin}{way}, which is {labels}"),
            (false, None) => format!("the arguments contain {origin}{way}, which is {labels}"),
            (true, Some(place)) => format!("{place} depends on {origin}{way}, which is {labels}"),
            (true, None) => {
                format!("whether the call is made depends on {origin}{way}, which is {labels}")
            }
        };
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

/// Names of fields and values in the form.
const ANSWER: &str = "answer";
const ANY: &str = "anyArguments";
const WHERE: &str = "onlyWhere";
const DENY: &str = "deny";

/// Asks the person at the client with a form. `None` if the client does not support forms, or the
/// elicitation failed.
pub(crate) async fn elicit(
    input_handler: &dyn InputHandler,
    request: &ApprovalRequest,
) -> Option<PersonAnswer> {
    let question =
        InputRequest { method: "elicitation/create".to_owned(), params: Some(form(request)) };
    if !can_answer(input_handler.capabilities(), &question) {
        return None;
    }
    let answer = input_handler.answer(question).await.ok()?;
    Some(read_form(request, &answer))
}

/// Whether the client shows forms to a person.
pub(crate) fn can_elicit(input_handler: &dyn InputHandler) -> bool {
    let params =
        json!({ "message": "", "requestedSchema": { "type": "object", "properties": {} } });
    let question = InputRequest { method: "elicitation/create".to_owned(), params: Some(params) };
    can_answer(input_handler.capabilities(), &question)
}

fn form(request: &ApprovalRequest) -> Value {
    let choices: Vec<&str> = request.choices().map(word).chain([DENY]).collect();
    json!({
        "message": request.to_string(),
        "requestedSchema": {
            "type": "object",
            "properties": {
                ANSWER: {
                    "type": "string",
                    "title": "Allow this call?",
                    "description": "The answer applies to this caller and this server only",
                    "enum": choices,
                },
                ANY: {
                    "type": "boolean",
                    "title": "With any arguments",
                    "description": "Without this, later calls are allowed with exactly these arguments",
                    "default": false,
                },
                WHERE: {
                    "type": "string",
                    "title": "With arguments where",
                    "description": "Conditions that the arguments of later calls must meet, such as path=src/* or \
                                    amount less 100; separate several with ;",
                },
            },
            "required": [ANSWER],
        },
    })
}

/// Reads the form. Anything but an accepted form with valid fields denies the call.
fn read_form(request: &ApprovalRequest, answer: &Value) -> PersonAnswer {
    if answer.get("action").and_then(Value::as_str) != Some("accept") {
        return PersonAnswer::Deny;
    }
    let field = |name: &str| answer.get("content").and_then(|content| content.get(name));
    let choice = field(ANSWER).and_then(Value::as_str);
    let lasts = request.choices().find(|lasts| choice == Some(word(*lasts)));
    let any = field(ANY).and_then(Value::as_bool).unwrap_or_default();
    let conditions = field(WHERE).and_then(Value::as_str).unwrap_or_default().trim();
    let extent = match conditions {
        "" if any => Some(GrantExtent::Any),
        // A person allows what they were shown, unless they say more.
        "" => Some(GrantExtent::These),
        line => ArgumentConditions::from_line(line).ok().map(GrantExtent::Where),
    };
    match (lasts, extent) {
        (Some(lasts), Some(extent)) => PersonAnswer::Allow { lasts, extent },
        _ => PersonAnswer::Deny,
    }
}

fn word(lasts: GrantDuration) -> &'static str {
    match lasts {
        GrantDuration::Once => "allow once",
        GrantDuration::Run => "allow for this run",
        GrantDuration::Session => "allow for this session",
        GrantDuration::Always => "allow always",
    }
}
