//! What a script's calls reach: the broker, by way of a session of its own.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use parking_lot::Mutex;
use serde_json::{Map, Value, json, value::RawValue};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolgate_broker::{BrokerError, CallContext, RunContext};
use toolgate_catalog::{Tool, nearest};
use toolgate_sandbox::{
    CallId, CallResponse, LookupResult, RunClock, RunEvent, ToolException, Tools,
};
use toolgate_upstream::{CallError, CallOptions, InputHandler, Progress};

use super::{
    learned::Learned,
    media::Media,
    record::{PastState, Recorder},
    value::{self, Wrapping},
};
use crate::{
    host::Host,
    meta::{self, MetaTool},
    session::{Session, error_result},
};

/// The tools of one run.
#[derive(Clone)]
pub(super) struct Bridge {
    inner: Arc<Inner>,
}

/// What a run reaches, and who is told of it.
pub(super) struct Wiring {
    pub(super) session: Session,
    pub(super) clock: RunClock,
    pub(super) run: Arc<RunContext>,
    pub(super) input_handler: Option<Arc<dyn InputHandler>>,
    pub(super) media: Arc<Media>,
    pub(super) learned: Arc<Learned>,
    pub(super) recorder: Option<Arc<Recorder>>,
    pub(super) progress: Option<mpsc::Sender<Progress>>,
    /// Which trace the run belongs to; in `_meta`, as it is passed on.
    pub(super) trace: Option<Map<String, Value>>,
}

struct Inner {
    wiring: Wiring,
    done: std::sync::atomic::AtomicU32,
    emitted: Mutex<Vec<Box<RawValue>>>,
    waiting: Mutex<Vec<WaitingCall>>,
}

/// A call that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingCall {
    /// Its number in the run.
    pub number: u64,
    /// The tool.
    pub name: String,
    /// The id of the question.
    pub approval: String,
}

/// Why a call has no value.
enum Failed {
    /// This is thrown in the script.
    Thrown(String),
    /// A person has to be asked first; the question's id.
    Waiting(String),
}

/// Gives a content block to the client.
const EMIT: &str = "emit";
/// What may be given in that way.
const MAX_EMITTED: usize = 16 * 1024 * 1024;
/// For how many unknown names servers are asked.
const MAX_MISSING: usize = 20;
/// Comparing a name with all others costs; a script with more unknown names has other problems.
const MAX_SUGGESTED: usize = 20;
const SUGGESTIONS: usize = 3;
/// What a script is told of a call that may or may not have happened.
const UNKNOWN: &str = "the outcome of this call is unknown: it was sent before the run was \
                       interrupted; it is not repeated";

