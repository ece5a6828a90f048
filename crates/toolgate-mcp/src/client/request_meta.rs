//! Adapts `_meta` to the era of a server.

use serde_json::{Map, Value, json};

use super::connection::ConnectionClient;
use crate::{
    Era, ErrorObject, JsonObject,
    meta::{CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION},
    versions,
};

/// Adapts the `_meta` of a client's messages to a server.
#[derive(Debug, Clone)]
pub(super) struct RequestMeta {
    era: Era,
    /// Who the client is, unless a request says so itself.
    defaults: [(&'static str, Value); 3],
}

impl RequestMeta {
    pub(super) fn new(era: Era, client: &ConnectionClient) -> Self {
        let mut capabilities = client.modern_capabilities.clone();
        // The modern era does not have it: a server requests roots in a result.
        if let Some(Value::Object(roots)) = capabilities.get_mut("roots") {
            roots.shift_remove("listChanged");
        }
        let defaults = [
            (PROTOCOL_VERSION, json!(versions::MODERN)),
            (CLIENT_INFO, client.info.clone()),
            (CLIENT_CAPABILITIES, Value::Object(capabilities)),
        ];
        Self { era, defaults }
    }

    /// The parameters of a request. For a modern server each request names the client, if needed
    /// from the defaults. For a legacy server none does, because the server would take it for a
    /// modern request.
    pub(super) fn request(&self, params: Option<Value>) -> Result<Option<Value>, ErrorObject> {
        let mut params = match params {
            None | Some(Value::Null) => None,
            Some(Value::Object(params)) => Some(params),
            Some(_) => return Err(invalid("`params` must be an object")),
        };
        match self.era {
            Era::Modern => {
                let params = params.get_or_insert_with(Map::new);
                let meta = params.entry("_meta").or_insert_with(|| json!({}));
                let meta =
                    meta.as_object_mut().ok_or_else(|| invalid("`_meta` must be an object"))?;
                for (key, value) in &self.defaults {
                    meta.entry(*key).or_insert_with(|| value.clone());
                }
            }
            Era::Legacy => {
                if let Some(params) = &mut params {
                    strip(params);
                }
            }
        }
        Ok(params.map(Value::Object))
    }

    /// The parameters of a notification.
    pub(super) fn notification(&self, params: Option<Value>) -> Result<Option<Value>, ErrorObject> {
        match (self.era, params) {
            (Era::Legacy, params) => self.request(params),
            (Era::Modern, None | Some(Value::Null)) => Ok(None),
            (Era::Modern, Some(Value::Object(params))) => Ok(Some(Value::Object(params))),
            (Era::Modern, Some(_)) => Err(invalid("`params` must be an object")),
        }
    }
}

fn strip(params: &mut JsonObject) {
    if let Some(Value::Object(meta)) = params.get_mut("_meta") {
        let before = meta.len();
        meta.retain(|key, _| {
            ![PROTOCOL_VERSION, CLIENT_INFO, CLIENT_CAPABILITIES].contains(&key.as_str())
        });
        // The `_meta` contained only keys of the era.
        if meta.is_empty() && before > 0 {
            params.remove("_meta");
        }
    }
}

fn invalid(why: &str) -> ErrorObject {
    ErrorObject::invalid_params(why.to_owned(), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request_meta(era: Era) -> RequestMeta {
        let capabilities = json!({ "roots": { "listChanged": true } });
        let capabilities = capabilities.as_object().unwrap().clone();
        RequestMeta::new(
            era,
            &ConnectionClient {
                info: json!({ "name": "ada", "odd": 1 }),
                legacy_version: None,
                legacy_capabilities: JsonObject::new(),
                modern_capabilities: capabilities,
            },
        )
    }

    #[test]
    fn a_modern_request_names_its_client() {
        let request_meta = request_meta(Era::Modern);
        let introduced = json!({ "_meta": {
            PROTOCOL_VERSION: versions::MODERN,
            CLIENT_INFO: { "name": "ada", "odd": 1 },
            CLIENT_CAPABILITIES: { "roots": {} },
        } });
        assert_eq!(request_meta.request(None).unwrap(), Some(introduced));
        let own = json!({ "a": 1, "_meta": {
            PROTOCOL_VERSION: "2027-01-01", CLIENT_INFO: {}, CLIENT_CAPABILITIES: {}, "progressToken": "t",
        } });
        assert_eq!(request_meta.request(Some(own.clone())).unwrap(), Some(own));
        assert!(request_meta.request(Some(json!([1]))).is_err());
        assert!(request_meta.request(Some(json!({ "_meta": 1 }))).is_err());
    }

    #[test]
    fn a_legacy_server_gets_nothing_of_the_modern_era() {
        let request_meta = request_meta(Era::Legacy);
        assert_eq!(request_meta.request(None).unwrap(), None);
        let own = json!({ "a": 1, "_meta": { PROTOCOL_VERSION: versions::MODERN, "x": 1 } });
        assert_eq!(
            request_meta.request(Some(own)).unwrap(),
            Some(json!({ "a": 1, "_meta": { "x": 1 } }))
        );
        let own = json!({ "a": 1, "_meta": { PROTOCOL_VERSION: versions::MODERN } });
        assert_eq!(request_meta.request(Some(own)).unwrap(), Some(json!({ "a": 1 })));
        let empty = json!({ "_meta": {} });
        assert_eq!(request_meta.request(Some(empty.clone())).unwrap(), Some(empty));
    }
}
