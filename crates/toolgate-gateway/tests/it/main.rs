//! Endpoints as clients of both eras see them.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::missing_panics_doc)]

mod access;
mod bridging;
mod clients;
mod hostile;
mod input;
mod legacy;
mod limits;
mod messages;
mod modern;
mod probe;
mod stdio;
mod stopping;
mod support;
mod tasks;
