//! What the built-in tools do.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::Builtin;
use crate::engine::{Engine, Generation, Request};
use crate::questions;
use crate::reply::Reply;
use crate::time::deadline;

/// The longest text that `big` makes.
const LARGEST_TEXT: u64 = 64 * 1024 * 1024;
/// The most lines that `stderr` writes and the most steps that `progress` takes.
const MOST_REPETITIONS: u64 = 1_000_000;
/// How long a grandchild lives.
const GRANDCHILD_SECONDS: &str = "300";

/// Runs a built-in.
pub(crate) async fn run(builtin: Builtin, engine: &Arc<Engine>, request: &Request) -> Reply {
    let arguments = &request.params["arguments"];
    match builtin {
        Builtin::Echo => echo(request),
        Builtin::Add => add(arguments),
        Builtin::Sleep => {
            let ms = number(arguments, "ms");
            tokio::time::sleep(Duration::from_millis(ms)).await;
            Reply::text(format!("Slept {ms} ms."))
        }
        Builtin::LastCancelled => Reply::structured(&engine.last_cancelled()),
        Builtin::Progress => progress(request).await,
        Builtin::Fail => Reply::failure(text(arguments, "message", "The tool failed on request.")),
        Builtin::RpcError => Reply::Error {
            code: arguments["code"].as_i64().unwrap_or(-32603),
            message: text(arguments, "message", "The tool broke on request."),
            data: arguments.get("data").cloned(),
        },
        Builtin::Crash => {
            let code = arguments["code"].as_i64().and_then(|code| i32::try_from(code).ok());
            engine.die(code.unwrap_or(1)).await
        }
        Builtin::Big => {
            let bytes = number(arguments, "bytes").min(LARGEST_TEXT);
            Reply::text("x".repeat(usize::try_from(bytes).unwrap_or_default()))
        }
        Builtin::Media => Reply::Result(media()),
        Builtin::Counter => {
            let mut state = engine.state.lock();
            state.counter += 1;
            Reply::structured(&json!({ "count": state.counter }))
        }
        Builtin::ChangeTools => change_tools(engine, arguments),
        Builtin::Environment => environment(arguments),
        Builtin::SpawnGrandchild => spawn_grandchild(arguments),
        Builtin::Stderr => write_stderr(arguments).await,
        Builtin::AskRoots => ask_roots(request).await,
        Builtin::AskForm | Builtin::AskUrl | Builtin::AskModel | Builtin::AskAll
            if engine.fixture.faults.asks_only_by_requests
                && request.generation == Generation::Modern =>
        {
            let message = "Cannot send 'elicitation/create': this transport context has no back-channel \
                           for server-initiated requests.";
            Reply::error(-32600, message)
        }
        Builtin::AskForm | Builtin::AskUrl | Builtin::AskModel | Builtin::AskAll => {
            questions::ask(builtin, request).await
        }
        Builtin::Log => log(request),
        Builtin::Client => Reply::structured(&request.client()),
    }
}

/// A count among the arguments; hostile ones count as 0.
fn number(arguments: &Value, name: &str) -> u64 {
    arguments[name].as_u64().unwrap_or(0)
}

fn text(arguments: &Value, name: &str, default: &str) -> String {
    arguments[name].as_str().unwrap_or(default).to_owned()
}

fn echo(request: &Request) -> Reply {
    let arguments = request.params.get("arguments").cloned().unwrap_or(json!({}));
    Reply::Result(json!({
        "content": [{ "type": "text", "text": arguments.to_string() }],
        "structuredContent": arguments,
        "_meta": { "fixture/requestMeta": request.params["_meta"] },
    }))
}

fn add(arguments: &Value) -> Reply {
    if let (Some(a), Some(b)) = (arguments["a"].as_i64(), arguments["b"].as_i64())
        && let Some(sum) = a.checked_add(b)
    {
        return Reply::structured(&json!({ "sum": sum }));
    }
    match (arguments["a"].as_f64(), arguments["b"].as_f64()) {
        (Some(a), Some(b)) => Reply::structured(&json!({ "sum": a + b })),
        _ => Reply::failure("`a` and `b` must be numbers."),
    }
}

async fn progress(request: &Request) -> Reply {
    let arguments = &request.params["arguments"];
    let token = &request.params["_meta"]["progressToken"];
    let steps = number(arguments, "steps").min(MOST_REPETITIONS);
    let interval = Duration::from_millis(number(arguments, "intervalMs"));
    for step in 1..=steps {
        tokio::time::sleep(interval).await;
        if token.is_null() {
            continue;
        }
        let mut params = json!({
            "progressToken": token,
            "progress": step,
            "total": steps,
            "message": format!("step {step}"),
        });
        // Further fields, such as `_meta`.
        if let (Value::Object(params), Value::Object(with)) = (&mut params, &arguments["with"]) {
            params.extend(with.clone());
        }
        request.outbox.initiate(
            &json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }),
        );
    }
    Reply::text(format!("Took {steps} steps."))
}

