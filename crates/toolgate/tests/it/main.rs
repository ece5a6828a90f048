//! The library as a program uses it.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod approvals;
mod builder;
mod chat;
mod docs;
mod examples;
mod functions;
mod loading;
