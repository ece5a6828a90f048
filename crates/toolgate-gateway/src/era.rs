//! The two eras of the protocol, and how a request tells which it is of.

use serde_json::{Value, json};
use toolgate_mcp::{ErrorObject, JsonObject, codes, versions};

pub use toolgate_mcp::Era;

pub(crate) use toolgate_mcp::meta::{
    CLIENT_CAPABILITIES as META_CAPABILITIES, CLIENT_INFO as META_CLIENT_INFO,
    LOG_LEVEL as META_LOG_LEVEL, PROTOCOL_VERSION as META_VERSION, SERVER_INFO as META_SERVER_INFO,
    SUBSCRIPTION_ID as META_SUBSCRIPTION,
};

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
    pub(crate) fn complete(self) -> Result<(), ErrorObject> {
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
        Err(ErrorObject::invalid_params(format!("the request's _meta lacks {missing}"), None))
    }

    /// The version it asks for must be one that is known.
    pub(crate) fn known(self) -> Result<(), ErrorObject> {
        match self.version() {
            Some(version) if !is_known(version) => Err(unsupported(version)),
            _ => Ok(()),
        }
    }
}

/// The versions that are spoken.
pub(crate) fn versions() -> Value {
    json!(versions::KNOWN)
}

pub(crate) fn is_known(version: &str) -> bool {
    versions::is_known(version)
}

/// Whether a version has no handshake. Versions are dates, which compare as text.
pub(crate) fn is_modern(version: &str) -> bool {
    Era::of_version(version) == Era::Modern
}

/// The version that a handshake comes to: the one asked for where it has a handshake and is known,
/// else the newest such.
pub(crate) fn negotiate(requested: &str) -> &'static str {
    versions::negotiate_legacy(requested)
}

pub(crate) fn unsupported(version: &str) -> ErrorObject {
    let requested: String = version.chars().take(64).collect();
    ErrorObject::new(
        codes::UNSUPPORTED_PROTOCOL_VERSION,
        format!(
            "this protocol version is not supported; use one of {}",
            versions::KNOWN.join(", ")
        ),
        Some(json!({ "requested": requested, "supported": versions() })),
    )
}
