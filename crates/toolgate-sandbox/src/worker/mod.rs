//! The other side: a process that runs one script and knows nothing else.

mod engines;
mod pipe;
mod prepare;
mod world;

use std::process::ExitCode;

use toolgate_bindings::check::Language;
use toolgate_engines::{
    Engine, EngineLimits, EngineOutcome, EngineScript, javascript::JavaScript, python::Python,
};

use self::{
    engines::Engines,
    pipe::{HostLost, Pipe},
    prepare::prepare,
    world::PipeWorld,
};
use crate::{
    frame::{Done, FromWorker, RunStart, ToWorker},
    lockdown,
    system::{allocator, stop, stop::ExitReason},
};

/// Makes the engine of a language.
pub type MakeEngine = fn(Language, Urgency) -> Result<Box<dyn Engine>, String>;

/// Whether a script waits for its engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// It is there already: what is not needed yet is not to be done yet.
    ScriptWaits,
    /// There is time to do everything that a script may need.
    Idle,
}

/// A worker's whole life: what the binary does in its hidden mode, and nothing else.
pub fn worker_main() -> ExitCode {
    worker_main_with(make_engine)
}

/// The engine of a language.
pub fn make_engine(language: Language, haste: Urgency) -> Result<Box<dyn Engine>, String> {
    match language {
        Language::TypeScript => {
            let engine = JavaScript::new().map_err(|error| error.to_string())?;
            if haste == Urgency::Idle {
                engine.warm();
            }
            Ok(Box::new(engine))
        }
        Language::Python => Ok(Box::new(Python::new())),
    }
}

/// A worker's whole life, with engines of the caller's choice.
///
/// The process has to be started by a [`crate::Pool`]. It drops everything it could reach, makes
/// the engines, and says that it is ready; only then it reads a script, runs it, and is done.
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
    // Not by returning: what is left to be cleaned up goes with the process, only faster.
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

/// Runs the script and says what came of it.
fn run(mut pipe: Pipe, engines: Engines, start: &RunStart) -> Result<(), ExitReason> {
    let prepared = match prepare(&mut pipe, start)? {
        Ok(prepared) => prepared,
        Err(findings) => return end(pipe, &FromWorker::Done(Done::Rejected(findings))),
    };
    let engine = match engines.of(start.language) {
        Ok(engine) => engine,
        Err(message) => return end(pipe, &FromWorker::Panicked(message)),
    };
    let script = EngineScript { source: &prepared.source, functions: &prepared.functions };
    let limits = EngineLimits { memory_bytes: start.memory_bytes, stack_bytes: start.stack_bytes };
    let mut world = PipeWorld::new(pipe, start);
    let done = match engine.run(&script, &limits, &mut world) {
        EngineOutcome::Value(Some(value)) => {
            let bytes = u64::try_from(value.get().len()).unwrap_or(u64::MAX);
            if bytes > start.value_bytes {
                Done::ValueTooLarge { bytes }
            } else {
                Done::Value(Some(value))
            }
        }
        EngineOutcome::Value(None) => Done::Value(None),
        EngineOutcome::Failed(failure) => Done::Failed(failure),
    };
    end(world.into_pipe(), &FromWorker::Done(done))
}

/// Says the last thing there is to say, and waits to be killed: until then the host can ask the
/// system how much time was used.
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
