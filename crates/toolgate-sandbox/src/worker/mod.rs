//! The worker process, which runs one script.

mod engines;
mod mentions;
mod pipe;
mod world;

use std::os::fd::OwnedFd;

use toolgate_bindings::check::{
    CallPlace, CheckFinding, Language, Lookup, LookupResult, ModuleShape, SourcePositions, check,
};
use toolgate_engines::{
    EngineLimits, EngineOutcome, EngineScript, Function, ScriptFailure, ScriptPlace,
    ScriptPosition, StackFrame,
    javascript::{GLOBALS, MODULES},
    python::{BUILTINS, modules},
};

pub(crate) use self::engines::Engines;
pub use self::engines::{MakeEngine, make_engine};
use self::{
    pipe::{HostLost, Pipe},
    world::PipeWorld,
};
use super::{
    cpython,
    frame::{Done, FromWorker, PreparedScript, RunStart, ToWorker},
    lockdown::{self, LockdownReport, LockedZygote},
    system::{stop, stop::ExitReason},
};

/// Runs one script in a process that the zygote has just forked.
pub(crate) fn main(pipe: OwnedFd, zygote: LockedZygote, engines: Engines) -> ! {
    std::panic::set_hook(Box::new(|panic| {
        let mut frame = Vec::new();
        FromWorker::Panicked(panic.to_string()).encode(&mut frame);
        stop::leave_with(&mut frame, ExitReason::Panicked);
    }));
    let report = lockdown::lock_worker(pipe, zygote);
    let reason = match serve(report, engines) {
        Ok(()) => ExitReason::Done,
        Err(reason) => reason,
    };
    // Exiting is faster than dropping everything.
    stop::leave(reason)
}

fn serve(report: LockdownReport, engines: Engines) -> Result<(), ExitReason> {
    let mut pipe = Pipe::new();
    let lacking = report.lacking().is_some();
    pipe.send(&FromWorker::Ready(report));
    pipe.flush()?;
    if lacking {
        return Err(ExitReason::Lockdown);
    }
    let ToWorker::Start(start) = pipe.receive()? else { return Err(ExitReason::Lost) };
    lockdown::bound_run(&start.bounds);
    run(pipe, engines, &start)
}

/// Runs the script and sends the result.
fn run(mut pipe: Pipe, engines: Engines, start: &RunStart) -> Result<(), ExitReason> {
    let prepared = match start.language {
        Some(language) => prepare(&mut pipe, start, language)?,
        None => Ok(unchecked(&mut pipe, start)?),
    };
    let prepared = match prepared {
        Ok(prepared) => prepared,
        Err(findings) => return end(pipe, &FromWorker::Done(Done::Rejected(findings))),
    };
    if start.only_checks || start.interpreter.is_some() {
        return end(pipe, &prepared_frame(&prepared));
    }
    let engine = match engines.of(start.language) {
        Ok(engine) => engine,
        Err(error) => return end(pipe, &FromWorker::Panicked(error)),
    };
    let PreparedScript { source, functions, places, .. } = &prepared;
    let script = EngineScript { source, functions, places };
    let bounds = &start.bounds;
    let limits =
        EngineLimits { memory_bytes: bounds.memory_bytes, stack_bytes: bounds.stack_bytes };
    let mut world = PipeWorld::new(pipe, bounds);
    let done = match engine.run(&script, &limits, &mut world) {
        EngineOutcome::Value(Some(value)) => {
            let bytes = u64::try_from(value.get().len()).unwrap_or(u64::MAX);
            if bytes > bounds.value_bytes {
                Done::ValueTooLarge { bytes }
            } else {
                Done::Value(value)
            }
        }
        EngineOutcome::Value(None) => Done::NoValue,
        EngineOutcome::Failed(failure) => Done::Failed(placed(failure, &prepared.positions)),
    };
    end(world.into_pipe(), &FromWorker::Done(done))
}

/// A failure with the positions of the script. Frames of what the script does not contain are left out.
fn placed(mut failure: ScriptFailure, positions: &SourcePositions) -> ScriptFailure {
    failure.stack.retain_mut(|StackFrame { position, .. }| {
        if position.column == 0 {
            return true;
        }
        let original = positions.original(position.line, position.column);
        *position = original.map_or(*position, |(line, column)| ScriptPosition { line, column });
        original.is_some()
    });
    failure
}

/// Sends the last frame and waits to be killed, so that the host can still read the CPU time.
fn end(mut pipe: Pipe, last: &FromWorker) -> Result<(), ExitReason> {
    pipe.send(last);
    pipe.flush()?;
    loop {
        // Answers to calls that the script did not wait for.
        pipe.receive()?;
    }
}

impl From<HostLost> for ExitReason {
    fn from(_: HostLost) -> Self {
        Self::Lost
    }
}

/// The last frame of a worker that only checks.
fn prepared_frame(script: &PreparedScript) -> FromWorker {
    match serde_json::value::to_raw_value(script) {
        Ok(script) => FromWorker::Prepared(script),
        Err(error) => FromWorker::Panicked(error.to_string()),
    }
}

/// Checks a script and strips its types. The inner `Err` contains the findings.
fn prepare(
    pipe: &mut Pipe,
    start: &RunStart,
    language: Language,
) -> Result<Result<PreparedScript, Vec<CheckFinding>>, HostLost> {
    let (globals, modules) = match (language, &start.interpreter) {
        (Language::TypeScript, _) => (GLOBALS, MODULES.to_vec()),
        (Language::Python, None) => (BUILTINS, modules()),
        (Language::Python, Some(facts)) => {
            let packages = facts.packages.iter().map(String::as_str);
            (cpython::GLOBALS, cpython::MODULES.iter().copied().chain(packages).collect())
        }
    };
    let mut lookup = PipeLookup { pipe: &mut *pipe, lost: None };
    let checked = check(language, &start.code, globals, &modules, &mut lookup);
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
        if u64::try_from(frame.len()).is_ok_and(|bytes| bytes <= start.bounds.value_bytes) {
            pipe.send(&flow);
        }
    }
    let function = |tool: toolgate_bindings::check::ToolUse| Function {
        name: tool.name,
        parameters: tool.parameters,
        first_takes_object: tool.first_takes_object,
    };
    let functions = checked.tools.into_iter().map(function).collect();
    let place = |CallPlace { alias, function }| ScriptPlace { alias, function };
    let places = checked.places.into_iter().map(place).collect();
    let ModuleShape { value, returns, looks_up } = checked.module;
    let (text, source, positions) = (checked.text, checked.source, checked.positions);
    Ok(Ok(PreparedScript { text, source, positions, value, returns, looks_up, functions, places }))
}

/// The script of a component, which nobody here can read: each word of it may be the name of a tool.
fn unchecked(pipe: &mut Pipe, start: &RunStart) -> Result<PreparedScript, HostLost> {
    let names = mentions::words(&start.code);
    let found = PipeLookup { pipe, lost: None }.ask(&names)?;
    let functions = found.into_iter().filter_map(mentions::function).collect();
    let (text, source, positions) = (String::new(), start.code.clone(), SourcePositions::default());
    let (value, returns, looks_up, places) = (None, false, false, Vec::new());
    Ok(PreparedScript { text, source, positions, value, returns, looks_up, functions, places })
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
