//! The servers of a client's file, as entries of `toolgate.json`.

use std::{
    env,
    fs::{self, File},
    io::Read as _,
    path::{Path, PathBuf},
};

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
    /// The keys of it that are not taken over.
    pub left: Vec<String>,
}

/// By what toolgate is recognised among servers.
#[derive(Debug, Clone)]
pub struct OwnProgram {
    /// Its file.
    pub program: PathBuf,
    /// The ports at which it may listen on this machine.
    pub ports: Vec<u16>,
}

/// The keys whose meaning an entry has already, and those that only say something to people.
const READ: &str = "\
    type transport command cmd args env environment envs env_keys cwd envFile httpUrl url serverUrl uri headers \
    http_headers env_http_headers bearer_token_env_var bearer_token_env enabled disabled isActive source tools \
    available_tools scopes oauthScopes auth name display_name displayName icon iconPath gallery id title tags \
    bundled version registryUrl metadata";

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

/// The servers of a file, in order; none where a key leads to nothing. `folder` is that of the file, and
/// `project` the folder of a project that it belongs to.
pub fn imported(
    client: &Client,
    text: &str,
    format: Format,
    container: &[String],
    folder: &Path,
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
    let defaults = defaults(&root);
    let named = |key: &str| {
        let names = root.get("mcp").filter(|_| is_gemini).and_then(|mcp| mcp.get(key)?.as_array());
        names.filter(|names| !names.is_empty())
    };
    let is_left_out = |name: &str| {
        named("excluded").is_some_and(|names| names.iter().any(|it| it == name))
            || named("allowed").is_some_and(|names| !names.iter().any(|it| it == name))
    };
    let servers = object.iter().filter_map(|(name, raw)| {
        let raw = raw.as_object()?;
        let is_off = |key: &str, value: bool| raw.get(key) == Some(&Value::Bool(value));
        let enabled = !(is_off("enabled", false) || is_off("disabled", true) || is_left_out(name));
        let style = match client.shape {
            Shape::List => ReferenceStyle::Braces,
            _ if client.id == "crush" => ReferenceStyle::Shell,
            _ => ReferenceStyle::Plain,
        };
        let mut entry = entry(raw, is_gemini)?;
        let left = left(raw, &entry);
        let places = ReferencePlaces { style, folder, project, defaults: &defaults };
        entry.values_mut().for_each(|value| places.rewrite(value));
        if let Some(Value::String(path)) = entry.get_mut("envFile")
            && is_relative(path)
        {
            *path = project.unwrap_or(folder).join(&*path).display().to_string();
        }
        Some(ImportedServer { name: name.clone(), entry, enabled, left })
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
    read_tools(raw, &mut entry);
    read_login(raw, &mut entry);
    Some(entry)
}

/// The only tools that the client uses: Copilot has them under `tools`, with `*` for all, and Goose, where none
/// are all, under `available_tools`.
fn read_tools(raw: &Map<String, Value>, entry: &mut Map<String, Value>) {
    let list = |key: &str| raw.get(key).and_then(Value::as_array);
    let copilot = list("tools").filter(|tools| !tools.iter().any(|it| it == "*"));
    let goose = list("available_tools").filter(|tools| !tools.is_empty());
    if let Some(tools) = copilot.or(goose) {
        entry.entry("includeTools").or_insert_with(|| tools.clone().into());
    }
}

/// How to log in, in the words of clients: Codex has `scopes` beside the URL, Cursor an `auth` and opencode one
/// text of scopes.
fn read_login(raw: &Map<String, Value>, entry: &mut Map<String, Value>) {
    let mut login = match entry.get("oauth") {
        Some(Value::Object(login)) => login.clone(),
        Some(_) => return,
        None => Map::new(),
    };
    let auth = raw.get("auth").and_then(Value::as_object);
    let of_auth = |key: &str| auth.and_then(|auth| auth.get(key)).cloned();
    let scope = login.remove("scope");
    for (key, value) in [
        ("clientId", of_auth("CLIENT_ID")),
        ("clientSecret", of_auth("CLIENT_SECRET")),
        ("scopes", of_auth("scopes").or(scope)),
        ("scopes", raw.get("scopes").or(raw.get("oauthScopes")).cloned()),
    ] {
        if let Some(value) = value {
            login.entry(key).or_insert(value);
        }
    }
    if !login.is_empty() && entry.contains_key("url") {
        entry.insert("oauth".to_owned(), login.into());
    }
}

/// The keys that say something, and are not taken over.
fn left(raw: &Map<String, Value>, entry: &Map<String, Value>) -> Vec<String> {
    let is_empty = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    let is_read = |key: &str, value: &Value| match key {
        // Codex has approvals of single tools there.
        "tools" => value.is_array(),
        "auth" => value.as_object().is_some_and(|auth| {
            auth.keys().all(|key| ["CLIENT_ID", "CLIENT_SECRET", "scopes"].contains(&key.as_str()))
        }),
        "source" => value == "custom",
        key => READ.split_whitespace().any(|read| read == key) || entry.contains_key(key),
    };
    let left = raw.iter().filter(|(key, value)| !is_empty(value) && !is_read(key, value));
    left.map(|(key, _)| key.clone()).collect()
}

/// The defaults of the inputs of VS Code that are not secret, by their references.
fn defaults(root: &Map<String, Value>) -> Vec<(String, String)> {
    let inputs = root.get("inputs").and_then(Value::as_array).into_iter().flatten();
    let default = |input: &Value| {
        let (id, default) = (input.get("id")?.as_str()?, input.get("default")?.as_str()?);
        let is_secret = input.get("password") == Some(&Value::Bool(true));
        (!is_secret).then(|| (format!("${{input:{id}}}"), default.to_owned()))
    };
    inputs.filter_map(default).collect()
}

/// Where the references of a file lead.
struct ReferencePlaces<'a> {
    style: ReferenceStyle,
    folder: &'a Path,
    project: Option<&'a Path>,
    defaults: &'a [(String, String)],
}

impl ReferencePlaces<'_> {
    /// Writes the references of a client as `toolgate.json` has them.
    fn rewrite(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                let mut written = in_references(text, self.style).into_owned();
                for (reference, default) in self.defaults {
                    written = written.replace(reference, default);
                }
                written = written.replace("${input:", "${keychain:");
                if let Some(folder) = self.project.and_then(Path::to_str) {
                    written = written.replace("${workspaceFolder}", folder);
                }
                *text = self.with_whole_paths(&written);
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.rewrite(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.rewrite(field)),
            _ => {}
        }
    }

    /// The path of `${file:…}` starts at the folder of the file that it is in, which is another one now.
    fn with_whole_paths(&self, text: &str) -> String {
        const MARK: &str = "${file:";
        let mut parts = text.split(MARK);
        let mut whole = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            whole.push_str(MARK);
            if is_relative(part) && !part.starts_with('}') {
                let part = part.strip_prefix("./").unwrap_or(part);
                whole.push_str(&self.folder.join(part).display().to_string());
            } else {
                whole.push_str(part);
            }
        }
        whole
    }
}

