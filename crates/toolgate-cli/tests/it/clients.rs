//! Other people's clients: the official SDKs for Python and TypeScript, and the Inspector.

use std::process::Output;

use serde_json::{Value, json};
use tokio::process::Command;
use toolgate_testkit::{
    Builtin, Faults, Fixture, FixtureEntry, RealServers, conformance_binary, installed_servers,
    within,
};

use crate::support::{META, Workplace, program};

/// One server behind the gateway, with all that the protocol has.
fn workplace() -> Workplace {
    let program = conformance_binary().unwrap().display().to_string();
    let entry = FixtureEntry { command: program, args: vec!["server".to_owned()] };
    Workplace::deferred(&json!({ "conformant": entry.to_json() }))
}

/// What the gateway shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Face {
    /// Its own tools, and what is behind them.
    Aggregate,
    /// The server, as it is.
    Transparent,
}

impl Face {
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Aggregate => &[],
            Self::Transparent => &["--passthrough", "conformant"],
        }
    }
}

/// How a client starts the gateway over stdio.
fn entry(workplace: &Workplace, face: Face) -> Value {
    let config = workplace.config().display().to_string();
    let mut arguments = vec!["serve", "--stdio", "--config", &config];
    arguments.extend(face.arguments());
    let path = std::env::var("PATH").map(|path| ("PATH", path));
    let environment = workplace.environment().into_iter().chain(path);
    let environment: serde_json::Map<String, Value> =
        environment.map(|(key, value)| (key.to_owned(), json!(value))).collect();
    json!({ "command": program(), "args": arguments, "env": environment })
}

/// Runs a client to its end.
async fn run(command: &mut Command) -> String {
    let running = command.kill_on_drop(true).output();
    let Output { status, stdout, stderr } = within("the end of the client", running).await.unwrap();
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{stderr}{}", String::from_utf8_lossy(&stdout));
    String::from_utf8(stdout).unwrap()
}

/// Runs a script of an SDK with the gateway, and checks its output.
async fn hold_session(mut command: Command, plan: &Value, version: &str, face: Face) {
    let output = run(command.arg(plan.to_string())).await;
    let seen: Value = serde_json::from_str(&output).unwrap_or_else(|_| panic!("{output}"));
    assert_eq!(seen["version"], version);
    assert_eq!(seen["answer"], "This is a simple text response for testing.");
    assert_eq!(seen["reported"], "It was reported.");
    // An SDK forgets who waits for progress when the answer comes, and so loses the progress that it has read in the
    // same moment.
    let all = [json!([0, 100]), json!([50, 100]), json!([100, 100])];
    let progress = seen["progress"].as_array().unwrap();
    assert!(all.starts_with(progress) && progress.len() >= 2, "{seen}");
    assert!(seen["asked"].as_str().unwrap().contains("Ada"), "{seen}");
    match face {
        Face::Aggregate => {
            assert_eq!(seen["tools"], json!(META));
            let found = seen["found"].as_str().unwrap();
            assert!(found.contains("conformant_test_simple_text"), "{found}");
        }
        Face::Transparent => {
            let tools = seen["tools"].as_array().unwrap();
            assert!(tools.contains(&json!("test_simple_text")), "{seen}");
        }
    }
    let text = "This is the content of the static text resource.";
    let prompt = "Prompt with arguments: arg1='one', arg2='two'";
    assert_eq!(seen["resource"], text);
    assert_eq!(seen["prompt"], prompt);
}

/// Both transports and both faces, with one kind of script.
async fn hold_sessions(script: impl Fn() -> (Command, Value), mode: &str, version: &str) {
    for face in [Face::Aggregate, Face::Transparent] {
        let workplace = workplace();
        let plan = |how: Value| {
            let (command, mut plan) = script();
            // Behind the gateway's own tools the server is spoken to in the newer protocol, whoever asks.
            let (prefix, asking) = match (face, mode) {
                (Face::Aggregate, _) => ("conformant_", "test_input_required_result_elicitation"),
                (Face::Transparent, "legacy") => ("", "test_elicitation"),
                (Face::Transparent, _) => ("", "test_input_required_result_elicitation"),
            };
            let extra = json!({ "mode": mode, "prefix": prefix, "asking": asking });
            for part in [extra, how] {
                let Value::Object(part) = part else { unreachable!() };
                plan.as_object_mut().unwrap().extend(part);
            }
            (command, plan)
        };
        let (command, over_stdio) = plan(entry(&workplace, face));
        hold_session(command, &over_stdio, version, face).await;

        let gateway = workplace.serve_http(face.arguments()).await;
        let (command, over_http) = plan(json!({ "url": gateway.url() }));
        hold_session(command, &over_http, version, face).await;
        gateway.stop().await;
    }
}

fn script(interpreter: &std::path::Path, name: &str) -> Command {
    let mut command = Command::new(interpreter);
    command.arg(format!("{}/tests/it/clients/{name}", env!("CARGO_MANIFEST_DIR")));
    command
}

fn python(servers: &RealServers) -> (Command, Value) {
    (script(&servers.python_interpreter(), "session.py"), json!({}))
}

