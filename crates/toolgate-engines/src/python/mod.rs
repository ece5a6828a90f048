//! Python: Monty, and what a script expects beyond it.
//!
//! Monty is an interpreter for a part of Python. It pauses at every call of a tool and at every wait,
//! which is where [`World`] comes in. What it lacks is made up for in two ways: `rewrite` changes
//! the script's text before it is compiled, and `prelude` has modules and functions in Python. What
//! is still not there ends the script with an error that says what to write instead.

mod failure;
mod host;
mod machine;
mod names;
mod prelude;
mod rewrite;
#[cfg(test)]
mod tests;
mod value;

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicUsize, Ordering},
};

use monty::MontyRepl;
use monty_types::{
    AssertMessageAnnotations, BASELINE_MEMORY, CompileOptions, ExcType, LIVE_MEMORY, MontyObject,
    ResourceLimits, ResourceTracker,
};

pub use self::names::{BUILTINS, MODULES};
use self::{
    failure::FailureContext,
    machine::{Machine, Stop},
    value::{Strictness, ValueError},
};
use crate::{
    engine::{Engine, EngineLimits, EngineOutcome, EngineScript, FailureKind, ScriptFailure},
    world::{NullWorld, World},
};

/// How deeply functions may call each other at most, as in `CPython`.
const RECURSION_LIMIT: usize = 1_000;

/// Bytes of stack that a level of calls or of nested values needs at most. Measured; without
/// optimisation it is several times as much.
const STACK_A_LEVEL: u64 = if cfg!(debug_assertions) { 16 * 1024 } else { 2 * 1024 };

/// A Python interpreter, ready to run one script.
#[derive(Debug)]
pub struct Python {
    session: MontyRepl,
    /// The parts of the prelude that it has, and how many texts it has run.
    loaded: BTreeSet<&'static str>,
    texts: usize,
}

impl Default for Python {
    fn default() -> Self {
        Self::new()
    }
}

impl Python {
    /// A new interpreter. It costs next to nothing; a script that needs parts of the prelude
    /// compiles them when it runs, which takes a millisecond or so.
    pub fn new() -> Self {
        let session = MontyRepl::new("script.py", ResourceTracker::default(), options());
        Self { session, loaded: BTreeSet::new(), texts: 0 }
    }

    /// An interpreter that has the parts of the prelude that scripts mostly need. For a worker that
    /// waits for its script anyway.
    pub fn prepared() -> Self {
        let mut world = NullWorld;
        let script = EngineScript { source: "", functions: &[] };
        let mut machine = Machine::new(&script, &mut world);
        // The prelude is tested; should it fail, a script is told when it needs it.
        Self::new().load(prelude::COMMON, &mut machine).unwrap_or_default()
    }

    /// Runs the parts of the prelude that are named and not there yet.
    fn load<'a>(
        mut self,
        names: impl IntoIterator<Item = &'a &'static str>,
        machine: &mut Machine<'_>,
    ) -> Result<Self, Stop> {
        for piece in prelude::pieces(names) {
            if self.loaded.insert(piece.name) {
                self.session = machine.run(self.session, piece.source)?.0;
                self.texts += 1;
            }
        }
        Ok(self)
    }
}

/// The number of bytes that the process has allocated, which the process's allocator has to keep.
///
/// Monty holds [`EngineLimits::memory_bytes`] against what this number grew by. Without an allocator that
/// counts, only single values that are too large are refused; the process's own limit stands behind.
pub fn live_memory() -> &'static AtomicUsize {
    &LIVE_MEMORY
}

impl Engine for Python {
    fn run(
        self: Box<Self>,
        script: &EngineScript<'_>,
        limits: &EngineLimits,
        world: &mut dyn World,
    ) -> EngineOutcome {
        match run(*self, script, limits, world) {
            Ok(value) => value,
            Err(failure) => EngineOutcome::Failed(failure),
        }
    }
}

fn run(
    mut python: Python,
    script: &EngineScript<'_>,
    limits: &EngineLimits,
    world: &mut dyn World,
) -> Result<EngineOutcome, ScriptFailure> {
    let rewritten = rewrite::rewrite(script.source)?;
    let functions = script.functions;
    let failed = |stop: Stop, file: &str| {
        failure::failure(stop, &FailureContext { file, changed: &rewritten.changed, functions })
    };
    *python.session.tracker_mut() = tracker(limits);
    let mut machine = Machine::new(script, world);
    let mut python =
        python.load(&rewritten.pieces, &mut machine).map_err(|stop| failed(stop, ""))?;
    for module in rewrite::implicit_modules(script.source) {
        let import = format!("import {module}");
        python.session = machine.run(python.session, &import).map_err(|stop| failed(stop, ""))?.0;
        python.texts += 1;
    }
    let file = format!("<python-input-{}>", python.texts);
    match machine.run(python.session, &rewritten.changed.text) {
        Ok((_, value)) => {
            machine.tell_unused();
            finish(&value)
        }
        Err(Stop::Raised(error)) if error.exc_type() == ExcType::SystemExit => {
            match error.message() {
                None | Some("" | "0" | "None") => Ok(EngineOutcome::Value(None)),
                Some(_) => Err(failed(Stop::Raised(error), &file)),
            }
        }
        Err(stop) => Err(failed(stop, &file)),
    }
}

fn finish(value: &MontyObject) -> Result<EngineOutcome, ScriptFailure> {
    if matches!(value, MontyObject::None) {
        return Ok(EngineOutcome::Value(None));
    }
    match value::to_json(value, Strictness::Shown) {
        Ok(text) => Ok(EngineOutcome::Value(Some(text))),
        Err(error) => Err(ScriptFailure {
            kind: FailureKind::Exception,
            message: format!("the script's value has no JSON: {error}"),
            stack: Vec::new(),
            hint: (error == ValueError::Coroutine)
                .then(|| "write `await` before the last line's call".to_owned()),
        }),
    }
}

fn tracker(limits: &EngineLimits) -> ResourceTracker {
    // What the process had before the script is not the script's.
    BASELINE_MEMORY.fetch_min(LIVE_MEMORY.load(Ordering::Relaxed), Ordering::Relaxed);
    let depth = usize::try_from(limits.stack_bytes / STACK_A_LEVEL).unwrap_or(RECURSION_LIMIT);
    let memory = usize::try_from(limits.memory_bytes).unwrap_or(usize::MAX);
    ResourceTracker::new(
        ResourceLimits::default()
            .max_memory(memory)
            .max_recursion_depth(depth.clamp(20, RECURSION_LIMIT)),
    )
}

fn options() -> CompileOptions {
    CompileOptions { assert_message_annotations: AssertMessageAnnotations::Off }
}
