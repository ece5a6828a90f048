//! The server of the embedding program's functions.
//!
//! It speaks MCP on an in-memory connection, so that nothing between the model and a function knows that
//! the function is not on another machine.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream},
    task::{AbortHandle, Id, JoinError, JoinSet},
};
use toolgate_host::ServerSetup;
use toolgate_mcp::{client::InProcessServer, codes, meta, methods, versions};
use toolgate_upstream::{Endpoint, ServerSpec};

use crate::function::{FunctionTool, OutputShape};

/// The name of the server that has all functions.
pub(crate) const SERVER: &str = "functions";

/// How much longer than its function a call may take.
const SPARE: Duration = Duration::from_secs(5);

/// The functions of the program.
#[derive(Debug)]
struct FunctionServer {
    tools: Arc<HashMap<String, FunctionTool>>,
    /// The definitions, in the order in which they were added.
    definitions: Arc<Vec<Value>>,
}

/// The server of these functions.
pub(crate) fn setup(tools: Vec<FunctionTool>) -> ServerSetup {
    let longest = tools.iter().filter_map(|tool| tool.timeout).max();
    let defers = tools.iter().filter_map(|tool| Some((tool.name.clone(), tool.defer?)));
    let defer_tools = defers.collect();
    let definitions = tools.iter().map(|tool| Value::Object(tool.definition.clone())).collect();
    let tools = tools.into_iter().map(|tool| (tool.name.clone(), tool)).collect();
    let server = FunctionServer { tools: Arc::new(tools), definitions: Arc::new(definitions) };
    let mut spec = ServerSpec::new(SERVER, Endpoint::InProcess(Arc::new(server)));
    // A function has no way to report progress.
    spec.limits.total = spec.limits.total.max(longest.unwrap_or_default() + SPARE);
    spec.limits.idle = spec.limits.total;
    let mut setup = ServerSetup::new(spec);
    setup.entry.prefix = Some(String::new());
    setup.entry.description = Some("Functions of this program".to_owned());
    setup.entry.defer_tools = defer_tools;
    setup
}

impl InProcessServer for FunctionServer {
    fn content(&self) -> String {
        self.definitions.iter().map(Value::to_string).collect::<Vec<_>>().join("\n")
    }

    fn serve(&self, stream: DuplexStream) -> BoxFuture<'static, ()> {
        let connection = FunctionConnection {
            tools: Arc::clone(&self.tools),
            definitions: Arc::clone(&self.definitions),
            calls: JoinSet::new(),
            open: HashMap::new(),
        };
        Box::pin(connection.serve(stream))
    }
}

/// One connection. Dropping it drops the futures of all open calls.
struct FunctionConnection {
    tools: Arc<HashMap<String, FunctionTool>>,
    definitions: Arc<Vec<Value>>,
    /// The results of calls.
    calls: JoinSet<Value>,
    open: HashMap<Id, OpenCall>,
}

struct OpenCall {
    /// The id of the request.
    request: Value,
    tool: String,
    task: AbortHandle,
}

