//! Finds values that are secrets, and replaces them by references.

use std::{cmp::Reverse, ops::Range};

use serde_json::{Map, Value};

/// Words in the name of a variable, a header, an option or a parameter whose value is a secret.
const NAMES: [&str; 16] = [
    "token",
    "secret",
    "pass",
    "pwd",
    "key",
    "credential",
    "auth",
    "cookie",
    "bearer",
    "dsn",
    "databaseurl",
    "webhook",
    "signature",
    "connectionstring",
    "headers",
    "jwt",
];
/// Parts of a name that say the same, if they stand alone.
const PARTS: [&str; 13] = [
    "pat", "sig", "code", "cred", "creds", "access", "pin", "license", "licence", "hook", "hooks",
    "session", "tok",
];
/// Headers whose values are no secrets. All others are kept.
const OPEN_HEADERS: [&str; 8] = [
    "accept",
    "acceptlanguage",
    "acceptencoding",
    "contenttype",
    "useragent",
    "origin",
    "referer",
    "mcpprotocolversion",
];
/// The parts of a path after which a secret stands, and those that are none.
const BEFORE_SECRETS: [&str; 10] =
    ["s", "t", "u", "token", "key", "secret", "hook", "hooks", "webhook", "webhooks"];
const PLAIN_PARTS: [&str; 8] = ["mcp", "sse", "api", "message", "messages", "v1", "v2", "v3"];
/// Values that are no secrets, whatever their names are.
const WORDS: [&str; 8] = ["true", "false", "0", "1", "yes", "no", "none", "null"];
/// Words before a secret.
const SCHEMES: [&str; 4] = ["Bearer ", "bearer ", "Basic ", "token "];
/// Beginnings of well-known tokens.
const BEGINNINGS: [&str; 21] = [
    "sk-",
    "sk_",
    "rk_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "glpat-",
    "AKIA",
    "AIza",
    "hf_",
    "npm_",
    "eyJ",
    "lin_api_",
    "ntn_",
    "sntrys_",
    "shpat_",
    "pplx-",
];
/// What ends a value within a text.
const ENDS: &[char] = &['&', ';', '#', ',', '"', '\'', '`', ' ', '\t', '\n', '\r', '\\', '}', ')'];

/// A secret within a text, and the name under which it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    range: Range<usize>,
    name: String,
}

/// The secrets within the value of this name. Everything that hides or stores secrets asks here.
pub(crate) fn secrets_in<'t>(name: &str, text: &'t str) -> Vec<&'t str> {
    found(name, text).into_iter().map(|it| &text[it.range]).collect()
}

/// A line of a text, whatever its syntax is, without secrets: for what no parser sees, such as comments.
pub(crate) fn hidden_line(line: &str, instead: &str) -> String {
    let mut line = line.to_owned();
    for Found { range, .. } in found("", &line).into_iter().rev() {
        // What is hidden already.
        if !instead.ends_with(&line[range.clone()]) {
            line.replace_range(range, instead);
        }
    }
    line
}

fn found(name: &str, text: &str) -> Vec<Found> {
    let references = references(text);
    let is_free = |range: &Range<usize>| {
        range.len() >= 3
            && !references.iter().any(|it| it.start < range.end && range.start < it.end)
            && !WORDS.contains(&text[range.clone()].to_ascii_lowercase().as_str())
    };
    let own = clean_name(name);
    // It is a port, a path or a project as often as a password.
    let is_short = name == "-p" && is_password(text);
    if is_secret_name(name) || is_short {
        let whole = after_scheme(text, 0)..text.len();
        if references.is_empty() {
            return if is_free(&whole)
                || (!whole.is_empty() && whole.len() < 3 && !WORDS.contains(&text))
            {
                vec![Found { range: whole, name: own }]
            } else {
                Vec::new()
            };
        }
    }
    let mut all = Vec::new();
    pairs(text, &mut all);
    urls(text, &mut all);
    words(text, &mut all);
    all.retain(|it| is_free(&it.range));
    if is_secret_name(name) && all.is_empty() && !text.contains("://") {
        // What stands beside references.
        let mut start = after_scheme(text, 0);
        for end in references.iter().chain([&(text.len()..text.len())]) {
            let beside = start..end.start.max(start);
            if beside.len() >= 6 && !text[beside.clone()].trim().is_empty() {
                all.push(Found { range: beside, name: own.clone() });
            }
            start = end.end;
        }
    }
    // Of secrets that overlap the one that begins first counts, and of these the longest.
    all.sort_by_key(|it| (it.range.start, Reverse(it.range.end)));
    let mut last = 0;
    all.retain(|it| {
        let is_first = it.range.start >= last;
        if is_first {
            last = it.range.end;
        }
        is_first
    });
    for it in &mut all {
        if it.name.is_empty() {
            it.name = if own.is_empty() { "argument".to_owned() } else { own.clone() };
        }
    }
    all
}

