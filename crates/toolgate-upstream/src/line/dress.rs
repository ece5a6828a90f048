//! What a message must carry for the era of its server.

use serde_json::{Map, Value, json};
use toolgate_mcp::{
    Era, ErrorObject, JsonObject,
    meta::{CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION},
    versions,
};

use super::ConnectionClient;

/// How a client's messages are dressed for a server.
#[derive(Debug, Clone)]
pub(super) struct Dress {
    era: Era,
    /// Who speaks, unless a request says so itself.
    introduction: [(&'static str, Value); 3],
}

impl Dress {
    pub(super) fn new(era: Era, client: &ConnectionClient) -> Self {
        let mut capabilities = client.capabilities.clone();
        // The newer protocol has no word for it: who wants to know the roots asks in a request.
        if let Some(Value::Object(roots)) = capabilities.get_mut("roots") {
            roots.shift_remove("listChanged");
        }
        let introduction = [
            (PROTOCOL_VERSION, json!(versions::MODERN)),
            (CLIENT_INFO, client.info.clone()),
            (CLIENT_CAPABILITIES, Value::Object(capabilities)),
        ];
        Self { era, introduction }
    }

    /// The parameters of a request. To a modern server each says who speaks; a client that does not
    /// say it, or says it once in its own handshake, is introduced. To a legacy server none does: it
    /// would be taken for a request of the other lifecycle.
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
                for (key, value) in &self.introduction {
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
        // What was there for the lifecycle alone is no `_meta` of the request.
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

    fn dress(era: Era) -> Dress {
        let capabilities = json!({ "roots": { "listChanged": true } });
        let capabilities = capabilities.as_object().unwrap().clone();
        Dress::new(
            era,
            &ConnectionClient { info: json!({ "name": "ada", "odd": 1 }), capabilities },
        )
    }

    #[test]
    fn a_modern_server_is_told_who_speaks_by_the_request_or_for_it() {
        let dress = dress(Era::Modern);
        let introduced = json!({ "_meta": {
            PROTOCOL_VERSION: versions::MODERN,
            CLIENT_INFO: { "name": "ada", "odd": 1 },
            CLIENT_CAPABILITIES: { "roots": {} },
        } });
        assert_eq!(dress.request(None).unwrap(), Some(introduced));
        let own = json!({ "a": 1, "_meta": {
            PROTOCOL_VERSION: "2027-01-01", CLIENT_INFO: {}, CLIENT_CAPABILITIES: {}, "progressToken": "t",
        } });
        assert_eq!(dress.request(Some(own.clone())).unwrap(), Some(own));
        assert!(dress.request(Some(json!([1]))).is_err());
        assert!(dress.request(Some(json!({ "_meta": 1 }))).is_err());
    }

    #[test]
    fn a_legacy_server_hears_nothing_of_the_other_lifecycle() {
        let dress = dress(Era::Legacy);
        assert_eq!(dress.request(None).unwrap(), None);
        let own = json!({ "a": 1, "_meta": { PROTOCOL_VERSION: versions::MODERN, "x": 1 } });
        assert_eq!(dress.request(Some(own)).unwrap(), Some(json!({ "a": 1, "_meta": { "x": 1 } })));
        let own = json!({ "a": 1, "_meta": { PROTOCOL_VERSION: versions::MODERN } });
        assert_eq!(dress.request(Some(own)).unwrap(), Some(json!({ "a": 1 })));
        let empty = json!({ "_meta": {} });
        assert_eq!(dress.request(Some(empty.clone())).unwrap(), Some(empty));
    }
}
