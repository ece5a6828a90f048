//! Runs scripts in worker processes that can reach nothing but their host.
//!
//! A [`Pool`] keeps workers ready. [`Pool::run`] takes one, sends it the script, answers its calls
//! from [`Tools`], enforces the [`RunLimits`] and discards the worker. Whatever the script or its
//! engine does, the caller gets a [`RunReport`], and later runs are not affected.
//!
//! The binary that embeds the pool is also the worker: in a hidden mode it calls [`worker_main`]
//! and does nothing else. [`lockdown`] describes what a worker gives up, [`frame`] what it can
//! send.

mod captured;
mod clock;
pub mod frame;
mod journal;
mod limits;
pub mod lockdown;
mod pool;
mod report;
mod run;
mod system;
mod tools;
mod worker;

pub use futures::future::BoxFuture;
pub use toolgate_bindings::check::{
    CallSite, CheckFinding, CheckSeverity, Language, LookupResult, ProgramFlow, SiteFlow,
};
pub use toolgate_engines::{
    CallId, EngineCall, FailureKind, RunSeed, ScriptFailure, StackFrame, Stream, ToolException,
};

pub use self::journal::SandboxScript;
pub use crate::{
    captured::CapturedOutput,
    clock::{ClockHold, RunClock},
    journal::{JournalEvent, JournaledCall, RunEvent, RunJournalRecord},
    limits::{LimitReached, RunLimits},
    pool::{Pool, PoolSettings, ProbeError},
    report::{CallRecord, CallState, RunOutcome, RunReport},
    system::allocator::WorkerAllocator,
    tools::{CallResponse, Tools},
    worker::{MakeEngine, Urgency, make_engine, worker_main, worker_main_with},
};