/// `NAME=VALUE`, `NAME: VALUE` and `--NAME VALUE` with a name of a secret.
fn pairs(text: &str, all: &mut Vec<Found>) {
    let is_part = |it: char| it.is_ascii_alphanumeric() || "_-.".contains(it);
    for (at, mark) in text.match_indices(['=', ':', ' ']) {
        // A name may be quoted, and a value too.
        let before = text[..at].trim_end_matches(['"', '\'', ' ']);
        let begin = before
            .rfind(|it: char| !is_part(it))
            .map_or(0, |it| it + before[it..].chars().next().map_or(1, char::len_utf8));
        let name = &before[begin..];
        let is_option = name.starts_with('-');
        let is_wanted = match mark {
            " " => is_option,
            ":" => !text[at + 1..].starts_with("//"),
            _ => true,
        };
        if !is_wanted || !is_secret_name(name) {
            continue;
        }
        let rest = &text[at + 1..];
        let opened = rest.trim_start_matches([' ', '[']);
        let quote = opened.chars().next().filter(|it| *it == '"' || *it == '\'');
        let value = &opened[quote.map_or(0, char::len_utf8)..];
        let start = after_scheme(text, text.len() - value.len());
        if mark == " "
            && (text[start..].starts_with('-')
                || quote.is_none() && value.contains("://") && !value.contains('@'))
        {
            continue;
        }
        let end = match quote {
            Some(quote) => text[start..].find(quote),
            // A pair that is the whole text has a value to its end.
            None if mark != " " && begin == 0 && !text[start..].contains([';', '\n']) => None,
            None => text[start..].find(ENDS),
        };
        let end = end.map_or(text.len(), |it| start + it);
        all.push(Found { range: start..end, name: clean_name(name) });
    }
    for scheme in ["Bearer ", "bearer "] {
        for (at, _) in text.match_indices(scheme) {
            let start = at + scheme.len();
            let end = text[start..].find(ENDS).map_or(text.len(), |it| start + it);
            all.push(Found { range: start..end, name: String::new() });
        }
    }
}

/// The passwords of URLs, and the parts of their paths that nobody can guess.
fn urls(text: &str, all: &mut Vec<Found>) {
    for (at, mark) in text.match_indices("://") {
        let start = at + mark.len();
        let rest = &text[start..];
        let rest = &rest[..rest
            .find(|it: char| it.is_whitespace() || "\"'`".contains(it))
            .unwrap_or(rest.len())];
        let mut length = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        // A password may have such characters too; a port is a number.
        let port = rest[..length].rsplit_once(':').map(|(_, port)| port);
        if !rest[..length].contains('@')
            && port
                .is_some_and(|it| !it.chars().all(|it| it.is_ascii_digit()) && !it.ends_with(']'))
        {
            length = rest.rfind('@').map_or(length, |it| it + 1);
        }
        if let Some(end) = rest[..length].rfind('@') {
            let begin = rest[..end].find(':').map_or(0, |it| it + 1);
            all.push(Found { range: start + begin..start + end, name: "password".to_owned() });
        }
        let path = rest[length..].split(['?', '#']).next().unwrap_or_default();
        let is_hook = rest[..length].split('.').any(|label| label.contains("hook"));
        let mut begin = start + length;
        let mut before = "";
        for (index, part) in path.split('/').enumerate() {
            let is_after = BEFORE_SECRETS.contains(&before.to_ascii_lowercase().as_str())
                && !PLAIN_PARTS.contains(&part)
                && !BEFORE_SECRETS.contains(&part);
            if is_random(part) || is_after || (is_hook && index > 1) {
                all.push(Found { range: begin..begin + part.len(), name: "url".to_owned() });
            }
            begin += part.len() + 1;
            before = part;
        }
        if let Some(fragment) = rest.find('#').filter(|it| *it >= length) {
            let range = start + fragment + 1..start + rest.len();
            all.push(Found { range, name: "url".to_owned() });
        }
    }
}

/// Well-known tokens.
fn words(text: &str, all: &mut Vec<Found>) {
    let mut start = 0;
    for word in text.split(|it: char| !(it.is_ascii_alphanumeric() || "_-.+".contains(it))) {
        if word.len() >= 16 && BEGINNINGS.iter().any(|beginning| word.starts_with(beginning)) {
            all.push(Found { range: start..start + word.len(), name: String::new() });
        }
        start += word.len();
        start += text[start..].chars().next().map_or(0, char::len_utf8);
    }
}

