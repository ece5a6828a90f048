//! Runs with their calls and events, approvals, grants and tasks.
//!
//! A run has an owner, which is a node, and an epoch, which every resumption increases. Only the owner of the present
//! epoch adds to a run: a node that was thought dead and is not can write nothing more, so what it sends is of unknown
//! outcome for the node that took over.
//!
//! One task writes the entries of all runs of a node, in order. It writes all that have come meanwhile in one
//! transaction and one round trip. A transaction with a call that must not be repeated waits until it is on the disk
//! of the database; another one does not.

mod approvals;
mod entries;
mod runs;
mod tasks;
mod writer;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use parking_lot::Mutex;
use tokio::sync::mpsc;
use toolgate_store::{JournalError, RunEntries, RunEntry};

use crate::{
    database::{FleetError, PLACE},
    node::Node,
};
use writer::{JournalWriter, WriteRequest, WriterState};

/// The journal of the fleet.
#[derive(Debug)]
pub(crate) struct SharedJournal {
    node: Arc<Node>,
    state: Arc<WriterState>,
    queue: mpsc::UnboundedSender<WriteRequest>,
    /// How many runs of this node have ended since the last look at how many there are.
    ends: AtomicU64,
    /// How many bytes this node has written since then.
    written: AtomicU64,
    pruning: Mutex<()>,
}

/// Beyond this, an entry that could wait is written now.
const MAX_QUEUED_BYTES: usize = 1 << 20;

impl SharedJournal {
    pub(crate) fn new(node: Arc<Node>) -> Self {
        let (queue, requests) = mpsc::unbounded_channel();
        let state = Arc::new(WriterState::default());
        let writer = JournalWriter::new(node.database.clone(), node.id.clone(), Arc::clone(&state));
        node.database.spawn(writer.run(requests));
        let (ends, written) = (AtomicU64::new(u64::MAX / 2), AtomicU64::default());
        Self { node, state, queue, ends, written, pruning: Mutex::default() }
    }

    /// Has an entry written, and waits for it.
    fn write_now(&self, entry: Option<RunEntry<'static>>) -> Result<(), FleetError> {
        let (done, written) = tokio::sync::oneshot::channel();
        self.state.queued(entry.as_ref());
        let request = WriteRequest { entry, done: Some(done) };
        let over = || FleetError::Away("the node is stopping".to_owned());
        self.queue.send(request).map_err(|_| over())?;
        self.node.database.wait(async { written.await.map_err(|_| over())? })
    }

    /// Writes what waits, before something is read.
    fn settle(&self) {
        if self.state.has_queued() {
            // Who wrote it learns of a failure.
            let _ = self.write_now(None);
        }
    }

    /// Fails if an earlier entry of the run could not be written, unless this one ends it.
    fn check_failed(&self, entry: &RunEntry<'_>) -> Result<(), JournalError> {
        match self.state.failure(entry.run()) {
            Some(_) if entry.is_end() => self.state.forget_failure(entry.run()),
            Some(why) => return Err(JournalError::of(PLACE, why)),
            None => {}
        }
        if entry.is_end() {
            self.ends.fetch_add(1, Ordering::Relaxed);
        }
        let bytes = u64::try_from(entry.bytes()).unwrap_or_default();
        self.written.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Works on a connection, after what waits.
    fn with<'w, T, F>(
        &'w self,
        work: impl FnOnce(deadpool_postgres::Object) -> F,
    ) -> Result<T, JournalError>
    where
        F: Future<Output = Result<T, FleetError>> + 'w,
    {
        self.settle();
        self.node.database.with(work).map_err(failed)
    }
}

fn failed(error: FleetError) -> JournalError {
    JournalError::of(PLACE, error)
}

impl RunEntries for SharedJournal {
    fn write(&self, entry: RunEntry<'_>) -> Result<(), JournalError> {
        self.check_failed(&entry)?;
        self.write_now(Some(entry.into_owned())).map_err(failed)
    }

    fn write_soon(&self, entry: RunEntry<'_>) -> Result<(), JournalError> {
        self.check_failed(&entry)?;
        if self.state.queued_bytes() > MAX_QUEUED_BYTES {
            return self.write_now(Some(entry.into_owned())).map_err(failed);
        }
        let entry = entry.into_owned();
        self.state.queued(Some(&entry));
        // Without a writer the node is stopping, and the run with it.
        let _ = self.queue.send(WriteRequest { entry: Some(entry), done: None });
        Ok(())
    }

    fn flush(&self) {
        self.settle();
    }

    fn check(&self) -> Result<(), JournalError> {
        self.node.database.check_known().map_err(failed)
    }

    fn sync(&self) -> Result<(), JournalError> {
        // A transaction with a call that must not be repeated was on the disk before `write` returned.
        Ok(())
    }
}
