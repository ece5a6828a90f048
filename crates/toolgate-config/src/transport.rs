//! How a server is reached, in the words of every client.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use toolgate_mcp::{HttpDialect, is_base_variable};

use crate::document::{Member, Object, Value};
use crate::env_file;
use crate::expand::{ReferenceStyle, is_variable_name};
use crate::keys;
use crate::position::printable;
use crate::scope::{Location, Scope};
use crate::section::Section as _;
use crate::server::ServerSettings;
use crate::stored::StoredReference;
use crate::tool_search::web_url;
use crate::{ProblemSeverity, Secret};

/// How to reach a server.
///
/// `Debug` shows neither arguments nor the URL's path and query, which may hold credentials that
/// came from variables.
#[derive(Clone, PartialEq, Eq)]
pub enum Transport {
    /// A process that speaks MCP on its standard input and output.
    Stdio {
        /// The program, a path or a name to look up in `PATH`.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables to set for it, beside those that every server gets.
        env: BTreeMap<String, Secret>,
        /// The folder to start it in.
        cwd: Option<PathBuf>,
    },
    /// An endpoint.
    Http {
        /// A valid `http` or `https` URL with a host.
        url: String,
        /// Headers to send with every request; names are valid and values fit for a header.
        headers: BTreeMap<String, Secret>,
        /// What it speaks.
        dialect: HttpDialect,
    },
}

impl fmt::Debug for Transport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio { command, args, env, cwd } => formatter
                .debug_struct("Stdio")
                .field("command", command)
                .field("args", &format_args!("[{} arguments]", args.len()))
                .field("env", env)
                .field("cwd", cwd)
                .finish(),
            Self::Http { url, headers, dialect } => {
                let parsed = url::Url::parse(url).ok();
                let host = parsed.as_ref().and_then(url::Url::host_str).unwrap_or("?");
                formatter
                    .debug_struct("Http")
                    .field("host", &host)
                    .field("headers", headers)
                    .field("dialect", dialect)
                    .finish_non_exhaustive()
            }
        }
    }
}

/// The keys that hold a URL; where there are several, the first counts, as in Gemini CLI.
const URL_KEYS: [&str; 4] = ["httpUrl", "url", "serverUrl", "uri"];
/// The keys that hold a program; `cmd` is Goose's.
const COMMAND_KEYS: [&str; 2] = ["command", "cmd"];
/// The keys that hold variables; `environment` is opencode's and `envs` Goose's.
const ENV_KEYS: [&str; 3] = ["env", "environment", "envs"];

/// All keys that say how a server is reached.
pub(crate) const KEYS: [&str; 6] = ["command", "cmd", "httpUrl", "url", "serverUrl", "uri"];

/// The meaning of `type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeclaredType {
    Stdio,
    Http,
    Sse,
}

/// Reads the transport. None, or an error in the scope, means that there is none to use. `at` is
/// the location of the server's name, and `env_file` the path of its `envFile`.
pub(crate) fn read(
    scope: &mut Scope<'_, '_>,
    at: &Location,
    is_gemini: bool,
    env_file: Option<&str>,
) -> Option<Transport> {
    let object = scope.object;
    let declared = declared_type(scope)?;
    let url = URL_KEYS.iter().find_map(|key| object.get(key));
    match (COMMAND_KEYS.iter().find_map(|key| object.get(key)), url) {
        (Some(_), Some(url)) => {
            let predicate = format!("has both a `command` and a `{}`", url.key);
            let hint = "keep the one by which the server is reached";
            scope.complain(ProblemSeverity::Error, at, &predicate, hint);
            None
        }
        (None, None) => {
            report_missing(scope, at);
            None
        }
        (Some(command), None) => match declared {
            None | Some((DeclaredType::Stdio, _)) => read_stdio(scope, command, env_file),
            Some((_, member)) => {
                contradiction(scope, member, "a `url`, but there is only a `command`")
            }
        },
        (None, Some(url)) => match declared {
            Some((DeclaredType::Stdio, member)) => contradiction(
                scope,
                member,
                &format!("a `command`, but there is only a `{}`", url.key),
            ),
            Some((DeclaredType::Sse, _)) => read_http(scope, url, HttpDialect::Sse),
            // In a file of Gemini CLI, `url` is the older transport and `httpUrl` the newer.
            None if url.key == "url" && (is_gemini || object.get("authProviderType").is_some()) => {
                read_http(scope, url, HttpDialect::Sse)
            }
            None | Some((DeclaredType::Http, _)) => read_http(scope, url, HttpDialect::Any),
        },
    }
}

