//! The transports of a connection.

use std::{sync::Arc, time::Duration};

use serde_json::Value;

use super::{
    connection::ConnectionSettings,
    endpoint::Endpoint,
    exchange::{Exchange, ExchangeError},
    failure::{ConnectFailure, spawn_failure},
    handshake::HandshakeFailure,
    http::HttpClient,
    process::Started,
    sse::SseTransport,
    stdio::StdioTransport,
    streamable::StreamableTransport,
};
use crate::request_message;

/// The transport of a connection.
pub(super) enum Transport {
    Stdio(StdioTransport),
    Streamable(StreamableTransport),
    Sse(SseTransport),
}

impl Transport {
    /// Opens the transport, and sends nothing yet. `sse` asks for HTTP+SSE. `spare` is a process that
    /// was started ahead.
    pub(super) async fn open(
        settings: ConnectionSettings<'_>,
        sse: bool,
        exchange: &Arc<Exchange>,
        spare: Option<Started>,
    ) -> Result<Self, HandshakeFailure> {
        let redactor = settings.endpoint.redactor();
        let limit = settings.limits.sizes();
        let clean = |failure: ConnectFailure| ConnectFailure {
            reason: redactor.line(&failure.reason),
            ..failure
        };
        match settings.endpoint {
            Endpoint::Stdio(endpoint) => {
                if let Some(started) = spare {
                    let transport = StdioTransport::of(started, redactor, limit, exchange);
                    return Ok(Self::Stdio(transport));
                }
                let started = StdioTransport::start(endpoint, redactor.clone(), limit, exchange);
                let failed = |error| clean(spawn_failure(endpoint, &error)).into();
                started.await.map(Self::Stdio).map_err(failed)
            }
            Endpoint::InProcess(server) => {
                let server = server.as_ref();
                Ok(Self::Stdio(StdioTransport::in_process(server, redactor, limit, exchange)))
            }
            Endpoint::Http(endpoint) if sse => {
                let client = HttpClient::new(endpoint)?;
                let opened =
                    SseTransport::open(endpoint, client, redactor.clone(), limit, exchange).await;
                opened.map(Self::Sse).map_err(|error| HandshakeFailure {
                    wants_authorization: error.wants_authorization(),
                    ..clean(error.connect_failure(endpoint)).into()
                })
            }
            Endpoint::Http(endpoint) => {
                let (client, exchange) = (HttpClient::new(endpoint)?, Arc::clone(exchange));
                let transport = StreamableTransport::new(client, limit, exchange);
                Ok(Self::Streamable(transport))
            }
        }
    }

    /// Sends a request, and gives its response to the exchange. Returns only if that fails.
    pub(super) async fn carry(
        &self,
        id: i64,
        method: &str,
        params: Option<Value>,
    ) -> ExchangeError {
        let message = |params| request_message(id.into(), method, params);
        let carried = match self {
            Self::Stdio(stdio) => stdio.reserve().await.map(|slot| {
                stdio.exchange.mark_sent(id);
                slot.send(message(params));
            }),
            Self::Streamable(http) => http.request(id, method, params).await,
            Self::Sse(sse) => {
                sse.exchange.mark_sent(id);
                sse.send(message(params)).await
            }
        };
        match carried {
            Ok(()) => std::future::pending().await,
            Err(error) => error,
        }
    }

    /// Sends a notification.
    pub(super) async fn send(&self, message: Value) -> Result<(), ExchangeError> {
        match self {
            Self::Stdio(stdio) => stdio.reserve().await.map(|slot| {
                slot.send(message);
            }),
            Self::Streamable(http) => http.send(message).await,
            Self::Sse(sse) => sse.send(message).await,
        }
    }

    /// Closes the transport in order.
    pub(super) async fn close(&self, limit: Duration) {
        match self {
            Self::Stdio(stdio) => stdio.close(limit).await,
            Self::Streamable(http) => http.close(limit).await,
            // Its stream ends with the exchange.
            Self::Sse(_) => {}
        }
    }
}
