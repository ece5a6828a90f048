//! HTTP+SSE, the transport of protocol version 2024-11-05.
//!
//! A GET opens a stream of events. The first event names the URL for messages. The others are the
//! server's messages, including responses. There are no sessions to resume: when the stream ends,
//! the connection has ended.

use std::sync::Arc;

use futures::StreamExt;
use http::header;
use serde_json::Value;
use url::Url;

use super::{
    connection::OutputSource,
    endpoint::{HttpEndpoint, MessageSizes},
    exchange::{Exchange, ExchangeError, Responder},
    failure::HttpError,
    http::{EVENT_STREAM, Events, HttpClient, bounded_events, has_type, unexpected_type},
    redact::Redactor,
};

/// How many events may come before the one that says where to post.
const MAX_EVENTS_BEFORE_ENDPOINT: usize = 16;

/// Where messages are posted. The stream of the server's messages ends with the exchange.
pub(super) struct SseTransport {
    post: PostAddress,
    pub(super) exchange: Arc<Exchange>,
}

#[derive(Clone)]
struct PostAddress {
    client: HttpClient,
    url: Url,
}

impl SseTransport {
    /// Opens the stream, and waits for the event that says where to post.
    pub(super) async fn open(
        endpoint: &HttpEndpoint,
        client: HttpClient,
        redactor: Redactor,
        sizes: MessageSizes,
        exchange: &Arc<Exchange>,
    ) -> Result<Self, HttpError> {
        let request = client.get().header(header::ACCEPT, EVENT_STREAM);
        let response = client.send(request).await?;
        if !response.status().is_success() {
            return Err(HttpError::Status(response.status().as_u16()));
        }
        if !has_type(&response, EVENT_STREAM) {
            return Err(unexpected_type(&response));
        }
        let mut events = bounded_events(response, sizes.kept);
        let url = post_address(&endpoint.url, &mut events).await?;
        let post = PostAddress { client, url };
        let responder = responder(post.clone());
        let reading = Arc::clone(exchange);
        tokio::spawn(async move {
            tokio::select! {
                () = read(events, sizes, &reading, &responder, &redactor) => {}
                () = reading.closed() => {}
            }
            // A stream of this kind cannot be resumed.
            reading.close();
        });
        Ok(Self { post, exchange: Arc::clone(exchange) })
    }

    pub(super) async fn send(&self, message: Value) -> Result<(), ExchangeError> {
        Ok(self.post.post(&message).await?)
    }
}

impl PostAddress {
    /// Posts a message. The response comes on the stream, not here.
    async fn post(&self, message: &Value) -> Result<(), HttpError> {
        let response =
            self.client.send(self.client.post_to(self.url.clone()).json(message)).await?;
        if response.status().is_success() {
            return Ok(());
        }
        Err(HttpError::Status(response.status().as_u16()))
    }
}

fn responder(post: PostAddress) -> Responder {
    Arc::new(move |response| {
        let post = post.clone();
        Box::pin(async move {
            if let Err(error) = post.post(&response).await {
                tracing::debug!(%error, "a response did not reach the server");
            }
        })
    })
}

/// Where to post. Messages and tokens go to the server that a person named, and to no other.
async fn post_address(url: &str, events: &mut Events) -> Result<Url, HttpError> {
    let unexpected = HttpError::Unexpected;
    let url = Url::parse(url).map_err(|_| unexpected("its `url` is not a URL"))?;
    for _ in 0..MAX_EVENTS_BEFORE_ENDPOINT {
        let event = events.next().await.ok_or(unexpected("the stream ended at once"))??;
        if event.event.as_deref() != Some("endpoint") {
            continue;
        }
        let address = url.join(event.data.unwrap_or_default().trim());
        let address = address.map_err(|_| unexpected("the address for messages is not a URL"))?;
        if address.origin() != url.origin() {
            return Err(unexpected("it names another origin for messages"));
        }
        return Ok(address);
    }
    Err(unexpected("it does not say where to post messages"))
}

async fn read(
    mut events: Events,
    sizes: MessageSizes,
    exchange: &Arc<Exchange>,
    responder: &Responder,
    redactor: &Redactor,
) {
    let stray = |text: &str| exchange.handler().output(OutputSource::Stdout, &redactor.clean(text));
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => event,
            Err(error) => return stray(&format!("({})", HttpError::from(error))),
        };
        // Some servers name other events to keep the stream alive.
        if event.event.as_ref().is_some_and(|name| name != "message") {
            continue;
        }
        let read = event.message(sizes.exact);
        let Some(data) = event.data else { continue };
        let batch = match read {
            Ok(Some(Value::Array(batch))) => batch,
            Ok(Some(message)) => vec![message],
            Ok(None) => {
                stray(&data);
                continue;
            }
            Err(error) => return stray(&format!("({})", HttpError::from(error))),
        };
        for message in batch {
            if !exchange.receive(message, None, responder) {
                stray(&data);
            }
        }
    }
}
