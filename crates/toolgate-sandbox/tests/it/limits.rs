//! Every limit says which it is; what was written and called until then is not lost.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;
use toolgate_sandbox::{CallState, LimitReached, RunLimits, RunOutcome};

use crate::support::{TestTools, assert_unharmed, broken, ending, limits, pool, run};

fn short() -> RunLimits {
    RunLimits { cpu: Duration::from_millis(100), ..limits() }
}

#[tokio::test]
async fn output_survives_the_end_of_cpu_time() {
    let pool = pool();
    let script = broken(&["print one", "print two", "complain three", "print four", "spin"]);
    let report = run(&pool, script, &short()).await;
    assert_eq!(
        ending(&report),
        "stopped: the script computed for more than 0.1 s; codeMode.cpuSeconds raises the limit"
    );
    assert_eq!(report.output.head, "one\ntwo\nthree\nfour\n");
    assert!(report.cpu >= Duration::from_millis(100));
}

#[tokio::test]
async fn waiting_for_a_tool_costs_no_cpu_time() {
    let pool = pool();
    let limits = RunLimits { wall: Duration::from_millis(600), ..short() };
    let script = broken(&["print before", "call never", "wait"]);
    let tools = TestTools::timed_after(1);
    let report = pool.run(script, &limits, tools, CancellationToken::new()).await;
    assert_eq!(
        ending(&report),
        "stopped: the script took more than 0.6 s; codeMode.timeoutSeconds raises the limit"
    );
    assert_eq!(report.output.head, "before\n");
    assert_eq!(report.calls[0].state, CallState::InFlight);
    assert!(report.wall >= Duration::from_millis(600));
}

