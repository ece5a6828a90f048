//! How requests, results and server information differ between the two eras.

use serde_json::{Map, Value, json};
use toolgate_mcp::{ErrorObject, JsonObject, codes, meta, methods, versions};

pub use toolgate_mcp::Era;

/// The `_meta` of a request, in which a modern client declares its version and capabilities.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeclaredMeta<'a>(Option<&'a JsonObject>);

impl<'a> DeclaredMeta<'a> {
    pub(crate) fn of(params: Option<&'a Value>) -> Self {
        Self(params.and_then(|params| params.get("_meta")).and_then(Value::as_object))
    }

    pub(crate) fn version(self) -> Option<&'a str> {
        self.0?.get(meta::PROTOCOL_VERSION)?.as_str()
    }

    pub(crate) fn capabilities(self) -> Option<&'a JsonObject> {
        self.0?.get(meta::CLIENT_CAPABILITIES)?.as_object()
    }

    pub(crate) fn client_info(self) -> Option<&'a Value> {
        self.0?.get(meta::CLIENT_INFO)
    }

    /// Whether the request is one of the modern era. A draft version counts if the declaration is
    /// complete.
    pub(crate) fn is_modern(self) -> bool {
        let version_is_modern =
            self.version().is_some_and(|version| Era::of_version(version) == Era::Modern);
        version_is_modern || self.check_complete().is_ok()
    }

    /// Checks that everything is declared that a modern request must declare.
    pub(crate) fn check_complete(self) -> Result<(), ErrorObject> {
        let missing: Vec<&str> = [
            (meta::PROTOCOL_VERSION, self.version().is_some()),
            (meta::CLIENT_CAPABILITIES, self.capabilities().is_some()),
        ]
        .iter()
        .filter_map(|(key, is_present)| (!is_present).then_some(*key))
        .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let message = format!("the request's _meta lacks {}", missing.join(", "));
        Err(ErrorObject::invalid_params(message, None))
    }

    /// Checks that the declared version is supported.
    pub(crate) fn check_version(self) -> Result<(), ErrorObject> {
        match self.version() {
            Some(version) if !versions::is_known(version) => Err(unsupported_version(version)),
            _ => Ok(()),
        }
    }
}

pub(crate) fn unsupported_version(version: &str) -> ErrorObject {
    let requested: String = version.chars().take(64).collect();
    let known = versions::KNOWN.join(", ");
    ErrorObject::new(
        codes::UNSUPPORTED_PROTOCOL_VERSION,
        format!("this protocol version is not supported; use one of {known}"),
        Some(json!({ "requested": requested, "supported": versions::KNOWN })),
    )
}

/// The result of `initialize` or `server/discover`, with all its fields.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerInfo {
    /// The era whose result this is.
    pub era: Era,
    /// The fields of the result.
    pub fields: JsonObject,
}

