//! No process survives.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::json;
use toolgate_testkit::{Builtin, Faults, Fixture};

use crate::support::{Gate, lines, logged, until, within};

const HOLD: &str = "TOOLGATE_TEST_HOLD";

/// Whether a process runs. One that only waits to be reaped does not.
pub(crate) fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // After the name in parentheses, which may hold anything, comes the state.
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

fn family() -> Fixture {
    Fixture::new("family").with_builtins([Builtin::SpawnGrandchild, Builtin::Add])
}

/// Starts a server and a child of it; returns the ids of both.
async fn start(
    fixture: &Fixture,
    folder: &Path,
    grandchild: serde_json::Value,
) -> (Gate, [String; 2]) {
    let log = folder.join("starts");
    let mut spec = logged(fixture, &log, "");
    spec.remembered_era = Some(toolgate_mcp::Era::Legacy);
    let gate = Gate::ready(spec).await;
    let grandchild = gate.structured("spawn_grandchild", grandchild).await["pid"].to_string();
    let child = lines(&log)[0].clone();
    assert!(is_alive(&child) && is_alive(&grandchild));
    (gate, [child, grandchild])
}

async fn gone(pids: &[String]) {
    until(&format!("the end of {pids:?}"), || !pids.iter().any(|pid| is_alive(pid))).await;
}

#[tokio::test]
async fn a_shutdown_ends_the_child_and_what_it_started() {
    for keeps_pipes in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let grandchild = json!({ "keepsPipes": keeps_pipes, "ignoresTerminate": true });
        let (gate, pids) = start(&family(), folder.path(), grandchild).await;
        within("the shutdown", gate.upstream.shutdown()).await;
        assert!(!is_alive(&pids[0]), "the child is gone when the shutdown is over");
        gone(&pids).await;
    }
}

#[tokio::test]
async fn a_child_that_ignores_everything_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let faults = Faults { ignores_shutdown: true, ..Faults::default() };
    let grandchild = json!({ "ignoresTerminate": true });
    let (gate, pids) = start(&family().with_faults(faults), folder.path(), grandchild).await;
    within("the shutdown", gate.upstream.shutdown()).await;
    assert!(!is_alive(&pids[0]));
    gone(&pids).await;
}

#[tokio::test]
async fn dropping_the_upstream_ends_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let (gate, pids) = start(&family(), folder.path(), json!({})).await;
    drop(gate);
    gone(&pids).await;
}

#[tokio::test]
async fn a_dropped_shutdown_still_ends_the_processes() {
    let folder = tempfile::tempdir().unwrap();
    let faults = Faults { ignores_shutdown: true, ..Faults::default() };
    let (gate, pids) = start(&family().with_faults(faults), folder.path(), json!({})).await;
    let impatient = tokio::time::timeout(Duration::from_millis(100), gate.upstream.shutdown());
    assert!(impatient.await.is_err());
    gone(&pids).await;
    within("the shutdown", gate.upstream.shutdown()).await;
}

#[test]
fn the_end_of_the_runtime_ends_the_servers() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (gate, pids) = runtime.block_on(start(&family(), folder.path(), json!({})));
    drop(runtime);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(gone(&pids));
    drop(gate);

    // Another upstream in the same process, after the runtime of the first one is gone.
    let folder = tempfile::tempdir().unwrap();
    let (gate, pids) = runtime.block_on(start(&family(), folder.path(), json!({})));
    runtime.block_on(gate.upstream.shutdown());
    runtime.block_on(gone(&pids));
}

#[tokio::test]
async fn two_upstreams_do_not_end_each_others_children() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (first, first_pids) = start(&family(), one.path(), json!({})).await;
    let (second, second_pids) = start(&family(), two.path(), json!({})).await;
    within("the shutdown", first.upstream.shutdown()).await;
    gone(&first_pids).await;
    drop(first);
    assert_eq!(second.structured("add", json!({ "a": 1, "b": 2 })).await, json!({ "sum": 3 }));
    assert!(second_pids.iter().all(|pid| is_alive(pid)));
    within("the shutdown", second.upstream.shutdown()).await;
    gone(&second_pids).await;
}

