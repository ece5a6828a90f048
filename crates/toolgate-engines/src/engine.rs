//! What an engine is given, and what it gives back.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::world::World;

/// A language's interpreter, ready to run one script.
///
/// Made before the script is known, so that a waiting worker has done everything that does not
/// depend on it.
pub trait Engine {
    /// Runs the script to its end. What it wrote has gone to the world by then.
    fn run(
        self: Box<Self>,
        script: &EngineScript<'_>,
        limits: &EngineLimits,
        world: &mut dyn World,
    ) -> EngineOutcome;
}

/// A script that is to run.
#[derive(Debug, Clone, Copy)]
pub struct EngineScript<'a> {
    /// Its text: JavaScript without types, or Python.
    pub source: &'a str,
    /// The functions that it may call by name. More may exist that it does not mention.
    pub functions: &'a [Function],
}

/// A tool, as a function of the script's language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// The tool's exposed name, which is an identifier in all languages.
    pub name: String,
    /// The names of its parameters, in the order of the schema, for arguments without a name.
    pub parameters: Vec<String>,
}

/// What an engine sees to itself. Time is not among it: that is measured from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineLimits {
    /// Bytes that the script's values may take.
    pub memory_bytes: u64,
    /// Bytes of stack, or what comes nearest to it in the engine.
    pub stack_bytes: u64,
}

/// How a script ended.
#[derive(Debug)]
pub enum EngineOutcome {
    /// It ran to its end; its value as JSON, if it has one.
    Value(Option<Box<RawValue>>),
    /// It did not.
    Failed(ScriptFailure),
}

/// Why a script did not run to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptFailure {
    /// What sort of failure it is.
    pub kind: FailureKind,
    /// In the words of the language: `TypeError: x is not a function`.
    pub message: String,
    /// Where it happened, innermost first, with the lines of the script as it was written.
    pub stack: Vec<StackFrame>,
    /// What to write instead, where that is known.
    pub hint: Option<String>,
}

/// The sorts of failure that somebody treats differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureKind {
    /// It is not a script of this language.
    Syntax,
    /// It uses what the engine does not have.
    Unsupported,
    /// An error that the script threw or met and did not catch.
    Exception,
    /// It waits for something that can no longer happen.
    Stalled,
    /// It needs more memory than it may have.
    Memory,
    /// It calls itself too deeply.
    Stack,
    /// The worker lost its host, so that nobody waits for the script any more.
    Abandoned,
}

/// One line of a stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackFrame {
    /// The function's name, empty at the top level.
    pub function: String,
    /// Where in the script.
    pub position: ScriptPosition,
}

/// A place in a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptPosition {
    /// From 1.
    pub line: u32,
    /// In characters, from 1; 0 where it is not known.
    pub column: u32,
}
