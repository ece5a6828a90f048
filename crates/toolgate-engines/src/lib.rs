//! The languages that scripts are written in, behind one small interface.
//!
//! An [`Engine`] runs one script and then is gone. It computes and nothing else: whatever a script
//! wants of the world, a tool's result, a line of output, the passing of time, goes through the
//! [`World`] it is given. Engines know nothing of processes, pipes or MCP, so that they can be
//! tested in memory, and so that a further one (Wasm) has only this page to fulfil.

mod engine;
#[cfg(feature = "javascript")]
pub mod javascript;
#[cfg(feature = "python")]
pub mod python;
mod world;

pub use crate::{
    engine::{
        Engine, EngineLimits, EngineOutcome, EngineScript, FailureKind, Function, ScriptFailure,
        ScriptPosition, StackFrame,
    },
    world::{
        CallId, Completion, EngineCall, HostClosed, NullWorld, RunSeed, Stream, ToolException,
        World,
    },
};
