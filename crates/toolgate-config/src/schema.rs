//! The JSON Schema of the file, for editors.
//!
//! The types here say what may be written; they are never filled. Reading is done by hand, since
//! it has to go on after a mistake and name its place. A test holds the two together.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::Value;
use toolgate_policy::Label;

use crate::choice::Named;
use crate::choice::choice;
use crate::policy::{OneOrMany, PolicyFile};
use crate::{
    Approval, AuditLogging, ChatProviderName, CodeMode, ExposureMode, Gateway, MAX_SERVERS,
    ToolSearch,
};

/// The JSON Schema of `toolgate.json`, by which editors complete and check it.
///
/// It describes toolgate's own keys. Those of other clients are allowed, as they are in the file.
pub fn json_schema() -> Value {
    let generator: SchemaGenerator = SchemaSettings::draft2020_12().into_generator();
    let schema: Schema = generator.into_root_schema_for::<ConfigurationFile>();
    schema.into()
}

/// The configuration of toolgate: the MCP servers behind it, and how their tools are shown.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", title = "toolgate configuration")]
#[expect(dead_code, reason = "the fields are read by the derive alone")]
struct ConfigurationFile {
    /// Where editors find this schema.
    #[schemars(rename = "$schema")]
    schema: Option<String>,
    /// The servers, by name.
    #[schemars(extend("maxProperties" = MAX_SERVERS))]
    mcp_servers: Option<BTreeMap<String, ServerFile>>,
    /// When tools are deferred and how they are found.
    tool_search: Option<ToolSearch>,
    /// Whether agents may run scripts, and what these may use.
    code_mode: Option<CodeMode>,
    /// Who may come in over the network, and what they may ask.
    gateway: Option<Gateway>,
    /// Who may call what.
    policy: Option<PolicyFile>,
    /// How decisions and calls are recorded.
    audit: Option<AuditLogging>,
    /// Where traces and metrics go, by OpenTelemetry. What is not said is taken from the environment
    /// (`OTEL_EXPORTER_OTLP_ENDPOINT` and so on); `false` for nowhere.
    telemetry: Option<TelemetryFile>,
    /// Where servers can be found that are not in this file. Nowhere, unless it is said.
    registry: Option<RegistryFile>,
    /// Folders of skills: each a folder with a `SKILL.md`, of which the front matter has `name`,
    /// `description` and `mcp-servers`. Relative ones are meant from this file's folder.
    #[schemars(length(max = 32))]
    skills: Option<Vec<String>>,
    /// Sets of servers that `toolgate serve --http` serves apart, at `/mcp/NAME`, by name.
    #[schemars(extend("maxProperties" = 100))]
    namespaces: Option<BTreeMap<String, NamespaceFile>>,
}

/// Where traces and metrics go.
///
/// `${NAME}` and `${NAME:-default}` in all texts stand for environment variables.
#[derive(JsonSchema)]
#[schemars(rename = "Telemetry", rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields are read by the derive alone")]
struct TelemetryFile {
    /// The base URL of a collector that takes OTLP over HTTP, such as `http://127.0.0.1:4318`.
    #[schemars(length(min = 1))]
    otlp_endpoint: Option<String>,
    /// Headers for every request to it, best with values as `${NAME}`.
    headers: Option<BTreeMap<String, Scalar>>,
    /// What the traces are said to be of. Unless set, `toolgate`.
    #[schemars(length(min = 1))]
    service_name: Option<String>,
}

/// Where servers can be found.
#[derive(JsonSchema)]
#[schemars(rename = "Registry", rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields are read by the derive alone")]
struct RegistryFile {
    /// Registries by their `https` URL, and files or folders of `server.json` files. Of two servers
    /// with one name, that of the first source counts.
    #[schemars(length(max = 32))]
    sources: Option<Vec<String>>,
    /// How many hours an answer of a registry is used before it is asked again. Unless set, 24.
    #[schemars(range(min = 0, max = 8_760))]
    cache_hours: Option<f64>,
}

/// Some of the servers, served at a path of their own.
#[derive(JsonSchema)]
#[schemars(rename = "Namespace", rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields are read by the derive alone")]
struct NamespaceFile {
    /// Its servers, by their names in this file.
    servers: Option<Vec<String>>,
    /// Whether its servers are left out at `/mcp`. Unless set, false.
    exclusive: Option<bool>,
    /// What an agent is shown: every tool (`direct`), the meta-tools with a list that is fixed
    /// (`stable`) or grows (`dynamic`), scripts (`code`). Unless set, as `toolSearch` says.
    mode: Option<ExposureMode>,
    /// What differs from the `toolSearch` of the file.
    tool_search: Option<ToolSearch>,
    /// What differs from the `policy` of the file. Rules and labels are added to those of the file, so
    /// that what is denied there is denied here; the rest takes the place of what the file says.
    policy: Option<PolicyFile>,
}

