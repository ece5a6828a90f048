//! Nodes are killed and PostgreSQL is restarted while clients of both eras make calls with effects. Each effect
//! happens once, or its client is told that it does not know.
//!
//! The short form is a test. The long form is a benchmark: `scripts/bench-fleet`.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolgate_testkit::{scaled, until};

use super::{FleetNode, FleetPlace, LegacyClient, effects};
use crate::support::text;

/// How hard it is.
struct Storm {
    sessions: usize,
    time: Duration,
    between_kills: Duration,
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
}

/// The nodes that a load balancer knows, in turn.
#[derive(Default)]
struct Balancer {
    urls: Mutex<Vec<String>>,
    turn: AtomicU64,
}

impl Balancer {
    fn next(&self) -> String {
        let urls = self.urls.lock();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        urls[usize::try_from(turn).unwrap() % urls.len()].clone()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_effect_happens_once_or_is_reported_as_unknown_while_nodes_die() {
    let time = scaled(Duration::from_secs(8));
    storm(Storm { sessions: 12, time, between_kills: Duration::from_secs(2) }).await;
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
    };
    storm(storm_of).await;
}

/// Nodes are replaced one after the other, as an update does. No call is lost, and none is unknown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_loses_no_call() {
    let Some(place) = FleetPlace::start(json!("off")).await else { return };
    let mut nodes = vec![place.node().await, place.node().await];
    let balancer = Arc::new(Balancer::default());
    *balancer.urls.lock() = urls(&nodes);
    let (told, is_over) = (Arc::new(Told::default()), Arc::new(AtomicBool::new(false)));
    let ids = Arc::new(AtomicU64::new(1));
    let clients = start_clients(8, &balancer, &told, &is_over, &ids);
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
    is_over.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    assert_eq!(*told.unknown.lock(), BTreeSet::new(), "{:?}", told.why.lock());
    let happened: BTreeSet<u64> = effects(&place.log()).into_keys().collect();
    assert_eq!(happened, *told.done.lock());
}

/// Whether a node accepts nothing new.
async fn is_gone(url: &str) -> bool {
    let health = url.replace("/mcp", "/health");
    let http = toolgate_http::client_builder().no_proxy().build().unwrap();
    http.get(health).send().await.map_or(true, |answer| !answer.status().is_success())
}

