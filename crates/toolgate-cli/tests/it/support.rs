//! A folder to run the program in, and common helpers.

use std::{
    collections::HashMap,
    ops::{Deref, DerefMut},
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{io::AsyncWriteExt as _, process::Command};
pub(crate) use toolgate_testkit::until;
use toolgate_testkit::{Fixture, FixtureEntry, RawClient, within};

/// The tools of a deferred session.
pub(crate) const META: [&str; 6] =
    ["search_tools", "get_tool_details", "call_tool", "run_code", "resume_run", "read_output"];

/// The meta-tools of a session that lists all tools.
pub(crate) const DIRECT_META: [&str; 3] = ["run_code", "resume_run", "read_output"];

/// A folder with a configuration, which is also the user's home.
#[derive(Debug)]
pub(crate) struct Workplace {
    folder: Arc<TempDir>,
    variables: Vec<(&'static str, String)>,
}

/// A running `toolgate serve`, which keeps the folder that it works in.
#[derive(Debug)]
pub(crate) struct Gateway {
    client: RawClient,
    _folder: Arc<TempDir>,
}

/// The outcome of a command.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: Option<i32>,
}

impl Workplace {
    /// With this `toolgate.json`. Unless it says something else, the embedded Python runs scripts:
    /// what the machine has must not decide what a test tests.
    pub(crate) fn new(config: &Value) -> Self {
        let mut config = config.clone();
        if let Some(config) = config.as_object_mut() {
            let code_mode = config.entry("codeMode").or_insert_with(|| json!({}));
            if let Some(code_mode) = code_mode.as_object_mut() {
                code_mode.entry("python").or_insert_with(|| "monty".into());
            }
        }
        Self::with_text(&serde_json::to_string_pretty(&config).unwrap())
    }

    /// With this text as its `toolgate.json`.
    pub(crate) fn with_text(config: &str) -> Self {
        let workplace = Self::empty();
        workplace.rewrite(config);
        workplace
    }

    /// Without a configuration.
    pub(crate) fn empty() -> Self {
        Self { folder: Arc::new(tempfile::tempdir().unwrap()), variables: Vec::new() }
    }

    /// With one more environment variable.
    pub(crate) fn with_variable(mut self, name: &'static str, value: &str) -> Self {
        self.variables.push((name, value.to_owned()));
        self
    }

    /// With these servers, and all tools deferred.
    pub(crate) fn deferred(servers: &Value) -> Self {
        Self::new(&json!({ "mcpServers": servers, "toolSearch": { "enabled": true } }))
    }

    /// Replaces the configuration.
    pub(crate) fn rewrite(&self, config: &str) {
        std::fs::write(self.config(), config).unwrap();
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.path().join("toolgate.json")
    }

    /// Starts `toolgate serve`.
    pub(crate) fn serve(&self, arguments: &[&str]) -> Gateway {
        let config = self.config().display().to_string();
        let mut args: Vec<String> =
            ["serve", "--stdio", "--config", &config].map(str::to_owned).to_vec();
        args.extend(arguments.iter().map(ToString::to_string));
        let entry = FixtureEntry { command: program().to_owned(), args };
        let environment = self.environment();
        let environment: HashMap<&str, &str> =
            environment.iter().map(|(key, value)| (*key, value.as_str())).collect();
        let client = RawClient::spawn_with(&entry, &environment).unwrap();
        Gateway { client, _folder: Arc::clone(&self.folder) }
    }

    /// Starts `toolgate serve` and shakes hands with it, as a client of 2025-11-25.
    pub(crate) async fn connect(&self, arguments: &[&str]) -> Gateway {
        let mut client = self.serve(arguments);
        client.initialize().await.unwrap();
        client
    }

    /// Runs a command to its end.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Outcome {
        self.run_with_input(arguments, "").await
    }

    /// Runs a command with this text on its stdin.
    pub(crate) async fn run_with_input(&self, arguments: &[&str], input: &str) -> Outcome {
        let mut child = self.command(arguments).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).await.unwrap();
        drop(stdin);
        let what = format!("the end of {arguments:?}");
        let output = within(&what, child.wait_with_output()).await.unwrap();
        Outcome {
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code(),
        }
    }

    /// The program, ready to be run.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command
            .args(arguments)
            .current_dir(self.path())
            .env_remove("TOOLGATE_CONFIG")
            .env_remove("RUST_LOG")
            .env_remove("XDG_STATE_HOME")
            .envs(self.environment())
            .envs(self.config().is_file().then_some(("TOOLGATE_CONFIG", "toolgate.json")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        let place = |name: &str| self.path().join(name).display().to_string();
        // Programs that a test puts there come first.
        let path = std::env::var("PATH").unwrap_or_default();
        let mut environment = vec![
            ("PATH", format!("{}:{path}", place("bin"))),
            ("HOME", self.path().display().to_string()),
            ("TOOLGATE_HOME", place("state")),
            ("XDG_CONFIG_HOME", place(".config")),
            ("NO_COLOR", "1".to_owned()),
            // Tests never use the keychain of the user.
            ("TOOLGATE_VAULT", "file".to_owned()),
            // Nor their collector.
            ("OTEL_EXPORTER_OTLP_ENDPOINT", String::new()),
            ("USER", "somebody".to_owned()),
        ];
        environment.extend(self.variables.iter().cloned());
        environment
    }
}

