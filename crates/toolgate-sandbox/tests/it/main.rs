//! Runs in real worker processes.

mod support;

mod concurrency;
mod escape;
mod forged;
mod hostile;
mod lifecycle;
mod limits;
mod protocol;
