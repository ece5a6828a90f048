//! What a collector gets, and what it costs when there is none.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail like tests")]

mod export;
