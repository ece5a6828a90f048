//! The task that writes the entries of all runs of a node.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use toolgate_store::{RunEntry, RunEntryKind};

use super::entries;
use crate::database::{Database, FleetError};

/// How long entries that can wait do so for others.
const DELAY: Duration = Duration::from_millis(20);
/// The most entries of one transaction.
const MOST_TOGETHER: usize = 256;
/// The most runs of which it is remembered that their entries could not be written, or what became of them.
const MAX_REMEMBERED: usize = 10_000;
/// Between two attempts to write the ends of runs that could not be written.
const RETRY: Duration = Duration::from_secs(1);

/// An entry, and who waits until it is written. Without an entry, only what came before is written.
#[derive(Debug)]
pub(super) struct WriteRequest {
    pub(super) entry: Option<RunEntry<'static>>,
    pub(super) done: Option<oneshot::Sender<Result<(), FleetError>>>,
}

/// What the writer and the journal both know.
#[derive(Debug, Default)]
pub(super) struct WriterState {
    entries: AtomicUsize,
    bytes: AtomicUsize,
    /// Runs whose entries could not be written, and why.
    failed: Mutex<HashMap<String, String>>,
    /// The epochs of the runs of this node.
    epochs: Mutex<HashMap<String, i64>>,
}

pub(super) struct JournalWriter {
    database: Database,
    node: String,
    state: Arc<WriterState>,
    /// Ends of runs that could not be written yet.
    unwritten: Vec<RunEntry<'static>>,
}

impl WriterState {
    pub(super) fn queued(&self, entry: Option<&RunEntry<'_>>) {
        if let Some(entry) = entry {
            self.entries.fetch_add(1, Ordering::AcqRel);
            self.bytes.fetch_add(entry.bytes(), Ordering::Relaxed);
        }
    }

    pub(super) fn has_queued(&self) -> bool {
        self.entries.load(Ordering::Acquire) > 0
    }

    pub(super) fn queued_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn failure(&self, run: &str) -> Option<String> {
        self.failed.lock().get(run).cloned()
    }

    pub(super) fn forget_failure(&self, run: &str) {
        self.failed.lock().remove(run);
    }

    /// Notes that this node owns a run.
    pub(super) fn owns(&self, run: &str, epoch: i64) {
        let mut epochs = self.epochs.lock();
        if epochs.len() < MAX_REMEMBERED || epochs.contains_key(run) {
            epochs.insert(run.to_owned(), epoch);
        }
    }

    /// The epoch in which this node owns a run; 0 if it does not.
    fn epoch(&self, run: &str) -> i64 {
        self.epochs.lock().get(run).copied().unwrap_or_default()
    }
}

impl JournalWriter {
    pub(super) fn new(database: Database, node: String, state: Arc<WriterState>) -> Self {
        Self { database, node, state, unwritten: Vec::new() }
    }

    /// Writes until the journal is gone.
    pub(super) async fn run(mut self, mut requests: mpsc::UnboundedReceiver<WriteRequest>) {
        loop {
            let retry = !self.unwritten.is_empty();
            let first = tokio::select! {
                first = requests.recv() => first,
                () = tokio::time::sleep(RETRY), if retry => {
                    self.write(Vec::new()).await;
                    continue;
                }
            };
            let Some(first) = first else { return };
            let mut batch = vec![first];
            gather(&mut requests, &mut batch).await;
            self.write(batch).await;
        }
    }

