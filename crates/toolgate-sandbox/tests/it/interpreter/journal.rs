//! A script that runs again with what it was told before does the same again.

use std::sync::{Arc, atomic::Ordering};

use serde_json::json;
use toolgate_sandbox::{CallState, Language, RunOutcome, SandboxScript};

use super::{interpreter, pool};
use crate::{
    journal::{JournalRecorder, again, run_in, the_same_again},
    support::{text_of, value_of},
};

/// Time, chance, timers, sets, tasks, calls in parallel and calls that fail.
const SCRIPT: &str = r#"
import asyncio, random, time, datetime, uuid, secrets, os, zoneinfo
log = [random.random(), time.time(), str(datetime.datetime.now()), str(uuid.uuid4()), secrets.token_hex(4)]
log.append([os.urandom(3).hex(), datetime.date.today().isoformat(), time.strftime("%H:%M:%S"), str(uuid.uuid1())])
log.append(sorted(random.sample(range(1000), 3)) + list({"one", "two", "three"}))
async def one(n):
    result = await echo(n=n)
    log.append(["got", n, time.monotonic(), asyncio.get_running_loop().time()])
    return result
tasks = {asyncio.create_task(one(n)) for n in range(4)}
done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
log.append([len(done), len(pending), [t.get_name() for t in done]])
try:
    async with asyncio.timeout(0.001):
        await asyncio.sleep(5)
except TimeoutError:
    log.append("late")
async with asyncio.TaskGroup() as group:
    for n in range(4, 6): group.create_task(one(n))
await asyncio.wait(tasks)
time.sleep(0.002)
try:
    await fail(why=len(log))
except ToolError as error:
    log.append(error.message)
log.append(await echo(last=len(log)))
log += [random.Random().random(), time.perf_counter_ns(), hash("text"), str(datetime.datetime.now(zoneinfo.ZoneInfo("Asia/Tokyo")))]
print(log)
len(log)
"#;

#[tokio::test]
async fn a_script_with_the_same_input_does_the_same() {
    let pool = pool();
    interpreter(&pool).await;
    the_same_again(&pool, SCRIPT, Language::Python).await;
}

#[tokio::test]
async fn so_it_does_with_another_interpreter_process() {
    let recorder = Arc::new(JournalRecorder::default());
    let first = run_in(&pool(), SandboxScript::new(SCRIPT, Language::Python), &recorder).await;
    let journal = recorder.journal.lock().clone();
    let recorder = Arc::new(JournalRecorder::default());
    let second = run_in(&pool(), again(SCRIPT, Language::Python, journal), &recorder).await;
    assert_eq!((text_of(&second), value_of(&second)), (text_of(&first), value_of(&first)));
    assert_eq!(recorder.made.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn two_runs_have_different_random_numbers() {
    let pool = pool();
    let code = "import random, uuid\nprint(random.random(), uuid.uuid4())";
    let run = || async {
        let recorder = Arc::new(JournalRecorder::default());
        text_of(&run_in(&pool, SandboxScript::new(code, Language::Python), &recorder).await)
    };
    assert_ne!(run().await, run().await);
}

#[tokio::test]
async fn a_run_is_suspended_when_only_waiting_calls_are_left() {
    let pool = pool();
    let code = "slow = echo(n=0)\nheld = echo(n=1)\na = await slow\nb = await echo(n=2)\n\
                print('before')\nc = await held\nlen([a, b, c])";
    let recorder = Arc::new(JournalRecorder { withheld: vec![1], ..JournalRecorder::default() });
    let report = run_in(&pool, SandboxScript::new(code, Language::Python), &recorder).await;
    assert!(matches!(report.outcome, RunOutcome::Suspended), "{:?}", report.outcome);
    assert_eq!(text_of(&report), "before\n");
    let states: Vec<&CallState> = report.calls.iter().map(|call| &call.state).collect();
    assert_eq!(states, [&CallState::Completed, &CallState::Suspended, &CallState::Completed]);

    let journal = recorder.journal.lock().clone();
    let recorder = Arc::new(JournalRecorder::default());
    let report = run_in(&pool, again(code, Language::Python, journal), &recorder).await;
    assert_eq!(value_of(&report), json!(3));
    assert_eq!(recorder.made.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_script_that_makes_other_calls_is_refused() {
    let pool = pool();
    let recorder = Arc::new(JournalRecorder::default());
    run_in(&pool, SandboxScript::new("await echo(a=1)", Language::Python), &recorder).await;
    let journal = recorder.journal.lock().clone();
    let other = again("await echo(a=2)", Language::Python, journal);
    let report = run_in(&pool, other, &Arc::new(JournalRecorder::default())).await;
    let RunOutcome::Diverged(what) = &report.outcome else { panic!("{:?}", report.outcome) };
    assert_eq!(what, "call 0 was echo({\"a\":1}) and is now echo({\"a\":2})");
}
