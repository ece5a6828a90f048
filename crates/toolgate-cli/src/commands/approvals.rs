//! Calls that wait for a person.

use std::time::Duration;

use serde_json::{Value, json};
use toolgate_broker::{AnswerError, PersonAnswer, QueuedCall};
use toolgate_store::{Journal, Store};

use crate::{decisions, failure::Failure};

/// Answers a question. An approval becomes a grant, which the returned text describes.
pub(crate) fn answer(
    store: &Store,
    journal: &dyn Journal,
    call: &QueuedCall,
    answer: &PersonAnswer,
    expires: Option<Duration>,
) -> Result<String, Failure> {
    call.answer(store, journal, answer, &decisions::caller(), expires).map_err(
        |error| match error {
            AnswerError::NoRun => Failure::usage(error.to_string()).hint("use --for session"),
            AnswerError::Answered(_) => Failure::new(error.to_string()),
            AnswerError::Journal(error) => error.into(),
            AnswerError::Audit(error) => error.into(),
        },
    )
}

/// The call as data.
pub(crate) fn data(call: &QueuedCall) -> Value {
    let QueuedCall { approval, request } = call;
    let (reference, created) = (approval.reference(), approval.created);
    json!({
        "reference": reference.as_str(), "kind": "call", "created": created, "question": request,
    })
}
