//! Streams of events, as they are written.

use std::{convert::Infallible, fmt::Write as _, time::Duration};

use axum::{
    body::Body,
    http::header,
    response::{IntoResponse, Response},
};
use futures::{Stream, StreamExt as _};
use serde_json::Value;

/// When a client whose stream ended should come back.
const RETRY: Duration = Duration::from_secs(3);

/// One event. JSON has no line ends of its own, so that a message is one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event(String);

impl Event {
    /// A message that nobody can ask for again.
    pub(crate) fn message(message: &Value) -> Self {
        Self(format!("data: {message}\n\n"))
    }

    /// A message, or with an empty one an event that only gives a client an id to come back with.
    pub(crate) fn numbered(id: &str, json: &str) -> Self {
        let mut text = format!("id: {id}\n");
        if json.is_empty() {
            let _ = writeln!(text, "retry: {}", RETRY.as_millis());
        }
        let _ = write!(text, "data: {json}\n\n");
        Self(text)
    }
}

/// A stream that shows that it lives.
pub(crate) fn response(
    events: impl Stream<Item = Event> + Send + 'static,
    alive: Duration,
) -> Response {
    let events = Box::pin(events);
    let lines = futures::stream::unfold(events, move |mut events| async move {
        let text = match tokio::time::timeout(alive, events.next()).await {
            Ok(event) => event?.0,
            Err(_) => ":\n\n".to_owned(),
        };
        Some((Ok::<_, Infallible>(text), events))
    });
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache"),
        // Proxies would hold events back.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(lines)).into_response()
}
