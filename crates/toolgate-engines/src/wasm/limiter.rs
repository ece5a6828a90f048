//! How much memory a component may use.

use wasmtime::ResourceLimiter;

use super::host::HostEnd;

/// Memory that a component may have when it starts.
const START_BYTES: u64 = 512 * 1024 * 1024;
/// The largest table, in elements.
const TABLE_ELEMENTS: usize = 1_000_000;

/// Counts the memory of all linear memories together.
#[derive(Debug)]
pub(super) struct MemoryLimiter {
    used: u64,
    limit: u64,
}

impl Default for MemoryLimiter {
    fn default() -> Self {
        Self { used: 0, limit: START_BYTES }
    }
}

impl MemoryLimiter {
    /// From now on, so many more bytes may be used: those of the language itself do not count.
    pub(super) fn allow(&mut self, bytes: u64) {
        self.limit = self.used.saturating_add(bytes);
    }
}

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let more = u64::try_from(desired.saturating_sub(current)).unwrap_or(u64::MAX);
        let used = self.used.saturating_add(more);
        if used > self.limit {
            // Most languages cannot go on without memory, and some do not even notice.
            return Err(HostEnd::Memory.into());
        }
        self.used = used;
        Ok(true)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= TABLE_ELEMENTS)
    }
}
