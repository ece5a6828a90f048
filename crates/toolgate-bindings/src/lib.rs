//! Tools as functions: JSON Schema to TypeScript and Python, and the check of a script against it.

#[cfg(feature = "check")]
pub mod check;
