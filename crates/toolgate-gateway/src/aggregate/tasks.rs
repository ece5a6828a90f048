//! Calls that clients get as tasks (`io.modelcontextprotocol/tasks`).
//!
//! Any call of a client that knows tasks may become one: if its server made a task of it, or if it takes long
//! (a script, a slow server, a person who is asked elsewhere). Until then it is an ordinary call.

mod inputs;
mod state;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    sync::{Notify, mpsc, watch},
    task::JoinHandle,
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use toolgate_mcp::{ErrorObject, JsonObject, codes, extensions, methods};
use toolgate_store::{Journal, TaskRow};
use toolgate_upstream::{InputHandler as _, Progress};

use self::state::TaskStatus;
pub(super) use self::{inputs::TaskInputs, state::TaskState};
use crate::{channel::ClientChannel, modern::random_id, service::AuthenticatedClient};

/// The tasks of all clients of one host.
#[derive(Debug, Default)]
pub(super) struct ClientTasks {
    table: Mutex<HashMap<String, Arc<ClientTask>>>,
    /// The calls that may become tasks.
    prepared: Arc<Mutex<HashMap<AuthenticatedClient, usize>>>,
    /// Where tasks are written, so that they outlive this process.
    journal: Option<Arc<dyn Journal>>,
    /// The namespace of the host. Other namespaces have the same journal.
    pub(super) namespace: Option<String>,
    /// Whether the host stops, and ends the calls with it.
    is_stopping: Arc<AtomicBool>,
}

/// A call that is a task, or may become one.
#[derive(Debug)]
pub(super) struct ClientTask {
    id: String,
    owner: AuthenticatedClient,
    created: SystemTime,
    until: Instant,
    state: watch::Sender<TaskState>,
    /// Notified when the server has made a task of the call.
    pub(super) made: Arc<Notify>,
    /// Cancels the call.
    pub(super) cancel: CancellationToken,
    /// Its place among the tasks of its caller, until it is in the table.
    place: Mutex<Option<ReservedPlace>>,
}

/// Counts a call that may become a task.
#[derive(Debug)]
struct ReservedPlace {
    owner: AuthenticatedClient,
    prepared: Arc<Mutex<HashMap<AuthenticatedClient, usize>>>,
}

/// How long a call may take before it becomes a task.
const LONG_CALL: Duration = Duration::from_secs(2);
/// How long a task is kept, from its creation.
const TTL_MILLISECONDS: u64 = 60 * 60 * 1_000;
const TTL: Duration = Duration::from_millis(TTL_MILLISECONDS);
/// How often a client should look at a task.
const POLL_MILLISECONDS: u64 = 500;
/// The most tasks at once. Further calls do not become tasks.
const MAX_TASKS: usize = 1_000;
const MAX_TASKS_PER_CALLER: usize = 100;

/// Whether a client with these capabilities knows tasks.
pub(super) fn knows_tasks(channel: &ClientChannel) -> bool {
    let extensions = channel.capabilities().get("extensions");
    extensions.and_then(|all| all.get(extensions::TASKS)).is_some_and(Value::is_object)
}

/// The error for a client that uses tasks and does not declare that it knows them.
pub(super) fn not_declared() -> ErrorObject {
    let required = json!({ "extensions": { extensions::TASKS: {} } });
    ErrorObject::new(
        codes::MISSING_CLIENT_CAPABILITY,
        "the request does not declare the extension for tasks",
        Some(json!({ "requiredCapabilities": required })),
    )
}

impl ClientTasks {
    pub(super) fn new(journal: Option<Arc<dyn Journal>>, is_stopping: Arc<AtomicBool>) -> Self {
        Self { journal, is_stopping, ..Self::default() }
    }

    /// Prepares a call that may become a task; `None` if there are too many.
    pub(super) fn prepare(&self, owner: &AuthenticatedClient) -> Option<Arc<ClientTask>> {
        self.remove_expired();
        let table = self.table.lock();
        let own = table.values().filter(|task| task.owner == *owner).count();
        let mut prepared = self.prepared.lock();
        let own_prepared = prepared.get(owner).copied().unwrap_or_default();
        let all_prepared: usize = prepared.values().sum();
        if table.len() + all_prepared >= MAX_TASKS || own + own_prepared >= MAX_TASKS_PER_CALLER {
            return None;
        }
        *prepared.entry(owner.clone()).or_default() += 1;
        drop((prepared, table));
        let place = ReservedPlace { owner: owner.clone(), prepared: Arc::clone(&self.prepared) };
        Some(Arc::new(ClientTask {
            id: random_id().ok()?,
            owner: owner.clone(),
            created: SystemTime::now(),
            until: Instant::now() + TTL,
            state: watch::Sender::new(TaskState::default()),
            made: Arc::default(),
            cancel: CancellationToken::new(),
            place: Mutex::new(Some(place)),
        }))
    }

