//! Processes of a server that are started ahead.
//!
//! Most of the time that a new connection takes is the start of the process. The handshake needs the
//! client; the process does not. A spare process has read nothing, so it is as good as a new one. It
//! is used for one connection.

use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;

use super::{
    connection::OutputSource,
    endpoint::StdioEndpoint,
    exchange::Exchange,
    process::{self, Started},
    redact::Redactor,
};

/// The spare processes of one server.
#[derive(Debug, Default)]
pub struct SpareProcesses(Mutex<SpareState>);

#[derive(Debug, Default)]
struct SpareState {
    waiting: VecDeque<SpareProcess>,
    starting: usize,
    connections: usize,
    next: u64,
}

#[derive(Debug)]
struct SpareProcess {
    number: u64,
    started: Started,
    output: Arc<SpareOutput>,
}

/// Keeps what a process writes to stderr before it has a connection.
#[derive(Default)]
struct SpareOutput(Mutex<(Vec<String>, Option<Arc<Exchange>>)>);

/// How many processes are started ahead.
const SPARES: usize = 2;
/// A server that has had fewer connections may have only one client.
const CONNECTIONS_BEFORE: usize = 2;
/// After this time an unused process ends.
const IDLE_TIMEOUT: Duration = Duration::from_mins(5);
const STOP_TIMEOUT: Duration = Duration::from_secs(2);
const KEPT_LINES: usize = 100;

impl SpareProcesses {
    /// A process that has not ended, with its output going to this exchange.
    pub(super) fn take(&self, exchange: &Arc<Exchange>) -> Option<Started> {
        loop {
            let spare = self.0.lock().waiting.pop_front()?;
            if !spare.started.process.has_exited() {
                spare.output.connect(exchange);
                return Some(spare.started);
            }
        }
    }

    /// Counts a connection. If there are several, starts processes for the next ones.
    pub(super) fn connected(self: &Arc<Self>, endpoint: &StdioEndpoint, redactor: &Redactor) {
        let missing = {
            let mut state = self.0.lock();
            state.connections += 1;
            if state.connections < CONNECTIONS_BEFORE {
                return;
            }
            state.waiting.retain(|spare| !spare.started.process.has_exited());
            let missing = SPARES.saturating_sub(state.waiting.len() + state.starting);
            state.starting += missing;
            missing
        };
        for _ in 0..missing {
            let (spares, endpoint) = (Arc::downgrade(self), endpoint.clone());
            tokio::spawn(start(spares, endpoint, redactor.clone()));
        }
    }
}

/// Starts a process, and ends it if nobody needs it.
async fn start(spares: Weak<SpareProcesses>, endpoint: StdioEndpoint, redactor: Redactor) {
    let output = Arc::<SpareOutput>::default();
    let observed = Arc::clone(&output);
    let started = process::start(&endpoint, redactor, move |line| observed.line(line)).await;
    let number = {
        let Some(spares) = spares.upgrade() else { return };
        let mut state = spares.0.lock();
        state.starting -= 1;
        // The next connection starts one itself, and reports why it fails.
        let Ok(started) = started else { return };
        state.next += 1;
        let number = state.next;
        state.waiting.push_back(SpareProcess { number, started, output });
        number
    };
    tokio::time::sleep(IDLE_TIMEOUT).await;
    let unused = spares.upgrade().and_then(|spares| {
        let mut state = spares.0.lock();
        let index = state.waiting.iter().position(|spare| spare.number == number)?;
        state.waiting.remove(index)
    });
    if let Some(SpareProcess { started: Started { process, stdin, .. }, .. }) = unused {
        process.note_descendants();
        drop(stdin);
        process.stop(STOP_TIMEOUT).await;
    }
}

impl SpareOutput {
    fn line(&self, line: &str) {
        let mut output = self.0.lock();
        let (early, exchange) = &mut *output;
        match exchange {
            Some(exchange) => exchange.handler().output(OutputSource::Stderr, line),
            None if early.len() < KEPT_LINES => early.push(line.to_owned()),
            None => {}
        }
    }

    fn connect(&self, exchange: &Arc<Exchange>) {
        let mut output = self.0.lock();
        for line in std::mem::take(&mut output.0) {
            exchange.handler().output(OutputSource::Stderr, &line);
        }
        output.1 = Some(Arc::clone(exchange));
    }
}

impl std::fmt::Debug for SpareOutput {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("SpareOutput")
    }
}
