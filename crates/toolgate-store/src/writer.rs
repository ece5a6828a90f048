//! Log lines written aside: a server that writes without pause must not slow down the others.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::{LogSource, Store};

/// How many lines may wait to be written. The oldest are lost first, and counted: the last words of
/// a server are worth most.
const QUEUED_LINES: usize = 4096;

/// Writes to the logs of a store in a separate thread.
#[derive(Debug)]
pub struct LogWriter {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    lines: VecDeque<QueuedLine>,
    lost: u64,
    /// Whether lines have been taken that are not written yet.
    writing: bool,
    over: bool,
}

#[derive(Debug)]
struct QueuedLine {
    server: String,
    source: LogSource,
    text: String,
}

impl LogWriter {
    /// Starts the thread.
    pub fn start(store: Store) -> Self {
        let shared = Arc::new(Shared::default());
        let worker = Arc::clone(&shared);
        // If no thread can be started, log lines are lost.
        let _ = std::thread::Builder::new()
            .name("toolgate-logs".into())
            .spawn(move || worker.write(&store));
        Self { shared }
    }

    /// Takes a line without waiting.
    pub fn line(&self, server: &str, source: LogSource, line: &str) {
        let mut queue = self.shared.lock();
        if queue.lines.len() == QUEUED_LINES {
            queue.lines.pop_front();
            queue.lost += 1;
        }
        let (server, text) = (server.to_owned(), line.to_owned());
        queue.lines.push_back(QueuedLine { server, source, text });
        drop(queue);
        self.shared.changed.notify_all();
    }

    /// Waits until all queued lines are written, for `timeout` at most.
    pub fn flush(&self, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        let mut queue = self.shared.lock();
        while queue.writing || !queue.lines.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.shared.changed.wait_timeout(queue, left);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.shared.lock().over = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, store: &Store) {
        let mut queue = self.lock();
        loop {
            while queue.lines.is_empty() {
                queue.writing = false;
                self.changed.notify_all();
                if queue.over {
                    return;
                }
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            queue.writing = true;
            let (lines, lost) = (std::mem::take(&mut queue.lines), std::mem::take(&mut queue.lost));
            drop(queue);
            if lost > 0
                && let Some(first) = lines.front()
            {
                let note = format!("({lost} lines came too fast and are lost)");
                let _ = store.log(&first.server).append(LogSource::Toolgate, &note);
            }
            let lines: Vec<QueuedLine> = lines.into();
            for run in lines.chunk_by(|left, right| left.server == right.server) {
                let texts = run.iter().map(|line| (line.source, line.text.as_str()));
                store.log(&run[0].server).append_all(texts);
            }
            queue = self.lock();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    #[test]
    fn lines_are_written_in_order_and_the_last_lines_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        let writer = LogWriter::start(store.clone());
        writer.line("s", LogSource::Stderr, "first");
        writer.line("s", LogSource::Stderr, "second");
        writer.flush(LONG);
        let lines = store.log("s").tail(10).unwrap();
        assert!(lines[0].ends_with("first") && lines[1].ends_with("second"), "{lines:?}");

        for index in 0..50_000 {
            writer.line("flood", LogSource::Stderr, &format!("line {index}"));
        }
        writer.flush(LONG);
        let lines = store.log("flood").tail(100_000).unwrap();
        assert!(lines.last().unwrap().ends_with("line 49999"), "{:?}", lines.last());
    }

    #[test]
    fn the_thread_ends_with_the_writer() {
        let folder = tempfile::tempdir().unwrap();
        let writer = LogWriter::start(Store::new(folder.path()));
        let shared = Arc::downgrade(&writer.shared);
        drop(writer);
        let deadline = Instant::now() + LONG;
        while shared.strong_count() > 0 {
            assert!(Instant::now() < deadline, "it is still there");
            std::thread::yield_now();
        }
    }
}
