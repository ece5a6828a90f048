//! From a configuration file to the settings of a host.

use std::{env, fs, path::PathBuf, sync::Arc, time::Duration};

use toolgate_broker::ServerRules;
use toolgate_catalog::{CostUnit, DeferredStyle, ExposureSettings, RequestedMode, ServerEntry};
use toolgate_config::{
    CodeMode, Configuration, DeferredMode, Format, Problem, SearchStrategy, Severity, TokenCounter,
    ToolSearch, ToolSearchMode, Transport,
};
use toolgate_host::{AuditSettings, CodeSettings, EncoderSetup, HostSettings, ServerSetup};
use toolgate_sandbox::{PoolSettings, RunLimits};
use toolgate_search::StrategyName;
use toolgate_store::{Retention, Store};
use toolgate_upstream::{Endpoint, HttpEndpoint, Limits, ServerSpec, StdioEndpoint};

use crate::{
    cli::{Globals, Mode},
    encoder,
    failure::Failure,
    folders,
    printer::Printer,
    subagent,
};

/// The argument that makes this program a worker of the sandbox.
pub(crate) const WORKER: &str = "sandbox-worker";

/// What was read.
pub(crate) struct Loaded {
    /// Where from.
    pub(crate) path: PathBuf,
    /// What it says.
    pub(crate) configuration: Configuration,
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
    Ok(Loaded { path, configuration })
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
    let file = folders::shown(&loaded.path);
    if let Some(Err(reason)) = loaded.encoder() {
        printer.note(format!(
            "warning: {file}: `toolSearch.embeddings` cannot be used, the built-in word vectors are: {reason}"
        ));
    }
    for server in loaded.configuration.servers.iter().filter(|server| server.settings.enabled) {
        let name = &server.name;
        if server.settings.lazy {
            printer.note(format!(
                "warning: {file}: `lazy` of `{name}` has no effect yet; the server is connected at the start"
            ));
        }
    }
}

/// Whether something in the configuration costs a server.
pub(crate) fn has_errors(problems: &[Problem]) -> bool {
    problems.iter().any(|problem| problem.severity == Severity::Error)
}

impl Loaded {
    /// The encoder, or why the configured one cannot be used.
    pub(crate) fn encoder(&self) -> Option<Result<EncoderSetup, String>> {
        let configured = self.configuration.tool_search.embeddings.as_ref()?;
        Some(encoder::setup(configured, &self.path))
    }

    /// The settings of a host for the servers that can be used.
    pub(crate) fn settings(&self, mode: Option<Mode>) -> HostSettings {
        let search = &self.configuration.tool_search;
        let servers = self
            .configuration
            .servers
            .iter()
            .filter(|server| server.settings.enabled)
            .filter_map(|server| {
                let endpoint = endpoint(server.transport.as_ref().ok()?)?;
                Some(setup(server, endpoint))
            })
            .collect();
        HostSettings {
            exposure: exposure(search, mode),
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
            encoder: self.encoder().and_then(Result::ok),
            store: store(),
            code: code(&self.configuration.code_mode),
            policy: self.configuration.policy.clone(),
            audit: self.configuration.audit.enabled.then_some(AuditSettings {
                arguments: self.configuration.audit.arguments,
                required: self.configuration.audit.required,
            }),
            ..HostSettings::new(servers)
        }
    }
}

/// Where things are kept; nowhere where the system has no place for them.
pub(crate) fn store() -> Option<Store> {
    folders::state().map(Store::new)
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
    let limits = Limits {
        connect: settings.connect_timeout,
        idle: settings.call_idle_timeout,
        total: settings.call_total_timeout,
        max_message_bytes: settings.max_result_bytes,
        ..Limits::default()
    };
    let spec = ServerSpec { limits, ..ServerSpec::new(server.name.as_str(), endpoint) };
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
    ServerSetup { spec, entry, rules, admits: Arc::new(admits) }
}

fn endpoint(transport: &Transport) -> Option<Endpoint> {
    Some(match transport {
        Transport::Stdio { command, args, env, cwd } => Endpoint::Stdio(StdioEndpoint {
            command: command.clone(),
            args: args.clone(),
            env: env.iter().map(|(key, value)| (key.clone(), value.expose().to_owned())).collect(),
            cwd: cwd.clone(),
        }),
        Transport::Http { url, headers } => Endpoint::Http(HttpEndpoint {
            url: url.clone(),
            headers: headers
                .iter()
                .map(|(key, value)| (key.clone(), value.expose().to_owned()))
                .collect(),
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
