//! The program as its users see it: a process, its arguments, its streams and its exit code.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "everything here is a test, helpers included; clippy only knows of the test functions"
)]

mod access;
#[cfg(unix)]
mod asking;
mod bad_input;
mod cache;
mod catalogue;
mod cli;
mod clients;
#[cfg(unix)]
mod code;
#[cfg(unix)]
mod demand;
mod demo;
mod embeddings;
#[cfg(unix)]
mod env_file;
mod eras;
mod escaping;
mod fixtures;
#[cfg(unix)]
mod flow;
mod gateway;
mod guard;
mod http;
#[cfg(unix)]
mod logins;
mod modes;
#[cfg(target_os = "linux")]
mod processes;
mod real;
mod reference;
#[cfg(unix)]
mod reload;
#[cfg(unix)]
mod resilience;
mod resources;
mod serve;
#[cfg(target_os = "linux")]
mod soak;
mod subagent;
mod support;
#[cfg(unix)]
mod telemetry;
#[cfg(unix)]
mod trust;
#[cfg(unix)]
mod typist;
mod usage;
