//! The workers of one program: those that wait for a script, and the zygote that forks them.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{sync::oneshot, time::sleep};

use super::{WorkerProgram, worker::Worker, zygote::Zygote};

/// A worker that was taken is replaced after its run, because a fork takes time from the run; but after this time at the
/// latest.
const REPLACED_AFTER: Duration = Duration::from_millis(20);

/// Starts workers and keeps some waiting.
#[derive(Debug)]
pub(super) struct Spawner {
    shared: Arc<SpawnerShared>,
}

#[derive(Debug)]
pub(super) struct SpawnerShared {
    program: WorkerProgram,
    /// The number of workers that should wait.
    warm: usize,
    /// For the threads of the zygotes.
    this: Weak<Self>,
    state: Mutex<SpawnerState>,
}

#[derive(Debug, Default)]
struct SpawnerState {
    zygote: Option<Arc<Zygote>>,
    /// The runs that wait for a worker.
    orders: VecDeque<oneshot::Sender<io::Result<Worker>>>,
    /// Workers that wait for a script.
    idle: VecDeque<Worker>,
    /// The number of workers that were asked for.
    asked: usize,
    /// Whether workers are started before a run needs them.
    keeps_ahead: bool,
}

impl Spawner {
    pub(super) fn new(program: WorkerProgram, warm: usize) -> Self {
        let shared = Arc::new_cyclic(|this| SpawnerShared {
            program,
            warm,
            this: Weak::clone(this),
            state: Mutex::default(),
        });
        Self { shared }
    }

    pub(super) fn warm_up(&self) {
        let mut state = self.shared.state.lock();
        state.keeps_ahead = true;
        self.shared.order(&mut state);
        // Without a waiting worker at least the zygote is prepared.
        let _ = self.shared.zygote(&mut state);
    }

    pub(super) fn waiting(&self) -> usize {
        self.shared.state.lock().idle.len()
    }

    /// A waiting worker, or a new one.
    pub(super) async fn take(&self) -> io::Result<Worker> {
        let order = {
            let mut state = self.shared.state.lock();
            state.keeps_ahead = true;
            // A worker that died while it waited is replaced.
            let alive = std::iter::from_fn(|| state.idle.pop_front()).find(Worker::is_alive);
            if let Some(worker) = alive {
                // The next run may come at once.
                if state.idle.is_empty() && state.asked == 0 {
                    self.shared.order(&mut state);
                } else {
                    self.shared.order_later();
                }
                return Ok(worker);
            }
            let (order, worker) = oneshot::channel();
            state.orders.push_back(order);
            self.shared.order(&mut state);
            worker
        };
        order.await.map_err(|_| io::Error::other("the thread that starts workers is gone"))?
    }

    /// Later workers come from a new zygote.
    pub(super) fn retire_zygote(&self) {
        let mut state = self.shared.state.lock();
        let retired = (state.zygote.take(), std::mem::take(&mut state.idle));
        drop(state);
        drop(retired);
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.orders.clear();
        state.keeps_ahead = false;
        let (zygote, idle) = (state.zygote.take(), std::mem::take(&mut state.idle));
        drop(state);
        drop(idle);
        if let Some(zygote) = zygote {
            zygote.close();
        }
    }
}

impl SpawnerShared {
    /// Gives the worker to the run that has waited longest. Without such a run the worker waits,
    /// unless enough others do.
    pub(super) fn hand_out(&self, mut started: io::Result<Worker>) {
        let mut state = self.state.lock();
        state.asked = state.asked.saturating_sub(1);
        if let Err(error) = &started {
            tracing::warn!(%error, "cannot start a worker for scripts");
            // Try again only when a run needs a worker.
            state.keeps_ahead = false;
        }
        while let Some(order) = state.orders.pop_front() {
            match order.send(started) {
                Ok(()) => return,
                // The run has been cancelled and returns the worker.
                Err(returned) => started = returned,
            }
        }
        if let Ok(worker) = started
            && state.keeps_ahead
            && state.idle.len() < self.warm
        {
            state.idle.push_back(worker);
        }
    }

    /// A zygote has ended. Later workers come from a new one.
    pub(super) fn lost(&self, zygote: &Arc<Zygote>, why: &str) {
        let mut state = self.state.lock();
        if state.zygote.as_ref().is_some_and(|current| Arc::ptr_eq(current, zygote)) {
            state.zygote = None;
            state.idle.clear();
        }
        let asked = zygote.fail(why);
        drop(state);
        for _ in 0..asked {
            self.hand_out(Err(io::Error::other(why)));
        }
    }

    /// Asks for the workers that are missing, if the spawner is still needed.
    pub(super) fn replace(&self) {
        self.order(&mut self.state.lock());
    }

    fn order_later(&self) {
        let this = Weak::clone(&self.this);
        tokio::spawn(async move {
            sleep(REPLACED_AFTER).await;
            if let Some(this) = this.upgrade() {
                this.replace();
            }
        });
    }

    /// Asks for the workers that are missing.
    fn order(&self, state: &mut SpawnerState) {
        let ahead = if state.keeps_ahead { self.warm } else { 0 };
        let wanted = state.orders.len() + ahead;
        while state.idle.len() + state.asked < wanted {
            let asked = self.zygote(state).and_then(|zygote| zygote.fork());
            if let Err(error) = asked {
                tracing::warn!(%error, "cannot start a worker for scripts");
                state.keeps_ahead = false;
                // The last one is the one that nobody was asked for yet.
                if let Some(order) = state.orders.pop_back() {
                    // The receiver exists.
                    let _ = order.send(Err(error));
                }
                return;
            }
            state.asked += 1;
        }
    }

    /// The zygote, which is started if there is none.
    fn zygote(&self, state: &mut SpawnerState) -> io::Result<Arc<Zygote>> {
        if let Some(zygote) = &state.zygote {
            return Ok(Arc::clone(zygote));
        }
        let zygote = Zygote::start(&self.program, Weak::clone(&self.this))?;
        Ok(Arc::clone(state.zygote.insert(zygote)))
    }
}