/// Whether a path starts at a folder that it does not name.
fn is_relative(path: &str) -> bool {
    !Path::new(path).is_absolute() && !path.starts_with(['~', '$', '\\'])
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

/// Whether an entry starts toolgate, or contacts it. Nothing is run to find out.
pub fn is_toolgate(entry: &Map<String, Value>, name: &str, own: &OwnProgram) -> bool {
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    let args = entry.get("args").and_then(Value::as_array).into_iter().flatten();
    let args: Vec<&str> = args.filter_map(Value::as_str).collect();
    if let Some(command) = text("command") {
        let words = std::iter::once(command).chain(args.iter().copied());
        if says_serve(words.flat_map(str::split_whitespace)) {
            return true;
        }
        let program = found(command, text("cwd"));
        let is_shell = ["sh", "bash", "zsh", "dash", "fish"]
            .contains(&command.rsplit('/').next().unwrap_or_default());
        let scripts = args.iter().filter(|arg| is_shell && arg.contains('/'));
        let scripts = scripts.filter_map(|arg| found(arg, text("cwd")));
        return program.iter().any(|program| is_same_file(program, &own.program))
            || program.into_iter().chain(scripts).any(|file| is_script(&file));
    }
    let Some(url) = text("url") else { return false };
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (host, port) = authority.rsplit_once(':').unwrap_or((authority, ""));
    let is_here = ["127.0.0.1", "localhost", "[::1]", "0.0.0.0"].contains(&host);
    let is_port = port.parse().is_ok_and(|port: u16| own.ports.contains(&port));
    is_here && path.starts_with("/mcp") && (is_port || name == "toolgate")
}

/// Whether words have `toolgate`, and `serve` after it.
fn says_serve<'w>(words: impl Iterator<Item = &'w str>) -> bool {
    let mut words = words.map(|word| word.trim_matches(['"', '\'', ';', '`', '(', ')']));
    let is_named = |word: &str| {
        let file = word.rsplit(['/', '\\']).next().unwrap_or_default();
        let file = file.split('@').next().unwrap_or_default();
        matches!(file, "toolgate" | "toolgate.exe" | "toolgate.cmd")
    };
    words.any(is_named) && words.any(|word| word == "serve")
}

/// The file of a program, with its links followed.
fn found(command: &str, folder: Option<&str>) -> Option<PathBuf> {
    let written = Path::new(command);
    let home = || env::var_os("HOME").map(PathBuf::from);
    if let Some(rest) = command.strip_prefix("~/") {
        return home()?.join(rest).canonicalize().ok();
    }
    if written.components().nth(1).is_some() {
        let there = folder.and_then(|folder| Path::new(folder).join(written).canonicalize().ok());
        return there.or_else(|| written.canonicalize().ok());
    }
    let folders = env::var_os("PATH").unwrap_or_default();
    let mut files = env::split_paths(&folders).map(|folder| folder.join(written));
    files.find(|file| file.is_file())?.canonicalize().ok()
}

/// Whether two paths are one file, also by another hard link.
fn is_same_file(one: &Path, other: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let id = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
        if id(one).is_some_and(|own| id(other) == Some(own)) {
            return true;
        }
    }
    fs::canonicalize(one).is_ok_and(|one| fs::canonicalize(other).is_ok_and(|other| one == other))
}

/// Whether a file is a small script that starts toolgate.
fn is_script(path: &Path) -> bool {
    const MOST: u64 = 64 * 1024;
    let is_small = fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= MOST);
    let mut text = String::new();
    is_small
        && File::open(path).is_ok_and(|file| file.take(MOST).read_to_string(&mut text).is_ok())
        && text.starts_with("#!")
        && text.contains("toolgate")
        && text.contains("serve")
}
