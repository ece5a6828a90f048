//! Finds values that are secrets, and replaces them by references.

use serde_json::{Map, Value};

/// Words in the name of a variable, a header or an option whose value is a secret.
const NAMES: [&str; 11] = [
    "token",
    "secret",
    "password",
    "passwd",
    "apikey",
    "accesskey",
    "privatekey",
    "credential",
    "authorization",
    "cookie",
    "bearer",
];
/// Beginnings of well-known tokens.
const BEGINNINGS: [&str; 12] = [
    "sk-",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "xoxb-",
    "xoxp-",
    "glpat-",
    "AKIA",
    "AIza",
    "hf_",
    "npm_",
];

/// Whether the value under this name is a secret.
pub fn looks_secret(name: &str, value: &str) -> bool {
    is_secret_name(name) && !is_reference(value) || is_secret_value(value)
}

fn is_secret_name(name: &str) -> bool {
    let plain: String =
        name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    NAMES.iter().any(|word| plain.contains(word))
        || plain == "key"
        || plain.ends_with("key")
        || plain.ends_with("pat")
}

fn is_secret_value(value: &str) -> bool {
    let value = value.strip_prefix("Bearer ").unwrap_or(value);
    value.len() >= 16 && BEGINNINGS.iter().any(|beginning| value.starts_with(beginning))
}

/// Whether a value is nothing but a reference, perhaps after a word such as `Bearer`.
fn is_reference(value: &str) -> bool {
    let is_short =
        |rest: &str| rest.trim().is_empty() || matches!(rest.trim(), "Bearer" | "Basic" | "token");
    match (value.find("${"), value.rfind('}')) {
        (Some(start), Some(end)) if start < end => {
            is_short(&value[..start]) && is_short(&value[end + 1..])
        }
        _ => value.is_empty(),
    }
}

/// Replaces the secrets of an entry by `${keychain:SERVER/NAME}`. Returns what has to be stored under these
/// names.
pub fn keep_secrets(server: &str, entry: &mut Map<String, Value>) -> Vec<(String, String)> {
    let mut kept: Vec<(String, String)> = Vec::new();
    let mut keep = |name: &str, value: &mut String| {
        let (before, secret) = match value.strip_prefix("Bearer ") {
            Some(secret) => ("Bearer ", secret.to_owned()),
            None => ("", value.clone()),
        };
        let clean = |text: &str| {
            let fits = |it: char| it.is_ascii_alphanumeric() || "_-.".contains(it);
            text.chars().map(|it| if fits(it) { it } else { '_' }).collect::<String>()
        };
        let base = format!("{}/{}", clean(server), clean(name));
        let mut stored = base.clone();
        let mut number = 2;
        while kept.iter().any(|(name, value)| *name == stored && *value != secret) {
            stored = format!("{base}-{number}");
            number += 1;
        }
        *value = format!("{before}${{keychain:{stored}}}");
        kept.push((stored, secret));
    };
    for key in ["env", "headers"] {
        for (name, value) in entry.get_mut(key).and_then(Value::as_object_mut).into_iter().flatten()
        {
            if let Value::String(value) = value
                && looks_secret(name, value)
            {
                keep(name, value);
            }
        }
    }
    let mut option = String::new();
    for argument in entry.get_mut("args").and_then(Value::as_array_mut).into_iter().flatten() {
        let Value::String(text) = argument else { continue };
        let before = std::mem::take(&mut option);
        match text.split_once('=') {
            Some((name, value)) if looks_secret(name, value) && !value.is_empty() => {
                let mut value = value.to_owned();
                let name = name.to_owned();
                keep(name.trim_start_matches('-'), &mut value);
                *text = format!("{name}={value}");
            }
            _ if text.starts_with('-') => option.clone_from(text),
            _ if (!before.is_empty() && looks_secret(&before, text)) || is_secret_value(text) => {
                let name =
                    if before.is_empty() { "argument" } else { before.trim_start_matches('-') };
                keep(name, text);
            }
            _ => {}
        }
    }
    kept
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
}
