//! What is still to be encoded, and how far that is.

use std::collections::{BTreeSet, HashMap};

use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::{Notify, watch};
use toolgate_catalog::ServerName;

/// How many tools have a vector.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VectorProgress {
    /// What makes the vectors.
    pub encoder: String,
    /// Tools that have one.
    pub known: usize,
    /// All tools.
    pub total: usize,
    /// Why no more are coming for now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// Servers whose tools are to be looked at, and what was found of them.
#[derive(Debug)]
pub(crate) struct EncodingQueue {
    pending: Mutex<PendingServers>,
    news: Notify,
    state: watch::Sender<EncodingState>,
}

#[derive(Debug, Default)]
struct PendingServers {
    servers: BTreeSet<ServerName>,
    /// How many numbers the encoder's vectors have, as far as it has been heard.
    dimensions: Option<usize>,
}

#[derive(Debug, Default)]
struct EncodingState {
    encoder: String,
    /// For each server the tools that have a vector, and all.
    servers: HashMap<ServerName, (usize, usize)>,
    failure: Option<String>,
    phase: EncodingPhase,
}

/// What the worker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum EncodingPhase {
    /// Nothing more can be done for now.
    #[default]
    Idle,
    /// What the store has is used; the encoder is asked for the rest.
    Encoding,
    /// The store is looked at.
    LookingUp,
}

impl EncodingQueue {
    pub(crate) fn new(encoder: &str) -> Self {
        let state = EncodingState { encoder: encoder.to_owned(), ..EncodingState::default() };
        Self { pending: Mutex::default(), news: Notify::new(), state: watch::Sender::new(state) }
    }

    /// A server's tools are new or others than before.
    pub(crate) fn changed(&self, server: &ServerName) {
        // The phase under the same lock: whoever waits after this does not find an idle worker.
        let mut pending = self.pending.lock();
        pending.servers.insert(server.clone());
        self.state.send_modify(|state| state.phase = EncodingPhase::LookingUp);
        drop(pending);
        self.news.notify_one();
    }

    /// The encoder was seen to give vectors of this length. Where that is news, all servers are
    /// looked at again: what the store has may be of another.
    pub(crate) fn expect_dimensions(&self, dimensions: usize) {
        let before = self.pending.lock().dimensions.replace(dimensions);
        if before.is_some_and(|before| before != dimensions) {
            let servers: Vec<ServerName> = self.state.borrow().servers.keys().cloned().collect();
            for server in &servers {
                self.changed(server);
            }
        }
    }

    /// Kept vectors are of this length; what the encoder itself gives counts for more.
    pub(super) fn suppose_dimensions(&self, dimensions: usize) {
        self.pending.lock().dimensions.get_or_insert(dimensions);
    }

    pub(super) fn dimensions(&self) -> Option<usize> {
        self.pending.lock().dimensions
    }

    /// The servers to look at, once there are some.
    pub(super) async fn next(&self) -> BTreeSet<ServerName> {
        loop {
            let taken = std::mem::take(&mut self.pending.lock().servers);
            if !taken.is_empty() {
                return taken;
            }
            self.news.notified().await;
        }
    }

    /// Tells what the worker does now, unless there is more to look at.
    pub(super) fn enter(&self, phase: EncodingPhase, failure: Option<String>) {
        let pending = self.pending.lock();
        let phase = if pending.servers.is_empty() || failure.is_some() {
            phase
        } else {
            EncodingPhase::LookingUp
        };
        self.state.send_modify(|state| {
            state.phase = phase;
            state.failure = failure;
        });
    }

    pub(super) fn found(&self, server: &ServerName, known: usize, total: usize) {
        self.state.send_modify(|state| {
            state.servers.insert(server.clone(), (known, total));
        });
    }

    pub(crate) fn progress(&self) -> VectorProgress {
        let state = self.state.borrow();
        let sum = |part: fn(&(usize, usize)) -> usize| state.servers.values().map(part).sum();
        VectorProgress {
            encoder: state.encoder.clone(),
            known: sum(|(known, _)| *known),
            total: sum(|(_, total)| *total),
            failure: state.failure.clone(),
        }
    }

    /// Waits until the worker is at most this busy; `seen` is told of each change on the way.
    pub(crate) async fn reached(
        &self,
        phase: EncodingPhase,
        seen: &mut (dyn FnMut(&VectorProgress) + Send),
    ) {
        let mut states = self.state.subscribe();
        while states.borrow_and_update().phase > phase {
            seen(&self.progress());
            if states.changed().await.is_err() {
                return;
            }
        }
    }
}
