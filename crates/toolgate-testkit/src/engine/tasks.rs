//! Calls that the fixture makes a task of, in the form of either era.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Engine, Generation, Request};
use crate::reply::{Reply, code};

/// What a task does. It goes on when somebody looks at it, so it needs no clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct TaskPlan {
    /// How often `tasks/get` says that it works. `None` for always.
    pub looks: Option<u32>,
    /// The keys of the forms that it asks for after that (2026-07-28).
    pub asks: Vec<String>,
    /// The error with which it fails.
    pub error: Option<Value>,
}

impl Default for TaskPlan {
    fn default() -> Self {
        Self { looks: Some(2), asks: Vec::new(), error: None }
    }
}

/// The tasks of a fixture, by their ids.
pub(crate) type Tasks = BTreeMap<String, Task>;

#[derive(Debug)]
pub(crate) struct Task {
    plan: TaskPlan,
    looks: u32,
    answers: BTreeMap<String, Value>,
    is_cancelled: bool,
}

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

impl Engine {
    /// Makes a task of a call, if its tool has a plan for one.
    pub(super) fn begin_task(&self, name: &str, request: &Request) -> Option<Reply> {
        let plan = self.fixture.tasks.get(name)?;
        let capabilities = &request.params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        let knows_tasks = match request.generation {
            Generation::Legacy => request.params["task"].is_object(),
            Generation::Modern => capabilities["extensions"][EXTENSION].is_object(),
        };
        if !knows_tasks {
            return Some(Reply::error(-32021, "This tool can only be called as a task"));
        }
        let mut state = self.state.lock();
        let id = format!("task-{}", state.tasks.len() + 1);
        let (plan, answers) = (plan.clone(), BTreeMap::new());
        let task = Task { plan, looks: 0, answers, is_cancelled: false };
        let mut seen = task.seen(&id, request.generation);
        state.tasks.insert(id, task);
        Some(Reply::Result(match request.generation {
            Generation::Legacy => json!({ "task": seen }),
            Generation::Modern => {
                seen["resultType"] = json!("task");
                seen
            }
        }))
    }

    /// Answers `tasks/…`.
    pub(super) fn task_method(&self, request: &Request) -> Reply {
        let mut state = self.state.lock();
        let id = request.params["taskId"].as_str().unwrap_or_default();
        let Some(task) = state.tasks.get_mut(id) else {
            return Reply::error(code::INVALID_PARAMS, "Unknown task");
        };
        match (request.method.as_str(), request.generation) {
            ("tasks/get", generation) => {
                task.looks += 1;
                Reply::Result(task.seen(id, generation))
            }
            ("tasks/update", Generation::Modern) => {
                for (key, answer) in
                    request.params["inputResponses"].as_object().into_iter().flatten()
                {
                    task.answers.insert(key.clone(), answer.clone());
                }
                Reply::Result(json!({}))
            }
            ("tasks/cancel", generation) => {
                task.is_cancelled = true;
                Reply::Result(match generation {
                    Generation::Legacy => task.seen(id, generation),
                    Generation::Modern => json!({}),
                })
            }
            ("tasks/result", Generation::Legacy) => match &task.plan.error {
                Some(error) => Reply::Error {
                    code: error["code"].as_i64().unwrap_or(code::INVALID_REQUEST),
                    message: error["message"].as_str().unwrap_or_default().to_owned(),
                    data: None,
                },
                None => Reply::Result(task.result()),
            },
            (method, _) => {
                Reply::error(code::METHOD_NOT_FOUND, format!("Method not found: {method}"))
            }
        }
    }

    /// What the tool `last_cancelled` reports.
    pub(crate) fn last_cancelled(&self) -> Value {
        let state = self.state.lock();
        let mut report = json!({ "lastCancelled": state.last_cancelled });
        let cancelled = state.tasks.iter().filter(|(_, task)| task.is_cancelled);
        let cancelled: Vec<&String> = cancelled.map(|(id, _)| id).collect();
        if !cancelled.is_empty() {
            report["tasks"] = json!(cancelled);
        }
        if let Some(roots) = &state.roots {
            report["roots"] = roots.clone();
        }
        if let Some(level) = &state.log_level {
            report["logLevel"] = level.clone();
        }
        report
    }
}

impl Task {
    fn seen(&self, id: &str, generation: Generation) -> Value {
        let is_working = self.plan.looks.is_none_or(|looks| self.looks <= looks);
        let asks = self.plan.asks.iter().filter(|key| !self.answers.contains_key(*key));
        let asks: Vec<&String> = asks.collect();
        let status = match (self.is_cancelled, is_working) {
            (true, _) => "cancelled",
            (false, true) => "working",
            (false, false) if !asks.is_empty() => "input_required",
            (false, false) if self.plan.error.is_some() => "failed",
            (false, false) => "completed",
        };
        let mut seen = json!({
            "taskId": id,
            "status": status,
            "statusMessage": format!("look {}", self.looks),
            "createdAt": "2026-07-28T00:00:00Z",
            "lastUpdatedAt": "2026-07-28T00:00:00Z",
        });
        let names = match generation {
            Generation::Legacy => ["ttl", "pollInterval"],
            Generation::Modern => ["ttlMs", "pollIntervalMs"],
        };
        seen[names[0]] = json!(60_000);
        seen[names[1]] = json!(20);
        match (status, generation) {
            ("completed", Generation::Modern) => seen["result"] = self.result(),
            ("failed", Generation::Modern) => seen["error"] = json!(self.plan.error),
            ("input_required", Generation::Modern) => {
                for key in asks {
                    let form =
                        json!({ "type": "object", "properties": { "name": { "type": "string" } } });
                    let params = json!({ "message": format!("{key}?"), "requestedSchema": form });
                    seen["inputRequests"][key] =
                        json!({ "method": "elicitation/create", "params": params });
                }
            }
            _ => {}
        }
        seen
    }

    fn result(&self) -> Value {
        let told = json!({ "looks": self.looks, "answers": self.answers });
        json!({ "content": [{ "type": "text", "text": "done" }], "structuredContent": told })
    }
}
