//! What host and worker say to each other.
//!
//! A frame is a length (four bytes, little endian), a byte that says its kind, and a body. What is
//! said often (calls, completions, output) has a body of plain parts, so that a large result is
//! copied and not parsed; what is said once a run is JSON.
//!
//! The host believes nothing of what a worker says. Decoding allocates in proportion to the bytes
//! that came, never to a length that was claimed, and whatever is not exactly a frame is an error.

mod decoder;
mod from_worker;
mod parts;
#[cfg(test)]
mod tests;
mod to_worker;

pub use self::{
    decoder::Decoder,
    from_worker::{Done, FromWorker, Wait},
    parts::FrameError,
    to_worker::{RunStart, TimedCompletion, ToWorker},
};
pub(crate) use self::{
    from_worker::OUTPUT_HEADER,
    parts::{LENGTH_BYTES, cut},
};
