//! A configuration, and the settings of the hosts that it describes.

use std::{
    fmt, fs, io,
    path::{Component, Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

use toolgate_broker::CallerReads;
use toolgate_catalog::{ExposureSettings, Fingerprint};
use toolgate_config::{
    AuditConfig, ChatProviderName, CodeModeConfig, CommandTime, ConfigError, Configuration,
    EmbeddingsConfig, ExposureMode, ExtractConfig, Format, Secret, SubagentConfig, TelemetryConfig,
    ToolSearchConfig,
};
use toolgate_host::{
    AuditSettings, CallLimiter, CodeSettings, EncodeTools, EncoderSetup, ExtractModel,
    ExtractSettings, HostSettings, ServerDirectory, SubagentSettings,
};
use toolgate_mcp::nesting;
use toolgate_models::chat::{ChatApi, ChatEndpoint, ChatSettings, ModelChooser};
use toolgate_models::embeddings::{
    ApiKey, EndpointEncoder, EndpointError, EndpointSettings, FolderError, Prefixes, open_folder,
};
use toolgate_policy::{NewTools, PolicySettings, definitions::Lock};
use toolgate_registry::{Registry, RegistrySettings, ServerSource as Source, Skills, read_skills};
use toolgate_sandbox::{PoolSettings, PythonChoice, PythonSettings, RunLimits};
use toolgate_search::encoder::Encoder;
use toolgate_store::{
    AuditLimits, ChoiceStore, DamagedChoices, NodeHealth, Retention, Store, StoreError, VaultKey,
};
use toolgate_telemetry::{FleetGauges, Telemetry, TelemetryOptions};
use toolgate_upstream::{PendingLogins, ServerPlaces};

use crate::env_files::{FileAccess, parse_file, read_env_file};
use crate::pins::{PinFile, PinFileError};
use crate::server::exposed;
use crate::stored_values::read_stored;

/// How long one request for the vectors of tools may take. A query has a timeout of its own.
const ENCODE_TIMEOUT: Duration = Duration::from_mins(1);

/// Looks up an environment variable by its name.
pub type Variables = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What a configuration may use of the computer that it is used on.
///
/// The library takes nothing from the process by itself; the default has nothing.
#[derive(Clone)]
pub struct HostEnvironment {
    /// The folder for caches, logs, logins, the journal and the audit log.
    pub store: Option<Store>,
    /// The environment variables.
    pub variables: Variables,
    /// The key that encrypts stored logins.
    pub vault_key: VaultKey,
    /// How the processes start that run scripts. Without it no script runs.
    pub worker: Option<PoolSettings>,
    /// Where the servers are that run once in a fleet. Without it each process has its own.
    pub places: Option<Arc<dyn ServerPlaces>>,
}

/// A configuration, with the files that belong to it.
pub struct HostConfig {
    /// What the configuration says, and its problems.
    pub configuration: Configuration,
    /// The skills in the folders that it names.
    pub skills: Arc<Skills>,
    /// The approved definitions. Without them no tool is held back.
    pub lock: Option<Lock>,
    path: Option<PathBuf>,
    environment: HostEnvironment,
    /// Whether the state folder can be written, which is tried once.
    writable: OnceLock<Result<(), StateFolderError>>,
    /// Namespaces share it, so that a process has one connection to the collector.
    telemetry: OnceLock<Telemetry>,
    /// What callers have read, in all namespaces.
    callers: CallerReads,
    /// Namespaces share it, so that a limit holds for all of them together.
    limiter: OnceLock<Arc<CallLimiter>>,
    /// The logins of callers that wait for a browser, in all namespaces.
    pub(crate) pending_logins: PendingLogins,
}

/// Why a configuration cannot be used at all.
#[derive(Debug, thiserror::Error)]
pub enum HostConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The text is not a configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The approved definitions cannot be read.
    #[error(transparent)]
    Pins(#[from] PinFileError),
    /// The audit log is required, and cannot be written.
    #[error("`audit.required` is set, and {0}")]
    Audit(StateFolderError),
    /// The file cannot be read that says which servers are enabled and approved.
    #[error(transparent)]
    Choices(#[from] DamagedChoices),
    /// The configuration has no such namespace.
    #[error("the configuration has no namespace `{0}`")]
    UnknownNamespace(String),
}

/// Why nothing can be stored.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StateFolderError {
    /// No folder was passed.
    #[error("there is no folder to write to")]
    Unset,
    /// The folder cannot be written.
    #[error(transparent)]
    Unwritable(Arc<StoreError>),
}

/// Why the configured encoder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EncoderSetupError {
    /// The settings of the endpoint are wrong.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The folder has no model that can be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl Default for HostEnvironment {
    fn default() -> Self {
        Self {
            store: None,
            variables: Arc::new(|_| None),
            vault_key: VaultKey::default(),
            worker: None,
            places: None,
        }
    }
}

impl fmt::Debug for HostConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HostConfig").field("path", &self.path).finish_non_exhaustive()
    }
}

