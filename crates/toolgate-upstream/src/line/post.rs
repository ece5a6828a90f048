//! A line over HTTP+SSE, the older transport.

use std::{collections::HashMap, sync::Arc};

use http::{HeaderName, HeaderValue};
use serde_json::Value;

use super::{
    exchange::{Exchange, Outlet},
    pipes::{notification, request},
    trouble::Trouble,
};
use crate::{
    http::Error,
    spec::HttpEndpoint,
    sse::{Mailbox, next_message, read_batch},
};

/// Where messages are posted. What the server says comes on one stream, which ends with the exchange.
pub(super) struct Post {
    mailbox: Mailbox,
}

impl Post {
    /// Opens the stream.
    pub(super) async fn open(
        endpoint: &HttpEndpoint,
        headers: HashMap<HeaderName, HeaderValue>,
        max_message_bytes: usize,
        exchange: &Arc<Exchange>,
    ) -> Result<Self, Error> {
        let (mailbox, mut events) = Mailbox::open(endpoint, headers, max_message_bytes).await?;
        let (answers, exchange) = (mailbox.clone(), Arc::clone(exchange));
        let outlet: Outlet = Arc::new(move |answer| {
            let posting = answers.post(&answer);
            Box::pin(async move {
                if posting.await.is_err() {
                    tracing::debug!("an answer did not get to the server");
                }
            })
        });
        tokio::spawn(async move {
            let reading = async {
                while let Some(Ok(data)) = next_message(&mut events).await {
                    for message in read_batch(&data).into_iter().flatten() {
                        exchange.receive(message, None, &outlet);
                    }
                }
            };
            tokio::select! {
                () = reading => {}
                () = exchange.closed() => {}
            }
            // There is no way back to a stream of this kind.
            exchange.close();
        });
        Ok(Self { mailbox })
    }

    pub(super) async fn request(
        &self,
        id: i64,
        method: &str,
        params: Option<Value>,
    ) -> Result<(), Trouble> {
        Ok(self.mailbox.post(&request(id, method, params)).await?)
    }

    pub(super) async fn notify(&self, method: &str, params: Option<Value>) -> Result<(), Trouble> {
        Ok(self.mailbox.post(&notification(method, params)).await?)
    }
}
