//! The servers of a client's file, as entries of `toolgate.json`.

use std::path::Path;

use serde_json::{Map, Value, json};
use toolgate_config::{ConfigError, Format, ReferenceStyle, as_written, in_references};

use crate::table::{Client, Shape};

/// A server of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedServer {
    /// Its name there.
    pub name: String,
    /// Its entry in `toolgate.json`.
    pub entry: Map<String, Value>,
    /// Whether the client uses it.
    pub enabled: bool,
}

/// What a server is: two entries with the same identity are the same server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServerIdentity {
    /// A program with its arguments.
    Program(Vec<String>),
    /// A URL.
    Url(String),
}

/// The keys that are the same in `toolgate.json`.
const KEPT: [&str; 15] = [
    "timeout",
    "startup_timeout_sec",
    "startup_timeout_ms",
    "tool_timeout_sec",
    "toolTimeoutMs",
    "requestTimeoutMs",
    "enabled_tools",
    "disabled_tools",
    "disabledTools",
    "includeTools",
    "excludeTools",
    "oauth",
    "inheritEnv",
    "env_vars",
    "description",
];

/// The servers of a file, in order; none where a key leads to nothing. `project` is the folder of a file that
/// belongs to a project.
pub fn imported(
    client: &Client,
    text: &str,
    format: Format,
    container: &[String],
    project: Option<&Path>,
) -> Result<Vec<ImportedServer>, ConfigError> {
    let root = as_written(text, format, "")?;
    let mut object = &root;
    for key in container {
        match object.get(key) {
            Some(Value::Object(inner)) => object = inner,
            _ => return Ok(Vec::new()),
        }
    }
    let is_gemini = client.id == "gemini" || client.id == "qwen";
    let servers = object.iter().filter_map(|(name, raw)| {
        let raw = raw.as_object()?;
        let is_off = |key: &str, value: bool| raw.get(key) == Some(&Value::Bool(value));
        let enabled = !(is_off("enabled", false) || is_off("disabled", true));
        let style = match client.shape {
            Shape::List => ReferenceStyle::Braces,
            _ if client.id == "crush" => ReferenceStyle::Shell,
            _ => ReferenceStyle::Plain,
        };
        let mut entry = entry(raw, is_gemini)?;
        entry.values_mut().for_each(|value| references(value, style, project));
        Some(ImportedServer { name: name.clone(), entry, enabled })
    });
    Ok(servers.collect())
}

