//! The calls of one reply.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime},
};

use futures::{StreamExt as _, stream};
use parking_lot::Mutex;
use serde_json::Value;
use thiserror::Error;

use super::{
    Conversation,
    drive::{TurnState, calls_refused},
};
use crate::{
    AgentEvent, AllowedCallers, AnsweredCall, CallAnswer, CallScope, ToolCaller, ToolDiscovery,
    ToolOutput, ToolRequest, WireCall, WireCallKind,
    discovery::{CALL_TOOL, MAX_FOUND, SEARCH_TOOL, USUAL_FOUND},
    tools::CallPhase,
};

/// Results must arrive this long before the container of the code expires.
const MARGIN: Duration = Duration::from_secs(15);
/// How much of a result an event shows.
const PREVIEW_CHARACTERS: usize = 500;

/// Why a call is not made: the tool is for callers of the other kind.
#[derive(Debug, Error)]
enum WrongCaller {
    #[error("`{tool}` can be called by code only")]
    Direct { tool: String },
    #[error("`{tool}` cannot be called by code; call it directly")]
    Code { tool: String },
}

impl Conversation {
    /// Makes all calls, several at a time, and returns their answers in order. After a cancel, or when the container of
    /// the code is about to expire, calls that still run get an error.
    pub(super) async fn make_calls(
        &mut self,
        calls: Vec<WireCall>,
        turn: &TurnState,
    ) -> Vec<AnsweredCall> {
        let parallel = self.settings.limits.parallel_calls.max(1);
        let mut answers: BTreeMap<usize, CallAnswer> = BTreeMap::new();
        let by_code = calls.iter().any(|call| matches!(call.caller, ToolCaller::Code { .. }));
        let left =
            self.container.as_ref().filter(|_| by_code).and_then(|container| container.expires_at);
        let left = left.map(|end| {
            end.duration_since(SystemTime::now()).unwrap_or_default().saturating_sub(MARGIN)
        });
        let phases: Vec<Arc<Mutex<CallPhase>>> = calls.iter().map(|_| Arc::default()).collect();
        let stop = {
            let this = &*self;
            let making = stream::iter(calls.clone().into_iter().zip(phases.clone()).enumerate())
                .map(|(place, (call, phase))| async move {
                    (place, this.answer(&call, turn, phase).await)
                })
                .buffer_unordered(parallel);
            tokio::pin!(making);
            let expiry = async {
                match left {
                    Some(left) => tokio::time::sleep(left).await,
                    None => std::future::pending().await,
                }
            };
            tokio::pin!(expiry);
            loop {
                tokio::select! {
                    biased;
                    next = making.next() => match next {
                        Some((place, answer)) => {
                            answers.insert(place, answer);
                        }
                        None => break "",
                    },
                    () = turn.cancel.cancelled() => break "the person cancelled the turn",
                    () = &mut expiry => break "the container of the code expires",
                }
            }
        };
        let mut answered = Vec::with_capacity(calls.len());
        for (place, call) in calls.into_iter().enumerate() {
            if let Some(answer) = answers.remove(&place) {
                self.note_found(&answer);
                answered.push(AnsweredCall { call, answer });
            } else {
                let phase = *phases[place].lock();
                let how = match phase {
                    CallPhase::Waits => "before this call began; it was not made",
                    CallPhase::Asks => "while a person was asked about this call; it was not made",
                    CallPhase::Runs => "while this call ran; its outcome is not known",
                };
                for refused in calls_refused(vec![call], &format!("{stop} {how}")) {
                    report(turn, &refused);
                    answered.push(refused);
                }
            }
        }
        answered
    }

    /// Answers the calls that a dropped turn left open.
    pub(super) fn answer_dropped_calls(&mut self) {
        let calls = std::mem::take(&mut self.unanswered);
        if calls.is_empty() {
            return;
        }
        self.code_waits = calls.iter().any(|call| matches!(call.caller, ToolCaller::Code { .. }));
        let answered = calls_refused(
            calls,
            "the turn was stopped while this call ran; its outcome is not known",
        );
        let results = self.provider.results(&answered, &self.catalogue);
        self.history.extend(results);
    }

    async fn answer(
        &self,
        call: &WireCall,
        turn: &TurnState,
        phase: Arc<Mutex<CallPhase>>,
    ) -> CallAnswer {
        *phase.lock() = CallPhase::Runs;
        let searches = call.kind == WireCallKind::Search || self.is_own(SEARCH_TOOL, &call.name);
        let answer = match (&call.arguments, searches) {
            (Err(invalid), _) => CallAnswer::Output(ToolOutput::error(invalid.to_string())),
            (Ok(arguments), true) => self.search(arguments, turn).await,
            (Ok(arguments), false) => {
                CallAnswer::Output(self.call(call, arguments, turn, phase).await)
            }
        };
        let answered = AnsweredCall { call: call.clone(), answer };
        report(turn, &answered);
        answered.answer
    }

