//! Nodes are killed and PostgreSQL is restarted while clients of both eras make calls with effects. Each effect
//! happens once, or its client is told that it does not know. Some calls wait for an approval, which is given at another
//! node, and some need the caller's own login at a server: no caller gets the login of another.
//!
//! The short form is a test. The long form is a benchmark: `scripts/bench-fleet`.

mod clients;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::json;
use toolgate_testkit::{AuthorizationOptions, AuthorizationServer, scaled, until};

use self::clients::{Balancer, Caller};
use super::{FleetNode, FleetPlace, LegacyClient, effects, logins};

/// How hard it is.
struct Storm {
    sessions: usize,
    time: Duration,
    between_kills: Duration,
    /// How long a client waits for a call whose answer, or whose approval, may have been lost with a node.
    patience: Duration,
}

/// What the clients learned.
#[derive(Default)]
struct Told {
    done: Mutex<BTreeSet<u64>>,
    unknown: Mutex<BTreeSet<u64>>,
    /// Milliseconds of calls that were answered.
    times: Mutex<Vec<f64>>,
    /// Why effects are unknown.
    why: Mutex<Vec<String>>,
    /// What nodes that listened said about calls that were not begun.
    refused: Mutex<Vec<String>>,
    /// The effects that an approver allowed, and the denials that clients were told of.
    approved: AtomicUsize,
    denied: AtomicUsize,
    /// How often each caller was served with their own login.
    accounts: Mutex<BTreeMap<&'static str, usize>>,
    /// Whose login served whom.
    crossed: Mutex<Vec<String>>,
}

/// What all clients share.
#[derive(Default)]
struct Load {
    balancer: Balancer,
    /// Without callers, clients need no token, and no call needs an approval or a login.
    callers: Vec<Arc<Caller>>,
    told: Told,
    is_over: AtomicBool,
    ids: AtomicU64,
    patience: Duration,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_effect_happens_once_or_is_reported_as_unknown_while_nodes_die() {
    let time = scaled(Duration::from_secs(5));
    let [between_kills, patience] = [2, 3].map(Duration::from_secs);
    storm(Storm { sessions: 12, time, between_kills, patience }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a benchmark: scripts/bench-fleet"]
async fn bench_fleet_faults() {
    let number = |name: &str, default: u64| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let storm_of = Storm {
        sessions: usize::try_from(number("TOOLGATE_FLEET_SESSIONS", 500)).unwrap(),
        time: Duration::from_secs(number("TOOLGATE_FLEET_SECONDS", 300)),
        between_kills: Duration::from_secs(number("TOOLGATE_FLEET_KILL_EVERY", 10)),
        patience: Duration::from_secs(30),
    };
    storm(storm_of).await;
}

/// Nodes are replaced one after the other, as an update does. No call is lost, and none is unknown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_loses_no_call() {
    let Some(place) = FleetPlace::start(json!("off")).await else { return };
    let mut nodes = vec![place.node().await, place.node().await];
    let load = Arc::new(Load::default());
    let (balancer, told) = (&load.balancer, &load.told);
    *balancer.urls.lock() = urls(&nodes);
    let clients = clients::start(8, &load);
    for _ in 0..2 {
        let before = told.done.lock().len();
        until("calls", async || (told.done.lock().len() > before + 8).then_some(())).await;
        nodes.push(place.node().await);
        let stopping = nodes.remove(0);
        // A balancer learns of it from the health check; until then it still sends requests there.
        let address = stopping.gateway.url().to_owned();
        let stopped = tokio::spawn(async move { stopping.gateway.stop().await });
        until("the health check", async || is_gone(&address).await.then_some(())).await;
        *balancer.urls.lock() = urls(&nodes);
        stopped.await.unwrap();
    }
    let before = told.done.lock().len();
    until("calls", async || (told.done.lock().len() > before + 8).then_some(())).await;
    load.is_over.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    assert_eq!(*told.unknown.lock(), BTreeSet::new(), "{:?}", told.why.lock());
    assert_eq!(*told.refused.lock(), Vec::<String>::new(), "a client had to try again");
    let happened: BTreeSet<u64> = effects(&place.log()).into_keys().collect();
    assert_eq!(happened, *told.done.lock());
}

/// Other nodes pass calls on to the node that stops, without a pause. It begins none of them after a while, and the clients
/// go on at the other node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_stops_begins_nothing_that_it_would_cut_off() {
    let Some(place) = FleetPlace::start(json!("off")).await else { return };
    let (first, second) = (place.node().await, place.node().await);
    let (url, is_over) = (second.gateway.url().to_owned(), Arc::new(AtomicBool::new(false)));
    let mut clients = Vec::new();
    for _ in 0..6 {
        let client = LegacyClient::begin(first.gateway.url()).await.unwrap();
        let (url, is_over) = (url.clone(), Arc::clone(&is_over));
        clients.push(tokio::spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                let answer = client.call(&url, "kit_sleep", json!({ "ms": 300 })).await.unwrap();
                assert_ne!(answer["isError"], true, "{answer}");
            }
        }));
    }
    first.gateway.stop().await;
    is_over.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
}

/// A node that stops has passed a long call on to the node with the session. Its client gets the result.
#[tokio::test]
async fn a_node_that_stops_waits_for_what_it_has_passed_on() {
    let Some(place) = FleetPlace::start(json!("off")).await else { return };
    let (first, second) = (place.node().await, place.node().await);
    let client = LegacyClient::begin(second.gateway.url()).await.unwrap();
    let url = first.gateway.url().to_owned();
    // Longer than new requests are accepted and connections may take to end.
    let arguments = json!({ "ms": 8_500 });
    let calling = tokio::spawn(async move { client.call(&url, "kit_sleep", arguments).await });
    let log = place.log();
    let slept = || std::fs::read_to_string(&log).unwrap_or_default().contains("8500");
    until("the call", async || slept().then_some(())).await;
    first.gateway.stop().await;
    let answer = calling.await.unwrap().unwrap();
    assert_ne!(answer["isError"], true, "{answer}");
}

