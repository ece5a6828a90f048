//! The keys of other clients, and the nearest key to an unknown one.

/// The keys under which clients keep their servers.
pub const CONTAINERS: &[&str] =
    &["mcpServers", "servers", "context_servers", "mcp_servers", "amp.mcpServers"];

/// The keys of other clients that mean something to toolgate.
const SERVER_MAPPED: &str = "\
    transport serverUrl httpUrl uri http_headers env_http_headers bearer_token_env_var \
    bearer_token_env env_vars env_keys cmd environment envs \
    timeout startup_timeout_sec startup_timeout_ms tool_timeout_sec toolTimeoutMs \
    requestTimeoutMs enabled_tools \
    disabled_tools disabledTools alwaysLoad isActive source settings";

/// The keys of other clients that toolgate ignores without a message.
///
/// They include lists of tools that a client calls without asking, because a permission for one
/// program is no permission for another.
const SERVER_IGNORED: &str = "\
    alwaysAllow always_allow authProviderType autoApprove autoStart available_tools bundled \
    default_tools_approval_mode dev displayName experimental_environment extension gallery \
    icon iconPath id metadata name oauthScopes oauth_resource registryUrl remote required \
    sandbox sandboxEnabled scopes supports_parallel_tool_calls tags targetAudience title trust \
    version watchPaths";

/// The keys of other clients that a server may depend on and that toolgate does not act on, each
/// with the way out.
pub(crate) const SERVER_UNSUPPORTED: &[(&str, &str)] =
    &[("headersHelper", "write the headers under `headers`; their values may use `${NAME}`")];

/// The keys of other clients' `oauth` that toolgate uses, or that it finds out from the server.
pub(crate) const OAUTH_FOREIGN: &str = "\
    audiences authServerMetadataUrl authorizationUrl callbackPort enabled issuer redirectUri \
    registrationUrl tokenParamName tokenUrl";

/// The keys that protect something. If one is misspelt or written twice, it must not allow more.
pub(crate) const PROTECTING: &[&str] =
    &["allowedCallers", "approval", "auth", "labels", "policy", "trusted"];

/// Whether a list of keys with spaces between has a key.
pub(crate) fn is_listed(keys: &str, key: &str) -> bool {
    keys.split_whitespace().any(|known| known == key)
}

/// Whether a key of a server is known from another client, and toolgate reads or ignores it.
pub(crate) fn is_of_other_client(key: &str) -> bool {
    is_listed(SERVER_MAPPED, key) || is_listed(SERVER_IGNORED, key)
}

/// What people write for a key of another name.
const SYNONYMS: &[(&str, &str)] = &[
    ("arguments", "args"),
    ("argv", "args"),
    ("cmd", "command"),
    ("endpoint", "url"),
    ("environment", "env"),
    ("exec", "command"),
    ("executable", "command"),
    ("path", "command"),
    ("program", "command"),
    ("uri", "url"),
    ("workingdirectory", "cwd"),
];

/// The known key that a person most likely meant, if any is near.
pub(crate) fn nearest<'k>(key: &str, known: &[&'k str]) -> Option<&'k str> {
    // Known keys have at most thirty characters. A longer key is no typing mistake, and comparing a
    // long text is slow.
    const LONGEST: usize = 40;
    if key.len() > LONGEST {
        return None;
    }
    let wanted = normalise(key);
    let meant = SYNONYMS.iter().find(|(synonym, _)| *synonym == wanted).map(|(_, meant)| *meant);
    if let Some(found) = meant.and_then(|meant| known.iter().find(|name| **name == meant)) {
        return Some(found);
    }
    known
        .iter()
        .map(|name| {
            let name_normalised = normalise(name);
            let distance = strsim::osa_distance(&wanted, &name_normalised);
            // Two mistakes in a short word make another word.
            (distance, distance <= (name_normalised.chars().count() / 3).min(2), *name)
        })
        .filter(|(_, near, _)| *near)
        .min_by_key(|(distance, ..)| *distance)
        .map(|(.., name)| name)
}

/// Whether a key is a comment in a file that cannot have any.
pub(crate) fn is_comment(key: &str) -> bool {
    key.starts_with("//") || key.starts_with('_') || key.starts_with('#') || key == "comment"
}

/// A key without its case and its word breaks, where most mistakes are.
fn normalise(key: &str) -> String {
    key.chars()
        .filter(|character| !matches!(character, '_' | '-' | ' '))
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Configuration;
    use crate::section::Section as _;
    use crate::server::ServerSettings;

    const SERVER: &[&str] = ServerSettings::KEYS;
    const TOP_LEVEL: &[&str] = Configuration::KEYS;

    #[test]
    fn near_keys_are_found() {
        assert_eq!(nearest("comand", SERVER), Some("command"));
        assert_eq!(nearest("defer_loading", SERVER), Some("deferLoading"));
        assert_eq!(nearest("header", SERVER), Some("headers"));
        assert_eq!(nearest("cmd", SERVER), Some("command"));
        assert_eq!(nearest("ulr", SERVER), Some("url"));
        assert_eq!(nearest("mcpServer", TOP_LEVEL), Some("mcpServers"));
        assert_eq!(nearest("McpServres", TOP_LEVEL), Some("mcpServers"));
    }

    #[test]
    fn far_keys_are_not() {
        assert_eq!(nearest("color", SERVER), None);
        assert_eq!(nearest("ur", &["env"]), None);
        assert_eq!(nearest("", SERVER), None);
        assert_eq!(nearest(&"command".repeat(1_000), SERVER), None);
        assert_eq!(nearest("enabledMcpjsonServers", TOP_LEVEL), None);
    }

    #[test]
    fn no_key_is_in_two_tables() {
        let unsupported = SERVER_UNSUPPORTED.iter().map(|(key, _)| *key);
        let listed = [SERVER_MAPPED, SERVER_IGNORED].into_iter().flat_map(str::split_whitespace);
        let mut all: Vec<_> = SERVER.iter().copied().chain(listed).chain(unsupported).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
