//! Models behind endpoints, as they answer and as they fail.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod chat;
