//! Results that contain input requests.
//!
//! A modern server that needs input returns `input_required`. It is then called again with the
//! answers and with its `requestState`.

use std::time::Duration;

use futures::future::try_join_all;
use serde_json::Value;
use toolgate_catalog::ServerName;
use toolgate_mcp::{ErrorObject, JsonObject, client::InputRequest, codes, methods};

use crate::input_handler::{InputHandler, can_answer, signed};

/// How often a call may return `input_required`.
pub(crate) const MAX_ROUNDS: u32 = 16;
/// How many input requests one result may contain.
const MAX_INPUT_REQUESTS: usize = 64;
/// The longest address of a page that is named, and how many are.
const MAX_URL_BYTES: usize = 2_000;
const MAX_PAGES: usize = 3;
/// How many characters of a server's text are quoted.
const MAX_CHARACTERS: usize = 200;

/// What a result asks for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct InputRequired {
    requests: Vec<(String, InputRequest)>,
    /// To be sent back as it is.
    state: Option<String>,
}

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum UnansweredInput {
    /// No client can answer it.
    CannotBeAsked(InputRequest),
    /// The client refused.
    Refused(InputRequest, ErrorObject),
    /// Nobody answered in time.
    Late,
}

impl InputRequired {
    /// The input requests of `result`; `None` if it has none. An invalid one is an error with a
    /// reason.
    pub(crate) fn read(result: &Value) -> Option<Result<Self, &'static str>> {
        if result.get("resultType").and_then(Value::as_str) != Some("input_required") {
            return None;
        }
        let state = match result.get("requestState") {
            None | Some(Value::Null) => None,
            Some(Value::String(state)) => Some(state.clone()),
            Some(_) => return Some(Err("its `requestState` is not a text")),
        };
        let requests = match result.get("inputRequests") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Object(requests)) if requests.len() <= MAX_INPUT_REQUESTS => {
                let requests = requests.iter().map(|(key, request)| {
                    let method = request.get("method")?.as_str()?.to_owned();
                    let params = request.get("params").cloned();
                    Some((key.clone(), InputRequest { method, params }))
                });
                match requests.collect() {
                    Some(requests) => requests,
                    None => return Some(Err("one of its `inputRequests` has no method")),
                }
            }
            Some(Value::Object(_)) => return Some(Err("it asks too much at once")),
            Some(_) => return Some(Err("its `inputRequests` are not an object")),
        };
        if requests.is_empty() && state.is_none() {
            return Some(Err("it asks for nothing"));
        }
        Some(Ok(Self { requests, state }))
    }

    /// The visits to pages that a legacy server requires before it takes a request, which it has refused with
    /// this error. `None` if it requires none, or if this client cannot be asked for them.
    pub(crate) fn of_refusal(error: &ErrorObject, handler: &dyn InputHandler) -> Option<Self> {
        if error.code != codes::URL_ELICITATION_REQUIRED {
            return None;
        }
        let required = error.data.as_ref()?.get("elicitations")?.as_array()?;
        if required.is_empty() || required.len() > MAX_INPUT_REQUESTS {
            return None;
        }
        let requests = required.iter().enumerate().map(|(number, elicitation)| {
            let mut params = elicitation.as_object()?.clone();
            params.insert("mode".to_owned(), "url".into());
            let key = params.get("elicitationId").and_then(Value::as_str).map(str::to_owned);
            let key = key.unwrap_or_else(|| format!("elicitation-{number}"));
            let method = methods::ELICITATION_CREATE.to_owned();
            let request = InputRequest { method, params: Some(Value::Object(params)) };
            can_answer(handler.capabilities(), &request).then_some((key, request))
        });
        Some(Self { requests: requests.collect::<Option<_>>()?, state: None })
    }

    /// The ids of the elicitations at a URL. `None` if one has no id.
    pub(crate) fn elicitations(&self) -> Option<Vec<&str>> {
        let params = self.requests.iter().map(|(_, request)| request.params.as_ref());
        params.map(|params| params?.get("elicitationId")?.as_str()).collect()
    }

    /// The pages to be visited, for a text.
    pub(crate) fn pages(&self) -> String {
        visited_pages(self.requests.iter().filter_map(|(_, request)| request.params.as_ref()))
    }

    /// Asks everything at the same time. The client is told that `server` asks, unless another node has told it.
    pub(crate) async fn ask(
        &self,
        server: Option<&ServerName>,
        handler: Option<&dyn InputHandler>,
    ) -> Result<JsonObject, UnansweredInput> {
        // If one request cannot be answered, none is asked.
        let can_be_answered = |request: &InputRequest| {
            handler.is_some_and(|handler| can_answer(handler.capabilities(), request))
        };
        if let Some((_, request)) = self.requests.iter().find(|(_, asked)| !can_be_answered(asked))
        {
            return Err(UnansweredInput::CannotBeAsked(request.clone()));
        }
        let Some(handler) = handler else { return Ok(JsonObject::new()) };
        let asking = self.requests.iter().map(|(key, request)| async move {
            let asked = match server {
                Some(server) => signed(server, request.clone()),
                None => request.clone(),
            };
            match handler.answer_keyed(key, asked).await {
                Ok(answer) => Ok((key.clone(), answer)),
                Err(error) => Err(UnansweredInput::Refused(request.clone(), error)),
            }
        });
        Ok(try_join_all(asking).await?.into_iter().collect())
    }

    /// The pause before the next round, for a server that only wants to be called again.
    pub(crate) fn pause(&self, round: u32) -> Duration {
        if self.requests.is_empty() {
            Duration::from_millis(100) * 2_u32.pow(round.min(5))
        } else {
            Duration::ZERO
        }
    }

    /// Puts the answers of this round into the parameters, and removes those of the last round.
    pub(crate) fn answer(self, params: &mut JsonObject, answers: JsonObject) {
        params.remove("inputResponses");
        params.remove("requestState");
        if !answers.is_empty() {
            params.insert("inputResponses".to_owned(), Value::Object(answers));
        }
        params.extend(self.state.map(|state| ("requestState".to_owned(), state.into())));
    }
}

