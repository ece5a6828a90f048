//! What a fleet costs and gains: `scripts/bench-fleet`.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::json;
use toolgate_store::SharedStore as _;
use toolgate_testkit::{Builtin, Fixture};

use super::{FleetNode, FleetPlace};
use crate::{
    http::HttpClient,
    support::{Workplace, entry},
};

/// Clients of each node that call at the same time.
const CLIENTS: usize = 24;
/// The part of a processor that a node may use where nodes are the bottleneck, in percent: one machine has processors
/// left for the servers, the clients and PostgreSQL then, as if each node had a machine of its own.
const SHARE: u64 = 15;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]
fn print(line: &str) {
    println!("{line}");
}

/// How many tasks want a processor.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    format!("load of the machine: {}", text.split(' ').take(3).collect::<Vec<_>>().join(" "))
}

/// The seconds that a process has used of a processor.
fn used(process: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields: Vec<&str> =
        text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    // In hundredths of a second, on all systems with Linux.
    let ticks = |at: usize| fields.get(at).and_then(|it| it.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

async fn call(client: &HttpClient) {
    let result = client.call("kit_echo", json!({ "message": "x" })).await;
    assert_eq!(result["structuredContent"]["message"], "x", "{result}");
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Lets a process use a part of a processor, as long as this exists.
struct ProcessorShare(PathBuf);

impl ProcessorShare {
    /// `None` where this user may not make control groups.
    fn limit(process: u32) -> Option<Self> {
        let period = 10_000;
        let quota = period * SHARE / 100;
        let (folder, limits) = match Path::new("/sys/fs/cgroup/cpu") {
            first if first.is_dir() => (
                first,
                [
                    ("cpu.cfs_period_us", period.to_string()),
                    ("cpu.cfs_quota_us", quota.to_string()),
                ]
                .to_vec(),
            ),
            _ => (Path::new("/sys/fs/cgroup"), vec![("cpu.max", format!("{quota} {period}"))]),
        };
        let share = Self(folder.join(format!("toolgate-bench-{process}")));
        fs::create_dir(&share.0).ok()?;
        for (name, value) in limits.into_iter().chain([("cgroup.procs", process.to_string())]) {
            fs::write(share.0.join(name), value).ok()?;
        }
        Some(share)
    }
}

impl Drop for ProcessorShare {
    fn drop(&mut self) {
        // A group that still has a process cannot be removed.
        let all = self.0.parent().map(|folder| folder.join("cgroup.procs")).unwrap_or_default();
        let processes = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
        for process in processes.lines() {
            let _ = fs::write(&all, process);
        }
        let _ = fs::remove_dir(&self.0);
    }
}

/// Calls of many clients, each of which uses one node. Returns calls a second, and the milliseconds of a processor that
/// the nodes used for a call.
async fn throughput(nodes: &[&FleetNode], time: Duration) -> (f64, f64) {
    let processes: Vec<u32> = nodes.iter().map(|node| node.gateway.id()).collect();
    let before: f64 = processes.iter().map(|process| used(*process)).sum();
    let (is_over, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let began = Instant::now();
    let clients: Vec<_> = (0..CLIENTS * nodes.len())
        .map(|number| {
            let client = nodes[number % nodes.len()].client();
            let (is_over, count) = (Arc::clone(&is_over), Arc::clone(&count));
            tokio::spawn(async move {
                while !is_over.load(Ordering::Relaxed) {
                    call(&client).await;
                    count.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    tokio::time::sleep(time).await;
    is_over.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    let after: f64 = processes.iter().map(|process| used(*process)).sum();
    #[expect(clippy::cast_precision_loss)]
    let calls = count.load(Ordering::Relaxed) as f64;
    (calls / began.elapsed().as_secs_f64(), (after - before) * 1_000.0 / calls)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a benchmark: scripts/bench-fleet"]
async fn bench_fleet_calls() {
    let place = FleetPlace::start(json!("off")).await.unwrap();
    let fixture = Fixture::new("kit").with_builtins([Builtin::Echo]);
    let alone = Workplace::new(&json!({
        "mcpServers": { "kit": entry(&fixture) }, "policy": "off",
    }));
    let embedded = alone.serve_http(&["--mode", "direct"]).await;
    let first = place.node().await;
    let (here, there) = (embedded.client(), first.client());
    let rounds = number("TOOLGATE_FLEET_CALLS", 1_000);
    let (mut of_one, mut of_fleet) = (Vec::new(), Vec::new());
    print(&load());
    for round in 0..rounds + 20 {
        // In turn, so that the machine is the same for both.
        for (client, times) in [(&here, &mut of_one), (&there, &mut of_fleet)] {
            let began = Instant::now();
            call(client).await;
            if round >= 20 {
                times.push(began.elapsed().as_secs_f64() * 1_000.0);
            }
        }
    }
    let (one, fleet) = (median(&mut of_one), median(&mut of_fleet));
    print(&format!(
        "| a call over HTTP, median of {rounds} | {one:.2} ms | {fleet:.2} ms (+{:.2} ms) |",
        fleet - one
    ));
    let (second, third) = (place.node().await, place.node().await);
    for node in [&second, &third] {
        call(&node.client()).await;
    }
    let time = Duration::from_secs(number("TOOLGATE_FLEET_THROUGHPUT_SECONDS", 15));
    let all = [&first, &second, &third];
    print(&load());
    let (of_one, cost_of_one) = throughput(&all[..1], time).await;
    let (of_three, cost_of_three) = throughput(&all, time).await;
    print(&format!(
        "| calls a second, {CLIENTS} clients a node, one node and three that share the processors | | {of_one:.0} and {of_three:.0} ({:.2} times) |",
        of_three / of_one
    ));
    print(&format!(
        "| processor time of the nodes for a call, one node and three | | {cost_of_one:.2} and {cost_of_three:.2} ms ({:.2} times) |",
        cost_of_three / cost_of_one
    ));
    let shares = all.map(|node| ProcessorShare::limit(node.gateway.id()));
    if shares.iter().any(Option::is_none) {
        print(&format!(
            "| calls a second with {SHARE} % of a processor for each node, one node and three | | not measured: this user may not make control groups |"
        ));
        return;
    }
    print(&load());
    let (of_one, _) = throughput(&all[..1], time).await;
    let (of_three, _) = throughput(&all, time).await;
    print(&format!(
        "| calls a second with {SHARE} % of a processor for each node, one node and three | | {of_one:.0} and {of_three:.0} ({:.2} times) |",
        of_three / of_one
    ));
}

/// How long after it was saved a policy counts at the other nodes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a benchmark: scripts/bench-fleet"]
async fn bench_fleet_policy() {
    let place = FleetPlace::start(json!({ "default": "allow" })).await.unwrap();
    let nodes = [place.node().await, place.node().await, place.node().await];
    for node in &nodes {
        call(&node.client()).await;
    }
    let fleet = place.fleet().await;
    let rounds = number("TOOLGATE_FLEET_POLICIES", 20);
    print(&load());
    let mut times = Vec::new();
    for version in 0..rounds {
        let verdict = if version % 2 == 0 { "deny" } else { "allow" };
        let policy =
            json!({ "default": "allow", "rules": [{ "tool": "kit_echo", "verdict": verdict }] });
        let text = json!({ "format": 1, "policy": policy, "by": "bench", "at": 1 }).to_string();
        let saving = Arc::clone(&fleet);
        let began = tokio::task::spawn_blocking(move || {
            let saved = saving.policy().replace(version, Some(&text)).unwrap();
            assert_eq!(saved, Some(version + 1));
            Instant::now()
        });
        let began = began.await.unwrap();
        for node in &nodes {
            let client = node.client();
            loop {
                let params = json!({ "name": "kit_echo", "arguments": { "message": "x" } });
                let is_refused = client.answer("tools/call", params).await.get("error").is_some();
                if is_refused == (verdict == "deny") {
                    break;
                }
            }
        }
        times.push(began.elapsed().as_secs_f64() * 1_000.0);
    }
    let median = median(&mut times);
    let longest = times.last().copied().unwrap_or_default();
    print(&format!(
        "| a saved policy counts at all of three nodes after, median and longest of {rounds} | | {median:.0} and {longest:.0} ms |"
    ));
}
