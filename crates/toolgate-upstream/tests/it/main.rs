//! The client side against servers that behave, misbehave and die.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "everything here is a test, helpers included; clippy only knows of the test functions"
)]

mod authorization;
mod changes;
mod crashes;
mod demand;
mod eras;
mod failures;
mod http;
mod instances;
mod isolation;
mod limits;
mod listing;
mod notifications;
mod processes;
mod questions;
mod raw_connection;
mod raw_fidelity;
mod real_servers;
mod results;
mod sse;
mod support;
mod tasks;
mod visits;