/// Clients that make calls with effects until it is over.
fn start_clients(
    count: usize,
    balancer: &Arc<Balancer>,
    told: &Arc<Told>,
    is_over: &Arc<AtomicBool>,
    ids: &Arc<AtomicU64>,
) -> Vec<tokio::task::JoinHandle<()>> {
    let start = |number| {
        let (balancer, told) = (Arc::clone(balancer), Arc::clone(told));
        let (is_over, ids) = (Arc::clone(is_over), Arc::clone(ids));
        tokio::spawn(async move {
            let mut client = Client::new(number);
            while !is_over.load(Ordering::Relaxed) {
                let id = ids.fetch_add(1, Ordering::Relaxed);
                let began = Instant::now();
                match client.write(&balancer, id).await {
                    Effect::Done => {
                        told.times.lock().push(began.elapsed().as_secs_f64() * 1_000.0);
                        told.done.lock().insert(id);
                    }
                    Effect::Unknown(why) => {
                        told.unknown.lock().insert(id);
                        told.why.lock().push(why);
                    }
                    Effect::Refused => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
        })
    };
    (0..count).map(start).collect()
}

async fn storm(storm_of: Storm) {
    let Some(mut place) = FleetPlace::start(json!("off")).await else { return };
    let mut nodes = vec![place.node().await, place.node().await, place.node().await];
    let balancer = Arc::new(Balancer::default());
    *balancer.urls.lock() = urls(&nodes);
    let (told, is_over) = (Arc::new(Told::default()), Arc::new(AtomicBool::new(false)));
    let ids = Arc::new(AtomicU64::new(1));
    let clients = start_clients(storm_of.sessions, &balancer, &told, &is_over, &ids);
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
    let goes_on = async || (told.done.lock().len() > before + 3).then_some(());
    until("calls after the restart of PostgreSQL", goes_on).await;
    is_over.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    let (done, unknown) = (told.done.lock().clone(), told.unknown.lock().clone());
    let happened: BTreeMap<u64, usize> = effects(&place.log());
    for (id, count) in &happened {
        assert!(*count == 1, "effect {id} happened {count} times");
        assert!(
            done.contains(id) || unknown.contains(id),
            "effect {id} happened, and nobody was told"
        );
    }
    for id in &done {
        assert!(happened.contains_key(id), "effect {id} was confirmed, and did not happen");
    }
    assert!(done.len() > kills, "{} effects are too few to show anything", done.len());
    let verified = nodes[0].place.run(&["audit", "--verify"]).await;
    let only_unwritten = verified.shown().contains("could not be written");
    assert!(verified.code == Some(0) || only_unwritten, "{verified:?}");
    report(&told, kills, began.elapsed(), unknown.len());
}

#[expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]
fn report(told: &Told, kills: usize, time: Duration, unknown: usize) {
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
    println!(
        "{} effects once, {unknown} unknown, {kills} nodes killed, {} s; a call takes {:.1} ms at the median, {:.1} ms at 99 %",
        times.len(),
        time.as_secs(),
        at(0.5),
        at(0.99)
    );
}

fn urls(nodes: &[FleetNode]) -> Vec<String> {
    nodes.iter().map(|node| node.gateway.url().to_owned()).collect()
}

/// What a client knows of an effect.
enum Effect {
    Done,
    /// It may have happened.
    Unknown(String),
    /// It has not.
    Refused,
}

/// Marks an error of a connection that was never made.
pub(super) const NOT_SENT: &str = "not sent";

/// A client of either era.
enum Client {
    Modern(reqwest::Client),
    Legacy(Option<LegacyClient>),
}

impl Client {
    fn new(number: usize) -> Self {
        if number.is_multiple_of(2) {
            let http = toolgate_http::client_builder().no_proxy().pool_max_idle_per_host(0);
            Self::Modern(http.build().unwrap())
        } else {
            Self::Legacy(None)
        }
    }

    async fn write(&mut self, balancer: &Balancer, id: u64) -> Effect {
        let arguments = json!({ "id": id });
        let answer = match self {
            Self::Modern(http) => modern(http, &balancer.next(), arguments).await,
            Self::Legacy(session) => {
                let client = match session.take() {
                    Some(client) => client,
                    None => match LegacyClient::begin(&balancer.next()).await {
                        Ok(client) => client,
                        // Nothing was called.
                        Err(_) => return Effect::Refused,
                    },
                };
                let answer = client.call(&balancer.next(), "kit_write", arguments).await;
                *session = Some(client);
                answer
            }
        };
        match answer {
            Ok(result) if result["isError"] != true && text(&result) == "written" => Effect::Done,
            // Neither a node that does not listen nor one that cannot pass a request on has called anything.
            Err(why) if why.contains(NOT_SENT) || why.contains("cannot be reached; try again") => {
                Effect::Refused
            }
            Err(why) => Effect::Unknown(why),
            Ok(result) => Effect::Unknown(result.to_string()),
        }
    }
}

async fn modern(http: &reqwest::Client, url: &str, arguments: Value) -> Result<Value, String> {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "modern", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "kit_write", "arguments": arguments, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let request = http
        .post(url)
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "kit_write")
        .json(&body);
    let answer = request.send().await.map_err(|error| super::why(&error))?;
    let answer = answer.text().await.map_err(|error| error.to_string())?;
    let events = answer.lines().filter_map(|line| line.strip_prefix("data:"));
    let last = events.map(str::trim).rfind(|data| !data.is_empty()).unwrap_or(&answer);
    let mut message: Value = serde_json::from_str(last).map_err(|error| error.to_string())?;
    match message.get("result") {
        Some(_) => Ok(message["result"].take()),
        None => Err(message["error"].to_string()),
    }
}
