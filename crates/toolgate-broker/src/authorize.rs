//! Decides whether a call may be sent: by the policy, a stored grant, or a person.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::RwLock;
use serde_json::Value;
use tokio::sync::Notify;
use toolgate_catalog::{Definition, Fingerprint, ServerName, Tool, ToolId};
use toolgate_policy::{
    Decision, GrantRequest, GrantScope, Policy, PolicySettings, Presence, ToolPolicy, Verdict,
};
use toolgate_store::{ApprovalState, Journal, JournalError, QuestionReference, StoredApproval};
use toolgate_upstream::{CallError, CallOptions, Progress};

use crate::{
    approval::{self, ApprovalRequest, GrantDuration, PersonAnswer},
    context::{CallContext, new_id},
    error::BrokerError,
    grants::{GrantStore, now},
};

/// The fingerprints of the servers' endpoints, by name. A grant for a tool of one server does not
/// apply to another server that took its name. All clones share their content.
#[derive(Debug, Clone, Default)]
pub struct EndpointFingerprints(Arc<RwLock<HashMap<ServerName, Fingerprint>>>);

/// The policy, the grants, and the ways to ask a person.
#[derive(Debug)]
pub(crate) struct CallAuthorizer {
    in_force: RwLock<Arc<PolicyInForce>>,
    grants: Arc<GrantStore>,
    journal: Option<Arc<dyn Journal>>,
    no_journal: Option<String>,
    endpoints: EndpointFingerprints,
    forms: ClientForms,
    /// Notified when another process has answered a question, where that is known.
    answered: Arc<Notify>,
}

/// The policy that decides now, and what was computed from it. A new policy replaces all of it.
#[derive(Debug)]
pub(crate) struct PolicyInForce {
    pub(crate) policy: Policy,
    /// Whether the policy has no rules, so that no request is judged.
    pub(crate) is_idle: bool,
    /// How a person who allows a call has to show that they are there.
    presence: Presence,
    tools: RwLock<HashMap<ToolId, CachedPolicy>>,
}

/// The policy of a tool. It is valid while the tool has this definition and this name.
#[derive(Debug)]
struct CachedPolicy {
    definition: Arc<Definition>,
    name: Arc<str>,
    policy: Arc<ToolPolicy>,
}

/// Whether approvals are asked for with a form in the client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ClientForms {
    /// A person is at the client.
    #[default]
    Sent,
    /// The client may be a server, which would answer for the person.
    NotSent,
}

/// What permitted a call.
pub(crate) enum Permit {
    /// The policy alone.
    Policy,
    /// A stored grant, by its id.
    Grant(String),
    /// A person who was asked now.
    Person,
    /// Nobody can be asked, and the policy asks only where somebody can.
    Unasked,
}

/// What became of an approval that was queued.
enum QueuedApproval {
    Waiting(String),
    Denied,
    QueueFull,
}

/// How long a call waits for the answer of a person. After that the approval waits in the queue.
/// Gateways keep a parked request a little longer, so that its client still gets that error.
const APPROVAL_TIMEOUT: Duration = Duration::from_mins(9);
/// How long a call that is a task waits for a decision. Tasks are kept for an hour.
const QUEUED_TIMEOUT: Duration = Duration::from_mins(55);
/// Between two looks at a queued approval, which another process may answer.
const QUEUE_PAUSE: Duration = Duration::from_millis(300);

impl EndpointFingerprints {
    /// Sets the fingerprint of a server.
    pub fn set(&self, server: ServerName, endpoint: Fingerprint) {
        self.0.write().insert(server, endpoint);
    }

    /// Forgets a server.
    pub fn remove(&self, server: &ServerName) {
        self.0.write().remove(server);
    }

    /// Unknown servers get a fingerprint that no real server has.
    fn of(&self, server: &ServerName) -> Fingerprint {
        self.0.read().get(server).copied().unwrap_or_else(|| Fingerprint::of(&Value::Null))
    }
}

impl PolicyInForce {
    pub(crate) fn new(settings: PolicySettings) -> Self {
        let (is_idle, presence) = (settings.is_idle(), settings.presence);
        Self { policy: Policy::new(settings), is_idle, presence, tools: RwLock::default() }
    }
}

