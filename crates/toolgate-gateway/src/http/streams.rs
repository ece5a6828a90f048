//! The event streams of a legacy session. Each stores its events, so that a client that lost the
//! connection can resume.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::response::sse::Event;
use futures::{Stream, future::BoxFuture};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;
use toolgate_mcp::json_text;

use crate::channel::MessageSink;

/// Events that a stream stores, sent or not. The oldest are dropped first.
const MAX_EVENTS: usize = 512;
/// Bytes that a stream stores. The newest event is kept whatever its size.
const MAX_STREAM_BYTES: usize = 8 * 1024 * 1024;
/// Bytes that all streams of a session store. Beyond this each stream keeps only its newest event.
const MAX_SESSION_BYTES: usize = 32 * 1024 * 1024;
/// Connections that may wait on one stream. Only the newest gets events.
const MAX_READERS: usize = 8;
/// Ended streams that can still be resumed.
const MAX_ENDED_STREAMS: usize = 16;
/// How long a client should wait before it reconnects.
const RETRY: Duration = Duration::from_secs(3);

/// The response to one POST, or the stream for messages that belong to no request.
#[derive(Debug)]
pub(crate) struct EventStream {
    number: u64,
    /// The bytes that all streams of the session store.
    session_bytes: Arc<AtomicUsize>,
    state: Mutex<StreamState>,
    changes: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct StreamState {
    /// The texts of messages.
    events: VecDeque<String>,
    bytes: usize,
    /// The number of the first event in `events`.
    first: u64,
    /// The number of the next event to send.
    next: u64,
    /// How many responses are missing. A stream without a number ends with its session.
    missing_responses: Option<usize>,
    readers: Vec<u64>,
    ended: bool,
}

impl EventStream {
    /// A stream that ends with the last of so many responses, or with its session.
    fn new(number: u64, responses: Option<usize>, session_bytes: Arc<AtomicUsize>) -> Arc<Self> {
        let state = StreamState { missing_responses: responses, ..StreamState::default() };
        let (state, changes) = (Mutex::new(state), watch::Sender::new(()));
        Arc::new(Self { number, session_bytes, state, changes })
    }

    /// Makes the first event an empty one, from which a client that is cut off early can resume. Returns
    /// its text, because axum leaves out an empty `data` field, without which clients ignore the event.
    pub(crate) fn prime(&self) -> String {
        let mut state = self.state.lock();
        (state.first, state.next) = (1, 1);
        format!("id: {}-0\nretry: {}\ndata: \n\n", self.number, RETRY.as_millis())
    }

    fn has_ended(&self) -> bool {
        self.state.lock().ended
    }

    pub(crate) fn is_read(&self) -> bool {
        !self.state.lock().readers.is_empty()
    }

    /// Ends the stream for all its readers.
    pub(crate) fn end(&self) {
        self.state.lock().ended = true;
        self.changes.send_replace(());
    }

    /// Reads new events, or those after the event `after`. Of several readers, only the newest gets
    /// events; when it goes, the one before it continues. Returns nothing if there are too many readers.
    pub(crate) fn read(
        self: &Arc<Self>,
        after: Option<u64>,
    ) -> Option<impl Stream<Item = Event> + Send + use<>> {
        static READER: AtomicU64 = AtomicU64::new(0);
        let reader = READER.fetch_add(1, Ordering::Relaxed);
        {
            let mut state = self.state.lock();
            if state.readers.len() >= MAX_READERS {
                return None;
            }
            if let Some(after) = after {
                let end = state.first + state.events.len() as u64;
                state.next = after.saturating_add(1).clamp(state.first, end);
            }
            state.readers.push(reader);
        }
        let changes = self.changes.subscribe();
        self.changes.send_replace(());
        let reader = StreamReader { stream: Arc::clone(self), reader, changes };
        Some(futures::stream::unfold(reader, |mut reader| async move {
            let event = reader.next().await?;
            Some((event, reader))
        }))
    }

