//! Scripts that mean harm, or might as well. Each is contained and named, and the next run does not
//! notice.

#[cfg(target_os = "linux")]
mod interpreter;
mod javascript;
mod python;

use std::time::Duration;

use toolgate_sandbox::{Pool, RunLimits, SandboxScript};

use crate::support::{assert_unharmed, ending, limits, pool, run};

/// A script, and what its end begins with; any of these, where it depends on what is met first.
type Case = (&'static str, &'static [&'static str]);

const CPU: &[&str] = &["stopped: the script computed for more than 0.1 s"];
const WALL: &[&str] = &["stopped: the script took more than 1 s"];
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

/// Little of everything but time, for what takes a while to come to another limit.
fn little() -> RunLimits {
    RunLimits {
        memory_bytes: 16 << 20,
        stack_bytes: 512 << 10,
        output_bytes: 16 << 10,
        result_bytes: 1 << 20,
        ..limits()
    }
}

/// For scripts that compute for ever: no other limit of time ends them, however slow the machine.
fn little_cpu() -> RunLimits {
    RunLimits { cpu: Duration::from_millis(100), ..little() }
}

/// For scripts that wait for ever: no machine is so quick that they compute for longer than this.
fn little_time() -> RunLimits {
    RunLimits { wall: Duration::from_secs(1), ..little() }
}

async fn contains(cases: &[Case], script: fn(&str) -> SandboxScript, limits: &RunLimits) {
    contains_in(&pool(), cases, script, limits).await;
}

async fn contains_in(
    pool: &Pool,
    cases: &[Case],
    script: fn(&str) -> SandboxScript,
    limits: &RunLimits,
) {
    let mut wrong = Vec::new();
    for (code, ends) in cases {
        let ending = ending(&run(pool, script(code), limits).await);
        if !ends.iter().any(|end| ending.starts_with(end)) {
            wrong.push(format!("{code}\n    expected {ends:?}\n    got {ending:.300}"));
        }
        assert_unharmed(pool).await;
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
