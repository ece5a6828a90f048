//! Which servers have to be encoded, and how far encoding is.

use std::collections::{BTreeSet, HashMap};

use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::{Notify, watch};
use toolgate_catalog::ServerName;

/// How many tools have a vector.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VectorProgress {
    /// The name of the encoder.
    pub encoder: String,
    /// Tools with a vector.
    pub known: usize,
    /// All tools.
    pub total: usize,
    /// Why encoding is stuck.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// The servers whose tools have to be encoded, and the progress.
#[derive(Debug)]
pub(crate) struct EncodingQueue {
    pending: Mutex<PendingServers>,
    news: Notify,
    state: watch::Sender<EncodingState>,
}

#[derive(Debug, Default)]
struct PendingServers {
    servers: BTreeSet<ServerName>,
    /// The length of the encoder's vectors, if it is known.
    dimensions: Option<usize>,
}

#[derive(Debug, Default)]
struct EncodingState {
    encoder: String,
    /// For each server the number of tools with a vector, and of all tools.
    servers: HashMap<ServerName, (usize, usize)>,
    failure: Option<String>,
    phase: EncodingPhase,
}

/// What the worker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum EncodingPhase {
    /// Nothing can be done now.
    #[default]
    Idle,
    /// The stored vectors are in use; the encoder makes the rest.
    Encoding,
    /// The store is being read.
    LookingUp,
}

impl EncodingQueue {
    pub(crate) fn new(encoder: &str) -> Self {
        let state = EncodingState { encoder: encoder.to_owned(), ..EncodingState::default() };
        Self { pending: Mutex::default(), news: Notify::new(), state: watch::Sender::new(state) }
    }

    /// The tools of a server have changed.
    pub(crate) fn changed(&self, server: &ServerName) {
        // The phase changes under the same lock, so that nobody who waits after this finds an idle
        // worker.
        let mut pending = self.pending.lock();
        pending.servers.insert(server.clone());
        self.state.send_modify(|state| state.phase = EncodingPhase::LookingUp);
        drop(pending);
        self.news.notify_one();
    }

    /// Sets the length of the encoder's vectors. If it has changed, all servers are encoded again,
    /// because stored vectors may have another length.
    pub(crate) fn expect_dimensions(&self, dimensions: usize) {
        let before = self.pending.lock().dimensions.replace(dimensions);
        if before.is_some_and(|before| before != dimensions) {
            let servers: Vec<ServerName> = self.state.borrow().servers.keys().cloned().collect();
            for server in &servers {
                self.changed(server);
            }
        }
    }

    /// Sets the length of stored vectors, unless the encoder itself has set it.
    pub(super) fn suppose_dimensions(&self, dimensions: usize) {
        self.pending.lock().dimensions.get_or_insert(dimensions);
    }

    pub(super) fn dimensions(&self) -> Option<usize> {
        self.pending.lock().dimensions
    }

    /// Waits for servers that have changed.
    pub(super) async fn next(&self) -> BTreeSet<ServerName> {
        loop {
            let taken = std::mem::take(&mut self.pending.lock().servers);
            if !taken.is_empty() {
                return taken;
            }
            self.news.notified().await;
        }
    }

    /// Sets the phase of the worker, unless more servers have changed.
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

    /// Waits until the worker has reached a phase; `seen` gets each change on the way.
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
