//! Runs Monty from pause to pause: at calls, names and waits.

use std::{
    borrow::Cow,
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, HashMap, HashSet},
    time::Duration,
};

use monty::{MontyRepl, ReplFunctionCall, ReplProgress, ReplResolveFutures, ReplStartError};
use monty_types::{
    ExcType, ExtFunctionResult, MontyException, MontyObject, NameLookupResult, PrintWriter,
    PrintWriterCallback,
};

use super::{
    host::{self, Clock, HostRequest},
    rewrite::AT,
    value,
};
use crate::{
    engine::{EngineScript, Function},
    world::{CallId, Completion, EngineCall, HostClosed, RunSeed, Stream, ToolException, World},
};

/// The size of the output buffer, so that a line is one write.
const CONSOLE_BUFFER: usize = 8 * 1024;

/// The number of tools whose last results are remembered.
const MAX_TOOLS: usize = 8;

/// The number of results up to which each is searched for in the list of all waits.
const FEW: usize = 16;

/// Why a piece of Python did not run to its end.
#[derive(Debug)]
pub(super) enum Stop {
    /// An exception that was not caught, and the number of the statement that noted itself last.
    Raised(Box<MontyException>, Option<u32>),
    /// It waits for something that will never be settled.
    Stalled,
    /// The host is gone.
    Abandoned,
}

/// Connects one run of Monty with the world.
pub(super) struct Machine<'a> {
    world: &'a mut dyn World,
    /// The tools under all their names, with the place that alone uses the name.
    functions: HashMap<&'a str, (&'a Function, Option<u32>)>,
    console: String,
    next_call: CallId,
    in_flight: HashMap<CallId, PendingToolCall<'a>>,
    /// The calls with a result that was never used, by Monty's number.
    unused: BTreeMap<u32, &'a Function>,
    /// Settled results that Monty has not received yet, because nothing waited for them.
    ready: HashMap<u32, ExtFunctionResult>,
    timers: BinaryHeap<Reverse<(Duration, u32)>>,
    /// Awaitables that the script settles itself, in the order of creation.
    futures: BTreeMap<u64, u32>,
    next_future: u64,
    /// The number of seeds that were returned.
    seeds: u64,
    /// What the last result of each tool looks like, the latest last.
    pub(super) last_results: Vec<(&'a str, String)>,
    /// Whether the script notes its statements.
    pub(super) traced: bool,
}

/// A call without a completion.
struct PendingToolCall<'a> {
    /// Monty's number for the call.
    number: u32,
    function: &'a Function,
}

type MontyStep = Result<ReplProgress, Box<ReplStartError>>;

impl<'a> Machine<'a> {
    /// A machine for a new run.
    pub(super) fn new(script: &EngineScript<'a>, world: &'a mut dyn World) -> Self {
        let mut functions: HashMap<&str, (&Function, Option<u32>)> =
            script.functions.iter().map(|f| (f.name.as_str(), (f, None))).collect();
        for (place, known) in (0..).zip(script.places) {
            if let Some((function, _)) = functions.get(known.function.as_str()).copied() {
                functions.insert(&known.alias, (function, Some(place)));
            }
        }
        Self {
            world,
            functions,
            console: String::new(),
            next_call: 0,
            in_flight: HashMap::new(),
            unused: BTreeMap::new(),
            ready: HashMap::new(),
            timers: BinaryHeap::new(),
            futures: BTreeMap::new(),
            next_future: 0,
            seeds: 0,
            last_results: Vec::new(),
            traced: false,
        }
    }

    /// Runs a piece of Python to its end.
    pub(super) fn run(
        &mut self,
        session: MontyRepl,
        source: &str,
    ) -> Result<(MontyRepl, MontyObject), Stop> {
        let mut step = session.feed_start(source, Vec::new(), self.printer());
        let ended = loop {
            step = match step {
                Ok(ReplProgress::Complete { repl, value }) => break Ok((repl, value)),
                Ok(ReplProgress::FunctionCall(call)) => self.call(call)?,
                Ok(ReplProgress::ResolveFutures(waiting)) => self.resolve(waiting)?,
                Ok(ReplProgress::NameLookup(lookup)) => {
                    let found = lookup.object_id().is_none().then(|| self.name(&lookup.name));
                    let answer = found.unwrap_or(NameLookupResult::Undefined);
                    lookup.resume(answer, self.printer())
                }
                Ok(ReplProgress::OsCall(call)) => {
                    let answer = host::operating_system(&call.function_call, self.clock());
                    call.resume(result(answer), self.printer())
                }
                Err(error) => {
                    let ReplStartError { repl, error } = *error;
                    let at = self.traced.then(|| last_statement(repl)).flatten();
                    break Err(Stop::Raised(Box::new(error), at));
                }
            };
        };
        self.flush();
        ended
    }

