//! How much memory the allocator of the system keeps.
//!
//! The one of glibc has a pool for every few threads, and keeps what was freed between other things. Reading the
//! definitions of all servers would leave several times as much memory behind as they take.

/// Limits the number of pools to that of the cores. Must be called before threads are started.
pub(crate) fn limit_pools() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        let cores = std::thread::available_parallelism().map_or(2, usize::from).max(2);
        let pools = libc::c_int::try_from(cores).unwrap_or(libc::c_int::MAX);
        // SAFETY: it sets a number of the allocator, and takes no pointers.
        #[expect(unsafe_code, reason = "the allocator has no other way to be told")]
        let _ = unsafe { libc::mallopt(libc::M_ARENA_MAX, pools) };
    }
}

/// Gives the system what was freed. Takes a few milliseconds.
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: it concerns only memory that is not in use, and takes no pointers.
        #[expect(unsafe_code, reason = "the allocator has no other way to be told")]
        let _ = unsafe { libc::malloc_trim(0) };
    }
}
