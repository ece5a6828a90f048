//! The tools that a script can call: through a session of its own, and so through the broker.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use parking_lot::Mutex;
use serde_json::{Map, Value, json, value::RawValue};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use toolgate_broker::{
    BrokerError, CallContext, RunContext, ScriptFlow, ScriptFlowEdge, ScriptSite,
};
use toolgate_catalog::{SCRIPT_FUNCTION_NAMES, Tool, nearest};
use toolgate_policy::{CallPath, ScriptWay};
use toolgate_sandbox::{
    CallId, CallResponse, EngineCall, LookupResult, ProgramFlow, RunClock, RunEvent, ToolException,
    Tools,
};
use toolgate_store::QuestionReference;
use toolgate_upstream::{CallError, CallOptions, InputHandler, LogSink, Progress};

use super::{
    cut,
    extract::{
        self, EXTRACT, ExtractBudget, ExtractCache, ExtractError, ExtractSettings, Extraction,
    },
    journal::{PastCallState, RunJournal},
    media::Media,
    reads::{self, READ_RESOURCE, ScriptReadError},
    shapes::LearnedShapes,
    value::{self, ToolError, Wrapping},
};
use crate::{
    host::ToolHost,
    meta::{self, MetaTool},
    session::{ToolSession, error_result},
};

/// The tools of one run.
#[derive(Clone)]
pub(super) struct ScriptTools {
    inner: Arc<ScriptToolsInner>,
}

/// What the calls of a run need.
pub(super) struct ScriptContext {
    pub(super) session: ToolSession,
    pub(super) clock: RunClock,
    pub(super) run: Arc<RunContext>,
    pub(super) input_handler: Option<Arc<dyn InputHandler>>,
    /// As in the options of the call that runs the script.
    pub(super) became_task: Option<Arc<Notify>>,
    pub(super) media: Arc<Media>,
    pub(super) shapes: Arc<LearnedShapes>,
    pub(super) journal: Option<Arc<RunJournal>>,
    pub(super) progress: Option<mpsc::Sender<Progress>>,
    pub(super) log: Option<LogSink>,
    /// The trace of the run, as `_meta`.
    pub(super) trace: Option<Map<String, Value>>,
    /// The largest result that a script gets.
    pub(super) result_bytes: u64,
    pub(super) extract: ExtractSettings,
    pub(super) extracted: Arc<ExtractCache>,
}

struct ScriptToolsInner {
    context: ScriptContext,
    done: std::sync::atomic::AtomicU32,
    /// How many characters of results were replaced, because they were not valid Unicode.
    replaced: std::sync::atomic::AtomicU64,
    emitted: Mutex<Vec<Box<RawValue>>>,
    waiting: Mutex<Vec<WaitingCall>>,
    budget: ExtractBudget,
}

/// A call that waits for an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingCall {
    /// The number of the call in the run.
    pub number: u64,
    /// The name of the tool.
    pub name: String,
    /// Names the question that waits for a person.
    pub question: QuestionReference,
}

/// Why a call has no value.
enum ScriptCallError {
    /// An exception in the script.
    Thrown(ToolError),
    /// The call waits for the answer to this question.
    Waiting(QuestionReference),
}

/// The function that gives a content block to the client.
const EMIT: &str = "emit";
/// The most bytes of such content.
const MAX_EMITTED: usize = 16 * 1024 * 1024;
/// For how many unknown names servers are connected.
const MAX_MISSING: usize = 20;
/// For how many unknown names similar ones are searched, which is expensive.
const MAX_SUGGESTED: usize = 20;
const SUGGESTIONS: usize = 3;
/// The error of a call that may or may not have happened.
const UNKNOWN: &str = "the outcome of this call is unknown: it was sent before the run was \
                       interrupted; it is not repeated";

