//! Scripts that mean harm, or might as well. Each is contained and named, and the next run does not
//! notice.

mod javascript;
mod python;

use std::time::Duration;

use toolgate_sandbox::{Pool, RunLimits, Script};

use crate::support::{assert_unharmed, ending, limits, pool, run};

/// A script, and what its end begins with; any of these, where it depends on what is met first.
type Case = (&'static str, &'static [&'static str]);

const CPU: &[&str] = &["stopped: the script computed for more than 0.1 s"];
const WALL: &[&str] = &["stopped: the script took more than 1 s"];
const TIME: &[&str] = &[CPU[0], WALL[0]];
const MEMORY: &[&str] = &["stopped: the script needed more than 16 MB of memory"];
const MEMORY_OR_CPU: &[&str] = &[MEMORY[0], CPU[0]];
/// A single value that is too large may be refused as such.
const MEMORY_OR_ERROR: &[&str] = &[MEMORY[0], "failed: "];
const STACK: &[&str] = &["stopped: the script calls itself too deeply for 512 KB of stack"];
/// What a language has an error for.
const STACK_OR_ERROR: &[&str] = &[STACK[0], "failed: "];
const STALLED: &[&str] = &["stopped: the script waits for something that can no longer happen"];
const FLOOD: &[&str] = &["stopped: the script wrote more than 1 MB of output"];
const FAILED: &[&str] = &["failed: "];
/// Found before it runs, or when it does.
const WRONG: &[&str] = &["failed: ", "rejected: "];

/// Little of everything.
fn little() -> RunLimits {
    RunLimits {
        cpu: Duration::from_millis(100),
        wall: Duration::from_secs(1),
        memory_bytes: 16 << 20,
        stack_bytes: 512 << 10,
        output_bytes: 16 << 10,
        result_bytes: 1 << 20,
        ..limits()
    }
}

/// Little of everything but time, for what takes a while to come to another limit.
fn little_but_time() -> RunLimits {
    RunLimits { cpu: Duration::from_secs(20), wall: Duration::from_mins(1), ..little() }
}

async fn contains(cases: &[Case], script: fn(&str) -> Script, limits: &RunLimits) {
    let pool = pool();
    let mut wrong = Vec::new();
    for (code, ends) in cases {
        let ending = attempt(&pool, script(code), limits).await;
        if !ends.iter().any(|end| ending.starts_with(end)) {
            wrong.push(format!("{code}\n    expected {ends:?}\n    got {ending:.300}"));
        }
        assert_unharmed(&pool).await;
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

async fn attempt(pool: &Pool, script: Script, limits: &RunLimits) -> String {
    let report = run(pool, script.clone(), limits).await;
    let ended = ending(&report);
    if !ended.starts_with(WALL[0]) || report.cpu < limits.cpu / 4 {
        return ended;
    }
    // It computed, but others did so too: on a machine under load it had no time to show what it
    // would have come to.
    let patient = RunLimits { wall: Duration::from_secs(30), ..limits.clone() };
    ending(&run(pool, script, &patient).await)
}
