//! Runs the scripts of the demo, and computes the cost of the same calls one by one.

use serde::Serialize;
use serde_json::{Value, json};
use toolgate_host::ToolSession;

use super::{Step, exchange};
use crate::failure::Failure;

/// A completed script and its savings.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ScriptRun {
    pub(super) task: &'static str,
    pub(super) language: &'static str,
    #[serde(skip)]
    pub(super) code: &'static str,
    pub(super) answer: String,
    /// Calls that it made.
    pub(super) calls: usize,
    /// The cost of the script and its result in the model's context.
    pub(super) tokens: u64,
    /// The cost of the same calls and results, one by one.
    pub(super) direct_tokens: u64,
}

/// Runs both scripts, and makes their calls one by one as well, to count what that costs.
pub(super) async fn run(session: &ToolSession) -> Result<Vec<ScriptRun>, Failure> {
    let tickets = script(
        session,
        "One ticket for each distinct error of the last hour",
        "typescript",
        toolgate_demo::TICKETS_SCRIPT,
        tickets_directly(session).await?,
    );
    let tickets = tickets.await?;
    let budget = script(
        session,
        "Who spent more than their travel budget in Q3?",
        "python",
        toolgate_demo::BUDGET_SCRIPT,
        budget_directly(session).await?,
    );
    Ok(vec![tickets, budget.await?])
}

async fn script(
    session: &ToolSession,
    task: &'static str,
    language: &'static str,
    code: &'static str,
    direct_tokens: u64,
) -> Result<ScriptRun, Failure> {
    let arguments = json!({ "code": code, "language": language });
    let request = format!("run_code({arguments})");
    let Step { result, answer, tokens, .. } =
        exchange(session, request, "run_code", arguments).await?;
    let calls = result.pointer("/_meta/toolgate~1run/calls").and_then(Value::as_array);
    let calls = calls.map_or(0, Vec::len);
    Ok(ScriptRun { task, language, code, answer, calls, tokens, direct_tokens })
}

/// Calls made one by one, with their total cost.
struct Direct<'a> {
    session: &'a ToolSession,
    tokens: u64,
}

impl Direct<'_> {
    async fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, Failure> {
        let request = format!("{tool}({arguments})");
        let arguments = json!({ "name": tool, "arguments": arguments });
        let Step { answer, tokens, .. } =
            exchange(self.session, request, "call_tool", arguments).await?;
        self.tokens += tokens;
        Ok(serde_json::from_str(&answer).unwrap_or(Value::String(answer)))
    }
}

async fn tickets_directly(session: &ToolSession) -> Result<u64, Failure> {
    let mut direct = Direct { session, tokens: 0 };
    let logs = direct.call("logging_getLogs", json!({ "level": "error", "since": "1h" })).await?;
    for message in distinct(&logs, "message") {
        let count = rows(&logs).iter().filter(|entry| entry["message"] == message).count();
        let body = format!("Logged {count} times in the last hour.");
        let arguments = json!({ "title": message, "body": body, "labels": ["bug"] });
        direct.call("ticketing_createIssue", arguments).await?;
    }
    Ok(direct.tokens)
}

async fn budget_directly(session: &ToolSession) -> Result<u64, Failure> {
    let mut direct = Direct { session, tokens: 0 };
    let team = direct.call("get_team_members", json!({ "department": "engineering" })).await?;
    for level in distinct(&team, "level") {
        direct.call("get_budget_by_level", json!({ "level": level })).await?;
    }
    for member in rows(&team) {
        let arguments = json!({ "employee_id": member["id"], "quarter": "Q3" });
        direct.call("get_expenses", arguments).await?;
    }
    Ok(direct.tokens)
}

fn rows(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

/// The distinct texts of a field, in order.
fn distinct<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    let mut texts = Vec::new();
    for text in rows(list).iter().filter_map(|row| row.get(field)?.as_str()) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}