impl FunctionConnection {
    async fn serve(mut self, stream: DuplexStream) {
        let (input, mut output) = tokio::io::split(stream);
        let mut lines = BufReader::new(input).lines();
        loop {
            let response = tokio::select! {
                line = lines.next_line() => match line {
                    Ok(Some(line)) => self.receive(&line),
                    _ => return,
                },
                Some(ended) = self.calls.join_next_with_id(), if !self.calls.is_empty() => {
                    self.ended(ended)
                }
            };
            if let Some(response) = response {
                let mut line = response.to_string();
                line.push('\n');
                if output.write_all(line.as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    }

    /// Handles a message. Returns the response, unless it comes later or there is none.
    fn receive(&mut self, line: &str) -> Option<Value> {
        let message: Value = serde_json::from_str(line).ok()?;
        let method = message.get("method")?.as_str()?;
        let params = message.get("params").cloned().unwrap_or_default();
        let Some(id) = message.get("id").cloned() else {
            if method == methods::CANCELLED {
                self.cancel(&params["requestId"]);
            }
            return None;
        };
        let refused = |code: i64, message: String| {
            Some(
                json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }),
            )
        };
        let result = match method {
            methods::DISCOVER => json!({
                "resultType": "complete",
                "supportedVersions": [versions::MODERN],
                "capabilities": { "tools": {} },
                "ttlMs": 0,
                "cacheScope": "private",
                "_meta": { meta::SERVER_INFO: { "name": SERVER, "version": env!("CARGO_PKG_VERSION") } },
            }),
            methods::TOOLS_LIST => json!({
                "tools": &*self.definitions, "ttlMs": 0, "cacheScope": "private",
            }),
            methods::PING => json!({}),
            methods::TOOLS_CALL => {
                let name = params["name"].as_str().unwrap_or_default();
                let Some(tool) = self.tools.get(name) else {
                    return refused(
                        codes::INVALID_PARAMS,
                        format!("there is no function `{name}`"),
                    );
                };
                let (tool, name) = (tool.clone(), name.to_owned());
                let arguments = params.get("arguments").cloned().unwrap_or_else(|| json!({}));
                let task = self.calls.spawn(call(tool, arguments));
                self.open.insert(task.id(), OpenCall { request: id, tool: name, task });
                return None;
            }
            other => {
                return refused(codes::METHOD_NOT_FOUND, format!("there is no method `{other}`"));
            }
        };
        Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
    }

    /// Drops the future of a call.
    fn cancel(&mut self, request: &Value) {
        if let Some(call) = self.open.values().find(|call| call.request == *request) {
            call.task.abort();
        }
    }

    /// The response of a call that has ended.
    fn ended(&mut self, ended: Result<(Id, Value), JoinError>) -> Option<Value> {
        let task = match &ended {
            Ok((task, _)) => *task,
            Err(error) => error.id(),
        };
        let OpenCall { request, tool, .. } = self.open.remove(&task)?;
        let result = match ended {
            Ok((_, result)) => result,
            // Nobody waits for a cancelled call.
            Err(error) if error.is_cancelled() => return None,
            // What a function says when it panics is meant for its author, not for a model.
            Err(_) => error_result(&format!("the function `{tool}` panicked")),
        };
        Some(json!({ "jsonrpc": "2.0", "id": request, "result": result }))
    }
}

/// Calls a function, and returns the result of the tool.
async fn call(tool: FunctionTool, arguments: Value) -> Value {
    let calling = (tool.call)(arguments);
    let outcome = match tool.timeout {
        None => calling.await,
        Some(limit) => tokio::time::timeout(limit, calling).await.unwrap_or_else(|_| {
            Err(format!("the function `{}` took longer than {} s", tool.name, limit.as_secs_f64()))
        }),
    };
    match outcome {
        Ok(value) => success(tool.output, value),
        Err(message) => error_result(&message),
    }
}

fn success(shape: OutputShape, value: Value) -> Value {
    let text = match &value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut result = Map::new();
    result.insert("resultType".to_owned(), json!("complete"));
    let is_nothing = shape == OutputShape::Nothing;
    let content = if is_nothing { json!([]) } else { json!([{ "type": "text", "text": text }]) };
    result.insert("content".to_owned(), content);
    let structured = match shape {
        OutputShape::Object => Some(value),
        OutputShape::Wrapped => Some(json!({ "result": value })),
        OutputShape::Unknown => Some(value).filter(Value::is_object),
        OutputShape::Nothing => None,
    };
    result.extend(structured.map(|value| ("structuredContent".to_owned(), value)));
    Value::Object(result)
}

fn error_result(message: &str) -> Value {
    json!({
        "resultType": "complete",
        "content": [{ "type": "text", "text": message }],
        "isError": true,
    })
}