    /// Waits for the outcome of a call, or makes a task of it. `reports` is its progress, which `notify` sends
    /// to the client as long as it is no task.
    pub(super) async fn outcome(
        self: &Arc<Self>,
        task: Arc<ClientTask>,
        mut calling: JoinHandle<Result<Value, ErrorObject>>,
        mut reports: mpsc::Receiver<Progress>,
        client_cancel: &CancellationToken,
        notify: impl Fn(Progress),
    ) -> Result<Value, ErrorObject> {
        let waiting = Arc::clone(&task);
        let mut takes_long = std::pin::pin!(waiting.takes_long());
        let mut said = None;
        loop {
            tokio::select! {
                biased;
                Some(report) = reports.recv() => {
                    said = report.message().map(str::to_owned);
                    notify(report);
                }
                outcome = &mut calling => return outcome.unwrap_or_else(|_| Err(failed())),
                () = client_cancel.cancelled(), if !task.cancel.is_cancelled() => task.cancel.cancel(),
                () = task.made.notified() => break,
                () = &mut takes_long => break,
            }
        }
        task.state.send_modify(|state| {
            state.is_task = true;
            state.report(said.as_deref());
        });
        {
            let mut table = self.table.lock();
            table.insert(task.id.clone(), Arc::clone(&task));
            *task.place.lock() = None;
        }
        self.write(&task);
        let created = task.created_result();
        let tasks = Arc::clone(self);
        tokio::spawn(async move {
            let outcome = loop {
                tokio::select! {
                    biased;
                    Some(report) = reports.recv() => {
                        task.state.send_if_modified(|state| state.report(report.message()));
                    }
                    outcome = &mut calling => break outcome.unwrap_or_else(|_| Err(failed())),
                    () = tokio::time::sleep_until(task.until), if !task.cancel.is_cancelled() => {
                        task.cancel.cancel();
                    }
                }
            };
            let is_lost = tasks.is_stopping.load(Ordering::Relaxed) && has_failed(&outcome);
            let outcome = if is_lost { Err(lost()) } else { outcome };
            task.state.send_if_modified(|state| state.end(outcome));
            tasks.write(&task);
        });
        Ok(created)
    }

    /// Answers `tasks/get`, `tasks/update` or `tasks/cancel`.
    pub(super) fn answer(
        &self,
        owner: &AuthenticatedClient,
        method: &str,
        params: &JsonObject,
    ) -> Result<Value, ErrorObject> {
        let Some(id) = params.get("taskId").and_then(Value::as_str) else {
            return Err(ErrorObject::invalid_params("`taskId` is missing or no string", None));
        };
        let Some(task) = self.task(owner, id) else {
            return match self.stored(owner, id) {
                Some(stored) if method == methods::TASKS_GET => Ok(stored),
                Some(_) => Ok(json!({})),
                None => Err(unknown()),
            };
        };
        match method {
            methods::TASKS_GET => return Ok(task.detail()),
            methods::TASKS_UPDATE => {
                let Some(Value::Object(responses)) = params.get("inputResponses") else {
                    let message = "`inputResponses` is missing or no object";
                    return Err(ErrorObject::invalid_params(message, None));
                };
                task.state.send_if_modified(|state| state.respond(responses));
            }
            _ => {
                task.cancel.cancel();
                task.state.send_if_modified(TaskState::cancel);
                self.write(&task);
            }
        }
        Ok(json!({}))
    }

    /// The task of a caller.
    pub(super) fn task(&self, owner: &AuthenticatedClient, id: &str) -> Option<Arc<ClientTask>> {
        self.remove_expired();
        self.table.lock().get(id).filter(|task| task.owner == *owner).cloned()
    }

    /// Cancels what runs and is kept for too long.
    fn remove_expired(&self) {
        let now = Instant::now();
        self.table.lock().retain(|_, task| {
            if task.until <= now {
                task.cancel.cancel();
            }
            task.until > now
        });
    }

    /// The owner of a task in the journal: a caller at a path.
    fn written_owner(&self, owner: &AuthenticatedClient) -> String {
        json!([owner.as_str(), self.namespace]).to_string()
    }

    /// Writes the state of a task. Without a journal it ends with this process.
    fn write(&self, task: &ClientTask) {
        let Some(journal) = &self.journal else { return };
        let expires = task.created.duration_since(UNIX_EPOCH).unwrap_or_default() + TTL;
        let row = TaskRow {
            id: task.id.clone(),
            owner: self.written_owner(&task.owner),
            expires: u64::try_from(expires.as_millis()).unwrap_or(u64::MAX),
            state: task.detail().to_string(),
        };
        if let Err(error) = journal.write_task(&row) {
            tracing::warn!("the task is not kept beyond the end of this process: {error}");
        }
    }

