//! What an engine that was taken over can do: nothing.

use std::time::Duration;

use toolgate_sandbox::{
    Language, RunLimits,
    lockdown::{MeasureKind, MeasureState},
};
#[cfg(target_os = "linux")]
use toolgate_testkit::deadline;

#[cfg(target_os = "linux")]
use crate::processes::{Host, until, workers_of, zygote_of};
use crate::support::{assert_unharmed, broken, ending, limits, pool, pool_for_crashes, run};

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
    let pool = pool_for_crashes();
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
    let pool = pool_for_crashes();
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
    let report = pool().probe(Language::Python).await.unwrap();
    for kind in [
        MeasureKind::ParentDeath,
        MeasureKind::Descriptors,
        MeasureKind::Undumpable,
        MeasureKind::NoNewPrivileges,
        MeasureKind::Capabilities,
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

/// Reads what the system says about the processes of a host: no worker, and not the process that
/// forks them either, has a privilege or more than its own namespaces.
#[cfg(target_os = "linux")]
async fn assert_confined(user: Option<u32>) {
    let host = Host::start(user).await;
    let namespaces = host.report.measures.iter().find_map(|measure| match &measure.state {
        MeasureState::InForce(names) if measure.kind == MeasureKind::Namespaces => Some(names),
        _ => None,
    });
    // Not every system lets everybody have namespaces.
    let has = |name: &str| namespaces.is_some_and(|names| names.contains(name));
    // The one that made the report may take a moment to end.
    let are_three = until(|| workers_of(host.id()).len() == 3);
    let are_three = tokio::time::timeout(deadline(), are_three).await;
    assert!(are_three.is_ok(), "one that runs, and two that wait: {:?}", workers_of(host.id()));
    let workers = workers_of(host.id());
    for process in workers.keys().copied().chain([zygote_of(host.id())]) {
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{process}/{file}")).unwrap();
        let status = read("status");
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim_start_matches(':').trim().to_owned()
        };
        for name in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert_eq!(field(name), "0000000000000000", "{name}: {status}");
        }
        if has("users") || field("Uid").starts_with("0\t") {
            assert_eq!(field("CapBnd"), "0000000000000000", "{status}");
        }
        assert_eq!(field("NoNewPrivs"), "1");
        if workers.contains_key(&process) {
            assert_eq!(field("Seccomp"), "2");
        }
        if has("processes") {
            assert_eq!(field("NSpid").split('\t').count(), 1 + field_of_self("NSpid").len());
        }
        if has("network") {
            let interfaces = read("net/dev").lines().skip(2).count();
            assert_eq!(interfaces, 1, "nothing but its own loopback");
        }
        if has("files") {
            let mounts = read("mountinfo");
            assert_eq!(mounts.lines().count(), 1, "{mounts}");
            assert!(mounts.contains(" / / ro,"), "{mounts}");
            assert!(mounts.contains(" - tmpfs "), "{mounts}");
        }
    }
}

/// The numbers of a line of this process's status.
#[cfg(target_os = "linux")]
fn field_of_self(name: &str) -> Vec<String> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_start_matches(':').split_whitespace().map(str::to_owned).collect()
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_worker_has_no_privileges_and_its_own_namespaces() {
    assert_confined(None).await;
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_worker_of_somebody_without_privileges_is_confined_as_well() {
    // Only root can become somebody else; nobody else needs to.
    let nobody = rustix::process::geteuid().is_root().then_some(65_534);
    assert_confined(nobody).await;
}
