//! From an `mcpServers` file, servers and functions to a running host.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use thiserror::Error;
use toolgate_catalog::ServerName;
use toolgate_config::{ExposureMode, Format};
use toolgate_host::{HostSettings, ServerSetup};
use toolgate_mcp::nesting;
use toolgate_store::Store;

use crate::{
    AddedServer, Approval, ApprovalQuestion, FunctionTool, Host, SessionMode,
    approval::ApprovalCallback,
    function_server,
    host_config::{HostConfig, HostConfigError, HostEnvironment, configuration_name},
    role::{self, RoleProblem},
};

/// Collects what a [`Host`] is made of, in any order, and starts it.
///
/// The library takes nothing from the computer by itself. What the program leaves out is not used:
/// without [`state_folder`](Self::state_folder) nothing is cached, recorded or remembered, and without
/// [`environment`](Self::environment) a configuration has no variables.
#[must_use = "`start` makes the host"]
pub struct HostBuilder {
    source: Option<ConfigSource>,
    servers: Vec<ServerSetup>,
    functions: Vec<FunctionTool>,
    environment: HostEnvironment,
    namespace: Option<String>,
    mode: Option<ExposureMode>,
    approval: Option<ApprovalCallback>,
    scripts: bool,
}

/// The text of a configuration, which is read once the environment is known.
struct ConfigSource {
    text: String,
    format: Format,
    path: Option<PathBuf>,
}

/// Why a host did not start. Nothing is left behind.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The configuration cannot be used.
    #[error("{0}")]
    Configuration(String),
    /// [`init`](crate::init) was not called, or too late.
    #[error(
        "no script can run: {}; or switch scripts off with `HostBuilder::without_scripts`",
        if *.is_late {
            "`toolgate::init()` was called inside of a Tokio runtime. Call it first in `main`, and start \
             the runtime after it (`#[tokio::main]` starts it before)"
        } else {
            "this program is also the worker of its scripts, and did not call `toolgate::init()`. Call it \
             first in `main`"
        }
    )]
    NotInitialized {
        /// Whether it was called too late.
        is_late: bool,
    },
    /// This process was started to run a script or a server, and the program did not let it.
    #[error(
        "this process was started as a worker of a script or of a server, and not to be the program \
         again: call `toolgate::init()` first in `main`, before everything else"
    )]
    WorkerProcess,
    /// A toolgate above this process has the same configuration, and has started this program as one of
    /// its servers.
    #[error(
        "this program was started, directly or through others, by a toolgate with the same configuration: \
         remove the server that starts it from that configuration"
    )]
    Nested,
    /// There is no Tokio runtime.
    #[error("a host runs on Tokio: call `start` within a Tokio runtime")]
    NoRuntime,
    /// Two functions have the same name.
    #[error("two functions are named `{0}`; give one of them another name")]
    DuplicateFunction(String),
    /// The name of a function cannot be the name of a tool.
    #[error(
        "`{0}` cannot be the name of a function: use letters, digits and `_`, at most 64, and no name of a \
         meta-tool"
    )]
    FunctionName(String),
    /// A server has the name of the functions of this program.
    #[error("a server is named `functions`, which is the name of this program's functions")]
    FunctionsServer,
}

impl HostBuilder {
    pub(crate) fn new() -> Self {
        Self {
            source: None,
            servers: Vec::new(),
            functions: Vec::new(),
            environment: HostEnvironment::default(),
            namespace: None,
            mode: None,
            approval: None,
            scripts: true,
        }
    }

    /// Takes the servers and settings of a file: an `mcpServers` file in JSON, or the `config.toml` of
    /// Codex. The approved definitions are in the file `toolgate.lock` beside it.
    pub fn config_file(mut self, path: impl AsRef<Path>) -> Result<Self, StartError> {
        let path = path.as_ref();
        let text = fs::read_to_string(path).map_err(|error| {
            StartError::Configuration(format!("cannot read {}: {error}", path.display()))
        })?;
        let format = Format::of_file(path);
        self.source = Some(ConfigSource { text, format, path: Some(path.to_owned()) });
        Ok(self)
    }

    /// Takes the servers and settings of a text in JSON. Relative paths in it start at the current folder.
    pub fn config_json(mut self, text: impl Into<String>) -> Self {
        self.source = Some(ConfigSource { text: text.into(), format: Format::Jsonc, path: None });
        self
    }

    /// Adds a server: a [`Stdio`](crate::Stdio) or an [`Http`](crate::Http). It replaces a server of the
    /// same name in the configuration.
    pub fn server(mut self, server: impl Into<AddedServer>) -> Self {
        self.servers.push(server.into().0);
        self
    }

    /// Adds a function of this program as a tool: one with the attribute [`tool`](macro@crate::tool), or a
    /// [`FunctionTool`].
    pub fn tool(mut self, function: impl Into<FunctionTool>) -> Self {
        self.functions.push(function.into());
        self
    }

