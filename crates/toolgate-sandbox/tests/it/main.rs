//! Runs in real worker processes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[cfg(target_os = "linux")]
mod processes;
mod support;
mod waiting;

#[cfg(feature = "engine-wasm")]
mod components;
mod concurrency;
mod escape;
mod forged;
mod hostile;
#[cfg(target_os = "linux")]
mod interpreter;
mod journal;
mod languages;
mod large;
mod lifecycle;
mod limits;
mod protocol;
