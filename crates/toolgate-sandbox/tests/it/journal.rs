//! Running a script again with what it was told before.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolgate_sandbox::{
    BoxFuture, CallId, CallResponse, CallState, EngineCall, JournalEvent, JournaledCall, Language,
    LookupResult, Pool, RunEvent, RunJournalRecord, RunOutcome, RunReport, SandboxScript,
    ToolException, Tools,
};

use crate::support::{limits, pool, raw, text_of, value_of};

/// Tools that write down what happens, as one does who wants to go on later.
#[derive(Default)]
pub(crate) struct JournalRecorder {
    pub(crate) journal: Mutex<RunJournalRecord>,
    pub(crate) made: AtomicUsize,
    /// Numbers of calls that may not be made yet.
    pub(crate) withheld: Vec<CallId>,
}

impl Tools for JournalRecorder {
    fn describe(&self, names: Vec<String>) -> BoxFuture<'static, Vec<LookupResult>> {
        let input_schema = raw(&json!({"type": "object"}).to_string());
        let found = |name| LookupResult::Tool {
            name,
            input_schema: input_schema.clone(),
            output_schema: None,
        };
        let found = names.into_iter().map(found).collect();
        Box::pin(async { found })
    }

    fn call(
        &self,
        call: EngineCall,
        _cancel: CancellationToken,
    ) -> BoxFuture<'static, CallResponse> {
        let EngineCall { id, name, arguments, .. } = call;
        if self.withheld.contains(&id) {
            return Box::pin(async { CallResponse::Suspended });
        }
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            // The later a call is made, the earlier it ends.
            let late = 30_u64.saturating_sub(5 * u64::try_from(number).unwrap());
            tokio::time::sleep(Duration::from_millis(late)).await;
            if name == "fail" {
                return CallResponse::Ended(Err(ToolException::new(name, format!("no {number}"))));
            }
            let arguments = arguments.get();
            CallResponse::Ended(Ok(raw(&format!("{{\"number\":{number},\"of\":{arguments}}}"))))
        })
    }

    fn on_event(&self, event: &RunEvent<'_>) {
        let mut journal = self.journal.lock();
        match event {
            RunEvent::Began(beginning) => journal.beginning = *beginning,
            RunEvent::Called { id, name, arguments } => journal.calls.push(JournaledCall {
                id: *id,
                name: (*name).to_owned(),
                arguments: (*arguments).to_owned(),
                outcome: None,
                binds: true,
            }),
            RunEvent::Completed { id, at, outcome } => {
                journal.events.push(JournalEvent::Completed { id: *id, at: *at });
                // One that is handed over again was written down before.
                if let Some(call) = journal.calls.iter_mut().find(|call| call.id == *id) {
                    call.outcome = Some((*outcome).clone());
                    call.binds = outcome.is_ok();
                }
            }
            RunEvent::Time { at } => journal.events.push(JournalEvent::Time { at: *at }),
            _ => {}
        }
    }
}

async fn run(script: SandboxScript, recorder: &Arc<JournalRecorder>) -> RunReport {
    run_in(&pool(), script, recorder).await
}

pub(crate) async fn run_in(
    pool: &Pool,
    script: SandboxScript,
    recorder: &Arc<JournalRecorder>,
) -> RunReport {
    let tools = Arc::clone(recorder) as Arc<dyn Tools>;
    pool.run(script, &limits(), tools, CancellationToken::new()).await
}

pub(crate) fn again(code: &str, language: Language, journal: RunJournalRecord) -> SandboxScript {
    SandboxScript { journal: Some(journal), ..SandboxScript::new(code, language) }
}

/// Time, chance, timers, calls in parallel and calls that fail.
const TYPESCRIPT: &str = r#"
const began = Date.now();
const log = [Math.random(), crypto.randomUUID(), began, new Date().toISOString()];
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const first = [1, 2, 3].map(async (n) => { const r = await echo({ n }); log.push(`got ${n}`, Date.now() - began); return r; });
await Promise.race([sleep(12), first[2]]);
log.push("raced", performance.now());
try { await fail({ why: log.length }); } catch (error) { log.push(error.message); }
await sleep(20);
await Promise.all(first);
log.push(await echo({ last: log.length }), Math.random());
console.log(JSON.stringify(log));
return log.length;
"#;

const PYTHON: &str = r#"
import asyncio, random, time, datetime
log = [random.random(), time.time(), str(datetime.datetime.now()), random.randint(1, 1000)]
async def one(n):
    result = await echo(n=n)
    log.append(["got", n, time.monotonic()])
    return result
