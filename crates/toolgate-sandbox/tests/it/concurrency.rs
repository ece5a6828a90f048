//! Runs beside each other.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio_util::sync::CancellationToken;
use toolgate_sandbox::{LimitReached, Pool, RunLimits, RunOutcome};

use crate::support::{TestTools, assert_unharmed, broken, ending, limits, pool, run, settings};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_runs_do_not_wait_for_each_other() {
    const RUNS: usize = 100;
    let pool = Arc::new(pool());
    // Nobody's call ends before all have called.
    let tools = TestTools::meeting(RUNS);
    let runs: Vec<_> = (0..RUNS)
        .map(|number| {
            let (pool, tools) = (Arc::clone(&pool), Arc::clone(&tools));
            tokio::spawn(async move {
                let value = format!("value {number}");
                let script = broken(&["call meet", "wait", &value]);
                pool.run(script, &limits(), tools, CancellationToken::new()).await
            })
        })
        .collect();
    for (number, report) in runs.into_iter().enumerate() {
        assert_eq!(ending(&report.await.unwrap()), format!("value: {number}"));
    }
    assert_eq!(tools.calls.load(Ordering::Relaxed), RUNS);
}

#[tokio::test]
async fn calls_of_one_run_are_made_at_the_same_time() {
    let pool = pool();
    let tools = TestTools::meeting(50);
    let mut commands = vec!["call meet"; 50];
    commands.push("wait-for-all");
    let limits = limits();
    let report = pool.run(broken(&commands), &limits, tools, CancellationToken::new()).await;
    assert_eq!(report.output.head, "50 of 50\n");
}

#[tokio::test]
async fn thousands_of_calls_at_once_fill_no_pipe() {
    let pool = pool();
    // Both pipes are full several times over: 5,000 calls with 2 KB each way before any is awaited.
    let limits = RunLimits { calls: 10_000, calls_in_flight: 10_000, ..limits() };
    let report = run(&pool, broken(&["call-often 5000 2000", "wait-for-all"]), &limits).await;
    assert_eq!(ending(&report), "done");
    assert_eq!(report.output.head, "5000 of 5000\n");
}

#[tokio::test]
async fn a_busy_run_does_not_delay_others() {
    let pool = Arc::new(pool());
    let spinning = {
        let pool = Arc::clone(&pool);
        let limits = RunLimits { cpu: Duration::from_secs(2), ..limits() };
        tokio::spawn(async move { run(&pool, broken(&["spin"]), &limits).await })
    };
    for _ in 0..10 {
        assert_unharmed(&pool).await;
    }
    spinning.abort();
    assert_unharmed(&pool).await;
}

#[tokio::test]
async fn more_runs_than_allowed_are_refused_by_name() {
    let mut settings = settings();
    settings.runs = 1;
    let pool = Pool::new(settings);
    let (limits, tools) = (limits(), TestTools::new());
    let cancel = CancellationToken::new();
    let first = pool.run(broken(&["call never", "wait"]), &limits, tools.clone(), cancel.clone());
    tokio::pin!(first);
    while tools.calls.load(Ordering::Relaxed) == 0 {
        tokio::select! {
            report = &mut first => panic!("{report:?}"),
            () = tokio::task::yield_now() => {}
        }
    }
    let second = run(&pool, broken(&["value 1"]), &limits).await;
    assert!(
        matches!(second.outcome, RunOutcome::Stopped(LimitReached::Runs { limit: 1 })),
        "{second:?}"
    );
    cancel.cancel();
    first.await;
    assert_unharmed(&pool).await;
}
