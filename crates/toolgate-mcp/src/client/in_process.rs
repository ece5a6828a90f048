//! A server that is a part of this program, on an in-memory connection.
//!
//! The messages are the same lines as on the pipes of a child process. So a function of this program is
//! limited, cancelled and listed like the tool of any other server.

use std::fmt;

use futures::future::BoxFuture;
use tokio::io::DuplexStream;

/// A server that is a part of this program.
pub trait InProcessServer: fmt::Debug + Send + Sync {
    /// What it serves, as a text: equal texts mean the same tools.
    fn content(&self) -> String;

    /// Serves one connection until the stream ends: one JSON-RPC message a line. The future is dropped
    /// when the connection is closed.
    fn serve(&self, stream: DuplexStream) -> BoxFuture<'static, ()>;
}

/// How many bytes each side can write before the other reads.
const BUFFER: usize = 64 * 1024;

/// Starts the server on one end of a connection, and returns the other end. `closed` ends the server.
pub(super) fn start(
    server: &dyn InProcessServer,
    closed: impl Future<Output = ()> + Send + 'static,
) -> DuplexStream {
    let (ours, theirs) = tokio::io::duplex(BUFFER);
    let serving = server.serve(theirs);
    tokio::spawn(async move {
        tokio::select! {
            () = serving => {}
            () = closed => {}
        }
    });
    ours
}
