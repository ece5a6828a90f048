//! Calls to the operating system, most of which have no safe crate.
//!
//! These files contain all unsafe code of this crate.

pub(crate) mod allocator;
pub(crate) mod clock;
pub(crate) mod descriptors;
pub(crate) mod fork;
#[cfg(feature = "engine-wasm")]
pub(crate) mod machine_code;
pub(crate) mod page_tables;
pub(crate) mod process;
pub(crate) mod stack;
pub(crate) mod stop;