/// The key that was most likely meant to be the missing `command` or `url`, and which of the two.
pub(crate) fn misspelt<'o>(object: &'o Object<'o>) -> Option<(&'o Member<'o>, &'static str)> {
    let is_missing = COMMAND_KEYS.iter().chain(&URL_KEYS).all(|key| object.get(key).is_none());
    let is_known = |key: &str| ServerSettings::KEYS.contains(&key) || keys::is_of_other_client(key);
    let mut unknown = object.members.iter().filter(|member| is_missing && !is_known(&member.key));
    unknown.find_map(|member| Some((member, keys::nearest(&member.key, &["command", "url"])?)))
}

/// What `type` says, and where; the outer none after an error.
#[expect(clippy::option_option, reason = "an error, no type and a type are three things")]
fn declared_type<'r>(scope: &mut Scope<'r, '_>) -> Option<Option<(DeclaredType, &'r Member<'r>)>> {
    let Some(member) = scope.object.get("type").or_else(|| scope.object.get("transport")) else {
        return Some(None);
    };
    let name = match &member.node.value {
        Value::String(name) => name,
        _ => "",
    };
    let declared = match name.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
        "stdio" | "local" | "command" => DeclaredType::Stdio,
        "http" | "streamablehttp" | "remote" => DeclaredType::Http,
        "sse" => DeclaredType::Sse,
        _ => {
            let hint = "leave it out: a `command` means stdio and a `url` means http";
            scope.error(member, "must be `stdio`, `http` or `sse`", hint);
            return None;
        }
    };
    Some(Some((declared, member)))
}

fn contradiction(scope: &mut Scope<'_, '_>, member: &Member<'_>, what: &str) -> Option<Transport> {
    let hint = format!("remove `{}`, or correct it", member.key);
    scope.error(member, &format!("asks for {what}"), &hint);
    None
}

fn report_missing(scope: &mut Scope<'_, '_>, at: &Location) {
    let error = ProblemSeverity::Error;
    if let Some((member, meant)) = misspelt(scope.object) {
        let predicate = format!("is not a known key, and the server has no `{meant}`");
        let hint = format!("rename `{}` to `{meant}`", printable(&member.key));
        scope.complain(error, &scope.at.key(member), &predicate, &hint);
        return;
    }
    let is_extension =
        scope.object.get("settings").is_some() || scope.object.get("source").is_some();
    let hint = if is_extension {
        "the server comes from an extension of the editor; write the `command` that it runs"
    } else {
        "add the `command` that starts the server, or the `url` where it runs"
    };
    scope.complain(error, at, "has neither a `command` nor a `url`", hint);
}

/// Reads a process from its `command` and the keys beside it.
fn read_stdio(
    scope: &mut Scope<'_, '_>,
    member: &Member<'_>,
    env_file: Option<&str>,
) -> Option<Transport> {
    let mut env = scope.of_start(|scope| match &member.node.value {
        Value::Object(inner) => scope.within(inner, scope.at.value(member), variables),
        _ => variables(scope),
    });
    if let Some(path) = env_file {
        add_env_file(scope, path, &mut env);
    }
    add_inherited(scope, &mut env);
    // Where a server has a variable itself, its arguments mean that one.
    scope.file.expander.of_server.clone_from(&env);
    let program = read_program(scope, member);
    scope.file.expander.of_server.clear();
    let (command, args, cwd) = program?;
    warn_of_missing_variables(scope, &command, &args, &env);
    // A whole command line in `command` is a frequent mistake; it would be looked up as one program.
    if args.is_empty() && is_command_line(&command) {
        let hint = "split into args: write what follows the program as a list under `args`";
        scope.warn(member, "has spaces, but is taken as the name of one program", hint);
    }
    Some(Transport::Stdio { command, args, env, cwd })
}

/// Whether a program has arguments in its name.
pub fn is_command_line(command: &str) -> bool {
    let first_word = command.split_whitespace().next().unwrap_or(command);
    first_word != command && !first_word.contains(['/', '\\'])
}