/// A server: a `command` that starts it, or the `url` where it runs.
///
/// `${NAME}` and `${NAME:-default}` in `command`, `args`, `env`, `cwd`, `url` and `headers` stand
/// for environment variables.
#[derive(JsonSchema)]
#[schemars(rename = "Server", rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields are read by the derive alone")]
struct ServerFile {
    /// How the server is reached. Unless set, `stdio` with a `command` and `http` with a `url`. With
    /// `http`, the older `sse` is tried where the server does not take the newer transport.
    r#type: Option<TransportName>,
    /// The program that starts the server.
    #[schemars(length(min = 1))]
    command: Option<String>,
    /// The arguments of the program.
    args: Option<Vec<String>>,
    /// Environment variables for the program.
    env: Option<BTreeMap<String, Scalar>>,
    /// The folder in which the program starts.
    cwd: Option<String>,
    /// The Streamable HTTP or HTTP+SSE endpoint of the server.
    #[schemars(length(min = 1))]
    url: Option<String>,
    /// Headers for every request to the endpoint.
    headers: Option<BTreeMap<String, Scalar>>,
    /// How to log in (`toolgate login`), where the server's authorization server does not register
    /// whoever comes, or asks for the wrong rights.
    oauth: Option<OAuthFile>,
    /// What the names of its tools begin with; an empty string for nothing. Unless set, the name
    /// of the server.
    #[schemars(regex(pattern = "^[A-Za-z0-9_]{0,32}$"))]
    prefix: Option<String>,
    /// What the server is for, in a few words that help to find it.
    #[schemars(length(max = 2_000))]
    description: Option<String>,
    /// Whether its tools are deferred, whatever the thresholds of `toolSearch` say.
    defer_loading: Option<bool>,
    /// Whether the server is started only when one of its tools is needed. Unless set, false.
    lazy: Option<bool>,
    /// After how many seconds without a call the server is stopped, to be started again with the next
    /// one; 0 for never. Unless set, 1800 for a lazy server and never for others.
    #[schemars(range(min = 0, max = 31_536_000))]
    idle_timeout_seconds: Option<f64>,
    /// Whether the server is served at all. Unless set, true.
    enabled: Option<bool>,
    /// The opposite of `enabled`.
    disabled: Option<bool>,
    /// How many seconds the server may take to start and answer. Unless set, 30.
    #[schemars(range(min = 0.1, max = 86_400))]
    connect_timeout_seconds: Option<f64>,
    /// How many seconds a call may take without a sign of progress. Unless set, 60.
    #[schemars(range(min = 0.1, max = 86_400))]
    call_idle_timeout_seconds: Option<f64>,
    /// How many seconds a call may take at all. Unless set, 600.
    #[schemars(range(min = 0.1, max = 86_400))]
    call_total_timeout_seconds: Option<f64>,
    /// The largest result of a call in bytes. Unless set, 16777216.
    #[schemars(range(min = 1_024, max = 1_073_741_824))]
    max_result_bytes: Option<u64>,
    /// Whether arguments are checked against a tool's schema before the call. Unless set, true.
    validate_arguments: Option<bool>,
    /// The only tools to use, by the names that the server gives them.
    include_tools: Option<Vec<String>>,
    /// Tools not to use, by the names that the server gives them.
    exclude_tools: Option<Vec<String>>,
    /// Settings of single tools, by the names that the server gives them.
    tools: Option<BTreeMap<String, ToolFile>>,
    /// What is said of the data of its tools: what they return is `private` or `untrusted`, what
    /// they take can leave the house (`egress`).
    labels: Option<OneOrMany<Named<Label>>>,
    /// Whether what the server says of its tools is believed. Unless set, false.
    trusted: Option<bool>,
}

