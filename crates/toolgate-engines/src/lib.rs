//! The script engines: JavaScript, Python and components behind one interface.
//!
//! An [`Engine`] runs one script and is then dropped. It only computes. Everything that a script
//! needs from outside (the result of a tool, console output, the time) goes through the [`World`]
//! that the caller passes in. Engines know nothing of processes, pipes or MCP, so they can be
//! tested in memory, and another engine only has to implement these two traits.

mod engine;
#[cfg(feature = "javascript")]
pub mod javascript;
#[cfg(feature = "python")]
pub mod python;
#[cfg(any(feature = "javascript", feature = "python"))]
mod results;
#[cfg(feature = "wasm")]
pub mod wasm;
mod world;

pub use crate::{
    engine::{
        Engine, EngineLimits, EngineOutcome, EngineScript, FailureKind, Function, ScriptFailure,
        ScriptPlace, ScriptPosition, StackFrame,
    },
    world::{
        CallId, Completion, EngineCall, HostClosed, NullWorld, RunSeed, Stream, ToolException,
        World,
    },
};
