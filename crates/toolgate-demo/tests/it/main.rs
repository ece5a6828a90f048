//! The demo servers as a client sees them.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod budget;
mod definitions;
mod protocol;
mod stories;