impl Permit {
    /// Adds who permitted the call to the rule that decided.
    pub(crate) fn add_to(&self, rule: String) -> String {
        match self {
            Self::Policy => rule,
            Self::Grant(id) => format!("{rule}; grant {id}"),
            Self::Person => format!("{rule}; a person approved it"),
            Self::Unasked => format!("{rule}; nobody could be asked"),
        }
    }
}

impl CallAuthorizer {
    pub(crate) fn new(
        policy: PolicySettings,
        journal: Option<Arc<dyn Journal>>,
        no_journal: Option<String>,
        endpoints: EndpointFingerprints,
        forms: ClientForms,
    ) -> Self {
        let answered = Arc::new(Notify::new());
        if let Some(journal) = &journal {
            let answered = Arc::clone(&answered);
            journal.on_answer(Box::new(move || answered.notify_waiters()));
        }
        let grants = Arc::new(GrantStore::new(journal.clone()));
        let in_force = RwLock::new(Arc::new(PolicyInForce::new(policy)));
        Self { in_force, grants, journal, no_journal, endpoints, forms, answered }
    }

    /// The policy that decides now. Every reload makes another one, even of the same rules.
    pub(crate) fn in_force(&self) -> Arc<PolicyInForce> {
        Arc::clone(&self.in_force.read())
    }

    /// Replaces the policy.
    pub(crate) fn reload(&self, policy: PolicySettings) {
        let new = Arc::new(PolicyInForce::new(policy));
        *self.in_force.write() = new;
    }

    /// The policy of a tool, computed once for each definition.
    pub(crate) fn policy_of(&self, tool: &Tool) -> Arc<ToolPolicy> {
        let in_force = self.in_force();
        if let Some(cached) = in_force.tools.read().get(&tool.id)
            && Arc::ptr_eq(&cached.definition, &tool.definition)
            && *cached.name == *tool.name.as_str()
        {
            return Arc::clone(&cached.policy);
        }
        let policy = Arc::new(in_force.policy.of(tool));
        let (definition, name) = (Arc::clone(&tool.definition), tool.name.to_arc());
        let cached = CachedPolicy { definition, name, policy: Arc::clone(&policy) };
        in_force.tools.write().insert(tool.id.clone(), cached);
        policy
    }

    /// Permits a call, or says why not. Asks a person if the policy requires it and no grant covers
    /// the call.
    pub(crate) async fn authorize(
        &self,
        context: &CallContext,
        tool: &Tool,
        arguments: &Value,
        decision: &Decision,
        options: &CallOptions,
    ) -> Result<Permit, BrokerError> {
        match decision.verdict {
            Verdict::Allow => return Ok(Permit::Policy),
            Verdict::Deny => return Err(denied(tool, &policy_denies(decision))),
            Verdict::Ask => {}
        }
        if decision.is_optional() && !can_ask(context, options) {
            return Ok(Permit::Unasked);
        }
        // Apart: the future of every call has room for what it awaits.
        Box::pin(self.ask(context, tool, arguments, decision, options)).await
    }

    /// Looks for a grant, and asks a person without one.
    async fn ask(
        &self,
        context: &CallContext,
        tool: &Tool,
        arguments: &Value,
        decision: &Decision,
        options: &CallOptions,
    ) -> Result<Permit, BrokerError> {
        if let Some((run, _)) = &context.run {
            run.set_may_have_grants();
        }
        let endpoint = self.endpoints.of(&tool.id.server);
        let policy = self.policy_of(tool);
        let sent = (arguments, options.meta.as_ref());
        let request = ApprovalRequest {
            presence: self.in_force().presence,
            ..ApprovalRequest::new(context, tool, endpoint, sent, decision, &policy)
        };
        if let Some(permit) = self.decided_earlier(context, tool, &request, arguments).await? {
            return Ok(permit);
        }
        match self.find_grant(tool, &request, arguments.clone()).await {
            Ok(Some(id)) => return Ok(Permit::Grant(id)),
            Ok(None) => {}
            // The grants cannot be read, so a person is asked again.
            Err(error) => tracing::warn!("{error}"),
        }
        let answer = tokio::select! {
            () = options.cancel.cancelled() => return Err(CallError::Cancelled.into()),
            answer = ask_in_time(context, &request, options, self.forms) => answer,
        };
        match answer {
            Some(PersonAnswer::Deny) => Err(denied(tool, "a person denied it")),
            Some(PersonAnswer::Allow { lasts: GrantDuration::Once, .. }) => Ok(Permit::Person),
            Some(answer @ PersonAnswer::Allow { .. }) => {
                self.store_grant(&request, &answer, &context.session.caller().name).await;
                match answer {
                    PersonAnswer::Allow { extent, .. } if extent.covers(arguments) => {
                        Ok(Permit::Person)
                    }
                    _ => Err(denied(tool, "a person allowed it with other arguments")),
                }
            }
            None => {
                let id = self.queue(context, tool, request.clone(), decision).await?;
                self.decided(&id, context, tool, &request, arguments, options).await
            }
        }
    }

