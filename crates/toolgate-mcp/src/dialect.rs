//! The transports of a URL.

/// The transport that a URL speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HttpDialect {
    /// Streamable HTTP, or HTTP+SSE where the URL does not accept the handshake.
    #[default]
    Any,
    /// HTTP+SSE, as of protocol version 2024-11-05.
    Sse,
}
