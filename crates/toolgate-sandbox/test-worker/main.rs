//! The worker of the tests: the ordinary one, with an engine more that does what it is told.
//!
//! A Python script whose first line is `# broken` is not run by the Python engine: its lines are
//! commands, each after a `#`, most of which a worker must not be able to carry out.

#![allow(unsafe_code, reason = "breaking out is done by hand")]
#![expect(clippy::unwrap_used, reason = "it is broken anyway")]

mod attacks;
mod broken;
mod host;

use std::{process::ExitCode, sync::atomic::Ordering};

use toolgate_engines::{
    Engine, EngineLimits, EngineOutcome, EngineScript, World, javascript::EngineStartError,
};
use toolgate_sandbox::{Language, WorkerAllocator, worker_main_with};

#[global_allocator]
static ALLOCATOR: WorkerAllocator = WorkerAllocator::new();

fn main() -> ExitCode {
    attacks::PARENT.store(std::os::unix::process::parent_id(), Ordering::Relaxed);
    match std::env::args().nth(1).as_deref() {
        Some("host") => host::run(),
        // For tests with many crashes: preparing the engines again takes a while without
        // optimisation.
        Some("unprepared") => worker_main_with(make_unprepared),
        _ => worker_main_with(make_engine),
    }
}

fn make_engine(language: Language) -> Result<Box<dyn Engine>, EngineStartError> {
    let engine = toolgate_sandbox::make_engine(language)?;
    Ok(Box::new(EitherEngine { language, engine: Some(engine) }))
}

#[allow(clippy::unnecessary_wraps, reason = "the worker takes a function that may fail")]
fn make_unprepared(language: Language) -> Result<Box<dyn Engine>, EngineStartError> {
    Ok(Box::new(EitherEngine { language, engine: None }))
}

struct EitherEngine {
    language: Language,
    engine: Option<Box<dyn Engine>>,
}

impl Engine for EitherEngine {
    fn run(
        self: Box<Self>,
        script: &EngineScript<'_>,
        limits: &EngineLimits,
        world: &mut dyn World,
    ) -> EngineOutcome {
        if script.source.starts_with("# broken\n") {
            return broken::run(script.source, world);
        }
        match self.engine {
            Some(engine) => engine.run(script, limits, world),
            // The trial of the zygote.
            None if script.source.len() < 10 => EngineOutcome::Value(None),
            None => {
                toolgate_sandbox::make_engine(self.language).unwrap().run(script, limits, world)
            }
        }
    }
}
