//! The tools that ask a client of 2026-07-28: by a result that says what is needed, and a second call that brings it.

use std::hash::{BuildHasher as _, RandomState};

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities,
    GetPromptRequestParams, GetPromptResponse, InputRequiredResult, InputResponses,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

use super::handler::{ConformanceServer, typed};
use super::plain::text;
use super::resources::messages;

/// Answers a call, if it is of such a tool.
pub(super) fn call(
    server: &ConformanceServer,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<Option<CallToolResponse>, ErrorData> {
    let Some(tool) = request.name.strip_prefix("test_") else { return Ok(None) };
    let given = request.input_responses.as_ref();
    let round = match request.request_state.as_deref() {
        None => 0,
        Some(state) => server.round(state)?,
    };
    let answer = match tool {
        "missing_capability" => return Err(missing("sampling")),
        "streaming_elicitation" => ask(
            context,
            json!({ "confirm": elicitation("Please confirm", "ok", "boolean") }),
            None,
        )?,
        "input_required_result_elicitation" => match accepted(given, "user_name", "name") {
            Some(name) => said(&format!("Hello, {name}!"))?,
            None => ask(
                context,
                json!({ "user_name": elicitation("What is your name?", "name", "string") }),
                None,
            )?,
        },
        "input_required_result_sampling" => {
            if let Some(answer) = response(given, "capital_question") {
                said(answer["content"]["text"].as_str().unwrap_or_default())?
            } else {
                let question = sampling("What is the capital of France?", 100);
                ask(context, json!({ "capital_question": question }), None)?
            }
        }
        "input_required_result_list_roots" => match response(given, "client_roots") {
            Some(answer) => said(&format!("The roots are {}.", answer["roots"]))?,
            None => ask(context, json!({ "client_roots": roots() }), None)?,
        },
        "input_required_result_request_state" | "input_required_result_tampered_state" => {
            if round == 1 && response(given, "confirm").is_some() {
                said("state-ok")?
            } else {
                let questions =
                    json!({ "confirm": elicitation("Please confirm", "ok", "boolean") });
                ask(context, questions, Some(server.state(1)))?
            }
        }
        "input_required_result_multiple_inputs" => {
            let keys = ["user_name", "greeting", "client_roots"];
            if round == 1 && keys.iter().all(|key| response(given, key).is_some()) {
                said("All is there.")?
            } else {
                let questions = json!({
                    "user_name": elicitation("What is your name?", "name", "string"),
                    "greeting": sampling("Generate a greeting", 50),
                    "client_roots": roots(),
                });
                ask(context, questions, Some(server.state(1)))?
            }
        }
        "input_required_result_multi_round" => match round {
            1 if response(given, "step1").is_some() => {
                let question =
                    elicitation("Step 2: What is your favorite color?", "color", "string");
                ask(context, json!({ "step2": question }), Some(server.state(2)))?
            }
            2 if response(given, "step2").is_some() => said("Both are there.")?,
            _ => {
                let question = elicitation("Step 1: What is your name?", "name", "string");
                ask(context, json!({ "step1": question }), Some(server.state(1)))?
            }
        },
        "input_required_result_capabilities" => capable(context)?,
        _ => return Ok(None),
    };
    Ok(Some(answer))
}

/// Answers for the prompt that needs something first.
pub(super) fn prompt(
    request: &GetPromptRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<GetPromptResponse, ErrorData> {
    if let Some(about) = accepted(request.input_responses.as_ref(), "user_context", "context") {
        return Ok(messages(vec![text(&format!("Use this context: {about}"))])?.into());
    }
    let question = elicitation("What context should the prompt use?", "context", "string");
    Ok(needed(context, json!({ "user_context": question }), None)?.into())
}

/// The question for one property.
pub(super) fn elicitation(message: &str, property: &str, kind: &str) -> Value {
    let mut properties = json!({});
    properties[property] = json!({ "type": kind });
    let schema = json!({ "type": "object", "properties": properties, "required": [property] });
    let params = json!({ "mode": "form", "message": message, "requestedSchema": schema });
    json!({ "method": "elicitation/create", "params": params })
}

/// The answer of a person who accepted: one property of it.
pub(super) fn accepted(
    given: Option<&InputResponses>,
    key: &str,
    property: &str,
) -> Option<String> {
    let answer = response(given, key)?;
    (answer["action"] == "accept").then_some(())?;
    answer["content"][property].as_str().map(str::to_owned)
}

/// What is needed before the call can go on.
pub(super) fn ask(
    context: &RequestContext<RoleServer>,
    questions: Value,
    state: Option<String>,
) -> Result<CallToolResponse, ErrorData> {
    Ok(needed(context, questions, state)?.into())
}

impl ConformanceServer {
    /// A new state, which stands for a round.
    fn state(&self, round: u32) -> String {
        let mut states = self.shared.states.lock();
        // Unguessable, so that a state that was tampered with is one that was never given out.
        let random = || RandomState::new().hash_one(states.len());
        let state = format!("{:016x}{:016x}", random(), random());
        states.insert(state.clone(), round);
        state
    }

    fn round(&self, state: &str) -> Result<u32, ErrorData> {
        let round = self.shared.states.lock().get(state).copied();
        round.ok_or_else(|| {
            ErrorData::invalid_params("this request state was not given out here", None)
        })
    }
}

fn needed(
    context: &RequestContext<RoleServer>,
    questions: Value,
    state: Option<String>,
) -> Result<InputRequiredResult, ErrorData> {
    let able = capabilities(context);
    for question in questions.as_object().into_iter().flat_map(|questions| questions.values()) {
        let needs = needs(question);
        if able[needs].is_null() {
            return Err(missing(needs));
        }
    }
    Ok(InputRequiredResult::new(Some(typed(questions)?), state))
}

/// Asks for everything that the client says it can do.
fn capable(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    let able = capabilities(context);
    let all = json!({
        "user_name": elicitation("What is your name?", "name", "string"),
        "greeting": sampling("Generate a greeting", 50),
        "client_roots": roots(),
    });
    let Value::Object(mut questions) = all else { return said("Nothing is asked.") };
    questions.retain(|_, question| !able[needs(question)].is_null());
    if questions.is_empty() {
        said("Nothing can be asked.")
    } else {
        ask(context, Value::Object(questions), None)
    }
}

/// The capability that a question needs.
fn needs(question: &Value) -> &'static str {
    match question["method"].as_str() {
        Some("sampling/createMessage") => "sampling",
        Some("roots/list") => "roots",
        _ => "elicitation",
    }
}

fn capabilities(context: &RequestContext<RoleServer>) -> Value {
    serde_json::to_value(context.client_capabilities().unwrap_or_default()).unwrap_or_default()
}

fn missing(capability: &str) -> ErrorData {
    let mut required = json!({});
    required[capability] = json!({});
    match serde_json::from_value::<ClientCapabilities>(required) {
        Ok(required) => ErrorData::missing_required_client_capability(required),
        Err(error) => ErrorData::internal_error(error.to_string(), None),
    }
}

fn response<'a>(given: Option<&'a InputResponses>, key: &str) -> Option<&'a Value> {
    given?.get(key).filter(|answer| answer.is_object())
}

fn sampling(prompt: &str, tokens: u32) -> Value {
    let message = json!({ "role": "user", "content": text(prompt) });
    json!({ "method": "sampling/createMessage", "params": { "messages": [message], "maxTokens": tokens } })
}

fn roots() -> Value {
    json!({ "method": "roots/list", "params": {} })
}

fn said(words: &str) -> Result<CallToolResponse, ErrorData> {
    Ok(CallToolResult::success(typed(json!([text(words)]))?).into())
}