impl HostConfig {
    /// Reads a configuration, its env files, its skills and its approved definitions.
    ///
    /// `path` is the file that the text comes from: relative paths start at its folder, messages name
    /// it, and choices and approved definitions are stored for it.
    pub fn parse(
        text: &str,
        format: Format,
        path: Option<PathBuf>,
        environment: HostEnvironment,
    ) -> Result<Self, HostConfigError> {
        let name = path.as_ref().map_or("configuration".into(), |path| path.to_string_lossy());
        let (store, key) = (environment.store.as_ref(), &environment.vault_key);
        let access = FileAccess {
            variables: &*environment.variables,
            env_file: &read_env_file,
            stored: &|reference| read_stored(reference, store, key),
            commands: CommandTime::Start,
            workspace_folder: None,
            working_folder: None,
            saved_policy: None,
        };
        let mut configuration = parse_file(text, format, &name, path.as_deref(), &access)?;
        configuration.place_limits(&name);
        Self::new(configuration, path, environment)
    }

    /// Takes a configuration that was read before. See [`HostConfig::parse`].
    pub fn new(
        configuration: Configuration,
        path: Option<PathBuf>,
        environment: HostEnvironment,
    ) -> Result<Self, HostConfigError> {
        if let Some(path) = &path {
            nesting::note_configuration(&configuration_name(path));
        }
        let folders = configuration.skills.iter().map(|folder| resolve(path.as_deref(), folder));
        let skills = Arc::new(read_skills(&folders.collect::<Vec<_>>()));
        let new_tools = configuration.policy.new_tools;
        let lock = match &path {
            Some(path) => {
                PinFile::beside(path).in_store(environment.store.as_ref()).read(new_tools)?
            }
            None => (new_tools == NewTools::Hold).then(Lock::default),
        };
        let pending_logins = environment.store.as_ref().and_then(|store| {
            let key = &environment.vault_key;
            Some(PendingLogins::shared(store.waiting_logins(key)?, store.logins(key)))
        });
        let config = Self {
            configuration,
            skills,
            lock,
            path,
            environment,
            writable: OnceLock::new(),
            telemetry: OnceLock::new(),
            callers: CallerReads::default(),
            limiter: OnceLock::new(),
            pending_logins: pending_logins.unwrap_or_default(),
        };
        config.check()?;
        Ok(config)
    }

    /// Refuses a required audit log that cannot be written, and choices that cannot be read.
    fn check(&self) -> Result<(), HostConfigError> {
        let audit = &self.configuration.audit;
        if audit.enabled && audit.required {
            self.writable_store().map_err(HostConfigError::Audit)?;
        }
        let namespaces = self.configuration.namespaces.iter().map(|it| Some(it.name.as_str()));
        for file in std::iter::once(None).chain(namespaces).filter_map(|name| self.choices(name)) {
            file.read()?;
        }
        Ok(())
    }

    /// Refuses a namespace that the configuration does not have.
    pub fn check_namespace(&self, name: &str) -> Result<(), HostConfigError> {
        let is_known = self.configuration.namespaces.iter().any(|known| known.name == name);
        is_known.then_some(()).ok_or_else(|| HostConfigError::UnknownNamespace(name.to_owned()))
    }

    /// Continues an earlier configuration of this process: uses its telemetry, its counts of calls, and
    /// what it knows of callers.
    #[must_use]
    pub fn continuing(mut self, before: &Self) -> Self {
        self.callers = before.callers.clone();
        self.telemetry = before.telemetry().into();
        self.limiter = before.limiter().into();
        self.pending_logins = before.pending_logins.clone();
        self
    }

    /// The logins of callers that wait for a browser.
    pub fn pending_logins(&self) -> &PendingLogins {
        &self.pending_logins
    }

    /// The state folder, if it can be written. A folder that cannot be written is not used at all.
    pub fn writable_store(&self) -> Result<Store, StateFolderError> {
        let store = self.environment.store.clone().ok_or(StateFolderError::Unset)?;
        let tried = self.writable.get_or_init(|| {
            store.try_writing().map_err(|error| StateFolderError::Unwritable(Arc::new(error)))
        });
        tried.clone().map(|()| store)
    }

