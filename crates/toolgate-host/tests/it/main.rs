//! A host as a program that embeds it sees it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail like tests")]

mod consent;
mod guard;
mod support;
