//! What scripts cost: a trivial one, and many calls against the same calls made directly.
//!
//! A program, not a timed test. What is compared is measured in turns in one run, because machines
//! are noisy.
//!
//!     cargo bench -p toolgate-cli --bench code

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and ends where something is wrong"
)]

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Map, json};
use tokio_util::sync::CancellationToken;
use toolgate_host::{CodeSettings, HostSettings, ServerSetup, ToolHost};
use toolgate_policy::{Label, LabelSet, ServerPolicy};
use toolgate_sandbox::{Language, PoolSettings};
use toolgate_store::Store;
use toolgate_testkit::{Builtin, Fixture};
use toolgate_upstream::{
    CallOptions, Endpoint, Handshake, Listing, OutputSource, ServerObserver, ServerSpec,
    StdioEndpoint, Upstream,
};

const CALLS: usize = 1_000;
const ROUNDS: usize = 15;

fn main() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    // As a task, like all that a gateway does: the thread that blocks is one more to be woken.
    let work = runtime.spawn(async {
        let warm = host(2);
        let on_demand = host(0);
        let folder = tempfile::tempdir().expect("a folder");
        let kept = host_with(2, Some(folder.path()));
        trivial(&warm, &on_demand).await;
        calls(&warm).await;
        journal(&warm, &kept).await;
        together(&warm).await;
        large_results().await;
        warm.shutdown().await;
        on_demand.shutdown().await;
        kept.shutdown().await;
    });
    runtime.block_on(work).expect("no panic");
}

/// From the request to the answer of a script that returns a number.
async fn trivial(ahead: &ToolHost, on_demand: &ToolHost) {
    println!("a trivial script, medians of 100 in a row");
    for (name, host, code, language) in [
        ("TypeScript", ahead, "return 1", Language::TypeScript),
        ("Python", ahead, "1", Language::Python),
        ("TypeScript, forked on demand", on_demand, "return 1", Language::TypeScript),
    ] {
        let mut times = Vec::new();
        for _ in 0..100 {
            let started = Instant::now();
            run(host, code, language).await;
            times.push(started.elapsed());
        }
        println!("  {name:30} {:>10.0?}  (fastest {:.0?})", median(&mut times), times[0]);
    }
}

/// A thousand calls of a script, and the same made by a client of the server.
async fn calls(host: &ToolHost) {
    let direct = Upstream::start(vec![spec()], &(Arc::new(Nobody) as Arc<dyn ServerObserver>));
    direct.settled("bench").await;
    let server = "bench".into();
    let one = |number: usize| {
        let arguments =
            Map::from_iter([("a".to_owned(), json!(number)), ("b".to_owned(), json!(1))]);
        direct.call(&server, "add", Some(arguments), CallOptions::default())
    };
    let session = host.session();
    let (mut times, mut ratios) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let started = Instant::now();
        for number in 0..CALLS {
            let arguments =
                Map::from_iter([("a".to_owned(), json!(number)), ("b".to_owned(), json!(1))]);
            session.call("bench_add", arguments, CallOptions::default()).await.expect("a result");
        }
        let brokered = started.elapsed();
        let started = Instant::now();
        for number in 0..CALLS {
            one(number).await.expect("a result");
        }
        ratios.push(brokered.as_secs_f64() / started.elapsed().as_secs_f64());
        times.push(brokered);
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "{CALLS} calls through the broker, without a script: {:.1?}, {:.2} of dispatch alone",
        median(&mut times),
        ratios[ratios.len() / 2]
    );
    let in_turn = "for (let n = 0; n < 1000; n++) await bench_add({ a: n, b: 1 }); return 1";
    let at_once = "await Promise.all(Array.from({ length: 1000 }, (_, n) => \
                   bench_add({ a: n, b: 1 }))); return 1";
    for (name, code) in [("in turn", in_turn), ("at once", at_once)] {
        let (mut script, mut client, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let started = Instant::now();
            run(host, code, Language::TypeScript).await;
            let scripted = started.elapsed();
            let started = Instant::now();
            if name == "in turn" {
                for number in 0..CALLS {
                    one(number).await.expect("a result");
                }
            } else {
                futures::future::try_join_all((0..CALLS).map(one)).await.expect("results");
            }
            let directly = started.elapsed();
            ratios.push(scripted.as_secs_f64() / directly.as_secs_f64());
            script.push(scripted);
            client.push(directly);
        }
        ratios.sort_by(f64::total_cmp);
        println!(
            "{CALLS} calls {name}: script {:.1?}, directly {:.1?}, ratio {:.2}",
            median(&mut script),
            median(&mut client),
            ratios[ratios.len() / 2]
        );
    }
    direct.shutdown().await;
}

