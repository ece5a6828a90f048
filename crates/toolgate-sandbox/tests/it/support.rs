//! A pool of test workers, and tools that do what their names say.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::{json, value::RawValue};
use tokio::sync::Barrier;
use tokio_util::sync::CancellationToken;
use toolgate_sandbox::{
    BoxFuture, CallResponse, ClockHold, EngineCall, Language, LookupResult, Pool, PoolSettings,
    ProgramFlow, PythonEngine, RunClock, RunEvent, RunLimits, RunOutcome, RunReport, SandboxScript,
    ToolException, Tools,
};
use toolgate_testkit::deadline;

/// A pool of the worker that has the broken engine too.
pub(crate) fn pool() -> Pool {
    Pool::new(settings())
}

/// A pool for scripts that crash: its engines are not prepared, so that a new zygote is soon there.
pub(crate) fn pool_for_crashes() -> Pool {
    Pool::new(PoolSettings::new(env!("CARGO_BIN_EXE_toolgate-sandbox-worker"), ["unprepared"]))
}

pub(crate) fn settings() -> PoolSettings {
    PoolSettings::new(env!("CARGO_BIN_EXE_toolgate-sandbox-worker"), [""; 0])
}

/// Limits that no well-behaved test script meets, even on a machine under load.
pub(crate) fn limits() -> RunLimits {
    RunLimits { wall: deadline(), cpu: Duration::from_secs(20), ..RunLimits::default() }
}

/// Tools: `echo`, `fail`, `never`, `big`, `meet` (waits until all of a number have called it).
#[derive(Debug)]
pub(crate) struct TestTools {
    pub(crate) calls: AtomicUsize,
    pub(crate) cancelled: Arc<AtomicUsize>,
    /// The places of the calls, in their order.
    pub(crate) places: Mutex<Vec<Option<u32>>>,
    /// The flows of the scripts, in their order.
    pub(crate) flows: Mutex<Vec<ProgramFlow>>,
    meeting: Arc<Barrier>,
    clock: RunClock,
    /// Holds the clock until so many events have happened.
    hold: Mutex<Option<(usize, ClockHold)>>,
}

impl TestTools {
    pub(crate) fn new() -> Arc<Self> {
        Self::meeting(1)
    }

    pub(crate) fn meeting(guests: usize) -> Arc<Self> {
        Arc::new(Self {
            calls: AtomicUsize::new(0),
            cancelled: Arc::default(),
            places: Mutex::default(),
            flows: Mutex::default(),
            meeting: Arc::new(Barrier::new(guests)),
            clock: RunClock::new(),
            hold: Mutex::default(),
        })
    }

    /// The time of the run starts once so many calls have been made or completed, however long the
    /// script takes to get there.
    pub(crate) fn timed_after(events: usize) -> Arc<Self> {
        let tools = Self::new();
        *tools.hold.lock() = Some((events, tools.clock.hold()));
        tools
    }
}

const NAMES: &[&str] = &["echo", "fail", "never", "big", "meet"];

