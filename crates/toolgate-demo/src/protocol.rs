//! MCP over lines of JSON, without a runtime: read a line, answer it, until the input ends.

use std::io::{BufRead, ErrorKind, Write};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::DemoError;
use crate::instance::Instance;
use crate::line::{Line, read_line};
use crate::moment::NOW;
use crate::spec::Era;
use crate::tool::structured;

/// The revisions that begin with `initialize`, oldest first.
const HANDSHAKE_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The revision in which every request speaks for itself.
const DISCOVER_VERSION: &str = "2026-07-28";
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";

const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;

/// Serves a demo server over newline-delimited JSON-RPC until the input ends.
///
/// Lines that are no requests (notifications, answers, bad JSON, lines over a mebibyte) get no
/// answer. A client that stops listening ends the loop as the end of the input does.
pub fn serve(name: &str, mut input: impl BufRead, mut output: impl Write) -> Result<(), DemoError> {
    let mut instance = Instance::open(name)?;
    loop {
        let line = match read_line(&mut input)? {
            Line::Text(line) => line,
            Line::TooLong => continue,
            Line::End => return Ok(()),
        };
        let Ok(request) = serde_json::from_slice::<Request>(&line) else { continue };
        let Some(answer) = answer(&mut instance, request) else { continue };
        let written = writeln!(output, "{answer}").and_then(|()| output.flush());
        match written {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
            written => written?,
        }
    }
}

#[derive(Deserialize)]
struct Request {
    id: Option<Value>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
}

/// A JSON-RPC error.
struct Refusal {
    code: i64,
    message: String,
    data: Option<Value>,
}

/// Which generation a request is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Generation {
    Session,
    SelfContained,
}

impl Refusal {
    fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}

fn answer(instance: &mut Instance, request: Request) -> Option<Value> {
    let id = request.id.filter(|id| id.is_string() || id.is_number())?;
    let method = request.method?;
    Some(match respond(instance, &method, request.params) {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(Refusal { code, message, data }) => {
            let mut error = json!({ "code": code, "message": message });
            if let Some(data) = data {
                error["data"] = data;
            }
            json!({ "jsonrpc": "2.0", "id": id, "error": error })
        }
    })
}

fn respond(instance: &mut Instance, method: &str, params: Value) -> Result<Value, Refusal> {
    let era = instance.spec.era;
    let unknown = || Refusal::new(METHOD_NOT_FOUND, "Method not found");
    let generation = match method {
        "initialize" => Generation::Session,
        "server/discover" if era == Era::Handshake => return Err(unknown()),
        _ => generation(era, method, &params)?,
    };
    let mut result = match method {
        "initialize" => initialize(instance, &params),
        "server/discover" => discover(instance),
        // There is nothing to keep alive where there is no session.
        "ping" if generation == Generation::Session => json!({}),
        "tools/list" => {
            let mut list = json!({ "tools": instance.spec.definitions() });
            if generation == Generation::SelfContained {
                list["ttlMs"] = json!(3_600_000);
                list["cacheScope"] = json!("public");
            }
            list
        }
        "tools/call" => call(instance, params)?,
        _ => return Err(unknown()),
    };
    if generation == Generation::SelfContained {
        result["resultType"] = json!("complete");
    }
    Ok(result)
}

/// A request is self-contained where it names its revision, or where it can be nothing else.
fn generation(era: Era, method: &str, params: &Value) -> Result<Generation, Refusal> {
    let meta = &params["_meta"];
    let version = &meta[VERSION_KEY];
    if era == Era::Handshake || (version.is_null() && method != "server/discover") {
        return Ok(Generation::Session);
    }
    let present = [version.is_string(), meta[CAPABILITIES_KEY].is_object()];
    for (key, present) in [VERSION_KEY, CAPABILITIES_KEY].into_iter().zip(present) {
        if !present {
            return Err(Refusal::new(INVALID_PARAMS, format!("Request _meta lacks {key}")));
        }
    }
    if *version == DISCOVER_VERSION {
        return Ok(Generation::SelfContained);
    }
    Err(Refusal {
        code: UNSUPPORTED_PROTOCOL_VERSION,
        message: "Unsupported protocol version".to_owned(),
        data: Some(json!({ "requested": version, "supported": supported_versions() })),
    })
}

fn supported_versions() -> Vec<&'static str> {
    HANDSHAKE_VERSIONS.into_iter().chain([DISCOVER_VERSION]).collect()
}

fn initialize(instance: &Instance, params: &Value) -> Value {
    let requested = params["protocolVersion"].as_str().unwrap_or_default();
    let [.., newest] = HANDSHAKE_VERSIONS;
    let known = HANDSHAKE_VERSIONS.contains(&requested);
    json!({
        "protocolVersion": if known { requested } else { newest },
        "capabilities": { "tools": { "listChanged": false } },
        "serverInfo": server_info(instance),
        "instructions": instructions(instance),
    })
}

fn discover(instance: &Instance) -> Value {
    json!({
        "supportedVersions": supported_versions(),
        "capabilities": { "tools": {} },
        "instructions": instructions(instance),
        "ttlMs": 3_600_000,
        "cacheScope": "public",
        "_meta": { SERVER_INFO_KEY: server_info(instance) },
    })
}

fn server_info(instance: &Instance) -> Value {
    json!({ "name": instance.spec.name, "version": instance.spec.version })
}

/// A model reckons with today's date; the demo has its own.
fn instructions(instance: &Instance) -> String {
    format!("{} Invented data; its present is {NOW}.", instance.spec.description)
}

fn call(instance: &mut Instance, mut params: Value) -> Result<Value, Refusal> {
    let name = params["name"].as_str().unwrap_or_default().to_owned();
    let arguments = params.get_mut("arguments").map(Value::take).unwrap_or_default();
    let typed = match instance.spec.tool(&name) {
        Ok(tool) => tool.is_typed(),
        Err(error) => return Err(Refusal::new(INVALID_PARAMS, error.to_string())),
    };
    Ok(match instance.call(&name, arguments) {
        Ok(value) => {
            let content = json!([{ "type": "text", "text": value.to_string() }]);
            let mut result = json!({ "content": content, "isError": false });
            if typed {
                result["structuredContent"] = structured(value);
            }
            result
        }
        Err(error) => {
            json!({ "content": [{ "type": "text", "text": error.to_string() }], "isError": true })
        }
    })
}