impl ServerInfo {
    /// The version that a legacy server has agreed on, if toolgate speaks it.
    pub(crate) fn version(&self) -> Option<&'static str> {
        let own = self.fields.get("protocolVersion")?.as_str()?;
        let mut legacy = versions::KNOWN.into_iter().filter(|known| *known < versions::MODERN);
        legacy.find(|known| *known == own).filter(|_| self.era == Era::Legacy)
    }

    /// Converts to the result of `initialize`, with the negotiated version.
    pub(crate) fn into_initialize(mut self, version: &str) -> Value {
        if self.era == Era::Modern {
            for key in ["supportedVersions", "ttlMs", "cacheScope", "resultType"] {
                self.fields.shift_remove(key);
            }
            let info = self.fields.get_mut("_meta").and_then(Value::as_object_mut);
            let info = info.and_then(|fields| fields.shift_remove(meta::SERVER_INFO));
            let info = info.unwrap_or_else(|| json!({ "name": "unknown", "version": "0" }));
            self.fields.insert("serverInfo".to_owned(), info);
            if self.fields.get("_meta").and_then(Value::as_object).is_some_and(Map::is_empty) {
                self.fields.shift_remove("_meta");
            }
        }
        let mut result = Map::new();
        result.insert("protocolVersion".to_owned(), json!(version));
        self.fields.shift_remove("protocolVersion");
        result.append(&mut self.fields);
        Value::Object(result)
    }

    /// Converts to the result of `server/discover`.
    pub(crate) fn into_discover(mut self) -> Value {
        self.fields.shift_remove("protocolVersion");
        if let Some(info) = self.fields.shift_remove("serverInfo")
            && let Some(fields) =
                self.fields.entry("_meta").or_insert_with(|| json!({})).as_object_mut()
        {
            fields.insert(meta::SERVER_INFO.to_owned(), info);
        }
        // A modern server says which versions it speaks. toolgate translates for a legacy server.
        let own = self.fields.get("supportedVersions").and_then(Value::as_array);
        let own = own.into_iter().flatten().filter_map(Value::as_str);
        let own: Vec<&str> = own.filter(|version| versions::is_known(version)).collect();
        let supported = if own.is_empty() { json!(versions::KNOWN) } else { json!(own) };
        self.fields.insert("supportedVersions".to_owned(), supported);
        complete_result(&mut self.fields, methods::DISCOVER);
        Value::Object(self.fields)
    }
}

/// Converts the outcome of a request for a client of an era, whatever the era of the server.
pub(crate) fn adapt_outcome(
    era: Era,
    method: &str,
    mut outcome: Result<Value, ErrorObject>,
) -> Result<Value, ErrorObject> {
    match (era, &mut outcome) {
        (Era::Modern, Ok(Value::Object(result))) => complete_result(result, method),
        (Era::Modern, Err(error))
            if error.code == codes::RESOURCE_NOT_FOUND && method != methods::GROUPS_GET =>
        {
            error.code = codes::INVALID_PARAMS;
        }
        (Era::Legacy, Ok(Value::Object(result)))
            if result.get("resultType") == Some(&json!("complete")) =>
        {
            result.shift_remove("resultType");
        }
        _ => {}
    }
    outcome
}

/// Adds the fields that the modern era requires in every result, unless they are present.
fn complete_result(result: &mut JsonObject, method: &str) {
    let is_cacheable = matches!(
        method,
        methods::DISCOVER
            | methods::TOOLS_LIST
            | methods::PROMPTS_LIST
            | methods::RESOURCES_LIST
            | methods::RESOURCE_TEMPLATES_LIST
            | methods::RESOURCES_READ
            | methods::SKILLS_LIST
            | methods::SKILLS_GET
    );
    let kind = result.entry("resultType").or_insert_with(|| json!("complete"));
    if is_cacheable && kind == "complete" {
        result.entry("ttlMs").or_insert_with(|| json!(0));
        result.entry("cacheScope").or_insert_with(|| json!("private"));
    }
}

/// A field of the `_meta` of parameters or of a result.
pub(crate) fn get_meta<'a>(params: Option<&'a Value>, key: &str) -> Option<&'a Value> {
    params?.get("_meta")?.get(key)
}

/// Sets a field of the `_meta` of parameters or of a result.
pub(crate) fn set_meta(params: &mut Value, key: &str, value: Value) {
    let Some(fields) = params.as_object_mut() else { return };
    // A server may have put anything there.
    let entry = fields.entry("_meta").or_insert_with(|| json!({}));
    if !entry.is_object() {
        *entry = json!({});
    }
    entry[key] = value;
}

/// Removes fields from the `_meta` of parameters, and `_meta` itself if it becomes empty.
pub(crate) fn remove_meta(params: &mut Option<Value>, keys: &[&str]) {
    let Some(fields) = params.as_mut().and_then(Value::as_object_mut) else { return };
    let Some(entries) = fields.get_mut("_meta").and_then(Value::as_object_mut) else { return };
    for key in keys {
        entries.shift_remove(*key);
    }
    if entries.is_empty() {
        fields.shift_remove("_meta");
    }
}
