//! The tools that run as tasks, where the client knows of tasks.

use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, CreateTaskResult,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::task_manager::{TaskContext, TaskExit, TaskOptions};
use serde_json::{Value, json};

use super::handler::{ConformanceServer, typed};
use super::inputs::{accepted, ask, elicitation};
use super::plain::text;

/// How long a job works before it fails.
const MOMENT: Duration = Duration::from_millis(500);

/// What a task does.
#[derive(Debug, Clone)]
enum Job {
    Sleep(Duration, String),
    Fail,
    Break,
    Confirm(String),
    AskTwice,
    Say(String),
}

/// Answers a call, if it is of such a tool.
pub(super) async fn call(
    server: &ConformanceServer,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<Option<CallToolResponse>, ErrorData> {
    let arguments = Value::Object(request.arguments.clone().unwrap_or_default());
    let string = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
    let able = context.client_capabilities().is_some_and(|able| able.supports_tasks());
    let job = match request.name.as_ref() {
        "greet" => return Ok(Some(said(&format!("Hello, {}!", string("name")))?.into())),
        "slow_compute" => {
            let seconds = arguments["seconds"].as_f64().unwrap_or_default().clamp(0.0, 60.0);
            Job::Sleep(Duration::from_secs_f64(seconds), string("label"))
        }
        "failing_job" | "test_tool_with_task" if !able => return Err(tasks_required()),
        "failing_job" => Job::Fail,
        "protocol_error_job" => Job::Break,
        "confirm_delete" => Job::Confirm(string("filename")),
        "multi_input" => Job::AskTwice,
        "test_tool_with_task" => {
            let given = request.input_responses.as_ref();
            let Some(name) = accepted(given, "user_name", "name") else {
                let question = elicitation("What is your name?", "name", "string");
                return ask(context, json!({ "user_name": question }), None).map(Some);
            };
            Job::Say(format!("Hello, {name}!"))
        }
        _ => return Ok(None),
    };
    if !able {
        return at_once(job).await.map(|result| Some(result.into()));
    }
    let task = server.shared.tasks.spawn(TaskOptions::new(), |task| Box::pin(run(job, task)));
    Ok(Some(CreateTaskResult::new(task).into()))
}

async fn run(job: Job, task: TaskContext) -> Result<CallToolResult, TaskExit> {
    match job {
        Job::Sleep(time, label) => {
            tokio::select! {
                () = task.cancelled() => return Err(TaskExit::Cancelled),
                () = tokio::time::sleep(time) => {}
            }
            Ok(said(&format!("Computed {label}."))?)
        }
        Job::Fail => {
            tokio::time::sleep(MOMENT).await;
            Ok(CallToolResult::error(typed(json!([text("The job has failed.")]))?))
        }
        Job::Break => {
            tokio::time::sleep(MOMENT).await;
            Err(ErrorData::internal_error("the job has broken", None).into())
        }
        Job::Confirm(name) => {
            let question = elicitation(&format!("Delete {name}?"), "confirm", "boolean");
            let answer = task.request_input("confirm", typed(question)?).await?;
            let done = answer["action"] == "accept";
            Ok(said(if done { "Deleted." } else { "Kept." })?)
        }
        Job::AskTwice => {
            let first = typed(elicitation("What is your name?", "name", "string"))?;
            let second = typed(elicitation("What is your age?", "age", "integer"))?;
            futures::try_join!(
                task.request_input("name", first),
                task.request_input("age", second)
            )?;
            Ok(said("Both are there.")?)
        }
        Job::Say(words) => Ok(said(&words)?),
    }
}

/// Does a job for a client that knows nothing of tasks: it is not asked anything.
async fn at_once(job: Job) -> Result<CallToolResult, ErrorData> {
    match job {
        Job::Sleep(time, label) => {
            tokio::time::sleep(time).await;
            said(&format!("Computed {label}."))
        }
        Job::Break => Err(ErrorData::internal_error("the job has broken", None)),
        Job::Fail | Job::Confirm(_) | Job::AskTwice => {
            Ok(CallToolResult::error(typed(json!([text("Nobody can be asked.")]))?))
        }
        Job::Say(words) => said(&words),
    }
}

fn said(words: &str) -> Result<CallToolResult, ErrorData> {
    Ok(CallToolResult::success(typed(json!([text(words)]))?))
}

fn tasks_required() -> ErrorData {
    ErrorData::missing_required_client_capability(
        ClientCapabilities::builder().enable_tasks().build(),
    )
}