/// How to log in at a server.
///
/// `${NAME}` and `${NAME:-default}` in all texts stand for environment variables.
#[derive(JsonSchema)]
#[schemars(rename = "OAuth", rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields are read by the derive alone")]
struct OAuthFile {
    /// Who toolgate is to the authorization server, where that was agreed beforehand.
    #[schemars(length(min = 1))]
    client_id: Option<String>,
    /// The secret that goes with `clientId`, best as `${NAME}`.
    client_secret: Option<String>,
    /// The `https` URL of a document that says who toolgate is, for authorization servers that read
    /// such (Client ID Metadata Documents).
    client_metadata_url: Option<String>,
    /// The scopes to ask for, in place of those that the server says it needs.
    scopes: Option<Vec<String>>,
    /// The port of 127.0.0.1 that the browser comes back to. Unless set, a free one.
    #[schemars(range(min = 1, max = 65_535))]
    redirect_port: Option<u64>,
}

/// The settings of one tool.
#[derive(JsonSchema)]
#[schemars(rename = "Tool", rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields are read by the derive alone")]
struct ToolFile {
    /// Whether the tool is deferred, whatever its server says.
    defer_loading: Option<bool>,
    /// Whether its arguments are checked, whatever its server says.
    validate_arguments: Option<bool>,
    /// Whether its calls go through, are asked for, or are refused.
    approval: Option<Named<Approval>>,
    /// What is said of its data, whatever its server says.
    labels: Option<OneOrMany<Named<Label>>>,
}

/// What makes vectors of texts: an `endpoint` and its `model`, or the `folder` of a model.
///
/// `${NAME}` and `${NAME:-default}` in `endpoint`, `model`, `apiKey` and `folder` stand for
/// environment variables.
#[derive(JsonSchema)]
#[schemars(rename = "Embeddings", rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields are read by the derive alone")]
pub(crate) struct EmbeddingsFile {
    /// The base URL of an OpenAI-compatible API, such as `http://localhost:11434/v1`.
    #[schemars(length(min = 1))]
    endpoint: Option<String>,
    /// The name of the endpoint's model.
    #[schemars(length(min = 1))]
    model: Option<String>,
    /// The endpoint's API key, best as `${NAME}`.
    api_key: Option<String>,
    /// How many numbers a vector is to have, where the model lets one choose.
    #[schemars(range(min = 8, max = 8_192))]
    dimensions: Option<u64>,
    /// The folder of a model: config.json, tokenizer.json and model.safetensors, of the BERT family
    /// or of `Model2Vec`. A relative path starts at the folder of this file.
    #[schemars(length(min = 1))]
    folder: Option<String>,
    /// What is put before a query, such as `query: ` for models of the E5 family.
    #[schemars(length(max = 1_000))]
    query_prefix: Option<String>,
    /// What is put before the text of a tool, such as `passage: `.
    #[schemars(length(max = 1_000))]
    document_prefix: Option<String>,
    /// How many seconds a search waits for the vector of its query. Unless set, 2.
    #[schemars(range(min = 0.1, max = 60))]
    timeout_seconds: Option<f64>,
}

/// The model that chooses tools with the strategy `subagent`.
///
/// `${NAME}` and `${NAME:-default}` in `endpoint`, `model` and `apiKey` stand for environment
/// variables.
#[derive(JsonSchema)]
#[schemars(rename = "Subagent", rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields are read by the derive alone")]
pub(crate) struct SubagentFile {
    /// Which requests the endpoint understands. Unless set, `openai`, as most do.
    provider: Option<ChatProviderName>,
    /// The base URL, to which `/chat/completions` or, for `anthropic`, `/v1/messages` is added.
    /// Unless set, that of the provider.
    #[schemars(length(min = 1))]
    endpoint: Option<String>,
    /// The name of the model: a small, fast one.
    #[schemars(length(min = 1))]
    model: Option<String>,
    /// The endpoint's API key, best as `${NAME}`.
    api_key: Option<String>,
    /// How many candidates the model is shown. Unless set, 24.
    #[schemars(range(min = 2, max = 100))]
    candidates: Option<u64>,
    /// How many seconds a search waits for the model. Unless set, 3.
    #[schemars(range(min = 0.1, max = 60))]
    timeout_seconds: Option<f64>,
}

/// The authorisation server whose tokens open the gateway.
///
/// `${NAME}` and `${NAME:-default}` stand for environment variables.
#[derive(JsonSchema)]
#[schemars(rename = "GatewayOauth", rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields are read by the derive alone")]
pub(crate) struct GatewayOauthFile {
    /// The authorisation server, as it names itself in `iss`: an `https` URL.
    #[schemars(length(min = 1))]
    issuer: Option<String>,
    /// The URL under which clients reach this gateway, such as `https://tools.example.com/mcp`.
    #[schemars(length(min = 1))]
    resource: Option<String>,
    /// What tokens have to have in `aud`. Unless set, the `resource`.
    #[schemars(length(min = 1))]
    audience: Option<String>,
    /// Where the issuer's public keys are. Unless set, its metadata says so.
    #[schemars(length(min = 1))]
    jwks_url: Option<String>,
    /// Scopes that a token has to have, all of them.
    required_scopes: Option<Vec<String>>,
}