/// The pages that a person has to visit before the server takes a call that it has refused with this error, for a
/// text. `None` if it requires none.
pub fn required_pages(error: &ErrorObject) -> Option<String> {
    if error.code != codes::URL_ELICITATION_REQUIRED {
        return None;
    }
    let required = error.data.as_ref()?.get("elicitations")?.as_array()?;
    Some(visited_pages(required)).filter(|pages| !pages.is_empty())
}

/// The pages of elicitations at a URL, on one line.
fn visited_pages<'a>(elicitations: impl IntoIterator<Item = &'a Value>) -> String {
    let url = |elicitation: &Value| {
        let url = elicitation.get("url")?.as_str()?;
        let is_plain = |character: char| !character.is_control() && !character.is_whitespace();
        // A part of an address leads elsewhere.
        (url.len() <= MAX_URL_BYTES && url.chars().all(is_plain)).then(|| url.to_owned())
    };
    let urls: Vec<_> = elicitations.into_iter().filter_map(url).take(MAX_PAGES).collect();
    urls.join(" and ")
}

/// A request in a few words.
pub(crate) fn describe(request: &InputRequest) -> String {
    let param = |name: &str| {
        let text = request.params.as_ref()?.get(name)?.as_str()?;
        Some(text.chars().take(MAX_CHARACTERS).collect::<String>())
    };
    let said = |what: &str| match param("message") {
        Some(message) => format!("{what} (\"{message}\")"),
        None => what.to_owned(),
    };
    match request.method.as_str() {
        methods::ELICITATION_CREATE if param("mode").as_deref() == Some("url") => {
            said("a person's visit to a page")
        }
        methods::ELICITATION_CREATE => said("a form to be filled in"),
        methods::SAMPLING_CREATE => "an answer of the client's model".to_owned(),
        methods::ROOTS_LIST => "the client's folders".to_owned(),
        method => format!("`{}`", method.chars().take(MAX_CHARACTERS).collect::<String>()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn input_requests_are_read_or_refused() {
        assert!(InputRequired::read(&json!({"content": []})).is_none());
        assert!(InputRequired::read(&json!({"resultType": "complete"})).is_none());
        let many: JsonObject =
            (0..65).map(|number| (number.to_string(), json!({"method": "roots/list"}))).collect();
        for odd in [
            json!({}),
            json!({"requestState": 1}),
            json!({"inputRequests": [], "requestState": "s"}),
            json!({"inputRequests": {"a": {"params": {}}}}),
            json!({"inputRequests": many}),
        ] {
            let mut result = odd.clone();
            result["resultType"] = json!("input_required");
            assert!(matches!(InputRequired::read(&result), Some(Err(_))), "{odd}");
        }
    }

    #[test]
    fn new_answers_replace_earlier_ones() {
        let asked = |state: Option<&str>| InputRequired {
            requests: Vec::new(),
            state: state.map(str::to_owned),
        };
        let mut params = json!({ "uri": "u" }).as_object().unwrap().clone();
        let answers = json!({ "a": { "n": 1 } }).as_object().unwrap().clone();
        asked(Some("s")).answer(&mut params, answers);
        assert_eq!(
            json!(params),
            json!({"uri": "u", "inputResponses": {"a": {"n": 1}}, "requestState": "s"})
        );
        asked(None).answer(&mut params, JsonObject::new());
        assert_eq!(json!(params), json!({"uri": "u"}));
    }

    #[test]
    fn an_input_request_is_described_in_a_few_words() {
        let words = |method: &str, params: Value| {
            describe(&InputRequest { method: method.to_owned(), params: Some(params) })
        };
        let long = "x".repeat(1000);
        assert_eq!(
            words("elicitation/create", json!({"message": "Who?"})),
            "a form to be filled in (\"Who?\")"
        );
        assert!(words("elicitation/create", json!({"mode": "url", "message": long})).len() < 250);
        assert_eq!(words("odd/method", json!({})), "`odd/method`");
    }
}