#[tokio::test]
async fn a_run_that_ends_cancels_its_calls() {
    let pool = pool();
    // Three calls, of which one completes.
    let tools = TestTools::timed_after(4);
    let limits = RunLimits { wall: Duration::from_millis(200), ..short() };
    let script = broken(&["call never", "call never", "call echo", "wait", "wait"]);
    let report = pool.run(script, &limits, tools.clone(), CancellationToken::new()).await;
    let states: Vec<_> = report.calls.into_iter().map(|call| call.state).collect();
    assert_eq!(states, [CallState::InFlight, CallState::InFlight, CallState::Completed]);
    while tools.cancelled.load(Ordering::Relaxed) < 2 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn cancelling_stops_the_run() {
    let pool = pool();
    for commands in [&["print a", "call never", "spin"][..], &["print a", "call never", "wait"]] {
        let tools = TestTools::new();
        let cancel = CancellationToken::new();
        let limits = limits();
        let run = pool.run(broken(commands), &limits, tools.clone(), cancel.clone());
        tokio::pin!(run);
        // Until the call is made, which proves that the script runs.
        while tools.calls.load(Ordering::Relaxed) == 0 {
            tokio::select! {
                report = &mut run => panic!("{report:?}"),
                () = tokio::task::yield_now() => {}
            }
        }
        cancel.cancel();
        let report = run.await;
        assert_eq!(ending(&report), "cancelled");
        assert_eq!(report.output.head, "a\n");
        assert_eq!(report.calls[0].state, CallState::InFlight);
        assert_unharmed(&pool).await;
    }
}

#[tokio::test]
async fn calls_beyond_the_number_are_exceptions() {
    let pool = pool();
    let limits = RunLimits { calls: 3, ..limits() };
    let report = run(&pool, broken(&["call-often 5", "wait-for-all", "print on"]), &limits).await;
    assert_eq!(ending(&report), "done");
    assert_eq!(report.output.head, "3 of 5\non\n");
    let CallState::Refused(why) = &report.calls[3].state else { panic!("{report:?}") };
    assert_eq!(
        why,
        "not called: the script made 3 calls already; codeMode.maxCalls raises the limit"
    );
}

#[tokio::test]
async fn calls_beyond_those_in_flight_are_exceptions() {
    let pool = pool();
    let limits = RunLimits { calls_in_flight: 2, wall: Duration::from_millis(400), ..limits() };
    let script = broken(&["call never", "call never", "call never", "wait", "call echo", "wait"]);
    // The third call is refused, which is printed before the fourth is made.
    let tools = TestTools::timed_after(5);
    let report = pool.run(script, &limits, tools, CancellationToken::new()).await;
    assert!(report.output.head.contains("2 calls are in flight"), "{report:?}");
    assert!(report.output.head.contains("codeMode.maxCallsInFlight"), "{report:?}");
    assert!(matches!(report.calls[2].state, CallState::Refused(_)));
}

#[tokio::test]
async fn a_result_that_is_too_large_is_an_exception_and_the_call_was_made() {
    let pool = pool();
    let limits = RunLimits { result_bytes: 1024, ..limits() };
    let script = broken(&[
        "call big {\"bytes\":1024}",
        "wait",
        "call big {\"bytes\":1025}",
        "wait",
        "print on",
    ]);
    let report = run(&pool, script, &limits).await;
    assert_eq!(ending(&report), "done");
    assert_eq!(report.calls[0].state, CallState::Completed);
    assert_eq!((report.calls[0].result_bytes, report.calls[1].result_bytes), (1024, 1025));
    let CallState::Undelivered(why) = &report.calls[1].state else { panic!("{report:?}") };
    assert_eq!(
        why,
        "the call was made, but its result has 1025 bytes, 1 KB are allowed; ask for less, or \
         raise codeMode.maxResultBytes"
    );
    assert!(report.output.head.ends_with(&format!("1 big: {why}\non\n")));
}

#[tokio::test]
async fn arguments_that_are_too_large_are_not_sent() {
    let pool = pool();
    let limits = RunLimits { result_bytes: 1024, ..limits() };
    let script = broken(&["long-call 2000", "wait", "call echo", "wait"]);
    let report = run(&pool, script, &limits).await;
    assert_eq!(ending(&report), "done");
    assert!(
        report.output.head.starts_with("0 echo: not sent: it has 2008 bytes, 1 KB are allowed")
    );
    assert!(report.output.head.ends_with("1 {}\n"));
    assert_eq!(report.calls.len(), 1);
}

#[tokio::test]
async fn a_value_that_is_too_large_is_reported() {
    let pool = pool();
    let limits = RunLimits { result_bytes: 1024, ..limits() };
    let report = run(&pool, broken(&["print a", "long-value 5000"]), &limits).await;
    assert_eq!(
        ending(&report),
        "stopped: the script's value has 5002 bytes, 1 KB are allowed; codeMode.maxResultBytes \
         raises the limit"
    );
    assert_eq!(report.output.head, "a\n");
}

#[tokio::test]
async fn much_output_is_cut_and_the_script_runs_on() {
    let pool = pool();
    let limits = RunLimits { output_bytes: 100, ..limits() };
    let many = vec!["print 0123456789"; 1_000];
    let mut commands = vec!["print first"];
    commands.extend(many);
    commands.push("print last");
    let report = run(&pool, broken(&commands), &limits).await;
    assert_eq!(ending(&report), "done");
    assert!(report.output.head.starts_with("first\n0123456789\n"), "{:?}", report.output);
    assert!(report.output.tail.ends_with("0123456789\nlast\n"), "{:?}", report.output);
    assert_eq!(report.output.head.len() + report.output.tail.len(), 100);
    assert_eq!(report.output.total, 6 + 11_000 + 5);
    assert_eq!(report.output.left_out, report.output.total - 100);
}

#[tokio::test]
async fn too_much_output_ends_the_run() {
    let pool = pool();
    let limits = RunLimits { output_bytes: 64 * 1024, ..limits() };
    let report = run(&pool, broken(&["print first", "flood abcdefgh"]), &limits).await;
    assert_eq!(
        ending(&report),
        "stopped: the script wrote more than 4 MB of output; codeMode.maxOutputBytes raises the \
         limit"
    );
    assert!(report.output.head.starts_with("first\nabcdefgh"));
    assert!(report.output.head.len() + report.output.tail.len() <= 64 * 1024);
    assert_unharmed(&pool).await;
}

#[tokio::test]
async fn too_much_content_ends_the_run() {
    let pool = pool();
    let limits = RunLimits { result_bytes: 10_000, ..limits() };
    let script = broken(&["flood-emit {\"type\":\"text\",\"text\":\"again\"}"]);
    let report = run(&pool, script, &limits).await;
    assert!(matches!(report.outcome, RunOutcome::Stopped(LimitReached::Emitted { limit: 10_000 })));
    assert!(!report.emitted.is_empty());
    assert_unharmed(&pool).await;
}

#[tokio::test]
async fn endless_calls_end_at_the_time_limit() {
    let pool = pool();
    let limits = RunLimits { wall: Duration::from_millis(500), ..short() };
    let report = run(&pool, broken(&["flood-calls {}"]), &limits).await;
    assert!(ending(&report).starts_with("stopped: the script "), "{}", ending(&report));
    assert!(report.calls.len() <= 600);
    assert_unharmed(&pool).await;
}

#[tokio::test]
async fn a_script_that_waits_for_ever_is_reported() {
    let pool = pool();
    let report = run(&pool, broken(&["print a", "stall nobody is left"]), &limits()).await;
    assert_eq!(
        ending(&report),
        "stopped: the script waits for something that can no longer happen"
    );
    assert_eq!(report.output.head, "a\n");
    // Nor does an engine wait for ever that does not notice it itself.
    let report = run(&pool, broken(&["call echo", "wait", "wait"]), &limits()).await;
    assert!(matches!(report.outcome, RunOutcome::Stopped(LimitReached::Stalled(_))), "{report:?}");
}

#[tokio::test]
async fn sleeping_costs_no_cpu_time_and_ends_with_the_wall_time() {
    let pool = pool();
    let limits = RunLimits { wall: Duration::from_millis(300), ..short() };
    let before = Instant::now();
    let report = run(&pool, broken(&["sleep"]), &limits).await;
    assert!(matches!(report.outcome, RunOutcome::Stopped(LimitReached::Wall { .. })), "{report:?}");
    assert!(before.elapsed() >= Duration::from_millis(300));
}
