//! What a script's calls reach: the broker, by way of a session of its own.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use parking_lot::Mutex;
use serde_json::{Map, Value, json, value::RawValue};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolgate_broker::{BrokerError, CallContext, RunContext};
use toolgate_catalog::{Tool, nearest};
use toolgate_sandbox::{Answer, CallId, Found, Thrown, Tools};
use toolgate_upstream::{CallError, CallOptions, Progress, Respondent};

use super::{
    lanes::Lanes,
    learned::Learned,
    media::Media,
    value::{self, Wrapping},
};
use crate::{
    meta::{self, MetaTool},
    session::{Session, error_result},
};

/// The tools of one run.
#[derive(Clone)]
pub(super) struct Bridge {
    inner: Arc<Inner>,
}

struct Inner {
    session: Session,
    run: Arc<RunContext>,
    respondent: Option<Arc<dyn Respondent>>,
    media: Arc<Media>,
    lanes: Arc<Lanes>,
    learned: Arc<Learned>,
    progress: Option<mpsc::Sender<Progress>>,
    done: std::sync::atomic::AtomicU32,
    emitted: Mutex<Vec<Box<RawValue>>>,
}

/// Why a call has no value.
enum Failed {
    /// This is thrown in the script.
    Thrown(String),
    /// A person has to be asked first.
    Waiting,
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

impl Bridge {
    pub(super) fn new(
        session: Session,
        run: RunContext,
        media: Arc<Media>,
        lanes: Arc<Lanes>,
        learned: Arc<Learned>,
        progress: Option<mpsc::Sender<Progress>>,
        respondent: Option<Arc<dyn Respondent>>,
    ) -> Self {
        let run = Arc::new(run);
        let done = std::sync::atomic::AtomicU32::new(0);
        let emitted = Mutex::default();
        Self {
            inner: Arc::new(Inner {
                session,
                run,
                respondent,
                media,
                lanes,
                learned,
                progress,
                done,
                emitted,
            }),
        }
    }

    /// The content blocks that came as calls.
    pub(super) fn take_emitted(&self) -> Vec<Box<RawValue>> {
        std::mem::take(&mut *self.inner.emitted.lock())
    }
}

impl Tools for Bridge {
    fn describe(&self, names: Vec<String>) -> BoxFuture<'static, Vec<Found>> {
        let inner = Arc::clone(&self.inner);
        async move { inner.describe(names).await }.boxed()
    }

    fn call(
        &self,
        id: CallId,
        name: String,
        arguments: Box<RawValue>,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Answer> {
        let inner = Arc::clone(&self.inner);
        async move {
            let outcome = inner.call(id, &name, &arguments, cancel).await;
            inner.report_progress(&name);
            match outcome {
                Ok(value) => Answer::Ended(Ok(value)),
                Err(Failed::Thrown(message)) => Answer::Ended(Err(Thrown { tool: name, message })),
                Err(Failed::Waiting) => Answer::Suspended,
            }
        }
        .boxed()
    }
}

impl Inner {
    async fn describe(&self, names: Vec<String>) -> Vec<Found> {
        let host = self.session.host();
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
                    return Found::Tool { name, input_schema };
                }
                suggested += 1;
                let known = catalog.tools().map(|tool| tool.name.as_str());
                let nearest = if suggested <= MAX_SUGGESTED {
                    nearest(&name, known, SUGGESTIONS).into_iter().map(str::to_owned).collect()
                } else {
                    Vec::new()
                };
                Found::Unknown { name, nearest }
            })
            .collect()
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
            self.media.put_back(argument);
        }
        let tool = self.session.host().catalog().read().resolve(name).cloned();
        let _place = match &tool {
            Some(tool) => tokio::select! {
                place = self.lanes.enter(&tool.id.server) => place,
                () = cancel.cancelled() => return Err("cancelled before it was sent".to_owned().into()),
            },
            None => None,
        };
        let respondent = self.respondent.clone();
        let options = CallOptions { cancel, respondent, ..CallOptions::default() };
        let context = CallContext::of_run(self.session.context(), &self.run, id);
        let result = match self.session.call_within(name, arguments, &context, options).await {
            Ok(result) => result,
            Err(BrokerError::Waiting { .. }) => return Err(Failed::Waiting),
            Err(BrokerError::Call(error)) => match *error {
                CallError::Cancelled => return Err("cancelled".to_owned().into()),
                CallError::Refused { error, .. } => error_result(&error.message),
                other => error_result(&other.to_string()),
            },
            Err(error) => error_result(&meta::refusal(&self.session, &error)),
        };
        Ok(self.value(tool.as_ref(), result)?)
    }

    fn value(&self, tool: Option<&Tool>, result: Value) -> Result<Box<RawValue>, String> {
        let declared = tool.and_then(|tool| self.learned.declared(tool));
        let wrapping = declared.unwrap_or(Wrapping::None);
        let value = value::of_result(result, wrapping, &self.media)?;
        if let (Some(tool), None) = (tool, declared) {
            self.learned.learn(tool, &value);
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
        let result = meta::call(&self.session, tool, arguments, CallOptions::default()).await;
        let result = result.map_err(|_| "the call was refused".to_owned())?;
        let value = value::of_result(result, Wrapping::None, &self.media)?;
        serde_json::value::to_raw_value(&value).map_err(|error| error.to_string())
    }

    /// A sign of life for a client that waits: how many calls have been answered.
    fn report_progress(&self, name: &str) {
        let done = self.done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        if let Some(progress) = &self.progress {
            let message = Some(format!("{done} calls answered, the last of {name}"));
            // A client that does not keep up loses some of it.
            let _ = progress.try_send(Progress { progress: f64::from(done), total: None, message });
        }
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
