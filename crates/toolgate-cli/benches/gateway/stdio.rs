//! A client over stdio that asks and waits.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

pub(crate) struct StdioClient {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    line: String,
    last_id: u64,
}

/// The first request of a client.
pub(crate) fn initialize() -> Value {
    json!({
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "bench", "version": "1" },
    })
}

impl StdioClient {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the command starts");
        let stdin = child.stdin.take().expect("a pipe");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut client = Self { child, stdin, stdout, line: String::new(), last_id: 0 };
        client.request("initialize", &initialize());
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.request("tools/call", &json!({ "name": tool, "arguments": arguments }));
        assert!(answer["result"]["isError"] != json!(true), "{answer}");
        answer
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            self.line.clear();
            assert!(self.stdout.read_line(&mut self.line).expect("a line") > 0, "the server ended");
            let message: Value = serde_json::from_str(&self.line).expect("JSON");
            if message["id"] == json!(id) {
                return message;
            }
        }
    }

    fn send(&mut self, message: &Value) {
        let mut line = message.to_string();
        line.push('\n');
        self.stdin.write_all(line.as_bytes()).expect("the server reads");
    }

    pub(crate) fn end(mut self) {
        drop(self.stdin);
        let _ = self.child.wait();
    }
}

/// Waits until the definitions of all servers, and what the index needs of them, are on the disk.
pub(crate) fn wait_until_cached(state: &Path, servers: usize) {
    let deadline = Instant::now() + Duration::from_mins(2);
    let count = |name: &str| {
        let files = fs::read_dir(state.join("cache").join(name));
        files.map_or(0, |files| {
            let paths = files.flatten().map(|file| file.path());
            paths.filter(|path| path.extension().is_some_and(|it| it != "tmp")).count()
        })
    };
    // Servers with equal definitions share one file.
    let is_written = || {
        let definitions = count("definitions");
        count("servers") >= servers && definitions > 0 && count("index") >= definitions
    };
    while !is_written() {
        assert!(Instant::now() < deadline, "the cache was not filled in time");
        thread::sleep(Duration::from_millis(20));
    }
}