    /// The decision of a person about this call in an earlier part of the run. The same script makes the call with
    /// the same data, so it does not count how much the session that resumes the run knows of that data.
    async fn decided_earlier(
        &self,
        context: &CallContext,
        tool: &Tool,
        request: &ApprovalRequest,
        arguments: &Value,
    ) -> Result<Option<Permit>, BrokerError> {
        let run = context.run.as_ref().map(|(run, _)| run);
        let Some(run) = run.filter(|run| run.repeats_its_script()) else { return Ok(None) };
        let Some(journal) = self.journal.clone() else { return Ok(None) };
        let id = Arc::clone(run.id());
        let answered = match in_background(move || journal.answered_in(&id)).await {
            Some(Ok(answered)) => answered,
            // They cannot be read, so a person is asked again.
            Some(Err(error)) => {
                tracing::warn!("{error}");
                return Ok(None);
            }
            None => return Ok(None),
        };
        for approval in answered {
            let asked: Option<ApprovalRequest> = serde_json::from_str(&approval.question).ok();
            let Some(asked) = asked.filter(|asked| request.is_same_call(asked)) else { continue };
            if approval.state == ApprovalState::Denied {
                return Err(denied(tool, "a person denied it"));
            }
            let ApprovalRequest { labels, origins, .. } = asked;
            let asked = ApprovalRequest { labels, origins, ..request.clone() };
            if let Ok(Some(id)) = self.find_grant(tool, &asked, arguments.clone()).await {
                return Ok(Some(Permit::Grant(id)));
            }
        }
        Ok(None)
    }

    /// The decision about a queued approval, if the call is a task that can wait for it.
    async fn decided(
        &self,
        id: &str,
        context: &CallContext,
        tool: &Tool,
        request: &ApprovalRequest,
        arguments: &Value,
        options: &CallOptions,
    ) -> Result<Permit, BrokerError> {
        let waiting = BrokerError::Waiting {
            reference: QuestionReference::of(id),
            tool: tool.name.to_string(),
        };
        let (Some(became_task), Some(journal)) = (&options.became_task, &self.journal) else {
            return Err(waiting);
        };
        let _pause = context.run.as_ref().and_then(|(run, _)| run.pause());
        if let Some(progress) = &options.progress {
            let _ = progress.try_send(Progress::new(1, Some(waiting.to_string())));
        }
        became_task.notify_one();
        let until = tokio::time::Instant::now() + QUEUED_TIMEOUT;
        loop {
            tokio::select! {
                () = options.cancel.cancelled() => return Err(CallError::Cancelled.into()),
                () = tokio::time::sleep_until(until) => return Err(waiting),
                () = self.answered.notified() => {}
                () = tokio::time::sleep(QUEUE_PAUSE) => {}
            }
            let (journal, id) = (Arc::clone(journal), id.to_owned());
            let state = match in_background(move || journal.approval(&id)).await {
                Some(Ok(approval)) => approval.map(|approval| approval.state),
                // It may be read later.
                Some(Err(error)) => {
                    tracing::warn!("{error}");
                    continue;
                }
                None => None,
            };
            match state {
                Some(ApprovalState::Open) => {}
                Some(ApprovalState::Denied) => return Err(denied(tool, "a person denied it")),
                Some(ApprovalState::Approved) => {
                    // The answer may be here before the news that there is a grant.
                    self.grants.forget();
                    let grant = self.find_grant(tool, request, arguments.clone()).await;
                    let grant = grant.map_err(|error| denied(tool, &error.to_string()))?;
                    let other = || denied(tool, "a person allowed it with other arguments");
                    return grant.map(Permit::Grant).ok_or_else(other);
                }
                None => return Err(waiting),
            }
        }
    }