impl Bridge {
    pub(super) fn new(wiring: Wiring) -> Self {
        let inner = Inner {
            wiring,
            done: std::sync::atomic::AtomicU32::new(0),
            emitted: Mutex::default(),
            waiting: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The calls that wait for a person.
    pub(super) fn waiting(&self) -> Vec<WaitingCall> {
        let mut waiting = self.inner.waiting.lock().clone();
        waiting.sort_by_key(|call| call.number);
        waiting
    }

    /// The content blocks that came as calls.
    pub(super) fn take_emitted(&self) -> Vec<Box<RawValue>> {
        std::mem::take(&mut *self.inner.emitted.lock())
    }
}

impl Tools for Bridge {
    fn describe(&self, names: Vec<String>) -> BoxFuture<'static, Vec<LookupResult>> {
        let inner = Arc::clone(&self.inner);
        async move { inner.describe(names).await }.boxed()
    }

    fn call(
        &self,
        id: CallId,
        name: String,
        arguments: Box<RawValue>,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, CallResponse> {
        let inner = Arc::clone(&self.inner);
        async move {
            let outcome = inner.first_or_again(id, &name, &arguments, cancel).await;
            inner.report_progress(&name);
            match outcome {
                Ok(value) => CallResponse::Ended(Ok(value)),
                Err(Failed::Thrown(message)) => {
                    CallResponse::Ended(Err(ToolException { tool: name, message }))
                }
                Err(Failed::Waiting(approval)) => {
                    inner.waiting.lock().push(WaitingCall { number: id, name, approval });
                    CallResponse::Suspended
                }
            }
        }
        .boxed()
    }

    fn on_event(&self, event: &RunEvent<'_>) {
        let Some(recorder) = &self.inner.wiring.recorder else { return };
        recorder.happened(event);
        if let RunEvent::Repeated { id } = event
            && let Some(past) = recorder.past(*id)
        {
            self.inner.recall(*id, past);
        }
    }

    fn clock(&self) -> RunClock {
        self.inner.wiring.clock.clone()
    }
}

impl Inner {
    async fn describe(&self, names: Vec<String>) -> Vec<LookupResult> {
        let host = self.wiring.session.host();
        let missing = |name: &String| {
            MetaTool::named(name).is_none()
                && name != EMIT
                && host.catalog().read().resolve(name).is_none()
        };
        for name in names.iter().filter(|name| missing(name)).take(MAX_MISSING) {
            host.first_answers_about(name).await;
        }
        let catalog = host.catalog().read();
        let mut suggested = 0;
        names
            .into_iter()
            .map(|name| {
                let schema = match MetaTool::named(&name) {
                    Some(tool) if in_scripts(tool) => Some(meta::input_schema(tool, false)),
                    Some(_) => None,
                    None if name == EMIT => Some(json!({
                        "type": "object", "properties": { "block": {} }, "required": ["block"],
                    })),
                    None => catalog.resolve(&name).map(|tool| tool.definition.input_schema()),
                };
                if let Some(input_schema) =
                    schema.and_then(|schema| serde_json::value::to_raw_value(&schema).ok())
                {
                    return LookupResult::Tool { name, input_schema };
                }
                suggested += 1;
                let known = catalog.tools().map(|tool| tool.name.as_str());
                let nearest = if suggested <= MAX_SUGGESTED {
                    nearest(&name, known, SUGGESTIONS).into_iter().map(str::to_owned).collect()
                } else {
                    Vec::new()
                };
                LookupResult::Unknown { name, nearest }
            })
            .collect()
    }

    /// Does what a call of an earlier run left behind here, beside its result.
    fn recall(&self, id: CallId, past: &PastState) {
        if past.name == EMIT
            && let Ok(arguments) = serde_json::from_str(&past.arguments)
        {
            // What the client is given is given again; that it was too much was said before.
            let _ = self.emit(arguments);
        }
        let told = past.told.as_ref().map(|told| match told {
            Ok(value) => serde_json::from_str(value).unwrap_or_else(|_| json!(value)),
            Err(message) => json!(message),
        });
        // What was not sent has nothing of a server.
        if let Some(mut result) = told.filter(|_| past.sent) {
            let context = CallContext::of_run(self.wiring.session.context(), &self.wiring.run, id);
            let name = called_name(&past.name, &past.arguments);
            let mut arguments: Value = serde_json::from_str(&past.arguments).unwrap_or_default();
            self.wiring.media.put_back(&mut arguments);
            self.wiring.media.put_back(&mut result);
            let (broker, known) = (self.wiring.session.host().broker(), past.origin.as_ref());
            broker.recall(&name, known, &arguments, &context, &result);
        }
    }

    /// Makes a call, unless it was sent before the run was interrupted and may not be repeated.
    async fn first_or_again(
        &self,
        id: CallId,
        name: &str,
        arguments: &RawValue,
        cancel: CancellationToken,
    ) -> Result<Box<RawValue>, Failed> {
        if let Some(recorder) = &self.wiring.recorder {
            if let Some(problem) = recorder.broken() {
                return Err(problem.into());
            }
            let sent = recorder.past(id).is_some_and(|past| past.sent && past.is(name, arguments));
            if sent && !is_harmless(self.wiring.session.host(), name, arguments.get()) {
                recorder.is_unknown(id, name);
                return Err(UNKNOWN.to_owned().into());
            }
        }
        self.call(id, name, arguments, cancel).await
    }

    async fn call(
        &self,
        id: CallId,
        name: &str,
        arguments: &RawValue,
        cancel: CancellationToken,
    ) -> Result<Box<RawValue>, Failed> {
        let mut arguments: Map<String, Value> =
            serde_json::from_str(arguments.get()).map_err(|error| {
                if error.is_data() {
                    "the arguments are no object".to_owned()
                } else {
                    "the arguments are nested too deeply".to_owned()
                }
            })?;
        match MetaTool::named(name) {
            // By a name that the script found out: what it calls is what is called.
            Some(MetaTool::Call) => {
                let request = named_call(arguments)?;
                return Box::pin(self.call(id, &request.0, &request.1, cancel)).await;
            }
            Some(tool) => return Ok(self.meta_call(tool, arguments).await?),
            None if name == EMIT => return Ok(self.emit(arguments)?),
            None => {}
        }
        for argument in arguments.values_mut() {
            self.wiring.media.put_back(argument);
        }
        let tool = self.wiring.session.host().catalog().read().resolve(name).cloned();
        let input_handler = self.wiring.input_handler.clone();
        let meta = self.wiring.trace.clone();
        let options = CallOptions { meta, cancel, input_handler, ..CallOptions::default() };
        let context = CallContext::of_run(self.wiring.session.context(), &self.wiring.run, id);
        let result = match self.wiring.session.call_within(name, arguments, &context, options).await
        {
            Ok(result) => result,
            Err(BrokerError::Waiting { id, .. }) => return Err(Failed::Waiting(id)),
            Err(BrokerError::Call(error)) => match *error {
                CallError::Cancelled => return Err("cancelled".to_owned().into()),
                CallError::Refused { error, .. } => error_result(&error.message),
                other => {
                    if matches!(other, CallError::Stopped { .. } | CallError::TimedOut { .. }) {
                        self.lost(id, name);
                    }
                    error_result(&other.to_string())
                }
            },
            Err(error) => error_result(&meta::refusal(&self.wiring.session, &error)),
        };
        Ok(self.value(tool.as_ref(), result)?)
    }

    /// Nobody knows what came of a call, unless it can be made again without harm.
    fn lost(&self, id: CallId, name: &str) {
        if let Some(recorder) = &self.wiring.recorder
            && !is_harmless(self.wiring.session.host(), name, "{}")
        {
            recorder.is_unknown(id, name);
        }
    }

    fn value(&self, tool: Option<&Tool>, result: Value) -> Result<Box<RawValue>, String> {
        let declared = tool.and_then(|tool| self.wiring.learned.declared(tool));
        let wrapping = declared.unwrap_or(Wrapping::None);
        let value = value::of_result(result, wrapping, &self.wiring.media)?;
        if let (Some(tool), None) = (tool, declared) {
            self.wiring.learned.learn(tool, &value);
        }
        serde_json::value::to_raw_value(&value).map_err(|error| error.to_string())
    }

    /// Takes a content block for the client, from a language that has no other way to give one.
    fn emit(&self, mut arguments: Map<String, Value>) -> Result<Box<RawValue>, String> {
        let block = arguments.remove("block").unwrap_or_default();
        let raw = serde_json::value::to_raw_value(&block).map_err(|error| error.to_string())?;
        let mut emitted = self.emitted.lock();
        let bytes: usize = emitted.iter().map(|block| block.get().len()).sum();
        if bytes + raw.get().len() > MAX_EMITTED {
            return Err(format!("more than {MAX_EMITTED} bytes of content"));
        }
        emitted.push(raw);
        RawValue::from_string("null".to_owned()).map_err(|error| error.to_string())
    }

    /// Discovery from within a script: the same meta-tools, their answers as data.
    async fn meta_call(
        &self,
        tool: MetaTool,
        arguments: Map<String, Value>,
    ) -> Result<Box<RawValue>, String> {
        if !in_scripts(tool) {
            let name = tool.name();
            return Err(format!("{name} cannot be used in a script"));
        }
        let result =
            meta::call(&self.wiring.session, tool, arguments, CallOptions::default()).await;
        let result = result.map_err(|_| "the call was refused".to_owned())?;
        let value = value::of_result(result, Wrapping::None, &self.wiring.media)?;
        serde_json::value::to_raw_value(&value).map_err(|error| error.to_string())
    }

    /// A sign of life for a client that waits: how many calls have been answered.
    fn report_progress(&self, name: &str) {
        let done = self.done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        if let Some(progress) = &self.wiring.progress {
            let message = Some(format!("{done} calls answered, the last of {name}"));
            // A client that does not keep up loses some of it.
            let _ = progress.try_send(Progress { progress: f64::from(done), total: None, message });
        }
    }
}

/// Whether a call can be made twice without harm, as the tool's server says and where it is believed.
pub(super) fn is_harmless(host: &Host, name: &str, arguments: &str) -> bool {
    let name = called_name(name, arguments);
    let Some(tool) = host.catalog().read().resolve(&name).cloned() else { return false };
    host.broker().policy_of(&tool).is_repeatable()
}

/// The tool that a call is of, where that is an argument of `call_tool`.
fn called_name(name: &str, arguments: &str) -> String {
    let named = || named_call(serde_json::from_str(arguments).ok()?).ok();
    match MetaTool::named(name) {
        Some(MetaTool::Call) => named().map_or_else(|| name.to_owned(), |(name, _)| name),
        _ => name.to_owned(),
    }
}

impl From<String> for Failed {
    fn from(message: String) -> Self {
        Self::Thrown(message)
    }
}

fn in_scripts(tool: MetaTool) -> bool {
    matches!(tool, MetaTool::Search | MetaTool::Details | MetaTool::Call)
}

/// The name and the arguments of `call_tool(name, arguments)`.
fn named_call(mut request: Map<String, Value>) -> Result<(String, Box<RawValue>), String> {
    let Some(Value::String(name)) = request.remove("name") else {
        return Err("call_tool takes the tool's name and its arguments".to_owned());
    };
    if MetaTool::named(&name) == Some(MetaTool::Call) {
        return Err("call_tool calls other tools".to_owned());
    }
    let arguments = request.remove("arguments").unwrap_or_else(|| Value::Object(Map::new()));
    let arguments =
        serde_json::value::to_raw_value(&arguments).map_err(|error| error.to_string())?;
    Ok((name, arguments))
}
