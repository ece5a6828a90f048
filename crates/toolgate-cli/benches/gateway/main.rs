//! What the gateway costs: time until it is ready, time added to a call, calls of many clients, memory.
//!
//! A program, not a timed test. It prints Markdown. What is compared is measured in turns in the same run, because
//! machines are noisy.
//!
//!     cargo bench -p toolgate-cli --bench gateway
//!     cargo bench -p toolgate-cli --bench gateway -- --captures FOLDER   # also with definitions of real servers
//!     cargo bench -p toolgate-cli --bench gateway -- --peers FOLDER      # also other gateways
//!
//! A folder of captures holds `NAME.json` files (`{"tools": […]}`), one a server. `scripts/bench-gateway` installs the
//! peers, runs this and writes the page.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and ends where something is wrong"
)]

mod catalogue;
mod clients;
mod peers;
mod relay;
mod stdio;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use toolgate_testkit::{Builtin, Fixture, FixtureEntry};

use crate::{
    clients::{Load, TOGETHER},
    peers::Peer,
    stdio::StdioClient,
};

/// How often the start with everything cached is measured.
const STARTS: usize = 9;
/// How many calls of each way, in rounds that take turns.
const CALLS: usize = 2_000;
const ROUNDS: usize = 20;

fn main() {
    if let Some(command) = relay::asked() {
        return relay::run(&command);
    }
    let given = |name: &str| {
        let mut arguments = std::env::args().skip_while(|argument| argument != name);
        arguments.nth(1).map(PathBuf::from)
    };
    let peers = given("--peers");
    let folder = tempfile::tempdir().expect("a folder");
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cores = thread::available_parallelism().map_or(0, usize::from);
    let load = load.split(' ').next().unwrap_or("unknown");
    println!("Load of the machine before: {load} on {cores} cores.\n");
    starts(folder.path(), given("--captures").as_deref());
    added_time(folder.path(), peers.as_deref());
    clients(folder.path(), peers.as_deref());
}

/// The first search after a start, and the memory of an idle gateway.
fn starts(folder: &Path, captures: Option<&Path>) {
    println!("| | tools | first search, nothing cached | everything cached | memory, idle |");
    println!("|---|---|---|---|---|");
    for (name, servers) in catalogue::all(captures) {
        let home = folder.join(&name);
        let tools: usize = servers.iter().map(|(_, tools)| tools.len()).sum();
        let config = catalogue::write_config(&home, &servers);
        let ready = || {
            let started = Instant::now();
            let mut gateway = gateway(&config, &home.join("state"), &["--mode", "stable"]);
            let first =
                gateway.call("search_tools", &json!({ "query": "read a file", "limit": 5 }));
            assert!(first["result"]["structuredContent"]["found"].as_u64() > Some(0), "{first}");
            (started.elapsed(), gateway)
        };
        let (without_cache, first) = ready();
        stdio::wait_until_cached(&home.join("state"), servers.len());
        first.end();
        let mut with_cache: Vec<Duration> = Vec::new();
        for _ in 0..STARTS {
            let (time, gateway) = ready();
            gateway.end();
            with_cache.push(time);
        }
        let (_, idle) = ready();
        let memory = settled_memory(idle.id());
        idle.end();
        let (without, with) = (milliseconds(without_cache), milliseconds(median(&mut with_cache)));
        println!("| {name} | {tools} | {without} ms | {with} ms | {memory} MB |");
    }
    println!();
}

