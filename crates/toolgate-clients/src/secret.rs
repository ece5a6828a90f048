//! Replaces secrets by references, and hides them.

use serde_json::{Map, Value};

use crate::found::{Found, clean_name, found, is_random, references};

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
            json!({ "command": "x", "env": { "API_KEY": "${API_KEY:-HUNTER2}" } }),
            json!({ "command": "x", "env": { "WHERE": "a ${env:MY_TOKEN:-HUNTER2} b" } }),
            json!({ "url": "https://a.example", "headers": { "Authorization": "Bearer ${T:-HUNTER2}" } }),
            args(&["--db", "${DB:-postgresql://bob:HUNTER2@db/x}"]),
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
            json!({ "command": "x", "env": { "REGION": "north", "AUTH_ENABLED": "true", "API_KEY": "${API_KEY}", "URL": "postgres://bob:${PW}@db/x", "B_KEY": "${B_KEY:-}", "C_KEY": "${C:-${keychain:c}}", "D_ROOT": "${D:-/data}" } }),
            json!({ "url": "https://a.example", "headers": { "Authorization": "Bearer ${T}", "Accept": "text/plain" } }),
            json!({ "command": "x", "args": ["-p", "8080", "-p", "8080:80", "-p", "./notes", "https://a.example/s/mcp"] }),
        ] {
            let mut same = entry.clone();
            assert_eq!(keep_secrets("s", same.as_object_mut().unwrap()), []);
            assert_eq!(same, entry);
        }
    }
}