impl ScriptTools {
    pub(super) fn new(context: ScriptContext) -> Self {
        let inner = ScriptToolsInner {
            context,
            done: std::sync::atomic::AtomicU32::new(0),
            replaced: std::sync::atomic::AtomicU64::new(0),
            emitted: Mutex::default(),
            waiting: Mutex::default(),
            budget: ExtractBudget::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The calls that wait for an approval.
    pub(super) fn waiting(&self) -> Vec<WaitingCall> {
        let mut waiting = self.inner.waiting.lock().clone();
        waiting.sort_by_key(|call| call.number);
        waiting
    }

    /// How many characters of results were replaced, because they were not valid Unicode.
    pub(super) fn replaced(&self) -> u64 {
        self.inner.replaced.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// The content blocks that came as calls.
    pub(super) fn take_emitted(&self) -> Vec<Box<RawValue>> {
        std::mem::take(&mut *self.inner.emitted.lock())
    }
}

impl Tools for ScriptTools {
    fn describe(&self, names: Vec<String>) -> BoxFuture<'static, Vec<LookupResult>> {
        let inner = Arc::clone(&self.inner);
        async move { described(&inner.context.session, &inner.context.shapes, names).await }.boxed()
    }

    fn call(
        &self,
        call: EngineCall,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, CallResponse> {
        let inner = Arc::clone(&self.inner);
        async move {
            let outcome = inner.call_unless_sent(&call, cancel).await;
            let EngineCall { id, name, arguments, .. } = call;
            inner.report_progress(&name);
            match outcome {
                Ok(value) => CallResponse::Ended(Ok(value)),
                Err(ScriptCallError::Thrown(ToolError { message, content })) => {
                    let tool = called_name(&name, arguments.get());
                    CallResponse::Ended(Err(ToolException { tool, message, content }))
                }
                Err(ScriptCallError::Waiting(question)) => {
                    inner.waiting.lock().push(WaitingCall { number: id, name, question });
                    CallResponse::Suspended
                }
            }
        }
        .boxed()
    }

    fn on_event(&self, event: &RunEvent<'_>) {
        let Some(journal) = &self.inner.context.journal else { return };
        match event {
            RunEvent::Completed { id, at, outcome: Err(thrown) } => {
                let ToolException { tool, message, content } = thrown;
                let stored = ToolError::stored(message, content.as_deref());
                let outcome = &Err(ToolException::new(tool, stored));
                journal.happened(&RunEvent::Completed { id: *id, at: *at, outcome });
            }
            other => journal.happened(other),
        }
        if let RunEvent::Repeated { id, place } = event
            && let Some(past) = journal.past(*id)
        {
            self.inner.recall(*id, *place, past);
        }
    }

    fn on_flow(&self, flow: ProgramFlow) {
        if let Some(journal) = &self.inner.context.journal {
            journal.flows(&flow);
        }
        self.inner.context.run.set_flow(script_flow(&flow));
    }

    fn keep(&self, result: &RawValue) -> Option<String> {
        let context = &self.inner.context;
        let outputs = context.session.host().code().outputs(context.session.context());
        let text = serde_json::from_str::<String>(result.get());
        let id = outputs.store(text.as_deref().unwrap_or(result.get()));
        Some(format!("it is kept: read_output(\"{id}\") reads it in parts"))
    }

    fn clock(&self) -> RunClock {
        self.inner.context.clock.clone()
    }
}

/// Says which of the names are tools that scripts of a session can call. Connects lazy servers that they may belong to.
pub(super) async fn described(
    session: &ToolSession,
    shapes: &LearnedShapes,
    names: Vec<String>,
) -> Vec<LookupResult> {
    let host = session.host();
    let missing = |name: &String| {
        MetaTool::named(name).is_none()
            && !SCRIPT_FUNCTION_NAMES.contains(&name.as_str())
            && host.catalog().read().resolve(name).is_none()
    };
    for name in names.iter().filter(|name| missing(name)).take(MAX_MISSING) {
        host.connect_owners(name).await;
    }
    let catalog = host.catalog().read();
    let is_known = |tool: &&Tool| {
        session.opens(tool, CallPath::Script) || session.opens(tool, CallPath::Direct)
    };
    let input_schema = |tool: &Tool| tool.definition.input_schema();
    let output_schema = |name: &str| {
        let tool = catalog.resolve(name).filter(is_known)?;
        let mut declared = tool.definition.output_schema()?;
        // Few servers declare all that their results have.
        if let Some(shape) = shapes.shape(tool) {
            shape.complete(&mut declared);
        }
        serde_json::value::to_raw_value(&declared).ok()
    };
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
                None if name == EXTRACT => Some(extract::input_schema()),
                None if name == READ_RESOURCE => Some(reads::resource_schema()),
                // One that may only be called directly is known: its call says so.
                None => catalog.resolve(&name).filter(is_known).map(input_schema),
            };
            if let Some(input_schema) =
                schema.and_then(|schema| serde_json::value::to_raw_value(&schema).ok())
            {
                let output_schema = output_schema(&name);
                return LookupResult::Tool { name, input_schema, output_schema };
            }
            suggested += 1;
            let known = catalog.tools().filter(|tool| session.offers(tool));
            let known = known.map(|tool| tool.name.as_str());
            let nearest = if suggested <= MAX_SUGGESTED {
                nearest(&name, known, SUGGESTIONS).into_iter().map(str::to_owned).collect()
            } else {
                Vec::new()
            };
            LookupResult::Unknown { name, nearest }
        })
        .collect()
}

