//! Where workers come from, and that they go.

use std::{path::PathBuf, process::Stdio, time::Duration};

use tokio::io::{AsyncBufReadExt, BufReader};
use toolgate_sandbox::{Pool, PoolSettings};

use crate::support::{assert_unharmed, broken, ending, limits, pool, run, settings};

/// The processes whose parent is `parent` and that still run.
#[cfg(target_os = "linux")]
fn children_of(parent: u32) -> Vec<u32> {
    let mut children = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(process) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((_, rest)) = stat.rsplit_once(") ") else { continue };
        let mut fields = rest.split(' ');
        let (state, its_parent) = (fields.next(), fields.next());
        if state != Some("Z") && its_parent == Some(parent.to_string().as_str()) {
            children.push(process);
        }
    }
    children
}

#[cfg(target_os = "linux")]
async fn until(what: impl Fn() -> bool) {
    while !what() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_pool_fills_up_and_leaves_nothing_behind() {
    let pool = pool();
    assert!(children_of(std::process::id()).is_empty());
    pool.warm_up();
    until(|| pool.waiting() == 2).await;
    assert_unharmed(&pool).await;
    until(|| pool.waiting() == 2).await;
    // The one that was used is gone, reaped and all.
    until(|| children_of(std::process::id()).len() == 2).await;
    drop(pool);
    until(|| children_of(std::process::id()).is_empty()).await;
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn workers_that_died_while_they_waited_are_replaced() {
    let pool = pool();
    pool.warm_up();
    until(|| pool.waiting() == 2).await;
    for worker in children_of(std::process::id()) {
        let worker = rustix::process::Pid::from_raw(i32::try_from(worker).unwrap()).unwrap();
        rustix::process::kill_process(worker, rustix::process::Signal::KILL).unwrap();
    }
    assert_unharmed(&pool).await;
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_run_that_is_dropped_ends_its_worker() {
    let mut settings = settings();
    settings.warm = 0;
    let pool = Pool::new(settings).unwrap();
    let limits = limits();
    {
        let run = run(&pool, broken(&["spin"]), &limits);
        tokio::pin!(run);
        while children_of(std::process::id()).is_empty() {
            tokio::select! {
                report = &mut run => panic!("{report:?}"),
                () = tokio::time::sleep(Duration::from_millis(1)) => {}
            }
        }
    }
    until(|| children_of(std::process::id()).is_empty()).await;
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn workers_die_with_a_host_that_is_killed() {
    let mut host = tokio::process::Command::new(env!("CARGO_BIN_EXE_toolgate-sandbox-worker"))
        .arg("host")
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(host.stdout.take().unwrap()).lines();
    // One that spins and two that wait.
    assert_eq!(lines.next_line().await.unwrap().unwrap(), "running");
    let workers = children_of(host.id().unwrap());
    assert_eq!(workers.len(), 3);
    host.kill().await.unwrap();
    let is_gone = |worker: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{worker}/stat"));
        // Whoever inherits it may take its time to reap it.
        stat.map_or(true, |stat| stat.contains("(toolgate") && stat.contains(") Z "))
    };
    until(|| workers.iter().all(is_gone)).await;
}

#[tokio::test]
async fn a_program_that_is_not_a_worker_is_named() {
    for (program, expected) in [
        (PathBuf::from("/nonexistent/program"), "No such file"),
        (PathBuf::from("/bin/true"), "the worker ended before the script did"),
        (PathBuf::from("/bin/false"), "exit status: 1"),
    ] {
        let pool = Pool::new(PoolSettings::new(&program, [""; 0])).unwrap();
        let report = run(&pool, broken(&["value 1"]), &limits()).await;
        let ending = ending(&report);
        assert!(ending.starts_with("crashed: the worker "), "{}: {ending}", program.display());
        assert!(ending.contains(expected), "{}: {ending}", program.display());
        assert!(pool.probe().await.is_err());
    }
}
