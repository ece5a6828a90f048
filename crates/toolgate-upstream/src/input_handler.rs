//! The interface that answers the input requests of a server.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolgate_catalog::ServerName;
use toolgate_mcp::{ErrorObject, JsonObject, client::InputRequest, extensions, methods};

/// Answers the input requests of a server during a call: the client that made the call, in either
/// era.
///
/// A legacy server sends a request and waits. A modern server returns `input_required` and is
/// called again with the answers. Both use this trait, so callers need not know the era.
pub trait InputHandler: fmt::Debug + Send + Sync {
    /// The capabilities that the client declared in `initialize` or in the request. Everything else
    /// is refused without asking.
    fn capabilities(&self) -> &JsonObject;

    /// Asks the client, and returns its answer as it was sent.
    fn answer(&self, request: InputRequest) -> BoxFuture<'_, Result<Value, ErrorObject>>;

    /// The same for an input request that its server calls by this key. A client that sees keys sees this
    /// one, unless it is taken.
    fn answer_keyed<'a>(
        &'a self,
        key: &'a str,
        request: InputRequest,
    ) -> BoxFuture<'a, Result<Value, ErrorObject>> {
        let _ = key;
        self.answer(request)
    }

    /// Passes a notification about an input request on to the client.
    fn notify(&self, method: &str, params: Value) {
        let _ = (method, params);
    }

    /// Whether the client can be sent requests of methods that toolgate does not know.
    fn takes_requests(&self) -> bool {
        false
    }

    /// Whether the client gets the input requests of a call as a result of that call, as in the modern era. Then it must
    /// get those of no other call there.
    fn is_asked_by_results(&self) -> bool {
        false
    }

    /// Whether somebody still waits for the result of the call, as far as that is known.
    fn is_there(&self) -> bool {
        true
    }

    /// Whether a person may decide something through this client. A server of this gateway that is its
    /// own client is no person.
    fn may_decide(&self) -> BoxFuture<'_, bool> {
        Box::pin(std::future::ready(true))
    }

    /// The client that answers. Handlers of one client give the same id; a handler without an id is
    /// a client of its own, which shares its instances of servers with others.
    fn client(&self) -> Option<ClientId> {
        None
    }
}

/// Identifies one session of a client within this process. The session is over when the last copy is
/// dropped.
#[derive(Debug, Clone)]
pub struct ClientId(Arc<ClientLife>);

#[derive(Debug)]
struct ClientLife(ClientKey);

/// Identifies a session without prolonging it.
#[derive(Debug, Clone)]
pub struct ClientKey {
    pub(crate) number: u64,
    /// Cancelled when the session is over.
    pub(crate) gone: CancellationToken,
}

impl ClientId {
    /// A new id.
    pub fn unique() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(Arc::new(ClientLife(ClientKey { number, gone: CancellationToken::new() })))
    }

    /// What identifies the session.
    pub fn key(&self) -> &ClientKey {
        &self.0.0
    }
}

impl Drop for ClientLife {
    fn drop(&mut self) {
        self.0.gone.cancel();
    }
}

impl ClientKey {
    /// Stands for all clients that cannot be asked.
    pub(crate) fn of_unaskable() -> Self {
        Self { number: 0, gone: CancellationToken::new() }
    }

    pub(crate) fn is_askable(&self) -> bool {
        self.number != 0
    }
}

impl PartialEq for ClientKey {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for ClientKey {}

/// Who made a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallClient {
    /// It has no input handler.
    Nobody,
    /// The client that its input handler names.
    Named(ClientKey),
    /// The address of an input handler that names no client, or that stands for one call of its client. Two are the
    /// same only while both are alive.
    Unnamed(usize),
}

impl CallClient {
    pub(crate) fn of(handler: Option<&Arc<dyn InputHandler>>) -> Self {
        let Some(handler) = handler else { return Self::Nobody };
        match handler.client() {
            Some(client) if !handler.is_asked_by_results() => Self::Named(client.key().clone()),
            _ => Self::Unnamed(Arc::as_ptr(handler).cast::<()>().addr()),
        }
    }
}

/// The capabilities for input requests.
const INPUT_CAPABILITIES: [&str; 3] = ["elicitation", "roots", "sampling"];

/// Whether a server can ask this client for anything.
pub(crate) fn can_be_asked(handler: &dyn InputHandler) -> bool {
    let declared = |name: &&str| handler.capabilities().get(*name).is_some_and(|it| !it.is_null());
    INPUT_CAPABILITIES.iter().any(declared)
}

/// The capabilities for a legacy server: everything that any caller may be able to answer, because
/// all callers share the connection.
pub(crate) fn all_capabilities() -> JsonObject {
    let capabilities = json!({
        "elicitation": { "form": {}, "url": {} },
        "roots": { "listChanged": true },
        "sampling": { "tools": {} },
    });
    capabilities.as_object().cloned().unwrap_or_default()
}

/// The capabilities for a call of a modern server: what the input handler of the call can answer.
pub(crate) fn input_capabilities(handler: &dyn InputHandler) -> JsonObject {
    let declared = handler.capabilities().iter();
    let of_input = declared.filter(|(name, _)| INPUT_CAPABILITIES.contains(&name.as_str()));
    let mut all: JsonObject =
        of_input.map(|(name, capability)| (name.clone(), capability.clone())).collect();
    let mut declared = extensions::declared(handler.capabilities());
    declared.retain(|name, _| !extensions::is_ended_here(name));
    if !declared.is_empty() {
        all.insert(extensions::CAPABILITY.to_owned(), Value::Object(declared));
    }
    all
}