impl ScriptToolsInner {
    /// Repeats the side effects of a call of an earlier part of the run.
    fn recall(&self, id: CallId, place: Option<u32>, past: &PastCallState) {
        if past.name == EMIT
            && let Ok(arguments) = serde_json::from_str(&past.arguments)
        {
            // The client gets the content again. The script already knows if it was too much.
            let _ = self.emit(arguments);
        }
        if past.name == EXTRACT
            && past.sent
            && let Some(Ok(answer)) = &past.answer
        {
            self.budget.recall(&past.arguments, answer);
        }
        let answer = past.answer.as_ref().map(|answer| match answer {
            Ok(value) => serde_json::from_str(value).unwrap_or_else(|_| json!(value)),
            Err(ToolError { message, content }) => content
                .as_ref()
                .and_then(|blocks| serde_json::from_str(blocks).ok())
                .unwrap_or_else(|| json!(message)),
        });
        // Only a call that was sent has data of a server.
        if let Some(mut result) = answer.filter(|_| past.sent) {
            let context = self.of_call(id, place);
            let name = called_name(&past.name, &past.arguments);
            let mut arguments: Value = serde_json::from_str(&past.arguments).unwrap_or_default();
            self.context.media.put_back(&mut arguments);
            self.context.media.put_back(&mut result);
            let (broker, known) = (self.context.session.host().broker(), past.origin.as_ref());
            broker.recall(&name, known, &arguments, &context, &result);
        }
    }

    /// Makes a call, unless it was sent before the run was interrupted and must not be repeated.
    async fn call_unless_sent(
        &self,
        call: &EngineCall,
        cancel: CancellationToken,
    ) -> Result<Box<RawValue>, ScriptCallError> {
        let EngineCall { id, name, arguments, place } = call;
        let id = *id;
        if let Some(journal) = &self.context.journal {
            if let Some(problem) = journal.broken() {
                return Err(problem.into());
            }
            let sent = journal.past(id).is_some_and(|past| past.sent && past.is(name, arguments));
            let is_harmless = || is_repeatable(self.context.session.host(), name, arguments.get());
            if (sent || journal.may_be_lost(id, name, arguments)) && !is_harmless() {
                journal.is_unknown(id, name);
                return Err(UNKNOWN.to_owned().into());
            }
        }
        self.call((id, *place), name, arguments, cancel).await
    }

    /// What the broker knows of a call.
    fn of_call(&self, id: CallId, place: Option<u32>) -> CallContext {
        CallContext::of_run(self.context.session.context(), &self.context.run, id).at(place)
    }

    /// The options of a call.
    fn options(&self, cancel: CancellationToken) -> CallOptions {
        let (meta, input_handler) =
            (self.context.trace.clone(), self.context.input_handler.clone());
        let log = self.context.log.clone();
        let became_task = self.context.became_task.clone();
        CallOptions {
            meta,
            cancel,
            input_handler,
            log,
            became_task,
            gets_texts: true,
            ..CallOptions::default()
        }
    }

    /// How much of an output a script gets at once. As JSON it may have several times as many bytes.
    fn page_bytes(&self) -> usize {
        usize::try_from(self.context.result_bytes / 8).unwrap_or(usize::MAX)
    }

