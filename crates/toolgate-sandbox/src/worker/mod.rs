//! The worker process, which runs one script.

mod pipe;
mod world;

use std::process::ExitCode;

use toolgate_bindings::check::{CallPlace, CheckFinding, Language, Lookup, LookupResult, check};
use toolgate_engines::{
    Engine, EngineLimits, EngineOutcome, EngineScript, Function, NullWorld, ScriptPlace,
    javascript::{EngineStartError, GLOBALS, JavaScript},
    python::{BUILTINS, Python, modules},
};

use self::{
    pipe::{HostLost, Pipe},
    world::PipeWorld,
};
use super::{
    frame::{Done, FromWorker, RunStart, ToWorker},
    lockdown,
    system::{allocator, stop, stop::ExitReason},
};

/// Makes the engine of a language.
pub type MakeEngine = fn(Language, Urgency) -> Result<Box<dyn Engine>, EngineStartError>;

/// Whether a script waits for its engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// A script waits: the engine defers everything that it does not need at once.
    ScriptWaits,
    /// No script waits: the engine prepares everything that a script may need.
    Idle,
}

/// The main function of a worker process.
pub fn worker_main() -> ExitCode {
    worker_main_with(make_engine)
}

/// The engine of a language.
pub fn make_engine(
    language: Language,
    urgency: Urgency,
) -> Result<Box<dyn Engine>, EngineStartError> {
    match language {
        Language::TypeScript => {
            let engine = JavaScript::new()?;
            if urgency == Urgency::Idle {
                engine.warm();
            }
            Ok(Box::new(engine))
        }
        Language::Python => Ok(Box::new(Python::new())),
    }
}

/// The main function of a worker process, with the engines that `make_engine` makes.
///
/// The process must be started by a [`crate::Pool`]. It applies the lockdown, makes the engines and
/// reports that it is ready. Only then does it read a script, run it and exit.
pub fn worker_main_with(make_engine: MakeEngine) -> ExitCode {
    allocator::watch();
    stop::listen();
    std::panic::set_hook(Box::new(|panic| {
        let mut frame = Vec::new();
        FromWorker::Panicked(panic.to_string()).encode(&mut frame);
        stop::leave_with(&mut frame, ExitReason::Panicked);
    }));
    let reason = match serve(make_engine) {
        Ok(()) => ExitReason::Done,
        Err(reason) => reason,
    };
    // Does not return, because exiting is faster than dropping everything.
    stop::leave(reason)
}

/// Runs one script.
fn serve(make_engine: MakeEngine) -> Result<(), ExitReason> {
    let mut pipe = Pipe::new().map_err(|_| ExitReason::Lost)?;
    let report = lockdown::lock_down();
    let lacking = report.lacking().is_some();
    pipe.send(&FromWorker::Ready(report));
    pipe.flush()?;
    if lacking {
        return Err(ExitReason::Lockdown);
    }
    let mut engines = Engines::new(make_engine);
    if !pipe.has_news()? {
        engines.warm_up();
    }
    let ToWorker::Start(start) = pipe.receive()? else { return Err(ExitReason::Lost) };
    lockdown::bound_run(&start);
    run(pipe, engines, &start)
}

/// Runs the script and sends the result.
fn run(mut pipe: Pipe, engines: Engines, start: &RunStart) -> Result<(), ExitReason> {
    let prepared = match prepare(&mut pipe, start)? {
        Ok(prepared) => prepared,
        Err(findings) => return end(pipe, &FromWorker::Done(Done::Rejected(findings))),
    };
    let engine = match engines.of(start.language) {
        Ok(engine) => engine,
        Err(error) => return end(pipe, &FromWorker::Panicked(error.to_string())),
    };
    let Prepared { source, functions, places } = &prepared;
    let script = EngineScript { source, functions, places };
    let limits = EngineLimits { memory_bytes: start.memory_bytes, stack_bytes: start.stack_bytes };
    let mut world = PipeWorld::new(pipe, start);
    let done = match engine.run(&script, &limits, &mut world) {
        EngineOutcome::Value(Some(value)) => {
            let bytes = u64::try_from(value.get().len()).unwrap_or(u64::MAX);
            if bytes > start.value_bytes {
                Done::ValueTooLarge { bytes }
            } else {
                Done::Value(value)
            }
        }
        EngineOutcome::Value(None) => Done::NoValue,
        EngineOutcome::Failed(failure) => Done::Failed(failure),
    };
    end(world.into_pipe(), &FromWorker::Done(done))
}

