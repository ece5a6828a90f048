//! Whether a call may be made.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::RwLock;
use serde_json::Value;
use toolgate_catalog::{Definition, Fingerprint, ServerName, Tool, ToolId};
use toolgate_policy::{
    Decision, GrantRequest, GrantScope, Policy, PolicySettings, ToolPolicy, Verdict,
};
use toolgate_store::{Approval, ApprovalState, Journal, JournalError};
use toolgate_telemetry::Telemetry;
use toolgate_upstream::{CallError, CallOptions};

use crate::{
    ask::{self, Inquiry, Lasts, PersonAnswer},
    context::{CallContext, RunContext, SessionContext, new_id},
    error::BrokerError,
    grants::{GrantBook, now},
    record::Audit,
};

/// What decides on calls, and what keeps what was decided.
#[derive(Debug, Default)]
pub struct GuardSettings {
    /// Who may call what. Without rules every call goes through.
    pub policy: PolicySettings,
    /// Where questions wait for a person, and grants are kept. Without one a question that nobody
    /// can answer now is a no.
    pub journal: Option<Arc<Journal>>,
    /// Why there is no journal, in words, where one was wanted.
    pub no_journal: Option<String>,
    /// What the servers are, by name.
    pub endpoints: Endpoints,
    /// Where every decision and call is recorded.
    pub audit: Option<Audit>,
    /// How many calls of scripts a server gets at once; one where nothing is said.
    pub script_calls: usize,
    /// Who is told of every call, in figures.
    pub telemetry: Telemetry,
}

/// What the servers are, by name: a yes to a tool of one is none to a tool of another that took its
/// name. All clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Endpoints(Arc<RwLock<HashMap<ServerName, Fingerprint>>>);

/// Decides on calls.
#[derive(Debug)]
pub(crate) struct Guard {
    policy: Policy,
    tools: RwLock<HashMap<ToolId, Known>>,
    grants: Arc<GrantBook>,
    journal: Option<Arc<Journal>>,
    no_journal: Option<String>,
    endpoints: Endpoints,
}

/// The policy for a tool, as long as it is the same tool.
#[derive(Debug)]
struct Known {
    definition: Arc<Definition>,
    name: Arc<str>,
    policy: Arc<ToolPolicy>,
}

/// What let a call through.
pub(crate) enum Permit {
    /// The policy alone.
    Policy,
    /// Something that a person granted before.
    Grant(String),
    /// A person who was asked now.
    Person,
}

/// How long a call waits for an answer. After that the question waits in the queue. Gateways keep a
/// request that waits for its client for a little longer, so that it can still be told so.
const PATIENCE: Duration = Duration::from_mins(9);

impl Endpoints {
    /// Says what a server is from now on.
    pub fn set(&self, server: ServerName, endpoint: Fingerprint) {
        self.0.write().insert(server, endpoint);
    }

    /// One that nothing is known of is no server that is.
    fn of(&self, server: &ServerName) -> Fingerprint {
        self.0.read().get(server).copied().unwrap_or_else(|| Fingerprint::of(&Value::Null))
    }
}