impl Tools for TestTools {
    fn describe(&self, names: Vec<String>) -> BoxFuture<'static, Vec<LookupResult>> {
        let found = |name: String| {
            if NAMES.contains(&name.as_str()) {
                LookupResult::Tool {
                    name,
                    input_schema: raw(&json!({"type": "object"}).to_string()),
                    output_schema: None,
                }
            } else {
                LookupResult::Unknown { name, nearest: vec![String::from("echo")] }
            }
        };
        let answer = names.into_iter().map(found).collect();
        Box::pin(async move { answer })
    }

    fn call(
        &self,
        call: EngineCall,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, CallResponse> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.places.lock().push(call.place);
        let EngineCall { name, arguments, .. } = call;
        let meeting = Arc::clone(&self.meeting);
        let cancelled = Arc::clone(&self.cancelled);
        Box::pin(async move {
            let arguments_text = arguments.get();
            CallResponse::Ended(match name.as_str() {
                "echo" => Ok(arguments),
                "fail" => {
                    let given: serde_json::Value = serde_json::from_str(arguments_text).unwrap();
                    let content = given.get("content").map(ToString::to_string);
                    Err(ToolException { content, ..ToolException::new(name, "it is broken") })
                }
                "big" => {
                    let arguments: serde_json::Value =
                        serde_json::from_str(arguments_text).unwrap();
                    let bytes = usize::try_from(arguments["bytes"].as_u64().unwrap()).unwrap();
                    Ok(raw(&json!("x".repeat(bytes.saturating_sub(2))).to_string()))
                }
                "meet" => {
                    meeting.wait().await;
                    Ok(raw("\"met\""))
                }
                "never" => {
                    cancel.cancelled().await;
                    cancelled.fetch_add(1, Ordering::Relaxed);
                    Err(ToolException::new(name, "cancelled"))
                }
                _ => Err(ToolException::new(name, "there is no such tool")),
            })
        })
    }

    fn on_event(&self, event: &RunEvent<'_>) {
        let mut hold = self.hold.lock();
        if matches!(event, RunEvent::Called { .. } | RunEvent::Completed { .. }) {
            *hold = hold.take().and_then(|(left, hold)| Some((left.checked_sub(1)?, hold)));
            hold.take_if(|(left, _)| *left == 0);
        }
    }

    fn on_flow(&self, flow: ProgramFlow) {
        self.flows.lock().push(flow);
    }

    fn clock(&self) -> RunClock {
        self.clock.clone()
    }
}

pub(crate) fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

/// A script of commands for the broken engine.
pub(crate) fn broken(commands: &[&str]) -> SandboxScript {
    let lines: Vec<String> = commands.iter().map(|command| format!("# {command}")).collect();
    SandboxScript::new(format!("# broken\n{}\n", lines.join("\n")), Language::Python)
}

pub(crate) fn python(code: &str) -> SandboxScript {
    SandboxScript::new(code.to_owned(), Language::Python)
}

pub(crate) fn typescript(code: &str) -> SandboxScript {
    SandboxScript::new(code.to_owned(), Language::TypeScript)
}

/// Runs a script with ordinary tools.
pub(crate) async fn run(pool: &Pool, script: SandboxScript, limits: &RunLimits) -> RunReport {
    pool.run(script, limits, TestTools::new(), CancellationToken::new()).await
}

/// What a script returned.
pub(crate) fn value_of(report: &RunReport) -> serde_json::Value {
    let RunOutcome::Value(Some(value)) = &report.outcome else { panic!("{:?}", report.outcome) };
    serde_json::from_str(value.get()).unwrap()
}

/// What a script wrote.
pub(crate) fn text_of(report: &RunReport) -> String {
    report.output.head.clone()
}

/// How a run ended, in one line.
pub(crate) fn ending(report: &RunReport) -> String {
    match &report.outcome {
        RunOutcome::Value(Some(value)) => format!("value: {}", value.get()),
        RunOutcome::Value(None) => String::from("done"),
        RunOutcome::Rejected(findings) => {
            let messages: Vec<_> =
                findings.iter().map(|finding| finding.message.as_str()).collect();
            format!("rejected: {}", messages.join("; "))
        }
        RunOutcome::Failed(failure) => format!("failed: {}", failure.message),
        RunOutcome::Stopped(stop) => format!("stopped: {stop}"),
        RunOutcome::Cancelled => String::from("cancelled"),
        RunOutcome::Suspended => String::from("suspended"),
        RunOutcome::Diverged(what) => format!("diverged: {what}"),
        RunOutcome::Crashed(words) => format!("crashed: {words}"),
    }
}

/// Shows that a pool still runs scripts as if nothing had happened.
pub(crate) async fn assert_unharmed(pool: &Pool) {
    if let PythonEngine::Machine(_) = pool.python().await {
        let code = "print('fine')\nr = await echo(a=1)\nr['a'] + 6";
        let report = run(pool, python(code), &limits()).await;
        assert_eq!((ending(&report).as_str(), report.output.head.as_str()), ("value: 7", "fine\n"));
        return;
    }
    let report =
        run(pool, broken(&["print fine", "call echo {\"a\":1}", "wait", "value 7"]), &limits())
            .await;
    assert_eq!(ending(&report), "value: 7");
    assert_eq!(report.output.head, "fine\n0 {\"a\":1}\n");
}
