//! What happens in a host, as a stream.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use futures::Stream;
use serde_json::Value;
use tokio::sync::broadcast::{self, error::RecvError};
use toolgate_host::{CallFacts, CallOutcome, HostEvent};

use crate::{ServerStatus, host};

/// Something that happened in a host.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The state of a server has changed.
    Server {
        /// The server.
        server: String,
        /// Its state when the event is read.
        status: ServerStatus,
    },
    /// A server has listed its tools.
    ToolsListed {
        /// The server.
        server: String,
        /// How many tools the host knows of it.
        tools: usize,
    },
    /// The tools that a session lists have changed: tell your model.
    ListChanged {
        /// The id of the session.
        session: String,
    },
    /// A call begins. Whether it is allowed is not decided yet.
    CallStarted {
        /// Which call.
        call: EventCall,
        /// Its arguments.
        arguments: Value,
    },
    /// A server says how far a call has come. The last report may come after the end of the call.
    CallProgress {
        /// Which call.
        call: EventCall,
        /// Grows with each report.
        progress: f64,
        /// What it grows towards, if the server says so.
        total: Option<f64>,
        /// A text of the server for a person.
        message: Option<String>,
    },
    /// [`on_approval`](crate::HostBuilder::on_approval) is asked about a call.
    ApprovalAsked {
        /// The exposed name of the tool.
        tool: String,
        /// The id of the session.
        session: String,
        /// The id of the run, if a script makes the call.
        run: Option<String>,
        /// The question in a few lines. Text of models and servers in it is escaped.
        question: String,
    },
    /// The answer to [`ApprovalAsked`](Self::ApprovalAsked).
    ApprovalAnswered {
        /// The exposed name of the tool.
        tool: String,
        /// The id of the session.
        session: String,
        /// The id of the run, if a script makes the call.
        run: Option<String>,
        /// Whether the call is allowed.
        is_allowed: bool,
    },
    /// Nobody could be asked now. The call has no result, and can be made again once a person has allowed
    /// it with `toolgate approve`.
    ApprovalWaits {
        /// Which call.
        call: EventCall,
        /// Names the question. It does not approve.
        question: String,
    },
    /// A call has ended.
    CallEnded {
        /// Which call.
        call: EventCall,
        /// Why it has no result, or that the tool failed; `None` if it succeeded.
        problem: Option<String>,
        /// How long it took, with the time of people.
        duration: Duration,
    },
    /// A script begins.
    RunStarted {
        /// The id of the run.
        run: String,
        /// The id of the session.
        session: String,
    },
    /// A script has ended.
    RunEnded {
        /// The id of the run.
        run: String,
        /// The id of the session.
        session: String,
        /// Whether it ran to its end.
        is_finished: bool,
        /// How long it took.
        duration: Duration,
    },
    /// The reader was too slow, and lost events.
    Missed {
        /// How many.
        events: u64,
    },
}

/// Which call an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventCall {
    /// The number of the call in its host. Both events of a call have the same.
    pub number: u64,
    /// The id of the session.
    pub session: String,
    /// The id of the run, if a script makes the call.
    pub run: Option<String>,
    /// The exposed name of the tool.
    pub tool: String,
    /// The server.
    pub server: String,
}

/// The events of a host, in order, from the moment when [`Host::events`](crate::Host::events) was called.
///
/// It is a `futures::Stream`. [`next`](Self::next) works without one. A reader that is more than 1,024
/// events behind gets [`Event::Missed`] and goes on with the oldest event that is kept. The stream keeps
/// the host alive and does not end by itself.
#[must_use = "events that nobody reads are lost"]
pub struct EventStream(Pin<Box<dyn Stream<Item = Event> + Send>>);

impl EventStream {
    pub(crate) fn new(host: toolgate_host::ToolHost) -> Self {
        let received = host.events().subscribe();
        let start = (received, host);
        Self(Box::pin(futures::stream::unfold(start, |(mut received, host)| async move {
            let event = next(&mut received, &host).await?;
            Some((event, (received, host)))
        })))
    }

    /// Waits for the next event.
    pub async fn next(&mut self) -> Option<Event> {
        std::future::poll_fn(|context| self.0.as_mut().poll_next(context)).await
    }
}

impl Stream for EventStream {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        self.0.as_mut().poll_next(context)
    }
}

impl std::fmt::Debug for EventStream {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("EventStream")
    }
}

async fn next(
    received: &mut broadcast::Receiver<HostEvent>,
    inner: &toolgate_host::ToolHost,
) -> Option<Event> {
    match received.recv().await {
        Ok(event) => Some(event_of(event, inner)),
        Err(RecvError::Lagged(events)) => Some(Event::Missed { events }),
        Err(RecvError::Closed) => None,
    }
}

fn event_of(event: HostEvent, inner: &toolgate_host::ToolHost) -> Event {
    match event {
        HostEvent::ServerChanged { server } => {
            Event::Server { status: host::status(inner, &server), server: server.to_string() }
        }
        HostEvent::ToolsListed { server } => {
            let tools = inner.catalog().read().tools_of(server.as_str()).len();
            Event::ToolsListed { server: server.to_string(), tools }
        }
        HostEvent::ListChanged { session } => Event::ListChanged { session: session.to_string() },
        HostEvent::CallStarted { call, arguments } => Event::CallStarted {
            call: facts(&call),
            arguments: Value::Object((*arguments).clone()),
        },
        HostEvent::CallProgress { call, progress } => Event::CallProgress {
            call: facts(&call),
            progress: progress.progress(),
            total: progress.total(),
            message: progress.message().map(str::to_owned),
        },
        HostEvent::ApprovalAsked { question } => Event::ApprovalAsked {
            tool: question.name.clone(),
            session: question.session.to_string(),
            run: question.run.as_deref().map(str::to_owned),
            question: question.to_string(),
        },
        HostEvent::ApprovalAnswered { question, is_allowed } => Event::ApprovalAnswered {
            tool: question.name.clone(),
            session: question.session.to_string(),
            run: question.run.as_deref().map(str::to_owned),
            is_allowed,
        },
        HostEvent::ApprovalWaits { call, question } => {
            Event::ApprovalWaits { call: facts(&call), question: question.to_string() }
        }
        HostEvent::CallEnded { call, end, duration } => {
            let problem = match end {
                CallOutcome::Succeeded => None,
                CallOutcome::ToolError => Some("the tool failed".to_owned()),
                CallOutcome::Failed(why) => Some(why),
                CallOutcome::Dropped => Some("it was cancelled".to_owned()),
            };
            Event::CallEnded { call: facts(&call), problem, duration }
        }
        HostEvent::RunStarted { run, session } => {
            Event::RunStarted { run: run.to_string(), session: session.to_string() }
        }
        HostEvent::RunEnded { run, session, is_error, duration } => Event::RunEnded {
            run: run.to_string(),
            session: session.to_string(),
            is_finished: !is_error,
            duration,
        },
    }
}

fn facts(call: &CallFacts) -> EventCall {
    EventCall {
        number: call.number,
        session: call.session.to_string(),
        run: call.run.as_deref().map(str::to_owned),
        tool: call.tool.clone(),
        server: call.server.to_string(),
    }
}
