//! Asks the embedding program whether a call may be made.

use std::{fmt, panic::AssertUnwindSafe, pin::Pin, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use serde_json::Value;
use toolgate_broker::{ApprovalPrompt, ApprovalRequest, GrantDuration, GrantExtent, PersonAnswer};
use toolgate_catalog::Fingerprint;

/// The answer to an [`ApprovalQuestion`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Approval {
    /// Allow this call.
    Once,
    /// Allow calls of this tool, with any arguments, until the session ends. A grant covers only data
    /// that the question mentioned: if another call would send other labelled data, it is asked about
    /// again.
    Session,
    /// Like [`Session`](Self::Session), for this caller, until somebody revokes it with
    /// `toolgate approvals`. Without a state folder it ends with the host.
    Always,
    /// Deny this call.
    Deny,
}

/// A call that the policy wants somebody to allow.
///
/// Text of models and servers in it is escaped and limited, so that it can be shown in a terminal.
/// [`Display`](fmt::Display) writes the question in a few lines.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ApprovalQuestion {
    /// The exposed name of the tool.
    pub tool: String,
    /// The server of the tool.
    pub server: String,
    /// The arguments as JSON text, with long values shortened.
    pub arguments_text: String,
    /// All arguments; `None` if they are too large to be shown.
    pub arguments: Option<Value>,
    /// Why the policy asks, if the rule says so.
    pub reason: Option<String>,
    /// The rule that asks.
    pub rule: String,
    /// Which argument has data of which earlier result, one line each.
    pub flow: Vec<String>,
    /// The caller of the session.
    pub caller: String,
    /// The run whose script makes the call.
    pub run: Option<String>,
    text: String,
}

impl fmt::Display for ApprovalQuestion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl ApprovalQuestion {
    fn of(request: &ApprovalRequest) -> Self {
        let all = request.all_arguments.as_ref().unwrap_or(&request.arguments);
        let whole = |value: &Value| Fingerprint::of(value) == request.arguments_hash;
        Self {
            tool: request.name.clone(),
            server: request.tool.server.to_string(),
            arguments_text: request.arguments.clone(),
            arguments: serde_json::from_str(all).ok().filter(whole),
            reason: request.reason.clone(),
            rule: request.rule.clone(),
            flow: request.evidence.clone(),
            caller: request.caller.to_string(),
            run: request.run.as_deref().map(str::to_owned),
            text: request.to_string(),
        }
    }
}

/// The future of a callback.
type Answering = Pin<Box<dyn Future<Output = Approval> + Send>>;

/// The callback of [`HostBuilder::on_approval`](crate::HostBuilder::on_approval).
#[derive(Clone)]
pub(crate) struct ApprovalCallback {
    callback: Arc<dyn Fn(ApprovalQuestion) -> Answering + Send + Sync>,
}

impl ApprovalCallback {
    pub(crate) fn new<F>(callback: impl Fn(ApprovalQuestion) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Approval> + Send + 'static,
    {
        let callback = Arc::new(move |question| Box::pin(callback(question)) as Answering);
        Self { callback }
    }
}

impl ApprovalPrompt for ApprovalCallback {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Option<PersonAnswer>> {
        let question = ApprovalQuestion::of(request);
        let asking = async move { (self.callback)(question).await };
        Box::pin(async move {
            // A callback that panics has not allowed anything.
            let answer = AssertUnwindSafe(asking).catch_unwind().await.unwrap_or_else(|_| {
                tracing::error!("the approval callback panicked; the call is denied");
                Approval::Deny
            });
            let allow = |lasts| PersonAnswer::Allow { lasts, extent: GrantExtent::Any };
            Some(match answer {
                Approval::Once => PersonAnswer::ONCE,
                Approval::Session => allow(GrantDuration::Session),
                Approval::Always => allow(GrantDuration::Always),
                Approval::Deny => PersonAnswer::Deny,
            })
        })
    }
}

impl fmt::Debug for ApprovalCallback {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ApprovalCallback")
    }
}
