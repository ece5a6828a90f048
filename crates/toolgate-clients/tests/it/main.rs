//! Edits of texts that people have written, and files that are restored.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "everything here is a test, helpers included"
)]

mod edits;
mod files;
mod imports;
