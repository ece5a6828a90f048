//! A turn as a stream of events.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use futures::{FutureExt as _, Stream, StreamExt as _, future::BoxFuture};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_util::sync::CancellationToken;

use super::Conversation;
use crate::{AgentError, AgentEvent, TurnEnd};

/// Cancels a turn. Clones cancel the same turn.
#[derive(Debug, Clone, Default)]
pub struct AgentCancel(CancellationToken);

impl AgentCancel {
    /// Cancels. The turn ends with [`EndReason::Cancelled`](crate::EndReason::Cancelled), and its history stays valid.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Whether it is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until it is cancelled.
    pub async fn cancelled(&self) {
        self.0.cancelled().await;
    }
}

/// One turn: a stream of events, which ends with [`AgentEvent::Done`] or [`AgentEvent::Failed`].
///
/// The turn runs only while the stream is read. A turn that is dropped stops at once; the next turn answers the calls
/// that it left open. [`Turn::canceller`] stops it in order.
#[must_use = "a turn runs only while its events are read"]
pub struct Turn<'a> {
    run: Option<BoxFuture<'a, Result<TurnEnd, AgentError>>>,
    events: UnboundedReceiver<AgentEvent>,
    last: Option<AgentEvent>,
    cancel: AgentCancel,
}

impl<'a> Turn<'a> {
    pub(super) fn start(conversation: &'a mut Conversation, question: Option<String>) -> Self {
        let (sender, events) = unbounded_channel();
        let cancel = AgentCancel::default();
        let run = conversation.drive(question, sender, cancel.clone()).boxed();
        Self { run: Some(run), events, last: None, cancel }
    }

    /// What cancels this turn.
    pub fn canceller(&self) -> AgentCancel {
        self.cancel.clone()
    }

    /// Runs the turn to its end, without its events.
    pub async fn finish(mut self) -> Result<TurnEnd, AgentError> {
        while let Some(event) = self.next().await {
            match event {
                AgentEvent::Done(end) => return Ok(end),
                AgentEvent::Failed { error } => return Err(error),
                _ => {}
            }
        }
        // Only after the last event was read already.
        Err(AgentError::Settings("the turn has ended before".to_owned()))
    }
}

impl Stream for Turn<'_> {
    type Item = AgentEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        if let Poll::Ready(Some(event)) = self.events.poll_recv(context) {
            return Poll::Ready(Some(event));
        }
        if let Some(run) = &mut self.run {
            if let Poll::Ready(result) = run.as_mut().poll(context) {
                self.run = None;
                self.last = Some(match result {
                    Ok(end) => AgentEvent::Done(end),
                    Err(error) => AgentEvent::Failed { error },
                });
            }
            // The run may have sent events.
            match self.events.poll_recv(context) {
                Poll::Ready(Some(event)) => return Poll::Ready(Some(event)),
                Poll::Pending if self.run.is_some() => return Poll::Pending,
                _ => {}
            }
        }
        Poll::Ready(self.last.take())
    }
}

impl fmt::Debug for Turn<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Turn").field("runs", &self.run.is_some()).finish_non_exhaustive()
    }
}
