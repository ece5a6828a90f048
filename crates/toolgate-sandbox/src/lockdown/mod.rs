//! The lockdown: what a worker gives up before it reads a script.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;
mod report;
#[cfg(target_os = "linux")]
mod system_calls;

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[cfg(target_os = "linux")]
pub(crate) use self::linux::lock_down;
#[cfg(not(target_os = "linux"))]
pub(crate) use self::other::lock_down;
pub use self::report::{LockdownReport, Measure, MeasureKind, MeasureState};
use super::{frame::RunStart, system::stack::watch};

/// Memory that a worker needs beside the values of the script: its own data, syntax trees, results
/// that were received but not read yet.
const HEADROOM_BYTES: u64 = 96 * 1024 * 1024;
/// Stack that the worker itself needs.
const STACK_HEADROOM_BYTES: u64 = 8 * 1024 * 1024;
/// The memory limit before the limits of the script are known.
const IDLE_BYTES: u64 = 4 * 1024 * 1024 * 1024;

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
pub(crate) fn bound_run(start: &RunStart) {
    let _ = set(Resource::Data, start.memory_bytes.saturating_add(HEADROOM_BYTES));
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

fn set(resource: Resource, value: u64) -> io::Result<()> {
    let most = getrlimit(resource).maximum.map_or(value, |most| most.min(value));
    setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    Ok(())
}
