//! Where workers come from, and that they go.

use std::path::PathBuf;
#[cfg(target_os = "linux")]
use std::{
    collections::BTreeSet,
    process::id as this_process,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

#[cfg(target_os = "linux")]
use tokio_util::sync::CancellationToken;
#[cfg(target_os = "linux")]
use toolgate_sandbox::RunReport;
use toolgate_sandbox::{Language, Pool, PoolSettings};

use crate::support::{broken, ending, limits, run};
#[cfg(target_os = "linux")]
use crate::{
    processes::{Host, below, kill, until, workers_of, zygote_of},
    support::{TestTools, assert_unharmed, pool, settings},
};

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_pool_fills_up_and_leaves_nothing_behind() {
    let pool = pool();
    assert!(below(this_process()).is_empty());
    pool.warm_up();
    until(|| pool.waiting() == 2).await;
    assert_unharmed(&pool).await;
    until(|| pool.waiting() == 2).await;
    // The one that was used is gone, reaped and all.
    until(|| workers_of(this_process()).len() == 2).await;
    drop(pool);
    until(|| below(this_process()).is_empty()).await;
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn workers_that_died_while_they_waited_are_replaced() {
    let pool = pool();
    pool.warm_up();
    until(|| pool.waiting() == 2).await;
    for worker in workers_of(this_process()).into_keys() {
        kill(worker);
    }
    assert_unharmed(&pool).await;
}

/// A run whose worker waits for a tool until the run is cancelled.
#[cfg(target_os = "linux")]
struct Waiting {
    run: tokio::task::JoinHandle<RunReport>,
    cancel: CancellationToken,
}

#[cfg(target_os = "linux")]
impl Waiting {
    async fn in_pool(pool: &Arc<Pool>) -> Self {
        let (tools, cancel) = (TestTools::new(), CancellationToken::new());
        let (its_pool, its_tools, its_cancel) = (Arc::clone(pool), tools.clone(), cancel.clone());
        let run = tokio::spawn(async move {
            let script = broken(&["call never", "wait"]);
            its_pool.run(script, &limits(), its_tools, its_cancel).await
        });
        until(|| tools.calls.load(Ordering::Relaxed) == 1).await;
        Self { run, cancel }
    }
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_zygote_that_died_ends_its_runs_and_is_replaced() {
    let pool = Arc::new(pool());
    let waiting = Waiting::in_pool(&pool).await;
    kill(zygote_of(this_process()));
    assert_eq!(
        ending(&waiting.run.await.unwrap()),
        "crashed: the worker was ended by SIGKILL: somebody killed it, most likely the system for \
         want of memory"
    );
    assert_unharmed(&pool).await;
    // Also if it died while its workers waited.
    until(|| pool.waiting() == 2).await;
    let workers = workers_of(this_process());
    kill(zygote_of(this_process()));
    until(|| !below(this_process()).keys().any(|process| workers.contains_key(process))).await;
    assert_unharmed(&pool).await;
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn after_a_crash_workers_come_from_a_new_zygote() {
    let pool = Arc::new(pool());
    let waiting = Waiting::in_pool(&pool).await;
    let before = zygote_of(this_process());
    let report = run(&pool, broken(&["segfault"]), &limits()).await;
    assert!(ending(&report).contains("SIGSEGV"), "{}", ending(&report));
    assert_unharmed(&pool).await;
    let zygotes = || workers_of(this_process()).into_values().collect::<BTreeSet<_>>();
    // The other run of the old one goes on.
    until(|| zygotes().len() == 2).await;
    waiting.cancel.cancel();
    assert_eq!(ending(&waiting.run.await.unwrap()), "cancelled");
    until(|| !below(this_process()).contains_key(&before)).await;
    assert_unharmed(&pool).await;
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_run_that_is_dropped_ends_its_worker() {
    let mut settings = settings();
    settings.warm = 0;
    let pool = Pool::new(settings);
    let (limits, tools) = (limits(), TestTools::new());
    let worker = {
        let script = broken(&["call never", "spin"]);
        let run = pool.run(script, &limits, tools.clone(), CancellationToken::new());
        tokio::pin!(run);
        while tools.calls.load(Ordering::Relaxed) == 0 {
            tokio::select! {
                report = &mut run => panic!("{report:?}"),
                () = tokio::time::sleep(Duration::from_millis(1)) => {}
            }
        }
        let workers = workers_of(this_process());
        assert_eq!(workers.len(), 1);
        *workers.keys().next().unwrap()
    };
    until(|| !below(this_process()).contains_key(&worker)).await;
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn workers_die_with_a_host_that_is_killed() {
    let mut host = Host::start(None).await;
    let processes = below(host.id());
    // One that spins and two that wait.
    assert_eq!(workers_of(host.id()).len(), 3);
    host.process.kill().await.unwrap();
    let is_gone = |process: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
        // Whoever inherits it may take its time to reap it.
        stat.map_or(true, |stat| stat.contains("(toolgate") && stat.contains(") Z "))
    };
    until(|| processes.keys().all(is_gone)).await;
}

/// A program that never becomes a zygote is started a few times for a run, and not for ever.
#[tokio::test]
async fn the_starts_of_a_zygote_are_bounded() {
    let folder = std::env::temp_dir().join(format!("toolgate-starts-{}", std::process::id()));
    let script = format!("echo >> '{}'; exit 3", folder.display());
    let pool = Pool::new(PoolSettings::new("/bin/sh", ["-c", &script]));
    pool.warm_up();
    let report = run(&pool, broken(&["value 1"]), &limits()).await;
    let starts = std::fs::read_to_string(&folder).unwrap().len();
    std::fs::remove_file(&folder).unwrap();
    assert!(ending(&report).contains("exit status: 3"), "{}", ending(&report));
    // One for the warm-up, and four for the run.
    assert!((4..=5).contains(&starts), "{starts}");
}

#[tokio::test]
async fn a_program_that_is_not_a_worker_is_named() {
    for (program, expected) in [
        (PathBuf::from("/nonexistent/program"), "No such file"),
        (PathBuf::from("/bin/true"), "the worker ended before the script did"),
        (PathBuf::from("/bin/false"), "exit status: 1"),
    ] {
        let pool = Pool::new(PoolSettings::new(&program, [""; 0]));
        let report = run(&pool, broken(&["value 1"]), &limits()).await;
        let ending = ending(&report);
        assert!(ending.starts_with("crashed: the worker "), "{}: {ending}", program.display());
        assert!(ending.contains(expected), "{}: {ending}", program.display());
        assert!(pool.probe(Language::Python).await.is_err());
    }
}
