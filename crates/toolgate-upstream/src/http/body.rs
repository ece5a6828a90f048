//! Bodies and streams that end, or are ended.

use futures::{StreamExt, TryStreamExt, stream};
use reqwest::Response;
use rmcp::model::RequestId;
use sse_stream::{Sse, SseStream};

use super::{Error, Events, without_url};
use crate::raw;

/// The body, or `None` if it has more than `limit` bytes.
pub(super) async fn bounded(response: Response, limit: usize) -> Result<Option<Vec<u8>>, Error> {
    let mut body = Vec::new();
    let mut stream = response.bytes_stream();
    while let Some(piece) = stream.next().await {
        let piece = piece.map_err(without_url)?;
        if body.len() + piece.len() > limit {
            return Ok(None);
        }
        body.extend_from_slice(&piece);
    }
    Ok(Some(body))
}

/// Enough of a body to find an error in it.
pub(super) async fn start(response: Response) -> Vec<u8> {
    const ENOUGH: usize = 64 * 1024;
    let mut body = Vec::new();
    let mut stream = response.bytes_stream();
    while let Some(Ok(piece)) = stream.next().await {
        body.extend_from_slice(&piece);
        if body.len() > ENOUGH {
            break;
        }
    }
    body
}

/// The events of the answer to request `id`. One that has more than `limit` bytes ends the stream,
/// and the request with an error that says so.
pub(super) fn events(response: Response, limit: usize, id: RequestId) -> Events {
    let events = bounded_events(response, limit);
    stream::unfold(Some((events, id)), move |state| async move {
        let (mut events, id) = state?;
        match events.next().await? {
            Err(error) if is_oversized(&error) => {
                let why = crate::stdio::too_large(None, limit);
                let message = raw::unreadable(&why, Some(id));
                let data = serde_json::to_string(&message).ok();
                Some((Ok(Sse { data, ..Sse::default() }), None))
            }
            event => Some((event, Some((events, id)))),
        }
    })
    .boxed()
}

/// The events of a response. One that has more than `limit` bytes ends them with an error.
pub(crate) fn bounded_events(response: Response, limit: usize) -> Events {
    let mut counter = EventCounter::default();
    let bytes = response.bytes_stream().map_err(std::io::Error::other).map(move |piece| {
        let piece = piece?;
        if counter.longest_with(&piece) > limit {
            Err(std::io::Error::other(Oversized))
        } else {
            Ok(piece)
        }
    });
    SseStream::from_bytes_stream(bytes).boxed()
}

/// An event of the stream is over the limit.
#[derive(Debug, thiserror::Error)]
#[error("an event is over the limit")]
struct Oversized;

fn is_oversized(error: &sse_stream::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(current) = cause {
        if current.is::<Oversized>() {
            return true;
        }
        let inner = current.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if inner.and_then(|inner| inner.downcast_ref::<Oversized>()).is_some() {
            return true;
        }
        cause = current.source();
    }
    false
}

/// Counts the bytes of events: an event ends with an empty line.
#[derive(Debug, Default)]
struct EventCounter {
    since_event: usize,
    last_byte: u8,
}

impl EventCounter {
    /// The size of the longest event that `piece` ends or goes on with.
    fn longest_with(&mut self, piece: &[u8]) -> usize {
        let mut longest = 0;
        for byte in piece.iter().filter(|byte| **byte != b'\r') {
            let ends = *byte == b'\n' && self.last_byte == b'\n';
            self.since_event = if ends { 0 } else { self.since_event + 1 };
            self.last_byte = *byte;
            longest = longest.max(self.since_event);
        }
        longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_across_pieces() {
        let mut counter = EventCounter::default();
        assert_eq!(counter.longest_with(b"data: 12"), 8);
        assert_eq!(counter.longest_with(b"34\r\n\r\ndata: 5"), 11);
        assert_eq!(counter.longest_with(b"6\n\n"), 9);
        assert_eq!(counter.longest_with(b"\n"), 0);
    }
}
