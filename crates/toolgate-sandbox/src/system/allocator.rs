//! Memory that is not to be had, said in a way that the host understands.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicBool, Ordering},
};

use super::stop::ExitReason;

/// Whether this process is a worker.
static IN_WORKER: AtomicBool = AtomicBool::new(false);

/// An allocator for a binary that is a worker in one of its modes.
///
/// A worker runs under a limit of the system. When it is reached, Rust aborts, which is told apart
/// from no other crash. With this allocator the worker says that it was memory; everywhere else it
/// is the allocator within, with one comparison more where memory is refused.
///
/// ```
/// use toolgate_sandbox::WorkerAllocator;
///
/// #[global_allocator]
/// static ALLOCATOR: WorkerAllocator = WorkerAllocator::new();
/// ```
#[derive(Debug)]
pub struct WorkerAllocator<A = System>(A);

impl WorkerAllocator {
    /// The system's allocator, watched.
    pub const fn new() -> Self {
        Self(System)
    }
}

impl<A> WorkerAllocator<A> {
    /// Another allocator, watched.
    pub const fn around(allocator: A) -> Self {
        Self(allocator)
    }
}

impl Default for WorkerAllocator {
    fn default() -> Self {
        Self::new()
    }
}

/// From here on, memory that is refused ends the process.
pub(crate) fn watch() {
    IN_WORKER.store(true, Ordering::Relaxed);
}

fn checked(memory: *mut u8) -> *mut u8 {
    if memory.is_null() && IN_WORKER.load(Ordering::Relaxed) {
        super::stop::leave(ExitReason::Memory);
    }
    memory
}

#[expect(unsafe_code, reason = "the trait of allocators is unsafe")]
// SAFETY: hands everything to the allocator within as it came.
unsafe impl<A: GlobalAlloc> GlobalAlloc for WorkerAllocator<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise is ours.
        checked(unsafe { self.0.alloc(layout) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is ours.
        unsafe { self.0.dealloc(memory, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise is ours.
        checked(unsafe { self.0.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise is ours.
        checked(unsafe { self.0.realloc(memory, layout, size) })
    }
}