fn is_random(part: &str) -> bool {
    let count = |is: fn(&char) -> bool| part.chars().filter(is).count();
    let is_mixed = count(char::is_ascii_uppercase) >= 3
        && count(char::is_ascii_lowercase) >= 3
        && !part.contains(['-', '_', ' ']);
    part.len() >= 20
        && !part.contains(['.', '@', '$', '{', '/', ' ', ':'])
        && ((count(char::is_ascii_digit) >= 3 && count(char::is_ascii_alphabetic) >= 3) || is_mixed)
}

/// Whether the value of `-p` can be a password.
fn is_password(text: &str) -> bool {
    !text.contains(['/', '.', '\\']) && text.chars().any(|it| it.is_ascii_alphabetic())
}

/// Where a secret begins after a word such as `Bearer`.
fn after_scheme(text: &str, start: usize) -> usize {
    let length = SCHEMES.iter().find(|it| text[start..].starts_with(**it)).map_or(0, |it| it.len());
    start + length
}

/// The places of `${…}`.
fn references(text: &str) -> Vec<Range<usize>> {
    let mut all: Vec<Range<usize>> = Vec::new();
    for (start, _) in text.match_indices("${") {
        if let Some(length) = text[start..].find('}')
            && all.last().is_none_or(|last| last.end <= start)
        {
            all.push(start..start + length + 1);
        }
    }
    all
}

fn is_secret_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let plain: String = lower.chars().filter(char::is_ascii_alphanumeric).collect();
    NAMES.iter().any(|word| plain.contains(word))
        || lower.split(|it: char| !it.is_ascii_alphanumeric()).any(|part| PARTS.contains(&part))
        || plain.ends_with("pat")
        || name == "-k"
}

/// A name for the vault.
fn clean_name(name: &str) -> String {
    let fits = |it: char| it.is_ascii_alphanumeric() || "_-.".contains(it);
    let name = name.trim_start_matches('-');
    name.chars().map(|it| if fits(it) { it } else { '_' }).collect()
}

/// Replaces the secrets of an entry by `${keychain:SERVER/NAME}`. Returns what has to be stored under these
/// names.
pub fn keep_secrets(server: &str, entry: &mut Map<String, Value>) -> Vec<(String, String)> {
    let mut kept = Vec::new();
    let server = clean_name(server);
    // The order in which they are shown.
    for key in ["env", "headers", "args"] {
        match entry.get_mut(key) {
            Some(Value::Object(fields)) => {
                for (name, field) in fields {
                    keep_field(&server, key, name, field, &mut kept);
                }
            }
            Some(value) => keep(&server, "", value, &mut kept),
            None => {}
        }
    }
    for key in ["command", "url"] {
        if let Some(value) = entry.get_mut(key) {
            keep(&server, "", value, &mut kept);
        }
    }
    // Other keys of it, such as `authServerUrl`, are no secrets.
    if let Some(value) = entry.get_mut("oauth").and_then(|login| login.get_mut("clientSecret")) {
        keep(&server, "clientSecret", value, &mut kept);
    }
    kept
}

/// An entry for people, without secrets.
pub fn without_secrets(entry: &Map<String, Value>) -> Map<String, Value> {
    let mut shown = entry.clone();
    for (name, _) in keep_secrets("", &mut shown) {
        let reference = format!("${{keychain:{name}}}");
        shown.values_mut().for_each(|value| replace(value, &reference, crate::diff::HIDDEN));
    }
    shown
}

/// Replaces a text in all texts of a value.
pub fn replace(value: &mut Value, from: &str, to: &str) {
    match value {
        Value::String(text) => *text = text.replace(from, to),
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, from, to)),
        Value::Object(fields) => fields.values_mut().for_each(|field| replace(field, from, to)),
        _ => {}
    }
}

/// Keeps a variable or a header. A header whose name says nothing is a secret too, and a value that nobody can
/// guess.
fn keep_field(
    server: &str,
    key: &str,
    name: &str,
    value: &mut Value,
    kept: &mut Vec<(String, String)>,
) {
    let known = kept.len();
    keep(server, name, value, kept);
    let Value::String(text) = value else { return };
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let is_open = OPEN_HEADERS.contains(&plain.to_ascii_lowercase().as_str());
    let is_value = (key == "headers" && !is_open && text.len() >= 3) || is_random(text);
    if kept.len() == known && is_value && references(text).is_empty() {
        let whole = Found { range: 0..text.len(), name: clean_name(name) };
        move_out(server, text, vec![whole], kept);
    }
}

