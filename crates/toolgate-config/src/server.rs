//! One server of the file: its settings beside the transport.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolgate_mcp::{Era, InstanceMode};
use toolgate_policy::{
    CallPath, Label, LabelSet, ServerPolicy, ToolPolicySettings, Trust, Verdict,
};
use url::Url;

use crate::document::{Member, Object, Value};
use crate::expand::ReferenceStyle;
use crate::keys::{self, nearest};
use crate::scope::{FileReader, Location, Scope};
use crate::section::{
    Bounded, Choice as _, Custom, Definitions, Flag, Plain, Section, Setting as _, Word, Wrong,
    choices, custom, flag_schema, integer, map_schema, number, seconds, secret, section,
    strings_schema, text, text_schema, values_schema, whole,
};
use crate::transport::{self, Transport};
use crate::{Problem, ProblemSeverity, Secret, SourcePosition};

/// One server of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerConfig {
    /// Its key in the file: 1 to 128 characters, none of them a control character, unique.
    pub name: String,
    /// How to reach it, or the first problem that prevents it. That problem is in
    /// [`Configuration::problems`](crate::Configuration::problems) too, unless there are too many.
    pub transport: Result<Transport, Problem>,
    /// The lines of `${command:LINE}` whose references are still in the transport: they run when the server
    /// starts ([`CommandTime::Start`](crate::CommandTime::Start)).
    pub commands: BTreeSet<String>,
    /// Everything else.
    pub settings: ServerSettings,
    /// Where it is in the file, for problems that are found later.
    pub place: ServerPlace,
}

/// Where a server is in the file.
///
/// All places are equal: a server that was moved in the file is still the same.
#[derive(Debug, Clone)]
pub struct ServerPlace {
    source: Arc<str>,
    path: String,
    position: SourcePosition,
}

impl ServerPlace {
    /// A problem of the server. `predicate` follows its path.
    pub fn problem(&self, severity: ProblemSeverity, predicate: &str, hint: &str) -> Problem {
        let Self { source, path, position } = self;
        Problem {
            severity,
            source: Arc::clone(source),
            path: path.clone(),
            position: *position,
            message: format!("`{path}` {predicate}"),
            hint: (!hint.is_empty()).then(|| hint.to_owned()),
        }
    }
}

impl PartialEq for ServerPlace {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl From<Problem> for ServerPlace {
    fn from(problem: Problem) -> Self {
        let Problem { source, path, position, .. } = problem;
        Self { source, path, position }
    }
}

/// Which protocol toolgate speaks with a server that knows both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServerProtocol {
    /// The newest that the server knows.
    #[default]
    Newest,
    /// That of the legacy era: until 2025-11-25.
    Legacy,
}

impl ServerProtocol {
    /// The era to try first.
    pub fn era(self) -> Option<Era> {
        match self {
            Self::Newest => None,
            Self::Legacy => Some(Era::Legacy),
        }
    }
}

choices! {
    ServerProtocol: "newest" => Newest, "legacy" => Legacy;
    InstanceMode: "auto" => Auto, "shared" => Shared, "perSession" => PerSession;
}

/// Whose login a server gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServerAuth {
    /// One for all callers, which a person makes with `toolgate login`.
    #[default]
    Shared,
    /// Each caller logs in.
    PerCaller,
}

/// How toolgate gets a token for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LoginGrant {
    /// A person logs in.
    #[default]
    Person,
    /// By the credentials of toolgate itself.
    ClientCredentials,
    /// With a token as an assertion (RFC 7523).
    JwtBearer,
    /// In exchange for a token (RFC 8693).
    TokenExchange,
    /// With an assertion of an identity provider (ID-JAG).
    Enterprise,
}

/// Which nodes of a fleet run a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FleetMode {
    /// Each has its own.
    #[default]
    PerNode,
    /// One, for all.
    Single,
}

choices! {
    FleetMode: "perNode" => PerNode, "single" => Single;
    ServerAuth: "shared" => Shared, "perCaller" => PerCaller;
    LoginGrant: "person" => Person, "clientCredentials" => ClientCredentials, "jwtBearer" => JwtBearer,
        "tokenExchange" => TokenExchange, "enterprise" => Enterprise;
}

