//! Streams of parts of screens: a part is sent again whenever it has changed. Each also brings the number of calls that
//! wait for a person.
//!
//! A browser has six connections to an address, over HTTP/1.1, and a window that has no connection can do nothing. So
//! only a few streams of a browser stay open. Others say what is new and end, and the browser asks again.

use std::{
    collections::{HashMap, VecDeque},
    convert::Infallible,
    str::FromStr,
    sync::Arc,
    time::Duration,
};

use axum::response::{
    IntoResponse, Response, Sse,
    sse::{Event, KeepAlive},
};
use futures::stream;
use maud::Markup;
use parking_lot::Mutex;
use tokio::{sync::broadcast::Receiver, time::MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use toolgate_host::HostEvent;

use crate::{PageState, guard::PageRequest};

/// How often it is looked whether another process has changed something. Changes of this one are noticed at once.
const LOOK: Duration = Duration::from_millis(400);
/// Changes that follow each other this closely are sent together.
const TOGETHER: Duration = Duration::from_millis(50);
/// How many streams of a browser stay open. The other connections are for what a person does.
const MOST_OPEN: usize = 4;
/// After how long a browser asks again for a stream that did not stay open.
const AGAIN: Duration = Duration::from_secs(2);

/// The streams of the page.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// Ends all of them.
    pub(crate) stop: CancellationToken,
    /// How many are open, by the visit of a browser.
    open: Arc<Mutex<HashMap<Arc<str>, usize>>>,
}

/// One of the streams of a browser that stay open.
struct OpenStream {
    open: Arc<Mutex<HashMap<Arc<str>, usize>>>,
    visit: Arc<str>,
}

impl Streams {
    /// A place for a stream; `None` if the browser has as many as it may.
    fn place(&self, visit: &Arc<str>) -> Option<OpenStream> {
        let mut open = self.open.lock();
        let count = open.entry(Arc::clone(visit)).or_default();
        if *count >= MOST_OPEN {
            return None;
        }
        *count += 1;
        Some(OpenStream { open: Arc::clone(&self.open), visit: Arc::clone(visit) })
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut open = self.open.lock();
        if let Some(count) = open.get_mut(&self.visit) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.visit);
            }
        }
    }
}

/// What may have changed.
type Stamp = ((Option<(u64, u64)>, u64, u64), (u64, u64));

/// What is sent besides the part: an event when this number has changed. Another element of the screen listens.
pub(crate) struct Signal {
    pub(crate) event: &'static str,
    pub(crate) number: Box<dyn Fn(&PageState) -> u64 + Send + Sync>,
}

struct Watched<S, R> {
    page: Arc<PageState>,
    request: PageRequest,
    extra: Arc<S>,
    render: Arc<R>,
    signal: Option<Arc<Signal>>,
    events: Receiver<HostEvent>,
    looks: tokio::time::Interval,
    stamp: Option<Stamp>,
    seen: Seen,
    due: VecDeque<Event>,
    /// `None` if the stream ends when it has said what is new.
    place: Option<OpenStream>,
    is_over: bool,
}

/// What the browser has. Each event has it as its id, by which a stream that is opened again is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Seen {
    /// The fingerprint of the part.
    part: Option<String>,
    /// The number of questions beside the name of their screen.
    waiting: Option<u64>,
    /// The number of the signal.
    signal: Option<u64>,
}

impl Seen {
    /// What a browser has that asks for a stream.
    fn of(request: &PageRequest) -> Self {
        let query = &request.query;
        request.last_event.as_deref().map_or_else(
            || Self {
                part: query.some("seen").map(str::to_owned),
                waiting: query.get("waiting").parse().ok(),
                signal: query.get("signal").parse().ok(),
            },
            Self::from_id,
        )
    }

    fn from_id(id: &str) -> Self {
        fn next<T: FromStr>(parts: &mut std::str::Split<'_, char>) -> Option<T> {
            parts.next().filter(|part| !part.is_empty())?.parse().ok()
        }
        let mut parts = id.split('.');
        Self { part: next(&mut parts), waiting: next(&mut parts), signal: next(&mut parts) }
    }

    fn id(&self) -> String {
        let number = |number: Option<u64>| number.map(|it| it.to_string()).unwrap_or_default();
        let part = self.part.as_deref().unwrap_or_default();
        format!("{part}.{}.{}", number(self.waiting), number(self.signal))
    }
}

/// A stream of this part of a screen.
pub(crate) fn stream<R>(page: &Arc<PageState>, request: &PageRequest, render: R) -> Response
where
    R: Fn(&PageState) -> Markup + Send + Sync + 'static,
{
    stream_of(page, request, |_| (0, 0), None, render)
}

