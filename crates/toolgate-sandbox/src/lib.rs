//! Runs scripts in worker processes that can reach nothing but their host.
//!
//! A [`Pool`] keeps workers waiting. [`Pool::run`] takes one, hands it the script, answers its calls
//! from [`Tools`], holds it to its [`RunLimits`], and discards it. Whatever the script or its engine
//! does, the caller gets a [`RunReport`], and the next run does not notice.
//!
//! The binary that embeds the pool is its own worker: in a hidden mode it calls [`worker_main`] and
//! does nothing else. See [`lockdown`] for what a worker gives up, and [`frame`] for what it can say.

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
pub use toolgate_bindings::check::{CheckFinding, CheckSeverity, Language, LookupResult};
pub use toolgate_engines::{
    CallId, FailureKind, RunSeed, ScriptFailure, StackFrame, Stream, ToolException,
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
