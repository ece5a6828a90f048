//! The streams of a session: what was sent on each, so that a client that lost one can go on.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use futures::{Stream, future::BoxFuture};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;

use super::sse::Event;
use crate::link::Outbox;

/// Events that are kept of a stream, sent or not. More than these, and the oldest are lost.
const KEPT_EVENTS: usize = 512;
/// The same in bytes. The newest event is kept, however large.
const KEPT_BYTES: usize = 8 * 1024 * 1024;
/// The same of all streams of a session. Beyond it each keeps its newest event alone.
const SESSION_BYTES: usize = 32 * 1024 * 1024;
/// Connections that may wait on one stream. Only the newest gets anything.
const READERS: usize = 8;

/// A stream: of one POST, or the one that is open to everything else.
#[derive(Debug)]
pub(crate) struct EventStream {
    number: u64,
    /// The bytes that all streams of the session keep.
    spent: Arc<AtomicUsize>,
    state: Mutex<State>,
    changes: watch::Sender<()>,
}

#[derive(Debug)]
struct State {
    /// Messages; an empty one gives a client that is cut off early something to come back with.
    events: VecDeque<String>,
    bytes: usize,
    /// The number of the first event in `events`.
    first: u64,
    /// The number of the next event to be sent.
    next: u64,
    /// How many answers are still to come. A stream without any ends with its session.
    unanswered: Option<usize>,
    readers: Vec<u64>,
    ended: bool,
}

