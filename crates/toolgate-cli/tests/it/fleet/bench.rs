//! What a fleet costs and gains: `scripts/bench-fleet`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::json;
use toolgate_testkit::{Builtin, Fixture};

use super::{FleetNode, FleetPlace};
use crate::{
    http::HttpClient,
    support::{Workplace, entry},
};

/// Clients that call at the same time.
const CLIENTS: usize = 24;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]
fn print(line: &str) {
    println!("{line}");
}

/// How many tasks want a processor, on average of the last minute.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("?").to_owned()
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

/// Calls of many clients, each of which uses one node. Returns calls a second, and the milliseconds of a processor that
/// the nodes used for a call.
async fn throughput(nodes: &[&FleetNode], time: Duration) -> (f64, f64) {
    let processes: Vec<u32> = nodes.iter().map(|node| node.gateway.id()).collect();
    let before: f64 = processes.iter().map(|process| used(*process)).sum();
    let (is_over, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let began = Instant::now();
    let clients: Vec<_> = (0..CLIENTS)
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
    let load_before = load();
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
        "| a call over HTTP, median of {rounds} | {one:.2} ms | {fleet:.2} ms (+{:.2} ms) | load {load_before} |",
        fleet - one
    ));
    let (second, third) = (place.node().await, place.node().await);
    for node in [&second, &third] {
        call(&node.client()).await;
    }
    let time = Duration::from_secs(number("TOOLGATE_FLEET_THROUGHPUT_SECONDS", 15));
    let load_before = load();
    let (of_one, cost_of_one) = throughput(&[&first], time).await;
    let (of_three, cost_of_three) = throughput(&[&first, &second, &third], time).await;
    print(&format!(
        "| calls a second of {CLIENTS} clients, one node and three on this machine | {of_one:.0} | {of_three:.0} ({:.2} times) | load {load_before} |",
        of_three / of_one
    ));
    print(&format!(
        "| processor time of the nodes for a call, one node and three | {cost_of_one:.2} ms | {cost_of_three:.2} ms ({:.2} times) | |",
        cost_of_three / cost_of_one
    ));
}