impl Deref for Gateway {
    type Target = RawClient;

    fn deref(&self) -> &RawClient {
        &self.client
    }
}

impl DerefMut for Gateway {
    fn deref_mut(&mut self) -> &mut RawClient {
        &mut self.client
    }
}

impl Outcome {
    /// The JSON on stdout.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// All of it, for a snapshot.
    pub(crate) fn shown(&self) -> String {
        let code = self.code.map_or("a signal".to_owned(), |code| code.to_string());
        let Self { stdout, stderr, .. } = self;
        format!("exit code {code}\n--- stdout\n{stdout}--- stderr\n{stderr}")
    }
}

/// The program under test.
pub(crate) fn program() -> &'static str {
    env!("CARGO_BIN_EXE_toolgate")
}

/// The configuration's entry for a fixture.
pub(crate) fn entry(fixture: &Fixture) -> Value {
    fixture.entry().unwrap().to_json()
}

/// The configuration's entry for a fixture, with further settings.
pub(crate) fn entry_with(fixture: &Fixture, settings: Value) -> Value {
    let mut entry = entry(fixture);
    let (Value::Object(all), Value::Object(settings)) = (&mut entry, settings) else {
        panic!("settings are an object");
    };
    all.extend(settings);
    entry
}

/// Calls a tool of the gateway; gives its result.
pub(crate) async fn call(client: &mut RawClient, tool: &str, arguments: Value) -> Value {
    let mut answer = client.call(tool, arguments).await.unwrap();
    assert!(answer.get("error").is_none(), "{tool}: {answer}");
    answer["result"].take()
}

/// Calls a tool through `call_tool`; gives its result.
pub(crate) async fn call_through(client: &mut RawClient, tool: &str, arguments: Value) -> Value {
    call(client, "call_tool", json!({ "name": tool, "arguments": arguments })).await
}

/// The gateway's `tools/list`.
pub(crate) async fn list(client: &mut RawClient) -> Vec<Value> {
    let answer = client.request("tools/list", json!({})).await.unwrap();
    answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}")).clone()
}

/// The tools of the servers in the gateway's `tools/list`.
pub(crate) async fn served(client: &mut RawClient) -> Vec<Value> {
    let own = |tool: &Value| META.iter().any(|name| tool["name"] == **name);
    let tools = list(client).await;
    tools.into_iter().filter(|tool| !own(tool)).collect()
}

/// The names in a list.
pub(crate) fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

/// The text of a result.
pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}"))
}

/// Waits for a notification of the gateway; gives its parameters.
pub(crate) async fn notification(client: &mut RawClient, method: &str) -> Value {
    let seen = client.asides.iter().position(|message| message["method"] == method);
    if let Some(position) = seen {
        return client.asides.remove(position)["params"].take();
    }
    loop {
        let line = client.line().await.unwrap_or_else(|error| panic!("no {method}: {error}"));
        let mut message: Value = serde_json::from_str(&line).unwrap();
        if message["method"] == method {
            return message["params"].take();
        }
        client.asides.push(message);
    }
}

/// Whether a process runs. One that has ended and that nobody has waited for does not.
pub(crate) fn is_running(pid: u64) -> bool {
    let output = std::process::Command::new("ps")
        .args(["-o", "stat=", "-p", &pid.to_string()])
        .output()
        .unwrap();
    let state = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    !state.is_empty() && !state.starts_with('Z')
}

/// Sends a signal.
pub(crate) fn signal(name: &str, pid: u32) {
    let status =
        std::process::Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
    assert!(status.unwrap().success());
}