/// The program, its arguments and its folder.
fn read_program(
    scope: &mut Scope<'_, '_>,
    member: &Member<'_>,
) -> Option<(String, Vec<String>, Option<PathBuf>)> {
    let cwd = scope.object.get("cwd").and_then(|member| scope.text(member)).map(PathBuf::from);
    let (command, args) = match &member.node.value {
        // Zed keeps the program, its arguments and its variables one level down.
        Value::Object(inner) => scope.within(inner, scope.at.value(member), |scope| {
            scope.require("path", "write the program as a string: `\"command\": \"…\"`");
            let command = scope.object.get("path").and_then(|program| scope.text(program));
            (command, arguments(scope))
        }),
        // opencode has one list.
        Value::Array(_) => {
            let (command, args) = command_list(scope, member)?;
            (Some(command), args)
        }
        _ => (scope.text(member), arguments(scope)),
    };
    let command = command?;
    let written = match &member.node.value {
        Value::String(text) => Some(&**text),
        Value::Array(words) => words.first().and_then(|word| match &word.value {
            Value::String(text) => Some(&**text),
            _ => None,
        }),
        _ => None,
    };
    // The name of a program is in messages and in the list of processes.
    if written.is_some_and(|text| text.contains("${keychain:") || text.contains("${input:")) {
        let hint = "write the value under `env`, or as one of `args`";
        scope.error(member, "has a secret in the name of the program", hint);
        return None;
    }
    Some((command, args, cwd))
}

/// The program and its arguments in one list.
fn command_list(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<(String, Vec<String>)> {
    let words = scope.strings(member)?;
    let mut words: Vec<String> = words
        .into_iter()
        .enumerate()
        .map(|(index, (text, at))| match index {
            0 => scope.expand(&at, text),
            _ => scope.of_start(|scope| scope.expand(&at, text)),
        })
        .collect::<Option<_>>()?;
    words.extend(arguments(scope));
    if words.first().is_none_or(|program| program.trim().is_empty()) {
        scope.error(member, "is empty", "write the program first, then its arguments");
        return None;
    }
    Some((words.remove(0), words))
}

/// The variables of the process.
fn variables(scope: &mut Scope<'_, '_>) -> BTreeMap<String, Secret> {
    let mut all = BTreeMap::new();
    for key in ENV_KEYS {
        for (name, value) in values(scope, key, ValueKind::Variable) {
            all.entry(name).or_insert(value);
        }
    }
    all
}

fn arguments(scope: &mut Scope<'_, '_>) -> Vec<String> {
    let strings = scope.object.get("args").and_then(|member| scope.strings(member));
    let strings = strings.into_iter().flatten();
    scope.of_start(|scope| strings.filter_map(|(text, at)| scope.expand(&at, text)).collect())
}

/// Warns of variables that a shell command uses and that the server does not get.
fn warn_of_missing_variables(
    scope: &mut Scope<'_, '_>,
    command: &str,
    args: &[String],
    env: &BTreeMap<String, Secret>,
) {
    const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "fish"];
    let program = command.rsplit(['/', '\\']).next().unwrap_or(command);
    let Some(member) = scope.object.get("args").filter(|_| SHELLS.contains(&program)) else {
        return;
    };
    let mut missing = BTreeSet::new();
    for text in args {
        for after in text.split('$').skip(1) {
            let after = after.strip_prefix('{').unwrap_or(after);
            let is_part = |it: char| it.is_ascii_alphanumeric() || it == '_';
            let name = &after[..after.find(|it| !is_part(it)).unwrap_or(after.len())];
            let is_known = is_base_variable(name)
                || env.contains_key(name)
                || args.iter().any(|text| text.contains(&format!("{name}=")));
            if is_variable_name(name) && !is_known && scope.file.expander.variable(name).is_ok() {
                missing.insert(name);
            }
        }
    }
    for name in missing {
        let predicate = format!("use `${name}`, a variable that the server does not get");
        let hint = format!("add `\"inheritEnv\": [\"{name}\"]` to the server");
        scope.warn(member, &predicate, &hint);
    }
}