    /// The policy of a namespace, or of the servers outside of all namespaces.
    pub fn policy(&self, namespace: Option<&str>) -> &PolicySettings {
        let mut namespaces = self.configuration.namespaces.iter();
        let chosen = namespaces.find(|known| Some(known.name.as_str()) == namespace);
        chosen.map_or(&self.configuration.policy, |chosen| &chosen.policy)
    }

    /// The file that says which servers are enabled and which were approved. Each namespace has its
    /// own.
    pub fn choices(&self, namespace: Option<&str>) -> Option<Arc<dyn ChoiceStore>> {
        let store = self.environment.store.as_ref()?;
        let (embedded, shared) = self.choice_names(namespace)?;
        Some(store.choices(if store.shared().is_some() { &shared } else { &embedded }))
    }

    /// How the choices of a namespace are called in a state folder, and in a fleet.
    pub fn choice_names(&self, namespace: Option<&str>) -> Option<(String, String)> {
        let path = self.path.as_ref()?;
        let namespace = namespace.map(|name| format!("#{name}")).unwrap_or_default();
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        // The nodes of a fleet have one configuration, at whatever path.
        Some((format!("{}{namespace}", path.display()), format!("fleet{namespace}")))
    }

    /// The directory of servers that are not configured.
    pub fn registry(&self) -> Option<Registry> {
        let configured = &self.configuration.registry;
        let sources = configured.sources.iter().map(|source| {
            if source.contains("://") {
                Source::Url(source.clone())
            } else {
                Source::Path(resolve(self.path.as_deref(), Path::new(source)))
            }
        });
        let sources: Vec<Source> = sources.collect();
        let cache = self.environment.store.as_ref().map(|store| store.fetched("registry"));
        let settings = RegistrySettings { sources, max_age: configured.cache, cache };
        (!settings.sources.is_empty()).then(|| Registry::new(settings))
    }

    /// The configured encoder, or why it cannot be used.
    pub fn encoder(&self) -> Option<Result<EncoderSetup, EncoderSetupError>> {
        self.encoder_of(&self.configuration.tool_search)
    }

    /// The settings of a host with the usable servers of a namespace. Without a namespace these are
    /// the servers that no namespace has for itself. `mode` replaces what the configuration says of
    /// exposure.
    pub fn settings(&self, namespace: Option<&str>, mode: Option<ExposureMode>) -> HostSettings {
        let configuration = &self.configuration;
        let mut namespaces = configuration.namespaces.iter();
        let chosen = namespaces.find(|known| Some(known.name.as_str()) == namespace);
        let mut search =
            chosen.map_or(&configuration.tool_search, |chosen| &chosen.tool_search).clone();
        if let Some(mode) = mode {
            mode.apply(&mut search);
        }
        let mut policy = self.policy(namespace).clone();
        policy.presence = policy.presence.max(configuration.approvals.presence);
        let servers = configuration
            .servers
            .iter()
            .filter(|server| server.settings.enabled && self.is_in(&server.name, namespace))
            .filter_map(|server| self.server_setup(server, namespace))
            .collect();
        // One namespace may hold back new tools where the others do not.
        let holds = policy.new_tools == NewTools::Hold;
        let lock = self.lock.clone().or_else(|| holds.then(Lock::default));
        let pins = self.path.as_ref().filter(|_| lock.is_some());
        let variables = Arc::clone(&self.environment.variables);
        if let Some(values) = self.environment.store.as_ref().and_then(Store::shared_values) {
            self.callers.share(&values);
        }
        HostSettings {
            exposure: exposure(&search),
            namespace: namespace.map(str::to_owned),
            max_results: search.max_results,
            keep_loaded_tools: search.keep_loaded_tools,
            instructions_budget: search.instructions_budget,
            max_output_tokens: configuration.code_mode.max_output_tokens,
            strategy: search.strategy,
            subagent: search.subagent.as_ref().and_then(subagent),
            usage_memory: search.usage_memory,
            groups: search.groups,
            encoder: self.encoder_of(&search).and_then(Result::ok),
            store: self.writable_store().ok(),
            choices: self.choices(namespace),
            directory: ServerDirectory {
                registry: self.registry().map(Arc::new),
                skills: Arc::clone(&self.skills),
                is_set: Arc::new(move |name| variables(name).is_some_and(|it| !it.is_empty())),
            },
            code: self.environment.worker.clone().and_then(|worker| {
                let code_mode = &configuration.code_mode;
                code_mode.enabled.then(|| code_settings(code_mode, worker))
            }),
            pin: pins.map(|path| self.pins_of(path).pin()),
            lock,
            policy,
            audit: configuration.audit.enabled.then_some(AuditSettings {
                arguments: configuration.audit.arguments,
                required: configuration.audit.required,
                limits: audit_limits(&configuration.audit),
            }),
            limiter: Some(self.limiter()),
            telemetry: self.telemetry(),
            callers: self.callers.clone(),
            ..HostSettings::new(servers)
        }
    }