    /// Waits until there is something to read, or the stream has ended.
    pub(crate) async fn has_news(&self) {
        let mut changes = self.changes.subscribe();
        loop {
            changes.mark_unchanged();
            {
                let state = self.state.lock();
                if state.ended || !state.events.is_empty() {
                    return;
                }
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    fn push(&self, state: &mut StreamState, event: String) {
        if state.ended {
            return;
        }
        state.bytes += event.len();
        let mut total = self.session_bytes.fetch_add(event.len(), Ordering::Relaxed) + event.len();
        state.events.push_back(event);
        while state.events.len() > 1
            && (state.events.len() > MAX_EVENTS
                || state.bytes > MAX_STREAM_BYTES
                || total > MAX_SESSION_BYTES)
        {
            let dropped = state.events.pop_front().map_or(0, |event| event.len());
            state.bytes -= dropped;
            total = self.session_bytes.fetch_sub(dropped, Ordering::Relaxed) - dropped;
            state.first += 1;
        }
        state.next = state.next.max(state.first);
    }
}

impl MessageSink for EventStream {
    fn is_read(&self) -> bool {
        Self::is_read(self)
    }

    fn send(&self, message: Value) {
        let text = json_text(&message);
        self.push(&mut self.state.lock(), text);
        self.changes.send_replace(());
    }

    fn finish(&self, response: Option<Value>) -> BoxFuture<'_, ()> {
        let text = response.as_ref().map(json_text);
        let mut state = self.state.lock();
        if let Some(text) = text {
            self.push(&mut state, text);
        }
        if let Some(missing) = &mut state.missing_responses {
            *missing = missing.saturating_sub(1);
            state.ended = *missing == 0;
        }
        drop(state);
        self.changes.send_replace(());
        Box::pin(std::future::ready(()))
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.session_bytes.fetch_sub(self.state.get_mut().bytes, Ordering::Relaxed);
    }
}

struct StreamReader {
    stream: Arc<EventStream>,
    reader: u64,
    changes: watch::Receiver<()>,
}

impl StreamReader {
    async fn next(&mut self) -> Option<Event> {
        loop {
            self.changes.mark_unchanged();
            {
                let mut state = self.stream.state.lock();
                let is_newest = state.readers.last() == Some(&self.reader);
                let index = usize::try_from(state.next - state.first).unwrap_or(usize::MAX);
                if is_newest && let Some(text) = state.events.get(index) {
                    let id = format!("{}-{}", self.stream.number, state.next);
                    let event = Event::default().id(id).data(text);
                    state.next += 1;
                    return Some(event);
                }
                if state.ended {
                    return None;
                }
            }
            self.changes.changed().await.ok()?;
        }
    }
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        self.stream.state.lock().readers.retain(|reader| *reader != self.reader);
        self.stream.changes.send_replace(());
    }
}

/// Parses an event id: the number of the stream and of the event.
pub(crate) fn parse_event_id(id: &str) -> Option<(u64, u64)> {
    let (stream, event) = id.split_once('-')?;
    Some((stream.parse().ok()?, event.parse().ok()?))
}

/// The streams of one session.
#[derive(Debug)]
pub(crate) struct SessionStreams {
    /// For messages that belong to no request.
    pub(crate) general: Arc<EventStream>,
    /// The streams of requests, oldest first. Some ended ones are kept for clients that resume them.
    of_requests: Mutex<VecDeque<Arc<EventStream>>>,
    next_number: AtomicU64,
    bytes: Arc<AtomicUsize>,
}

impl SessionStreams {
    pub(crate) fn new() -> Self {
        let bytes = Arc::<AtomicUsize>::default();
        Self {
            general: EventStream::new(0, None, Arc::clone(&bytes)),
            of_requests: Mutex::default(),
            next_number: AtomicU64::new(1),
            bytes,
        }
    }

