//! Who answers what a server asks.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};

use futures::future::BoxFuture;
use rmcp::model::{
    ClientCapabilities, ElicitationCapability, FormElicitationCapability, RootsCapabilities,
    SamplingCapability, UrlElicitationCapability,
};
use serde_json::Value;
use toolgate_mcp::{ErrorObject, JsonObject};

/// What a server asks of a client: `elicitation/create`, `sampling/createMessage`, `roots/list`.
#[derive(Debug, Clone, PartialEq)]
pub struct InputRequest {
    /// The method.
    pub method: String,
    /// Its parameters, as they were sent.
    pub params: Option<Value>,
}

/// Answers what a server asks while it works on a call: the client that made the call, whichever
/// era it speaks.
///
/// A server of the older protocol sends a request of its own and waits; one of 2026-07-28 gives an
/// `input_required` result and is called again with the answers. Both end here, so that who calls a
/// tool need not know which it was.
pub trait InputHandler: fmt::Debug + Send + Sync {
    /// What can be asked, as the client declared it: the `capabilities` of its `initialize`, or of
    /// the request. What is not in it is refused without asking.
    fn capabilities(&self) -> &JsonObject;

    /// Asks, and gives the answer as it was sent.
    fn answer(&self, question: InputRequest) -> BoxFuture<'_, Result<Value, ErrorObject>>;

    /// Who answers in the end. Respondents that answer for one client say the same; one that says
    /// nothing is a client of its own.
    fn client(&self) -> Option<ClientId> {
        None
    }
}

/// Tells the clients that are asked apart, within a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientId(u64);

impl ClientId {
    /// One that no other is equal to.
    pub fn unique() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// What a client can be asked, of all that it declares.
const ASKABLE: [&str; 3] = ["elicitation", "roots", "sampling"];

/// What a server of the older protocol is told, whose connection all callers share.
pub(crate) fn everything() -> ClientCapabilities {
    let mut sampling = SamplingCapability::default();
    sampling.tools = Some(JsonObject::new());
    let mut roots = RootsCapabilities::default();
    roots.list_changed = Some(false);
    let mut elicitation = ElicitationCapability::default();
    elicitation.form = Some(FormElicitationCapability::default());
    elicitation.url = Some(UrlElicitationCapability::default());
    let mut everything = ClientCapabilities::default();
    everything.sampling = Some(sampling);
    everything.roots = Some(roots);
    everything.elicitation = Some(elicitation);
    everything
}

/// What a server of the newer protocol is told with a call: what its respondent can be asked.
pub(crate) fn askable(respondent: &dyn InputHandler) -> JsonObject {
    let declared = respondent.capabilities().iter();
    let askable = declared.filter(|(name, _)| ASKABLE.contains(&name.as_str()));
    askable.map(|(name, capability)| (name.clone(), capability.clone())).collect()
}

/// Whether somebody with these capabilities can be asked this.
pub fn can_answer(capabilities: &JsonObject, question: &InputRequest) -> bool {
    let param = |name: &str| question.params.as_ref().and_then(|params| params.get(name));
    let has = |capability: &Value, part: &str| capability.get(part).is_some_and(|it| !it.is_null());
    let declared = |name: &str| capabilities.get(name).filter(|capability| !capability.is_null());
    match question.method.as_str() {
        "elicitation/create" => declared("elicitation").is_some_and(|elicitation| {
            let by_url = param("mode").and_then(Value::as_str) == Some("url");
            // Forms are what there was when the capability had no parts.
            if by_url {
                has(elicitation, "url")
            } else {
                has(elicitation, "form") || !has(elicitation, "url")
            }
        }),
        "sampling/createMessage" => declared("sampling").is_some_and(|sampling| {
            param("tools").is_none_or(Value::is_null) || has(sampling, "tools")
        }),
        "roots/list" => declared("roots").is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_not_declared_is_not_asked() {
        let can = |capabilities: Value, method: &str, params: Value| {
            let question = InputRequest { method: method.to_owned(), params: Some(params) };
            can_answer(capabilities.as_object().unwrap(), &question)
        };
        let (form, url) = (json!({"message": "?"}), json!({"mode": "url", "url": "x:y"}));
        let elicit = "elicitation/create";
        for (capability, forms, urls) in [
            (json!({}), true, false),
            (json!({"form": {}}), true, false),
            (json!({"url": {}}), false, true),
            (json!({"form": {}, "url": {}}), true, true),
        ] {
            let capabilities = json!({ "elicitation": capability });
            assert_eq!(can(capabilities.clone(), elicit, form.clone()), forms, "{capabilities}");
            assert_eq!(can(capabilities.clone(), elicit, url.clone()), urls, "{capabilities}");
        }
        assert!(!can(json!({}), elicit, form));
        let sample = "sampling/createMessage";
        assert!(can(json!({"sampling": {}}), sample, json!({"messages": []})));
        assert!(!can(json!({"sampling": {}}), sample, json!({"tools": []})));
        assert!(can(json!({"sampling": {"tools": {}}}), sample, json!({"tools": []})));
        assert!(can(json!({"roots": {}}), "roots/list", json!({})));
        assert!(!can(json!({"roots": null}), "roots/list", json!({})));
        assert!(!can(json!({"odd": {}}), "odd/question", json!({})));
    }

    #[test]
    fn everything_is_said_in_the_words_of_the_protocol() {
        assert_eq!(
            serde_json::to_value(everything()).unwrap(),
            json!({
                "elicitation": { "form": {}, "url": {} },
                "roots": { "listChanged": false },
                "sampling": { "tools": {} },
            })
        );
    }
}
