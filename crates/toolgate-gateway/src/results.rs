//! What results and errors look like in each era.

use serde_json::{Value, json};
use toolgate_mcp::{ErrorObject, JsonObject, codes};

use crate::era::Era;

/// Whether a result may be kept by who gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cached {
    /// It says for how long.
    Briefly,
    /// It is no result of that kind.
    No,
}

impl Cached {
    /// For the results of a method.
    pub(crate) fn of(method: &str) -> Self {
        match method {
            "tools/list"
            | "prompts/list"
            | "resources/list"
            | "resources/templates/list"
            | "resources/read" => Self::Briefly,
            _ => Self::No,
        }
    }
}

/// Makes an outcome fit for a client of an era, whatever the era of the server that it comes from.
pub(crate) fn fit(
    era: Era,
    cached: Cached,
    mut outcome: Result<Value, ErrorObject>,
) -> Result<Value, ErrorObject> {
    match (era, &mut outcome) {
        (Era::Modern, Ok(Value::Object(result))) => complete(result, cached),
        (Era::Modern, Err(error)) if error.code == codes::RESOURCE_NOT_FOUND => {
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

/// Adds to a result what the modern era wants in every one, unless it is there.
pub(crate) fn complete(result: &mut JsonObject, cached: Cached) {
    let kind = result.entry("resultType").or_insert_with(|| json!("complete"));
    if cached == Cached::Briefly && kind == "complete" {
        result.entry("ttlMs").or_insert_with(|| json!(0));
        result.entry("cacheScope").or_insert_with(|| json!("private"));
    }
}