section! {
    /// A server: a `command` that starts it, or the `url` where it runs.
    ///
    /// `${NAME}` and `${NAME:-default}` in `command`, `args`, `env`, `envFile`, `cwd`, `url` and
    /// `headers` stand for environment variables. `${keychain:NAME}`, `${file:PATH}` and
    /// `${command:LINE}` stand for values that are stored elsewhere; `command` takes no
    /// `${keychain:NAME}`, because everybody sees the name of a program.
    pub struct ServerSettings as "Server" keys {
        /// The transport. The default is `stdio` with a `command`, and `http` with a `url`. With
        /// `http`, toolgate also tries the older `sse` if the server does not accept the newer
        /// transport.
        "type" => |_| json!({ "type": "string", "enum": ["stdio", "http", "sse"] });
        /// The program that starts the server.
        "command" => text_schema;
        /// The arguments of the program.
        "args" => strings_schema;
        /// Environment variables for the program, beside the few that every server gets.
        "env" => values_schema;
        /// The names of toolgate's own environment variables that the program gets too.
        "inheritEnv" => strings_schema;
        /// The folder in which the program starts.
        "cwd" => text_schema;
        /// The Streamable HTTP or HTTP+SSE endpoint of the server.
        "url" => text_schema;
        /// Headers for every request to the endpoint.
        "headers" => values_schema;
        /// The opposite of `enabled`.
        "disabled" => flag_schema;
        /// What holds for all of its tools, as the `mcp_toolset` of Anthropic's Messages API spells
        /// it. `deferLoading` wins over it.
        "default_config" => Definitions::reference::<ToolsetConfig>;
        /// The same for single tools, by the names that the server gives them. It wins over
        /// `default_config`, and `tools` wins over it.
        "configs" => map_schema::<ToolsetConfig>;
    } {
        /// A file with lines of `NAME=value`: more environment variables for the program. `env` wins
        /// over it. A relative path starts at the folder of this file.
        "envFile" => env_file: Option<PathBuf> = None, custom(
            text_schema, |scope, member| scope.text(member).map(PathBuf::from),
        );
        /// Whether toolgate uses the server.
        "enabled" => enabled: bool = true, Flag(Wrong::Refused);
        /// Whose login the server gets. `"shared"`: one login for all callers, which a person makes with
        /// `toolgate login`. `"perCaller"`: each caller logs in, and their calls use their own login alone.
        "auth" => auth: ServerAuth = ServerAuth::Shared, custom(|_| ServerAuth::schema(), read_auth);
        /// How to log in (`toolgate login`). Needed only if the server's authorization server does
        /// not register every client, or asks for the wrong scopes.
        "oauth" => oauth: LoginConfig = LoginConfig::default(),
            custom(Definitions::reference::<LoginConfig>, read_login);
        /// The beginning of the exposed names of its tools; an empty string for no prefix. The
        /// default is the name of the server.
        "prefix" => prefix: Option<String> = None, Plain {
            longest: 32,
            fits: |letter| letter.is_ascii_alphanumeric() || letter == '_',
            expected: "at most 32 letters, digits and underscores",
            pattern: Some("^[A-Za-z0-9_]{0,32}$"),
        };
        /// What the server is for, in a few words. Search uses it.
        "description" => description: Option<String> = None, Plain {
            longest: 2_000, fits: |_| true, expected: "a string of at most 2000 characters", pattern: None,
        };
        /// Whether its tools are deferred. Overrides the thresholds of `toolSearch`.
        "deferLoading" => defer_loading: Option<bool> = None, Flag(Wrong::Ignored);
        /// Whether toolgate starts the server only when it is needed.
        "lazy" => lazy: bool = false, Flag(Wrong::Ignored);
        /// After how many seconds without a call toolgate stops the server; 0 for never. The next
        /// call starts it again. The default is 1800 for a lazy server, and never for others.
        "idleTimeoutSeconds" => idle_timeout: Option<Duration> = None, seconds(0.0, 31_536_000.0);
        /// Which sessions share a process of the server, or a session with it over HTTP. `"auto"`:
        /// all, until the server asks one of them something (elicitation, sampling, roots) outside
        /// of a response; then each session has its own. `"shared"`: all. `"perSession"`: each
        /// session has its own.
        "instances" => instances: InstanceMode = InstanceMode::Auto,
            Word::<InstanceMode>(Wrong::Ignored);
        /// Which protocol toolgate speaks with a server that knows several. `"newest"`: the newest.
        /// `"legacy"`: one until 2025-11-25, for a server whose tools can ask their client only there.
        "protocol" => protocol: ServerProtocol = ServerProtocol::Newest,
            Word::<ServerProtocol>(Wrong::Ignored);
        /// Which nodes of a fleet run the program. `"perNode"`: each node has its own process. `"single"`: one node
        /// has the process, and the others send their calls to that node. Without `fleet` in the configuration it
        /// changes nothing.
        "fleet" => fleet: FleetMode = FleetMode::PerNode, Word::<FleetMode>(Wrong::Refused);
        /// How many seconds the server may take until the connection is ready.
        "connectTimeoutSeconds" => connect_timeout: Duration = Duration::from_secs(30), timeout();
        /// How many seconds a call may take without a sign of progress.
        "callIdleTimeoutSeconds" => call_idle_timeout: Duration = Duration::from_mins(1), timeout();
        /// How many seconds a call may take in all.
        "callTotalTimeoutSeconds" => call_total_timeout: Duration = Duration::from_mins(10), timeout();
        /// The largest result of a call in bytes.
        "maxResultBytes" => max_result_bytes: usize = 16 * 1024 * 1024, integer(1_024, 1_073_741_824);
        /// Whether toolgate checks arguments against the tool's schema before the call.
        "validateArguments" => validate_arguments: bool = true, Flag(Wrong::Ignored);
        /// The only tools to use, by the names that the server gives them.
        "includeTools" => include_tools: Option<BTreeSet<String>> = None, custom(strings_schema, names);
        /// Tools not to use, by the names that the server gives them.
        "excludeTools" => exclude_tools: BTreeSet<String> = BTreeSet::new(), custom(strings_schema, names);
        /// Settings of single tools, by the names that the server gives them.
        "tools" => tools: BTreeMap<String, ToolConfig> = BTreeMap::new(),
            custom(map_schema::<ToolConfig>, read_tools);
        /// Labels of its tools. The results are `private` or `untrusted`; an `egress` tool sends
        /// its arguments out of your control.
        "labels" => labels: LabelSet = LabelSet::EMPTY, labels();
        /// Whether the server is told with each call who calls (`toolgate/caller` in `_meta`): the
        /// caller's name, and whether a script makes the call.
        "tellCaller" => tell_caller: bool = false, Flag(Wrong::Becomes(false));
        /// Whether the server's annotations count with `"claims": "trusted"`. The default is false.
        "trusted" => trust: Trust = Trust::Unknown, trusted();
    }
}

