//! A stack that is full, told apart from other crashes.

use std::sync::atomic::{AtomicUsize, Ordering};

use libc::{c_int, c_void, siginfo_t};

use super::stop::ExitReason;

/// Where the stack ends, lowest address first.
static END_FROM: AtomicUsize = AtomicUsize::new(0);
static END_TO: AtomicUsize = AtomicUsize::new(0);

/// How far beyond its end a stack is touched at most: the largest frame that there is.
const BEYOND: usize = 4 * 1024 * 1024;
/// How far before its end the kernel may refuse to let it grow: the gap that it keeps, and what
/// lies above the frame that asks.
const BEFORE: usize = 2 * 1024 * 1024;

/// From here on, a fault at the end of a stack of `bytes` ends the process with the reason.
///
/// The main thread has a stack that grows, and its limit has just been set; what was found out
/// when the process started holds no longer.
#[expect(unsafe_code, reason = "handlers can be set in no other way")]
pub(crate) fn watch(bytes: u64) {
    let here = &raw const bytes as usize;
    let end = here.saturating_sub(usize::try_from(bytes).unwrap_or(usize::MAX));
    END_FROM.store(end.saturating_sub(BEYOND), Ordering::Relaxed);
    END_TO.store(end.saturating_add(BEFORE), Ordering::Relaxed);
    // SAFETY: an all-zero `sigaction` is a valid one: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // The standard library has set up another stack for handlers.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    action.sa_sigaction =
        handle as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as libc::sighandler_t;
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        // SAFETY: the handler touches atomics, and makes system calls that handlers may make.
        unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
    }
}

#[expect(unsafe_code, reason = "where the fault is stands behind a pointer")]
extern "C" fn handle(signal: c_int, information: *mut siginfo_t, _context: *mut c_void) {
    // SAFETY: the system gives a valid pointer, and the signal is one that has an address.
    let address = unsafe { (*information).si_addr() } as usize;
    if (END_FROM.load(Ordering::Relaxed)..END_TO.load(Ordering::Relaxed)).contains(&address) {
        super::stop::leave(ExitReason::Stack);
    }
    // SAFETY: with nobody to handle it, what caused the signal causes it once more, and for good.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}