/// A stream of this part of a screen, which also changes when `stamp` does.
pub(crate) fn stream_of<S, R>(
    page: &Arc<PageState>,
    request: &PageRequest,
    stamp: S,
    signal: Option<Signal>,
    render: R,
) -> Response
where
    S: Fn(&PageState) -> (u64, u64) + Send + Sync + 'static,
    R: Fn(&PageState) -> Markup + Send + Sync + 'static,
{
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let watched = Watched {
        page: Arc::clone(page),
        request: request.clone(),
        extra: Arc::new(stamp),
        render: Arc::new(render),
        signal: signal.map(Arc::new),
        events: page.source.host().events().subscribe(),
        looks,
        stamp: None,
        seen: Seen::of(request),
        due: VecDeque::new(),
        place: page.streams.place(&request.visit),
        is_over: false,
    };
    let stop = page.streams.stop.clone();
    let parts = stream::unfold(watched, move |mut watched| {
        let stop = stop.clone();
        async move {
            let next = stop.run_until_cancelled(watched.next()).await.flatten()?;
            Some((Ok::<_, Infallible>(next), watched))
        }
    });
    Sse::new(parts).keep_alive(KeepAlive::new().interval(Duration::from_secs(15))).into_response()
}

impl<S, R> Watched<S, R>
where
    S: Fn(&PageState) -> (u64, u64) + Send + Sync + 'static,
    R: Fn(&PageState) -> Markup + Send + Sync + 'static,
{
    /// The part as it is now, once it has changed, or an event; `None` if the stream ends.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.due.pop_front() {
                return Some(event);
            }
            if self.is_over {
                return None;
            }
            let is_event = tokio::select! {
                _ = self.looks.tick() => false,
                // A reader that lags behind looks anew.
                _ = self.events.recv() => true,
            };
            if is_event {
                tokio::time::sleep(TOGETHER).await;
                while self.events.try_recv().is_ok() {}
            }
            let page = Arc::clone(&self.page);
            let (render, known) = (Arc::clone(&self.render), self.stamp.filter(|_| !is_event));
            let (extra, signal) = (Arc::clone(&self.extra), self.signal.clone());
            let looked = tokio::task::spawn_blocking(move || {
                let stamp: Stamp = (stamp(&page), extra(&page));
                let is_new = known != Some(stamp);
                let news = is_new.then(|| {
                    let number = signal.map(|signal| (signal.number)(&page));
                    (render(&page).into_string(), number, page.waiting().len() as u64)
                });
                (stamp, news)
            });
            let (stamp, news) = looked.await.ok()?;
            self.stamp = Some(stamp);
            if let Some((part, signal, waiting)) = news {
                self.tell(&part, signal, waiting);
            }
            if self.place.is_none() {
                self.is_over = true;
                let again = Event::default().event("again").data("").retry(AGAIN);
                self.due.push_back(again.id(self.seen.id()));
            }
        }
    }

    /// Sends what the browser does not have.
    fn tell(&mut self, part: &str, signal: Option<u64>, waiting: u64) {
        let fingerprint = self.request.fingerprint(part);
        if self.seen.part.as_ref() != Some(&fingerprint) {
            self.seen.part = Some(fingerprint);
            // A carriage return would end a line of the stream.
            let event = Event::default().data(part.replace('\r', ""));
            self.due.push_back(event.id(self.seen.id()));
        }
        if let Some((number, signal)) = signal.zip(self.signal.as_ref())
            && self.seen.signal.replace(number) != Some(number)
        {
            let event = Event::default().event(signal.event).data("changed");
            self.due.push_back(event.id(self.seen.id()));
        }
        if self.seen.waiting.replace(waiting) != Some(waiting) {
            let event = Event::default().event("waiting").data(waiting.to_string());
            self.due.push_back(event.id(self.seen.id()));
        }
    }
}

fn stamp(page: &PageState) -> (Option<(u64, u64)>, u64, u64) {
    let journal = page.journal().and_then(|journal| journal.version().ok());
    let found = page.definitions.version() + page.flows.version();
    (journal, *page.source.host().changes().borrow(), found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_says_what_the_browser_has() {
        let part = || Some("0123456789abcdef".to_owned());
        for seen in [
            Seen { part: part(), waiting: Some(2), signal: Some(7) },
            Seen { part: part(), waiting: Some(0), signal: None },
            Seen::default(),
        ] {
            assert_eq!(Seen::from_id(&seen.id()), seen);
        }
        assert_eq!(
            Seen::from_id("x.y.-1.9"),
            Seen { part: Some("x".to_owned()), ..Seen::default() }
        );
    }

    #[test]
    fn a_browser_has_a_few_open_streams() {
        let (streams, ada, bob): (_, Arc<str>, Arc<str>) =
            (Streams::default(), "a".into(), "b".into());
        let mut open: Vec<OpenStream> =
            (0..MOST_OPEN).filter_map(|_| streams.place(&ada)).collect();
        assert_eq!(open.len(), MOST_OPEN);
        assert!(streams.place(&ada).is_none() && streams.place(&bob).is_some());
        open.pop();
        assert!(streams.place(&ada).is_some(), "one has ended");
        drop(open);
        assert!(streams.open.lock().is_empty(), "nothing is left of a browser that is gone");
    }
}