/// A text; numbers and booleans are taken as they are written.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
#[expect(dead_code, reason = "the variants are read by the derive alone")]
enum Scalar {
    Text(String),
    Number(f64),
    Boolean(bool),
}

/// How a server is reached.
#[derive(Clone, Copy, PartialEq)]
enum TransportName {
    Stdio,
    Http,
    Sse,
}

choice!(TransportName, "stdio" => Stdio, "http" => Http, "sse" => Sse);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{
        AUDIT, CODE_MODE, EMBEDDINGS, GATEWAY, GATEWAY_OAUTH, JOURNAL, NAMESPACE, OAUTH, POLICY,
        REGISTRY, RULE, SERVER, SUBAGENT, TELEMETRY, TOOL, TOOL_SEARCH, TOP_LEVEL, WHEN,
    };

    fn keys(schema: &Value) -> Vec<&str> {
        let mut keys: Vec<&str> =
            schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        keys.sort_unstable();
        keys
    }

    fn sorted<'k>(keys: &[&'k str]) -> Vec<&'k str> {
        let mut keys = keys.to_vec();
        keys.sort_unstable();
        keys
    }

    #[test]
    fn the_schema_has_the_keys_that_are_read() {
        let schema = json_schema();
        let definitions = &schema["$defs"];
        assert_eq!(keys(&definitions["Server"]), sorted(SERVER));
        assert_eq!(keys(&definitions["OAuth"]), sorted(OAUTH));
        assert_eq!(keys(&definitions["Tool"]), sorted(TOOL));
        assert_eq!(keys(&definitions["ToolSearch"]), sorted(TOOL_SEARCH));
        assert_eq!(keys(&definitions["Embeddings"]), sorted(EMBEDDINGS));
        assert_eq!(keys(&definitions["Subagent"]), sorted(SUBAGENT));
        assert_eq!(keys(&definitions["CodeMode"]), sorted(CODE_MODE));
        assert_eq!(keys(&definitions["RunJournal"]), sorted(JOURNAL));
        assert_eq!(keys(&definitions["Gateway"]), sorted(GATEWAY));
        assert_eq!(keys(&definitions["GatewayOauth"]), sorted(GATEWAY_OAUTH));
        assert_eq!(keys(&definitions["Registry"]), sorted(REGISTRY));
        assert_eq!(keys(&definitions["Namespace"]), sorted(NAMESPACE));
        assert_eq!(keys(&definitions["AuditLogging"]), sorted(AUDIT));
        assert_eq!(keys(&definitions["Telemetry"]), sorted(TELEMETRY));
        assert_eq!(keys(&definitions["Policy"]), sorted(POLICY));
        assert_eq!(keys(&definitions["Rule"]), sorted(RULE));
        assert_eq!(keys(&definitions["When"]), sorted(WHEN));
        assert_eq!(keys(&definitions["Condition"]), sorted(toolgate_policy::OPERATORS));
        assert_eq!(keys(&schema), sorted(TOP_LEVEL));
    }

    #[test]
    fn defaults_and_choices_are_told() {
        let schema = json_schema();
        let search = &schema["$defs"]["ToolSearch"]["properties"];
        assert_eq!(search["maxResults"]["default"], 5);
        assert_eq!(search["enabled"]["default"], "auto");
        assert_eq!(
            search["strategy"]["enum"],
            serde_json::json!(["hybrid", "bm25", "embedding", "keyword", "regex", "subagent"])
        );
        assert_eq!(search["thresholdPercent"]["maximum"], 100);
        assert_eq!(schema["properties"]["mcpServers"]["maxProperties"], 1_000);
    }

    #[test]
    fn every_key_is_described_and_optional() {
        let schema = json_schema();
        let definitions = schema["$defs"].as_object().unwrap().values();
        for object in definitions.chain([&schema]) {
            assert!(object.get("required").is_none(), "{object}");
            for (key, property) in object["properties"].as_object().unwrap() {
                assert!(property["description"].is_string(), "{key}: {property}");
            }
        }
    }
}
