//! A change for people, without secrets.

use serde_json::Value;
use similar::TextDiff;
use toolgate_config::{Format, as_written};

use crate::secret::{hidden_line, is_option, secrets_in};

pub(crate) const HIDDEN: &str = "[hidden]";

/// The lines that differ, with two lines around them.
pub fn difference(before: &str, after: &str, format: Format, name: &str) -> String {
    let secrets: Vec<String> =
        [before, after].into_iter().flat_map(|text| secrets_of(text, format)).collect();
    let diff = TextDiff::from_lines(before, after);
    let unified = diff.unified_diff().context_radius(2).header(name, name).to_string();
    let unified = hidden(&unified, &secrets);
    // Comments can have secrets too.
    unified.split_inclusive('\n').map(|line| hidden_line(line, HIDDEN)).collect()
}

/// A text without these values.
pub fn hidden(text: &str, secrets: &[String]) -> String {
    let mut secrets: Vec<&String> = secrets.iter().filter(|secret| secret.len() >= 3).collect();
    // A secret may begin with another one.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    let mut text = text.to_owned();
    for secret in secrets {
        text = text.replace(secret.as_str(), HIDDEN);
        let escaped = Value::from(secret.as_str()).to_string();
        text = text.replace(escaped.trim_matches('"'), HIDDEN);
    }
    text
}

/// All values of a file whose names say that they are secrets, and all values of variables and headers.
fn secrets_of(text: &str, format: Format) -> Vec<String> {
    let Ok(root) = as_written(text, format, "") else { return Vec::new() };
    let mut secrets = Vec::new();
    collect(&Value::Object(root), "", false, &mut secrets);
    secrets
}

fn collect(value: &Value, name: &str, is_private: bool, secrets: &mut Vec<String>) {
    const PRIVATE: [&str; 6] = ["env", "environment", "envs", "headers", "http_headers", "args"];
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let is_private = is_private || (PRIVATE.contains(&key.as_str()) && key != "args");
                collect(value, key, is_private, secrets);
            }
        }
        Value::Array(items) => {
            let mut before = name;
            for item in items {
                let text = item.as_str().unwrap_or_default();
                collect(item, if is_option(text) { "" } else { before }, is_private, secrets);
                before = if is_option(text) { text } else { name };
            }
        }
        Value::String(text) => {
            let is_word = ["true", "false", "http", "stdio"].contains(&text.as_str());
            if is_private && text.len() >= 6 && !is_word && !text.contains("${") {
                secrets.push(text.clone());
            }
            secrets.extend(secrets_in(name, text).into_iter().map(str::to_owned));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shown_without_secrets() {
        let before = "{\n  \"apiKey\": \"hunter1\",\n  \"mcpServers\": {\n    \"a\": { \"command\": \"a\", \"args\": [\"--token\", \"hunter2\"], \"env\": { \"X\": \"hunter\\\"3\" } }\n  }\n}\n";
        let after = before.replace("\"command\": \"a\"", "\"command\": \"b\"");
        let shown = difference(before, &after, Format::Jsonc, "mcp.json");
        assert!(!shown.contains("hunter"), "{shown}");
        assert!(shown.contains("+    \"a\": { \"command\": \"b\""), "{shown}");
        assert!(!shown.contains("[[") && !shown.contains("]]"), "{shown}");
    }
}