    /// Opens a stream for so many requests.
    pub(crate) fn open(&self, requests: usize) -> Arc<EventStream> {
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let stream = EventStream::new(number, Some(requests), Arc::clone(&self.bytes));
        let mut streams = self.of_requests.lock();
        let mut ended = streams.iter().filter(|stream| stream.has_ended()).count();
        streams.retain(|stream| {
            let is_dropped = ended >= MAX_ENDED_STREAMS && stream.has_ended();
            ended -= usize::from(is_dropped);
            !is_dropped
        });
        streams.push_back(Arc::clone(&stream));
        stream
    }

    pub(crate) fn get(&self, number: u64) -> Option<Arc<EventStream>> {
        if number == 0 {
            return Some(Arc::clone(&self.general));
        }
        self.of_requests.lock().iter().find(|stream| stream.number == number).cloned()
    }

    pub(crate) fn end(&self) {
        self.general.end();
        for stream in self.of_requests.lock().iter() {
            stream.end();
        }
    }
}

/// Sends to the general stream of a session, which may have ended.
#[derive(Debug)]
pub(crate) struct GeneralSink(pub(crate) Weak<EventStream>);

impl MessageSink for GeneralSink {
    fn send(&self, message: Value) {
        if let Some(stream) = self.0.upgrade() {
            stream.send(message);
        }
    }

    fn is_read(&self) -> bool {
        self.0.upgrade().is_some_and(|stream| stream.is_read())
    }

    fn finish(&self, _response: Option<Value>) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn the_oldest_events_are_dropped_and_the_response_never_is() {
        let streams = SessionStreams::new();
        let stream = streams.open(1);
        for number in 0..2 * MAX_EVENTS {
            stream.send(json!(number));
        }
        stream.finish(Some(json!("answer"))).await;
        let events: Vec<Event> = stream.read(Some(0)).unwrap().collect().await;
        assert_eq!(events.len(), MAX_EVENTS);
        let last = Event::default().id(format!("1-{}", 2 * MAX_EVENTS)).data("\"answer\"");
        assert_eq!(format!("{:?}", events.last().unwrap()), format!("{last:?}"));
        assert_eq!(stream.read(Some(u64::MAX)).unwrap().count().await, 0);
    }

    #[tokio::test]
    async fn a_response_is_awaited_and_comes_with_the_end() {
        use futures::FutureExt as _;

        let streams = SessionStreams::new();
        let stream = streams.open(1);
        assert_eq!(stream.has_news().now_or_never(), None);
        let (other, waiting) = (Arc::clone(&stream), Arc::clone(&stream));
        tokio::join!(waiting.has_news(), async { other.finish(Some(json!("answer"))).await });
        let mut events = Box::pin(stream.read(None).unwrap());
        assert!(events.next().now_or_never().flatten().is_some(), "without waiting");
        assert!(matches!(events.next().now_or_never(), Some(None)), "and so is the end");
    }

    #[tokio::test]
    async fn a_session_stores_no_more_than_its_limit() {
        let streams = SessionStreams::new();
        let large = "a".repeat(1024 * 1024);
        for _ in 0..20 {
            let stream = streams.open(1);
            for _ in 0..10 {
                stream.send(json!(large));
            }
        }
        let most = MAX_SESSION_BYTES + 20 * large.len();
        assert!(streams.bytes.load(Ordering::Relaxed) <= most);
        let stream = streams.open(1);
        stream.send(json!(large));
        stream.finish(None).await;
        assert_eq!(stream.read(None).unwrap().count().await, 1, "the newest event is kept");
    }

    #[tokio::test]
    async fn ended_streams_are_kept_for_a_while() {
        let streams = SessionStreams::new();
        for _ in 0..2 * MAX_ENDED_STREAMS {
            streams.open(1).finish(None).await;
        }
        let waiting = streams.open(1);
        for _ in 0..2 * MAX_ENDED_STREAMS {
            streams.open(1).finish(None).await;
        }
        assert!(streams.get(1).is_none());
        assert!(streams.get(waiting.number).is_some(), "an open stream is never dropped");
        assert!(streams.of_requests.lock().len() <= MAX_ENDED_STREAMS + 2);
    }
}