    async fn search(&self, arguments: &Value, turn: &TurnState) -> CallAnswer {
        let query = arguments["query"].as_str().unwrap_or_default();
        if query.trim().is_empty() {
            return CallAnswer::Output(ToolOutput::error(
                "a search needs `query`: say in words what the tool must do",
            ));
        }
        let limit = arguments["limit"].as_u64().and_then(|limit| usize::try_from(limit).ok());
        let limit = limit.unwrap_or(USUAL_FOUND).clamp(1, MAX_FOUND);
        let names = match self.tools.search(query, limit).await {
            Ok(names) => names,
            Err(output) => {
                return CallAnswer::Output(output.bounded(self.settings.limits.result_bytes));
            }
        };
        let found = names.iter().take(limit).filter_map(|name| self.catalogue.tool(name));
        let defined = |name: &String| self.defined.contains(name) && !self.withdrawn.contains(name);
        let found: Vec<_> = found.map(|tool| (tool.clone(), defined(&tool.name))).collect();
        let names = found.iter().map(|(tool, _)| tool.name.clone()).collect();
        turn.emit(AgentEvent::ToolsFound { query: query.to_owned(), names });
        CallAnswer::Found(found)
    }

    async fn call(
        &self,
        call: &WireCall,
        arguments: &Value,
        turn: &TurnState,
        phase: Arc<Mutex<CallPhase>>,
    ) -> ToolOutput {
        let (name, arguments) = self.unwrap_call(&call.name, arguments);
        turn.emit(AgentEvent::ToolCallStarted {
            id: call.id.clone(),
            name: name.clone(),
            arguments: arguments.clone(),
            caller: call.caller.clone(),
        });
        if let Err(why) = self.check_caller(&name, &call.caller) {
            return ToolOutput::error(why.to_string());
        }
        let scope = CallScope {
            id: call.id.clone(),
            name: name.clone(),
            cancel: turn.cancel.clone(),
            events: turn.events.clone(),
            phase,
        };
        let request =
            ToolRequest { id: call.id.clone(), name, arguments, caller: call.caller.clone() };
        self.tools.call(request, &scope).await.bounded(self.settings.limits.result_bytes)
    }

    /// The tool behind our own `call_tool`. A tool box may have a meta-tool of this name, which is then its own.
    fn unwrap_call(&self, name: &str, arguments: &Value) -> (String, Value) {
        let ours = self.is_own(CALL_TOOL, name);
        match arguments["name"].as_str().filter(|_| ours) {
            Some(inner) => {
                let empty = || Value::Object(serde_json::Map::new());
                let given = arguments.get("arguments").filter(|given| given.is_object());
                (inner.to_owned(), given.cloned().unwrap_or_else(empty))
            }
            None => (name.to_owned(), arguments.clone()),
        }
    }

    /// Whether a call is of this tool of the loop itself, and not of one of the tool box.
    fn is_own(&self, own: &str, called: &str) -> bool {
        own == called && self.own.contains(own)
    }

    /// Whether this caller may call the tool. Only tools that say so can be called by code.
    fn check_caller(&self, name: &str, caller: &ToolCaller) -> Result<(), WrongCaller> {
        let known =
            self.meta.iter().find(|tool| tool.name == name).or_else(|| self.catalogue.tool(name));
        let allowed = known.map_or(AllowedCallers::DIRECT, |tool| tool.callers);
        if allowed.allow(caller) {
            return Ok(());
        }
        let tool = name.to_owned();
        Err(match caller {
            ToolCaller::Direct => WrongCaller::Direct { tool },
            ToolCaller::Code { .. } => WrongCaller::Code { tool },
        })
    }

    fn note_found(&mut self, answer: &CallAnswer) {
        let CallAnswer::Found(found) = answer else { return };
        if self.provider.discovery() == ToolDiscovery::Direct {
            return;
        }
        for (tool, _) in found {
            self.loaded.insert(tool.name.clone());
            // This wire appends the definitions of what was found.
            if self.provider.discovery() == ToolDiscovery::Appended {
                self.defined.insert(tool.name.clone());
            }
        }
    }
}

fn report(turn: &TurnState, AnsweredCall { call, answer }: &AnsweredCall) {
    if let CallAnswer::Output(output) = answer {
        turn.emit(AgentEvent::ToolResult {
            id: call.id.clone(),
            name: call.name.clone(),
            is_error: output.is_error,
            preview: output.flat().chars().take(PREVIEW_CHARACTERS).collect(),
        });
    }
}