    /// A task of another process. If the process has ended and the task had not, its outcome is not known.
    fn stored(&self, owner: &AuthenticatedClient, id: &str) -> Option<Value> {
        let (row, is_alive) =
            self.journal.as_ref()?.task(id, &self.written_owner(owner)).ok()??;
        let mut task: Value = serde_json::from_str(&row.state).ok()?;
        let ended =
            |status: &Value| status == "completed" || status == "failed" || status == "cancelled";
        if !is_alive && !ended(&task["status"]) {
            let lost = lost();
            task["status"] = json!("failed");
            task["statusMessage"] = json!(lost.message);
            task["error"] = json!(lost);
            task.as_object_mut()?.remove("inputRequests");
        }
        Some(task)
    }
}

impl Drop for ReservedPlace {
    fn drop(&mut self) {
        let mut prepared = self.prepared.lock();
        if let Some(count) = prepared.get_mut(&self.owner) {
            *count -= 1;
            if *count == 0 {
                prepared.remove(&self.owner);
            }
        }
    }
}

impl ClientTask {
    /// Its states from now on.
    pub(super) fn states(&self) -> watch::Receiver<TaskState> {
        self.state.subscribe()
    }

    /// Waits until the call takes long. The time in which its client is asked does not count.
    async fn takes_long(&self) {
        let mut states = self.state.subscribe();
        loop {
            let _ = states.wait_for(|state| state.asked == 0).await;
            tokio::select! {
                () = tokio::time::sleep(LONG_CALL) => return,
                _ = states.wait_for(|state| state.asked > 0) => {}
            }
        }
    }

    /// The result of a call that became a task.
    fn created_result(&self) -> Value {
        let mut created = self.fields(&TaskState::default());
        created["resultType"] = json!("task");
        created
    }

    /// The task with what belongs to its status.
    pub(super) fn detail(&self) -> Value {
        let state = self.state.borrow();
        let mut task = self.fields(&state);
        state.add_to(&mut task);
        task
    }

    fn fields(&self, state: &TaskState) -> Value {
        let mut task = json!({
            "taskId": self.id,
            "status": state.status().as_str(),
            "createdAt": timestamp(self.created),
            "lastUpdatedAt": timestamp(state.updated.unwrap_or(self.created)),
            "ttlMs": TTL_MILLISECONDS,
            "pollIntervalMs": POLL_MILLISECONDS,
        });
        if let Some(message) = &state.message {
            task["statusMessage"] = json!(message);
        }
        task
    }
}