/// Whether a node accepts nothing new.
async fn is_gone(url: &str) -> bool {
    let health = url.replace("/mcp", "/health");
    let http = toolgate_http::client_builder().no_proxy().build().unwrap();
    http.get(health).send().await.map_or(true, |answer| !answer.status().is_success())
}

async fn storm(storm_of: Storm) {
    // Each token is good for a second, so that logins are renewed while nodes die.
    let options = AuthorizationOptions { lifetime: 31, ..AuthorizationOptions::default() };
    let authorization = AuthorizationServer::start(options).await.unwrap();
    let address = ([127, 0, 0, 1], 0).into();
    let server = logins::fixture().serve_http_for(address, &authorization).await.unwrap();
    let policy = json!({
        "default": "allow", "rules": [{ "tool": "kit_guarded", "verdict": "ask" }],
    });
    let place = FleetPlace::start_with(policy, Some(server.url().to_owned())).await;
    let Some(mut place) = place else { return };
    let (command, mut callers) = (place.workplace(), Vec::new());
    for name in ["Ada", "Bob", "Cleo"] {
        let made = command.run(&["token", "create", "--name", name]).await;
        callers.push(Arc::new(Caller::new(name, made.stdout.trim().to_owned())));
    }
    let mut nodes = vec![place.node().await, place.node().await, place.node().await];
    let load = Arc::new(Load { callers, patience: storm_of.patience, ..Load::default() });
    let (balancer, told) = (&load.balancer, &load.told);
    *balancer.urls.lock() = urls(&nodes);
    let approver = clients::start_approver(&place, &load).await;
    let clients = clients::start(storm_of.sessions, &load);
    until("calls with the logins of all callers", async || all_go_on(&load, 0).then_some(())).await;
    let (began, mut kills) = (Instant::now(), 0);
    while began.elapsed() < storm_of.time {
        tokio::time::sleep(storm_of.between_kills).await;
        let killed = nodes.remove(0);
        killed.gateway.stop_by_kill().await;
        kills += 1;
        *balancer.urls.lock() = urls(&nodes);
        nodes.push(place.node().await);
        *balancer.urls.lock() = urls(&nodes);
    }
    place.postgres.kill();
    place.postgres.resume().unwrap();
    let before = told.done.lock().len();
    told.approved.store(0, Ordering::Relaxed);
    told.accounts.lock().clear();
    until("calls after the restart of PostgreSQL", async || all_go_on(&load, before).then_some(()))
        .await;
    load.is_over.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    approver.await.unwrap();
    assert_eq!(*told.crossed.lock(), Vec::<String>::new(), "no login serves another caller");
    check_effects(told, &effects(&place.log()));
    assert!(told.done.lock().len() > kills, "too few effects to show anything");
    assert!(told.denied.load(Ordering::Relaxed) > 0, "nothing was denied");
    let verified = nodes[0].place.run(&["audit", "--verify"]).await;
    let only_unwritten = verified.shown().contains("could not be written");
    assert!(verified.code == Some(0) || only_unwritten, "{verified:?}");
    report(told, kills, began.elapsed());
}

/// Whether effects happen, approved ones too, and each caller is served with their own login.
fn all_go_on(load: &Load, before: usize) -> bool {
    load.told.done.lock().len() > before + 3
        && load.told.approved.load(Ordering::Relaxed) > 2
        && load.told.accounts.lock().len() == load.callers.len()
}

/// Each effect happened once, and somebody was told. What a person denied never happened.
fn check_effects(told: &Told, happened: &BTreeMap<u64, usize>) {
    let (done, unknown) = (told.done.lock(), told.unknown.lock());
    for (id, count) in happened {
        assert!(*count == 1, "effect {id} happened {count} times");
        let is_guarded = id % 4 == 1;
        assert!(!(is_guarded && clients::is_denied(*id)), "effect {id} was denied, and happened");
        assert!(
            done.contains(id) || unknown.contains(id),
            "effect {id} happened, and nobody was told"
        );
    }
    for id in &*done {
        assert!(happened.contains_key(id), "effect {id} was confirmed, and did not happen");
    }
}

#[expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]
fn report(told: &Told, kills: usize, time: Duration) {
    let mut times = told.times.lock().clone();
    times.sort_by(f64::total_cmp);
    let at = |part: f64| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss
        )]
        let index = ((times.len() as f64 - 1.0) * part) as usize;
        times.get(index).copied().unwrap_or_default()
    };
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load of the machine: {}", load.trim());
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for why in told.why.lock().iter() {
        *reasons.entry(why.chars().take(160).collect()).or_default() += 1;
    }
    let mut reasons: Vec<(usize, String)> =
        reasons.into_iter().map(|(why, count)| (count, why)).collect();
    reasons.sort_unstable_by(|one, other| other.cmp(one));
    for (count, why) in reasons.iter().take(8) {
        println!("unknown {count} times: {why}");
    }
    println!(
        "{} effects once, {} unknown, {kills} nodes killed, {} s; a call takes {:.1} ms at the median, {:.1} ms at 99 %",
        told.done.lock().len(),
        told.unknown.lock().len(),
        time.as_secs(),
        at(0.5),
        at(0.99)
    );
}

fn urls(nodes: &[FleetNode]) -> Vec<String> {
    nodes.iter().map(|node| node.gateway.url().to_owned()).collect()
}

/// Marks an error of a connection that was never made.
pub(super) const NOT_SENT: &str = "not sent";
