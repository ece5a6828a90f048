//! Runs scripts in worker processes that can reach nothing but their host.
//!
//! A [`Pool`] starts a zygote, a process that prepares the engines and then forks workers.
//! [`Pool::run`] takes a worker, sends it the script, answers its calls from [`Tools`], enforces the
//! [`RunLimits`] and discards the worker. Whatever the script or its engine does, the caller gets a
//! [`RunReport`], and later runs are not affected.
//!
//! The binary that embeds the pool is also the zygote: in a hidden mode it calls [`worker_main`]
//! and does nothing else. [`control`] describes how the pool talks to a zygote, [`lockdown`] what a
//! worker gives up, and [`frame`] what it can send.

mod captured;
mod clock;
mod component;
pub mod control;
mod cpython;
pub mod frame;
mod journal;
mod language;
mod limits;
pub mod lockdown;
mod pool;
mod report;
mod run;
mod system;
mod tools;
mod worker;
mod zygote;

pub use futures::future::BoxFuture;
pub use toolgate_bindings::check::{
    CallSite, CheckFinding, CheckSeverity, Language, LookupResult, NOT_RETURNED, ProgramFlow,
    SiteFlow,
};
pub use toolgate_engines::{
    CallId, EngineCall, FailureKind, RunSeed, ScriptFailure, StackFrame, Stream, ToolException,
};

pub use self::journal::SandboxScript;
#[cfg(feature = "engine-wasm")]
pub use crate::component::{ComponentError, compile_component};
pub use crate::{
    captured::CapturedOutput,
    clock::{ClockHold, RunClock},
    component::{NoComponents, runs_components},
    cpython::{MachinePython, PythonChoice, PythonEngine, PythonPackage, PythonSettings},
    journal::{JournalEvent, JournaledCall, RunEvent, RunJournalRecord},
    language::{ComponentProgram, ScriptLanguage},
    limits::{LimitReached, RunLimits},
    pool::{Pool, PoolSettings, ProbeError, WORKER_VARIABLE, WorkerProgram},
    report::{CallRecord, CallState, RunOutcome, RunReport},
    system::allocator::WorkerAllocator,
    tools::{CallResponse, Tools},
    worker::{MakeEngine, make_engine},
    zygote::{worker_main, worker_main_with},
};
