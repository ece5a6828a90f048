//! Ending a worker without losing what it has written.
//!
//! Writing every line at once would cost a system call each; keeping lines back would lose them
//! when the host ends a script that loops. So lines are kept back, and the host first *asks* the
//! worker to stop. The signal arrives in the middle of any loop, and its handler sends what is
//! pending and leaves. A worker that does not react is killed.
//!
//! The handler may touch the pending bytes only while nobody changes them. Changes are made inside
//! [`critical`]; a signal that comes in between is remembered, and acted upon at its end.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicUsize, Ordering, compiler_fence};

use libc::c_int;

/// Why a worker ended of its own accord, as its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitReason {
    /// The script is done.
    Done = 0,
    /// The host asked it to.
    Asked = 90,
    /// The system's limit of CPU time was reached.
    Cpu = 91,
    /// No memory was left.
    Memory = 92,
    /// What it must drop could not be dropped.
    Lockdown = 93,
    /// The host is gone, or talks nonsense.
    Lost = 94,
    /// The worker itself failed.
    Panicked = 95,
    /// No stack was left.
    Stack = 96,
}

impl ExitReason {
    /// The reason that an exit code stands for.
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

/// Whether the pending bytes are being changed.
static BUSY: AtomicBool = AtomicBool::new(false);
/// The reason to leave, should a signal have come meanwhile; -1 if none has.
static REQUESTED: AtomicI32 = AtomicI32::new(-1);
/// The pending bytes.
static PENDING: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static PENDING_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Changes the pending bytes, which are what `pending` is afterwards.
///
/// They must stay where they are until the next change.
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

/// Sends what is pending and ends the process, if nobody is changing it right now.
pub(crate) fn leave(reason: ExitReason) -> ! {
    if !BUSY.load(Ordering::Relaxed) {
        send_pending();
    }
    exit_now(reason as c_int)
}

/// Sends what is pending and one frame more, and ends the process.
pub(crate) fn leave_with(frame: &mut Vec<u8>, reason: ExitReason) -> ! {
    if !BUSY.load(Ordering::Relaxed) {
        send_pending();
    }
    PENDING.store(frame.as_mut_ptr(), Ordering::Relaxed);
    PENDING_BYTES.store(frame.len(), Ordering::Relaxed);
    send_pending();
    exit_now(reason as c_int)
}

/// Lets the host's request and the system's limit of CPU time end the process in good order.
#[expect(unsafe_code, reason = "handlers can be set in no other way")]
pub(crate) fn listen() {
    // SAFETY: an all-zero `sigaction` is a valid one: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handle as extern "C" fn(c_int) as libc::sighandler_t;
    for signal in [libc::SIGTERM, libc::SIGXCPU] {
        // SAFETY: the handler touches atomics, and makes system calls that handlers may make.
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

/// Sends as much as the pipe takes. The host reads meanwhile, and kills us if it takes too long.
#[expect(unsafe_code, reason = "a handler may call the system and nothing else")]
fn send_pending() {
    let mut rest = PENDING.load(Ordering::Relaxed).cast_const();
    let mut bytes = PENDING_BYTES.swap(0, Ordering::Relaxed);
    while bytes > 0 {
        // SAFETY: nobody changes the pending bytes now, so they are `bytes` many from `rest` on.
        let sent = unsafe { libc::write(0, rest.cast(), bytes) };
        match usize::try_from(sent) {
            Ok(sent) if sent > 0 => {
                let sent = sent.min(bytes);
                // SAFETY: within the pending bytes, or one past them.
                rest = unsafe { rest.add(sent) };
                bytes -= sent;
            }
            _ => {
                let mut pipe = libc::pollfd { fd: 0, events: libc::POLLOUT, revents: 0 };
                // SAFETY: one descriptor, which outlives the call.
                let ready = unsafe { libc::poll(&raw mut pipe, 1, 1_000) };
                // A host that is gone makes the pipe ready, and every write to it fail.
                if ready != 1 || pipe.revents != libc::POLLOUT {
                    return;
                }
            }
        }
    }
}

#[expect(unsafe_code, reason = "a handler must not run what is registered to run at the end")]
fn exit_now(code: c_int) -> ! {
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