/// The entry in `toolgate.json`; none for something that is not a server, such as a built-in extension.
fn entry(raw: &Map<String, Value>, is_gemini: bool) -> Option<Map<String, Value>> {
    let mut entry = Map::new();
    let first = |keys: &[&str]| {
        keys.iter().find_map(|key| raw.get(*key)).filter(|value| !value.is_null()).cloned()
    };
    let kind =
        first(&["type", "transport"]).and_then(|kind| kind.as_str().map(str::to_ascii_lowercase));
    match (first(&["command", "cmd"]), first(&["httpUrl", "url", "serverUrl", "uri"])) {
        (Some(command), _) => {
            let mut args: Vec<Value> = Vec::new();
            let mut env = first(&["env", "environment", "envs"]);
            let program = match command {
                Value::Array(words) => {
                    let mut words = words.into_iter();
                    let program = words.next()?;
                    args.extend(words);
                    program
                }
                Value::Object(zed) => {
                    args.extend(
                        zed.get("args").and_then(Value::as_array).cloned().unwrap_or_default(),
                    );
                    env = env.or_else(|| zed.get("env").cloned());
                    zed.get("path")?.clone()
                }
                program => program,
            };
            if let Some(Value::Array(more)) = first(&["args"]) {
                args.extend(more);
            }
            entry.insert("command".to_owned(), program);
            if !args.is_empty() {
                entry.insert("args".to_owned(), Value::Array(args));
            }
            let mut env = match env {
                Some(Value::Object(env)) => env,
                _ => Map::new(),
            };
            // Goose keeps these in its own keychain, which nobody else reads.
            for name in raw
                .get("env_keys")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
            {
                env.entry(name.to_owned())
                    .or_insert_with(|| json!(format!("${{keychain:{name}}}")));
            }
            if !env.is_empty() {
                entry.insert("env".to_owned(), Value::Object(env));
            }
            for key in ["cwd", "envFile"] {
                if let Some(value) = first(&[key]) {
                    entry.insert(key.to_owned(), value);
                }
            }
        }
        (None, Some(url)) => {
            let is_sse = kind.as_deref() == Some("sse")
                || (is_gemini && kind.is_none() && raw.get("httpUrl").is_none());
            if is_sse {
                entry.insert("type".to_owned(), json!("sse"));
            }
            entry.insert("url".to_owned(), url);
            let mut headers = Map::new();
            for key in ["headers", "http_headers"] {
                if let Some(Value::Object(more)) = raw.get(key) {
                    headers.extend(more.clone());
                }
            }
            for (name, variable) in
                raw.get("env_http_headers").and_then(Value::as_object).into_iter().flatten()
            {
                if let Some(variable) = variable.as_str() {
                    headers.insert(name.clone(), json!(format!("${{{variable}}}")));
                }
            }
            let token = first(&["bearer_token_env_var", "bearer_token_env"]);
            if let Some(variable) = token.as_ref().and_then(Value::as_str) {
                headers
                    .entry("Authorization")
                    .or_insert_with(|| json!(format!("Bearer ${{{variable}}}")));
            }
            if !headers.is_empty() {
                entry.insert("headers".to_owned(), Value::Object(headers));
            }
        }
        (None, None) => return None,
    }
    for key in KEPT {
        if let Some(value) = raw.get(key).filter(|value| !value.is_null()) {
            entry.insert(key.to_owned(), value.clone());
        }
    }
    Some(entry)
}

/// Writes the references of a client as `toolgate.json` has them.
fn references(value: &mut Value, style: ReferenceStyle, project: Option<&Path>) {
    match value {
        Value::String(text) => {
            let mut written = in_references(text, style).replace("${input:", "${keychain:");
            if let Some(folder) = project.and_then(Path::to_str) {
                written = written.replace("${workspaceFolder}", folder);
            }
            *text = written;
        }
        Value::Array(items) => items.iter_mut().for_each(|item| references(item, style, project)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| references(field, style, project));
        }
        _ => {}
    }
}

/// What the server of an entry is. `resolve` gives the value of a reference, where it is known.
pub fn identity(
    entry: &Map<String, Value>,
    resolve: &dyn Fn(&str) -> String,
) -> Option<ServerIdentity> {
    if let Some(Value::String(command)) = entry.get("command") {
        let args = entry
            .get("args")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        let words = std::iter::once(command.as_str()).chain(args);
        return Some(ServerIdentity::Program(words.map(resolve).collect()));
    }
    let url = entry.get("url").and_then(Value::as_str)?;
    Some(ServerIdentity::Url(resolve(url).trim_end_matches('/').to_owned()))
}

/// Whether an entry starts toolgate, or contacts it.
pub fn is_toolgate(entry: &Map<String, Value>, name: &str, own_program: &Path) -> bool {
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    let has_serve = entry
        .get("args")
        .and_then(Value::as_array)
        .is_some_and(|args| args.iter().any(|arg| arg == "serve"));
    if let Some(command) = text("command") {
        let program = Path::new(command);
        let is_named = program.file_stem().is_some_and(|stem| stem == "toolgate");
        return has_serve && (is_named || program == own_program);
    }
    let is_here = |url: &str| {
        ["http://127.0.0.1:", "http://localhost:", "http://[::1]:"]
            .iter()
            .any(|it| url.starts_with(it))
    };
    name == "toolgate" && text("url").is_some_and(|url| is_here(url) && url.contains("/mcp"))
}
