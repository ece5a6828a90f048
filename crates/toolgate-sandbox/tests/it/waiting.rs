//! A run whose call waits for a person: its clock stands still.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use toolgate_sandbox::{
    BoxFuture, CallResponse, ClockHold, EngineCall, LimitReached, LookupResult, RunClock,
    RunLimits, RunOutcome, RunReport, SandboxScript, ToolException, Tools,
};
use toolgate_testkit::scaled;

use crate::support::{ending, limits, pool, raw, typescript, value_of};

/// What a run may take from the question on. It is less than the person takes.
fn wall() -> Duration {
    scaled(Duration::from_secs(3))
}

/// How long the person takes.
fn thought() -> Duration {
    wall() + Duration::from_millis(500)
}

/// Tools: `ask` waits for a person, `quick` does not, and `never` never answers.
#[derive(Debug)]
struct SlowPerson {
    clock: RunClock,
    /// Holds the clock until the question, however long the script takes to get there.
    start: Arc<Mutex<Option<ClockHold>>>,
    asked: Arc<Semaphore>,
    answers: Arc<Semaphore>,
}

impl Tools for SlowPerson {
    fn describe(&self, names: Vec<String>) -> BoxFuture<'static, Vec<LookupResult>> {
        let schema = || raw(&json!({ "type": "object" }).to_string());
        let found = |name| LookupResult::Tool { name, input_schema: schema(), output_schema: None };
        let found = names.into_iter().map(found).collect();
        Box::pin(std::future::ready(found))
    }

    fn call(
        &self,
        call: EngineCall,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, CallResponse> {
        let name = call.name;
        let (clock, start) = (self.clock.clone(), Arc::clone(&self.start));
        let (asked, answers) = (Arc::clone(&self.asked), Arc::clone(&self.answers));
        Box::pin(async move {
            if name == "quick" {
                return CallResponse::Ended(Ok(raw("null")));
            }
            if name == "never" {
                cancel.cancelled().await;
                return CallResponse::Ended(Err(ToolException::new(name, "cancelled")));
            }
            let hold = clock.hold();
            start.lock().take();
            asked.add_permits(1);
            let _answer = tokio::select! {
                answer = answers.acquire() => answer,
                () = cancel.cancelled() => return CallResponse::Suspended,
            };
            drop(hold);
            CallResponse::Ended(Ok(raw("\"yes\"")))
        })
    }

    fn clock(&self) -> RunClock {
        self.clock.clone()
    }
}

/// Runs a script whose question is answered after longer than the run may take.
async fn run(script: SandboxScript, limits: &RunLimits) -> RunReport {
    let clock = RunClock::new();
    let person = Arc::new(SlowPerson {
        start: Arc::new(Mutex::new(Some(clock.hold()))),
        clock,
        asked: Arc::new(Semaphore::new(0)),
        answers: Arc::new(Semaphore::new(0)),
    });
    let (asked, answers) = (Arc::clone(&person.asked), Arc::clone(&person.answers));
    let answering = tokio::spawn(async move {
        asked.acquire().await.unwrap().forget();
        tokio::time::sleep(thought()).await;
        answers.add_permits(1);
    });
    let report = pool().run(script, limits, person, CancellationToken::new()).await;
    answering.abort();
    report
}

#[tokio::test]
async fn the_time_of_a_person_does_not_count_for_the_script() {
    let limits = RunLimits { wall: wall(), ..limits() };
    let late = (wall() / 2).as_millis();
    let code = format!(
        "const before = Date.now();
        const late = new Promise((done) => setTimeout(() => done('too late'), {late}));
        const first = await Promise.race([ask({{}}), late]);
        return [first, Date.now() - before];"
    );
    let report = run(typescript(&code), &limits).await;
    assert!(report.wall >= thought());
    let value = value_of(&report);
    assert_eq!(value[0], "yes", "a timer does not go off meanwhile");
    assert!(u128::from(value[1].as_u64().unwrap()) < late, "{value}");
}

#[tokio::test]
async fn the_clock_continues_after_the_answer() {
    let limits = RunLimits { wall: wall(), ..limits() };
    let report = run(typescript("await ask({}); await never({});"), &limits).await;
    assert!(
        matches!(report.outcome, RunOutcome::Stopped(LimitReached::Wall { .. })),
        "{}",
        ending(&report)
    );
    assert!(report.wall >= wall() + thought());
}

#[tokio::test]
async fn the_cpu_limit_applies_while_a_person_decides() {
    let limits = RunLimits { cpu: Duration::from_millis(200), ..limits() };
    let code = "const asked = ask({}); await quick({});
        let turns = 0; while (turns >= 0) turns += 1;
        return await asked;";
    let report = run(typescript(code), &limits).await;
    assert!(
        matches!(report.outcome, RunOutcome::Stopped(LimitReached::Cpu { .. })),
        "{}",
        ending(&report)
    );
}

/// A tool whose calls all wait for an approval, each a little longer than the one before.
#[derive(Debug)]
struct Unapproved(RunClock);

impl Tools for Unapproved {
    fn describe(&self, names: Vec<String>) -> BoxFuture<'static, Vec<LookupResult>> {
        let schema = || raw(&json!({ "type": "object" }).to_string());
        let found = |name| LookupResult::Tool { name, input_schema: schema(), output_schema: None };
        Box::pin(std::future::ready(names.into_iter().map(found).collect()))
    }

    fn call(&self, call: EngineCall, _: CancellationToken) -> BoxFuture<'static, CallResponse> {
        let arguments: serde_json::Value = serde_json::from_str(call.arguments.get()).unwrap();
        let late = Duration::from_millis(arguments["after"].as_u64().unwrap());
        Box::pin(async move {
            tokio::time::sleep(late).await;
            CallResponse::Suspended
        })
    }

    fn clock(&self) -> RunClock {
        self.0.clone()
    }
}

#[tokio::test]
async fn calls_that_wait_one_after_the_other_suspend_the_run() {
    let code =
        "await Promise.allSettled([ask({ after: 0 }), ask({ after: 50 }), ask({ after: 100 })]);";
    let tools = Arc::new(Unapproved(RunClock::new()));
    let report = pool().run(typescript(code), &limits(), tools, CancellationToken::new()).await;
    assert!(matches!(report.outcome, RunOutcome::Suspended), "{}", ending(&report));
    assert_eq!(report.calls.len(), 3);
}
