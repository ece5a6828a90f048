//! The agent against scripted endpoints of all wires.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::needless_pass_by_value,
    reason = "a test, and what it is made of, fails where it must"
)]

mod endpoint;
mod judge;
mod lab;
mod scripts;

mod aimock;
mod cancel;
mod code;
mod discovery;
mod limits;
mod ordinary;
mod prefix;
mod real_model;
mod retry;
mod saved;