impl Guard {
    pub(crate) fn new(
        policy: PolicySettings,
        journal: Option<Arc<Journal>>,
        no_journal: Option<String>,
        endpoints: Endpoints,
    ) -> Self {
        Self {
            policy: Policy::new(policy),
            tools: RwLock::default(),
            grants: Arc::new(GrantBook::new(journal.clone())),
            journal,
            no_journal,
            endpoints,
        }
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The policy for a tool, made once for each definition.
    pub(crate) fn policy_of(&self, tool: &Tool) -> Arc<ToolPolicy> {
        if let Some(known) = self.tools.read().get(&tool.id)
            && Arc::ptr_eq(&known.definition, &tool.definition)
            && *known.name == *tool.name.as_str()
        {
            return Arc::clone(&known.policy);
        }
        let policy = Arc::new(self.policy.of(tool));
        let (definition, name) = (Arc::clone(&tool.definition), tool.name.to_arc());
        let known = Known { definition, name, policy: Arc::clone(&policy) };
        self.tools.write().insert(tool.id.clone(), known);
        policy
    }

    /// Lets a call through, or says why not. Asks a person where the policy wants it and none has
    /// said yes before.
    pub(crate) async fn authorise(
        &self,
        context: &CallContext,
        tool: &Tool,
        arguments: &Value,
        decision: &Decision,
        options: &CallOptions,
    ) -> Result<Permit, BrokerError> {
        match decision.verdict {
            Verdict::Allow => return Ok(Permit::Policy),
            Verdict::Deny => return Err(denied(tool, &by_policy(decision))),
            Verdict::Ask => {}
        }
        let inquiry =
            Inquiry::new(context, tool, self.endpoints.of(&tool.id.server), arguments, decision);
        match self.granted(&inquiry, arguments.clone()).await {
            Ok(Some(id)) => return Ok(Permit::Grant(id)),
            Ok(None) => {}
            // What is granted is not known, so that a person is asked anew.
            Err(error) => tracing::warn!("{error}"),
        }
        let asked = tokio::select! {
            () = options.cancel.cancelled() => return Err(CallError::Cancelled.into()),
            asked = ask_patiently(context, &inquiry, options) => asked,
        };
        match asked {
            Some(PersonAnswer::Deny) => Err(denied(tool, "a person said no")),
            Some(PersonAnswer::Allow { lasts: Lasts::Once, .. }) => Ok(Permit::Person),
            Some(answer @ PersonAnswer::Allow { .. }) => {
                self.keep(&inquiry, &answer, &context.session.caller().name).await;
                match answer {
                    PersonAnswer::Allow { extent, .. } if extent.covers(arguments) => {
                        Ok(Permit::Person)
                    }
                    _ => Err(denied(tool, "a person allowed it with other arguments")),
                }
            }
            None => Err(self.wait(context, tool, inquiry, decision).await),
        }
    }

    /// Forgets what was granted for a session.
    pub(crate) fn end_session(&self, session: &SessionContext) {
        self.end(&GrantScope::Session(Arc::clone(session.id())));
    }

    /// Forgets what was granted for a run.
    pub(crate) fn end_run(&self, run: &RunContext) {
        self.end(&GrantScope::Run(Arc::clone(run.id())));
    }

    fn end(&self, over: &GrantScope) {
        if let Err(error) = self.grants.end(over) {
            tracing::warn!("{error}");
        }
    }

    async fn granted(
        &self,
        inquiry: &Inquiry,
        arguments: Value,
    ) -> Result<Option<String>, JournalError> {
        let (grants, inquiry) = (Arc::clone(&self.grants), inquiry.clone());
        aside(move || {
            let request = GrantRequest {
                caller: &inquiry.identity,
                tool: &inquiry.tool,
                endpoint: inquiry.endpoint,
                arguments: &arguments,
                labels: inquiry.labels,
                origins: &inquiry.origins,
                run: inquiry.run.as_deref(),
                session: Some(&inquiry.session),
                now: now(),
            };
            Ok(grants.take(&request)?.map(|id| id.0.to_string()))
        })
        .await
        .unwrap_or(Ok(None))
    }

    async fn keep(&self, inquiry: &Inquiry, answer: &PersonAnswer, by: &str) {
        let Some(grant) = inquiry.grant(answer, by, now(), None) else { return };
        let grants = Arc::clone(&self.grants);
        if let Some(Err(error)) = aside(move || grants.add(grant)).await {
            tracing::warn!("the answer holds for this call alone: {error}");
        }
    }

    /// Puts the question into the queue.
    async fn wait(
        &self,
        context: &CallContext,
        tool: &Tool,
        inquiry: Inquiry,
        decision: &Decision,
    ) -> BrokerError {
        let Some(journal) = self.journal.clone() else {
            let why = match &self.no_journal {
                Some(why) => format!("{}, and no question can be kept: {why}", asks(decision)),
                None => format!("{}, and nobody can be asked here", asks(decision)),
            };
            return denied(tool, &why);
        };
        let run = context.run.as_ref().map(|(run, call)| (run.id().to_string(), *call));
        let queued = aside(move || {
            let subject = inquiry.subject();
            let run_id = run.as_ref().map(|(run, _)| run.as_str());
            let before = journal.answered(&subject, run_id)?;
            // A no ends with the conversation that it was said to.
            let said_here = |before: &Approval| {
                let asked: Option<Inquiry> = serde_json::from_str(&before.question).ok();
                asked.is_some_and(|asked| inquiry.is_of_the_same_place(&asked))
            };
            if before.is_some_and(|it| it.state == ApprovalState::Denied && said_here(&it)) {
                return Ok(Queued::Denied);
            }
            let question = serde_json::to_string(&inquiry).unwrap_or_default();
            let approval = Approval {
                id: new_id("a").to_string(),
                created: 0,
                kind: "call".to_owned(),
                subject,
                run,
                question,
                state: ApprovalState::Open,
                answer: None,
            };
            Ok::<_, JournalError>(journal.ask(&approval)?.map_or(Queued::Full, Queued::Waiting))
        });
        match queued.await {
            Some(Ok(Queued::Waiting(id))) => {
                BrokerError::Waiting { id, tool: tool.name.to_string() }
            }
            Some(Ok(Queued::Denied)) => denied(tool, "a person said no"),
            Some(Ok(Queued::Full)) => {
                let why = "it needs an approval, and too many questions wait already \
                           (`toolgate approve` lists them)";
                denied(tool, why)
            }
            Some(Err(error)) => denied(tool, &format!("it needs an approval, and {error}")),
            None => denied(tool, "it needs an approval, and nobody could be asked"),
        }
    }
}

/// What became of a question for the queue.
enum Queued {
    Waiting(String),
    Denied,
    Full,
}

/// Asks whoever is there, as long as is decent. The time of a person is not that of a script, so that
/// its clock stands still. A script that nobody answered in time does not wait a second time.
async fn ask_patiently(
    context: &CallContext,
    inquiry: &Inquiry,
    options: &CallOptions,
) -> Option<PersonAnswer> {
    let run = context.run.as_ref().map(|(run, _)| run);
    if run.is_some_and(|run| run.is_left_alone()) {
        return None;
    }
    let _pause = run.and_then(|run| run.pause());
    let asked = tokio::time::timeout(PATIENCE, ask_now(context, inquiry, options)).await;
    if let (Err(_), Some(run)) = (&asked, run) {
        run.leave_alone();
    }
    asked.ok().flatten()
}

/// Asks whoever is there.
async fn ask_now(
    context: &CallContext,
    inquiry: &Inquiry,
    options: &CallOptions,
) -> Option<PersonAnswer> {
    if let Some(input_handler) = &options.input_handler
        && let Some(answer) = ask::elicit(input_handler.as_ref(), inquiry).await
    {
        return Some(answer);
    }
    context.session.asker()?.ask(inquiry).await
}

/// Does what touches the disk off the way of other calls. `None` where the runtime ends.
async fn aside<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> Option<R> {
    tokio::task::spawn_blocking(work).await.ok()
}

fn denied(tool: &Tool, why: &str) -> BrokerError {
    BrokerError::Denied { tool: tool.name.to_string(), why: why.to_owned() }
}

fn by_policy(decision: &Decision) -> String {
    match decision.reason() {
        Some(reason) => format!("the policy denies it: {reason}"),
        None => format!("the policy denies it ({})", ask::rule(decision)),
    }
}

fn asks(decision: &Decision) -> String {
    match decision.reason() {
        Some(reason) => format!("it needs an approval ({reason})"),
        None => "it needs an approval".to_owned(),
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
        ask::Asker,
        context::{Caller, Pause},
    };

    /// Somebody who never answers, and a clock that is asked to stand still.
    #[derive(Debug, Default)]
    struct Absent {
        asked: AtomicUsize,
        paused: Arc<AtomicUsize>,
    }

    struct Paused(Arc<AtomicUsize>);

    impl Asker for Absent {
        fn ask<'a>(&'a self, _inquiry: &'a Inquiry) -> BoxFuture<'a, Option<PersonAnswer>> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            assert_eq!(self.paused.load(Ordering::Relaxed), 1, "it stands still meanwhile");
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
    async fn a_script_that_nobody_answers_waits_once() {
        let absent = Arc::new(Absent::default());
        let asker = Arc::clone(&absent) as Arc<dyn Asker>;
        let session = Arc::new(SessionContext::new(Caller::model("local")).with_asker(asker));
        let run = RunContext::new("run_1", "").with_pause(Arc::clone(&absent) as Arc<dyn Pause>);
        let context = CallContext::of_run(&session, &Arc::new(run), 0);
        let inquiry = Inquiry {
            tool: ToolId { server: "store".into(), tool: "delete".into() },
            endpoint: Fingerprint::of(&Value::Null),
            name: "store_delete".to_owned(),
            arguments: "{}".to_owned(),
            all_arguments: None,
            arguments_hash: Fingerprint::of(&Value::Null),
            rule: String::new(),
            reason: None,
            evidence: Vec::new(),
            labels: toolgate_policy::LabelSet::default(),
            origins: Vec::new(),
            session: Arc::clone(session.id()),
            run: None,
            caller: "local".into(),
            identity: "local".into(),
        };
        let options = CallOptions::default();
        let started = tokio::time::Instant::now();
        assert_eq!(ask_patiently(&context, &inquiry, &options).await, None);
        assert_eq!(started.elapsed(), PATIENCE);
        assert_eq!(absent.paused.load(Ordering::Relaxed), 0);
        assert_eq!(ask_patiently(&context, &inquiry, &options).await, None);
        assert_eq!(started.elapsed(), PATIENCE, "the next one goes to the queue at once");
        assert_eq!(absent.asked.load(Ordering::Relaxed), 1);
    }
}
