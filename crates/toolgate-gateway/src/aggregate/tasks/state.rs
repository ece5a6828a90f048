//! The state of a task.

use std::{collections::BTreeMap, time::SystemTime};

use serde_json::{Map, Value, json};
use toolgate_mcp::{ErrorObject, JsonObject};
use toolgate_upstream::InputRequest;

use crate::channel::InputResponder;

/// What is known of a call that is a task, or may become one.
#[derive(Debug, Default)]
pub(in crate::aggregate) struct TaskState {
    pub(super) is_task: bool,
    /// How many input requests wait at the client, before the call is a task.
    pub(super) asked: usize,
    pub(super) message: Option<String>,
    pub(super) updated: Option<SystemTime>,
    /// The input requests without a response, by their keys.
    inputs: BTreeMap<String, (InputRequest, InputResponder)>,
    /// How many input requests there were.
    count: u64,
    /// The keys that were used. Each stands for one input request of the task.
    used: std::collections::HashSet<String>,
    outcome: Option<TaskOutcome>,
}

#[derive(Debug)]
enum TaskOutcome {
    Ended(Result<Value, ErrorObject>),
    Cancelled,
}

/// The status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::aggregate) enum TaskStatus {
    Working,
    InputRequired,
    Completed,
    Failed,
    Cancelled,
}

/// The longest key of an input request that is kept.
const MAX_KEY_BYTES: usize = 256;
/// The longest message that is shown of a task.
const MESSAGE_CHARACTERS: usize = 1_000;

impl TaskStatus {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl TaskState {
    pub(in crate::aggregate) fn status(&self) -> TaskStatus {
        match &self.outcome {
            Some(TaskOutcome::Ended(Ok(_))) => TaskStatus::Completed,
            Some(TaskOutcome::Ended(Err(_))) => TaskStatus::Failed,
            Some(TaskOutcome::Cancelled) => TaskStatus::Cancelled,
            None if self.inputs.is_empty() => TaskStatus::Working,
            None => TaskStatus::InputRequired,
        }
    }

    /// Notes the outcome of the call. Returns whether this changed anything.
    pub(super) fn end(&mut self, outcome: Result<Value, ErrorObject>) -> bool {
        self.set_outcome(TaskOutcome::Ended(outcome))
    }

    /// Notes that the client has cancelled the task.
    pub(super) fn cancel(&mut self) -> bool {
        self.set_outcome(TaskOutcome::Cancelled)
    }

    fn set_outcome(&mut self, outcome: TaskOutcome) -> bool {
        if self.outcome.is_some() {
            return false;
        }
        self.message = match &outcome {
            TaskOutcome::Ended(Err(error)) => Some(shown(&error.message)),
            _ => None,
        };
        self.inputs.clear();
        self.outcome = Some(outcome);
        self.touch()
    }

    /// Notes a report of progress.
    pub(super) fn report(&mut self, message: Option<&str>) -> bool {
        if message.is_none() || self.outcome.is_some() {
            return false;
        }
        self.message = message.map(shown);
        self.touch()
    }

    /// Adds an input request. Returns its key: that of its server, unless it was used before.
    pub(super) fn ask(
        &mut self,
        key: Option<&str>,
        request: InputRequest,
        responder: InputResponder,
    ) -> bool {
        if self.outcome.is_some() {
            return false;
        }
        let given = key.filter(|key| key.len() <= MAX_KEY_BYTES).map(str::to_owned);
        let key = given.filter(|key| !self.used.contains(key)).unwrap_or_else(|| {
            loop {
                self.count += 1;
                let key = self.count.to_string();
                if !self.used.contains(&key) {
                    break key;
                }
            }
        });
        self.used.insert(key.clone());
        self.inputs.insert(key, (request, responder));
        self.touch()
    }

    /// Delivers responses. Unknown keys are ignored.
    pub(super) fn respond(&mut self, responses: &JsonObject) -> bool {
        let mut is_changed = false;
        for (key, response) in responses {
            if let Some((_, responder)) = self.inputs.remove(key) {
                let _ = responder.send(Ok(response.clone()));
                is_changed = self.touch();
            }
        }
        is_changed
    }

    /// Removes input requests that were withdrawn.
    pub(super) fn remove_withdrawn(&mut self) -> bool {
        let before = self.inputs.len();
        self.inputs.retain(|_, (_, responder)| !responder.is_closed());
        before != self.inputs.len() && self.touch()
    }

    /// Adds what belongs to the status.
    pub(super) fn add_to(&self, task: &mut Value) {
        match &self.outcome {
            Some(TaskOutcome::Ended(Ok(result))) => task["result"] = result.clone(),
            Some(TaskOutcome::Ended(Err(error))) => task["error"] = json!(error),
            Some(TaskOutcome::Cancelled) => {}
            None if self.inputs.is_empty() => {}
            None => {
                let requests: Map<String, Value> = self
                    .inputs
                    .iter()
                    .map(|(key, (input, _))| {
                        let mut request = json!({ "method": input.method });
                        if let Some(params) = &input.params {
                            request["params"] = params.clone();
                        }
                        (key.clone(), request)
                    })
                    .collect();
                task["inputRequests"] = Value::Object(requests);
            }
        }
    }

    fn touch(&mut self) -> bool {
        self.updated = Some(SystemTime::now());
        true
    }
}

fn shown(message: &str) -> String {
    message.chars().take(MESSAGE_CHARACTERS).collect()
}
