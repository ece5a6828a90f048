//! The keys that are known, and the nearest one to a key that is not.

/// The keys of the file itself that are toolgate's own.
pub(crate) const TOP_LEVEL: &[&str] = &[
    "$schema",
    "mcpServers",
    "toolSearch",
    "codeMode",
    "gateway",
    "registry",
    "skills",
    "namespaces",
    "policy",
    "audit",
    "telemetry",
];

/// The keys of `registry`.
pub(crate) const REGISTRY: &[&str] = &["sources", "cacheHours"];

/// The keys of a namespace.
pub(crate) const NAMESPACE: &[&str] = &["servers", "exclusive", "mode", "toolSearch", "policy"];

/// The keys under which clients keep their servers.
pub(crate) const CONTAINERS: &[&str] = &["mcpServers", "servers", "context_servers", "mcp_servers"];

/// The keys of `toolSearch`.
pub(crate) const TOOL_SEARCH: &[&str] = &[
    "enabled",
    "deferred",
    "contextWindow",
    "thresholdPercent",
    "tokenThreshold",
    "toolThreshold",
    "maxResults",
    "keepLoadedTools",
    "instructionsBudget",
    "strategy",
    "usageMemory",
    "tokenCounter",
    "subagent",
    "embeddings",
];

/// The keys of `toolSearch.subagent`.
pub(crate) const SUBAGENT: &[&str] =
    &["provider", "endpoint", "model", "apiKey", "candidates", "timeoutSeconds"];

/// The keys of `codeMode`.
pub(crate) const CODE_MODE: &[&str] = &[
    "enabled",
    "timeoutSeconds",
    "cpuSeconds",
    "memoryMb",
    "stackKb",
    "warmWorkers",
    "maxRuns",
    "maxCalls",
    "maxCallsInFlight",
    "maxParallelCalls",
    "maxResultBytes",
    "maxOutputBytes",
    "maxOutputTokens",
    "journal",
];
/// The keys of `codeMode.journal`.
pub(crate) const JOURNAL: &[&str] = &["runs", "days", "megabytes"];

/// The keys of `gateway`.
pub(crate) const GATEWAY: &[&str] = &[
    "requireToken",
    "allowedHosts",
    "allowedOrigins",
    "oauth",
    "maxConnections",
    "maxBodyBytes",
    "maxHeaderBytes",
    "maxSessions",
    "maxSessionsPerCaller",
    "maxRequestsInFlight",
    "sessionIdleSeconds",
];

/// The keys of `gateway.oauth`.
pub(crate) const GATEWAY_OAUTH: &[&str] =
    &["issuer", "resource", "audience", "jwksUrl", "requiredScopes"];

/// The keys of `toolSearch.embeddings`.
pub(crate) const EMBEDDINGS: &[&str] = &[
    "endpoint",
    "model",
    "apiKey",
    "dimensions",
    "folder",
    "queryPrefix",
    "documentPrefix",
    "timeoutSeconds",
];

/// The keys of a server that toolgate documents.
pub(crate) const SERVER: &[&str] = &[
    "type",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "oauth",
    "prefix",
    "description",
    "deferLoading",
    "lazy",
    "enabled",
    "disabled",
    "idleTimeoutSeconds",
    "connectTimeoutSeconds",
    "callIdleTimeoutSeconds",
    "callTotalTimeoutSeconds",
    "maxResultBytes",
    "validateArguments",
    "includeTools",
    "excludeTools",
    "tools",
    "labels",
    "trusted",
];

/// The keys of other clients that mean something to toolgate.
pub(crate) const SERVER_MAPPED: &[&str] = &[
    "transport",
    "serverUrl",
    "httpUrl",
    "http_headers",
    "env_http_headers",
    "bearer_token_env_var",
    "env_vars",
    "timeout",
    "startup_timeout_sec",
    "startup_timeout_ms",
    "tool_timeout_sec",
    "enabled_tools",
    "disabled_tools",
    "disabledTools",
    "alwaysLoad",
    "isActive",
    "source",
    "settings",
];

/// The keys of other clients that mean nothing to toolgate and cost nothing to leave out.
///
/// Lists of tools that a client calls without asking are among them on purpose: what was granted
/// to one program is not granted to another.
pub(crate) const SERVER_IGNORED: &[&str] = &[
    "alwaysAllow",
    "always_allow",
    "authProviderType",
    "auth",
    "autoApprove",
    "autoStart",
    "default_tools_approval_mode",
    "dev",
    "displayName",
    "experimental_environment",
    "extension",
    "gallery",
    "icon",
    "iconPath",
    "id",
    "metadata",
    "name",
    "oauthScopes",
    "oauth_resource",
    "registryUrl",
    "remote",
    "required",
    "sandbox",
    "sandboxEnabled",
    "scopes",
    "supports_parallel_tool_calls",
    "tags",
    "targetAudience",
    "title",
    "trust",
    "version",
    "watchPaths",
];

/// The keys of other clients that a server may depend on and that toolgate does not act on, each
/// with the way out.
pub(crate) const SERVER_UNSUPPORTED: &[(&str, &str)] = &[
    ("envFile", "list the variables that the server needs under `env`, as `${NAME}`"),
    ("headersHelper", "write the headers under `headers`; their values may use `${NAME}`"),
];

/// The keys of `oauth`.
pub(crate) const OAUTH: &[&str] =
    &["clientId", "clientSecret", "clientMetadataUrl", "scopes", "redirectPort"];

/// The keys of other clients' `oauth` that mean something to toolgate, or whose meaning is found
/// out from the server.
pub(crate) const OAUTH_FOREIGN: &[&str] = &[
    "audiences",
    "authServerMetadataUrl",
    "authorizationUrl",
    "callbackPort",
    "enabled",
    "issuer",
    "redirectUri",
    "registrationUrl",
    "tokenParamName",
    "tokenUrl",
];

/// The keys of a tool within `tools`.
pub(crate) const TOOL: &[&str] = &["deferLoading", "validateArguments", "approval", "labels"];

/// The keys of `audit`.
pub(crate) const AUDIT: &[&str] =
    &["enabled", "arguments", "required", "maxMegabytes", "keepFiles"];

/// The keys of `telemetry`.
pub(crate) const TELEMETRY: &[&str] = &["otlpEndpoint", "headers", "serviceName"];

/// The keys of `policy`.
pub(crate) const POLICY: &[&str] =
    &["default", "rules", "flow", "newTools", "findings", "claims", "labels"];

/// The keys of a rule.
pub(crate) const RULE: &[&str] =
    &["server", "tool", "annotations", "trusted", "when", "verdict", "reason"];

/// The keys of a rule's `when`.
pub(crate) const WHEN: &[&str] = &["arguments", "carries", "to", "steeredBy"];

/// The keys that hold something back: one that is misspelt or written twice must not let more through.
pub(crate) const PROTECTING: &[&str] = &["approval", "labels", "policy", "trusted"];

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
    // No known key is longer than thirty characters; a longer key is no typing mistake, and the
    // distance of a text of a megabyte takes its time.
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
        let unsupported = SERVER_UNSUPPORTED.iter().map(|(key, _)| key);
        let mut all: Vec<_> = [SERVER, SERVER_MAPPED, SERVER_IGNORED]
            .into_iter()
            .flatten()
            .chain(unsupported)
            .collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