fn keep(server: &str, name: &str, value: &mut Value, kept: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            fields.iter_mut().for_each(|(key, field)| keep(server, key, field, kept));
        }
        Value::Array(items) => {
            let mut option = String::new();
            for item in items {
                let before = std::mem::take(&mut option);
                if let Some(text) = item.as_str().filter(|text| is_option(text)) {
                    text.clone_into(&mut option);
                }
                keep(server, if option.is_empty() { &before } else { "" }, item, kept);
            }
        }
        Value::String(text) => {
            let found = found(name, text);
            move_out(server, text, found, kept);
        }
        _ => {}
    }
}

/// Replaces what was found by references.
fn move_out(server: &str, text: &mut String, found: Vec<Found>, kept: &mut Vec<(String, String)>) {
    let mut moved = Vec::new();
    for Found { range, name } in found.into_iter().rev() {
        let secret = text[range.clone()].to_owned();
        let base = format!("{server}/{name}");
        let mut stored = base.clone();
        let mut number = 2;
        while kept.iter().chain(&moved).any(|(name, value)| *name == stored && *value != secret) {
            stored = format!("{base}-{number}");
            number += 1;
        }
        text.replace_range(range, &format!("${{keychain:{stored}}}"));
        moved.push((stored, secret));
    }
    kept.extend(moved.into_iter().rev());
}

