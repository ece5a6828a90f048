//! Calls that a server makes a task of. The call waits for the end of the task.

use std::{borrow::Cow, collections::HashSet, time::Duration};

use serde_json::{Value, json};
use tokio::time::Instant;
use toolgate_mcp::{Era, ErrorObject, JsonObject, client::ServerLimits, extensions, methods};

use super::{ASKS_WITHOUT_END, CallFailure, CallOptions, Connection, Progress};
use crate::{
    calls::{OpenCall, PendingCall},
    error::CallError,
    input_required::{InputRequired, MAX_ROUNDS},
};

/// A task of a server, as it was last seen.
#[derive(Debug)]
pub(super) struct ServerTask {
    id: String,
    status: TaskStatus,
    pause: Duration,
    message: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TaskStatus {
    Working,
    InputRequired,
    Completed,
    Failed,
    Cancelled,
}

/// Between two looks at a task, if the server does not say how long.
const DEFAULT_PAUSE: Duration = Duration::from_millis(500);
/// What a server may say. It must not make its callers wait long after the end, nor look all the time.
const PAUSES: [Duration; 2] = [Duration::from_millis(20), Duration::from_secs(10)];
/// The longest id of a task.
const MAX_ID_BYTES: usize = 4_096;
/// How long a server may take to cancel a task.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

/// Whether a result of a modern server stands for a task.
fn is_task(result: &Value) -> bool {
    result.get("resultType").is_some_and(|kind| kind == "task")
}

impl ServerTask {
    fn read(task: &Value) -> Option<Self> {
        let id = task.get("taskId")?.as_str().filter(|id| id.len() <= MAX_ID_BYTES)?;
        let status = match task.get("status")?.as_str()? {
            "working" | "submitted" => TaskStatus::Working,
            "input_required" => TaskStatus::InputRequired,
            "completed" => TaskStatus::Completed,
            "failed" => TaskStatus::Failed,
            "cancelled" => TaskStatus::Cancelled,
            _ => return None,
        };
        let pause = task.get("pollIntervalMs").or_else(|| task.get("pollInterval"));
        let pause = pause.and_then(Value::as_u64).map(Duration::from_millis);
        Some(Self {
            id: id.to_owned(),
            status,
            pause: pause.unwrap_or(DEFAULT_PAUSE).clamp(PAUSES[0], PAUSES[1]),
            message: task.get("statusMessage").and_then(Value::as_str).map(str::to_owned),
        })
    }
}

impl Connection {
    /// Whether the server may make tasks of calls.
    pub(super) fn has_tasks(&self) -> bool {
        let capabilities = &self.handshake.capabilities;
        let has = |path: &[&str]| {
            let (first, rest) = path.split_first()?;
            let found = rest.iter().try_fold(capabilities.get(*first)?, |at, key| at.get(*key))?;
            found.is_object().then_some(())
        };
        match self.handshake.era {
            Era::Modern => has(&[extensions::CAPABILITY, extensions::TASKS]).is_some(),
            Era::Legacy => has(&["tasks", "requests", "tools", "call"]).is_some(),
        }
    }

    /// Lets the server make a task of a call, where it may. A legacy server is asked for one only if the tool
    /// needs it: a modern server decides by itself.
    pub(super) fn add_task(&self, params: &mut Cow<'_, JsonObject>, options: &CallOptions) -> bool {
        let has_tasks = self.has_tasks();
        match self.handshake.era {
            // It may make a task also without saying so before.
            Era::Modern => true,
            Era::Legacy => {
                let is_task = has_tasks && options.needs_task;
                if is_task {
                    params.to_mut().insert("task".to_owned(), json!({}));
                }
                is_task
            }
        }
    }

    /// The task that a result stands for. An error if it stands for one that cannot be read.
    pub(super) fn task_of(&self, result: &Value) -> Result<Option<ServerTask>, &'static str> {
        let task = match self.handshake.era {
            Era::Modern => Some(result).filter(|result| is_task(result)),
            Era::Legacy => result.get("task"),
        };
        let Some(task) = task else { return Ok(None) };
        ServerTask::read(task).map(Some).ok_or("its id or its status is not valid")
    }

