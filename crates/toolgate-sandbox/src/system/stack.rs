//! Detects stack overflows and reports them to the host.

use std::sync::atomic::{AtomicUsize, Ordering};

use libc::{c_int, c_void, siginfo_t};

use super::stop::ExitReason;

/// The range of addresses at the end of the stack, lowest first.
static END_FROM: AtomicUsize = AtomicUsize::new(0);
static END_TO: AtomicUsize = AtomicUsize::new(0);

/// How far beyond its end a stack can be accessed: the size of the largest stack frame.
const BEYOND: usize = 4 * 1024 * 1024;
/// How far before its end the kernel may refuse to grow the stack: the guard gap, and what lies
/// above the accessing frame.
const BEFORE: usize = 2 * 1024 * 1024;

/// From now on a fault at the end of a stack of `bytes` ends the process with
/// [`ExitReason::Stack`].
///
/// The stack of the main thread grows, and its limit has just been set, so what the standard
/// library found out at the start of the process no longer holds.
#[expect(unsafe_code, reason = "handlers can be set in no other way")]
pub(crate) fn watch(bytes: u64) {
    let here = &raw const bytes as usize;
    let end = here.saturating_sub(usize::try_from(bytes).unwrap_or(usize::MAX));
    END_FROM.store(end.saturating_sub(BEYOND), Ordering::Relaxed);
    END_TO.store(end.saturating_add(BEFORE), Ordering::Relaxed);
    // SAFETY: an all-zero `sigaction` is a valid one: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // The standard library has set up an alternate stack for handlers.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    action.sa_sigaction =
        handle as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as libc::sighandler_t;
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        // SAFETY: the handler uses only atomics and async-signal-safe system calls.
        unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
    }
}

#[expect(unsafe_code, reason = "where the fault is stands behind a pointer")]
extern "C" fn handle(signal: c_int, information: *mut siginfo_t, _context: *mut c_void) {
    // SAFETY: the system passes a valid pointer, and these signals have an address.
    let address = unsafe { (*information).si_addr() } as usize;
    if (END_FROM.load(Ordering::Relaxed)..END_TO.load(Ordering::Relaxed)).contains(&address) {
        super::stop::leave(ExitReason::Stack);
    }
    // SAFETY: without a handler, the same access faults again and ends the process.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}
