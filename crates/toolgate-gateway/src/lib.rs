//! The MCP face of a [`Host`]: any client sees one server.
//!
//! rmcp does the handshake, in both eras, and the framing. `tools/list` and `tools/call` are
//! answered with JSON of our own, because what servers sent must arrive as it was sent and rmcp's
//! types would drop what they do not know.
//!
//! > **Invariant:** in stdio mode stdout carries MCP alone.

mod face;
mod instructions;
mod watch_list;

use rmcp::{
    RoleServer, ServiceExt,
    service::{QuitReason, ServerInitializeError},
    transport::IntoTransport,
};
use thiserror::Error;
use tokio_util::sync::CancellationToken;
use toolgate_host::Host;

use crate::face::Face;

/// Why serving ended other than by the client leaving. The host is still running.
#[derive(Debug, Error)]
pub enum GatewayError {
    /// The client's first words were not MCP.
    #[error("the handshake with the client failed: {0}")]
    Handshake(Box<ServerInitializeError>),
    /// The service task broke down.
    #[error("serving broke down: {0}")]
    Broken(String),
}

/// Serves one client on stdin and stdout until it leaves or `stop` is cancelled.
pub async fn serve_stdio(host: Host, stop: CancellationToken) -> Result<(), GatewayError> {
    serve(host, rmcp::transport::stdio_pipes(), stop).await
}

/// Serves one client on a transport until it leaves or `stop` is cancelled.
pub async fn serve<T, E, A>(
    host: Host,
    transport: T,
    stop: CancellationToken,
) -> Result<(), GatewayError>
where
    T: IntoTransport<RoleServer, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let face = Face::new(host.session());
    let running = match face.serve_with_ct(transport, stop.clone()).await {
        Ok(running) => running,
        // A client that leaves before it has said anything did nothing wrong.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
            return Ok(());
        }
        Err(error) => return Err(GatewayError::Handshake(Box::new(error))),
    };
    match running.waiting().await {
        Ok(QuitReason::JoinError(error)) | Err(error) => {
            Err(GatewayError::Broken(error.to_string()))
        }
        Ok(_) => Ok(()),
    }
}
