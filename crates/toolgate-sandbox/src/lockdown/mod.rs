//! The lockdown: what a worker gives up before it reads a script.
//!
//! The zygote gives up what its workers inherit. Each worker gives up the rest: what the zygote needs
//! to fork and to talk to the pool.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(not(target_os = "linux"))]
mod other;
mod report;
#[cfg(target_os = "linux")]
mod system_calls;

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;

#[cfg(not(target_os = "linux"))]
pub(crate) use self::other::{LockedZygote, interpreter_lock, lock_worker, lock_zygote};
pub use self::report::{LockdownReport, Measure, MeasureKind, MeasureState};
#[cfg(target_os = "linux")]
pub(crate) use self::{
    linux::{LockedZygote, lock_worker, lock_zygote},
    system_calls::interpreter_lock,
};
use super::{frame::RunBounds, system::stack::watch};

/// Memory that a worker needs beside the values of the script: its own data and syntax trees.
const HEADROOM_BYTES: u64 = 96 * 1024 * 1024;
/// While a result becomes a value, it exists several times: as bytes, as text and as a tree. This is
/// the memory for it, as a multiple of the largest result.
const HEADROOM_FOR_RESULTS: u64 = 12;
/// Stack that the worker itself needs.
const STACK_HEADROOM_BYTES: u64 = 8 * 1024 * 1024;
/// The memory limit before the limits of the script are known.
const IDLE_BYTES: u64 = 4 * 1024 * 1024 * 1024;

/// CPU time for the start of a component.
#[cfg(feature = "engine-wasm")]
const START_CPU_SECONDS: u64 = 10;

/// What Python's own interpreter needs to give up the same as the other workers.
#[derive(Debug, Serialize)]
pub(crate) struct InterpreterLock {
    /// The filter of system calls that its zygote installs and its workers inherit, as the system
    /// takes it, in hexadecimal digits.
    pub(crate) zygote_filter: String,
    /// The filter that a worker adds.
    pub(crate) worker_filter: String,
    /// The number of system calls that a worker may make.
    pub(crate) allowed: usize,
    /// The number of a system call for which the interpreter has no function.
    pub(crate) pivot_root: i64,
}

/// Sets the limits that hold for every worker from its start.
fn bound_worker() -> io::Result<String> {
    // The pipe is descriptor 0, and no other may be opened.
    set(Resource::Nofile, 1)?;
    set(Resource::Fsize, 0)?;
    set(Resource::Core, 0)?;
    set(Resource::Data, IDLE_BYTES)?;
    // This limit does not apply to root, but seccomp does.
    let _ = set(Resource::Nproc, 0);
    #[cfg(target_os = "linux")]
    {
        set(Resource::Memlock, 0)?;
        set(Resource::Msgqueue, 0)?;
    }
    Ok(String::from("files, processes, memory, CPU"))
}

/// Sets the limits for one script. Limits can only become narrower.
///
/// They are a second line of defence: the engine counts memory and the host counts time, both more
/// exactly. So the script runs even if the system refuses them.
pub(crate) fn bound_run(start: &RunBounds) {
    let results = start.value_bytes.saturating_mul(HEADROOM_FOR_RESULTS);
    let headroom = results.saturating_add(HEADROOM_BYTES);
    let _ = set(Resource::Data, start.memory_bytes.saturating_add(headroom));
    let stack = start.stack_bytes.saturating_add(STACK_HEADROOM_BYTES);
    let most = getrlimit(Resource::Stack).maximum;
    let current = most.map_or(stack, |most| most.min(stack));
    let _ = setrlimit(Resource::Stack, Rlimit { current: Some(current), maximum: most });
    watch(current);
    // The first signal is caught, so that output is not lost. The second one cannot be caught.
    let seconds = start.cpu_seconds;
    let cpu = Rlimit { current: Some(seconds), maximum: Some(seconds.saturating_add(1)) };
    let _ = setrlimit(Resource::Cpu, cpu);
}

/// Runs the start of a component, whose code may take so much CPU time and no more.
#[cfg(feature = "engine-wasm")]
pub(crate) fn bound_start<T>(start: impl FnOnce() -> T) -> T {
    let before = getrlimit(Resource::Cpu);
    let least = |most: u64| most.min(START_CPU_SECONDS);
    let current = Some(before.maximum.map_or(START_CPU_SECONDS, least));
    let _ = setrlimit(Resource::Cpu, Rlimit { current, maximum: before.maximum });
    let started = start();
    let _ = setrlimit(Resource::Cpu, before);
    started
}

fn set(resource: Resource, value: u64) -> io::Result<()> {
    let most = getrlimit(resource).maximum.map_or(value, |most| most.min(value));
    setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    Ok(())
}