fn log(request: &Request) -> Reply {
    let arguments = &request.params["arguments"];
    let count = number(arguments, "count").clamp(1, MOST_REPETITIONS);
    for number in 1..=count {
        let params = json!({
            "level": text(arguments, "level", "info"),
            "logger": "fixture",
            "data": arguments["data"],
            "number": number,
        });
        let message =
            json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params });
        request.outbox.initiate(&message);
    }
    Reply::text(format!("Logged {count} messages."))
}

/// Each kind of content that the protocol knows, and one that it does not.
fn media() -> Value {
    // A transparent pixel, and a RIFF header without samples.
    let pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
    let silence = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";
    let annotations = json!({ "audience": ["user"], "priority": 0.5 });
    json!({
        "content": [
            { "type": "text", "text": "words", "annotations": annotations, "_meta": { "fixture/block": 0 } },
            { "type": "image", "data": pixel, "mimeType": "image/png", "_meta": { "fixture/block": 1 } },
            { "type": "audio", "data": silence, "mimeType": "audio/wav" },
            {
                "type": "resource_link",
                "uri": "fixture://report",
                "name": "report",
                "mimeType": "text/plain",
                "size": 12,
            },
            {
                "type": "resource",
                "resource": { "uri": "fixture://note", "mimeType": "text/plain", "text": "embedded" },
                "_meta": { "fixture/block": 4 },
            },
            { "type": "hologram", "depth": 3, "beams": [{ "hue": 0.25 }], "_meta": { "fixture/block": 5 } },
        ],
        "_meta": { "fixture/result": true },
    })
}

fn change_tools(engine: &Engine, arguments: &Value) -> Reply {
    let names = {
        let mut state = engine.state.lock();
        if let Some(name) = arguments["remove"].as_str() {
            state.tools.retain(|tool| tool["name"] != name);
        }
        if let Some(name) = arguments["add"].as_str() {
            let definition = Builtin::from_name(name).map_or_else(
                || {
                    let schema = json!({ "type": "object" });
                    json!({ "name": name, "description": "Added later.", "inputSchema": schema })
                },
                Builtin::definition,
            );
            state.tools.push(definition);
        }
        state.tools.iter().map(|tool| tool["name"].clone()).collect::<Vec<_>>()
    };
    engine.announce_tools();
    Reply::structured(&json!({ "tools": names }))
}

fn environment(arguments: &Value) -> Reply {
    let names = arguments["names"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let variables: Map<String, Value> = names
        // A name with these characters would make the lookup panic on some platforms.
        .filter(|name| !name.is_empty() && !name.contains(['=', '\0']))
        .map(|name| (name.to_owned(), json!(std::env::var(name).ok())))
        .collect();
    let directory = std::env::current_dir().ok().map(|path| path.display().to_string());
    Reply::structured(&json!({ "variables": variables, "workingDirectory": directory }))
}

fn spawn_grandchild(arguments: &Value) -> Reply {
    let script = if arguments["ignoresTerminate"] == true {
        "trap '' TERM; exec sleep \"$0\""
    } else {
        "exec sleep \"$0\""
    };
    let mut command = Command::new("sh");
    command.args(["-c", script, GRANDCHILD_SECONDS]).stdin(Stdio::null());
    // By default it keeps the server's pipes open, like the children of launchers. A reader of the
    // server's output then also waits for the grandchild.
    if arguments["keepsPipes"] == false {
        command.stdout(Stdio::null()).stderr(Stdio::null());
    }
    match command.spawn() {
        Ok(child) => Reply::structured(&json!({ "pid": child.id() })),
        Err(error) => Reply::failure(format!("The grandchild did not start: {error}")),
    }
}

async fn write_stderr(arguments: &Value) -> Reply {
    let lines = number(arguments, "lines").min(MOST_REPETITIONS);
    // A separate thread, because the write blocks until somebody reads.
    let written = tokio::task::spawn_blocking(move || {
        let mut stderr = std::io::stderr().lock();
        (1..=lines).try_for_each(|line| writeln!(stderr, "fixture stderr line {line}"))
    });
    match written.await {
        Ok(Ok(())) => Reply::text(format!("Wrote {lines} lines.")),
        Ok(Err(error)) => Reply::failure(format!("stderr failed: {error}")),
        Err(error) => Reply::failure(format!("The writer failed: {error}")),
    }
}

/// Requests the roots, in the modern era with `input_required`.
async fn ask_roots(request: &Request) -> Reply {
    if request.generation == Generation::Modern {
        return match request.params.get("inputResponses") {
            Some(responses) => Reply::structured(&json!({ "answer": responses["roots"] })),
            None => Reply::Result(json!({
                "resultType": "input_required",
                "inputRequests": { "roots": { "method": "roots/list" } },
                "requestState": "waiting-for-roots",
            })),
        };
    }
    let answer = request.peer.ask(&request.outbox, "roots/list", None);
    match tokio::time::timeout(deadline(), answer).await {
        Ok(Ok(answer)) => {
            let part = if answer.get("error").is_some() { "error" } else { "result" };
            Reply::structured(&json!({ part: answer[part] }))
        }
        Ok(Err(_)) | Err(_) => Reply::failure("The client did not answer roots/list."),
    }
}
