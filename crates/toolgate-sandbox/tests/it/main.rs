//! Runs in real worker processes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;
mod waiting;

mod concurrency;
mod escape;
mod forged;
mod hostile;
mod journal;
mod languages;
mod lifecycle;
mod limits;
mod protocol;