results = await asyncio.gather(*[one(n) for n in range(6)])
await asyncio.sleep(0.01)
try:
    await fail(why=len(log))
except Exception as error:
    log.append(str(error))
log.append(await echo(last=len(log)))
log.append(random.Random().random())
print(log)
len(log)
"#;

pub(crate) async fn the_same_again(pool: &Pool, code: &str, language: Language) {
    let recorder = Arc::new(JournalRecorder::default());
    let first = run_in(pool, SandboxScript::new(code, language), &recorder).await;
    let value = value_of(&first);
    let made = recorder.made.load(Ordering::Relaxed);
    let journal = recorder.journal.lock().clone();
    assert!(made > 4 && journal.events.len() > made, "{journal:?}");

    // To its end, and from every point at which it could have stopped.
    for kept in (0..=journal.events.len()).rev() {
        let mut part = journal.clone();
        part.events.truncate(kept);
        let told = |id: CallId| {
            part.events.iter().any(
                |event| matches!(event, JournalEvent::Completed { id: told, .. } if *told == id),
            )
        };
        let answered: Vec<CallId> =
            part.calls.iter().map(|call| call.id).filter(|id| told(*id)).collect();
        part.calls.retain(|call| answered.contains(&call.id));
        let recorder = Arc::new(JournalRecorder::default());
        let second = run_in(pool, again(code, language, part), &recorder).await;
        assert!(matches!(second.outcome, RunOutcome::Value(_)), "{kept}: {:?}", second.outcome);
        assert_eq!(recorder.made.load(Ordering::Relaxed), made - answered.len(), "{kept}");
        if kept == journal.events.len() {
            assert_eq!((text_of(&second), value_of(&second)), (text_of(&first), value.clone()));
        }
        // What it saw before it stopped it saw again.
        let start = |report: &RunReport| text_of(report).chars().take(60).collect::<String>();
        assert_eq!(start(&second), start(&first), "{kept}");
    }
}

#[tokio::test]
async fn a_script_with_the_same_input_does_the_same() {
    the_same_again(&pool(), TYPESCRIPT, Language::TypeScript).await;
}

#[tokio::test]
async fn so_does_python() {
    the_same_again(&pool(), PYTHON, Language::Python).await;
}

