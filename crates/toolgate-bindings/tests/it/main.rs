//! The declarations before the judges that count: a TypeScript compiler and a Python.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod catalogue;
mod compilers;
mod corpus;
mod hostile;
mod shapes;
mod snapshots;
mod typed;
