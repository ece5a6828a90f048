//! Responses to POST and GET: JSON, or a stream of events.

use std::ops::DerefMut;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::stream;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::HttpAnswers;
use crate::engine::Engine;
use crate::outbox::{Frame, FrameKind};
use crate::peer::Peer;
use crate::reply::code;

/// Answers a request with the frames of its queue.
pub(super) async fn request(
    engine: &Arc<Engine>,
    peer: &Peer,
    method: &str,
    mut frames: UnboundedReceiver<Frame>,
) -> Response {
    // A subscription has no answer to wait for.
    if engine.fixture.http.answers == HttpAnswers::Sse || method == "subscriptions/listen" {
        return stream(engine, Box::new(frames));
    }
    loop {
        let frame = tokio::select! {
            frame = frames.recv() => frame,
            _ = engine.died() => return broken(),
        };
        match frame {
            Some(Frame { text, kind: FrameKind::Answer }) => return json(status_of(&text), text),
            // A JSON response cannot contain it. A legacy client gets it on its GET stream.
            Some(frame) => peer.standing.forward(frame),
            None => return StatusCode::ACCEPTED.into_response(),
        }
    }
}

/// Sends each frame as an event until the queue ends.
pub(super) fn stream<Q>(engine: &Arc<Engine>, frames: Q) -> Response
where
    Q: DerefMut<Target = UnboundedReceiver<Frame>> + Send + 'static,
{
    let engine = Arc::clone(engine);
    let events = stream::unfold(Some((frames, engine)), |state| async move {
        let (mut frames, engine) = state?;
        tokio::select! {
            frame = frames.recv() => {
                let event = Event::default().event("message").data(frame?.text);
                Some((Ok(event), Some((frames, engine))))
            }
            _ = engine.died() => Some((Err(std::io::Error::other("the fixture has ended")), None)),
        }
    });
    Sse::new(events).into_response()
}

/// A JSON body.
pub(super) fn json(status: StatusCode, text: String) -> Response {
    let content_type = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (status, content_type, text).into_response()
}

/// The HTTP status of a response. Some errors have their own.
fn status_of(text: &str) -> StatusCode {
    let code = serde_json::from_str::<Value>(text).ok().and_then(|m| m["error"]["code"].as_i64());
    match code {
        Some(code::SESSION_PROBLEM | code::UNSUPPORTED_PROTOCOL_VERSION) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

/// A response that breaks off, which corresponds to a crash without a response.
fn broken() -> Response {
    let end = Err::<&str, _>(std::io::Error::other("the fixture has ended"));
    Response::new(Body::from_stream(stream::iter([end])))
}
