//! Python: Monty, and what a script expects beyond it.
//!
//! Monty is an interpreter for a part of Python. It pauses at every call of a tool and at every wait,
//! which is where [`World`] comes in. What it lacks is made up for in two ways: `rewrite` changes
//! the script's text before it is compiled, and `prelude` has modules and functions in Python. What
//! is still not there ends the script with an error that says what to write instead.

mod arguments;
mod digest;
mod failure;
mod hints;
mod host;
mod machine;
mod names;
mod prelude;
mod rewrite;
#[cfg(test)]
mod tests;
mod value;

use std::sync::atomic::{AtomicUsize, Ordering};

use monty::MontyRepl;
use monty_types::{
    AssertMessageAnnotations, BASELINE_MEMORY, CompileOptions, ExcType, LIVE_MEMORY, MontyObject,
    ResourceLimits, ResourceTracker,
};

pub use self::names::{BUILTINS, MODULES};
use self::{
    failure::Place,
    machine::{Machine, Stop},
    value::{Strictness, ValueError},
};
use crate::{
    engine::{Engine, Failure, FailureKind, Limits, Outcome, Script},
    world::World,
};

/// How deeply functions may call each other at most, as in `CPython`.
const RECURSION_LIMIT: usize = 1_000;

/// Bytes of stack that a call may need which Monty makes from inside of one of its functions.
const STACK_A_CALL: u64 = 4 * 1024;

/// A Python interpreter, ready to run one script.
#[derive(Debug, Default)]
pub struct Python {
    _private: (),
}

impl Python {
    /// A new interpreter. It costs nothing until it runs.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The number of bytes that the process has allocated, which the process's allocator has to keep.
///
/// Monty holds [`Limits::memory_bytes`] against what this number grew by. Without an allocator that
/// counts, only single values that are too large are refused; the process's own limit stands behind.
pub fn live_memory() -> &'static AtomicUsize {
    &LIVE_MEMORY
}

impl Engine for Python {
    fn run(
        self: Box<Self>,
        script: &Script<'_>,
        limits: &Limits,
        world: &mut dyn World,
    ) -> Outcome {
        match run(script, limits, world) {
            Ok(value) => value,
            Err(failure) => Outcome::Failed(failure),
        }
    }
}

fn run(script: &Script<'_>, limits: &Limits, world: &mut dyn World) -> Result<Outcome, Failure> {
    let rewritten = rewrite::rewrite(script.source)?;
    let mut session = MontyRepl::new("script.py", tracker(limits), options());
    let mut machine = Machine::new(script, world);
    let sources = prelude::sources(&rewritten.pieces);
    let file = format!("<python-input-{}>", sources.len());
    let place = Place { file: &file, changed: &rewritten.changed, functions: script.functions };
    for source in sources {
        session = machine.run(session, source).map_err(|stop| failure::failure(stop, &place))?.0;
    }
    match machine.run(session, &rewritten.changed.text) {
        Ok((_, value)) => {
            machine.tell_unused();
            finish(&value)
        }
        Err(Stop::Raised(error)) if error.exc_type() == ExcType::SystemExit => {
            match error.message() {
                None | Some("" | "0" | "None") => Ok(Outcome::Value(None)),
                Some(_) => Err(failure::failure(Stop::Raised(error), &place)),
            }
        }
        Err(stop) => Err(failure::failure(stop, &place)),
    }
}

fn finish(value: &MontyObject) -> Result<Outcome, Failure> {
    if matches!(value, MontyObject::None) {
        return Ok(Outcome::Value(None));
    }
    match value::to_json(value, Strictness::Shown) {
        Ok(text) => Ok(Outcome::Value(Some(text))),
        Err(error) => Err(Failure {
            kind: FailureKind::Exception,
            message: format!("the script's value has no JSON: {error}"),
            stack: Vec::new(),
            hint: (error == ValueError::Coroutine)
                .then(|| "write `await` before the last line's call".to_owned()),
        }),
    }
}

fn tracker(limits: &Limits) -> ResourceTracker {
    // What the process had before the script is not the script's.
    BASELINE_MEMORY.fetch_min(LIVE_MEMORY.load(Ordering::Relaxed), Ordering::Relaxed);
    let depth = usize::try_from(limits.stack_bytes / STACK_A_CALL).unwrap_or(RECURSION_LIMIT);
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