/// What it costs a call that its run is written down, with the record of calls.
async fn journal(without: &ToolHost, with: &ToolHost) {
    let code = "for (let n = 0; n < 1000; n++) await bench_add({ a: n, b: 1 }); return 1";
    let (mut plain, mut kept) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for (host, times) in [(without, &mut plain), (with, &mut kept)] {
            let started = Instant::now();
            run(host, code, Language::TypeScript).await;
            times.push(started.elapsed());
        }
    }
    let (plain, kept) = (median(&mut plain), median(&mut kept));
    println!(
        "{CALLS} calls in turn: {plain:.1?}, written down {kept:.1?}, ratio {:.2}",
        kept.as_secs_f64() / plain.as_secs_f64()
    );
}

/// A hundred scripts at once, each of which waits for a tool.
async fn together(host: &ToolHost) {
    let code = "await bench_sleep({ ms: 200 }); return 1";
    let started = Instant::now();
    let runs = (0..100).map(|_| run(host, code, Language::TypeScript));
    futures::future::join_all(runs).await;
    println!("100 scripts at once, each waiting 200 ms for a tool: {:.0?}", started.elapsed());
}

/// What a run with one call costs after a gigabyte of results, against one on a fresh store.
async fn large_results() {
    const RESULTS: usize = 72;
    const BYTES: usize = 15_000_000;
    let folders = [tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder")];
    let [fresh, full] = folders.each_ref().map(|folder| host_with(2, Some(folder.path())));
    for number in 0..RESULTS {
        // Each has a content of its own.
        let code = format!("return (await bench_big({{ bytes: {} }})).length", BYTES - number);
        run(&full, &code, Language::TypeScript).await;
    }
    let code = "return (await bench_add({ a: 1, b: 1 })).sum";
    let (mut on_fresh, mut on_full) = (Vec::new(), Vec::new());
    for _ in 0..200 {
        for (host, times) in [(&fresh, &mut on_fresh), (&full, &mut on_full)] {
            // A pool is warm when nobody has just taken a worker from it.
            tokio::time::sleep(Duration::from_millis(20)).await;
            let started = Instant::now();
            run(host, code, Language::TypeScript).await;
            times.push(started.elapsed());
        }
    }
    let (on_fresh, on_full) = (median(&mut on_fresh), median(&mut on_full));
    println!(
        "one call after {} MB of results: {on_full:.1?}, on a fresh store {on_fresh:.1?}, ratio {:.2} \
         (at most 1.20)",
        RESULTS * BYTES / 1_000_000,
        on_full.as_secs_f64() / on_fresh.as_secs_f64()
    );
    fresh.shutdown().await;
    full.shutdown().await;
}

async fn run(host: &ToolHost, code: &str, language: Language) {
    let options = CallOptions { cancel: CancellationToken::new(), ..CallOptions::default() };
    let run = host.session().run_code(code, language, options).await.expect("scripts are on");
    assert!(!run.is_error, "{}", run.text);
}

fn host(warm: usize) -> ToolHost {
    host_with(warm, None)
}

/// With a folder: with a record of every call, and a policy that has to be looked at.
fn host_with(warm: usize, folder: Option<&Path>) -> ToolHost {
    let pool = PoolSettings::new(env!("CARGO_BIN_EXE_toolgate"), ["sandbox-worker"]);
    let mut code = CodeSettings::new(PoolSettings { warm, ..pool });
    code.limits.calls = 10_000;
    code.limits.calls_in_flight = 10_000;
    code.max_parallel_calls = 1_000;
    // Nothing is removed while it is measured.
    code.retention.bytes = 4 * 1024 * 1024 * 1024;
    code.retention.runs = 100_000;
    let mut settings = HostSettings::new(vec![ServerSetup::new(spec())]);
    settings.code = Some(code);
    if let Some(folder) = folder {
        settings.store = Some(Store::new(folder));
        settings.usage_memory = false;
        let labels = LabelSet::from(Label::Egress);
        let policy = ServerPolicy { labels, ..ServerPolicy::default() };
        settings.policy.servers.insert("bench".into(), policy);
    }
    let host = ToolHost::start(settings);
    host.code().warm_up();
    host
}

fn spec() -> ServerSpec {
    let fixture = Fixture::new("bench").with_builtins([Builtin::Add, Builtin::Sleep, Builtin::Big]);
    let entry = fixture.entry().expect("the fixture's program");
    let endpoint = Endpoint::Stdio(StdioEndpoint {
        command: entry.command,
        args: entry.args,
        env: std::collections::BTreeMap::default(),
        cwd: None,
    });
    ServerSpec::new("bench", endpoint)
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

struct Nobody;

impl ServerObserver for Nobody {
    fn listed(&self, _: &toolgate_catalog::ServerName, _: &Handshake, _: Listing) {}
    fn output(&self, _: &toolgate_catalog::ServerName, _: OutputSource, _: &str) {}
}