/// Not a test: the process that the next test kills.
#[tokio::test]
async fn hold_an_upstream() {
    let Some(folder) = std::env::var_os(HOLD) else { return };
    let grandchild = json!({ "keepsPipes": false, "ignoresTerminate": true });
    let (_gate, pids) = start(&family(), Path::new(&folder), grandchild).await;
    println!("\nholding {} {}", pids[0], pids[1]);
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn killing_toolgate_ends_its_servers() {
    kill_the_holder_of("processes::hold_an_upstream").await;
}

/// Kills a process that runs a test of this file, and waits until the processes below it are gone.
async fn kill_the_holder_of(test: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(HOLD, folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(holder.stdout.take().unwrap());
    let held = tokio::task::spawn_blocking(move || {
        output.lines().map_while(Result::ok).find_map(|line| {
            let pids = line.strip_prefix("holding ")?.split_once(' ')?;
            Some([pids.0.to_owned(), pids.1.to_owned()])
        })
    });
    let pids = within("the start of the holder", held).await.unwrap().unwrap();
    assert!(pids.iter().all(|pid| is_alive(pid)));
    // SIGKILL: it has no chance to clean up.
    holder.kill().unwrap();
    holder.wait().unwrap();
    gone(&pids).await;
}

/// A shell line that starts a process as a daemon would: with a session of its own, and no parent that
/// waits for it. The process writes its id to the file.
fn daemon(file: &Path, before: &str) -> String {
    let file = file.display();
    format!(
        "({before} setsid sh -c 'echo $$ >> {file}; exec sleep 600' </dev/null >/dev/null 2>&1 &)"
    )
}

/// Starts a server that starts daemons; returns the ids of the server and of the daemons.
async fn start_with_daemons(folder: &Path, befores: &[&str]) -> (Gate, Vec<String>) {
    let (log, daemons) = (folder.join("starts"), folder.join("daemons"));
    let prelude: Vec<String> = befores.iter().map(|before| daemon(&daemons, before)).collect();
    let mut spec = logged(&family(), &log, &prelude.join("\n"));
    spec.remembered_era = Some(toolgate_mcp::Era::Legacy);
    let gate = Gate::ready(spec).await;
    until("the daemons", || lines(&daemons).len() == befores.len()).await;
    let pids = [lines(&log), lines(&daemons)].concat();
    assert!(pids.iter().all(|pid| is_alive(pid)));
    (gate, pids)
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_shutdown_ends_daemons_even_without_their_variables() {
    let folder = tempfile::tempdir().unwrap();
    let (gate, pids) = start_with_daemons(folder.path(), &["", "env -i"]).await;
    within("the shutdown", gate.upstream.shutdown()).await;
    gone(&pids).await;
}

#[tokio::test]
async fn a_server_gets_a_few_variables_and_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("variables");
    let mut spec =
        logged(&family(), &folder.path().join("starts"), &format!("env > '{}'", file.display()));
    let toolgate_upstream::Endpoint::Stdio(stdio) = &mut spec.endpoint else { panic!("a command") };
    stdio.env.insert("OWN".to_owned(), "yes".to_owned());
    let _gate = Gate::ready(spec).await;
    // Variables of the test process, which represent secrets of the user.
    assert!(std::env::var_os("CARGO_PKG_NAME").is_some());
    let variables = lines(&file);
    assert!(variables.contains(&"OWN=yes".to_owned()), "{variables:?}");
    assert!(variables.iter().any(|variable| variable.starts_with("PATH=")), "{variables:?}");
    assert!(!variables.iter().any(|variable| variable.starts_with("CARGO")), "{variables:?}");
}
