//! What clients show their models of a result.

use serde_json::Value;

use crate::service::ClientInfo;

/// The first version of the protocol with structured content.
const FIRST_STRUCTURED: &str = "2025-06-18";

/// Clients that show a model either the texts or the structured content of a result, as they begin their
/// names. What a name claims is not checked: a client can only take data from itself.
const SHOW_ONE: &[&str] = &[
    "claude-ai",
    "claude-code",
    "cline",
    "codex-mcp-client",
    "crush",
    "cursor",
    "gemini-cli-mcp-client",
    "goose",
    "kilo code",
    "opencode",
    "roo code",
    "visual studio code",
    "visual-studio-code",
    "windsurf",
    "zed",
];

/// Whether structured content would only repeat for the model of this client what the texts say, or is
/// not known to the client. Other clients may be programs that read it.
pub(super) fn shows_one(client: &ClientInfo) -> bool {
    let is_old =
        client.requested_version.as_deref().is_some_and(|version| version < FIRST_STRUCTURED);
    let name = client.info.get("name").and_then(Value::as_str).unwrap_or_default();
    let name: String = name.chars().take(64).collect::<String>().to_lowercase();
    is_old || SHOW_ONE.iter().any(|known| begins_with(&name, known))
}

/// Whether a name is the known one, alone or with something after it: `claude-ai (via mcp-remote 0.1.37)`.
fn begins_with(name: &str, known: &str) -> bool {
    let rest = name.strip_prefix(known);
    rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_mcp::Era;

    use super::*;
    use crate::service::AuthenticatedClient;

    fn shows(name: &str, version: Option<&str>) -> bool {
        shows_one(&ClientInfo {
            caller: AuthenticatedClient::local(),
            era: Era::Legacy,
            info: json!({ "name": name, "version": "1" }),
            capabilities: serde_json::Map::new(),
            requested_version: version.map(str::to_owned),
            channel: None,
        })
    }

    #[test]
    fn known_clients_and_old_versions_get_text_alone() {
        for name in [
            "claude-code",
            "Zed",
            "cursor-vscode",
            "gemini-cli-mcp-client-docs",
            "Visual Studio Code",
        ] {
            assert!(shows(name, Some("2025-11-25")), "{name}");
        }
        assert!(shows("claude-ai (via mcp-remote 0.1.37)", None));
        assert!(shows("my program", Some("2025-03-26")));
        for name in ["my program", "mcp", "zedlike", ""] {
            assert!(!shows(name, Some("2025-06-18")) && !shows(name, None), "{name}");
        }
    }
}
