//! The input requests of a server during a request.

use serde_json::{Map, Value, json};

use crate::Builtin;
use crate::engine::{Generation, Request};
use crate::reply::{Reply, code};
use crate::time::deadline;

/// The most rounds of questions.
const MOST_ROUNDS: usize = 100_000;

/// Sends the input requests of the tool, round after round, and returns the answers.
///
/// A legacy server sends requests. A modern server returns `input_required` and keeps the answers
/// so far in `requestState`.
pub(crate) async fn ask(builtin: Builtin, request: &Request) -> Reply {
    let arguments = &request.params["arguments"];
    let rounds = arguments["rounds"].as_u64().unwrap_or(1);
    let rounds = usize::try_from(rounds).unwrap_or(MOST_ROUNDS).clamp(1, MOST_ROUNDS);
    match request.generation {
        Generation::Legacy => {
            let mut answers = Vec::new();
            for round in 1..=rounds {
                let questions = questions(builtin, round, &arguments["with"]);
                match put(request, questions).await {
                    Some(round) => answers.push(round),
                    None => return Reply::failure("The client did not answer."),
                }
            }
            Reply::structured(&json!({ "answers": answers }))
        }
        Generation::Modern => {
            let mut answers = match learned(request) {
                Ok(answers) => answers,
                Err(refusal) => return refusal,
            };
            if let Some(responses) = request.params.get("inputResponses") {
                answers.push(responses.clone());
            }
            if answers.len() >= rounds {
                return Reply::structured(&json!({ "answers": answers }));
            }
            let questions = questions(builtin, answers.len() + 1, &arguments["with"]);
            Reply::Result(json!({
                "resultType": "input_required",
                "inputRequests": questions,
                "requestState": json!(answers).to_string(),
            }))
        }
    }
}

/// Sends the input request in the parameters, and returns the answer.
pub(crate) async fn ask_anything(request: &Request) -> Reply {
    let question = Map::from_iter([("asked".to_owned(), request.params["ask"].clone())]);
    match (request.generation, request.params.get("inputResponses")) {
        (Generation::Legacy, _) => match put(request, question).await {
            Some(answers) => Reply::Result(answers["asked"].clone()),
            None => Reply::error(code::SESSION_PROBLEM, "The client did not answer."),
        },
        (Generation::Modern, Some(responses)) => Reply::Result(responses["asked"].clone()),
        (Generation::Modern, None) => Reply::Result(json!({
            "resultType": "input_required",
            "inputRequests": question,
            "requestState": "waiting",
        })),
    }
}

/// The answers of earlier rounds, from the `requestState`.
fn learned(request: &Request) -> Result<Vec<Value>, Reply> {
    let state = request.params.get("requestState");
    if state.is_none() && request.params.get("inputResponses").is_none() {
        return Ok(Vec::new());
    }
    state
        .and_then(Value::as_str)
        .and_then(|state| serde_json::from_str(state).ok())
        .ok_or_else(|| Reply::error(code::INVALID_PARAMS, "requestState is not what was sent"))
}

/// The questions of one round, by key.
fn questions(builtin: Builtin, round: usize, with: &Value) -> Map<String, Value> {
    let form = || {
        let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
        let params =
            json!({ "message": format!("Who are you? ({round})"), "requestedSchema": schema });
        ("form", "elicitation/create", params)
    };
    let url = || {
        let params = json!({
            "mode": "url",
            "message": format!("Please sign in. ({round})"),
            "url": "https://example.com/sign-in",
            "elicitationId": format!("visit-{round}"),
        });
        ("url", "elicitation/create", params)
    };
    let model = || {
        let text = json!({ "type": "text", "text": format!("Say hello. ({round})") });
        let messages = json!([{ "role": "user", "content": text }]);
        ("model", "sampling/createMessage", json!({ "messages": messages, "maxTokens": 10 }))
    };
    let asked = match builtin {
        Builtin::AskUrl => vec![url()],
        Builtin::AskModel => vec![model()],
        Builtin::AskAll => vec![form(), model(), ("roots", "roots/list", json!({}))],
        _ => vec![form()],
    };
    let extra = with.as_object().cloned().unwrap_or_default();
    let question = |(key, method, params): (&str, &str, Value)| {
        let params: Map<String, Value> = params
            .as_object()
            .cloned()
            .unwrap_or_default()
            .into_iter()
            .chain(extra.clone())
            .collect();
        (key.to_owned(), json!({ "method": method, "params": params }))
    };
    asked.into_iter().map(question).collect()
}

/// Sends questions as requests of the server's own, all at once. A refusal is `{"error": …}`.
async fn put(request: &Request, questions: Map<String, Value>) -> Option<Value> {
    let waiting: Vec<_> = questions
        .into_iter()
        .map(|(key, question)| {
            let method = question["method"].as_str().unwrap_or_default();
            (key, request.peer.ask(&request.outbox, method, question.get("params")))
        })
        .collect();
    let mut answers = Map::new();
    for (key, answer) in waiting {
        let answer = tokio::time::timeout(deadline(), answer).await.ok()?.ok()?;
        let said = match answer.get("error") {
            Some(error) => json!({ "error": error }),
            None => answer["result"].clone(),
        };
        answers.insert(key, said);
    }
    Some(Value::Object(answers))
}
