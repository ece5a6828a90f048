//! Registries as they are, and as they should not be.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod plans;
mod sources;
