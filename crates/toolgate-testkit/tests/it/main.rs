//! The fixture as its users see it: a child process over stdio, and HTTP.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "everything here is a test, helpers included; clippy only knows of the test functions"
)]

mod faults;
mod http;
mod http_client;
mod protocol;
mod questions;
mod real_servers;
mod tools;

use toolgate_testkit::{Fixture, RawClient};

/// Starts a fixture as a child process.
fn start(fixture: &Fixture) -> RawClient {
    RawClient::spawn(&fixture.entry().unwrap()).unwrap()
}

/// Starts a legacy fixture and shakes hands with it.
async fn connect(fixture: &Fixture) -> RawClient {
    let mut client = start(fixture);
    client.initialize().await.unwrap();
    client
}
