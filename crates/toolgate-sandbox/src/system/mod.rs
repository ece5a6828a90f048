//! Calls to the operating system for which there is no safe crate.
//!
//! These files contain all unsafe code of this crate.

pub(crate) mod allocator;
pub(crate) mod clock;
pub(crate) mod descriptors;
pub(crate) mod stack;
pub(crate) mod stop;
