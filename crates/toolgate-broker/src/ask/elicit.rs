//! The question as a form that an MCP client shows.

use serde_json::{Value, json};
use toolgate_policy::ArgumentConditions;
use toolgate_upstream::{InputHandler, InputRequest, can_answer};

use super::{Extent, Inquiry, Lasts, PersonAnswer};

const ANSWER: &str = "answer";
const THESE: &str = "onlyTheseArguments";
const WHERE: &str = "onlyWhere";
const DENY: &str = "deny";

/// Asks the client's person. `None` where the client cannot be asked, or failed to.
pub(crate) async fn elicit(
    input_handler: &dyn InputHandler,
    inquiry: &Inquiry,
) -> Option<PersonAnswer> {
    let question =
        InputRequest { method: "elicitation/create".to_owned(), params: Some(form(inquiry)) };
    if !can_answer(input_handler.capabilities(), &question) {
        return None;
    }
    let answer = input_handler.answer(question).await.ok()?;
    Some(read(inquiry, &answer))
}

fn form(inquiry: &Inquiry) -> Value {
    let choices: Vec<&str> = inquiry.choices().map(word).chain([DENY]).collect();
    json!({
        "message": inquiry.to_string(),
        "requestedSchema": {
            "type": "object",
            "properties": {
                ANSWER: {
                    "type": "string",
                    "title": "Allow this call?",
                    "description": "A yes is for this caller and this server alone",
                    "enum": choices,
                },
                THESE: {
                    "type": "boolean",
                    "title": "Only with these arguments",
                    "default": false,
                },
                WHERE: {
                    "type": "string",
                    "title": "Only where",
                    "description": "Conditions that the arguments of later calls must fulfil, such as \
                                    path=src/* or amount less 100; several with ; between",
                },
            },
            "required": [ANSWER],
        },
    })
}

/// A form that was not accepted, or holds something else than it asked for, is a no.
fn read(inquiry: &Inquiry, answer: &Value) -> PersonAnswer {
    if answer.get("action").and_then(Value::as_str) != Some("accept") {
        return PersonAnswer::Deny;
    }
    let field = |name: &str| answer.get("content").and_then(|content| content.get(name));
    let said = field(ANSWER).and_then(Value::as_str);
    let lasts = inquiry.choices().find(|lasts| said == Some(word(*lasts)));
    let these = field(THESE).and_then(Value::as_bool).unwrap_or_default();
    let conditions = field(WHERE).and_then(Value::as_str).unwrap_or_default().trim();
    let extent = match conditions {
        _ if these => Some(Extent::These),
        "" => Some(Extent::Any),
        line => ArgumentConditions::from_line(line).ok().map(Extent::Where),
    };
    match (lasts, extent) {
        (Some(lasts), Some(extent)) => PersonAnswer::Allow { lasts, extent },
        _ => PersonAnswer::Deny,
    }
}

fn word(lasts: Lasts) -> &'static str {
    match lasts {
        Lasts::Once => "allow once",
        Lasts::Run => "allow for this run",
        Lasts::Session => "allow for this session",
        Lasts::Always => "allow always",
    }
}
