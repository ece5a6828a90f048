//! A process group: whatever a child has started, under one number.

use parking_lot::Mutex;

use crate::watchdog::Watchdog;

/// A group that a child of ours leads. Dropping it kills what is left of it.
///
/// Numbers are used again. The group's is ours only until the child is waited for, so that
/// [`end`](Self::end) must come first, and nothing is signalled after it.
#[derive(Debug)]
pub(super) struct Group {
    number: u32,
    watchdog: Watchdog,
    life: Mutex<Life>,
}

#[derive(Debug, PartialEq, Eq)]
enum Life {
    Running,
    Over,
}

impl Group {
    /// The group of the child `number`, which leads it.
    pub(super) fn new(number: u32, watchdog: &Watchdog) -> Self {
        watchdog.watch(number);
        Self { number, watchdog: watchdog.clone(), life: Mutex::new(Life::Running) }
    }

    /// Asks its processes to leave.
    pub(super) fn terminate(&self) {
        // Held during the signal: `end` must not come in between.
        let life = self.life.lock();
        if *life == Life::Running {
            signal(self.number, Signal::Terminate);
        }
    }

    /// Kills its processes.
    pub(super) fn end(&self) {
        let mut life = self.life.lock();
        if *life == Life::Running {
            signal(self.number, Signal::Kill);
            self.watchdog.release(self.number);
            *life = Life::Over;
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

#[derive(Clone, Copy)]
enum Signal {
    Terminate,
    Kill,
}

#[cfg(unix)]
fn signal(group: u32, signal: Signal) {
    use rustix::process::{Pid, kill_process_group};

    let signal = match signal {
        Signal::Terminate => rustix::process::Signal::TERM,
        Signal::Kill => rustix::process::Signal::KILL,
    };
    if let Some(group) = i32::try_from(group).ok().and_then(Pid::from_raw) {
        // A group that is gone already is what we want.
        let _ = kill_process_group(group, signal);
    }
}

#[cfg(not(unix))]
fn signal(_group: u32, _signal: Signal) {}