section! {
    /// The settings of one tool.
    pub struct ToolConfig as "Tool" {
        /// Whether the tool is deferred. Overrides the setting of the server.
        "deferLoading" => defer_loading: Option<bool> = None, Flag(Wrong::Ignored);
        /// Whether toolgate checks its arguments. Overrides the setting of the server.
        "validateArguments" => validate_arguments: Option<bool> = None, Flag(Wrong::Ignored);
        /// Whether its calls are allowed, need an approval, or are denied.
        "approval" => approval: Option<Verdict> = None, Word::<Verdict>(Wrong::Refused);
        /// Labels of the tool. They replace the labels of the server.
        "labels" => labels: Option<LabelSet> = None, labels();
        /// The ways in which the tool may be called: `direct` (by a client, also through
        /// `call_tool`), `script` (by a script of `run_code`), or both. The default is both.
        "allowedCallers" => allowed_callers: Vec<CallPath> = Vec::new(),
            custom(|_| CallPath::list_schema(), allowed_callers);
    }
}

section! {
    /// The settings of tools, as the `mcp_toolset` of Anthropic's Messages API spells them.
    pub(crate) struct ToolsetConfig as "Toolset" {
        /// Whether toolgate uses the tool. The default is true.
        "enabled" => enabled: Option<bool> = None, Flag(Wrong::Refused);
        /// Whether the tool is deferred.
        "defer_loading" => defer_loading: Option<bool> = None, Flag(Wrong::Ignored);
    }
}

