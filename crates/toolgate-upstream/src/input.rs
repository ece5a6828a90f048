//! Results that ask before they answer.
//!
//! A server of 2026-07-28 that needs something of its client answers `input_required`, and is called
//! again with what it asked for and with the state that it wants back.

use std::{collections::BTreeMap, time::Duration};

use futures::future::try_join_all;
use rmcp::model::{ClientRequest, InputResponses};
use serde_json::Value;
use toolgate_mcp::ErrorObject;

use crate::input_handler::{InputHandler, InputRequest, can_answer};

/// How often a call may be answered with questions. A person is not to be asked for ever.
pub(crate) const MAX_ROUNDS: u32 = 16;
/// How many questions may come at once.
const MAX_QUESTIONS: usize = 64;
/// How much of a server's words is repeated.
const MAX_WORDS: usize = 200;

/// What a result asks for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct InputRequired {
    questions: Vec<(String, InputRequest)>,
    /// To be sent back as it is.
    state: Option<String>,
}

/// Why a question has no answer.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// There is nobody who could be asked this.
    CannotBeAsked(InputRequest),
    /// Whoever was asked refused.
    Refused(InputRequest, ErrorObject),
    /// Nobody answered in time.
    Late,
}

impl InputRequired {
    /// What `result` asks for; `None` if it is an answer. What cannot be understood is an error that
    /// says why.
    pub(crate) fn read(result: &Value) -> Option<Result<Self, &'static str>> {
        if result.get("resultType").and_then(Value::as_str) != Some("input_required") {
            return None;
        }
        let state = match result.get("requestState") {
            None | Some(Value::Null) => None,
            Some(Value::String(state)) => Some(state.clone()),
            Some(_) => return Some(Err("its `requestState` is no text")),
        };
        let questions = match result.get("inputRequests") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Object(requests)) if requests.len() <= MAX_QUESTIONS => {
                let questions = requests.iter().map(|(key, request)| {
                    let method = request.get("method")?.as_str()?.to_owned();
                    let params = request.get("params").cloned();
                    Some((key.clone(), InputRequest { method, params }))
                });
                match questions.collect() {
                    Some(questions) => questions,
                    None => return Some(Err("one of its `inputRequests` has no method")),
                }
            }
            Some(Value::Object(_)) => return Some(Err("it asks too much at once")),
            Some(_) => return Some(Err("its `inputRequests` are no object")),
        };
        if questions.is_empty() && state.is_none() {
            return Some(Err("it asks for nothing"));
        }
        Some(Ok(Self { questions, state }))
    }

    /// Asks everything at the same time.
    pub(crate) async fn ask(
        &self,
        respondent: Option<&dyn InputHandler>,
    ) -> Result<InputResponses, Unanswered> {
        // Nobody is asked the first question where the second has nobody to answer it.
        let answered = |question: &InputRequest| {
            respondent.is_some_and(|respondent| can_answer(respondent.capabilities(), question))
        };
        if let Some((_, question)) = self.questions.iter().find(|(_, asked)| !answered(asked)) {
            return Err(Unanswered::CannotBeAsked(question.clone()));
        }
        let Some(respondent) = respondent else { return Ok(InputResponses::new()) };
        let asking = self.questions.iter().map(|(key, question)| async move {
            match respondent.answer(question.clone()).await {
                Ok(answer) => Ok((key.clone(), answer)),
                Err(error) => Err(Unanswered::Refused(question.clone(), error)),
            }
        });
        Ok(try_join_all(asking).await?.into_iter().collect::<BTreeMap<_, _>>())
    }

    /// A server that asks for nothing but to be called again is given time.
    pub(crate) fn pause(&self, round: u32) -> Duration {
        if self.questions.is_empty() {
            Duration::from_millis(100) * 2_u32.pow(round.min(5))
        } else {
            Duration::ZERO
        }
    }

    /// Puts the answers of this round into the request, in the place of those of the last.
    pub(crate) fn answer(self, request: &mut ClientRequest, answers: InputResponses) {
        let answers = (!answers.is_empty()).then_some(answers);
        match request {
            ClientRequest::CallToolRequest(call) => {
                call.params.input_responses = answers;
                call.params.request_state = self.state;
            }
            ClientRequest::CustomRequest(custom) => {
                let params = custom.params.get_or_insert_with(|| Value::Object(JsonMap::new()));
                let Some(params) = params.as_object_mut() else { return };
                params.remove("inputResponses");
                params.remove("requestState");
                let answers = answers.map(|answers| answers.into_iter().collect());
                params.extend(answers.map(|answers| ("inputResponses".to_owned(), answers)));
                params.extend(self.state.map(|state| ("requestState".to_owned(), state.into())));
            }
            _ => {}
        }
    }
}

/// A question in a few words.
pub(crate) fn in_words(question: &InputRequest) -> String {
    let param = |name: &str| {
        let text = question.params.as_ref()?.get(name)?.as_str()?;
        Some(text.chars().take(MAX_WORDS).collect::<String>())
    };
    let said = |what: &str| match param("message") {
        Some(message) => format!("{what} (\"{message}\")"),
        None => what.to_owned(),
    };
    match question.method.as_str() {
        "elicitation/create" if param("mode").as_deref() == Some("url") => {
            said("a person's visit to a page")
        }
        "elicitation/create" => said("a form to be filled in"),
        "sampling/createMessage" => "words of the client's model".to_owned(),
        "roots/list" => "the client's folders".to_owned(),
        method => format!("`{}`", method.chars().take(MAX_WORDS).collect::<String>()),
    }
}

type JsonMap = serde_json::Map<String, Value>;

#[cfg(test)]
mod tests {
    use rmcp::model::CustomRequest;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_asked_is_read_or_said_to_be_unreadable() {
        assert!(InputRequired::read(&json!({"content": []})).is_none());
        assert!(InputRequired::read(&json!({"resultType": "complete"})).is_none());
        let many: JsonMap =
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
    fn answers_take_the_place_of_those_before() {
        let asked = |state: Option<&str>| InputRequired {
            questions: Vec::new(),
            state: state.map(str::to_owned),
        };
        let mut request =
            ClientRequest::CustomRequest(CustomRequest::new("x", Some(json!({"uri": "u"}))));
        asked(Some("s")).answer(&mut request, [("a".to_owned(), json!({"n": 1}))].into());
        let params = |request: &ClientRequest| match request {
            ClientRequest::CustomRequest(custom) => custom.params.clone().unwrap(),
            _ => panic!(),
        };
        assert_eq!(
            params(&request),
            json!({"uri": "u", "inputResponses": {"a": {"n": 1}}, "requestState": "s"})
        );
        asked(None).answer(&mut request, InputResponses::new());
        assert_eq!(params(&request), json!({"uri": "u"}));
    }

    #[test]
    fn a_question_is_told_in_a_few_words() {
        let words = |method: &str, params: Value| {
            in_words(&InputRequest { method: method.to_owned(), params: Some(params) })
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