fn typescript(servers: &RealServers) -> (Command, Value) {
    (script("node".as_ref(), "session.mjs"), json!({ "modules": servers.node_modules() }))
}

#[tokio::test]
async fn the_python_sdk_holds_sessions_of_the_older_protocol() {
    let Some(servers) = installed_servers() else { return };
    hold_sessions(|| python(&servers), "legacy", "2025-11-25").await;
}

#[tokio::test]
async fn the_python_sdk_holds_sessions_of_the_newer_protocol() {
    let Some(servers) = installed_servers() else { return };
    // By a version it would take what the server offers for granted, without asking for it.
    hold_sessions(|| python(&servers), "auto", "2026-07-28").await;
}

#[tokio::test]
async fn the_first_typescript_sdk_holds_sessions() {
    let Some(servers) = installed_servers() else { return };
    hold_sessions(|| typescript(&servers), "legacy", "2025-11-25").await;
}

#[tokio::test]
async fn the_second_typescript_sdk_holds_sessions() {
    let Some(servers) = installed_servers() else { return };
    hold_sessions(|| typescript(&servers), "2026-07-28", "2026-07-28").await;
}

/// Asks the Inspector's command line for one method.
async fn inspect(
    servers: &RealServers,
    workplace: &Workplace,
    target: &[String],
    method: &[&str],
) -> Value {
    let FixtureEntry { command, args } = servers.inspector();
    let mut command = Command::new(command);
    command.args(args).args(target).args(method).current_dir(workplace.path());
    // It keeps a catalogue of servers in the home.
    command.envs(workplace.environment());
    let output = run(&mut command).await;
    serde_json::from_str(&output).unwrap_or_else(|_| panic!("{output}"))
}

async fn inspect_all(servers: &RealServers, workplace: &Workplace, target: &[String], face: Face) {
    let ask = async |method: &[&str]| inspect(servers, workplace, target, method).await;
    let list = ask(&["--method", "tools/list"]).await;
    let tools = list["tools"].as_array().unwrap();
    let call = ["--method", "tools/call", "--tool-name"];
    if face == Face::Aggregate {
        assert_eq!(tools.len(), META.len(), "{list}");
        let search = ["search_tools", "--tool-arg", "query=returns one text"];
        let result = ask(&[&call[..], &search].concat()).await;
        assert!(result.to_string().contains("conformant_test_simple_text"), "{result}");
    } else {
        assert!(tools.iter().any(|tool| tool["name"] == "test_simple_text"), "{list}");
        let result = ask(&[&call[..], &["test_simple_text"]].concat()).await;
        assert!(result.to_string().contains("a simple text response"), "{result}");
    }
    let resources = ask(&["--method", "resources/list"]).await;
    assert_eq!(resources["resources"].as_array().unwrap().len(), 3, "{resources}");
    let prompts = ask(&["--method", "prompts/list"]).await;
    assert_eq!(prompts["prompts"].as_array().unwrap().len(), 5, "{prompts}");
}

#[tokio::test]
async fn the_inspector_sees_everything() {
    let Some(servers) = installed_servers() else { return };
    for face in [Face::Aggregate, Face::Transparent] {
        let workplace = workplace();
        let path = workplace.path().join("inspector.json");
        let config = json!({ "mcpServers": { "toolgate": entry(&workplace, face) } });
        std::fs::write(&path, config.to_string()).unwrap();
        let path = path.display().to_string();
        let target = ["--config", &path, "--server", "toolgate"].map(str::to_owned);
        inspect_all(&servers, &workplace, &target, face).await;

        let gateway = workplace.serve_http(face.arguments()).await;
        let target = ["--transport", "http", "--server-url", gateway.url()].map(str::to_owned);
        inspect_all(&servers, &workplace, &target, face).await;
        gateway.stop().await;
    }
}

#[tokio::test]
async fn the_inspector_sees_the_tools_of_a_server_that_is_late() {
    let Some(servers) = installed_servers() else { return };
    // Longer than a list waits for clients that learn of changes.
    let late = Faults { start_delay_ms: 5_000, ..Faults::default() };
    let fixture = |name: &str| Fixture::new(name).with_builtins([Builtin::Echo]);
    let workplace = Workplace::new(&json!({ "mcpServers": {
        "quick": crate::support::entry(&fixture("quick")),
        "late": crate::support::entry(&fixture("late").with_faults(late)),
    } }));
    let mut started = entry(&workplace, Face::Aggregate);
    started["args"].as_array_mut().unwrap().extend([json!("--mode"), json!("direct")]);
    let path = workplace.path().join("inspector.json");
    std::fs::write(&path, json!({ "mcpServers": { "toolgate": started } }).to_string()).unwrap();
    let path = path.display().to_string();
    let target = ["--config", &path, "--server", "toolgate"].map(str::to_owned);
    let list = inspect(&servers, &workplace, &target, &["--method", "tools/list"]).await;
    for name in ["quick_echo", "late_echo"] {
        let tools = list["tools"].as_array().unwrap();
        assert!(tools.iter().any(|tool| tool["name"] == name), "{name}: {list}");
    }
}