    /// Removes the grants of a session or a run that has ended.
    pub(crate) fn end(&self, ended: &GrantScope) {
        if let Err(error) = self.grants.end(ended) {
            tracing::warn!("{error}");
        }
    }

    async fn find_grant(
        &self,
        tool: &Tool,
        request: &ApprovalRequest,
        arguments: Value,
    ) -> Result<Option<String>, JournalError> {
        let (grants, asked) = (Arc::clone(&self.grants), request.clone());
        let definition = tool.definition.fingerprint();
        in_background(move || {
            let request = GrantRequest {
                caller: &asked.identity,
                tool: &asked.tool,
                endpoint: asked.endpoint,
                definition,
                arguments: &arguments,
                meta: asked.meta_hash,
                labels: asked.labels,
                origins: &asked.origins,
                run: asked.run.as_deref(),
                session: Some(&asked.session),
                presence: asked.presence,
                now: now(),
            };
            Ok(grants.take(&request)?.map(|id| id.0.to_string()))
        })
        .await
        .unwrap_or(Ok(None))
    }

    async fn store_grant(&self, request: &ApprovalRequest, answer: &PersonAnswer, by: &str) {
        let Some(grant) = request.grant(answer, by, now(), None) else { return };
        let grants = Arc::clone(&self.grants);
        if let Some(Err(error)) = in_background(move || grants.add(grant)).await {
            tracing::warn!("the answer holds for this call only: {error}");
        }
    }

    /// Puts the approval into the queue, unless a person denied it before in the same scope. Returns its id.
    async fn queue(
        &self,
        context: &CallContext,
        tool: &Tool,
        request: ApprovalRequest,
        decision: &Decision,
    ) -> Result<String, BrokerError> {
        let needs = match decision.reason() {
            Some(reason) => format!("it needs an approval ({reason})"),
            None => "it needs an approval".to_owned(),
        };
        let Some(journal) = self.journal.clone() else {
            let why = match &self.no_journal {
                Some(why) => format!("{needs}, and no question can be kept: {why}"),
                None => format!("{needs}, and nobody can be asked here"),
            };
            return Err(denied(tool, &why));
        };
        let run = context.run.as_ref().map(|(run, call)| (run.id().to_string(), *call));
        let queued = in_background(move || {
            let subject = request.subject();
            let run_id = run.as_ref().map(|(run, _)| run.as_str());
            let before = journal.answered(&subject, run_id)?;
            // A denial ends with the session or run that it was given to.
            let same_scope = |before: &StoredApproval| {
                let asked: Option<ApprovalRequest> = serde_json::from_str(&before.question).ok();
                asked.is_some_and(|asked| request.has_same_scope(&asked))
            };
            if before.is_some_and(|it| it.state == ApprovalState::Denied && same_scope(&it)) {
                return Ok(QueuedApproval::Denied);
            }
            let approval = StoredApproval {
                id: new_id("a").to_string(),
                created: 0,
                kind: "call".to_owned(),
                subject,
                run,
                question: serde_json::to_string(&request).unwrap_or_default(),
                state: ApprovalState::Open,
                answer: None,
            };
            let id = journal.ask(&approval)?;
            Ok::<_, JournalError>(id.map_or(QueuedApproval::QueueFull, QueuedApproval::Waiting))
        });
        let why = match queued.await {
            Some(Ok(QueuedApproval::Waiting(id))) => return Ok(id),
            Some(Ok(QueuedApproval::Denied)) => "a person denied it".to_owned(),
            Some(Ok(QueuedApproval::QueueFull)) => "it needs an approval, and too many questions \
                wait already (`toolgate approve` lists them)"
                .to_owned(),
            Some(Err(error)) => format!("it needs an approval, and {error}"),
            None => "it needs an approval, and nobody could be asked".to_owned(),
        };
        Err(denied(tool, &why))
    }
}