/// Adds the variables of the env file. Those of `env` stay.
fn add_env_file(scope: &mut Scope<'_, '_>, path: &str, env: &mut BTreeMap<String, Secret>) {
    let Some(member) = scope.object.get("envFile") else { return };
    let text = match (scope.file.env_files)(path) {
        Ok(text) => text,
        Err(error) => return scope.error(member, &error.to_string(), error.hint()),
    };
    let variables = match env_file::read(&text) {
        Ok(variables) => variables,
        Err(error) => {
            let predicate = format!("names a file that is no env file: its {error}");
            let hint = "write a line as NAME=value or NAME=\"value\"; a comment begins with #";
            return scope.error(member, &predicate, hint);
        }
    };
    let at = scope.at.value(member);
    for (name, value) in variables {
        let value = scope.file.expander.finish(value);
        let Some(value) = scope.expanded(&at, value, "") else { return };
        env.entry(name).or_insert_with(|| Secret::new(value));
    }
}

/// Adds our own variables that a server is to get: those of `inheritEnv`, and those that Codex names.
/// One that is unset is left out.
fn add_inherited(scope: &mut Scope<'_, '_>, env: &mut BTreeMap<String, Secret>) {
    let named = scope.object.get("inheritEnv").and_then(|member| scope.strings(member));
    for (name, at) in named.into_iter().flatten() {
        if !is_variable_name(name) {
            let predicate = "is not the name of a variable; patterns are not supported";
            let hint = "name each variable: letters, digits and `_`";
            scope.complain(ProblemSeverity::Error, &at, predicate, hint);
        } else if let Ok(value) = scope.file.expander.variable(name) {
            env.entry(name.to_owned()).or_insert_with(|| Secret::new(value));
        }
    }
    add_kept(scope, env);
    let Some(Member { node, .. }) = scope.object.get("env_vars") else { return };
    let Value::Array(elements) = &node.value else { return };
    for element in elements {
        let name = match &element.value {
            Value::Object(object) => object.get("name").map(|member| &member.node.value),
            other => Some(other),
        };
        if let Some(Value::String(name)) = name
            && is_variable_name(name)
            && let Ok(value) = scope.file.expander.variable(name)
        {
            env.entry(name.to_string()).or_insert_with(|| Secret::new(value));
        }
    }
}

/// Adds the variables that Goose keeps in its own keychain: from our variables, else from our stored values.
fn add_kept(scope: &mut Scope<'_, '_>, env: &mut BTreeMap<String, Secret>) {
    let named = scope.object.get("env_keys").and_then(|member| scope.strings(member));
    for (name, at) in named.into_iter().flatten() {
        if env.contains_key(name) || !is_variable_name(name) {
            continue;
        }
        let expander = &mut scope.file.expander;
        let kept = expander.variable(name);
        let kept = kept.or_else(|_| expander.stored(StoredReference::Keychain(name)));
        if let Ok(value) = kept {
            env.insert(name.to_owned(), Secret::new(value));
        } else {
            let predicate = format!("names `{name}`, a value that the client keeps itself");
            let hint = format!("store it here too: `toolgate secret set {name}`");
            scope.complain(ProblemSeverity::Warning, &at, &predicate, &hint);
        }
    }
}

/// Reads an endpoint from the key with its URL and the keys beside it.
fn read_http(
    scope: &mut Scope<'_, '_>,
    member: &Member<'_>,
    dialect: HttpDialect,
) -> Option<Transport> {
    if let Some(member) = scope.object.get("envFile") {
        let hint = "remove it; `headers` may use `${NAME}` of toolgate's own variables";
        scope.warn(member, "is only for servers with a `command`; it is ignored", hint);
    }
    let headers = scope.of_start(all_headers);
    let url = web_url(scope, member, "write the whole URL, such as `https://example.com/mcp`")?;
    Some(Transport::Http { url, headers, dialect })
}

/// The headers as they are written, and those whose values Codex takes from variables it names.
fn all_headers(scope: &mut Scope<'_, '_>) -> BTreeMap<String, Secret> {
    let mut all = headers(scope);
    all.append(&mut values(scope, "http_headers", ValueKind::Header));
    all.append(&mut values(scope, "env_http_headers", ValueKind::HeaderFromVariable));
    let token_keys = ["bearer_token_env_var", "bearer_token_env"];
    let Some(member) = token_keys.iter().find_map(|key| scope.object.get(key)) else { return all };
    let at = scope.at.value(member);
    let Value::String(name) = &member.node.value else {
        let expected = "the name of an environment variable";
        scope.mismatch(ProblemSeverity::Error, &at, &member.node.value, expected, "");
        return all;
    };
    let token = scope.variable(&at, name);
    let is_set = all.keys().any(|header| header.eq_ignore_ascii_case("authorization"));
    if let Some(token) = token.filter(|_| !is_set) {
        let value = format!("Bearer {token}");
        if is_header_value(scope, &at, &value) {
            all.insert("Authorization".to_owned(), Secret::new(value));
        }
    }
    all
}

