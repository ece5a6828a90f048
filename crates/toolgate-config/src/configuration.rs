//! The settings that the rest of toolgate works with.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use toolgate_policy::{LabelSet, PolicySettings, Trust};

use crate::{
    Approval, AuditLogging, CodeMode, Gateway, Namespace, Problem, Registry, Secret, TelemetryKey,
    ToolSearch,
};

/// What a configuration file says, as far as it can be used.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Configuration {
    /// The servers in the order of the file, the unusable and the disabled ones included, so that
    /// a status page can show them.
    pub servers: Vec<ServerEntry>,
    /// When tools are deferred and how they are found.
    pub tool_search: ToolSearch,
    /// Whether scripts may run, and what they may use.
    pub code_mode: CodeMode,
    /// Who may call what: the `policy` key, and what the servers and their tools say of approvals,
    /// labels and trust. What is not understood of it denies.
    pub policy: PolicySettings,
    /// How decisions and calls are recorded.
    pub audit: AuditLogging,
    /// Where traces and metrics go.
    pub telemetry: TelemetryKey,
    /// Who may come in over the network, and what they may ask.
    pub gateway: Gateway,
    /// Where servers that are not in the file can be found.
    pub registry: Registry,
    /// Folders of skills, as they are written; relative ones are meant from the file's own folder.
    pub skills: Vec<PathBuf>,
    /// Sets of servers that are served apart, in the order of the file.
    pub namespaces: Vec<Namespace>,
    /// What is wrong with the file, in the order of the file; at most
    /// [`MAX_PROBLEMS`](crate::MAX_PROBLEMS).
    pub problems: Vec<Problem>,
}

/// One server of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerEntry {
    /// Its key in the file: 1 to 128 characters, none of them a control character, unique.
    pub name: String,
    /// How to reach it, or the first problem that prevents it. That problem is in
    /// [`Configuration::problems`] too, unless there are too many.
    pub transport: Result<Transport, Problem>,
    /// Everything else.
    pub settings: ServerSettings,
}

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
        /// Variables to set for it, beside those it inherits.
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

/// What an endpoint speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HttpDialect {
    /// Streamable HTTP, or HTTP+SSE where it does not take that.
    #[default]
    Any,
    /// HTTP+SSE, the older transport.
    Sse,
}

/// The settings of a server beside its transport.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    /// What its tools' names begin with; empty for nothing. Unless set, the server's name.
    pub prefix: Option<String>,
    /// What the server is for, shown where its own text would be.
    pub description: Option<String>,
    /// Whether its tools are deferred, whatever the thresholds say.
    pub defer_loading: Option<bool>,
    /// Whether the server is started only when it is needed.
    pub lazy: bool,
    /// How long nobody calls the server before it is stopped, to be started again with the next
    /// call. Never, if `None`.
    pub idle_timeout: Option<Duration>,
    /// Whether the server is served at all.
    pub enabled: bool,
    /// How long the server may take to start and answer the handshake.
    pub connect_timeout: Duration,
    /// How long a call may take without a sign of progress.
    pub call_idle_timeout: Duration,
    /// How long a call may take at all.
    pub call_total_timeout: Duration,
    /// The largest result that is accepted from a call.
    pub max_result_bytes: usize,
    /// Whether arguments are checked against a tool's schema before the call.
    pub validate_arguments: bool,
    /// Which of its tools exist for toolgate.
    pub tool_filter: ToolFilter,
    /// Whether what it says of its tools is believed.
    pub trust: Trust,
    /// What is said of the data of its tools, unless they have their own labels.
    pub labels: LabelSet,
    /// Settings of single tools, by the name that the server gives them.
    pub tools: BTreeMap<String, ToolSettings>,
    /// How to log in, where the server asks for it.
    pub oauth: OAuth,
}

/// How to log in at a server. Nothing of it is needed where the server's authorization server
/// registers whoever comes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OAuth {
    /// Who we are, where that was agreed beforehand.
    pub client_id: Option<String>,
    /// The secret that goes with it.
    pub client_secret: Option<Secret>,
    /// The `https` URL of a document that says who we are.
    pub client_metadata_url: Option<String>,
    /// What to ask for, in place of what the server says that it needs.
    pub scopes: Vec<String>,
    /// The port of 127.0.0.1 that the browser comes back to; a free one where unset.
    pub redirect_port: Option<u16>,
}

/// Which tools of a server exist for toolgate: the others are neither listed nor callable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// Only these, if set.
    pub include: Option<BTreeSet<String>>,
    /// Not these, even if included.
    pub exclude: BTreeSet<String>,
}

/// The settings of one tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolSettings {
    /// Whether the tool is deferred, whatever its server says.
    pub defer_loading: Option<bool>,
    /// Whether its arguments are checked, whatever its server says.
    pub validate_arguments: Option<bool>,
    /// Whether its calls need an approval.
    pub approval: Option<Approval>,
    /// What is said of its data, whatever its server says.
    pub labels: Option<LabelSet>,
}

impl ToolFilter {
    /// Whether a tool exists for toolgate, by the name that the server gives it.
    pub fn admits(&self, tool: &str) -> bool {
        !self.exclude.contains(tool)
            && self.include.as_ref().is_none_or(|include| include.contains(tool))
    }
}

impl ServerSettings {
    /// After how long a lazy server is stopped, unless it is said.
    pub const LAZY_IDLE_TIMEOUT: Duration = Duration::from_mins(30);
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            prefix: None,
            description: None,
            defer_loading: None,
            lazy: false,
            idle_timeout: None,
            enabled: true,
            connect_timeout: Duration::from_secs(30),
            call_idle_timeout: Duration::from_mins(1),
            call_total_timeout: Duration::from_mins(10),
            max_result_bytes: 16 * 1024 * 1024,
            validate_arguments: true,
            tool_filter: ToolFilter::default(),
            trust: Trust::default(),
            labels: LabelSet::EMPTY,
            tools: BTreeMap::new(),
            oauth: OAuth::default(),
        }
    }
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
