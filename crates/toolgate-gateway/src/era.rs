//! The two eras of the protocol, and how a request tells which it is of.

use rmcp::{
    ErrorData,
    model::{JsonObject, ProtocolVersion},
};
use serde_json::{Value, json};

pub use toolgate_catalog::Era;

pub(crate) const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(crate) const META_LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
pub(crate) const META_CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
pub(crate) const META_SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
pub(crate) const META_SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// What a request says about itself in its `_meta`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Declared<'a>(Option<&'a JsonObject>);

impl<'a> Declared<'a> {
    pub(crate) fn of(params: Option<&'a Value>) -> Self {
        Self(params.and_then(|params| params.get("_meta")).and_then(Value::as_object))
    }

    pub(crate) fn version(self) -> Option<&'a str> {
        self.0?.get(META_VERSION)?.as_str()
    }

    pub(crate) fn capabilities(self) -> Option<&'a JsonObject> {
        self.0?.get(META_CAPABILITIES)?.as_object()
    }

    pub(crate) fn client_info(self) -> Option<&'a Value> {
        self.0?.get(META_CLIENT_INFO)
    }

    /// Whether it says all that a request of the modern era has to say, or which of it is missing.
    pub(crate) fn complete(self) -> Result<(), ErrorData> {
        let missing: Vec<&str> = [
            (META_VERSION, self.version().is_some()),
            (META_CAPABILITIES, self.capabilities().is_some()),
        ]
        .iter()
        .filter_map(|(key, there)| (!there).then_some(*key))
        .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let missing = missing.join(", ");
        Err(ErrorData::invalid_params(format!("the request's _meta lacks {missing}"), None))
    }

    /// The version it asks for must be one that is known.
    pub(crate) fn known(self) -> Result<(), ErrorData> {
        match self.version() {
            Some(version) if !is_known(version) => Err(unsupported(version)),
            _ => Ok(()),
        }
    }
}

/// The versions that are spoken.
pub(crate) fn versions() -> Value {
    json!(ProtocolVersion::KNOWN_VERSIONS)
}

pub(crate) fn is_known(version: &str) -> bool {
    ProtocolVersion::KNOWN_VERSIONS.iter().any(|known| known.as_str() == version)
}

/// Whether a version has no handshake. Versions are dates, which compare as text.
pub(crate) fn is_modern(version: &str) -> bool {
    version >= ProtocolVersion::V_2026_07_28.as_str()
}

/// The version that a handshake comes to: the one asked for where it has a handshake and is known,
/// else the newest such.
pub(crate) fn negotiate(requested: &str) -> &'static str {
    ProtocolVersion::KNOWN_VERSIONS
        .iter()
        .find(|known| known.as_str() == requested && known.has_initialize())
        .unwrap_or(&ProtocolVersion::LATEST_WITH_INITIALIZE)
        .as_str()
}

pub(crate) fn unsupported(version: &str) -> ErrorData {
    let requested: String = version.chars().take(64).collect();
    let known: Vec<&str> =
        ProtocolVersion::KNOWN_VERSIONS.iter().map(ProtocolVersion::as_str).collect();
    ErrorData::new(
        rmcp::model::ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
        format!("this protocol version is not supported; use one of {}", known.join(", ")),
        Some(json!({ "requested": requested, "supported": versions() })),
    )
}
