//! Machine code that was compiled earlier.

use toolgate_engines::wasm::{ComponentError, LoadedComponent};

/// Loads what [`crate::compile_component`] returned. The caller has compared its hash.
#[expect(unsafe_code, reason = "machine code can be loaded in no other way")]
pub(crate) fn load(compiled: &[u8]) -> Result<LoadedComponent, ComponentError> {
    // SAFETY: the bytes have the hash of what the compiler returned.
    unsafe { LoadedComponent::load(compiled) }
}
