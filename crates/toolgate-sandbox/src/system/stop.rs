//! Ends a worker without losing its output.
//!
//! Sending every line at once would cost a system call each, and buffered lines would be lost when
//! the host kills a script that loops. So lines are buffered, and the host first *asks* the worker
//! to stop. The signal interrupts any loop; its handler sends the buffer and exits. A worker that
//! does not react is killed.
//!
//! The handler may read the buffer only while nothing changes it. Changes happen inside
//! [`critical`], which handles a signal that arrives meanwhile at its end.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicUsize, Ordering, compiler_fence};

use libc::c_int;

/// Why a worker exited by itself, as its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitReason {
    /// The script is done.
    Done = 0,
    /// The host asked the worker to stop.
    Asked = 90,
    /// The worker reached the CPU limit of the system.
    Cpu = 91,
    /// Memory ran out.
    Memory = 92,
    /// A required measure of the lockdown failed.
    Lockdown = 93,
    /// The host is gone, or sent an invalid frame.
    Lost = 94,
    /// The worker itself failed.
    Panicked = 95,
    /// The stack ran out.
    Stack = 96,
}

impl ExitReason {
    /// The reason for an exit code.
    pub(crate) fn of_code(code: i32) -> Option<Self> {
        [
            Self::Done,
            Self::Asked,
            Self::Cpu,
            Self::Memory,
            Self::Lockdown,
            Self::Lost,
            Self::Panicked,
            Self::Stack,
        ]
        .into_iter()
        .find(|reason| *reason as i32 == code)
    }
}

/// Whether the buffer is being changed.
static BUSY: AtomicBool = AtomicBool::new(false);
/// The reason of a signal that arrived during a change; -1 if there was none.
static REQUESTED: AtomicI32 = AtomicI32::new(-1);
/// The buffer.
static PENDING: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static PENDING_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Changes the buffer, which is `pending` afterwards.
///
/// The buffer must not move until the next change.
pub(crate) fn critical<T>(pending: &mut Vec<u8>, change: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    BUSY.store(true, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    let result = change(pending);
    PENDING.store(pending.as_mut_ptr(), Ordering::Relaxed);
    PENDING_BYTES.store(pending.len(), Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    BUSY.store(false, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    let requested = REQUESTED.load(Ordering::Relaxed);
    if requested >= 0 {
        send_pending();
        exit_now(requested);
    }
    result
}

/// Sends the buffer, unless it is being changed, and ends the process.
pub(crate) fn leave(reason: ExitReason) -> ! {
    if !BUSY.load(Ordering::Relaxed) {
        send_pending();
    }
    exit_now(reason as c_int)
}

/// Sends the buffer and one more frame, and ends the process.
pub(crate) fn leave_with(frame: &mut Vec<u8>, reason: ExitReason) -> ! {
    if !BUSY.load(Ordering::Relaxed) {
        send_pending();
    }
    PENDING.store(frame.as_mut_ptr(), Ordering::Relaxed);
    PENDING_BYTES.store(frame.len(), Ordering::Relaxed);
    send_pending();
    exit_now(reason as c_int)
}

/// Ends this process in the way in which another one has ended.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no safe crate sends a signal to this process")]
pub(crate) fn exit_as(status: rustix::process::WaitStatus) -> ! {
    if let Some(signal) = status.terminating_signal() {
        // SAFETY: ends this process, unless the signal is ignored by default.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
    }
    exit_now(status.exit_status().unwrap_or(1))
}

/// Installs the handlers for the host's request to stop and for the CPU limit of the system.
#[expect(unsafe_code, reason = "handlers can be set in no other way")]
pub(crate) fn listen() {
    // SAFETY: an all-zero `sigaction` is a valid one: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handle as extern "C" fn(c_int) as libc::sighandler_t;
    for signal in [libc::SIGTERM, libc::SIGXCPU] {
        // SAFETY: the handler uses only atomics and async-signal-safe system calls.
        unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
    }
}

extern "C" fn handle(signal: c_int) {
    let reason =
        if signal == libc::SIGXCPU { ExitReason::Cpu as c_int } else { ExitReason::Asked as c_int };
    if BUSY.load(Ordering::Relaxed) {
        REQUESTED.store(reason, Ordering::Relaxed);
        return;
    }
    send_pending();
    exit_now(reason);
}

/// Sends as much as the pipe accepts. The host reads meanwhile, and kills this process if it takes
/// too long.
#[expect(unsafe_code, reason = "a handler may call the system and nothing else")]
fn send_pending() {
    let mut rest = PENDING.load(Ordering::Relaxed).cast_const();
    let mut bytes = PENDING_BYTES.swap(0, Ordering::Relaxed);
    while bytes > 0 {
        // SAFETY: nothing changes the buffer now, so `bytes` bytes start at `rest`.
        let sent = unsafe { libc::write(0, rest.cast(), bytes) };
        match usize::try_from(sent) {
            Ok(sent) if sent > 0 => {
                let sent = sent.min(bytes);
                // SAFETY: inside the buffer, or one past its end.
                rest = unsafe { rest.add(sent) };
                bytes -= sent;
            }
            _ => {
                let mut pipe = libc::pollfd { fd: 0, events: libc::POLLOUT, revents: 0 };
                // SAFETY: one descriptor, which outlives the call.
                let ready = unsafe { libc::poll(&raw mut pipe, 1, 1_000) };
                // If the host is gone, the pipe is ready and every write fails.
                if ready != 1 || pipe.revents != libc::POLLOUT {
                    return;
                }
            }
        }
    }
}

/// Ends this process, and nothing else: nothing is sent, written or released.
#[expect(unsafe_code, reason = "a handler must not run what is registered to run at the end")]
pub(crate) fn exit_now(code: c_int) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(code) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_come_back_as_reasons() {
        for reason in [ExitReason::Done, ExitReason::Cpu, ExitReason::Memory, ExitReason::Lost] {
            assert_eq!(ExitReason::of_code(reason as i32), Some(reason));
        }
        assert_eq!(ExitReason::of_code(1), None);
    }
}
