//! Error codes of JSON-RPC, of the protocol, and of toolgate.

/// The bytes are no JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The JSON is no request that can be answered.
pub const INVALID_REQUEST: i64 = -32600;
/// The method is unknown.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters do not fit the method.
pub const INVALID_PARAMS: i64 = -32602;
/// The request failed.
pub const INTERNAL_ERROR: i64 = -32603;

/// There is no such resource (legacy era; the modern era says [`INVALID_PARAMS`]).
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// A header differs from the body (modern era).
pub const HEADER_MISMATCH: i64 = -32020;
/// The request needs a capability that the client did not declare (modern era).
pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
/// The protocol version is not supported (modern era).
pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;
/// A person has to visit a URL before the request can succeed (2025-11-25).
pub const URL_ELICITATION_REQUIRED: i64 = -32042;

/// toolgate's own: the toolgate that was started is the one that started it.
pub const NESTED: i64 = -32011;
/// toolgate's own: the policy denies the request, or an approval is missing.
pub const NOT_ALLOWED: i64 = -32010;
