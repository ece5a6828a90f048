//! The Model Context Protocol, as toolgate speaks it on both sides.
//!
//! This crate has the JSON-RPC messages, the two eras of the protocol and the names that the
//! specification fixes: methods, `_meta` keys, error codes, protocol versions. With the feature
//! `client` it has the connection to a server too.
//!
//! > **Invariant:** a message keeps every field that was sent. Parameters and results are JSON
//! > values; no type of ours decides what a server or a client may say.

mod dialect;
mod environment;
mod era;
mod error;
mod instances;
mod log_level;
mod message;

#[cfg(feature = "client")]
pub mod client;
pub mod codes;
pub mod extensions;
pub mod meta;
pub mod methods;
pub mod nesting;
pub mod versions;

pub use dialect::HttpDialect;
pub use environment::is_base_variable;
pub use era::Era;
pub use error::ErrorObject;
pub use instances::InstanceMode;
pub use log_level::LogLevel;
pub use message::{
    JsonRpcInput, JsonRpcMessage, JsonRpcNotification, JsonRpcRequest, JsonRpcResponse,
    MalformedMessage, json_line, json_size, json_text, notification_message, request_message,
    response_message,
};

/// A JSON object. The order of its fields is the order in which they were sent.
pub type JsonObject = serde_json::Map<String, serde_json::Value>;
