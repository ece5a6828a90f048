//! What a host is started with.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use thiserror::Error;
use toolgate_broker::{
    AuditOptions, BrokerSettings, EndpointFingerprints, SharedCatalog, ValidationSettings,
};
use toolgate_catalog::{ExposureSettings, ServerEntry};
use toolgate_policy::{PolicySettings, definitions::Lock};
use toolgate_search::{Chooser, StrategyName};
use toolgate_store::{AuditLimits, ChoiceFile, Journal, Store, WRITABLE};
use toolgate_telemetry::Telemetry;
use toolgate_upstream::ServerSpec;

use crate::{
    code::CodeSettings, directory::ServerDirectory, encoding::EncoderSetup, tool_filter::PinWriter,
};

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
    pub subagent: Option<SubagentSettings>,
    /// Whether it is kept which query led to which call, and ranks tools.
    pub usage_memory: bool,
    /// Where definitions and vectors are cached, and logs and uses kept; nowhere where unset.
    pub store: Option<Store>,
    /// Where it is kept which servers are switched off, and what people consented to; nowhere where
    /// unset.
    pub choices: Option<ChoiceFile>,
    /// What can be had beside the servers.
    pub directory: ServerDirectory,
    /// When servers are connected.
    pub connect: Connect,
    /// Whether and how scripts run; not at all where unset.
    pub code: Option<CodeSettings>,
    /// Who may call what. Without rules every call goes through.
    pub policy: PolicySettings,
    /// The definitions that were approved: what is not as it was is held back. Without one nothing is.
    pub lock: Option<Lock>,
    /// Told which definitions are new and let in, to keep them.
    pub pin: Option<PinWriter>,
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
pub struct SubagentSettings {
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
    pub entry: ServerEntry,
    /// What the broker needs to know of it.
    pub validation: ValidationSettings,
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
            directory: ServerDirectory::default(),
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

impl HostSettings {
    /// What the broker needs of the settings.
    pub(crate) fn broker_settings(
        &self,
        catalog: SharedCatalog,
        opened: Option<Result<Arc<Journal>, JournalUnavailable>>,
    ) -> BrokerSettings {
        let (journal, no_journal) = match opened {
            Some(Ok(journal)) => (Some(journal), None),
            Some(Err(error)) => (None, Some(error.to_string())),
            None => (None, Some(format!("there is no folder for it; {WRITABLE}"))),
        };
        let endpoints = EndpointFingerprints::default();
        for ServerSetup { spec, .. } in &self.servers {
            endpoints.set(spec.name.clone(), spec.endpoint.fingerprint());
        }
        let audit = self.audit.filter(|audit| audit.required || self.store.is_some());
        let audit = audit.map(|audit| AuditOptions {
            log: self.store.as_ref().map(|store| store.audit().with_limits(audit.limits)),
            arguments: audit.arguments,
            required: audit.required,
            redactors: self.servers.iter().map(|setup| setup.spec.endpoint.redactor()).collect(),
        });
        let validation =
            self.servers.iter().map(|setup| (setup.spec.name.clone(), setup.validation.clone()));
        BrokerSettings {
            catalog,
            policy: self.policy.clone(),
            validation: validation.collect(),
            journal,
            no_journal,
            endpoints,
            audit,
            script_calls: self.code.as_ref().map_or(1, |code| code.max_parallel_calls),
            telemetry: self.telemetry.clone(),
        }
    }
}

/// Why the journal cannot be used. Without it no approval waits and no run can resume.
#[derive(Debug, Clone, Error)]
#[error("{0}")]
pub(crate) struct JournalUnavailable(String);

pub(crate) fn open_journal(store: &Store) -> Result<Arc<Journal>, JournalUnavailable> {
    let opened = store.journal().map_err(|error| match error.way_out() {
        Some(way_out) => JournalUnavailable(format!("{error}; {way_out}")),
        None => JournalUnavailable(error.to_string()),
    });
    opened.map(Arc::new).inspect_err(|error| tracing::warn!("{error}"))
}

impl ServerSetup {
    /// A server with nothing set but how to reach it.
    pub fn new(spec: ServerSpec) -> Self {
        let entry =
            ServerEntry { defer_tools: HashMap::new(), ..ServerEntry::named(spec.name.clone()) };
        let validation = ValidationSettings::default();
        Self { spec, entry, validation, admits: Arc::new(|_| true), lazy: false }
    }
}

impl fmt::Debug for ServerSetup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ServerSetup")
            .field("spec", &self.spec)
            .field("entry", &self.entry)
            .field("lazy", &self.lazy)
            .finish_non_exhaustive()
    }
}
