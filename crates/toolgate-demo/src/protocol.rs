//! MCP over lines of JSON, without a runtime: read a request, write its response, until the input ends.

use std::io::{self, BufRead, ErrorKind, Read, Write};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::NOW;
use crate::error::DemoError;
use crate::server::Instance;

/// The revisions that begin with `initialize`, oldest first.
const HANDSHAKE_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The revision without a handshake.
const DISCOVER_VERSION: &str = "2026-07-28";
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";

const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;

/// More than any request of a client of the demo.
const MAX_LINE_BYTES: u64 = 1024 * 1024;

/// Serves a demo server over newline-delimited JSON-RPC until the input ends.
///
/// Lines that are not requests (notifications, responses, bad JSON, lines over a mebibyte) get no
/// response. A client that stops listening ends the loop as the end of the input does.
pub fn serve(name: &str, mut input: impl BufRead, mut output: impl Write) -> Result<(), DemoError> {
    let mut instance = Instance::open(name)?;
    while let Some(line) = read_line(&mut input)? {
        let Ok(request) = serde_json::from_slice::<Request>(&line) else { continue };
        let Some(response) = respond_to(&mut instance, request) else { continue };
        let written = writeln!(output, "{response}").and_then(|()| output.flush());
        match written {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
            written => written?,
        }
    }
    Ok(())
}

/// Reads the next line. Skips a line that is too long, and returns an empty one.
fn read_line(input: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    if input.take(MAX_LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.len() as u64 == MAX_LINE_BYTES && !line.ends_with(b"\n") {
        line.clear();
        input.skip_until(b'\n')?;
    }
    Ok(Some(line))
}

#[derive(Deserialize)]
struct Request {
    id: Option<Value>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
}

/// A JSON-RPC error.
struct ErrorResponse {
    code: i64,
    message: String,
    data: Option<Value>,
}

/// The protocol era of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RequestEra {
    Legacy,
    Modern,
}

impl ErrorResponse {
    fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}

fn respond_to(instance: &mut Instance, request: Request) -> Option<Value> {
    let id = request.id.filter(|id| id.is_string() || id.is_number())?;
    let method = request.method?;
    Some(match result_of(instance, &method, request.params) {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(ErrorResponse { code, message, data }) => {
            let mut error = json!({ "code": code, "message": message });
            if let Some(data) = data {
                error["data"] = data;
            }
            json!({ "jsonrpc": "2.0", "id": id, "error": error })
        }
    })
}

fn result_of(instance: &mut Instance, method: &str, params: Value) -> Result<Value, ErrorResponse> {
    let modern = instance.file.modern;
    let unknown = || ErrorResponse::new(METHOD_NOT_FOUND, "Method not found");
    let era = match method {
        "initialize" => RequestEra::Legacy,
        "server/discover" if !modern => return Err(unknown()),
        _ => era_of(modern, method, &params)?,
    };
    let mut result = match method {
        "initialize" => initialize(instance, &params),
        "server/discover" => discover(instance),
        // Without a session there is nothing to keep alive.
        "ping" if era == RequestEra::Legacy => json!({}),
        "tools/list" => {
            let mut list = json!({ "tools": instance.file.definitions });
            if era == RequestEra::Modern {
                list["ttlMs"] = json!(3_600_000);
                list["cacheScope"] = json!("public");
            }
            list
        }
        "tools/call" => call(instance, params)?,
        _ => return Err(unknown()),
    };
    if era == RequestEra::Modern {
        result["resultType"] = json!("complete");
    }
    Ok(result)
}

/// A request is modern if it names its version, or if its method exists only in that era.
fn era_of(modern: bool, method: &str, params: &Value) -> Result<RequestEra, ErrorResponse> {
    let meta = &params["_meta"];
    let version = &meta[VERSION_KEY];
    if !modern || (version.is_null() && method != "server/discover") {
        return Ok(RequestEra::Legacy);
    }
    let present = [version.is_string(), meta[CAPABILITIES_KEY].is_object()];
    for (key, present) in [VERSION_KEY, CAPABILITIES_KEY].into_iter().zip(present) {
        if !present {
            return Err(ErrorResponse::new(INVALID_PARAMS, format!("Request _meta lacks {key}")));
        }
    }
    if *version == DISCOVER_VERSION {
        return Ok(RequestEra::Modern);
    }
    Err(ErrorResponse {
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
    json!({ "name": instance.file.name, "version": instance.file.version })
}

/// Models assume today's date, so the instructions state the date of the demo.
fn instructions(instance: &Instance) -> String {
    format!("{} Invented data; its present is {NOW}.", instance.file.description)
}

fn call(instance: &mut Instance, mut params: Value) -> Result<Value, ErrorResponse> {
    let name = params["name"].as_str().unwrap_or_default().to_owned();
    let arguments = params.get_mut("arguments").map(Value::take).unwrap_or_default();
    let typed = match instance.definition(&name) {
        Ok(definition) => definition.get("outputSchema").is_some(),
        Err(error) => return Err(ErrorResponse::new(INVALID_PARAMS, error.to_string())),
    };
    Ok(match instance.call(&name, arguments) {
        Ok(value) => {
            let content = json!([{ "type": "text", "text": value.to_string() }]);
            let mut result = json!({ "content": content, "isError": false });
            if typed {
                // Structured content must be an object, so a list becomes its property `result`.
                result["structuredContent"] =
                    if value.is_object() { value } else { json!({ "result": value }) };
            }
            result
        }
        Err(error) => {
            json!({ "content": [{ "type": "text", "text": error.to_string() }], "isError": true })
        }
    })
}
