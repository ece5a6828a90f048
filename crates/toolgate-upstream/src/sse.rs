//! HTTP+SSE, the transport of protocol version 2024-11-05.
//!
//! A GET opens a stream of events. The first says where to post messages; the others are the
//! server's messages, answers included. There are no sessions to resume: when the stream ends, the
//! connection has ended, and the supervisor makes another.

use std::collections::HashMap;

use futures::StreamExt;
use http::{HeaderName, HeaderValue, header};
use reqwest::Response;
use rmcp::{
    RoleClient,
    model::ServerJsonRpcMessage,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::{
        Transport,
        common::http_header::EVENT_STREAM_MIME_TYPE,
        streamable_http_client::{HttpStatusError, SseError, StreamableHttpError},
    },
};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::{
    http::{AuthorizedClient, Error, Events, bounded_events},
    raw,
    spec::HttpEndpoint,
    typed::TypedRequests,
};

/// Each may be as large as the limit.
const QUEUED_MESSAGES: usize = 8;
/// How many events may come before the one that says where to post.
const MAX_PRELUDE: usize = 16;

/// A connection: the stream, and where to post.
pub(crate) struct SseTransport {
    mailbox: Mailbox,
    messages: mpsc::Receiver<ServerJsonRpcMessage>,
    typed: TypedRequests,
    closing: CancellationToken,
}

/// Where to post.
#[derive(Clone)]
pub(crate) struct Mailbox {
    client: AuthorizedClient,
    headers: http::HeaderMap,
    post_to: Url,
}

impl Mailbox {
    /// Opens the stream and waits for the event that says where to post.
    pub(crate) async fn open(
        endpoint: &HttpEndpoint,
        headers: HashMap<HeaderName, HeaderValue>,
        max_message_bytes: usize,
    ) -> Result<(Self, Events), Error> {
        let url = Url::parse(&endpoint.url).map_err(|_| unexpected("its `url` is no URL"))?;
        let client = AuthorizedClient::new(endpoint).map_err(StreamableHttpError::Client)?;
        let headers: http::HeaderMap = headers.into_iter().collect();
        let request = client.plain().get(url.clone()).headers(headers.clone());
        let response = client.send(request.header(header::ACCEPT, EVENT_STREAM_MIME_TYPE)).await?;
        let response = successful(response)?;
        let content_type = response.headers().get(header::CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok()).unwrap_or_default();
        if !content_type.starts_with(EVENT_STREAM_MIME_TYPE) {
            return Err(StreamableHttpError::UnexpectedContentType(Some(content_type.to_owned())));
        }
        let mut events = bounded_events(response, max_message_bytes);
        let post_to = post_address(&url, &mut events).await?;
        Ok((Self { client, headers, post_to }, events))
    }

    /// Posts a message. What the server says to it comes on the stream.
    pub(crate) fn post<M: Serialize>(
        &self,
        message: &M,
    ) -> impl Future<Output = Result<(), Error>> + Send + use<M> {
        let client = self.client.clone();
        let request = client.plain().post(self.post_to.clone()).headers(self.headers.clone());
        let request = request.json(message);
        async move {
            // What it says beside its status is nothing that anybody waits for.
            successful(client.send(request).await?).map(|_| ())
        }
    }
}

impl SseTransport {
    /// Opens the stream. `on_stray` gets events that are no messages.
    pub(crate) async fn open(
        endpoint: &HttpEndpoint,
        headers: HashMap<HeaderName, HeaderValue>,
        max_message_bytes: usize,
        on_stray: impl Fn(&str) + Send + 'static,
    ) -> Result<Self, Error> {
        let (mailbox, events) = Mailbox::open(endpoint, headers, max_message_bytes).await?;
        let (sender, messages) = mpsc::channel(QUEUED_MESSAGES);
        let (typed, closing) = (TypedRequests::default(), CancellationToken::new());
        let reading = read_messages(events, sender, typed.clone(), on_stray);
        let closed = closing.clone();
        tokio::spawn(async move { closed.run_until_cancelled(reading).await });
        Ok(Self { mailbox, messages, typed, closing })
    }
}

impl Drop for SseTransport {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

impl Transport<RoleClient> for SseTransport {
    type Error = Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.typed.note(&message);
        let (posting, closing) = (self.mailbox.post(&message), self.closing.clone());
        async move {
            let closed = Err(StreamableHttpError::TransportChannelClosed);
            closing.run_until_cancelled(posting).await.unwrap_or(closed)
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.messages.recv().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.closing.cancel();
        Ok(())
    }
}

fn unexpected(text: &'static str) -> Error {
    StreamableHttpError::UnexpectedServerResponse(text.into())
}

fn successful(response: Response) -> Result<Response, Error> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    Err(HttpStatusError::new(status.as_u16(), None).into())
}

/// Where to post. Messages and tokens go to the server that a person named, and to no other.
async fn post_address(url: &Url, events: &mut Events) -> Result<Url, Error> {
    for _ in 0..MAX_PRELUDE {
        let event = events.next().await.ok_or(StreamableHttpError::UnexpectedEndOfStream)??;
        if event.event.as_deref() != Some("endpoint") {
            continue;
        }
        let address = event.data.unwrap_or_default();
        let address = url.join(address.trim());
        let address = address.map_err(|_| unexpected("where to post messages is no URL"))?;
        if address.origin() != url.origin() {
            return Err(unexpected("it wants messages to be posted to another origin"));
        }
        return Ok(address);
    }
    Err(unexpected("it does not say where to post messages"))
}

async fn read_messages(
    mut events: Events,
    messages: mpsc::Sender<ServerJsonRpcMessage>,
    typed: TypedRequests,
    on_stray: impl Fn(&str),
) {
    while let Some(data) = next_message(&mut events).await {
        let data = match data {
            Ok(data) => data,
            Err(error) => return on_stray(&format!("(the stream of events broke: {error})")),
        };
        let Some(batch) = read_batch(&data) else {
            on_stray(&data);
            continue;
        };
        for value in batch {
            match raw::decode(value, |id| typed.take(id)) {
                Some(message) => {
                    if messages.send(message).await.is_err() {
                        return;
                    }
                }
                None => on_stray(&data),
            }
        }
    }
}

/// The text of the next event that is a message. Some servers name other events to keep the stream
/// alive.
pub(crate) async fn next_message(events: &mut Events) -> Option<Result<String, SseError>> {
    loop {
        match events.next().await? {
            Err(error) => return Some(Err(error)),
            Ok(event) if event.event.as_deref().is_some_and(|name| name != "message") => {}
            Ok(event) => {
                if let Some(data) = event.data {
                    return Some(Ok(data));
                }
            }
        }
    }
}

/// The messages of an event: one, or a batch.
pub(crate) fn read_batch(data: &str) -> Option<Vec<Value>> {
    match serde_json::from_str(data).ok()? {
        Value::Array(batch) => Some(batch),
        message => Some(vec![message]),
    }
}