impl TaskStatus {
    pub(super) fn is_end(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

fn timestamp(time: SystemTime) -> String {
    toolgate_store::utc(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}

fn unknown() -> ErrorObject {
    let message = "there is no such task: it is unknown, has expired or belongs to another client";
    ErrorObject::invalid_params(message, None)
}

fn has_failed(outcome: &Result<Value, ErrorObject>) -> bool {
    outcome.as_ref().map_or(true, |result| result.get("isError") == Some(&Value::Bool(true)))
}

/// The outcome of a call that ended because toolgate did.
fn lost() -> ErrorObject {
    let message = "toolgate ended before the call did; whether the call had an effect is not known";
    ErrorObject::internal_error(message, None)
}

fn failed() -> ErrorObject {
    ErrorObject::internal_error("the call failed", None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a task that waits for ever.
    async fn endless(tasks: &Arc<ClientTasks>, owner: &AuthenticatedClient) -> Option<String> {
        let task = tasks.prepare(owner)?;
        task.made.notify_one();
        let calling = tokio::spawn(std::future::pending());
        let (_reports, reports) = mpsc::channel(1);
        let cancel = CancellationToken::new();
        let created = tasks.outcome(task, calling, reports, &cancel, |_| {}).await.unwrap();
        Some(created["taskId"].as_str()?.to_owned())
    }

    #[tokio::test]
    async fn a_task_exists_only_for_its_caller() {
        let tasks = Arc::new(ClientTasks::default());
        let [ada, bob] = ["ada", "bob"].map(AuthenticatedClient::named);
        let id = endless(&tasks, &ada).await.unwrap();
        let params = json!({ "taskId": id, "inputResponses": {} });
        let params = params.as_object().unwrap();
        for method in [methods::TASKS_GET, methods::TASKS_UPDATE, methods::TASKS_CANCEL] {
            let error = tasks.answer(&bob, method, params).unwrap_err();
            assert_eq!(error.code, codes::INVALID_PARAMS, "{method}");
        }
        assert!(tasks.task(&bob, &id).is_none());
        let seen = tasks.answer(&ada, methods::TASKS_GET, params).unwrap();
        assert_eq!(seen["status"], "working");
    }

    #[tokio::test(start_paused = true)]
    async fn tasks_are_few_and_expire() {
        let tasks = Arc::new(ClientTasks::default());
        let [ada, bob] = ["ada", "bob"].map(AuthenticatedClient::named);
        let first = endless(&tasks, &ada).await.unwrap();
        let running = tasks.task(&ada, &first).unwrap();
        for _ in 1..MAX_TASKS_PER_CALLER {
            assert!(endless(&tasks, &ada).await.is_some());
        }
        assert!(endless(&tasks, &ada).await.is_none(), "one caller cannot have them all");
        assert!(endless(&tasks, &bob).await.is_some());
        tokio::time::advance(TTL).await;
        assert!(tasks.task(&ada, &first).is_none());
        assert!(running.cancel.is_cancelled(), "what nobody can ask for any more ends");
        assert!(endless(&tasks, &ada).await.is_some());
    }

    #[tokio::test]
    async fn calls_that_begin_at_once_count_as_tasks() {
        let tasks = Arc::new(ClientTasks::default());
        let [ada, bob] = ["ada", "bob"].map(AuthenticatedClient::named);
        let mut begun: Vec<_> = (0..MAX_TASKS_PER_CALLER).map(|_| tasks.prepare(&ada)).collect();
        assert!(begun.iter().all(Option::is_some));
        assert!(tasks.prepare(&ada).is_none(), "any of them may become a task");
        assert!(tasks.prepare(&bob).is_some());
        // One that has ended without becoming a task counts no more.
        begun.pop();
        assert!(endless(&tasks, &ada).await.is_some());
        assert!(tasks.prepare(&ada).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_quick_call_is_no_task_and_a_slow_one_is() {
        let tasks = Arc::new(ClientTasks::default());
        let ada = AuthenticatedClient::named("ada");
        for (seconds, is_task) in [(1, false), (3, true)] {
            let task = tasks.prepare(&ada).unwrap();
            let calling = tokio::spawn(async move {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                Ok(json!({ "content": [] }))
            });
            let (_reports, reports) = mpsc::channel(1);
            let cancel = CancellationToken::new();
            let outcome = tasks.outcome(task, calling, reports, &cancel, |_| {}).await.unwrap();
            assert_eq!(outcome["resultType"] == "task", is_task, "{outcome}");
        }
    }

    #[tokio::test]
    async fn a_task_outlives_its_process() {
        let folder = tempfile::tempdir().unwrap();
        let journal = || Some(toolgate_store::Store::new(folder.path()).journal().unwrap());
        let ada = AuthenticatedClient::named("ada");
        let look = |tasks: &Arc<ClientTasks>, owner: &AuthenticatedClient, id: &str| {
            let params = json!({ "taskId": id });
            tasks.answer(owner, methods::TASKS_GET, params.as_object().unwrap())
        };
        let (done, lost) = {
            let tasks = Arc::new(ClientTasks::new(journal(), Arc::default()));
            let done = endless(&tasks, &ada).await.unwrap();
            let task = tasks.task(&ada, &done).unwrap();
            task.state.send_if_modified(|state| state.end(Ok(json!({ "content": [] }))));
            tasks.write(&task);
            let lost = endless(&tasks, &ada).await.unwrap();
            // Another process beside it sees that it still runs.
            let other = Arc::new(ClientTasks::new(journal(), Arc::default()));
            assert_eq!(look(&other, &ada, &lost).unwrap()["status"], "working");
            (done, lost)
        };
        // The end of a runtime ends what runs in it; here the journal of the tasks is still in use.
        let copy = tempfile::tempdir().unwrap();
        for file in std::fs::read_dir(folder.path()).unwrap().flatten() {
            if file.path().is_file() {
                std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
            }
        }
        let reopened = toolgate_store::Store::new(copy.path()).journal().unwrap();
        let tasks = Arc::new(ClientTasks::new(Some(reopened), Arc::default()));
        let seen = look(&tasks, &ada, &done).unwrap();
        assert_eq!(
            (&seen["status"], &seen["result"]),
            (&json!("completed"), &json!({ "content": [] }))
        );
        let seen = look(&tasks, &ada, &lost).unwrap();
        assert_eq!(seen["status"], "failed");
        assert!(seen["error"]["message"].as_str().unwrap().contains("not known"), "{seen}");
        assert!(look(&tasks, &AuthenticatedClient::named("bob"), &done).is_err());
        let mut other = ClientTasks::new(tasks.journal.clone(), Arc::default());
        other.namespace = Some("lab".to_owned());
        assert!(look(&Arc::new(other), &ada, &done).is_err(), "it is at another path");
    }
}