    pub(super) fn unusable_task(&self, about: &str, why: &str) -> CallFailure {
        self.transport(about, format!("it made a task of the call, but {why}"))
    }

    /// Waits for the result of a task, within the limits of the call. A call that ends before the task does
    /// cancels it.
    pub(super) async fn follow(
        &self,
        about: &str,
        (task, call): (ServerTask, OpenCall),
        options: &CallOptions,
        limits: ServerLimits,
        person_time: Duration,
    ) -> Result<Value, CallFailure> {
        if let Some(became_task) = &options.became_task {
            became_task.notify_one();
        }
        let id = task.id.clone();
        let options = CallOptions { send_check: None, ..options.clone() };
        let followed = self.state.add_task(&id, call);
        let call = &*followed.call.call;
        let mut following =
            Following { connection: self, about, options: &options, limits, person_time, call };
        let outcome = following.result(task).await;
        let outcome = outcome.map_err(|failure| match failure {
            // The task exists, so the call must not be repeated.
            CallFailure::NotSent => self.lost(about),
            failed @ CallFailure::Failed(_) => failed,
        });
        if let Err(CallFailure::Failed(error)) = &outcome
            && !matches!(error, CallError::Refused { .. })
        {
            self.cancel_task(&id, &options);
        }
        outcome
    }

    /// Tells the server that nobody waits for a task any more.
    fn cancel_task(&self, id: &str, options: &CallOptions) {
        let mut params = JsonObject::new();
        params.insert("taskId".to_owned(), json!(id));
        // No call has the key 0.
        self.add_meta(&mut params, 0, options);
        let params = Some(Value::Object(params));
        let Ok(mut request) = self.raw.begin(Value::Null, methods::TASKS_CANCEL, params) else {
            return;
        };
        let hold = options.hold.clone();
        tokio::spawn(async move {
            let _ = tokio::time::timeout(CANCEL_TIMEOUT, request.response()).await;
            drop(hold);
        });
    }
}

/// A call that waits for the end of a task.
struct Following<'a> {
    connection: &'a Connection,
    about: &'a str,
    options: &'a CallOptions,
    /// What is left of the limits of the call.
    limits: ServerLimits,
    person_time: Duration,
    /// The call, for what a legacy server asks.
    call: &'a PendingCall,
}

