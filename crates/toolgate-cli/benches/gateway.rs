//! What the gateway costs: time until it is ready, time added to a call, memory.
//!
//! A program, not a timed test. Every figure is a ratio of two things measured in the same run, or
//! a growth, because machines are noisy.
//!
//!     cargo bench -p toolgate-cli --bench gateway
//!     cargo bench -p toolgate-cli --bench gateway -- path/to/captures   # real definitions instead
//!
//! A folder of captures holds `NAME.json` files (`{"tools": […]}`), one a server.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and ends where something is wrong"
)]

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use toolgate_testkit::{Builtin, Fixture};

const SERVERS: usize = 60;
const TOOLS_EACH: usize = 31;
const CALLS: usize = 2_000;

fn main() {
    let captures = std::env::args().nth(1).filter(|argument| !argument.starts_with('-'));
    let folder = tempfile::tempdir().expect("a folder");
    let servers = match &captures {
        Some(path) => captured(Path::new(path)),
        None => (0..SERVERS).map(synthetic).collect(),
    };
    let tools: usize = servers.iter().map(|(_, tools)| tools.len()).sum();
    println!("{} servers, {tools} tools\n", servers.len());
    let config = write_config(folder.path(), &servers);
    readiness(folder.path(), &config);
    memory(folder.path(), &config, tools);
    added_time(folder.path());
}

/// From the start of the process to the answer of its first search.
fn readiness(folder: &Path, config: &Path) {
    let home = folder.join("home");
    let ready = || {
        let started = Instant::now();
        let mut gateway = Client::gateway(config, &home);
        let first = gateway.call("search_tools", &json!({ "query": "read a file", "limit": 5 }));
        assert!(first["result"]["structuredContent"]["found"].as_u64() > Some(0), "{first}");
        (started.elapsed(), gateway)
    };
    let (without_cache, mut gateway) = ready();
    // Until all servers are in the cache.
    gateway.wait_until_cached(&home);
    gateway.end();
    let mut with_cache: Vec<Duration> = (0..5)
        .map(|_| {
            let (time, gateway) = ready();
            gateway.end();
            time
        })
        .collect();
    with_cache.sort();
    println!("first search answered after the start of the process");
    println!("  nothing cached     {without_cache:>10.1?}");
    println!("  everything cached  {:>10.1?}  (median of 5)", with_cache[2]);
    println!("  ratio              {:>10.1}\n", ratio(without_cache, with_cache[2]));
}

/// The resident memory of the gateway alone, with all tools indexed.
fn memory(folder: &Path, config: &Path, tools: usize) {
    let mut gateway = Client::gateway(config, &folder.join("home"));
    gateway.call("search_tools", &json!({ "query": "read a file" }));
    let resident = resident_kilobytes(gateway.child.id());
    gateway.end();
    println!("memory of the gateway with {tools} tools: {} MB\n", resident / 1024);
}

/// `call_tool` against the same server called directly, in turns in one run.
fn added_time(folder: &Path) {
    let fixture = Fixture::new("echo").with_builtins([Builtin::Echo]);
    let entry = fixture.entry().expect("the fixture");
    let config = folder.join("one.json");
    fs::write(&config, json!({ "mcpServers": { "echo": entry.to_json() } }).to_string())
        .expect("a file");
    let mut direct = Client::start(Command::new(&entry.command).args(&entry.args));
    let mut gateway = Client::gateway(&config, &folder.join("home-one"));
    let arguments = json!({ "text": "hello", "number": 7 });
    let through = json!({ "name": "echo_echo", "arguments": arguments });
    let mut times = [Duration::ZERO; 2];
    for round in 0..=10 {
        let started = Instant::now();
        for _ in 0..CALLS / 10 {
            direct.call("echo", &arguments);
        }
        let directly = started.elapsed();
        let started = Instant::now();
        for _ in 0..CALLS / 10 {
            gateway.call("call_tool", &through);
        }
        let via_gateway = started.elapsed();
        // The first round warms up.
        if round > 0 {
            times[0] += directly;
            times[1] += via_gateway;
        }
    }
    direct.end();
    gateway.end();
    let each = |time: Duration| time / u32::try_from(CALLS).expect("a small number");
    println!("one call after the other, {CALLS} of each");
    println!("  directly           {:>10.1?} a call", each(times[0]));
    println!("  through call_tool  {:>10.1?} a call", each(times[1]));
    println!("  ratio              {:>10.2}", ratio(times[1], times[0]));
}

