//! From a configuration file to the settings of a host.

use std::{
    env, fs,
    path::{Component, Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

use toolgate_broker::ServerRules;
use toolgate_catalog::{CostUnit, DeferredStyle, ExposureSettings, RequestedMode, ServerEntry};
use toolgate_config::{
    AuditLogging, CodeMode, Configuration, DeferredMode, Format, HttpDialect, Namespace, Problem,
    RegistrySource, SearchStrategy, Severity, TokenCounter, ToolSearch, ToolSearchMode, Transport,
};
use toolgate_host::{AuditSettings, CodeSettings, EncoderSetup, HostSettings, ServerSetup, Supply};
use toolgate_policy::{NewTools, PolicySettings, definitions::Lock};
use toolgate_registry::{Registry, RegistrySettings, RegistrySource as Source, Skills, read_skills};
use toolgate_sandbox::{PoolSettings, RunLimits};
use toolgate_search::StrategyName;
use toolgate_store::{AuditLimits, ChoiceFile, DamagedChoices, Retention, Store, WRITABLE};
use toolgate_upstream::{Endpoint, HttpEndpoint, ServerLimits, ServerSpec, StdioEndpoint};

use crate::{
    cli::{Globals, Mode},
    encoder,
    failure::Failure,
    folders, logins,
    pins::Pins,
    printer::Printer,
    subagent, telemetry,
};

/// The argument that makes this program a worker of the sandbox.
pub(crate) const WORKER: &str = "sandbox-worker";

/// What was read.
pub(crate) struct Loaded {
    /// Where from.
    pub(crate) path: PathBuf,
    /// What it says.
    pub(crate) configuration: Configuration,
    /// The namespace that was asked for; all that is not in an exclusive one, if none was.
    pub(crate) namespace: Option<String>,
    /// The skills of its folders.
    pub(crate) skills: Arc<Skills>,
    /// The definitions that were approved; nothing is held back without.
    pub(crate) lock: Option<Lock>,
}

/// Finds and reads the configuration. Only a file that cannot be read at all is a failure.
pub(crate) fn load(globals: &Globals) -> Result<Loaded, Failure> {
    let path = match &globals.config {
        Some(path) => path.clone(),
        None => find()?,
    };
    let shown = folders::shown(&path);
    let text = fs::read_to_string(&path).map_err(|error| {
        let failure = Failure::usage(format!("cannot read {shown}: {error}"));
        match error.kind() {
            std::io::ErrorKind::NotFound => failure.hint("check the path after --config"),
            std::io::ErrorKind::InvalidData => failure.hint("save the file as UTF-8"),
            std::io::ErrorKind::IsADirectory => failure.hint("name a file in it"),
            std::io::ErrorKind::PermissionDenied => failure.hint("let yourself read it"),
            _ => failure,
        }
    })?;
    let format = Format::of_file(&path);
    let environment = |name: &str| env::var(name).ok();
    let configuration = toolgate_config::parse(&text, format, &shown, &environment)
        .map_err(|error| Failure::usage(error.to_string()))?;
    let folders: Vec<PathBuf> =
        configuration.skills.iter().map(|folder| beside(&path, folder)).collect();
    let skills = Arc::new(read_skills(&folders));
    let lock = Pins::beside(&path).read(configuration.policy.new_tools)?;
    let loaded = Loaded { path, configuration, namespace: globals.namespace.clone(), skills, lock };
    if let Some(wanted) = &globals.namespace {
        loaded.check_namespace(wanted)?;
    }
    loaded.check_kept()?;
    Ok(loaded)
}

/// A file of choices that cannot be read.
#[expect(clippy::needless_pass_by_value, reason = "as map_err wants it")]
pub(crate) fn damaged(error: DamagedChoices) -> Failure {
    Failure::new(error.to_string()).hint(
        "correct it, or remove it: then all servers are enabled, and none of a registry approved",
    )
}

/// A path of the configuration; a relative one is meant from its folder.
fn beside(configuration: &Path, path: &Path) -> PathBuf {
    let joined = configuration.parent().unwrap_or_else(|| Path::new("")).join(path);
    // Without the `.`s on the way, since people are shown it.
    joined.components().filter(|part| *part != Component::CurDir).collect()
}

fn find() -> Result<PathBuf, Failure> {
    let places = folders::configurations();
    if let Some(found) = places.iter().find(|path| path.is_file()) {
        return Ok(found.clone());
    }
    let looked: Vec<String> = places.iter().map(|path| folders::shown(path)).collect();
    Err(Failure::usage(format!("there is no configuration; looked for {}", looked.join(", ")))
        .hint("name yours: --config FILE (a Claude, Cursor, VS Code, Codex, Gemini or Zed file works as it is)")
        .hint("or see toolgate at work without one: toolgate demo"))
}

/// Tells the person what is wrong with the configuration, and what of it cannot be done yet. What
/// is right is used all the same.
pub(crate) fn report(loaded: &Loaded, printer: &mut Printer) {
    for problem in &loaded.configuration.problems {
        printer.note(problem);
    }
    if let Err(problem) = writable_store() {
        printer.note(format!(
            "warning: {problem}; nothing is kept, no call recorded and no question asked later\n  hint: {WRITABLE}"
        ));
    }
    let file = folders::shown(&loaded.path);
    if let Some(Err(reason)) = loaded.encoder() {
        printer.note(format!(
            "warning: {file}: `toolSearch.embeddings` cannot be used, the built-in word vectors are: {reason}"
        ));
    }
    for problem in &loaded.skills.problems {
        printer.note(format!("warning: {}: {}", folders::shown(&problem.path), problem.message));
    }
}

/// Whether something in the configuration costs a server.
pub(crate) fn has_errors(problems: &[Problem]) -> bool {
    problems.iter().any(|problem| problem.severity == Severity::Error)
}

impl Loaded {
    /// The server called `name`, or what may have been meant.
    pub(crate) fn server(&self, name: &str) -> Result<&toolgate_config::ServerEntry, Failure> {
        let servers = &self.configuration.servers;
        if let Some(found) = servers.iter().find(|server| server.name == name) {
            return Ok(found);
        }
        Err(Failure::usage(format!("there is no server `{name}` in the configuration"))
            .meaning(name, servers.iter().map(|server| server.name.as_str())))
    }

    /// Whether there is a namespace of this name; else what may have been meant.
    pub(crate) fn check_namespace(&self, name: &str) -> Result<(), Failure> {
        let namespaces = self.configuration.namespaces.iter();
        let known: Vec<&str> = namespaces.map(|namespace| namespace.name.as_str()).collect();
        if known.contains(&name) {
            return Ok(());
        }
        let file = folders::shown(&self.path);
        let failure = Failure::usage(format!("{file} has no namespace `{name}`"));
        Err(if known.is_empty() {
            failure.hint("it has none at all: see `namespaces` in docs/servers.md")
        } else {
            failure.meaning(name, known)
        })
    }

    /// The encoder, or why the configured one cannot be used.
    pub(crate) fn encoder(&self) -> Option<Result<EncoderSetup, String>> {
        encoder_of(&self.configuration.tool_search, &self.path)
    }

    /// The settings of a host for the servers that can be used: those of the namespace that was asked
    /// for, or else all that no namespace has for itself.
    pub(crate) fn settings(&self, mode: Option<Mode>) -> HostSettings {
        self.settings_of(self.namespace.as_deref(), mode)
    }

    /// Refuses what could not be kept to: a record that is required and has no place, and choices that
    /// nobody can read.
    fn check_kept(&self) -> Result<(), Failure> {
        let audit = &self.configuration.audit;
        if audit.enabled
            && audit.required
            && let Err(problem) = writable_store()
        {
            let message = format!("`audit.required` is set, and {problem}");
            return Err(Failure::usage(message).hint(WRITABLE));
        }
        let namespaces = self.configuration.namespaces.iter().map(|it| Some(it.name.as_str()));
        for file in std::iter::once(None).chain(namespaces).filter_map(|name| self.choices(name)) {
            file.read().map_err(damaged)?;
        }
        Ok(())
    }

    /// The settings of a host for each namespace, by its name, in the order of the file.
    pub(crate) fn namespaces(&self, mode: Option<Mode>) -> Vec<(String, HostSettings)> {
        let names = self.configuration.namespaces.iter().map(|namespace| &namespace.name);
        names.map(|name| (name.clone(), self.settings_of(Some(name), mode))).collect()
    }

    /// Who may call what, in the namespace that was asked for or else outside of them all.
    pub(crate) fn policy(&self) -> &PolicySettings {
        self.policy_of(self.namespace.as_deref())
    }

    fn policy_of(&self, namespace: Option<&str>) -> &PolicySettings {
        let mut namespaces = self.configuration.namespaces.iter();
        let chosen = namespaces.find(|known| Some(known.name.as_str()) == namespace);
        chosen.map_or(&self.configuration.policy, |chosen| &chosen.policy)
    }

    /// What is chosen for the servers, by people and models: each namespace has its own.
    pub(crate) fn choices(&self, namespace: Option<&str>) -> Option<ChoiceFile> {
        let path = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let namespace = namespace.map(|name| format!("#{name}")).unwrap_or_default();
        Some(store()?.choices(&format!("{}{namespace}", path.display())))
    }

    /// Where servers are found that are not configured.
    pub(crate) fn registry(&self) -> Option<Registry> {
        let configured = &self.configuration.registry;
        let sources = configured.sources.iter().map(|source| match source {
            RegistrySource::Url(url) => Source::Url(url.clone()),
            RegistrySource::Path(path) => Source::Path(beside(&self.path, path)),
        });
        let sources: Vec<Source> = sources.collect();
        let cache = store().map(|store| store.fetched("registry"));
        let settings = RegistrySettings { sources, max_age: configured.cache, cache };
        (!settings.sources.is_empty()).then(|| Registry::new(settings))
    }

    fn settings_of(&self, namespace: Option<&str>, mode: Option<Mode>) -> HostSettings {
        let configuration = &self.configuration;
        let namespaces = &configuration.namespaces;
        let chosen = namespaces.iter().find(|known| Some(known.name.as_str()) == namespace);
        let search = chosen.map_or(&configuration.tool_search, |chosen| &chosen.tool_search);
        let policy = self.policy_of(namespace).clone();
        let is_in = |namespace: &Namespace, server: &str| {
            namespace.servers.iter().any(|name| name == server)
        };
        let belongs = |server: &str| {
            let mut exclusive = namespaces.iter().filter(|namespace| namespace.exclusive);
            let mut elsewhere = || exclusive.any(|namespace| is_in(namespace, server));
            chosen.map_or_else(|| !elsewhere(), |chosen| is_in(chosen, server))
        };
        let servers = configuration
            .servers
            .iter()
            .filter(|server| server.settings.enabled && belongs(&server.name))
            .filter_map(|server| {
                let endpoint = endpoint(server, server.transport.as_ref().ok()?)?;
                Some(setup(server, endpoint))
            })
            .collect();
        // One namespace may hold back what is new where the others do not.
        let holds = policy.new_tools == NewTools::Hold;
        let lock = self.lock.clone().or_else(|| holds.then(Lock::default));
        HostSettings {
            exposure: exposure(search, mode),
            namespace: namespace.map(str::to_owned),
            max_results: search.max_results,
            keep_loaded_tools: search.keep_loaded_tools,
            instructions_budget: search.instructions_budget,
            strategy: match search.strategy {
                SearchStrategy::Hybrid => StrategyName::Hybrid,
                SearchStrategy::Bm25 => StrategyName::Bm25,
                SearchStrategy::Embedding => StrategyName::Embedding,
                SearchStrategy::Keyword => StrategyName::Keyword,
                SearchStrategy::Regex => StrategyName::Regex,
                SearchStrategy::Subagent => StrategyName::Subagent,
            },
            subagent: search.subagent.as_ref().and_then(subagent::of),
            usage_memory: search.usage_memory,
            encoder: encoder_of(search, &self.path).and_then(Result::ok),
            store: writable_store().ok(),
            choices: self.choices(namespace),
            supply: Supply {
                registry: self.registry().map(Arc::new),
                skills: Arc::clone(&self.skills),
                is_set,
            },
            code: code(&configuration.code_mode),
            pin: lock.is_some().then(|| Pins::beside(&self.path).pin()),
            lock,
            policy,
            audit: configuration.audit.enabled.then_some(AuditSettings {
                arguments: configuration.audit.arguments,
                required: configuration.audit.required,
                limits: audit_limits(&configuration.audit),
            }),
            telemetry: telemetry::of(&configuration.telemetry),
            ..HostSettings::new(servers)
        }
    }
}

/// How much of the record is kept.
pub(crate) fn audit_limits(audit: &AuditLogging) -> AuditLimits {
    AuditLimits {
        file_bytes: audit.max_megabytes.saturating_mul(1024 * 1024),
        files: usize::try_from(audit.keep_files).unwrap_or(usize::MAX),
    }
}

/// Whether a variable is set for the programs that are started, which inherit ours.
pub(crate) fn is_set(name: &str) -> bool {
    env::var_os(name).is_some_and(|value| !value.is_empty())
}

fn encoder_of(search: &ToolSearch, path: &Path) -> Option<Result<EncoderSetup, String>> {
    Some(encoder::setup(search.embeddings.as_ref()?, path))
}

/// Where things are kept; nowhere where the system has no place for them.
pub(crate) fn store() -> Option<Store> {
    folders::state().map(Store::new)
}

/// Where things are kept, if they can be; otherwise why not. What cannot be written is not used at all,
/// and said once.
pub(crate) fn writable_store() -> Result<Store, String> {
    static TRIED: OnceLock<Result<(), String>> = OnceLock::new();
    let store = store().ok_or("there is no folder to write to")?;
    let tried = TRIED.get_or_init(|| store.try_writing().map_err(|error| error.to_string()));
    tried.clone().map(|()| store)
}

/// Workers are this program again, in a hidden mode.
pub(crate) fn code(settings: &CodeMode) -> Option<CodeSettings> {
    let pool = PoolSettings::this_program([WORKER]).ok().filter(|_| settings.enabled)?;
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    Some(CodeSettings {
        pool: PoolSettings {
            warm: size(settings.warm_workers),
            runs: size(settings.max_runs),
            ..pool
        },
        limits: RunLimits {
            wall: Duration::from_secs_f64(settings.timeout_seconds),
            cpu: Duration::from_secs_f64(settings.cpu_seconds),
            memory_bytes: settings.memory_mb * 1024 * 1024,
            stack_bytes: settings.stack_kb * 1024,
            calls: settings.max_calls,
            calls_in_flight: size(settings.max_calls_in_flight),
            result_bytes: settings.max_result_bytes,
            output_bytes: size(settings.max_output_bytes),
        },
        max_output_tokens: size(settings.max_output_tokens),
        max_parallel_calls: size(settings.max_parallel_calls),
        retention: Retention {
            runs: u32::try_from(settings.journal.runs).unwrap_or(u32::MAX),
            days: u32::try_from(settings.journal.days).unwrap_or(u32::MAX),
            bytes: settings.journal.megabytes.saturating_mul(1024 * 1024),
        },
    })
}

fn setup(server: &toolgate_config::ServerEntry, endpoint: Endpoint) -> ServerSetup {
    let settings = &server.settings;
    let limits = ServerLimits {
        connect: settings.connect_timeout,
        idle: settings.call_idle_timeout,
        total: settings.call_total_timeout,
        max_message_bytes: settings.max_result_bytes,
        ..ServerLimits::default()
    };
    let rest_after = settings.idle_timeout;
    let spec = ServerSpec { limits, rest_after, ..ServerSpec::new(server.name.as_str(), endpoint) };
    let tools = &settings.tools;
    let entry = ServerEntry {
        name: server.name.as_str().into(),
        prefix: settings.prefix.clone(),
        description: settings.description.clone(),
        defer_loading: settings.defer_loading,
        defer_tools: tools
            .iter()
            .filter_map(|(name, tool)| Some((name.clone(), tool.defer_loading?)))
            .collect(),
    };
    let rules = ServerRules {
        skip_validation: !settings.validate_arguments,
        skip_validation_of: tools
            .iter()
            .filter_map(|(name, tool)| Some((name.clone(), !tool.validate_arguments?)))
            .collect(),
    };
    let filter = settings.tool_filter.clone();
    let admits = move |name: &str| filter.admits(name);
    ServerSetup { spec, entry, rules, admits: Arc::new(admits), lazy: settings.lazy }
}

fn endpoint(server: &toolgate_config::ServerEntry, transport: &Transport) -> Option<Endpoint> {
    Some(match transport {
        Transport::Stdio { command, args, env, cwd } => Endpoint::Stdio(StdioEndpoint {
            command: command.clone(),
            args: args.clone(),
            env: env.iter().map(|(key, value)| (key.clone(), value.expose().to_owned())).collect(),
            cwd: cwd.clone(),
        }),
        Transport::Http { url, headers, dialect } => Endpoint::Http(HttpEndpoint {
            url: url.clone(),
            headers: headers
                .iter()
                .map(|(key, value)| (key.clone(), value.expose().to_owned()))
                .collect(),
            dialect: match dialect {
                HttpDialect::Any => toolgate_upstream::HttpDialect::Any,
                HttpDialect::Sse => toolgate_upstream::HttpDialect::Sse,
            },
            // Where nothing can be kept, nobody can have logged in.
            authorizer: logins::authorizer(server, url).ok(),
        }),
        // The configuration knows no other kind today.
        _ => return None,
    })
}

fn exposure(search: &ToolSearch, mode: Option<Mode>) -> ExposureSettings {
    let configured = match search.enabled {
        ToolSearchMode::Auto => RequestedMode::Auto,
        ToolSearchMode::On => RequestedMode::Deferred,
        ToolSearchMode::Off => RequestedMode::Direct,
        ToolSearchMode::Code => RequestedMode::Code,
    };
    let style = match search.deferred {
        DeferredMode::Stable => DeferredStyle::Stable,
        DeferredMode::Dynamic => DeferredStyle::Dynamic,
    };
    let (mode, deferred) = match mode {
        None => (configured, style),
        Some(Mode::Auto) => (RequestedMode::Auto, style),
        Some(Mode::Direct) => (RequestedMode::Direct, style),
        Some(Mode::Deferred) => (RequestedMode::Deferred, style),
        Some(Mode::Stable) => (RequestedMode::Deferred, DeferredStyle::Stable),
        Some(Mode::Dynamic) => (RequestedMode::Deferred, DeferredStyle::Dynamic),
        Some(Mode::Code) => (RequestedMode::Code, style),
    };
    ExposureSettings {
        mode,
        deferred,
        context_window: search.context_window,
        threshold_percent: search.threshold_percent,
        character_threshold: search.token_threshold,
        tool_threshold: search.tool_threshold,
        unit: match search.token_counter {
            TokenCounter::O200k => CostUnit::Tokens,
            TokenCounter::Characters => CostUnit::Characters,
        },
    }
}