impl Following<'_> {
    async fn result(&mut self, mut task: ServerTask) -> Result<Value, CallFailure> {
        let (id, mut reports, mut said) = (task.id.clone(), 0, None);
        let mut asked = HashSet::new();
        let mut rounds = 0;
        // A new task has no result yet, whatever its status.
        self.pause(task.pause).await?;
        loop {
            let mut seen = self.send(methods::TASKS_GET, &id, None).await?;
            let known = ServerTask::read(&seen).filter(|seen| seen.id == id);
            task = known.ok_or_else(|| self.unusable("the state of its task cannot be read"))?;
            if let Some(progress) = self.options.progress.as_ref().filter(|_| task.message != said)
            {
                reports += 1;
                let _ = progress.try_send(Progress::new(reports, task.message.clone()));
                said.clone_from(&task.message);
            }
            let is_legacy = self.connection.handshake.era == Era::Legacy;
            match task.status {
                TaskStatus::Working => {}
                // It is answered when the task has ended, and asks for input on its way.
                _ if is_legacy => return self.send(methods::TASKS_RESULT, &id, None).await,
                TaskStatus::InputRequired => {
                    if let Some(answers) = self.answers(&seen, &mut asked).await? {
                        rounds += 1;
                        if rounds > MAX_ROUNDS {
                            return Err(self.unusable(ASKS_WITHOUT_END));
                        }
                        self.send(methods::TASKS_UPDATE, &id, Some(answers)).await?;
                    }
                }
                TaskStatus::Completed => {
                    let result = seen.get_mut("result").map(Value::take);
                    let result = result.filter(|result| result.is_object() && !is_task(result));
                    return result
                        .ok_or_else(|| self.unusable("its task has ended without a result"));
                }
                TaskStatus::Failed | TaskStatus::Cancelled => return Err(self.refused(&seen)),
            }
            self.pause(task.pause).await?;
        }
    }

    /// The answers to the input requests that were not asked before; `None` if there are none.
    async fn answers(
        &mut self,
        seen: &Value,
        asked: &mut HashSet<String>,
    ) -> Result<Option<JsonObject>, CallFailure> {
        let requests = seen.get("inputRequests").and_then(Value::as_object).into_iter().flatten();
        let new: JsonObject = requests
            .filter(|(key, _)| !asked.contains(*key))
            .map(|(key, request)| (key.clone(), request.clone()))
            .collect();
        if new.is_empty() {
            return Ok(None);
        }
        asked.extend(new.keys().cloned());
        let required = json!({ "resultType": "input_required", "inputRequests": new });
        let Some(required) = InputRequired::read(&required) else { return Ok(None) };
        let (connection, about) = (self.connection, self.about);
        let required = required.map_err(|why| connection.unusable(about, why))?;
        let (pause, options) = (Duration::ZERO, self.options);
        let answers =
            connection.answers(about, &required, pause, options, &mut self.person_time).await?;
        Ok(Some(answers))
    }

    async fn send(
        &mut self,
        method: &str,
        id: &str,
        answers: Option<JsonObject>,
    ) -> Result<Value, CallFailure> {
        let started = Instant::now();
        let mut params = JsonObject::new();
        params.insert("taskId".to_owned(), json!(id));
        params.extend(answers.map(|answers| ("inputResponses".to_owned(), Value::Object(answers))));
        let (about, options) = (self.about, self.options);
        let sent = self.connection.send(about, method, params, options, &self.limits).await;
        let is_late = self.spend(started);
        match (sent, is_late) {
            (Ok(_), Some(late)) => Err(late),
            (sent, _) => sent,
        }
    }

    async fn pause(&mut self, pause: Duration) -> Result<(), CallFailure> {
        let started = Instant::now();
        tokio::select! {
            biased;
            () = self.options.cancel.cancelled() => {
                return Err(CallFailure::Failed(CallError::Cancelled));
            }
            () = self.connection.raw.closed() => return Err(self.connection.lost(self.about)),
            () = tokio::time::sleep(pause.min(self.limits.total)) => {}
        }
        self.spend(started).map_or(Ok(()), Err)
    }

    /// Counts the time since then, unless the server waits for an answer. Returns the error if none is left.
    fn spend(&mut self, started: Instant) -> Option<CallFailure> {
        if self.call.open_input_requests.is_open() {
            return None;
        }
        self.limits.total = self.limits.total.saturating_sub(started.elapsed());
        let limit = self.connection.about.limits.total;
        let is_over = self.limits.total.is_zero();
        is_over.then(|| self.connection.timed_out(self.about, limit, true))
    }

    fn unusable(&self, why: &str) -> CallFailure {
        self.connection.unusable_task(self.about, why)
    }

    /// The error with which a task has ended.
    fn refused(&self, seen: &Value) -> CallFailure {
        let error = seen.get("error").cloned().and_then(|error| serde_json::from_value(error).ok());
        let error = error.unwrap_or_else(|| {
            let status = seen.get("status").and_then(Value::as_str).unwrap_or_default();
            let said =
                seen.get("statusMessage").and_then(Value::as_str).unwrap_or("no reason given");
            let said: String = said.chars().take(1_000).collect();
            ErrorObject::internal_error(format!("its task ended as {status}: {said}"), None)
        });
        let (server, tool) = (self.connection.about.name.clone(), self.about.to_owned());
        CallFailure::Failed(CallError::Refused { server, tool, error })
    }
}