    async fn call(
        &self,
        (id, place): (CallId, Option<u32>),
        name: &str,
        arguments: &RawValue,
        cancel: CancellationToken,
    ) -> Result<Box<RawValue>, ScriptCallError> {
        let mut arguments: Map<String, Value> =
            serde_json::from_str(arguments.get()).map_err(|error| {
                if error.is_data() {
                    "the arguments are not an object".to_owned()
                } else {
                    "the arguments are nested too deeply".to_owned()
                }
            })?;
        match MetaTool::named(name) {
            // The script chose the tool at run time: the inner call counts.
            Some(MetaTool::Call) => {
                let request = named_call(arguments)?;
                return Box::pin(self.call((id, place), &request.0, &request.1, cancel)).await;
            }
            Some(MetaTool::Read) => {
                let (context, options) = (self.of_call(id, place), self.options(cancel));
                let (session, page) = (&self.context.session, self.page_bytes());
                let read = reads::output(session, arguments, context, &options, page).await;
                return raw(&read?);
            }
            Some(tool) => return self.meta_call(tool, arguments).await,
            None if name == READ_RESOURCE => {
                let (context, options) = (self.of_call(id, place), self.options(cancel));
                let (session, media) = (&self.context.session, &self.context.media);
                let read = reads::resource(session, arguments, context, options, media).await;
                return raw(&read?);
            }
            None if name == EMIT => return self.emit(arguments),
            None if name == EXTRACT => return self.extract((id, place), arguments, cancel).await,
            None => {}
        }
        for argument in arguments.values_mut() {
            self.context.media.put_back(argument);
        }
        let (context, options) = (self.of_call(id, place), self.options(cancel));
        let called = self.context.session.call_tool(name, None, arguments, &context, options).await;
        let failed = match called {
            Ok((tool, result)) => return self.value(Some(&tool), result),
            Err(BrokerError::Waiting { reference, .. }) => {
                return Err(ScriptCallError::Waiting(reference));
            }
            Err(BrokerError::Call(error)) => match *error {
                CallError::Cancelled => return Err("cancelled".to_owned().into()),
                CallError::Refused { server, tool, error } => {
                    let text = error.message.clone() + &meta::visits(&error);
                    let error = BrokerError::from(CallError::Refused { server, tool, error });
                    refused_block(&text, &error)
                }
                other => {
                    if matches!(other, CallError::Stopped { .. } | CallError::TimedOut { .. }) {
                        self.mark_unknown(id, name);
                    }
                    error_result(&other.to_string())
                }
            },
            Err(error) => error_result(&meta::refusal(&self.context.session, &error)),
        };
        self.value(None, failed)
    }

    /// Lets a model turn a text into data. Media handles stay handles: no model gets the media.
    async fn extract(
        &self,
        (id, place): (CallId, Option<u32>),
        arguments: Map<String, Value>,
        cancel: CancellationToken,
    ) -> Result<Box<RawValue>, ScriptCallError> {
        let extraction = Extraction {
            host: self.context.session.host(),
            settings: &self.context.extract,
            budget: &self.budget,
            cache: &self.context.extracted,
            context: self.of_call(id, place),
            options: self.options(cancel),
        };
        match extraction.run(arguments).await {
            Ok(value) => raw(&value),
            Err(ExtractError::Refused(why)) => Err(why.into()),
            Err(ExtractError::Broker(BrokerError::Waiting { reference, .. })) => {
                Err(ScriptCallError::Waiting(reference))
            }
            Err(ExtractError::Broker(error)) => Err(error.to_string().into()),
        }
    }

    /// Notes an unknown outcome, unless the call is safe to repeat.
    fn mark_unknown(&self, id: CallId, name: &str) {
        if let Some(journal) = &self.context.journal
            && !is_repeatable(self.context.session.host(), name, "{}")
        {
            journal.is_unknown(id, name);
        }
    }

    fn value(&self, tool: Option<&Tool>, result: Value) -> Result<Box<RawValue>, ScriptCallError> {
        let mut replaced = cut::replaced_in(&result).unwrap_or_default();
        let declared = tool.and_then(|tool| self.context.shapes.declared(tool));
        let wrapping = declared.unwrap_or(Wrapping::None);
        let most = usize::try_from(self.context.result_bytes).unwrap_or(usize::MAX);
        let media = &self.context.media;
        let value = value::of_result(result, wrapping, most, media, &mut replaced);
        self.replaced.fetch_add(replaced, std::sync::atomic::Ordering::Relaxed);
        let value = value?;
        if let Some(tool) = tool {
            self.context.shapes.learn(tool, &value);
        }
        raw(&value)
    }

    /// Takes a content block for the client, for languages without another way.
    fn emit(&self, mut arguments: Map<String, Value>) -> Result<Box<RawValue>, ScriptCallError> {
        let block = arguments.remove("block").unwrap_or_default();
        let block = raw(&block)?;
        let mut emitted = self.emitted.lock();
        let bytes: usize = emitted.iter().map(|block| block.get().len()).sum();
        if bytes + block.get().len() > MAX_EMITTED {
            return Err(format!("more than {MAX_EMITTED} bytes of content").into());
        }
        emitted.push(block);
        raw(&Value::Null)
    }

