//! Entries that wait for a moment, so that many of them are written in one transaction.
//!
//! Only entries may wait here whose loss does no harm: a resumed run makes such calls again.
//! Everything else that uses the journal writes the waiting entries first. So entries keep their
//! order, and nothing that has an effect is on the disk without what came before it. The thread that
//! writes them also syncs the log of the database, so that no call waits for that.

use std::{
    collections::HashMap,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use super::{JournalFiles, entries::RunEntry};

/// How long entries wait for others.
const DELAY: Duration = Duration::from_millis(20);
/// The most bytes that wait.
const MAX_BYTES: usize = 1 << 20;
/// The most entries that wait.
const MAX_ENTRIES: usize = 1_024;
/// The most runs of which it is remembered that their entries could not be written.
const MAX_FAILED: usize = 1_024;

/// The entries that wait.
#[derive(Debug, Default)]
pub(super) struct DeferredEntries {
    state: Mutex<DeferredState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct DeferredState {
    entries: Vec<RunEntry<'static>>,
    bytes: usize,
    /// Whether the log of the database is to be synced.
    unsynced: bool,
    /// Runs whose entries could not be written, and why.
    failed: HashMap<String, String>,
    /// The thread that writes.
    writer: Option<JoinHandle<()>>,
    /// Whether nobody uses the journal any more.
    over: bool,
}

impl DeferredEntries {
    /// Adds an entry. Returns whether the entries should be written now.
    pub(super) fn push(&self, mut entry: RunEntry<'static>) -> bool {
        let mut state = self.lock();
        state.bytes += entry.bytes();
        if entry.is_answer() {
            // The call is among the last ones, or is not here.
            let _ = state.entries.iter_mut().rev().any(|call| entry.join(call));
        }
        state.entries.push(entry);
        if state.entries.len() == 1 {
            self.changed.notify_all();
        }
        state.bytes > MAX_BYTES || state.entries.len() > MAX_ENTRIES || state.writer.is_none()
    }

    pub(super) fn take(&self) -> Vec<RunEntry<'static>> {
        let mut state = self.lock();
        state.bytes = 0;
        std::mem::take(&mut state.entries)
    }

    /// Has the log of the database synced some milliseconds later.
    pub(super) fn sync_soon(&self) {
        self.lock().unsynced = true;
        self.changed.notify_all();
    }

    /// Remembers that entries of a run could not be written.
    pub(super) fn failed(&self, run: &str, why: &str) {
        let mut state = self.lock();
        if state.failed.len() < MAX_FAILED {
            state.failed.insert(run.to_owned(), why.to_owned());
        }
    }

    /// Why an earlier entry of the run could not be written.
    pub(super) fn failure(&self, run: &str) -> Option<String> {
        let state = self.lock();
        if state.failed.is_empty() { None } else { state.failed.get(run).cloned() }
    }

    /// Forgets the failure of a run that is over.
    pub(super) fn forget(&self, run: &str) {
        self.lock().failed.remove(run);
    }

    /// Starts the thread that writes, unless it runs. Without it, entries are written at once.
    pub(super) fn start_writer(&self, files: &Arc<JournalFiles>) {
        let mut state = self.lock();
        if state.writer.is_some() {
            return;
        }
        let files = Arc::clone(files);
        let writer = std::thread::Builder::new().name("journal".to_owned());
        state.writer = writer.spawn(move || files.deferred.write_until_over(&files)).ok();
    }

    /// Ends the thread, which holds the files open.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.over = true;
        let writer = state.writer.take();
        drop(state);
        self.changed.notify_all();
        if let Some(writer) = writer {
            // It panics nowhere.
            let _ = writer.join();
        }
    }

    fn write_until_over(&self, files: &JournalFiles) {
        loop {
            let mut state = self.lock();
            while state.entries.is_empty() && !state.unsynced {
                if state.over {
                    return;
                }
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            // With entries of this moment they become one transaction.
            drop(self.changed.wait_timeout_while(state, DELAY, |state| !state.over));
            files.write_deferred(&mut files.connection.lock());
            if std::mem::take(&mut self.lock().unsynced) {
                // If this fails, a power cut may lose rows, but nothing of the list of sent calls.
                let _ = files.sync_log();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, DeferredState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