/// Asks a person, for a limited time. The clock of a script stops meanwhile. After one timeout, the
/// other approvals of the same run go to the queue at once.
async fn ask_in_time(
    context: &CallContext,
    request: &ApprovalRequest,
    options: &CallOptions,
    forms: ClientForms,
) -> Option<PersonAnswer> {
    let run = context.run.as_ref().map(|(run, _)| run);
    if run.is_some_and(|run| run.approval_timed_out()) {
        return None;
    }
    let _pause = run.and_then(|run| run.pause());
    let asking = async {
        if forms == ClientForms::Sent
            && let Some(input_handler) = &options.input_handler
            && approval::can_elicit(input_handler.as_ref())
            && input_handler.may_decide().await
            && let Some(answer) = approval::elicit(input_handler.as_ref(), request).await
        {
            return Some(answer);
        }
        context.session.prompt()?.ask(request).await
    };
    let answer = tokio::time::timeout(APPROVAL_TIMEOUT, asking).await;
    if let (Err(_), Some(run)) = (&answer, run) {
        run.set_approval_timed_out();
    }
    answer.ok().flatten()
}

/// Whether somebody can be asked now: at the client, or at a terminal.
fn can_ask(context: &CallContext, options: &CallOptions) -> bool {
    let handler = options.input_handler.as_deref();
    context.session.prompt().is_some() || handler.is_some_and(approval::can_elicit)
}

/// Runs work that touches the disk on another thread. `None` if the runtime is shutting down.
async fn in_background<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> Option<R> {
    tokio::task::spawn_blocking(work).await.ok()
}

fn denied(tool: &Tool, why: &str) -> BrokerError {
    BrokerError::Denied { tool: tool.name.to_string(), why: why.to_owned() }
}

fn policy_denies(decision: &Decision) -> String {
    match decision.reason() {
        Some(reason) => format!("the policy denies it: {reason}"),
        None => format!("the policy denies it ({})", approval::rule(decision)),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        any::Any,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use futures::future::BoxFuture;

    use super::*;
    use crate::{
        approval::ApprovalPrompt,
        context::{Caller, Pause, RunContext, SessionContext},
    };

    /// A person who never answers, and a clock that counts its pauses.
    #[derive(Debug, Default)]
    struct Absent {
        asked: AtomicUsize,
        paused: Arc<AtomicUsize>,
    }

    struct Paused(Arc<AtomicUsize>);

    impl ApprovalPrompt for Absent {
        fn ask<'a>(&'a self, _request: &'a ApprovalRequest) -> BoxFuture<'a, Option<PersonAnswer>> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            assert_eq!(self.paused.load(Ordering::Relaxed), 1, "the clock stops meanwhile");
            Box::pin(std::future::pending())
        }
    }

    impl Pause for Absent {
        fn pause(&self) -> Box<dyn Any + Send> {
            self.paused.fetch_add(1, Ordering::Relaxed);
            Box::new(Paused(Arc::clone(&self.paused)))
        }
    }

    impl Drop for Paused {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_script_waits_for_only_one_unanswered_question() {
        let absent = Arc::new(Absent::default());
        let prompt = Arc::clone(&absent) as Arc<dyn ApprovalPrompt>;
        let session = Arc::new(SessionContext::new(Caller::model("local")).with_prompt(prompt));
        let run = RunContext::new("run_1", "").with_pause(Arc::clone(&absent) as Arc<dyn Pause>);
        let context = CallContext::of_run(&session, &Arc::new(run), 0);
        let request = ApprovalRequest {
            tool: ToolId { server: "store".into(), tool: "delete".into() },
            endpoint: Fingerprint::of(&Value::Null),
            definition: None,
            name: "store_delete".to_owned(),
            arguments: "{}".to_owned(),
            all_arguments: None,
            arguments_hash: Fingerprint::of(&Value::Null),
            meta: None,
            all_meta: None,
            meta_hash: None,
            rule: String::new(),
            reason: None,
            evidence: Vec::new(),
            labels: toolgate_policy::LabelSet::default(),
            origins: Vec::new(),
            session: Arc::clone(session.id()),
            run: None,
            caller: "local".into(),
            identity: "local".into(),
            presence: Presence::Terminal,
        };
        let options = CallOptions::default();
        let started = tokio::time::Instant::now();
        assert_eq!(ask_in_time(&context, &request, &options, ClientForms::Sent).await, None);
        assert_eq!(started.elapsed(), APPROVAL_TIMEOUT);
        assert_eq!(absent.paused.load(Ordering::Relaxed), 0);
        assert_eq!(ask_in_time(&context, &request, &options, ClientForms::Sent).await, None);
        assert_eq!(started.elapsed(), APPROVAL_TIMEOUT, "the next one goes to the queue at once");
        assert_eq!(absent.asked.load(Ordering::Relaxed), 1);
    }
}
