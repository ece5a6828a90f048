//! Streams of parts of screens: a part is sent again whenever it has changed.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::response::{
    IntoResponse, Response, Sse,
    sse::{Event, KeepAlive},
};
use futures::stream;
use maud::Markup;
use tokio::{sync::broadcast::Receiver, time::MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use toolgate_host::HostEvent;

use crate::PageState;

/// How often it is looked whether another process has changed something. Changes of this one are noticed at once.
const LOOK: Duration = Duration::from_millis(400);
/// Changes that follow each other this closely are sent together.
const TOGETHER: Duration = Duration::from_millis(50);

/// Ends all streams.
#[derive(Debug, Default)]
pub(crate) struct Streams(pub(crate) CancellationToken);

/// What may have changed.
type Stamp = (Option<(u64, u64)>, u64, (u64, u64));

struct Watched<S, R> {
    page: Arc<PageState>,
    extra: Arc<S>,
    render: Arc<R>,
    events: Receiver<HostEvent>,
    looks: tokio::time::Interval,
    stamp: Option<Stamp>,
    /// The hash of what was sent last.
    sent: Option<blake3::Hash>,
}

/// A stream of this part of a screen.
pub(crate) fn stream<R>(page: &Arc<PageState>, render: R) -> Response
where
    R: Fn(&PageState) -> Markup + Send + Sync + 'static,
{
    stream_of(page, |_| (0, 0), render)
}

/// A stream of this part of a screen, which also changes when `stamp` does.
pub(crate) fn stream_of<S, R>(page: &Arc<PageState>, stamp: S, render: R) -> Response
where
    S: Fn(&PageState) -> (u64, u64) + Send + Sync + 'static,
    R: Fn(&PageState) -> Markup + Send + Sync + 'static,
{
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let watched = Watched {
        page: Arc::clone(page),
        extra: Arc::new(stamp),
        render: Arc::new(render),
        events: page.source.host().events().subscribe(),
        looks,
        stamp: None,
        sent: None,
    };
    let stop = page.streams.0.clone();
    let parts = stream::unfold(watched, move |mut watched| {
        let stop = stop.clone();
        async move {
            let next = stop.run_until_cancelled(watched.next()).await.flatten()?;
            Some((Ok::<_, Infallible>(Event::default().data(next)), watched))
        }
    });
    Sse::new(parts).keep_alive(KeepAlive::new().interval(Duration::from_secs(15))).into_response()
}

impl<S, R> Watched<S, R>
where
    S: Fn(&PageState) -> (u64, u64) + Send + Sync + 'static,
    R: Fn(&PageState) -> Markup + Send + Sync + 'static,
{
    /// The part as it is now, once it has changed; `None` if the page ends.
    async fn next(&mut self) -> Option<String> {
        loop {
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
            let extra = Arc::clone(&self.extra);
            let looked = tokio::task::spawn_blocking(move || {
                let (journal, changes) = stamp(&page);
                let stamp: Stamp = (journal, changes, extra(&page));
                let part = (known != Some(stamp)).then(|| render(&page).into_string());
                (stamp, part)
            });
            let (stamp, part) = looked.await.ok()?;
            self.stamp = Some(stamp);
            let Some(part) = part else { continue };
            let hash = blake3::hash(part.as_bytes());
            if self.sent.replace(hash) != Some(hash) {
                // A carriage return would end a line of the stream.
                return Some(part.replace('\r', ""));
            }
        }
    }
}

fn stamp(page: &PageState) -> (Option<(u64, u64)>, u64) {
    let journal = page.journal().and_then(|journal| journal.version().ok());
    (journal, *page.source.host().changes().borrow())
}
