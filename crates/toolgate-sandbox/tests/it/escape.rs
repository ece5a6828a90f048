//! What an engine that was taken over can do: nothing.

use std::time::Duration;

use toolgate_sandbox::{RunLimits, lockdown::MeasureKind};

use crate::support::{assert_unharmed, broken, ending, limits, pool, run};

const FORBIDDEN: &str =
    "crashed: the worker was ended by SIGSYS: it tried what the sandbox forbids";

#[tokio::test]
#[cfg(target_os = "linux")]
async fn system_calls_that_reach_out_end_the_worker() {
    let attacks = [
        "socket-tcp",
        "socket-udp",
        "socket-unix",
        "socket-netlink",
        "connect",
        "sendmsg",
        "fork",
        "clone3",
        "execve /bin/sh",
        "execveat /bin/sh",
        "spawn /bin/sh",
        "thread",
        "ptrace",
        "kill-parent",
        "tgkill-parent",
        "pidfd",
        "read-parent",
        "limit-parent",
        "map-executable",
        "protect-executable",
        "memfd a",
        "duplicate",
        "close",
        "pipe",
        "unshare",
        "mount /",
        "chroot /",
        "chdir /",
        "unlink /tmp/x",
        "make-directory /tmp/toolgate-escaped",
        "setuid",
        "prctl",
        "seccomp",
        "io-uring",
        "bpf",
        "perf",
        "userfault",
        "shared-memory",
        "keys",
        "module",
        "reboot",
    ];
    let pool = pool();
    for attack in attacks {
        let report = run(&pool, broken(&["print before", attack, "print after"]), &limits()).await;
        assert_eq!(ending(&report), FORBIDDEN, "{attack}");
        // The last line may have been kept back; what it did afterwards was not done.
        assert!(!report.output.head.contains("after"), "{attack}: {}", report.output.head);
        assert_unharmed(&pool).await;
    }
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn files_are_refused() {
    let attacks = [
        "open /etc/passwd",
        "open /proc/self/maps",
        "open /proc/self/environ",
        "create /tmp/toolgate-escaped",
        "create /dev/shm/toolgate-escaped",
        "list /",
        "open relative",
    ];
    let pool = pool();
    for attack in attacks {
        let report = run(&pool, broken(&[attack, "print after"]), &limits()).await;
        let command = attack.split(' ').next().unwrap();
        let refused = format!("{command}: Permission denied (os error 13)\nafter\n");
        assert_eq!(report.output.head, refused, "{attack}");
        assert_unharmed(&pool).await;
    }
    assert!(!std::path::Path::new("/tmp/toolgate-escaped").exists());
}

#[tokio::test]
async fn nothing_is_inherited() {
    let pool = pool();
    let script = broken(&["environment", "descriptors"]);
    let report = run(&pool, script, &limits()).await;
    assert_eq!(report.output.head, "environment: 0 variables\ndescriptors: 1 open\n");
}

#[tokio::test]
async fn limits_cannot_be_raised_from_inside() {
    let pool = pool();
    let report = run(&pool, broken(&["raise-limit", "print after"]), &limits()).await;
    // Whoever is allowed to raise limits elsewhere is so here as well; then it holds for memory
    // that the engine does not count, and nothing else.
    assert!(report.output.head.ends_with("after\n"), "{report:?}");
    assert_unharmed(&pool).await;
}

#[tokio::test]
async fn an_engine_that_crashes_ends_its_run_and_nothing_else() {
    let limits = RunLimits { memory_bytes: 64 << 20, ..limits() };
    let cases = [
        ("segfault", "crashed: the worker was ended by SIGSEGV: the engine crashed"),
        ("abort", "SIGABRT: the engine gave up"),
        ("exit 0", "the worker ended before the script did"),
        ("exit 3", "exit status: 3"),
        ("exit 92", "the script needed more than 64 MB of memory; codeMode.memoryMb"),
        ("panic at the disco", "the engine failed: panicked at"),
        ("hog", "the script needed more than 64 MB of memory; codeMode.memoryMb"),
        ("hog-once 99000000000", "the script needed more than 64 MB of memory"),
        ("recurse", "the script calls itself too deeply for 1 MB of stack; codeMode.stackKb"),
    ];
    let pool = pool();
    for (command, expected) in cases {
        let report = run(&pool, broken(&["print before", command]), &limits).await;
        let ending = ending(&report);
        assert!(ending.contains(expected), "{command}: {ending}");
        assert_unharmed(&pool).await;
    }
}

#[tokio::test]
async fn a_worker_that_ignores_requests_is_killed() {
    let pool = pool();
    let limits = RunLimits { cpu: Duration::from_millis(50), ..limits() };
    let report = run(&pool, broken(&["ignore-signals", "spin"]), &limits).await;
    let expected = "stopped: the script computed for more than 0.05 s; codeMode.cpuSeconds";
    assert!(ending(&report).starts_with(expected), "{}", ending(&report));
    assert_unharmed(&pool).await;
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn the_lockdown_report_is_complete() {
    let report = pool().probe().await.unwrap();
    for kind in [
        MeasureKind::ParentDeath,
        MeasureKind::Descriptors,
        MeasureKind::Undumpable,
        MeasureKind::NoNewPrivileges,
        MeasureKind::Resources,
        MeasureKind::SystemCalls,
    ] {
        assert!(report.has(kind), "{kind}: {report:?}");
    }
    assert_eq!(report.lacking(), None);
    for measure in &report.measures {
        println!("{measure}");
    }
}