/// Whether an argument is the name of an option, so that the next one is its value.
pub(crate) fn is_option(argument: &str) -> bool {
    argument.starts_with('-') && !argument.contains(['=', ' '])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_become_references_and_the_rest_stays() {
        let mut entry = json!({
            "command": "x",
            "args": ["--api-key", "hunter2", "--token=hunter3", "--port", "80", "ghp_0123456789abcdefghij", "--key", "${KEY}"],
            "env": { "GITHUB_TOKEN": "hunter4", "HOME_PAGE": "x", "API_KEY": "${API_KEY}", "EMPTY_KEY": "" },
            "headers": { "Authorization": "Bearer hunter5", "X-Trace": "1" }
        });
        let kept = keep_secrets("My server", entry.as_object_mut().unwrap());
        assert_eq!(
            entry,
            json!({
                "command": "x",
                "args": ["--api-key", "${keychain:My_server/api-key}", "--token=${keychain:My_server/token}", "--port", "80",
                         "${keychain:My_server/argument}", "--key", "${KEY}"],
                "env": { "GITHUB_TOKEN": "${keychain:My_server/GITHUB_TOKEN}", "HOME_PAGE": "x", "API_KEY": "${API_KEY}", "EMPTY_KEY": "" },
                "headers": { "Authorization": "Bearer ${keychain:My_server/Authorization}", "X-Trace": "1" }
            })
        );
        let values: Vec<&str> = kept.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(
            values,
            ["hunter4", "hunter5", "hunter2", "hunter3", "ghp_0123456789abcdefghij"]
        );
    }

    /// Whatever is a secret is neither in the entry nor in what is shown of it.
    #[test]
    fn secrets_are_found_wherever_people_write_them() {
        let env = |name: &str| json!({ "command": "x", "env": { name: "HUNTER2" } });
        let args = |args: &[&str]| json!({ "command": "x", "args": args });
        let url = |url: &str| json!({ "url": url });
        let entries = [
            url("http://a.example/mcp?api_key=HUNTER2"),
            url("http://a.example/mcp?x=1&token=HUNTER2&y=2#z"),
            url("https://a.example/mcp?sig=HUNTER2"),
            url("https://bob:HUNTER2@x.example/mcp"),
            url("https://HUNTER2@x.example/mcp"),
            url("https://a.example/s/HUNTER2aaaa0123456789bbbb/mcp"),
            args(&["mcp-remote", "https://x.example", "--header", "Authorization: Bearer HUNTER2"]),
            args(&["mcp-remote", "https://x.example", "-H", "Authorization:Basic HUNTER2"]),
            args(&["--header", "X-Api-Key:HUNTER2"]),
            args(&["--header=X-Api-Key: HUNTER2"]),
            args(&["--header", "Cookie: HUNTER2"]),
            args(&["postgresql://bob:HUNTER2@db/x"]),
            args(&["postgresql://bob:HUNTER2/HUNTER2@db/x"]),
            args(&["-k", "HUNTER2"]),
            args(&["--connection-string", "Server=a;User=b;Password=HUNTER2;"]),
            args(&["--db", "Server=a;User=b;Password=HUNTER2;Port=1"]),
            args(&["-e", "API_KEY=HUNTER2"]),
            args(&["--env=API_KEY=HUNTER2"]),
            args(&["-c", "API_KEY=HUNTER2 exec server --token HUNTER2 --port 1"]),
            args(&["--config", "{\"apiKey\":\"HUNTER2\",\"a\":1}"]),
            json!({ "command": "server --token HUNTER2" }),
            json!({ "url": "https://a.example", "oauth": { "clientSecret": "HUNTER2" } }),
            json!({ "url": "https://a.example", "headers": { "X-Auth": "HUNTER2" } }),
            json!({ "command": "x", "env": { "OPENAPI_MCP_HEADERS": "{\"Authorization\":\"Bearer HUNTER2\"}" } }),
            json!({ "command": "x", "env": { "URL": "redis://:HUNTER2@host:1/0" } }),
            json!({ "command": "x", "env": { "API_KEY": "HUNTER2-of-${USER}" } }),
            url("https://mcp.zapier.example/api/mcp/s/HUNTER2/mcp"),
            url("https://a.example/mcp#HUNTER2"),
            url("https://a.example/AbCdEfHUNTER2aBcDeFgHiJkL/sse"),
            args(&["mcp-remote", "https://mcp.zapier.example/api/mcp/s/HUNTER2/mcp"]),
            args(&["-p", "HUNTER2"]),
            json!({ "command": "x", "env": { "SLACK_HOOK": "https://hooks.slack.example/services/T0/B0/HUNTER2" } }),
            json!({ "command": "x", "env": { "WHERE": "https://hooks.slack.example/services/T0/B0/HUNTER2" } }),
            json!({ "url": "https://a.example", "headers": { "X-Custom": "HUNTER2" } }),
            json!({ "command": "SECRET_TOK=HUNTER2 node" }),
            env("CRED"),
            env("ACCESS"),
            env("PIN"),
            env("LICENSE"),
            env("DATABASE_URL"),
            env("MY_AUTH"),
            env("PASSPHRASE"),
            env("DB_PASS"),
            env("SENTRY_DSN"),
            env("WEBHOOK_URL"),
            env("SESSION_COOKIE"),
            env("AWS_CREDENTIALS"),
        ];
        for entry in entries {
            let mut kept_entry = entry.clone();
            let kept = keep_secrets("s", kept_entry.as_object_mut().unwrap());
            assert!(!kept_entry.to_string().contains("HUNTER2"), "{kept_entry}");
            // With the values in their places it is the same entry.
            let mut restored = kept_entry.to_string();
            for (name, value) in &kept {
                let value = Value::from(value.as_str()).to_string();
                restored = restored.replace(
                    &format!("${{keychain:{name}}}"),
                    value[1..].strip_suffix('"').unwrap(),
                );
            }
            assert_eq!(restored, entry.to_string());
            let shown = Value::Object(without_secrets(entry.as_object().unwrap())).to_string();
            assert!(!shown.contains("HUNTER2") && shown.contains("[hidden]"), "{shown}");
            assert!(!shown.contains("keychain"), "{shown}");
            let file = |entry: &Value| format!("{:#}\n", json!({ "mcpServers": { "s": entry } }));
            let shown = crate::difference(
                &file(&entry),
                &file(&kept_entry),
                toolgate_config::Format::Jsonc,
                "f",
            );
            assert!(!shown.contains("HUNTER2"), "{shown}");
            assert!(shown.contains("${keychain:s/"), "{shown}");
        }
    }

    #[test]
    fn what_is_no_secret_stays() {
        for entry in [
            json!({ "command": "npx", "args": ["-y", "@scope/server@1.2.3", "--port", "8080", "/home/ada/notes", "--verbose"] }),
            json!({ "url": "https://a.example:8080/v1/mcp?page=2" }),
            json!({ "command": "x", "env": { "REGION": "north", "AUTH_ENABLED": "true", "API_KEY": "${API_KEY}", "URL": "postgres://bob:${PW}@db/x" } }),
            json!({ "url": "https://a.example", "headers": { "Authorization": "Bearer ${T}", "Accept": "text/plain" } }),
            json!({ "command": "x", "args": ["-p", "8080", "-p", "8080:80", "-p", "./notes", "https://a.example/s/mcp"] }),
        ] {
            let mut same = entry.clone();
            assert_eq!(keep_secrets("s", same.as_object_mut().unwrap()), []);
            assert_eq!(same, entry);
        }
    }
}
