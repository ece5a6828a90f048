//! Between rmcp and the transport: sees every message, in its order.
//!
//! rmcp hands each notification to a task of its own, which loses their order, and it chooses
//! progress tokens itself, so that a caller knows its token only after the request has left. Here
//! a call's [`Ticket`](crate::ticket::Ticket) travels with the request, invisible to the wire, and is known before the
//! first byte is sent. What a server then asks finds its way back by it.

use std::{sync::Arc, time::Duration};

use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, ClientRequest},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};

use crate::{input_handler, raw};

mod heard;

pub(crate) use heard::Heard;

/// A transport that is listened to.
pub(crate) struct Tap<T> {
    inner: T,
    heard: Arc<Heard>,
    options: TapOptions,
}

/// How a transport is listened to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TapOptions {
    /// Whether results come sealed (see [`raw::seal`]).
    pub(crate) sealed: bool,
    /// How long a `server/discover` may go unanswered before it is taken for refused. `None`
    /// where the transport cannot go on after it.
    pub(crate) probe_patience: Option<Duration>,
}

impl<T> Tap<T> {
    pub(crate) fn new(inner: T, heard: Arc<Heard>, options: TapOptions) -> Self {
        Self { inner, heard, options }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Tap<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let message = introduced(message);
        self.heard.outgoing(&message);
        let answered = match &message {
            ClientJsonRpcMessage::Response(response) => Some(response.id.clone()),
            ClientJsonRpcMessage::Error(error) => error.id.clone(),
            ClientJsonRpcMessage::Request(_) | ClientJsonRpcMessage::Notification(_) => None,
        };
        let sending = self.inner.send(message);
        let heard = Arc::clone(&self.heard);
        async move {
            let outcome = sending.await;
            if let Some(id) = answered {
                heard.question_is_over(&id);
            }
            outcome
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let overdue = self.options.probe_patience.and_then(|patience| self.heard.due(patience));
            let message = match overdue {
                None => self.inner.receive().await?,
                Some(due) => match tokio::time::timeout_at(due, self.inner.receive()).await {
                    Ok(message) => message?,
                    Err(_) => match self.heard.abandon_probe() {
                        Some(refusal) => return Some(refusal),
                        None => continue,
                    },
                },
            };
            let message = raw::open(message, self.options.sealed);
            if self.heard.incoming(&message) {
                return Some(message);
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}

/// Says in the older handshake what may be asked of us: all that any caller may be able to answer.
/// In the newer one each request says it for itself.
fn introduced(mut message: ClientJsonRpcMessage) -> ClientJsonRpcMessage {
    if let ClientJsonRpcMessage::Request(request) = &mut message
        && let ClientRequest::InitializeRequest(initialize) = &mut request.request
    {
        initialize.params.capabilities = input_handler::everything();
    }
    message
}
