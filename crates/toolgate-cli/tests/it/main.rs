//! The program as its users see it: a process, its arguments, its streams and its exit code.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "everything here is a test, helpers included; clippy only knows of the test functions"
)]

mod access;
#[cfg(unix)]
mod agent_run;
#[cfg(unix)]
mod asking;
mod bad_input;
mod cache;
mod caller_logins;
mod catalogue;
#[cfg(unix)]
mod chat;
mod cli;
mod clients;
#[cfg(unix)]
mod code;
mod components;
#[cfg(unix)]
mod demand;
mod demo;
mod embeddings;
#[cfg(unix)]
#[allow(dead_code, reason = "the tests of the agent use more of it")]
#[path = "../../../toolgate-agent/tests/it/endpoint.rs"]
mod endpoint;
#[cfg(unix)]
mod env_file;
mod eras;
mod escaping;
#[cfg(unix)]
mod everyday;
#[cfg(unix)]
mod extensions;
mod fixtures;
#[cfg(unix)]
mod fleet;
#[cfg(unix)]
mod flow;
mod gateway;
mod guard;
mod http;
mod instances;
#[cfg(unix)]
mod late;
#[cfg(unix)]
mod live;
mod logins;
mod modes;
#[cfg(unix)]
mod nesting;
#[cfg(target_os = "linux")]
mod processes;
mod real;
mod reference;
#[cfg(unix)]
mod reload;
#[cfg(unix)]
mod resilience;
mod resources;
#[cfg(unix)]
#[allow(
    dead_code,
    clippy::needless_pass_by_value,
    reason = "the tests of the agent use more of it, and have their own lints"
)]
#[path = "../../../toolgate-agent/tests/it/scripts.rs"]
mod scripts;
mod serve;
#[cfg(unix)]
mod setup;
#[cfg(target_os = "linux")]
mod soak;
mod subagent;
mod support;
#[cfg(unix)]
mod takeover;
mod telemetry;
#[cfg(unix)]
mod tell_caller;
#[cfg(unix)]
mod trust;
#[cfg(unix)]
mod typist;
mod usage;
#[cfg(unix)]
mod web;