/// One call after the other over stdio, in turns: directly, and through gateways.
fn added_time(folder: &Path, peers: Option<&Path>) {
    let entry = echo();
    let config = write_one(folder, &entry);
    let home = folder.join("home-one");
    let arguments = json!({ "text": "hello", "number": 7 });
    let through = json!({ "name": "echo_echo", "arguments": arguments });
    let direct = StdioClient::start(Command::new(&entry.command).args(&entry.args));
    let mut ways = vec![
        ("directly".to_owned(), direct, "echo", arguments.clone()),
        (
            "toolgate, `call_tool`".to_owned(),
            gateway(&config, &home, &["--mode", "stable"]),
            "call_tool",
            through,
        ),
        (
            "toolgate, a listed tool".to_owned(),
            gateway(&config, &home, &["--mode", "direct"]),
            "echo_echo",
            arguments.clone(),
        ),
        (
            "toolgate, pass-through".to_owned(),
            gateway(&config, &home, &["--passthrough", "echo"]),
            "echo",
            arguments.clone(),
        ),
        (
            "a program that only copies bytes".to_owned(),
            StdioClient::start(&mut relay::command(&entry)),
            "echo",
            arguments.clone(),
        ),
    ];
    for peer in peers.into_iter().flat_map(|folder| peers::over_stdio(folder, &entry)) {
        let Peer { name, mut command } = peer;
        ways.push((name, StdioClient::start(&mut command), "echo", arguments.clone()));
    }
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); ways.len()];
    for round in 0..=ROUNDS {
        for ((_, client, tool, arguments), times) in ways.iter_mut().zip(&mut times) {
            let started = Instant::now();
            for _ in 0..CALLS / ROUNDS {
                client.call(tool, arguments);
            }
            // The first round warms up.
            if round > 0 {
                times.push(started.elapsed() / u32::try_from(CALLS / ROUNDS).expect("few"));
            }
        }
    }
    println!("One call after the other over stdio, {CALLS} of each, in turns:\n");
    println!("| | a call, median | against a direct call |");
    println!("|---|---|---|");
    let base = times[0].clone();
    for ((name, client, ..), mut times) in ways.into_iter().zip(times) {
        client.end();
        let mut ratios: Vec<f64> = times
            .iter()
            .zip(&base)
            .map(|(time, base)| time.as_secs_f64() / base.as_secs_f64())
            .collect();
        ratios.sort_by(f64::total_cmp);
        let micros = median(&mut times).as_secs_f64() * 1e6;
        println!("| {name} | {micros:.0} µs | {:.2} |", ratios[ratios.len() / 2]);
    }
    println!();
}

/// Many clients over HTTP at once.
fn clients(folder: &Path, peers: Option<&Path>) {
    let entry = echo();
    let config = write_one(folder, &entry);
    println!("{TOGETHER} clients over HTTP, each with one call after the other:\n");
    println!("| | calls a second | median | 99 % |");
    println!("|---|---|---|---|");
    let mut ways: Vec<(Peer, &str, Value)> = Vec::new();
    let arguments = json!({ "text": "hello", "number": 7 });
    let through = json!({ "name": "echo_echo", "arguments": arguments });
    for (name, mode, tool, arguments) in [
        ("toolgate, `call_tool`", ["--mode", "stable"], "call_tool", &through),
        ("toolgate, pass-through", ["--passthrough", "echo"], "echo", &arguments),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate"));
        command.args(["serve", "--http"]).arg(format!("127.0.0.1:{}", peers::PORT));
        command.args(mode).arg("--config").arg(&config);
        command.env("TOOLGATE_HOME", folder.join("home-http"));
        ways.push((Peer { name: name.to_owned(), command }, tool, arguments.clone()));
    }
    for peer in peers.into_iter().flat_map(|folder| peers::over_http(folder, &entry)) {
        ways.push((peer, "echo", arguments.clone()));
    }
    for (Peer { name, mut command }, tool, arguments) in ways {
        let address = format!("127.0.0.1:{}", peers::PORT);
        let Some(Load { per_second, mut times, failed }) =
            clients::load(&mut command, &address, tool, &arguments)
        else {
            println!("| {name} | did not start | | |");
            continue;
        };
        times.sort();
        let at = |share: usize| milliseconds_exact(times[(times.len() - 1) * share / 100]);
        let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
        println!("| {name} | {per_second:.0}{failed} | {} ms | {} ms |", at(50), at(99));
    }
}

fn echo() -> FixtureEntry {
    Fixture::new("echo").with_builtins([Builtin::Echo]).entry().expect("the fixture")
}

fn write_one(folder: &Path, entry: &FixtureEntry) -> PathBuf {
    let config = folder.join("one.json");
    let servers = json!({ "mcpServers": { "echo": entry.to_json() } });
    fs::write(&config, servers.to_string()).expect("a file");
    config
}

fn gateway(config: &Path, home: &Path, mode: &[&str]) -> StdioClient {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate"));
    command.args(["serve", "--stdio"]).args(mode).arg("--config").arg(config);
    command.env("TOOLGATE_HOME", home);
    StdioClient::start(&mut command)
}

/// The resident memory in megabytes, once it no longer changes.
fn settled_memory(process: u32) -> u64 {
    let (mut last, mut same) = (0, 0);
    for _ in 0..60 {
        thread::sleep(Duration::from_millis(500));
        let now = resident_kilobytes(process);
        same = if now.abs_diff(last) * 100 < now { same + 1 } else { 0 };
        last = now;
        if same == 6 {
            break;
        }
    }
    last / 1024
}

fn resident_kilobytes(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or_default()
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn milliseconds(time: Duration) -> u128 {
    time.as_millis()
}

fn milliseconds_exact(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1e3)
}