fn ratio(left: Duration, right: Duration) -> f64 {
    left.as_secs_f64() / right.as_secs_f64()
}

fn synthetic(index: usize) -> (String, Vec<Value>) {
    const VERBS: [&str; 8] =
        ["read", "list", "create", "update", "delete", "search", "send", "get"];
    const NOUNS: [&str; 8] =
        ["file", "issue", "invoice", "deployment", "message", "customer", "log", "event"];
    let tools = (0..TOOLS_EACH).map(|tool| {
        let (verb, noun) = (VERBS[tool % 8], NOUNS[(tool / 8 + index) % 8]);
        json!({
            "name": format!("{verb}_{noun}_{tool}"),
            "description": format!("{verb} a {noun} of workspace {index}, and say what became of it."),
            "inputSchema": {
                "type": "object",
                "properties": {
                    "id": { "type": "string", "description": format!("Which {noun}") },
                    "options": { "type": "object", "properties": {
                        "limit": { "type": "integer" }, "format": { "enum": ["text", "json"] },
                    } },
                },
                "required": ["id"],
            },
        })
    });
    (format!("server{index}"), tools.collect())
}

fn captured(folder: &Path) -> Vec<(String, Vec<Value>)> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .expect("a folder of captures")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| {
            let text = fs::read_to_string(path).expect("a capture");
            let capture: Value = serde_json::from_str(&text).expect("JSON");
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            (name, capture["tools"].as_array().cloned().unwrap_or_default())
        })
        .collect()
}

fn write_config(folder: &Path, servers: &[(String, Vec<Value>)]) -> PathBuf {
    let entries: serde_json::Map<String, Value> = servers
        .iter()
        .map(|(name, tools)| {
            let fixture = Fixture::new(name.as_str()).with_tools(tools.clone());
            let file = folder.join(format!("{name}.fixture.json"));
            let entry = fixture.entry_through_file(&file).expect("the fixture");
            (name.clone(), entry.to_json())
        })
        .collect();
    let path = folder.join("all.json");
    fs::write(&path, json!({ "mcpServers": entries }).to_string()).expect("a file");
    path
}

fn resident_kilobytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or_default()
}

/// A client that asks and waits.
struct Client {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    last_id: u64,
}

impl Client {
    fn gateway(config: &Path, home: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolgate"));
        command.args(["serve", "--stdio", "--mode", "deferred", "--config"]).arg(config);
        command.env("TOOLGATE_HOME", home);
        Self::start(&mut command)
    }

    fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the command starts");
        let stdin = child.stdin.take().expect("a pipe");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut client = Self { child, stdin, stdout, last_id: 0 };
        client.request(
            "initialize",
            &json!({
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": { "name": "bench", "version": "1" },
            }),
        );
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.request("tools/call", &json!({ "name": tool, "arguments": arguments }));
        assert!(answer["result"]["isError"] != json!(true), "{answer}");
        answer
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let mut line = String::new();
            assert!(self.stdout.read_line(&mut line).expect("a line") > 0, "the server ended");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if message["id"] == json!(id) {
                return message;
            }
        }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").expect("the server reads");
    }

    fn wait_until_cached(&mut self, home: &Path) {
        let deadline = Instant::now() + Duration::from_mins(1);
        let servers = home.join("cache").join("servers");
        let expected = self.servers();
        while fs::read_dir(&servers).map_or(0, Iterator::count) < expected {
            assert!(Instant::now() < deadline, "the cache was not filled in time");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// How many servers there are: where nothing matches, they are listed.
    fn servers(&mut self) -> usize {
        let answer = self.call("search_tools", &json!({ "query": "zzzz qqqq" }));
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
        let more = text
            .lines()
            .find_map(|line| line.strip_prefix("- … ")?.strip_suffix(" more")?.parse().ok());
        let listed = text.lines().filter(|line| line.starts_with("- ")).count();
        more.map_or(listed, |more: usize| listed - 1 + more)
    }

    fn end(mut self) {
        drop(self.stdin);
        let _ = self.child.wait();
    }
}