/// Whether a client with these capabilities can answer the request.
pub fn can_answer(capabilities: &JsonObject, request: &InputRequest) -> bool {
    let param = |name: &str| request.params.as_ref().and_then(|params| params.get(name));
    let has = |capability: &Value, part: &str| capability.get(part).is_some_and(|it| !it.is_null());
    let declared = |name: &str| capabilities.get(name).filter(|capability| !capability.is_null());
    match request.method.as_str() {
        methods::ELICITATION_CREATE => declared("elicitation").is_some_and(|elicitation| {
            let by_url = param("mode").and_then(Value::as_str) == Some("url");
            // A capability without parts comes from a version that had only forms.
            if by_url {
                has(elicitation, "url")
            } else {
                has(elicitation, "form") || !has(elicitation, "url")
            }
        }),
        methods::SAMPLING_CREATE => declared("sampling").is_some_and(|sampling| {
            param("tools").is_none_or(Value::is_null) || has(sampling, "tools")
        }),
        methods::ROOTS_LIST => declared("roots").is_some(),
        _ => false,
    }
}

/// The request as the client gets it: the server's name stands in front of what people read, so that
/// no server can pose as toolgate or as another server. What the server says begins on the next line,
/// and is plain. What is no text is left out.
pub(crate) fn signed(server: &ServerName, mut request: InputRequest) -> InputRequest {
    let (key, introduction) = match request.method.as_str() {
        methods::ELICITATION_CREATE => ("message", format!("Server {:?} asks:", server.as_str())),
        methods::SAMPLING_CREATE => {
            ("systemPrompt", format!("Server {:?} asks for this text.", server.as_str()))
        }
        _ => return request,
    };
    if let Some(Value::Object(params)) = &mut request.params {
        let text = match params.get(key) {
            // A model reads this, and all of it.
            Some(Value::String(said)) if key == "systemPrompt" => format!("{introduction}\n{said}"),
            Some(Value::String(said)) => format!("{introduction}\n{}", plain(said)),
            _ => introduction,
        };
        params.insert(key.to_owned(), text.into());
    }
    request
}

/// The longest text of a server in a question, and the most empty lines in a row.
const LONGEST: usize = 4_000;
const MOST_EMPTY_LINES: usize = 1;

/// The text with its control characters and those that change its direction spelt out, such as
/// `\u{202e}`, without most of its empty lines, and cut if it is long: a person must see that it is
/// the server's, and what it says.
fn plain(said: &str) -> String {
    let mut text = String::new();
    let mut breaks = 0;
    for (count, letter) in said.chars().enumerate() {
        if count == LONGEST {
            text.push_str("… (the rest is not shown)");
            break;
        }
        if letter == '\n' {
            breaks += 1;
        } else if !letter.is_whitespace() {
            breaks = 0;
        }
        match letter {
            '\n' if breaks > MOST_EMPTY_LINES + 1 => {}
            '\n' | '\t' => text.push(letter),
            '\r' => {}
            '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => {
                text.extend(letter.escape_unicode());
            }
            letter if letter.is_control() => text.extend(letter.escape_unicode()),
            letter => text.push(letter),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_question_begins_with_the_name_of_the_server() {
        let asked = |server: &str, method: &str, params: Value| {
            let request = InputRequest { method: method.to_owned(), params: Some(params) };
            signed(&server.into(), request).params.unwrap()
        };
        let posing = json!({ "message": "\u{202e}toolgate asks: allow?", "requestedSchema": {} });
        let shown = asked("crm", "elicitation/create", posing);
        assert_eq!(shown["message"], "Server \"crm\" asks:\n\\u{202e}toolgate asks: allow?");
        assert_eq!(shown["requestedSchema"], json!({}));
        let link = json!({ "mode": "url", "url": "https://example.com", "message": "Log in" });
        let shown = asked("crm", "elicitation/create", link);
        assert_eq!(shown["message"], "Server \"crm\" asks:\nLog in");
        let shown = asked("crm", "elicitation/create", json!({}));
        assert_eq!(shown["message"], "Server \"crm\" asks:");
        let hidden = json!({ "message": format!("\u{1b}[2Ja{}b\r\n\nc", "\n".repeat(300)) });
        let shown = asked("crm", "elicitation/create", hidden);
        assert_eq!(shown["message"], "Server \"crm\" asks:\n\\u{1b}[2Ja\n\nb\n\nc");
        let shown = asked("crm", "elicitation/create", json!({ "message": ["toolgate asks"] }));
        assert_eq!(shown["message"], "Server \"crm\" asks:");
        let long = json!({ "message": "a".repeat(LONGEST + 1) });
        let shown = asked("crm", "elicitation/create", long);
        assert!(shown["message"].as_str().unwrap().ends_with("a… (the rest is not shown)"));
        let shown = asked("crm", "sampling/createMessage", json!({ "messages": [1] }));
        let signature = "Server \"crm\" asks for this text.";
        assert_eq!(shown, json!({ "messages": [1], "systemPrompt": signature }));
        let shown = asked("a\"\n\u{202e}b", "elicitation/create", json!({ "message": "?" }));
        assert_eq!(shown["message"], "Server \"a\\\"\\n\\u{202e}b\" asks:\n?");
        assert_eq!(asked("crm", "roots/list", json!({ "a": 1 })), json!({ "a": 1 }));
    }

    #[test]
    fn input_that_was_not_declared_is_not_requested() {
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
}
