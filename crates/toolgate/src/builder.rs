//! From an `mcpServers` file to a running host.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolgate_config::{ExposureMode, Format};
use toolgate_host::{Host, HostSettings, ServerSetup};
use toolgate_sandbox::PoolSettings;
use toolgate_store::{Store, VaultKey};

use crate::{HostConfig, HostConfigError, HostEnvironment};

/// Collects what a [`Host`] is made of, in any order, and starts it.
#[derive(Default)]
pub struct HostBuilder {
    source: Option<ConfigSource>,
    servers: Vec<ServerSetup>,
    environment: HostEnvironment,
    namespace: Option<String>,
    mode: Option<ExposureMode>,
}

/// The text of a configuration, which is read once the environment is known.
struct ConfigSource {
    text: String,
    format: Format,
    path: Option<PathBuf>,
}

impl HostBuilder {
    /// A builder without servers, state folder, environment and worker.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the servers and settings of a file: an `mcpServers` file in JSON, or the `config.toml`
    /// of Codex. The approved definitions are in the file `toolgate.lock` beside it.
    pub fn config_file(mut self, path: impl AsRef<Path>) -> Result<Self, HostConfigError> {
        let path = path.as_ref();
        let text = fs::read_to_string(path)
            .map_err(|source| HostConfigError::Read { path: path.to_owned(), source })?;
        let format = Format::of_file(path);
        self.source = Some(ConfigSource { text, format, path: Some(path.to_owned()) });
        Ok(self)
    }

    /// Takes the servers and settings of a text. Relative paths in it start at the current folder.
    #[must_use]
    pub fn config_text(mut self, text: impl Into<String>, format: Format) -> Self {
        self.source = Some(ConfigSource { text: text.into(), format, path: None });
        self
    }

    /// Adds a server. It replaces a server of the same name in the configuration.
    #[must_use]
    pub fn server(mut self, server: ServerSetup) -> Self {
        self.servers.push(server);
        self
    }

    /// Sets the folder for caches, logs, logins, the journal and the audit log.
    #[must_use]
    pub fn state_folder(mut self, path: impl Into<PathBuf>) -> Self {
        self.environment.store = Some(Store::new(path));
        self
    }

    /// Sets how the variables are looked up that `${NAME}` in the configuration refers to.
    #[must_use]
    pub fn environment(
        mut self,
        variables: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.environment.variables = Arc::new(variables);
        self
    }

    /// Sets how the processes start that run scripts. Their program has to call
    /// `toolgate_sandbox::worker_main` when it is started with these arguments.
    #[must_use]
    pub fn worker(mut self, worker: PoolSettings) -> Self {
        self.environment.worker = Some(worker);
        self
    }

    /// Sets the key that encrypts stored logins. Unless set, it is in the keychain of the system.
    #[must_use]
    pub fn vault_key(mut self, key: VaultKey) -> Self {
        self.environment.vault_key = key;
        self
    }

    /// Uses the servers and the policy of one namespace of the configuration.
    #[must_use]
    pub fn namespace(mut self, name: impl Into<String>) -> Self {
        self.namespace = Some(name.into());
        self
    }

    /// Sets what a session lists, whatever the configuration says.
    #[must_use]
    pub fn mode(mut self, mode: ExposureMode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// The settings of the host. Problems of the configuration that cost one server or one setting
    /// are logged as warnings.
    pub fn settings(self) -> Result<HostSettings, HostConfigError> {
        let source = self.source.unwrap_or_else(|| ConfigSource {
            text: String::new(),
            format: Format::Jsonc,
            path: None,
        });
        let is_empty = source.text.is_empty();
        let config = HostConfig::parse(&source.text, source.format, source.path, self.environment)?;
        for problem in config.configuration.problems.iter().filter(|_| !is_empty) {
            tracing::warn!("{problem}");
        }
        if let Some(name) = &self.namespace {
            config.check_namespace(name)?;
        }
        let mut settings = config.settings(self.namespace.as_deref(), self.mode);
        for server in self.servers {
            settings.servers.retain(|known| known.spec.name != server.spec.name);
            settings.servers.push(server);
        }
        Ok(settings)
    }

    /// Starts the host. Call it within a Tokio runtime.
    pub fn start(self) -> Result<Host, HostConfigError> {
        Ok(Host::start(self.settings()?))
    }
}
