//! The interface of an engine: the script and limits that it gets, and the outcome that it returns.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::world::World;

/// A language's interpreter, ready to run one script.
///
/// An engine is created before the script is known, so that a waiting worker has already done all
/// work that does not depend on the script.
pub trait Engine {
    /// Runs the script to its end. All output has been written to `world` when this returns.
    ///
    /// The engine is not freed: the process of a run ends right afterwards, and to free everything
    /// takes longer than most scripts, because each freed page is one that the process shared.
    fn run(
        self: Box<Self>,
        script: &EngineScript<'_>,
        limits: &EngineLimits,
        world: &mut dyn World,
    ) -> EngineOutcome;
}

/// The script that an engine runs.
#[derive(Debug, Clone, Copy)]
pub struct EngineScript<'a> {
    /// Its text: JavaScript without types, or Python.
    pub source: &'a str,
    /// The tools that the script mentions. Other tools may exist.
    pub functions: &'a [Function],
    /// The places where the script calls a tool under another name.
    pub places: &'a [ScriptPlace],
}

/// A name that one place of a script uses to call a function. A call under this name reports the
/// number of the place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptPlace {
    /// An identifier that nothing else in the script uses.
    pub alias: String,
    /// The name of the function.
    pub function: String,
}

/// A tool, as a function of the script's language.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// The tool's exposed name, which is an identifier in all languages.
    pub name: String,
    /// The names of the parameters in the order of the schema. Positional arguments use this order.
    pub parameters: Vec<String>,
    /// Whether the first parameter may be an object. If not, a single object by position has all
    /// arguments, in languages that have arguments by name.
    #[serde(default)]
    pub first_takes_object: bool,
}

/// The limits that the engine itself enforces. The worker and its host enforce the time limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineLimits {
    /// Bytes that the values of the script may use.
    pub memory_bytes: u64,
    /// Bytes of stack, or the nearest equivalent in the engine.
    pub stack_bytes: u64,
}

/// How a script ended.
#[derive(Debug)]
pub enum EngineOutcome {
    /// The script ran to its end. The value is its result as JSON, if it returned one.
    Value(Option<Box<RawValue>>),
    /// The script did not run to its end.
    Failed(ScriptFailure),
}

/// Why a script did not run to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptFailure {
    /// The kind of the failure.
    pub kind: FailureKind,
    /// The message of the language, such as `TypeError: x is not a function`.
    pub message: String,
    /// The stack, innermost frame first. Positions refer to the script as it was written.
    pub stack: Vec<StackFrame>,
    /// What to write instead, if that is known.
    pub hint: Option<String>,
}

impl ScriptFailure {
    /// A failure without a stack and a hint.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), stack: Vec::new(), hint: None }
    }

    /// The failure with the position where it happened, outside of every function.
    #[must_use]
    pub(crate) fn at(mut self, position: ScriptPosition) -> Self {
        self.stack = vec![StackFrame { function: String::new(), position }];
        self
    }

    /// The failure with a hint.
    #[must_use]
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The kinds of failure that callers treat differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureKind {
    /// The source does not parse.
    Syntax,
    /// The script uses a feature that the engine does not have.
    Unsupported,
    /// An error that the script did not catch.
    Exception,
    /// The script waits for something that can no longer happen.
    Stalled,
    /// The script reached its memory limit.
    Memory,
    /// The script reached its stack limit.
    Stack,
    /// The worker lost its host, so nobody waits for the script any more.
    Abandoned,
}

/// One frame of a stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackFrame {
    /// The function's name, empty at the top level.
    pub function: String,
    /// The position in the script.
    pub position: ScriptPosition,
}

/// A position in a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptPosition {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1; 0 if it is unknown.
    pub column: u32,
}