#[tokio::test]
async fn a_run_is_suspended_when_only_waiting_calls_are_left() {
    let code = "const slow = echo({ n: 0 });\nconst held = echo({ n: 1 });\nconst a = await slow;\nconst b = await echo({ n: 2 });\nconsole.log('before');\nconst c = await held;\nreturn [a, b, c].length;";
    let recorder = Arc::new(JournalRecorder { withheld: vec![1], ..JournalRecorder::default() });
    let report = run(SandboxScript::new(code, Language::TypeScript), &recorder).await;
    assert!(matches!(report.outcome, RunOutcome::Suspended), "{:?}", report.outcome);
    assert_eq!(text_of(&report), "before\n");
    let states: Vec<&CallState> = report.calls.iter().map(|call| &call.state).collect();
    assert_eq!(states, [&CallState::Completed, &CallState::Suspended, &CallState::Completed]);

    let journal = recorder.journal.lock().clone();
    let recorder = Arc::new(JournalRecorder::default());
    let report = run(again(code, Language::TypeScript, journal), &recorder).await;
    assert_eq!(value_of(&report), json!(3));
    assert_eq!(recorder.made.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_script_that_makes_other_calls_is_refused() {
    let recorder = Arc::new(JournalRecorder::default());
    let code = "await echo({ a: 1 }); return 1";
    run(SandboxScript::new(code, Language::TypeScript), &recorder).await;
    let journal = recorder.journal.lock().clone();
    let other = again("await echo({ a: 2 }); return 1", Language::TypeScript, journal.clone());
    let report = run(other, &Arc::new(JournalRecorder::default())).await;
    let RunOutcome::Diverged(what) = &report.outcome else { panic!("{:?}", report.outcome) };
    assert_eq!(what, "call 0 was echo({\"a\":1}) and is now echo({\"a\":2})");

    // One that does less, or more, is no other.
    let less = again(
        "await new Promise((r) => setTimeout(r, 5)); return 2",
        Language::TypeScript,
        journal.clone(),
    );
    assert_eq!(value_of(&run(less, &Arc::new(JournalRecorder::default())).await), json!(2));
    let more = again(
        "await echo({ a: 1 }); await echo({ b: 1 }); return 3",
        Language::TypeScript,
        journal,
    );
    assert_eq!(value_of(&run(more, &Arc::new(JournalRecorder::default())).await), json!(3));
}

#[tokio::test]
async fn a_call_of_unknown_outcome_reaches_the_tools_again() {
    let code = "return [await echo({ a: 1 }), await echo({ b: 1 })].length";
    let recorder = Arc::new(JournalRecorder::default());
    run(SandboxScript::new(code, Language::TypeScript), &recorder).await;
    let mut journal = recorder.journal.lock().clone();
    journal.events.pop();
    journal.calls[1].outcome = None;
    let recorder = Arc::new(JournalRecorder::default());
    assert_eq!(
        value_of(&run(again(code, Language::TypeScript, journal), &recorder).await),
        json!(2)
    );
    assert_eq!(recorder.made.load(Ordering::Relaxed), 1);
    // It was written down before.
    assert_eq!(recorder.journal.lock().calls.len(), 0);
}

#[tokio::test]
async fn a_failed_call_may_be_replaced() {
    let code = "await echo({ a: 1 }); await fail({ b: 1 }); return 1";
    let recorder = Arc::new(JournalRecorder::default());
    let report = run(SandboxScript::new(code, Language::TypeScript), &recorder).await;
    assert!(matches!(report.outcome, RunOutcome::Failed(_)), "{:?}", report.outcome);
    let journal = recorder.journal.lock().clone();

    // The same again fails again, without a call.
    let recorder = Arc::new(JournalRecorder::default());
    let report = run(again(code, Language::TypeScript, journal.clone()), &recorder).await;
    assert!(matches!(report.outcome, RunOutcome::Failed(_)), "{:?}", report.outcome);
    assert_eq!(recorder.made.load(Ordering::Relaxed), 0);
    let states: Vec<CallState> = report.calls.iter().map(|call| call.state.clone()).collect();
    assert_eq!(states, [CallState::Completed, CallState::Failed("no 1".to_owned())]);

    let corrected = "await echo({ a: 1 }); const b = await echo({ b: 2 }); return b.of";
    let recorder = Arc::new(JournalRecorder::default());
    let report = run(again(corrected, Language::TypeScript, journal), &recorder).await;
    assert_eq!(value_of(&report), json!({ "b": 2 }));
    assert_eq!(recorder.made.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn results_after_a_replaced_call_are_delivered_again() {
    let code = "try { await fail({ a: 1 }) } catch {} await echo({ b: 1 }); throw new Error('x')";
    let recorder = Arc::new(JournalRecorder::default());
    let report = run(SandboxScript::new(code, Language::TypeScript), &recorder).await;
    assert!(matches!(report.outcome, RunOutcome::Failed(_)), "{:?}", report.outcome);
    let journal = recorder.journal.lock().clone();

    let corrected = "const a = await echo({ a: 2 }); const b = await echo({ b: 1 }); \
                     return [a.of, b.of, b.number]";
    let recorder = Arc::new(JournalRecorder::default());
    let report = run(again(corrected, Language::TypeScript, journal.clone()), &recorder).await;
    let value = value_of(&report);
    assert_eq!(value, json!([{ "a": 2 }, { "b": 1 }, 1]));
    assert_eq!(recorder.made.load(Ordering::Relaxed), 1, "the second call is not made again");

    // Whoever goes on once more is told both, in the order in which they were told now.
    let mut later = recorder.journal.lock().clone();
    assert!(matches!(
        later.events[..],
        [JournalEvent::Completed { id: 0, .. }, JournalEvent::Completed { id: 1, .. }]
    ));
    later.calls.extend(journal.calls.into_iter().filter(|call| call.id == 1));
    later.events.splice(0..0, journal.events.into_iter().skip(1));
    let recorder = Arc::new(JournalRecorder::default());
    let report = run(again(corrected, Language::TypeScript, later), &recorder).await;
    assert_eq!(value_of(&report), value);
    assert_eq!(recorder.made.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn two_runs_have_different_random_numbers() {
    let pool = pool();
    for (language, code) in [
        (Language::Python, "import random\nprint(random.random(), random.randint(0, 10**9))"),
        (Language::TypeScript, "console.log(Math.random())"),
    ] {
        let run = || async {
            let recorder = Arc::new(JournalRecorder::default());
            text_of(&run_in(&pool, SandboxScript::new(code, language), &recorder).await)
        };
        assert_ne!(run().await, run().await, "{code}");
    }
}