    /// Calls a meta-tool for the script, and returns its result as data.
    async fn meta_call(
        &self,
        tool: MetaTool,
        arguments: Map<String, Value>,
    ) -> Result<Box<RawValue>, ScriptCallError> {
        if !in_scripts(tool) {
            let name = tool.name();
            return Err(format!("{name} cannot be used in a script").into());
        }
        let result =
            meta::call(&self.context.session, tool, arguments, CallOptions::default()).await;
        let result = result.map_err(|_| "the call was refused".to_owned())?;
        let value =
            value::of_result(result, Wrapping::None, usize::MAX, &self.context.media, &mut 0)?;
        raw(&value)
    }

    /// Reports progress to a waiting client: the number of answered calls.
    fn report_progress(&self, name: &str) {
        let done = self.done.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        if let Some(progress) = &self.context.progress {
            let message = format!("{done} calls answered, the last of {name}");
            // A slow client misses some reports.
            let _ = progress.try_send(Progress::new(done, Some(message)));
        }
    }
}

/// The flows between the calls of a script.
fn script_flow(flow: &ProgramFlow) -> ScriptFlow {
    let sites = flow
        .calls
        .iter()
        .map(|call| ScriptSite { tool: call.tool.as_deref().map(Arc::from), place: call.place });
    let edges = flow.flows.iter().map(|edge| ScriptFlowEdge {
        from: edge.from,
        to: edge.to,
        argument: edge.argument.clone(),
        way: ScriptWay { through: edge.through.clone(), is_choice: edge.is_choice },
    });
    ScriptFlow::new(sites.collect(), edges.collect())
}

/// Whether a call is safe to repeat, as the tool's annotations say and if the policy trusts them.
pub(super) fn is_repeatable(host: &ToolHost, name: &str, arguments: &str) -> bool {
    let name = called_name(name, arguments);
    // A model may be asked again, and what only reads can be repeated.
    if [EXTRACT, READ_RESOURCE, MetaTool::Read.name()].contains(&name.as_str()) {
        return true;
    }
    let Some(tool) = host.catalog().read().resolve(&name).cloned() else { return false };
    host.broker().policy_of(&tool).is_repeatable()
}

/// A result that reports a server's error to a script, whose errors keep content and nothing else.
fn refused_block(text: &str, error: &BrokerError) -> Value {
    let mut result = error_result(text);
    if let Some(data) = error.data() {
        result["content"][0]["_meta"] = data;
    }
    result
}

/// The called tool, which is an argument in the case of `call_tool`.
fn called_name(name: &str, arguments: &str) -> String {
    let named = || named_call(serde_json::from_str(arguments).ok()?).ok();
    match MetaTool::named(name) {
        Some(MetaTool::Call) => named().map_or_else(|| name.to_owned(), |(name, _)| name),
        _ => name.to_owned(),
    }
}

impl From<ScriptReadError> for ScriptCallError {
    fn from(error: ScriptReadError) -> Self {
        match error {
            ScriptReadError::Refused(why) => why.into(),
            ScriptReadError::Broker(BrokerError::Waiting { reference, .. }) => {
                Self::Waiting(reference)
            }
            ScriptReadError::Broker(error) => error.to_string().into(),
        }
    }
}

impl From<ToolError> for ScriptCallError {
    fn from(error: ToolError) -> Self {
        Self::Thrown(error)
    }
}

fn raw(value: &Value) -> Result<Box<RawValue>, ScriptCallError> {
    serde_json::value::to_raw_value(value).map_err(|error| error.to_string().into())
}

impl From<String> for ScriptCallError {
    fn from(message: String) -> Self {
        Self::Thrown(ToolError::new(message))
    }
}

fn in_scripts(tool: MetaTool) -> bool {
    matches!(tool, MetaTool::Search | MetaTool::Details | MetaTool::Call | MetaTool::Read)
}

/// The name and the arguments of `call_tool(name, arguments)`.
fn named_call(mut request: Map<String, Value>) -> Result<(String, Box<RawValue>), ScriptCallError> {
    let Some(Value::String(name)) = request.remove("name") else {
        return Err("call_tool takes the tool's name and its arguments".to_owned().into());
    };
    if MetaTool::named(&name) == Some(MetaTool::Call) {
        return Err("call_tool calls other tools".to_owned().into());
    }
    let arguments = request.remove("arguments").unwrap_or_else(|| Value::Object(Map::new()));
    Ok((name, raw(&arguments)?))
}
