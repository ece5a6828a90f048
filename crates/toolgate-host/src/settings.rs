//! What a host is started with.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use toolgate_broker::ServerRules;
use toolgate_catalog::{CatalogServer, ExposureSettings};
use toolgate_policy::{PolicySettings, definitions::Lock};
use toolgate_search::{Chooser, StrategyName};
use toolgate_store::{AuditLimits, ChoiceFile, Store};
use toolgate_telemetry::Telemetry;
use toolgate_upstream::ServerSpec;

use crate::{code::CodeSettings, encoding::EncoderSetup, screen::Pin, supply::Supply};

/// Everything a host needs to know. It reads no file and no environment by itself.
#[derive(Debug, Clone)]
pub struct HostSettings {
    /// The servers, in the order of every listing.
    pub servers: Vec<ServerSetup>,
    /// When tools are deferred.
    pub exposure: ExposureSettings,
    /// The namespace that it is for; none for all that belongs to none.
    pub namespace: Option<String>,
    /// How many tools a search gives unless it asks for another number.
    pub max_results: usize,
    /// Whether tools that were found stay loaded. Otherwise the session can unload them.
    pub keep_loaded_tools: bool,
    /// How many tokens of what servers say of themselves a session is told; nothing where 0.
    pub instructions_budget: usize,
    /// How tools are ranked.
    pub strategy: StrategyName,
    /// What says what is near in meaning, where the strategy looks at that; without it, the word
    /// vectors in the program do.
    pub encoder: Option<EncoderSetup>,
    /// The model that chooses, where the strategy is [`StrategyName::Subagent`].
    pub subagent: Option<Subagent>,
    /// Whether it is kept which query led to which call, and ranks tools.
    pub usage_memory: bool,
    /// Where definitions and vectors are cached, and logs and uses kept; nowhere where unset.
    pub store: Option<Store>,
    /// Where it is kept which servers are switched off, and what people consented to; nowhere where
    /// unset.
    pub choices: Option<ChoiceFile>,
    /// What can be had beside the servers.
    pub supply: Supply,
    /// When servers are connected.
    pub connect: Connect,
    /// Whether and how scripts run; not at all where unset.
    pub code: Option<CodeSettings>,
    /// Who may call what. Without rules every call goes through.
    pub policy: PolicySettings,
    /// The definitions that were approved: what is not as it was is held back. Without one nothing is.
    pub lock: Option<Lock>,
    /// Told which definitions are new and let in, to keep them.
    pub pin: Option<Pin>,
    /// How calls are recorded, where there is a store; not at all where unset.
    pub audit: Option<AuditSettings>,
    /// Who is told of requests, runs and calls, in figures.
    pub telemetry: Telemetry,
}

/// How calls are recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AuditSettings {
    /// Whether arguments are kept as they are, and not by their hash alone.
    pub arguments: bool,
    /// Whether a call is refused that cannot be recorded.
    pub required: bool,
    /// How much of the record is kept.
    pub limits: AuditLimits,
}

/// A model that chooses tools from candidates.
#[derive(Debug, Clone)]
pub struct Subagent {
    /// Who is asked.
    pub chooser: Arc<dyn Chooser>,
    /// How many candidates there are.
    pub candidates: usize,
    /// How long a search waits for an answer.
    pub timeout: Duration,
}

/// When servers are connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Connect {
    /// At the start. Those in the cache come after it has been read, which they would only slow.
    #[default]
    AtStart,
    /// Those in the cache at their first call; the others at the start.
    WhenNeeded,
}

/// One server.
#[derive(Clone)]
pub struct ServerSetup {
    /// How to reach it.
    pub spec: ServerSpec,
    /// What the catalogue needs to know of it.
    pub entry: CatalogServer,
    /// What the broker needs to know of it.
    pub rules: ServerRules,
    /// Which of its tools exist for toolgate, by their own names.
    pub admits: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    /// Whether it is left alone until one of its tools is called or somebody enables it. Nobody waits
    /// for a lazy server: what is in the cache is known of it, and else its description.
    pub lazy: bool,
}

impl HostSettings {
    /// The defaults, with these servers.
    pub fn new(servers: Vec<ServerSetup>) -> Self {
        Self {
            servers,
            exposure: ExposureSettings::default(),
            namespace: None,
            max_results: 5,
            keep_loaded_tools: true,
            instructions_budget: 1_000,
            strategy: StrategyName::default(),
            subagent: None,
            usage_memory: true,
            encoder: None,
            store: None,
            choices: None,
            supply: Supply::default(),
            connect: Connect::default(),
            code: None,
            policy: PolicySettings::default(),
            lock: None,
            pin: None,
            audit: Some(AuditSettings::default()),
            telemetry: Telemetry::off(),
        }
    }
}

impl ServerSetup {
    /// A server with nothing set but how to reach it.
    pub fn new(spec: ServerSpec) -> Self {
        let entry = CatalogServer {
            defer_tools: HashMap::new(),
            ..CatalogServer::named(spec.name.clone())
        };
        let rules = ServerRules::default();
        Self { spec, entry, rules, admits: Arc::new(|_| true), lazy: false }
    }
}

impl fmt::Debug for ServerSetup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ServerSetup")
            .field("spec", &self.spec)
            .field("entry", &self.entry)
            .field("rules", &self.rules)
            .field("lazy", &self.lazy)
            .finish_non_exhaustive()
    }
}
