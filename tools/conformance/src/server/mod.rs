//! A server that has everything that the suite's server scenarios ask for.

#![allow(
    deprecated,
    reason = "the suite covers older protocols, whose ways rmcp marks as deprecated"
)]

mod definitions;
mod handler;
mod inputs;
mod plain;
mod questions;
mod resources;
mod tasks;

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use rmcp::ServiceExt as _;
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};

use crate::Failure;
use handler::{ConformanceServer, Shared};

/// Serves one client over stdin and stdout, until stdin ends.
pub(crate) async fn serve_stdio() -> Result<(), Failure> {
    let handler = ConformanceServer::new(Arc::new(Shared::new()?));
    let running = handler.serve(rmcp::transport::stdio()).await?;
    running.waiting().await?;
    Ok(())
}

/// Serves any number of clients at `http://ADDRESS/mcp`, until the process is ended.
pub(crate) async fn serve_http(address: SocketAddr) -> Result<(), Failure> {
    let shared = Arc::new(Shared::new()?);
    let config = StreamableHttpServerConfig::default()
        .with_allowed_origins(["http://localhost:*", "http://127.0.0.1:*"]);
    let service = StreamableHttpService::new(
        move || Ok(ConformanceServer::new(Arc::clone(&shared))),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    let listener = tokio::net::TcpListener::bind(address).await?;
    let mut stdout = std::io::stdout();
    writeln!(stdout, "http://{}/mcp", listener.local_addr()?)?;
    stdout.flush()?;
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}
