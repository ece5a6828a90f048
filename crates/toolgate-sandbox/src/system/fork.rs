//! Copies this process.

use std::io;

use rustix::process::Pid;

/// Which of the two processes this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forked {
    /// The new process.
    Child,
    /// The process that called, with the id of the new one.
    Parent(Pid),
}

/// Copies this process, which must have one thread only.
#[expect(unsafe_code, reason = "no safe crate can promise that there is one thread")]
pub(crate) fn fork() -> io::Result<Forked> {
    // SAFETY: a zygote starts no thread, so no other thread can hold a lock that the copy needs.
    let process = unsafe { libc::fork() };
    if process < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Pid::from_raw(process).map_or(Forked::Child, Forked::Parent))
}

/// Moves this process, or its later children, to new namespaces.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the call could also take descriptors from other threads")]
pub(crate) fn unshare(namespaces: rustix::thread::UnshareFlags) -> io::Result<()> {
    // SAFETY: namespaces only, and there is one thread.
    Ok(unsafe { rustix::thread::unshare_unsafe(namespaces) }?)
}