/// Reads the `headers` of requests over HTTP.
pub(crate) fn headers(scope: &mut Scope<'_, '_>) -> BTreeMap<String, Secret> {
    values(scope, "headers", ValueKind::Header)
}

/// What the names and values of an object are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueKind {
    /// Environment variables of a process.
    Variable,
    /// Headers of a request.
    Header,
    /// Headers of a request, whose values are the names of our own environment variables.
    HeaderFromVariable,
}

/// Reads an object of names and values; a mistake is an error in the scope. Numbers and booleans are
/// taken as they are written, as clients do; a `null` is as good as no entry.
fn values(scope: &mut Scope<'_, '_>, key: &str, kind: ValueKind) -> BTreeMap<String, Secret> {
    let Some(member) = scope.object.get(key) else { return BTreeMap::new() };
    let hint = format!("write `\"{key}\": {{ \"NAME\": \"value\" }}`");
    let values = scope.nested(member, &hint, |scope| {
        let object = scope.object;
        let values = object.members.iter().filter_map(|member| {
            let value = value(scope, member, kind)?;
            let is_valid = is_name(scope, member, kind);
            is_valid.then(|| (member.key.to_string(), Secret::new(value)))
        });
        values.collect()
    });
    values.unwrap_or_default()
}

fn value(scope: &mut Scope<'_, '_>, member: &Member<'_>, kind: ValueKind) -> Option<String> {
    let at = scope.at.value(member);
    let value = match (&member.node.value, kind) {
        (Value::Null, _) => return None,
        (Value::String(name), ValueKind::HeaderFromVariable) => scope.variable(&at, name)?,
        (Value::String(text), _) => {
            // A shell's `$NAME` is not expanded, since a password may begin with a `$` too; for the
            // same reason the message does not repeat it.
            let is_read = scope.file.expander.style == ReferenceStyle::Shell;
            if !is_read && text.strip_prefix('$').is_some_and(is_variable_name) {
                let predicate =
                    "looks like a variable of a shell, but is passed on as it is written";
                let hint = "write `${NAME}` for the value of an environment variable";
                scope.warn(member, predicate, hint);
            }
            scope.expand(&at, text)?
        }
        (Value::Boolean(value), ValueKind::Variable | ValueKind::Header) => value.to_string(),
        (Value::Number(number), ValueKind::Variable | ValueKind::Header) => number.to_string(),
        (other, _) => {
            scope.mismatch(ProblemSeverity::Error, &at, other, "a string", "");
            return None;
        }
    };
    let is_fit = kind == ValueKind::Variable || is_header_value(scope, &at, &value);
    is_fit.then_some(value)
}

/// Whether a header can carry a value; if not, records an error.
fn is_header_value(scope: &mut Scope<'_, '_>, at: &Location, value: &str) -> bool {
    // What a command prints is checked when it is there.
    let lines = scope.file.expander.lines.iter();
    let known = lines.fold(value.to_owned(), |known, line| {
        known.replace(&StoredReference::Command(line).to_string(), "")
    });
    let is_fit = fits_header(&known);
    if !is_fit {
        let predicate = "has a line break or another control character in its value";
        let hint = "look at the variables that it uses";
        scope.complain(ProblemSeverity::Error, at, predicate, hint);
    }
    is_fit
}

/// Whether a header can carry a text.
pub fn fits_header(text: &str) -> bool {
    !text.chars().any(|character| character.is_control() && character != '\t')
}

fn is_name(scope: &mut Scope<'_, '_>, member: &Member<'_>, kind: ValueKind) -> bool {
    let name: &Cow<'_, str> = &member.key;
    let is_token = |character: char| {
        character.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(character)
    };
    let (is_valid, what) = match kind {
        ValueKind::Variable => (!name.contains(['=', '\0']), "an environment variable"),
        _ => (name.chars().all(is_token), "a header"),
    };
    let is_valid = is_valid && !name.is_empty();
    if !is_valid {
        let predicate = format!("is not a valid name for {what}");
        scope.complain(ProblemSeverity::Error, &scope.at.key(member), &predicate, "");
    }
    is_valid
}