impl EventStream {
    /// A stream that ends with the last of so many answers, or never.
    fn new(number: u64, unanswered: Option<usize>, spent: Arc<AtomicUsize>) -> Arc<Self> {
        let state = State {
            events: VecDeque::new(),
            bytes: 0,
            first: 0,
            next: 0,
            unanswered,
            readers: Vec::new(),
            ended: false,
        };
        let (state, changes) = (Mutex::new(state), watch::Sender::new(()));
        Arc::new(Self { number, spent, state, changes })
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Gives the client an event to come back with.
    pub(crate) fn prime(&self) {
        self.push(String::new());
    }

    /// Whether all has been said. What was may still have to be sent.
    pub(crate) fn has_ended(&self) -> bool {
        self.state.lock().ended
    }

    /// Whether somebody reads it.
    pub(crate) fn is_read(&self) -> bool {
        !self.state.lock().readers.is_empty()
    }

    /// Ends it for all who read it.
    pub(crate) fn end(&self) {
        self.state.lock().ended = true;
        self.changes.send_replace(());
    }

    /// A connection that gets what comes from now on, or from after the event `after`. Where there are
    /// several, the newest gets it; when that one goes, the one before. None where there are too many.
    pub(crate) fn read(
        self: &Arc<Self>,
        after: Option<u64>,
    ) -> Option<impl Stream<Item = Event> + Send + use<>> {
        static READER: AtomicU64 = AtomicU64::new(0);
        let reader = READER.fetch_add(1, Ordering::Relaxed);
        {
            let mut state = self.state.lock();
            if state.readers.len() >= READERS {
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
        let reading = Reading { stream: Arc::clone(self), reader, changes };
        Some(futures::stream::unfold(reading, |mut reading| async move {
            let event = reading.next().await?;
            Some((event, reading))
        }))
    }

    fn push(&self, event: String) {
        let mut state = self.state.lock();
        if state.ended {
            return;
        }
        state.bytes += event.len();
        let mut spent = self.spent.fetch_add(event.len(), Ordering::Relaxed) + event.len();
        state.events.push_back(event);
        while state.events.len() > 1
            && (state.events.len() > KEPT_EVENTS
                || state.bytes > KEPT_BYTES
                || spent > SESSION_BYTES)
        {
            let dropped = state.events.pop_front().map_or(0, |event| event.len());
            state.bytes -= dropped;
            spent = self.spent.fetch_sub(dropped, Ordering::Relaxed) - dropped;
            state.first += 1;
        }
        state.next = state.next.max(state.first);
        drop(state);
        self.changes.send_replace(());
    }
}

impl Outbox for EventStream {
    fn offer(&self, message: Value) {
        self.push(message.to_string());
    }

    fn finish(&self, answer: Option<Value>) -> BoxFuture<'_, ()> {
        if let Some(answer) = answer {
            self.push(answer.to_string());
        }
        let mut state = self.state.lock();
        if let Some(unanswered) = &mut state.unanswered {
            *unanswered = unanswered.saturating_sub(1);
            state.ended = *unanswered == 0;
        }
        drop(state);
        self.changes.send_replace(());
        Box::pin(std::future::ready(()))
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.spent.fetch_sub(self.state.get_mut().bytes, Ordering::Relaxed);
    }
}

struct Reading {
    stream: Arc<EventStream>,
    reader: u64,
    changes: watch::Receiver<()>,
}

impl Reading {
    async fn next(&mut self) -> Option<Event> {
        loop {
            self.changes.mark_unchanged();
            {
                let mut state = self.stream.state.lock();
                let mine = state.readers.last() == Some(&self.reader);
                let index = usize::try_from(state.next - state.first).unwrap_or(usize::MAX);
                if mine && let Some(event) = state.events.get(index) {
                    let event =
                        Event::numbered(&format!("{}-{}", self.stream.number, state.next), event);
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

impl Drop for Reading {
    fn drop(&mut self) {
        self.stream.state.lock().readers.retain(|reader| *reader != self.reader);
        self.stream.changes.send_replace(());
    }
}

/// Reads an event's id: its stream and its number there.
pub(crate) fn read_id(id: &str) -> Option<(u64, u64)> {
    let (stream, number) = id.split_once('-')?;
    Some((stream.parse().ok()?, number.parse().ok()?))
}

/// The streams of one session.
#[derive(Debug)]
pub(crate) struct Streams {
    /// For what belongs to no request.
    standing: Arc<EventStream>,
    /// Those of requests, oldest first. Some that have ended are kept for clients that lost them.
    of_requests: Mutex<VecDeque<Arc<EventStream>>>,
    next: AtomicU64,
    spent: Arc<AtomicUsize>,
}

/// Streams that have ended and can still be asked for.
const KEPT_STREAMS: usize = 16;

impl Streams {
    pub(crate) fn new() -> Self {
        let spent = Arc::<AtomicUsize>::default();
        Self {
            standing: EventStream::new(0, None, Arc::clone(&spent)),
            of_requests: Mutex::default(),
            next: AtomicU64::new(1),
            spent,
        }
    }

    pub(crate) fn standing(&self) -> &Arc<EventStream> {
        &self.standing
    }

    /// A new stream for so many requests.
    pub(crate) fn open(&self, requests: usize) -> Arc<EventStream> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let stream = EventStream::new(number, Some(requests), Arc::clone(&self.spent));
        let mut all = self.of_requests.lock();
        let mut ended = all.iter().filter(|stream| stream.has_ended()).count();
        all.retain(|stream| {
            let dropped = ended >= KEPT_STREAMS && stream.has_ended();
            ended -= usize::from(dropped);
            !dropped
        });
        all.push_back(Arc::clone(&stream));
        stream
    }

    /// The stream of this number.
    pub(crate) fn get(&self, number: u64) -> Option<Arc<EventStream>> {
        if number == 0 {
            return Some(Arc::clone(&self.standing));
        }
        self.of_requests.lock().iter().find(|stream| stream.number() == number).cloned()
    }

    pub(crate) fn end(&self) {
        self.standing.end();
        for stream in self.of_requests.lock().iter() {
            stream.end();
        }
    }
}

/// The standing stream of a session that may be gone.
#[derive(Debug)]
pub(crate) struct Standing(pub(crate) Weak<EventStream>);

impl Outbox for Standing {
    fn offer(&self, message: Value) {
        if let Some(stream) = self.0.upgrade() {
            stream.offer(message);
        }
    }

    fn finish(&self, _answer: Option<Value>) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn the_oldest_events_are_lost_and_the_answer_never_is() {
        let streams = Streams::new();
        let stream = streams.open(1);
        for number in 0..2 * KEPT_EVENTS {
            stream.offer(json!(number));
        }
        stream.finish(Some(json!("answer"))).await;
        let events: Vec<Event> = stream.read(Some(0)).unwrap().collect().await;
        assert_eq!(events.len(), KEPT_EVENTS);
        let last = format!("1-{}", 2 * KEPT_EVENTS);
        assert_eq!(events.last(), Some(&Event::numbered(&last, "\"answer\"")));
        let after_all: Vec<Event> = stream.read(Some(u64::MAX)).unwrap().collect().await;
        assert_eq!(after_all, []);
    }

    #[tokio::test]
    async fn a_session_keeps_no_more_than_it_may() {
        let streams = Streams::new();
        let large = "a".repeat(1024 * 1024);
        for _ in 0..20 {
            let stream = streams.open(1);
            for _ in 0..10 {
                stream.push(large.clone());
            }
        }
        let most = SESSION_BYTES + 20 * large.len();
        assert!(streams.spent.load(Ordering::Relaxed) <= most);
        let stream = streams.open(1);
        stream.push(large);
        stream.finish(None).await;
        let events: Vec<Event> = stream.read(None).unwrap().collect().await;
        assert_eq!(events.len(), 1, "the newest is kept, however full it is");
    }

    #[tokio::test]
    async fn streams_that_have_ended_are_kept_for_a_while() {
        let streams = Streams::new();
        for _ in 0..2 * KEPT_STREAMS {
            streams.open(1).finish(None).await;
        }
        let waiting = streams.open(1);
        for _ in 0..2 * KEPT_STREAMS {
            streams.open(1).finish(None).await;
        }
        assert!(streams.get(1).is_none());
        assert!(streams.get(waiting.number()).is_some(), "what has not ended is never lost");
        assert!(streams.of_requests.lock().len() <= KEPT_STREAMS + 2);
    }
}