    /// The approved definitions; `None` if the configuration is no file.
    pub fn pins(&self) -> Option<PinFile> {
        self.path.as_deref().map(|path| self.pins_of(path))
    }

    fn pins_of(&self, path: &Path) -> PinFile {
        PinFile::beside(path).in_store(self.environment.store.as_ref())
    }

    /// The environment that the configuration is used in.
    pub(crate) fn environment(&self) -> &HostEnvironment {
        &self.environment
    }

    /// Whether a server is served in a namespace. Without one, servers of exclusive namespaces are
    /// not.
    fn is_in(&self, server: &str, namespace: Option<&str>) -> bool {
        let mut holders = self
            .configuration
            .namespaces
            .iter()
            .filter(|known| known.servers.iter().any(|name| name == server));
        match namespace {
            Some(wanted) => holders.any(|holder| holder.name == wanted),
            None => !holders.any(|holder| holder.exclusive),
        }
    }

    fn encoder_of(
        &self,
        search: &ToolSearchConfig,
    ) -> Option<Result<EncoderSetup, EncoderSetupError>> {
        Some(encoder(search.embeddings.as_ref()?, self.path.as_deref()))
    }

    fn limiter(&self) -> Arc<CallLimiter> {
        let start = || CallLimiter::new(self.writable_store().ok().map(|store| store.quotas()));
        Arc::clone(self.limiter.get_or_init(start))
    }

    fn telemetry(&self) -> Telemetry {
        let start = || {
            let (configured, variables) =
                (self.configuration.telemetry.as_ref(), &self.environment.variables);
            let telemetry = telemetry(configured, variables);
            if let Some(shared) = self.environment.store.as_ref().and_then(Store::shared) {
                let shared = Arc::clone(shared);
                telemetry.watch_fleet(move || {
                    let NodeHealth { nodes, is_away, waiting_bytes } = shared.health();
                    FleetGauges { nodes, is_away, waiting_bytes }
                });
            }
            telemetry
        };
        self.telemetry.get_or_init(start).clone()
    }
}

/// The name by which a toolgate recognises its configuration in a toolgate below it.
pub fn configuration_name(path: &Path) -> String {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    Fingerprint::of(&serde_json::json!(path.to_string_lossy())).to_string()
}

/// How much of the audit log is stored.
pub fn audit_limits(audit: &AuditConfig) -> AuditLimits {
    AuditLimits {
        file_bytes: audit.max_megabytes.saturating_mul(1024 * 1024),
        files: audit.keep_files,
        days: audit.keep_days,
    }
}

/// The limits of scripts that run in processes of `worker`.
pub fn code_settings(settings: &CodeModeConfig, worker: PoolSettings) -> CodeSettings {
    CodeSettings {
        pool: PoolSettings {
            python: python_settings(settings),
            warm: settings.warm_workers,
            runs: settings.max_runs,
            ..worker
        },
        limits: RunLimits {
            wall: Duration::from_secs_f64(settings.timeout_seconds),
            cpu: Duration::from_secs_f64(settings.cpu_seconds),
            memory_bytes: settings.memory_mb * 1024 * 1024,
            stack_bytes: settings.stack_kb * 1024,
            calls: settings.max_calls,
            calls_in_flight: settings.max_calls_in_flight,
            result_bytes: settings.max_result_bytes,
            output_bytes: settings.max_output_bytes,
        },
        max_parallel_calls: settings.max_parallel_calls,
        retention: Retention {
            runs: settings.journal.runs,
            days: settings.journal.days,
            bytes: settings.journal.megabytes.saturating_mul(1024 * 1024),
        },
        extract: extract_settings(&settings.extract),
    }
}

fn python_settings(settings: &CodeModeConfig) -> PythonSettings {
    let choice = match settings.python.as_str() {
        "auto" => PythonChoice::Auto,
        "monty" => PythonChoice::Embedded,
        named => PythonChoice::Named(named.into()),
    };
    PythonSettings { choice, packages: settings.python_packages.clone() }
}

