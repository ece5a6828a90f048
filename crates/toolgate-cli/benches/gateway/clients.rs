//! Many clients over HTTP at once, with nothing that costs time.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::stdio::initialize;

/// How many clients there are.
pub(crate) const TOGETHER: usize = 50;
/// How long they call, and how long before that does not count.
const TIME: Duration = Duration::from_secs(4);
const WARM_UP: Duration = Duration::from_secs(1);
const START_TIMEOUT: Duration = Duration::from_secs(30);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// What was measured.
pub(crate) struct Load {
    pub(crate) per_second: f64,
    pub(crate) times: Vec<Duration>,
    pub(crate) failed: usize,
}

/// Starts a server, and calls a tool with all clients. `None` if it does not start.
pub(crate) fn load(
    command: &mut Command,
    address: &str,
    tool: &str,
    arguments: &Value,
) -> Option<Load> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let deadline = Instant::now() + START_TIMEOUT;
    let mut first = None;
    while first.is_none() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(100));
        first = HttpClient::connect(address).ok();
    }
    let measured = first.map(|mut first| {
        // The server behind it may start with the first call.
        let _ = first.call(tool, arguments);
        let begin = Instant::now() + WARM_UP;
        let clients: Vec<_> = (0..TOGETHER)
            .map(|_| {
                let (address, tool, arguments) =
                    (address.to_owned(), tool.to_owned(), arguments.clone());
                thread::spawn(move || one(&address, &tool, &arguments, begin))
            })
            .collect();
        let mut load = Load { per_second: 0.0, times: Vec::new(), failed: 0 };
        for client in clients {
            let (times, failed) = client.join().expect("a client");
            load.times.extend(times);
            load.failed += failed;
        }
        #[expect(clippy::cast_precision_loss, reason = "a rate does not need the last digits")]
        let calls = load.times.len() as f64;
        load.per_second = calls / TIME.as_secs_f64();
        load
    });
    let _ = child.kill();
    let _ = child.wait();
    measured.filter(|load| !load.times.is_empty())
}

fn one(address: &str, tool: &str, arguments: &Value, begin: Instant) -> (Vec<Duration>, usize) {
    let (mut times, mut failed) = (Vec::new(), 0);
    let mut client = None;
    while begin.elapsed() < TIME {
        let Some(open) = &mut client else {
            client = HttpClient::connect(address).ok();
            continue;
        };
        let started = Instant::now();
        let is_answered = open.call(tool, arguments).unwrap_or(false);
        if !is_answered {
            client = None;
        }
        if started >= begin && begin.elapsed() < TIME {
            if is_answered { times.push(started.elapsed()) } else { failed += 1 }
        }
    }
    (times, failed)
}

struct HttpClient {
    stream: BufReader<TcpStream>,
    address: String,
    session: Option<String>,
    last_id: u64,
}

impl HttpClient {
    /// Connects, and does the handshake.
    fn connect(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        let mut client = Self {
            stream: BufReader::new(stream),
            address: address.to_owned(),
            session: None,
            last_id: 0,
        };
        client.request("initialize", &initialize())?;
        let message = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        client.post(&message)?;
        Ok(client)
    }

    /// Whether a call has a result.
    fn call(&mut self, tool: &str, arguments: &Value) -> io::Result<bool> {
        let params = json!({ "name": tool, "arguments": arguments });
        let answer = self.request("tools/call", &params)?;
        Ok(answer.contains("\"result\"") && !answer.contains("\"isError\":true"))
    }

    fn request(&mut self, method: &str, params: &Value) -> io::Result<String> {
        self.last_id += 1;
        let id = self.last_id;
        self.post(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
    }

    /// Sends a message, and returns what was answered, as JSON or as events.
    fn post(&mut self, message: &Value) -> io::Result<String> {
        let body = message.to_string();
        let session = self.session.as_ref().map_or_else(String::new, |session| {
            format!("mcp-session-id: {session}\r\nmcp-protocol-version: 2025-06-18\r\n")
        });
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n{session}content-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        self.answer()
    }

    fn answer(&mut self) -> io::Result<String> {
        let status = self.line()?;
        if !status.starts_with("HTTP/1.1 2") {
            return Err(io::Error::other(status));
        }
        let (mut length, mut is_chunked) = (0, false);
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().map_err(io::Error::other)?,
                "transfer-encoding" => is_chunked = value == "chunked",
                "mcp-session-id" => self.session = Some(value.to_owned()),
                _ => {}
            }
        }
        let mut body = Vec::new();
        if is_chunked {
            loop {
                let size = usize::from_str_radix(&self.line()?, 16).map_err(io::Error::other)?;
                self.read(size, &mut body)?;
                self.line()?;
                if size == 0 {
                    break;
                }
            }
        } else {
            self.read(length, &mut body)?;
        }
        String::from_utf8(body).map_err(io::Error::other)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        line.truncate(line.trim_end().len());
        Ok(line)
    }

    fn read(&mut self, count: usize, into: &mut Vec<u8>) -> io::Result<()> {
        let start = into.len();
        into.resize(start + count, 0);
        self.stream.read_exact(&mut into[start..])
    }
}
