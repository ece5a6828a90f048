//! What the operating system has to be asked for and no safe crate asks for.
//!
//! Together with nothing else in this crate, these files hold unsafe code.

pub(crate) mod allocator;
pub(crate) mod clock;
pub(crate) mod descriptors;
pub(crate) mod stack;
pub(crate) mod stop;