    /// Reports on the error output which calls were never awaited.
    pub(super) fn report_unused(&mut self) {
        if self.unused.is_empty() {
            return;
        }
        let mut names: Vec<&str> = self.unused.values().map(|f| f.name.as_str()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        names.truncate(5);
        let text = format!(
            "RuntimeWarning: {count} call(s) were made and never awaited: {}\n",
            names.join(", ")
        );
        self.world.write(Stream::Error, &text);
    }

    fn clock(&self) -> Clock {
        let RunSeed { unix, seed } = self.world.beginning();
        Clock { unix, elapsed: self.world.now(), seed: seed.wrapping_add(self.seeds) }
    }

    fn printer(&mut self) -> PrintWriter<'_> {
        PrintWriter::Callback(self)
    }

    fn flush(&mut self) {
        if !self.console.is_empty() {
            self.world.write(Stream::Output, &self.console);
            self.console.clear();
        }
    }

    fn name(&self, name: &str) -> NameLookupResult {
        if self.functions.contains_key(name) || name.starts_with(host::PREFIX) {
            NameLookupResult::Value(MontyObject::Function {
                name: name.to_owned(),
                docstring: None,
            })
        } else {
            NameLookupResult::Undefined
        }
    }

    fn call(&mut self, call: ReplFunctionCall) -> Result<MontyStep, Stop> {
        if call.object_id.is_some() {
            let name = call.function_name.clone();
            return Ok(call.resume(ExtFunctionResult::NotFound(name), self.printer()));
        }
        if let Some(named) = self.functions.get(call.function_name.as_str()).copied() {
            return self.tool(named, call);
        }
        if let Some(name) = call.function_name.strip_prefix(host::PREFIX) {
            let clock = self.clock();
            self.seeds += u64::from(name == host::SEED);
            let request = host::request(name, &call.args, clock);
            return self.own(request, call);
        }
        let name = call.function_name.clone();
        Ok(call.resume(ExtFunctionResult::NotFound(name), self.printer()))
    }

