//! Closes inherited descriptors.

use std::{io, os::fd::OwnedFd};

/// Makes a descriptor the first one, 0.
pub(crate) fn replace_first(descriptor: OwnedFd) -> io::Result<()> {
    Ok(rustix::stdio::dup2_stdin(descriptor)?)
}

/// Closes every descriptor but the first one.
pub(crate) fn close_all_but_the_first() {
    #[cfg(target_os = "linux")]
    if close_range(1, libc::c_uint::MAX).is_ok() {
        return;
    }
    // Older kernels and other systems: close all possible descriptors, within reason.
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let most = most.unwrap_or(u64::MAX).min(65_536);
    for descriptor in 1..i32::try_from(most).unwrap_or(i32::MAX) {
        close(descriptor);
    }
}

/// Closes every descriptor.
#[cfg(target_os = "linux")]
pub(crate) fn close_all() {
    close(0);
    close_all_but_the_first();
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "there is no safe way to close what others own")]
fn close_range(first: libc::c_uint, last: libc::c_uint) -> io::Result<()> {
    // SAFETY: takes three integers. At this time nothing in a worker owns a descriptor except the
    // standard streams, which ignore errors.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[expect(unsafe_code, reason = "there is no safe way to close what others own")]
fn close(descriptor: libc::c_int) {
    // SAFETY: as above. Closing a number that is no descriptor does no harm.
    let _ = unsafe { libc::close(descriptor) };
}