section! {
    /// How to log in to a server. All keys are optional if the authorization server registers every
    /// client.
    ///
    /// `${NAME}` and `${NAME:-default}` in all texts stand for environment variables.
    pub struct LoginConfig as "OAuth" {
        /// The client id of toolgate, if it is registered at the authorization server.
        "clientId" => client_id: Option<String> = None, text();
        /// The secret of `clientId`, preferably as `${NAME}`.
        "clientSecret" => client_secret: Option<Secret> = None, secret();
        /// The `https` URL of a document that describes toolgate (Client ID Metadata Document), for
        /// authorization servers that support it.
        "clientMetadataUrl" => client_metadata_url: Option<String> = None,
            custom(text_schema, metadata_url);
        /// The scopes to request, instead of the scopes that the server names.
        "scopes" => scopes: Vec<String> = Vec::new(), custom(strings_schema, scopes);
        /// How toolgate gets a token. `"person"`: a person logs in. `"clientCredentials"`: with `clientId` and
        /// `clientSecret` or `privateKey`. `"jwtBearer"`: with the `subjectToken` as an assertion (RFC 7523), such as that
        /// of a workload. `"tokenExchange"`: in exchange for the `subjectToken` (RFC 8693). `"enterprise"`: an identity
        /// provider exchanges the `subjectToken`, an ID token, for an assertion (ID-JAG).
        "grant" => grant: LoginGrant = LoginGrant::Person, Word::<LoginGrant>(Wrong::Refused);
        /// The private key of `clientId` in place of a secret: PKCS #8 in PEM, preferably as `${NAME}`.
        "privateKey" => private_key: Option<Secret> = None, secret();
        /// A token that toolgate has, preferably as `${NAME}`.
        "subjectToken" => subject_token: Option<Secret> = None, secret();
        /// A file with the token, which is read each time: for tokens that somebody else renews.
        "subjectTokenFile" => subject_token_file: Option<PathBuf> = None, custom(
            text_schema, |scope, member| scope.text(member).map(PathBuf::from),
        );
        /// The type of the token, for `tokenExchange`. The default is that of access tokens.
        "subjectTokenType" => subject_token_type: Option<String> = None, text();
        /// The token endpoint of the identity provider, for `enterprise`: an `https` URL.
        "idpTokenEndpoint" => idp_token_endpoint: Option<String> = None, text();
        /// The client id of toolgate at the identity provider.
        "idpClientId" => idp_client_id: Option<String> = None, text();
        /// The secret of `idpClientId`.
        "idpClientSecret" => idp_client_secret: Option<Secret> = None, secret();
        /// The port of 127.0.0.1 to which the browser is redirected. The default is a free port.
        "redirectPort" => redirect_port: Option<u16> = None, port();
    }
}

impl LoginConfig {
    /// What the grant needs, and is not there.
    fn missing(&self) -> Vec<&'static str> {
        let has_token = self.subject_token.is_some() || self.subject_token_file.is_some();
        let has_key = self.client_secret.is_some() || self.private_key.is_some();
        let (id, endpoint) = (self.client_id.is_some(), self.idp_token_endpoint.is_some());
        let is_enterprise = self.grant == LoginGrant::Enterprise;
        let is_client = self.grant == LoginGrant::ClientCredentials;
        let needs_token = !is_client && self.grant != LoginGrant::Person;
        let all = [
            (is_client && !id, "`clientId`"),
            (is_client && !has_key, "`clientSecret` or `privateKey`"),
            (needs_token && !has_token, "`subjectToken` or `subjectTokenFile`"),
            (is_enterprise && !endpoint, "`idpTokenEndpoint`"),
        ];
        all.into_iter().filter(|(is_missing, _)| *is_missing).map(|(_, what)| what).collect()
    }
}

impl ServerSettings {
    /// After how long a lazy server is stopped, unless the file says otherwise.
    pub const LAZY_IDLE_TIMEOUT: Duration = Duration::from_mins(30);

    /// Whether a tool exists for toolgate, by the name that the server gives it. Other tools are
    /// neither listed nor callable.
    pub fn admits(&self, tool: &str) -> bool {
        !self.exclude_tools.contains(tool)
            && self.include_tools.as_ref().is_none_or(|include| include.contains(tool))
    }

    /// What the server says of approvals, labels and trust, if anything.
    pub(crate) fn policy(&self, file: &FileReader<'_>, at: &Location) -> Option<ServerPolicy> {
        let tools = self.tools.iter().map(|(name, tool)| {
            let first = tool.allowed_callers.first().copied();
            let only_from = first.filter(|only| tool.allowed_callers.iter().all(|it| it == only));
            let (approval, labels) = (tool.approval, tool.labels);
            let settings = ToolPolicySettings { approval, labels, only_from };
            (name.as_str().into(), settings)
        });
        let tools: BTreeMap<_, _> =
            tools.filter(|(_, tool)| *tool != ToolPolicySettings::default()).collect();
        let is_silent = self.trust == Trust::Unknown && self.labels.is_empty() && tools.is_empty();
        (!is_silent).then(|| ServerPolicy {
            trust: self.trust,
            labels: self.labels,
            tools,
            origin: Some(file.origin(at)),
        })
    }
}

