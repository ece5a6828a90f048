//! Reports failed allocations to the host.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicBool, Ordering},
};

use super::stop::ExitReason;

/// Whether this process is a worker.
static IN_WORKER: AtomicBool = AtomicBool::new(false);

/// The allocator for a binary that can be a worker.
///
/// A worker has a memory limit from the system. Without this allocator, reaching the limit aborts
/// the process like any other crash. With it, the exit code of the worker says that memory ran out.
/// Outside of a worker it costs one comparison for each failed allocation.
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
    /// Wraps the system allocator.
    pub const fn new() -> Self {
        Self(System)
    }
}

impl<A> WorkerAllocator<A> {
    /// Wraps another allocator.
    pub const fn around(allocator: A) -> Self {
        Self(allocator)
    }
}

impl Default for WorkerAllocator {
    fn default() -> Self {
        Self::new()
    }
}

/// From now on a failed allocation ends the process.
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
// SAFETY: passes every call unchanged to the inner allocator.
unsafe impl<A: GlobalAlloc> GlobalAlloc for WorkerAllocator<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller guarantees the requirements of the inner call.
        checked(unsafe { self.0.alloc(layout) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller guarantees the requirements of the inner call.
        unsafe { self.0.dealloc(memory, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller guarantees the requirements of the inner call.
        checked(unsafe { self.0.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller guarantees the requirements of the inner call.
        checked(unsafe { self.0.realloc(memory, layout, size) })
    }
}