fn extract_settings(settings: &ExtractConfig) -> ExtractSettings {
    let ExtractConfig { provider, model, api_key, timeout, max_calls, max_tokens, .. } = settings;
    let endpoint = || {
        let endpoint = chat_endpoint(*provider, settings.endpoint(), model, api_key.as_ref())?;
        // The URL may have a credential in it.
        let identity = Fingerprint::of(&serde_json::json!([model, settings.endpoint()]));
        let identity = identity.to_string();
        Some(ExtractModel { provider: Arc::new(endpoint), identity })
    };
    ExtractSettings {
        model: if model.is_empty() { None } else { endpoint() },
        timeout: *timeout,
        max_calls: *max_calls,
        max_tokens: *max_tokens,
    }
}

fn exposure(search: &ToolSearchConfig) -> ExposureSettings {
    ExposureSettings {
        mode: search.enabled,
        deferred: search.deferred,
        context_window: search.context_window,
        threshold_percent: search.threshold_percent,
        character_threshold: search.token_threshold,
        tool_threshold: search.tool_threshold,
        unit: search.token_counter,
    }
}

fn subagent(settings: &SubagentConfig) -> Option<SubagentSettings> {
    let SubagentConfig { provider, model, api_key, .. } = settings;
    let endpoint = chat_endpoint(*provider, settings.endpoint(), model, api_key.as_ref())?;
    Some(SubagentSettings {
        chooser: Arc::new(ModelChooser::new(Arc::new(endpoint))),
        candidates: settings.candidates,
        timeout: settings.timeout,
    })
}

fn chat_endpoint(
    provider: ChatProviderName,
    endpoint: &str,
    model: &str,
    api_key: Option<&Secret>,
) -> Option<ChatEndpoint> {
    let settings = ChatSettings {
        api: match provider {
            ChatProviderName::OpenAi => ChatApi::OpenAi,
            ChatProviderName::Anthropic => ChatApi::Anthropic,
        },
        endpoint: endpoint.to_owned(),
        model: model.to_owned(),
        api_key: api_key.map(|key| key.expose().to_owned()),
    };
    ChatEndpoint::new(settings).ok()
}

fn encoder(
    configured: &EmbeddingsConfig,
    file: Option<&Path>,
) -> Result<EncoderSetup, EncoderSetupError> {
    let prefixes = Prefixes {
        query: configured.query_prefix.clone(),
        document: configured.document_prefix.clone(),
    };
    let encoder: Arc<dyn Encoder> = match &configured.folder {
        Some(folder) => open_folder(resolve(file, folder), prefixes)?,
        None => Arc::new(EndpointEncoder::new(EndpointSettings {
            base_url: configured.endpoint.as_ref().map_or("", Secret::expose).to_owned(),
            model: configured.model.clone(),
            api_key: configured.api_key.as_ref().map(|key| ApiKey::new(key.expose())),
            dimensions: configured.dimensions,
            prefixes,
            timeout: ENCODE_TIMEOUT,
        })?),
    };
    Ok(EncoderSetup { encoder, timeout: configured.timeout, tools: EncodeTools::Missing })
}

fn telemetry(settings: Option<&TelemetryConfig>, variables: &Variables) -> Telemetry {
    let Some(settings) = settings else { return Telemetry::off() };
    let configured = TelemetryOptions {
        endpoint: settings.otlp_endpoint.clone(),
        headers: exposed(&settings.headers),
        service_name: settings.service_name.clone(),
    };
    let settings = match configured.resolve(|name| variables(name)) {
        Ok(Some(settings)) => settings,
        Ok(None) => return Telemetry::off(),
        Err(error) => {
            tracing::warn!("telemetry is off: {error}");
            return Telemetry::off();
        }
    };
    Telemetry::start(&settings).unwrap_or_else(|error| {
        tracing::warn!("{error}");
        Telemetry::off()
    })
}

/// A path of the configuration. A relative one starts at the folder of the file.
pub(crate) fn resolve(file: Option<&Path>, path: &Path) -> PathBuf {
    let joined = file.and_then(Path::parent).unwrap_or_else(|| Path::new("")).join(path);
    // Messages show the path, so `.` components go.
    joined.components().filter(|part| *part != Component::CurDir).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_limits_of_sandbox_and_configuration_are_equal() {
        let worker = PoolSettings::new("worker", std::iter::empty::<String>());
        let configured = code_settings(&CodeModeConfig::default(), worker.clone());
        assert_eq!(configured.limits, RunLimits::default());
        assert_eq!((configured.pool.warm, configured.pool.runs), (worker.warm, worker.runs));
    }
}
