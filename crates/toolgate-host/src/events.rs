//! What happens in a host, for programs that watch it.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use futures::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::sync::{broadcast, mpsc};
use toolgate_broker::{ApprovalPrompt, ApprovalRequest, BrokerError, CallContext, PersonAnswer};
use toolgate_catalog::{ServerName, Tool};
use toolgate_store::QuestionReference;
use toolgate_upstream::{CallOptions, Progress};

/// Something that happened.
#[derive(Debug, Clone)]
pub enum HostEvent {
    /// The state of a server has changed.
    ServerChanged {
        /// The server.
        server: ServerName,
    },
    /// A server has listed its tools.
    ToolsListed {
        /// The server.
        server: ServerName,
    },
    /// The tools that a session lists have changed.
    ListChanged {
        /// The session.
        session: Arc<str>,
    },
    /// A call of a tool begins. Whether it may be sent is not decided yet.
    CallStarted {
        /// Which call.
        call: Arc<CallFacts>,
        /// Its arguments.
        arguments: Arc<Map<String, Value>>,
    },
    /// A server says how far a call has come.
    CallProgress {
        /// Which call.
        call: Arc<CallFacts>,
        /// How far.
        progress: Progress,
    },
    /// A person is asked about a call.
    ApprovalAsked {
        /// The question.
        question: Arc<ApprovalRequest>,
    },
    /// A question about a call was answered.
    ApprovalAnswered {
        /// The question.
        question: Arc<ApprovalRequest>,
        /// Whether the call is allowed.
        is_allowed: bool,
    },
    /// A call waits for an approval that nobody could give now. The call has no result.
    ApprovalWaits {
        /// Which call.
        call: Arc<CallFacts>,
        /// Names the question.
        question: QuestionReference,
    },
    /// A call of a tool has ended.
    CallEnded {
        /// Which call.
        call: Arc<CallFacts>,
        /// How.
        end: CallOutcome,
        /// How long it took, with the time of people.
        duration: Duration,
    },
    /// A script begins.
    RunStarted {
        /// The run.
        run: Arc<str>,
        /// The session.
        session: Arc<str>,
    },
    /// A script has ended.
    RunEnded {
        /// The run.
        run: Arc<str>,
        /// The session.
        session: Arc<str>,
        /// Whether it failed or was stopped.
        is_error: bool,
        /// How long it took.
        duration: Duration,
    },
}

/// Which call an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallFacts {
    /// The number of the call in its host.
    pub number: u64,
    /// The session.
    pub session: Arc<str>,
    /// The run of the script that makes the call.
    pub run: Option<Arc<str>>,
    /// The exposed name of the tool.
    pub tool: String,
    /// The server.
    pub server: ServerName,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallOutcome {
    /// The tool returned a result.
    Succeeded,
    /// The tool returned an error.
    ToolError,
    /// There is no result, for this reason.
    Failed(String),
    /// Nobody waits for the result any more.
    Dropped,
}

/// Where the events of a host go. All clones are the same.
#[derive(Clone)]
pub struct HostEvents {
    sender: broadcast::Sender<HostEvent>,
    calls: Arc<AtomicU64>,
}

/// How many events a slow reader may lag behind. After that it loses the oldest ones.
const KEPT: usize = 1024;
/// How many reports of progress wait for the one who passes them on.
const PROGRESS: usize = 64;

impl HostEvents {
    /// All events from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<HostEvent> {
        self.sender.subscribe()
    }

    /// Sends an event, which is made only if somebody watches.
    pub fn send(&self, event: impl FnOnce() -> HostEvent) {
        if self.sender.receiver_count() > 0 {
            // The last receiver may be gone meanwhile.
            let _ = self.sender.send(event());
        }
    }

    /// Reports a call, from now until the returned value is dropped; `None` if nobody watches.
    pub(crate) fn call(
        &self,
        context: &CallContext,
        tool: &Tool,
        arguments: &Map<String, Value>,
    ) -> Option<WatchedCall> {
        if self.sender.receiver_count() == 0 {
            return None;
        }
        let call = Arc::new(CallFacts {
            number: self.calls.fetch_add(1, Ordering::Relaxed) + 1,
            session: Arc::clone(context.session.id()),
            run: context.run.as_ref().map(|(run, _)| Arc::clone(run.id())),
            tool: tool.name.to_string(),
            server: tool.id.server.clone(),
        });
        let (facts, arguments) = (Arc::clone(&call), Arc::new(arguments.clone()));
        self.send(|| HostEvent::CallStarted { call: facts, arguments });
        let (events, started) = (self.clone(), Instant::now());
        Some(WatchedCall { events, call, started, end: CallOutcome::Dropped })
    }
}

impl Default for HostEvents {
    fn default() -> Self {
        Self { sender: broadcast::Sender::new(KEPT), calls: Arc::default() }
    }
}

impl fmt::Debug for HostEvents {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("HostEvents")
    }
}

/// Reports the questions that a person is asked, and the answers.
#[derive(Debug)]
pub(crate) struct ReportedPrompt {
    asks: Arc<dyn ApprovalPrompt>,
    events: HostEvents,
}

impl ReportedPrompt {
    pub(crate) fn new(asks: Arc<dyn ApprovalPrompt>, events: HostEvents) -> Self {
        Self { asks, events }
    }
}

impl ApprovalPrompt for ReportedPrompt {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Option<PersonAnswer>> {
        Box::pin(async move {
            let question = || Arc::new(request.clone());
            self.events.send(|| HostEvent::ApprovalAsked { question: question() });
            let answer = self.asks.ask(request).await;
            if let Some(answer) = &answer {
                let is_allowed = *answer != PersonAnswer::Deny;
                self.events
                    .send(|| HostEvent::ApprovalAnswered { question: question(), is_allowed });
            }
            answer
        })
    }
}

/// A call whose end is reported when this is dropped.
pub(crate) struct WatchedCall {
    events: HostEvents,
    call: Arc<CallFacts>,
    started: Instant,
    end: CallOutcome,
}

impl WatchedCall {
    /// Reports the progress of the call, and passes it on.
    pub(crate) fn watch_progress(&self, options: &mut CallOptions) {
        let (sender, mut reports) = mpsc::channel::<Progress>(PROGRESS);
        let passed_on = options.progress.replace(sender);
        let (events, call) = (self.events.clone(), Arc::clone(&self.call));
        tokio::spawn(async move {
            while let Some(progress) = reports.recv().await {
                let call = Arc::clone(&call);
                let reported = progress.clone();
                events.send(|| HostEvent::CallProgress { call, progress: reported });
                if let Some(passed_on) = &passed_on {
                    // A slow reader loses reports.
                    let _ = passed_on.try_send(progress);
                }
            }
        });
    }

    /// Notes how the call ended.
    pub(crate) fn ended(mut self, outcome: &Result<Value, BrokerError>) {
        if let Err(BrokerError::Waiting { reference, .. }) = outcome {
            let (call, question) = (Arc::clone(&self.call), reference.clone());
            self.events.send(|| HostEvent::ApprovalWaits { call, question });
        }
        self.end = match outcome {
            Ok(result) if result.get("isError").and_then(Value::as_bool) == Some(true) => {
                CallOutcome::ToolError
            }
            Ok(_) => CallOutcome::Succeeded,
            Err(error) => CallOutcome::Failed(error.to_string()),
        };
    }
}

impl Drop for WatchedCall {
    fn drop(&mut self) {
        let (call, end) = (Arc::clone(&self.call), self.end.clone());
        let duration = self.started.elapsed();
        self.events.send(|| HostEvent::CallEnded { call, end, duration });
    }
}
