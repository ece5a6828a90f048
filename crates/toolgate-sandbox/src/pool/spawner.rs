//! The threads that start workers and reap them.
//!
//! Starting a process and waiting for its end block, and Linux sends the parent-death signal when
//! the *thread* that started the child ends. So both happen in threads that live as long as the
//! pool and its workers.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::{
    PoolSettings,
    worker::{ReapRequest, Worker},
};

/// Starts workers and keeps some waiting.
#[derive(Debug)]
pub(super) struct Spawner {
    shared: Arc<SpawnerShared>,
}

#[derive(Debug)]
struct SpawnerShared {
    state: Mutex<SpawnerState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct SpawnerState {
    /// The runs that wait for a worker.
    orders: VecDeque<oneshot::Sender<io::Result<Worker>>>,
    /// Workers that wait for a script.
    idle: VecDeque<Worker>,
    /// When a worker was taken last.
    taken: Option<Instant>,
    /// The number of workers that should wait.
    wanted: usize,
    /// Whether the pool has been dropped.
    closed: bool,
}

/// Why no worker is started right now.
enum Pause {
    /// Enough workers wait.
    UntilWanted,
    /// A worker still waits, and the script that has taken another one gets the processor first.
    Until(Instant),
}

impl SpawnerState {
    fn pause(&self, warm: usize) -> Option<Pause> {
        if self.closed || !self.orders.is_empty() {
            return None;
        }
        if self.idle.len() >= self.wanted.min(warm) {
            return Some(Pause::UntilWanted);
        }
        let rested = self.taken? + REST;
        (!self.idle.is_empty() && Instant::now() < rested).then_some(Pause::Until(rested))
    }
}

/// The delay of a replacement while another worker still waits.
const REST: Duration = Duration::from_millis(20);

impl Spawner {
    pub(super) fn new(settings: PoolSettings) -> io::Result<Self> {
        let shared = Arc::new(SpawnerShared { state: Mutex::default(), changed: Condvar::new() });
        let (reaper, requests) = mpsc::channel::<ReapRequest>();
        thread::Builder::new().name("toolgate-reaper".into()).spawn(move || reap(&requests))?;
        let spawner = Self { shared: Arc::clone(&shared) };
        thread::Builder::new()
            .name("toolgate-spawner".into())
            .spawn(move || shared.start_workers(&settings, &reaper))?;
        Ok(spawner)
    }

    pub(super) fn warm_up(&self) {
        self.shared.state.lock().wanted = usize::MAX;
        self.shared.changed.notify_one();
    }

    pub(super) fn waiting(&self) -> usize {
        self.shared.state.lock().idle.len()
    }

    /// A waiting worker, or a new one.
    pub(super) async fn take(&self) -> io::Result<Worker> {
        let order = {
            let mut state = self.shared.state.lock();
            state.wanted = usize::MAX;
            state.taken = Some(Instant::now());
            while let Some(mut worker) = state.idle.pop_front() {
                // A worker that died while it waited is replaced.
                if worker.is_alive() {
                    drop(state);
                    self.shared.changed.notify_one();
                    return Ok(worker);
                }
            }
            let (order, worker) = oneshot::channel();
            state.orders.push_back(order);
            worker
        };
        self.shared.changed.notify_one();
        order.await.map_err(|_| io::Error::other("the thread that starts workers is gone"))?
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.closed = true;
        state.orders.clear();
        let idle = std::mem::take(&mut state.idle);
        drop(state);
        drop(idle);
        self.shared.changed.notify_one();
    }
}

impl SpawnerShared {
    fn start_workers(&self, settings: &PoolSettings, reaper: &mpsc::Sender<ReapRequest>) {
        loop {
            let mut state = self.state.lock();
            while let Some(pause) = state.pause(settings.warm) {
                match pause {
                    Pause::Until(moment) => {
                        self.changed.wait_until(&mut state, moment);
                    }
                    Pause::UntilWanted => self.changed.wait(&mut state),
                }
            }
            if state.closed {
                return;
            }
            drop(state);
            let started = Worker::spawn(settings, reaper.clone());
            self.hand_out(started, settings.warm);
        }
    }

    /// Gives the worker to the run that has waited longest. Without such a run the worker waits,
    /// unless enough others do.
    fn hand_out(&self, started: io::Result<Worker>, warm: usize) {
        let mut state = self.state.lock();
        let mut result = match started {
            Ok(worker) => Ok(worker),
            Err(error) => {
                tracing::warn!(%error, "cannot start a worker for scripts");
                // Try again only when a run needs a worker.
                state.wanted = 0;
                Err(error)
            }
        };
        while let Some(order) = state.orders.pop_front() {
            // The run has been cancelled and returns the worker.
            match order.send(result) {
                Ok(()) => return,
                Err(returned) => result = returned,
            }
        }
        if let Ok(worker) = result
            && !state.closed
            && state.idle.len() < warm
        {
            state.idle.push_back(worker);
        }
    }
}

/// Waits for the exit of processes that were killed.
fn reap(requests: &mpsc::Receiver<ReapRequest>) {
    for (mut child, answer) in requests {
        if let Ok(status) = child.wait()
            && let Some(answer) = answer
        {
            // The receiver may be gone.
            let _ = answer.send(status);
        }
    }
}
