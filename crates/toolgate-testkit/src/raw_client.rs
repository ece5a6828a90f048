//! A client for stdio servers that hides nothing: lines and raw JSON.

use std::collections::HashMap;
use std::io::{Error, ErrorKind, Result};
use std::process::{ExitStatus, Stdio};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;

use crate::{FixtureEntry, time::deadline};

/// A stdio server and a connection to it. Dropping it kills the server.
///
/// Every wait fails with [`ErrorKind::TimedOut`] after the [`deadline`]. The end of the server's
/// output is [`ErrorKind::UnexpectedEof`].
#[derive(Debug)]
pub struct RawClient {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    stderr: mpsc::UnboundedReceiver<String>,
    last_id: u64,
    /// Messages that arrived while a [`request`](Self::request) waited for its response, and other
    /// lines as strings.
    pub asides: Vec<Value>,
}

impl RawClient {
    /// Starts a server.
    pub fn spawn(entry: &FixtureEntry) -> Result<Self> {
        Self::spawn_with(entry, &HashMap::new())
    }

    /// Starts a server with additional environment variables.
    pub fn spawn_with(entry: &FixtureEntry, environment: &HashMap<&str, &str>) -> Result<Self> {
        let mut child = Command::new(&entry.command)
            .args(&entry.args)
            .envs(environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(Error::other("the child has no pipes"));
        };
        // Read continuously, because a server with a full stderr pipe blocks.
        let (sender, receiver) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut lines = BufReader::new(stderr).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let _ = sender.send(line);
            }
        });
        Ok(Self {
            child,
            stdin: Some(stdin),
            lines: BufReader::new(stdout).lines(),
            stderr: receiver,
            last_id: 0,
            asides: Vec::new(),
        })
    }

    /// The server's process id, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Sends a line as it is.
    pub async fn send_line(&mut self, line: &str) -> Result<()> {
        let stdin = self.stdin.as_mut().ok_or(ErrorKind::BrokenPipe)?;
        stdin.write_all(format!("{line}\n").as_bytes()).await?;
        stdin.flush().await
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: Value) -> Result<()> {
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.send_line(&message.to_string()).await
    }

    /// Sends a request without waiting for its answer; returns its id.
    pub async fn begin(&mut self, method: &str, params: Value) -> Result<u64> {
        self.last_id += 1;
        let id = self.last_id;
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send_line(&message.to_string()).await?;
        Ok(id)
    }

    /// Sends a request and waits for its answer: the whole message, an error included.
    pub async fn request(&mut self, method: &str, params: Value) -> Result<Value> {
        let id = self.begin(method, params).await?;
        self.answer(id).await
    }

    /// Waits for the answer to the request with that id.
    pub async fn answer(&mut self, id: u64) -> Result<Value> {
        loop {
            let line = self.line().await?;
            let message = serde_json::from_str(&line).unwrap_or(Value::String(line));
            if message["id"] == id && message.get("method").is_none() {
                return Ok(message);
            }
            self.asides.push(message);
        }
    }

    /// Takes part in the legacy handshake; returns the server's answer.
    pub async fn initialize(&mut self) -> Result<Value> {
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "raw-client", "version": "1.0.0" },
        });
        let answer = self.request("initialize", params).await?;
        self.notify("notifications/initialized", json!({})).await?;
        Ok(answer)
    }

    /// Calls a tool; returns the whole answer.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Result<Value> {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// The next line of the server's output, whatever it is.
    pub async fn line(&mut self) -> Result<String> {
        let line = within(self.lines.next_line()).await??;
        line.ok_or_else(|| Error::from(ErrorKind::UnexpectedEof))
    }

    /// Ends the server's input.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits until the server has exited.
    pub async fn wait(&mut self) -> Result<ExitStatus> {
        within(self.child.wait()).await?
    }

    /// The next line that the server has written to stderr.
    pub async fn stderr_line(&mut self) -> Result<String> {
        let line = within(self.stderr.recv()).await?;
        line.ok_or_else(|| Error::from(ErrorKind::UnexpectedEof))
    }

    /// Waits until the server has closed its stderr and returns the lines that were written there
    /// and not yet taken.
    pub async fn stderr(&mut self) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        while let Some(line) = within(self.stderr.recv()).await? {
            lines.push(line);
        }
        Ok(lines)
    }
}

async fn within<F: Future>(future: F) -> Result<F::Output> {
    tokio::time::timeout(deadline(), future).await.map_err(|_| Error::from(ErrorKind::TimedOut))
}
