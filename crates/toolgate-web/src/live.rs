//! Streams of parts of screens: a part is sent again whenever it has changed. Each also brings the number of calls that
//! wait for a person.

use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};

use axum::response::{
    IntoResponse, Response, Sse,
    sse::{Event, KeepAlive},
};
use futures::stream;
use maud::Markup;
use tokio::{sync::broadcast::Receiver, time::MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use toolgate_host::HostEvent;

use crate::{PageState, guard::PageRequest};

/// How often it is looked whether another process has changed something. Changes of this one are noticed at once.
const LOOK: Duration = Duration::from_millis(400);
/// Changes that follow each other this closely are sent together.
const TOGETHER: Duration = Duration::from_millis(50);

/// Ends all streams.
#[derive(Debug, Default)]
pub(crate) struct Streams(pub(crate) CancellationToken);

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
    /// The fingerprint of what the browser has.
    sent: Option<String>,
    signalled: Option<u64>,
    /// How many questions the browser shows beside the name of their screen.
    counted: Option<usize>,
    due: VecDeque<Event>,
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
    // A stream that is opened again has sent more than the page had.
    let is_again = request.last_event.is_some();
    let sent = request.last_event.as_deref().or(request.query.some("seen")).map(str::to_owned);
    let number = |name: &str| request.query.get(name).parse().ok().filter(|_| !is_again);
    let watched = Watched {
        page: Arc::clone(page),
        request: request.clone(),
        extra: Arc::new(stamp),
        render: Arc::new(render),
        signal: signal.map(Arc::new),
        events: page.source.host().events().subscribe(),
        looks,
        stamp: None,
        sent,
        signalled: number("signal"),
        counted: number("waiting").and_then(|number| usize::try_from(number).ok()),
        due: VecDeque::new(),
    };
    let stop = page.streams.0.clone();
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
    /// The part as it is now, once it has changed, or an event; `None` if the page ends.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.due.pop_front() {
                return Some(event);
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
                    (render(&page).into_string(), number, page.waiting().len())
                });
                (stamp, news)
            });
            let (stamp, news) = looked.await.ok()?;
            self.stamp = Some(stamp);
            let Some((part, number, waiting)) = news else { continue };
            let fingerprint = self.request.fingerprint(&part);
            if self.sent.as_ref() != Some(&fingerprint) {
                // A carriage return would end a line of the stream.
                self.due.push_back(Event::default().id(&fingerprint).data(part.replace('\r', "")));
                self.sent = Some(fingerprint.clone());
            }
            // Each event has the id of the part, by which a stream that is opened again is known.
            let named = |event: &str| Event::default().event(event).id(&fingerprint);
            if let Some((number, signal)) = number.zip(self.signal.as_ref())
                && self.signalled.replace(number) != Some(number)
            {
                self.due.push_back(named(signal.event).data("changed"));
            }
            if self.counted.replace(waiting) != Some(waiting) {
                self.due.push_back(named("waiting").data(waiting.to_string()));
            }
        }
    }
}

fn stamp(page: &PageState) -> (Option<(u64, u64)>, u64, u64) {
    let journal = page.journal().and_then(|journal| journal.version().ok());
    (journal, *page.source.host().changes().borrow(), page.definitions.version())
}