    /// Sets who is asked if the policy wants a call to be allowed. The call waits for the answer, and the
    /// clock of a script stops meanwhile.
    ///
    /// Without it nobody can be asked: the question waits in the state folder for `toolgate approve`, or
    /// the call is denied if there is no state folder. A tool that only declares itself destructive is
    /// called then, unless a rule of yours asks about it.
    ///
    /// ```
    /// # use toolgate::{Approval, Host};
    /// let builder = Host::builder().on_approval(|question| async move {
    ///     println!("{question}");
    ///     Approval::Deny
    /// });
    /// ```
    pub fn on_approval<F>(
        mut self,
        callback: impl Fn(ApprovalQuestion) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Approval> + Send + 'static,
    {
        self.approval = Some(ApprovalCallback::new(callback));
        self
    }

    /// Sets the folder for caches, logs, logins, the journal and the audit log. Programs can share it.
    pub fn state_folder(mut self, path: impl Into<PathBuf>) -> Self {
        self.environment.store = Some(Store::new(path));
        self
    }

    /// Sets how the variables are looked up that `${NAME}` in the configuration refers to, such as
    /// `|name| std::env::var(name).ok()`.
    pub fn environment(
        mut self,
        variables: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.environment.variables = Arc::new(variables);
        self
    }

    /// Uses the servers and the policy of one namespace of the configuration.
    pub fn namespace(mut self, name: impl Into<String>) -> Self {
        self.namespace = Some(name.into());
        self
    }

    /// Sets what a session lists, whatever the configuration says. Without it the cost of the definitions
    /// decides.
    pub fn mode(mut self, mode: SessionMode) -> Self {
        self.mode = Some(match mode {
            SessionMode::Direct => ExposureMode::Direct,
            SessionMode::Stable => ExposureMode::Stable,
            SessionMode::Dynamic => ExposureMode::Dynamic,
            SessionMode::Code => ExposureMode::Code,
        });
        self
    }

    /// Runs no scripts. Then the program need not call [`init`](crate::init).
    pub fn without_scripts(mut self) -> Self {
        self.scripts = false;
        self
    }

    /// Starts the host, within a Tokio runtime. Waits until all servers have listed their tools, but at
    /// most three seconds: slower servers are there as soon as they have answered.
    ///
    /// Problems of the configuration that cost one server or one setting are logged as warnings.
    pub async fn start(self) -> Result<Host, StartError> {
        role::check_role().map_err(|_| StartError::WorkerProcess)?;
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(StartError::NoRuntime);
        }
        let approval = self.approval.clone();
        let host = toolgate_host::ToolHost::start(self.settings()?);
        host.first_lists().await;
        Ok(Host::new(host, approval))
    }

    fn settings(mut self) -> Result<HostSettings, StartError> {
        check_functions(&self.functions)?;
        let worker = if self.scripts { role::worker().map(Some) } else { Ok(None) };
        self.environment.worker = worker.clone().ok().flatten();
        let source = self.source.unwrap_or_else(|| ConfigSource {
            text: String::new(),
            format: Format::Jsonc,
            path: None,
        });
        let is_empty = source.text.is_empty();
        if source.path.as_deref().is_some_and(|path| nesting::is_above(&configuration_name(path))) {
            return Err(StartError::Nested);
        }
        let read = |config: Result<HostConfig, HostConfigError>| {
            config.map_err(|error| StartError::Configuration(error.to_string()))
        };
        let config =
            read(HostConfig::parse(&source.text, source.format, source.path, self.environment))?;
        for problem in config.configuration.problems.iter().filter(|_| !is_empty) {
            tracing::warn!("{problem}");
        }
        if let Err(problem) = worker
            && config.configuration.code_mode.enabled
        {
            let is_late = problem == RoleProblem::CalledLate;
            return Err(StartError::NotInitialized { is_late });
        }
        if let Some(name) = &self.namespace {
            config
                .check_namespace(name)
                .map_err(|error| StartError::Configuration(error.to_string()))?;
        }
        let mut settings = config.settings(self.namespace.as_deref(), self.mode);
        for server in self.servers {
            settings.servers.retain(|known| known.spec.name != server.spec.name);
            settings.servers.push(server);
        }
        if !self.functions.is_empty() {
            let name = ServerName::from(function_server::SERVER);
            if settings.servers.iter().any(|known| known.spec.name == name) {
                return Err(StartError::FunctionsServer);
            }
            settings.servers.push(function_server::setup(self.functions));
        }
        Ok(settings)
    }
}

/// Refuses names that would not be the names of the tools.
fn check_functions(functions: &[FunctionTool]) -> Result<(), StartError> {
    let mut names = HashSet::new();
    for function in functions {
        let name = function.name();
        let id = toolgate_catalog::ToolId::new(function_server::SERVER, name);
        if toolgate_catalog::preferred_name(&id, Some("")) != name {
            return Err(StartError::FunctionName(name.to_owned()));
        }
        if !names.insert(name) {
            return Err(StartError::DuplicateFunction(name.to_owned()));
        }
    }
    Ok(())
}

impl std::fmt::Debug for HostBuilder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("HostBuilder").finish_non_exhaustive()
    }
}