fn timeout() -> Bounded<Duration> {
    seconds(0.1, 86_400.0)
}

fn port() -> Bounded<u16> {
    whole(1, u16::MAX.into())
}

/// The ways in which a tool may be called. An empty list would allow none of them.
fn allowed_callers(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<Vec<CallPath>> {
    let ways: Option<Vec<CallPath>> = scope.words(member);
    if ways.as_ref().is_some_and(Vec::is_empty) {
        scope.error(member, "is empty", "to deny every call, write `\"approval\": \"deny\"`");
    }
    ways
}

fn labels() -> Custom<LabelSet> {
    custom(|_| Label::list_schema(), read_labels)
}

fn read_labels(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<LabelSet> {
    scope.words::<Label, _>(member)
}

pub(crate) fn trusted() -> Custom<Trust> {
    custom(flag_schema, |scope, member| {
        let trusted = Flag(Wrong::Refused).read(scope, member)?;
        Some(if trusted { Trust::Trusted } else { Trust::Unknown })
    })
}

fn names(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<BTreeSet<String>> {
    Some(scope.strings(member)?.into_iter().map(|(name, _)| name.to_owned()).collect())
}

/// Whether an object says how a server is reached.
pub(crate) fn has_transport(object: &Object<'_>) -> bool {
    transport::KEYS.iter().any(|key| object.get(key).is_some())
}

/// Whether a member is a server, where other things may be beside the servers.
pub(crate) fn is_server(member: &Member<'_>) -> bool {
    matches!(&member.node.value, Value::Object(entry) if has_transport(entry))
}

/// How the client of an entry writes references: that of opencode under `mcp` or `mcp.servers`, that of Crush
/// under `mcp`.
pub(crate) fn reference_style(container: &str, member: &Member<'_>) -> ReferenceStyle {
    let Value::Object(entry) = &member.node.value else { return ReferenceStyle::Plain };
    let text = |key: &str| match entry.get(key).map(|it| &it.node.value) {
        Some(Value::String(text)) => Some(&**text),
        _ => None,
    };
    match (container, text("type")) {
        ("mcp" | "servers", Some("local" | "remote")) => ReferenceStyle::Braces,
        ("mcp", Some("stdio" | "http" | "sse")) => ReferenceStyle::Shell,
        _ => ReferenceStyle::Plain,
    }
}

/// Reads a server. A mistake in it costs no other server.
pub(crate) fn read(
    scope: &mut Scope<'_, '_>,
    member: &Member<'_>,
    is_gemini: bool,
) -> ServerConfig {
    let (name, mut settings) = (member.key.to_string(), ServerSettings::default());
    let at = scope.at.value(member);
    let key = Location { offset: member.key_offset, ..at.clone() };
    let place = scope.file.problem(ProblemSeverity::Warning, &key, "", "").into();
    let Value::Object(object) = &member.node.value else {
        let kind = member.node.value.kind();
        let predicate = format!("must be an object with a `command` or a `url`, but is {kind}");
        let problem = scope.file.problem(ProblemSeverity::Error, &at, &predicate, "");
        scope.file.push(problem.clone());
        let commands = BTreeSet::new();
        return ServerConfig { name, transport: Err(problem), commands, settings, place };
    };
    let mut scope = Scope::new(object, at, scope.file);
    scope.report_replaced();
    read_settings(&mut scope, &mut settings);
    let at = Location { offset: member.key_offset, ..scope.at.clone() };
    let env_file = settings.env_file.as_deref().and_then(Path::to_str);
    let transport = transport::read(&mut scope, &at, is_gemini, env_file);
    let commands = std::mem::take(&mut scope.file.expander.lines);
    if let (ServerAuth::PerCaller, Some(transport)) = (settings.auth, &transport) {
        check_auth(&mut scope, &at, transport);
    }
    if let (FleetMode::Single, Some(transport)) = (settings.fleet, &transport) {
        check_fleet(&mut scope, &at, transport, settings.instances);
    }
    report_unknown(&mut scope);
    let transport = match (transport, scope.first_error) {
        (Some(transport), None) => Ok(transport),
        (_, Some(problem)) => Err(problem),
        // Every reason is recorded, so this does not happen. If it did, the server must not seem to
        // work.
        (None, None) => Err(scope.file.problem(ProblemSeverity::Error, &at, "cannot be read", "")),
    };
    ServerConfig { name, transport, commands, settings, place }
}

/// Reads the settings of toolgate and those of other clients that mean the same. A setting that only
/// tunes keeps its default when it is wrong, with a warning. One that protects (`disabled`,
/// `excludeTools`, `approval`, `labels`) is an error instead, so that a mistake in it never lets more
/// through.
fn read_settings(scope: &mut Scope<'_, '_>, settings: &mut ServerSettings) {
    let object = scope.object;
    let is = |key: &str, wanted: bool| {
        object
            .get(key)
            .is_some_and(|it| matches!(it.node.value, Value::Boolean(value) if value == wanted))
    };
    if is("enabled", false) || is("disabled", true) || is("isActive", false) {
        scope.error_severity = ProblemSeverity::Warning;
    }
    settings.read_keys(scope);
    let disabled = scope.setting("disabled", &Flag(Wrong::Refused)) == Some(true);
    let inactive = scope.setting("isActive", &Flag(Wrong::Ignored)) == Some(false);
    settings.enabled &= !disabled && !inactive;
    if settings.defer_loading.is_none() {
        let always_load = scope.setting("alwaysLoad", &Flag(Wrong::Ignored));
        settings.defer_loading = always_load.map(|load| !load);
    }
    if object.get("connectTimeoutSeconds").is_none() {
        let milliseconds = |scope: &mut Scope<'_, '_>| {
            scope.setting("startup_timeout_ms", &whole(100, 86_400_000)).map(Duration::from_millis)
        };
        let foreign = scope.setting("startup_timeout_sec", &timeout());
        settings.connect_timeout =
            foreign.or_else(|| milliseconds(scope)).unwrap_or(settings.connect_timeout);
    }
    if object.get("callIdleTimeoutSeconds").is_none() {
        let foreign = scope.setting("tool_timeout_sec", &timeout());
        let milliseconds = |scope: &mut Scope<'_, '_>| {
            let mut keys = ["toolTimeoutMs", "requestTimeoutMs"].into_iter();
            keys.find_map(|key| scope.setting(key, &whole(1, 86_400_000)))
                .map(Duration::from_millis)
        };
        let foreign = foreign.or_else(|| milliseconds(scope)).or_else(|| foreign_timeout(scope));
        settings.call_idle_timeout = foreign.unwrap_or(settings.call_idle_timeout);
    }
    // Other clients have one limit; where it is longer than our total, the total follows.
    if object.get("callTotalTimeoutSeconds").is_none() {
        settings.call_total_timeout = settings.call_total_timeout.max(settings.call_idle_timeout);
    }
    // A server may hold state, so that by default only a lazy one is stopped. Zero means never.
    settings.idle_timeout = match settings.idle_timeout {
        None => settings.lazy.then_some(ServerSettings::LAZY_IDLE_TIMEOUT),
        Some(timeout) => (!timeout.is_zero()).then_some(timeout),
    };
    for key in ["disabled_tools", "disabledTools"] {
        let names = object.get(key).and_then(|member| names(scope, member));
        settings.exclude_tools.extend(names.unwrap_or_default());
    }
    // GitHub Copilot has a list of names under `tools`, of which `*` is all.
    let listed = object.get("tools").filter(|it| matches!(it.node.value, Value::Array(_)));
    for member in object.get("enabled_tools").into_iter().chain(listed) {
        let names = names(scope, member).filter(|it| member.key != "tools" || !it.contains("*"));
        if let Some(names) = names {
            settings.include_tools.get_or_insert_default().extend(names);
        }
    }
    read_toolset(scope, settings);
}

/// Reads `default_config` and `configs`, and maps them to the settings of toolgate. A tool is used
/// only if neither spelling takes it away.
fn read_toolset(scope: &mut Scope<'_, '_>, settings: &mut ServerSettings) {
    let object = scope.object;
    let hint = "write `{ \"enabled\": true, \"defer_loading\": false }`";
    let of_all = object.get("default_config").and_then(|member| toolset(scope, member, hint));
    let of_all = of_all.unwrap_or_default();
    if settings.defer_loading.is_none() {
        settings.defer_loading = of_all.defer_loading;
    }
    let hint = "write `\"configs\": { \"tool_name\": { \"defer_loading\": false } }`";
    let single = object.get("configs").and_then(|member| {
        scope.nested(member, hint, |scope| {
            let members = scope.object.members.iter();
            let read =
                |member: &Member<'_>| Some((member.key.to_string(), toolset(scope, member, "")?));
            members.filter_map(read).collect::<Vec<(String, ToolsetConfig)>>()
        })
    });
    let single = single.unwrap_or_default();
    if of_all.enabled == Some(false) {
        let used = single.iter().filter(|(_, tool)| tool.enabled == Some(true));
        let mut used: BTreeSet<String> = used.map(|(name, _)| name.clone()).collect();
        if let Some(include) = &settings.include_tools {
            used.retain(|name| include.contains(name));
        }
        settings.include_tools = Some(used);
    }
    for (name, tool) in single {
        if tool.enabled == Some(false) {
            settings.exclude_tools.insert(name.clone());
        }
        if let Some(defer_loading) = tool.defer_loading {
            let own = settings.tools.entry(name).or_default();
            own.defer_loading = own.defer_loading.or(Some(defer_loading));
        }
    }
}

fn toolset(scope: &mut Scope<'_, '_>, member: &Member<'_>, hint: &str) -> Option<ToolsetConfig> {
    scope.nested(member, hint, |scope| {
        // A tool that was to be taken away must not stay because of a letter. Other keys are Anthropic's.
        let means_enabled = |key: &str| nearest(key, &["enabled"]).is_some();
        scope.unknown(ProblemSeverity::Error, ToolsetConfig::KEYS, |key| !means_enabled(key));
        scope.unknown(ProblemSeverity::Warning, ToolsetConfig::KEYS, means_enabled);
        let mut toolset = ToolsetConfig::default();
        toolset.read_keys(scope);
        toolset
    })
}

/// `timeout` is in milliseconds for most clients and in seconds for some. Nobody gives a tool less
/// than a second, so a number under 1,000 is in seconds; with a key of the clients that count
/// seconds, up to their maximum of an hour.
fn foreign_timeout(scope: &mut Scope<'_, '_>) -> Option<Duration> {
    const MARKS_OF_SECONDS: [&str; 3] = ["alwaysAllow", "autoApprove", "disabledTools"];
    let number = scope.setting("timeout", &number(1.0, 86_400_000.0))?;
    let counts_seconds = MARKS_OF_SECONDS.iter().any(|key| scope.object.get(key).is_some());
    let is_seconds = number < 1_000.0 || (counts_seconds && number <= 3_600.0);
    Some(Duration::from_secs_f64(if is_seconds { number } else { number / 1_000.0 }))
}

fn read_tools(
    scope: &mut Scope<'_, '_>,
    member: &Member<'_>,
) -> Option<BTreeMap<String, ToolConfig>> {
    if matches!(member.node.value, Value::Array(_)) {
        return None;
    }
    let hint = "write `\"tools\": { \"tool_name\": { \"deferLoading\": false } }`";
    scope.nested(member, hint, |scope| {
        let object = scope.object;
        let tools = object.members.iter().filter_map(|member| {
            let tool = scope.nested(member, "", |scope| {
                let mut tool = ToolConfig::default();
                tool.read_keys(scope);
                // Codex has its own approvals under this key.
                let is_foreign = |key: &str| key == "approval_mode";
                scope.unknown(ProblemSeverity::Warning, ToolConfig::KEYS, is_foreign);
                tool
            });
            Some((member.key.to_string(), tool?))
        });
        tools.collect()
    })
}

/// Reads whose login a server gets. A mistake is an error: callers would share a login. Other clients have
/// an object here.
fn read_auth(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<ServerAuth> {
    if matches!(member.node.value, Value::Object(_)) {
        return None;
    }
    Word::<ServerAuth>(Wrong::Refused).read(scope, member)
}

/// A login of a caller is of no use where something else authorizes the requests of all.
fn check_auth(scope: &mut Scope<'_, '_>, at: &Location, transport: &Transport) {
    let problem = match transport {
        Transport::Stdio { .. } => Some(("has a `command`", "callers log in at a `url` alone")),
        Transport::Http { headers, .. } => headers
            .keys()
            .any(|name| name.eq_ignore_ascii_case("authorization"))
            .then_some(("has an `Authorization` header", "remove it: all callers would share it")),
    };
    if let Some((predicate, hint)) = problem {
        let predicate = format!("has `\"auth\": \"perCaller\"`, and {predicate}");
        scope.complain(ProblemSeverity::Error, at, &predicate, hint);
    }
}

/// One process serves all nodes only if sessions share it. What has a URL is one already.
fn check_fleet(
    scope: &mut Scope<'_, '_>,
    at: &Location,
    transport: &Transport,
    instances: InstanceMode,
) {
    let single = "has `\"fleet\": \"single\"`, and";
    if matches!(transport, Transport::Http { .. }) {
        let hint = "remove `fleet`: all nodes reach the `url`";
        let predicate = format!("{single} a `url`");
        return scope.complain(ProblemSeverity::Warning, at, &predicate, hint);
    }
    if instances == InstanceMode::PerSession {
        let hint = "remove one of them: each session would have its own process";
        let predicate = format!("{single} `\"instances\": \"perSession\"`");
        scope.complain(ProblemSeverity::Error, at, &predicate, hint);
    }
}

/// Reads how to log in. A mistake is an error of the server: it would log in as another client.
fn read_login(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<LoginConfig> {
    // Some clients switch it on or off. Here a server that needs a login says so itself.
    if matches!(member.node.value, Value::Boolean(_)) {
        return None;
    }
    let hint = "write `\"oauth\": { \"clientId\": \"…\" }`, or leave it out";
    scope.nested(member, hint, |scope| {
        let is_foreign = |key: &str| keys::is_listed(keys::OAUTH_FOREIGN, key);
        scope.unknown(ProblemSeverity::Warning, LoginConfig::KEYS, is_foreign);
        let mut login = LoginConfig::default();
        login.read_keys(scope);
        if login.redirect_port.is_none() {
            login.redirect_port = scope.setting("callbackPort", &port());
        }
        if login.client_secret.is_some() && login.client_id.is_none() {
            let hint = "write the `clientId` that the secret belongs to";
            let (error, at) = (ProblemSeverity::Error, scope.at.clone());
            scope.complain(error, &at, "has a `clientSecret` but no `clientId`", hint);
        }
        for missing in login.missing() {
            let (error, at) = (ProblemSeverity::Error, scope.at.clone());
            let predicate = format!("has `\"grant\": \"{}\"` but no {missing}", login.grant.word());
            scope.complain(error, &at, &predicate, "");
        }
        login
    })
}

/// The URL is the client's id, and authorization servers take no other kind.
fn metadata_url(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<String> {
    let text = scope.text(member)?;
    let url = Url::parse(&text).ok();
    if url.is_some_and(|url| url.scheme() == "https" && url.has_host() && url.path() != "/") {
        return Some(text);
    }
    let hint = "write its whole URL, such as `https://example.com/client.json`";
    scope.error(member, "is not the `https` URL of a document", hint);
    None
}

/// A list, or one text with spaces between, as in the protocol.
fn scopes(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<Vec<String>> {
    if matches!(member.node.value, Value::String(_)) {
        return Some(scope.text(member)?.split_whitespace().map(str::to_owned).collect());
    }
    Some(scope.strings(member)?.into_iter().map(|(text, _)| text.to_owned()).collect())
}

/// Warns of keys without a meaning here and of those whose meaning is missing.
fn report_unknown(scope: &mut Scope<'_, '_>) {
    for (key, hint) in keys::SERVER_UNSUPPORTED {
        if let Some(member) = scope.object.get(key) {
            let at = scope.at.key(member);
            let predicate = "is not supported; it is ignored";
            scope.complain(ProblemSeverity::Warning, &at, predicate, hint);
        }
    }
    // This mistake is already reported as the reason that the server has no transport.
    let misspelt = transport::misspelt(scope.object).map(|(member, _)| member.key.clone());
    scope.unknown(ProblemSeverity::Warning, ServerSettings::KEYS, |key| {
        keys::is_of_other_client(key)
            || keys::SERVER_UNSUPPORTED.iter().any(|(unsupported, _)| *unsupported == key)
            || misspelt.as_deref() == Some(key)
    });
}
