//! Servers that a program adds by itself.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use toolgate_host::ServerSetup;
use toolgate_upstream::{Endpoint, HttpEndpoint, ServerSpec, StdioEndpoint};

/// An MCP server that is a command, which speaks over its stdin and stdout.
///
/// ```
/// # use toolgate::Stdio;
/// let time = Stdio::new("time", "mcp-server-time").arg("--local-timezone").arg("UTC");
/// ```
#[derive(Debug, Clone)]
pub struct Stdio {
    name: String,
    endpoint: StdioEndpoint,
    common: CommonOptions,
}

/// An MCP server at a URL, which speaks Streamable HTTP or HTTP+SSE.
///
/// ```
/// # use toolgate::Http;
/// let docs = Http::new("docs", "https://example.com/mcp").header("Authorization", "Bearer …");
/// ```
#[derive(Debug, Clone)]
pub struct Http {
    name: String,
    endpoint: HttpEndpoint,
    common: CommonOptions,
}

/// A server that a program adds: a [`Stdio`] or an [`Http`].
#[derive(Debug, Clone)]
pub struct AddedServer(pub(crate) ServerSetup);

/// What every server can be told.
#[derive(Debug, Clone, Default)]
struct CommonOptions {
    prefix: Option<String>,
    description: Option<String>,
    defer: Option<bool>,
    is_lazy: bool,
    call_timeout: Option<Duration>,
}

impl CommonOptions {
    fn setup(self, name: &str, endpoint: Endpoint) -> AddedServer {
        let mut spec = ServerSpec::new(name, endpoint);
        if let Some(limit) = self.call_timeout {
            (spec.limits.idle, spec.limits.total) = (limit, limit);
        }
        let mut setup = ServerSetup::new(spec);
        setup.entry.prefix = self.prefix;
        setup.entry.description = self.description;
        setup.entry.defer_loading = self.defer;
        setup.lazy = self.is_lazy;
        AddedServer(setup)
    }
}

/// The options that both kinds of servers have.
macro_rules! common_options {
    ($server:ident) => {
        impl $server {
            /// Replaces the name of the server in the names of its tools. It may be empty.
            #[must_use]
            pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
                self.common.prefix = Some(prefix.into());
                self
            }

            /// Says what the server is for. Search uses it, and models read it.
            #[must_use]
            pub fn description(mut self, text: impl Into<String>) -> Self {
                self.common.description = Some(text.into());
                self
            }

            /// Lists its tools only after somebody searched for them.
            #[must_use]
            pub fn deferred(mut self) -> Self {
                self.common.defer = Some(true);
                self
            }

            /// Lists its tools from the start, in every mode.
            #[must_use]
            pub fn always_loaded(mut self) -> Self {
                self.common.defer = Some(false);
                self
            }

            /// Connects only when one of its tools is called.
            #[must_use]
            pub fn lazy(mut self) -> Self {
                self.common.is_lazy = true;
                self
            }

            /// Sets how long a call may take. Without it a call may take 10 minutes, and one minute
            /// without progress.
            #[must_use]
            pub fn call_timeout(mut self, limit: Duration) -> Self {
                self.common.call_timeout = Some(limit);
                self
            }
        }
    };
}

common_options!(Stdio);
common_options!(Http);

impl Stdio {
    /// A server of this name, started by this command.
    pub fn new(name: impl Into<String>, command: impl Into<String>) -> Self {
        let endpoint = StdioEndpoint {
            command: command.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
        };
        Self { name: name.into(), endpoint, common: CommonOptions::default() }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.endpoint.args.push(argument.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.endpoint.args.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable. A server gets only these, and the few that every program needs.
    /// The value is shown nowhere.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.endpoint.env.insert(name.into(), value.into());
        self
    }

    /// Sets the folder that the command runs in.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.endpoint.cwd = Some(folder.into());
        self
    }
}

impl Http {
    /// A server of this name, at this URL.
    pub fn new(name: impl Into<String>, url: impl Into<String>) -> Self {
        let endpoint = HttpEndpoint::new(url);
        Self { name: name.into(), endpoint, common: CommonOptions::default() }
    }

    /// Sends a header with every request. The value is shown nowhere.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.endpoint.headers.insert(name.into(), value.into());
        self
    }
}

impl From<Stdio> for AddedServer {
    fn from(server: Stdio) -> Self {
        server.common.setup(&server.name, Endpoint::Stdio(server.endpoint))
    }
}

impl From<Http> for AddedServer {
    fn from(server: Http) -> Self {
        server.common.setup(&server.name, Endpoint::Http(server.endpoint))
    }
}