/// Sends the last frame and waits to be killed, so that the host can still read the CPU time.
fn end(mut pipe: Pipe, last: &FromWorker) -> Result<(), ExitReason> {
    pipe.send(last);
    let _ = pipe.receive()?;
    Ok(())
}

impl From<HostLost> for ExitReason {
    fn from(_: HostLost) -> Self {
        Self::Lost
    }
}

/// The engines that were made ahead of time, and the function that makes others.
struct Engines {
    make: MakeEngine,
    typescript: Option<Result<Box<dyn Engine>, EngineStartError>>,
    python: Option<Result<Box<dyn Engine>, EngineStartError>>,
}

impl Engines {
    fn new(make: MakeEngine) -> Self {
        Self { make, typescript: None, python: None }
    }

    /// Makes one engine of each language, one of which will be used.
    ///
    /// It also runs the code that every script runs, because a small script spends most of its time
    /// on code that was never executed before. The JavaScript engine does this itself.
    fn warm_up(&mut self) {
        check(Language::TypeScript, "return 1", &[], &[], &mut NoTools);
        check(Language::Python, "1", &[], &[], &mut NoTools);
        if let Ok(engine) = (self.make)(Language::Python, Urgency::Idle) {
            drop(engine.run(
                &EngineScript { source: "1", functions: &[], places: &[] },
                &TRIAL,
                &mut NullWorld,
            ));
        }
        self.typescript = Some((self.make)(Language::TypeScript, Urgency::Idle));
        self.python = Some((self.make)(Language::Python, Urgency::Idle));
    }

    fn of(self, language: Language) -> Result<Box<dyn Engine>, EngineStartError> {
        let made = match language {
            Language::TypeScript => self.typescript,
            Language::Python => self.python,
        };
        made.unwrap_or_else(|| (self.make)(language, Urgency::ScriptWaits))
    }
}

/// The limits for the warm-up script.
const TRIAL: EngineLimits =
    EngineLimits { memory_bytes: 16 * 1024 * 1024, stack_bytes: 512 * 1024 };

/// A lookup without tools.
struct NoTools;

impl Lookup for NoTools {
    fn look_up(&mut self, _names: &[String]) -> Vec<LookupResult> {
        Vec::new()
    }
}

/// A script that passed the check.
struct Prepared {
    source: String,
    functions: Vec<Function>,
    places: Vec<ScriptPlace>,
}

/// Checks a script and strips its types. The inner `Err` contains the findings.
fn prepare(
    pipe: &mut Pipe,
    start: &RunStart,
) -> Result<Result<Prepared, Vec<CheckFinding>>, HostLost> {
    let (globals, modules) = match start.language {
        Language::TypeScript => (GLOBALS, Vec::new()),
        Language::Python => (BUILTINS, modules()),
    };
    let mut lookup = PipeLookup { pipe: &mut *pipe, lost: None };
    let checked = check(start.language, &start.code, globals, &modules, &mut lookup);
    if let Some(lost) = lookup.lost {
        return Err(lost);
    }
    if checked.has_errors() {
        return Ok(Err(checked.findings));
    }
    if !checked.findings.is_empty() {
        pipe.send(&FromWorker::Warned(checked.findings));
    }
    if let Some(flow) = checked.flow {
        let mut frame = Vec::new();
        let flow = FromWorker::Flow(flow);
        flow.encode(&mut frame);
        // One that is too large is not sent, and everything may reach everything.
        if u64::try_from(frame.len()).is_ok_and(|bytes| bytes <= start.value_bytes) {
            pipe.send(&flow);
        }
    }
    let function = |tool: toolgate_bindings::check::ToolUse| Function {
        name: tool.name,
        parameters: tool.parameters,
    };
    let functions = checked.tools.into_iter().map(function).collect();
    let place = |CallPlace { alias, function }| ScriptPlace { alias, function };
    let places = checked.places.into_iter().map(place).collect();
    Ok(Ok(Prepared { source: checked.source, functions, places }))
}

/// Looks up names at the host.
struct PipeLookup<'a> {
    pipe: &'a mut Pipe,
    lost: Option<HostLost>,
}

impl PipeLookup<'_> {
    fn ask(&mut self, names: &[String]) -> Result<Vec<LookupResult>, HostLost> {
        self.pipe.send(&FromWorker::Describe(names.to_vec()));
        match self.pipe.receive()? {
            ToWorker::Described(found) => Ok(found),
            _ => Err(HostLost),
        }
    }
}

impl Lookup for PipeLookup<'_> {
    fn look_up(&mut self, names: &[String]) -> Vec<LookupResult> {
        self.ask(names).unwrap_or_else(|lost| {
            self.lost = Some(lost);
            Vec::new()
        })
    }
}
