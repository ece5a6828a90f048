//! Endpoints from the outside: what clients of both eras say and get.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::missing_panics_doc)]

mod bridging;
mod clients;
mod door;
mod hostile;
mod input;
mod legacy;
mod limits;
mod lines;
mod modern;
mod probe;
mod stopping;
mod support;
