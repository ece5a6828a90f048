//! The Python engine: Monty, with a prelude and a rewriter.
//!
//! Monty interprets a subset of Python. It pauses at every tool call and at every wait, which the
//! [`World`] handles. Two parts add what it lacks: `rewrite` changes the source before it is
//! compiled, and `prelude` contains modules and functions in Python. Features that are still
//! missing end the script with an error that says what to write instead.

mod failure;
mod host;
mod machine;
mod names;
mod prelude;
mod rewrite;
#[cfg(test)]
mod tests;
mod value;

use std::{collections::BTreeSet, sync::atomic::Ordering};

use monty::MontyRepl;
use monty_types::{
    AssertMessageAnnotations, BASELINE_MEMORY, CompileOptions, ExcType, LIVE_MEMORY, MontyObject,
    ResourceLimits, ResourceTracker,
};

use self::{
    failure::FailureContext,
    machine::{Machine, Stop},
    rewrite::Rewritten,
    value::{Strictness, ValueError},
};
pub use self::{names::BUILTINS, prelude::modules};
use crate::{
    engine::{Engine, EngineLimits, EngineOutcome, EngineScript, FailureKind, ScriptFailure},
    world::{NullWorld, World},
};

/// The largest depth of calls, as in `CPython`.
const RECURSION_LIMIT: usize = 1_000;

/// The stack that one level of calls or of nested values needs at most, in bytes. Measured;
/// unoptimised code needs several times as much.
const STACK_A_LEVEL: u64 = if cfg!(debug_assertions) { 16 * 1024 } else { 2 * 1024 };

/// A Python interpreter, ready to run one script.
#[derive(Debug)]
pub struct Python {
    session: MontyRepl,
    /// The loaded parts of the prelude, and the number of texts that were run.
    loaded: BTreeSet<&'static str>,
    texts: usize,
}

impl Default for Python {
    fn default() -> Self {
        Self::new()
    }
}

impl Python {
    /// A new interpreter. It costs next to nothing. A script that needs parts of the prelude
    /// compiles them when it runs, which takes about a millisecond.
    pub fn new() -> Self {
        let session = MontyRepl::new("script.py", ResourceTracker::default(), options());
        Self { session, loaded: BTreeSet::new(), texts: 0 }
    }

    /// An interpreter with the parts of the prelude that most scripts need, for a worker that waits
    /// for a script.
    pub fn prepared() -> Self {
        let mut world = NullWorld;
        let script = EngineScript { source: "", functions: &[], places: &[] };
        let mut machine = Machine::new(&script, &mut world);
        // The prelude is tested. If it fails nevertheless, a script that needs it reports the
        // error.
        Self::new().load(prelude::COMMON, &mut machine).unwrap_or_default()
    }

    /// Runs the named parts of the prelude that are not loaded yet.
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
        let Rewritten { changed, trace, .. } = &rewritten;
        failure::failure(stop, &FailureContext { file, changed, trace, functions })
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
    machine.traced = rewritten.trace.is_on();
    match machine.run(python.session, &rewritten.changed.text) {
        Ok((session, value)) => {
            machine.report_unused();
            std::mem::forget(session);
            finish(&value)
        }
        Err(Stop::Raised(error, at)) if error.exc_type() == ExcType::SystemExit => {
            match error.message() {
                None | Some("" | "0" | "None") => Ok(EngineOutcome::Value(None)),
                Some(_) => Err(failed(Stop::Raised(error, at), &file)),
            }
        }
        Err(stop) => {
            let is_about_data = failure::is_about_data(&stop);
            let mut failure = failed(stop, &file);
            if is_about_data
                && let Some(hint) = failure::result_hint(script, &failure, &machine.last_results)
            {
                failure.hint = Some(hint);
            }
            Err(failure)
        }
    }
}

fn finish(value: &MontyObject) -> Result<EngineOutcome, ScriptFailure> {
    if matches!(value, MontyObject::None) {
        return Ok(EngineOutcome::Value(None));
    }
    match value::to_json(value, Strictness::Shown) {
        Ok(text) => Ok(EngineOutcome::Value(Some(text))),
        Err(error) => {
            let message = format!("the script's value has no JSON: {error}");
            let failure = ScriptFailure::new(FailureKind::Exception, message);
            Err(match error {
                ValueError::Coroutine => {
                    failure.with_hint("write `await` before the last line's call")
                }
                _ => failure,
            })
        }
    }
}

fn tracker(limits: &EngineLimits) -> ResourceTracker {
    // Memory from before the script does not count for the script.
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