    fn tool(
        &mut self,
        (function, place): (&'a Function, Option<u32>),
        call: ReplFunctionCall,
    ) -> Result<MontyStep, Stop> {
        let arguments = match host::bind(function, &call.args, &call.kwargs) {
            Ok(arguments) => arguments,
            Err(error) => {
                return Ok(call.resume(ExtFunctionResult::Error(error), self.printer()));
            }
        };
        let id = self.next_call;
        self.next_call += 1;
        self.in_flight.insert(id, PendingToolCall { number: call.call_id, function });
        self.unused.insert(call.call_id, function);
        // Output that precedes a call is written before the call has an effect.
        self.flush();
        self.world.submit(EngineCall { id, name: function.name.clone(), arguments, place })?;
        Ok(call.resume_pending(self.printer()))
    }

    fn own(&mut self, request: HostRequest, call: ReplFunctionCall) -> Result<MontyStep, Stop> {
        let answer = match request {
            HostRequest::Value(value) => ExtFunctionResult::Return(value),
            HostRequest::Raise(error) => ExtFunctionResult::Error(error),
            HostRequest::Write(stream, text) => {
                self.flush();
                self.world.write(stream, &text);
                ExtFunctionResult::Return(MontyObject::None)
            }
            HostRequest::Sleep(until) => {
                self.flush();
                while self.world.now() < until {
                    if let Some(completion) = self.world.wait(Some(until))? {
                        self.complete(completion);
                    }
                }
                ExtFunctionResult::Return(MontyObject::None)
            }
            HostRequest::Timer(until) => {
                self.timers.push(Reverse((until, call.call_id)));
                return Ok(call.resume_pending(self.printer()));
            }
            HostRequest::Future => {
                self.futures.insert(self.next_future, call.call_id);
                self.next_future += 1;
                return Ok(call.resume_pending(self.printer()));
            }
            HostRequest::Settle(number) => {
                if let Some(number) = self.futures.remove(&number) {
                    self.ready.insert(number, ExtFunctionResult::Return(MontyObject::None));
                }
                ExtFunctionResult::Return(MontyObject::None)
            }
        };
        Ok(call.resume(answer, self.printer()))
    }

    /// Every task waits. Passes the settled results to Monty, and waits only if there are none.
    fn resolve(&mut self, waiting: ReplResolveFutures) -> Result<MontyStep, Stop> {
        self.flush();
        let pending = waiting.pending_call_ids();
        // The script waits for these, even if the wait ends before they do.
        for number in common(pending, self.unused.keys().copied()) {
            self.unused.remove(&number);
        }
        loop {
            self.ring();
            let mut settled: Vec<(u32, ExtFunctionResult)> =
                common(pending, self.ready.keys().copied())
                    .into_iter()
                    .filter_map(|number| Some((number, self.ready.remove(&number)?)))
                    .collect();
            // Monty lists them in no order, and continues in the order in which it receives them.
            settled.sort_unstable_by_key(|(number, _)| *number);
            // The task that ran last, which made the last call, would continue first. The others get
            // their turn before it.
            if settled.len() > 1
                && let Some((number, _)) = settled.last()
                && pending.iter().max() == Some(number)
                && let Some((number, result)) = settled.pop()
            {
                self.ready.insert(number, result);
            }
            if !settled.is_empty() {
                return Ok(waiting.resume(settled, self.printer()));
            }
            let alarm = self.timers.peek().map(|Reverse((until, _))| *until);
            if self.in_flight.is_empty() && alarm.is_none() {
                return Err(Stop::Stalled);
            }
            if let Some(completion) = self.world.wait(alarm)? {
                self.complete(completion);
                // All completions that have arrived, because one resumption for each would take
                // quadratic time.
                while let Some(completion) = self.world.more()? {
                    self.complete(completion);
                }
            }
        }
    }

    fn ring(&mut self) {
        let now = self.world.now();
        while let Some(Reverse((until, number))) = self.timers.peek().copied() {
            if until > now {
                break;
            }
            self.timers.pop();
            self.ready.insert(number, ExtFunctionResult::Return(MontyObject::None));
        }
    }

    fn complete(&mut self, completion: Completion) {
        // A completion without a call is a mistake of the host, which a script cannot handle.
        let Some(call) = self.in_flight.remove(&completion.id) else { return };
        let value = match completion.outcome {
            Ok(text) => match value::from_json(&text) {
                Ok(value) => {
                    self.remember(&call.function.name, &value);
                    value
                }
                Err(error) => failure(&ToolException::new(&*call.function.name, error.to_string())),
            },
            Err(thrown) => failure(&thrown),
        };
        self.ready.insert(call.number, ExtFunctionResult::Return(value));
    }
}

impl<'a> Machine<'a> {
    fn remember(&mut self, tool: &'a str, value: &MontyObject) {
        self.last_results.retain(|(known, _)| *known != tool);
        if self.last_results.len() >= MAX_TOOLS {
            self.last_results.remove(0);
        }
        self.last_results.push((tool, value::shape(value, 2)));
    }
}

impl PrintWriterCallback for Machine<'_> {
    fn stdout_write(&mut self, output: Cow<'_, str>) -> Result<(), MontyException> {
        self.console.push_str(&output);
        if self.console.len() > CONSOLE_BUFFER {
            self.flush();
        }
        Ok(())
    }

    fn stdout_push(&mut self, end: char) -> Result<(), MontyException> {
        self.console.push(end);
        if end == '\n' {
            self.flush();
        }
        Ok(())
    }

    fn poll_flush(&mut self) -> Result<(), MontyException> {
        self.flush();
        Ok(())
    }
}

impl From<HostClosed> for Stop {
    fn from(HostClosed: HostClosed) -> Self {
        Self::Abandoned
    }
}

/// The numbers that are in both lists. All tasks of a script may wait while one of them continues,
/// and then a look at each number costs more than the step of that task.
fn common(pending: &[u32], numbers: impl ExactSizeIterator<Item = u32>) -> Vec<u32> {
    if numbers.len() < FEW {
        numbers.filter(|number| pending.contains(number)).collect()
    } else {
        let pending: HashSet<u32> = pending.iter().copied().collect();
        numbers.filter(|number| pending.contains(number)).collect()
    }
}

/// The number of the statement that noted itself last.
fn last_statement(session: MontyRepl) -> Option<u32> {
    match session.feed_start(AT, Vec::new(), PrintWriter::Disabled) {
        Ok(ReplProgress::Complete { value: MontyObject::Int(number), .. }) => {
            number.try_into().ok()
        }
        _ => None,
    }
}

fn result(answer: Result<MontyObject, MontyException>) -> ExtFunctionResult {
    match answer {
        Ok(value) => ExtFunctionResult::Return(value),
        Err(error) => ExtFunctionResult::Error(error),
    }
}

/// The failure of a tool, as the value that the prelude raises where it is awaited.
fn failure(thrown: &ToolException) -> MontyObject {
    let ToolException { tool, message, content } = thrown;
    // JSON contains no NUL.
    let content = content.as_deref().unwrap_or_default();
    MontyObject::Exception {
        exc_type: ExcType::BinasciiError,
        arg: Some(format!("{tool}\0{content}\0{message}")),
    }
}