    /// Writes requests in one transaction, or each in one of its own if that fails.
    async fn write(&mut self, batch: Vec<WriteRequest>) {
        let (mut entries, mut waiting) = (std::mem::take(&mut self.unwritten), Vec::new());
        let retried = entries.len();
        let (mut count, mut bytes) = (0, 0);
        for WriteRequest { entry, done } in batch {
            if let Some(mut entry) = entry {
                count += 1;
                bytes += entry.bytes();
                if entry.is_answer() {
                    let _ = entries.iter_mut().rev().any(|call| entry.join(call));
                }
                if let RunEntryKind::Began { run, .. } = entry.kind() {
                    self.state.owns(&run.id, 1);
                }
                entries.push(entry);
                waiting.push((Some(entries.len() - 1), done));
            } else {
                waiting.push((None, done));
            }
        }
        let mut outcomes = self.attempt(&entries).await;
        let is_lost =
            outcomes.iter().any(|outcome| matches!(outcome, Err(FleetError::Statement(_))));
        if is_lost && entries.len() > 1 {
            // One bad entry has undone the others.
            outcomes.clear();
            for entry in &entries {
                outcomes.append(&mut self.attempt(std::slice::from_ref(entry)).await);
            }
        }
        // Before the answers: who reads next must not wait for what is written.
        self.state.entries.fetch_sub(count, Ordering::AcqRel);
        self.state.bytes.fetch_sub(bytes, Ordering::Relaxed);
        let mut outcomes: Vec<Option<Result<(), FleetError>>> =
            outcomes.into_iter().map(Some).collect();
        for (position, done) in waiting {
            let outcome = position.map_or(Some(Ok(())), |position| {
                let outcome = outcomes.get_mut(position).and_then(Option::take);
                if let Some(Err(error)) = &outcome {
                    self.failed(entries.get(position), error, done.is_some());
                }
                outcome
            });
            if let Some(done) = done {
                let _ = done.send(outcome.unwrap_or(Err(FleetError::Slow)));
            }
        }
        for (position, entry) in entries.into_iter().enumerate() {
            let is_retried =
                position < retried && matches!(outcomes.get(position), Some(Some(Err(_))));
            let is_kept = is_retried || position >= retried && self.state.failed_end(&entry);
            let is_gone = matches!(outcomes.get(position), Some(Some(Err(FleetError::TakenOver))));
            if is_kept && !is_gone && self.unwritten.len() < MAX_REMEMBERED {
                self.unwritten.push(entry);
            }
        }
    }

    /// Remembers a failure.
    fn failed(&self, entry: Option<&RunEntry<'_>>, error: &FleetError, is_told: bool) {
        let Some(entry) = entry else { return };
        let mut failed = self.state.failed.lock();
        if (entry.is_end() || !is_told) && failed.len() < MAX_REMEMBERED {
            failed.insert(entry.run().to_owned(), error.to_string());
        }
    }

    /// Writes entries in one transaction. Returns the outcome of each.
    async fn attempt(&self, entries: &[RunEntry<'_>]) -> Vec<Result<(), FleetError>> {
        if entries.is_empty() {
            return Vec::new();
        }
        let written = async {
            let connection = self.database.connection().await?;
            entries::write(&connection, &self.node, entries, |run| self.state.epoch(run)).await
        };
        match self.database.within(written).await {
            Ok(outcomes) => outcomes,
            Err(error) => {
                let again = || match &error {
                    FleetError::Statement(why) => FleetError::Statement(why.clone()),
                    FleetError::Away(why) => FleetError::Away(why.clone()),
                    _ => FleetError::Slow,
                };
                entries.iter().map(|_| Err(again())).collect()
            }
        }
    }
}

impl WriterState {
    /// Whether the end of a run could not be written. It is tried again, so it is no failure of the run.
    fn failed_end(&self, entry: &RunEntry<'_>) -> bool {
        entry.is_end() && self.failed.lock().remove(entry.run()).is_some()
    }
}

/// Adds what has come meanwhile. If nobody waits yet, waits a moment for more.
async fn gather(
    requests: &mut mpsc::UnboundedReceiver<WriteRequest>,
    batch: &mut Vec<WriteRequest>,
) {
    let moment = tokio::time::sleep(DELAY);
    tokio::pin!(moment);
    while batch.len() < MOST_TOGETHER {
        while batch.len() < MOST_TOGETHER
            && let Ok(more) = requests.try_recv()
        {
            batch.push(more);
        }
        if batch.iter().any(|request| request.done.is_some()) {
            return;
        }
        tokio::select! {
            more = requests.recv() => match more {
                Some(more) => batch.push(more),
                None => return,
            },
            () = &mut moment => return,
        }
    }
}
