//! The threads that start workers and see them off.
//!
//! Starting a process and waiting for its end block, and Linux sends the parent-death signal when
//! the *thread* that started the child ends. So both are done by threads that live as long as the
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

/// Where workers come from.
#[derive(Debug)]
pub(super) struct Spawner {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Those who wait for a worker.
    orders: VecDeque<oneshot::Sender<io::Result<Worker>>>,
    /// Workers that wait for a script.
    idle: VecDeque<Worker>,
    /// When one was taken last.
    taken: Option<Instant>,
    /// How many there should be of them.
    wanted: usize,
    /// The pool is gone.
    closed: bool,
}

/// Why no worker is started right now.
enum Pause {
    /// Enough wait.
    UntilWanted,
    /// One still waits, and the script that took another is to have the processor first.
    Until(Instant),
}

impl State {
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

/// How long the start of a replacement waits, where another worker still does.
const REST: Duration = Duration::from_millis(20);

impl Spawner {
    pub(super) fn new(settings: PoolSettings) -> io::Result<Self> {
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new() });
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

    /// A worker that waits, or a new one.
    pub(super) async fn take(&self) -> io::Result<Worker> {
        let order = {
            let mut state = self.shared.state.lock();
            state.wanted = usize::MAX;
            state.taken = Some(Instant::now());
            while let Some(mut worker) = state.idle.pop_front() {
                // One that died while it waited is replaced.
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

impl Shared {
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

    /// To whoever waits for it longest; else it waits itself, unless enough do.
    fn hand_out(&self, started: io::Result<Worker>, warm: usize) {
        let mut state = self.state.lock();
        let mut result = match started {
            Ok(worker) => Ok(worker),
            Err(error) => {
                tracing::warn!(%error, "cannot start a worker for scripts");
                // Not again until somebody wants one.
                state.wanted = 0;
                Err(error)
            }
        };
        while let Some(order) = state.orders.pop_front() {
            // Whoever does not wait any more gives it back.
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

/// Waits for the end of processes that were killed.
fn reap(requests: &mpsc::Receiver<ReapRequest>) {
    for (mut child, answer) in requests {
        if let Ok(status) = child.wait()
            && let Some(answer) = answer
        {
            // Nobody may want to know any more.
            let _ = answer.send(status);
        }
    }
}
