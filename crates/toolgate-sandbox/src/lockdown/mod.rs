//! What a worker gives up before it reads a script.

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

/// What a worker needs beside the script's values: its own data, the parsers' trees, results that
/// came and were not read yet.
const HEADROOM_BYTES: u64 = 96 * 1024 * 1024;
/// Stack that is not the script's.
const STACK_HEADROOM_BYTES: u64 = 8 * 1024 * 1024;
/// Until a script says how much it may have.
const IDLE_BYTES: u64 = 4 * 1024 * 1024 * 1024;

/// What holds for every worker from its start.
fn bound_worker() -> io::Result<String> {
    // The pipe is descriptor 0, and there is to be no other.
    set(Resource::Nofile, 1)?;
    set(Resource::Fsize, 0)?;
    set(Resource::Core, 0)?;
    set(Resource::Data, IDLE_BYTES)?;
    // Root is exempt from this one; seccomp is not.
    let _ = set(Resource::Nproc, 0);
    #[cfg(target_os = "linux")]
    {
        set(Resource::Memlock, 0)?;
        set(Resource::Msgqueue, 0)?;
    }
    Ok(String::from("files, processes, memory, CPU"))
}

/// What holds for one script. A limit only ever gets narrower.
///
/// It is a second line: memory is counted by the engine and time by the host, both more exactly.
/// So it is no reason not to run the script if the system refuses.
pub(crate) fn bound_run(start: &RunStart) {
    let _ = set(Resource::Data, start.memory_bytes.saturating_add(HEADROOM_BYTES));
    let stack = start.stack_bytes.saturating_add(STACK_HEADROOM_BYTES);
    let most = getrlimit(Resource::Stack).maximum;
    let current = most.map_or(stack, |most| most.min(stack));
    let _ = setrlimit(Resource::Stack, Rlimit { current: Some(current), maximum: most });
    watch(current);
    // The first signal is caught, so that output survives; the second is not to be caught.
    let seconds = start.cpu_seconds;
    let cpu = Rlimit { current: Some(seconds), maximum: Some(seconds.saturating_add(1)) };
    let _ = setrlimit(Resource::Cpu, cpu);
}

fn set(resource: Resource, value: u64) -> io::Result<()> {
    let most = getrlimit(resource).maximum.map_or(value, |most| most.min(value));
    setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    Ok(())
}
