//! The settings of a host.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use thiserror::Error;
use toolgate_broker::{
    AuditOptions, BrokerSettings, CallLimiter, CallerReads, ClientForms, EndpointFingerprints,
    KeepTime, SharedCatalog, ValidationSettings,
};
use toolgate_catalog::{CatalogServer, ExposureSettings, ServerName};
use toolgate_policy::{PolicySettings, definitions::Lock};
use toolgate_search::{Chooser, StrategyName};
use toolgate_store::{AuditLimits, ChoiceStore, Journal, Store, WRITABLE};
use toolgate_telemetry::Telemetry;
use toolgate_upstream::ServerSpec;

use crate::{
    code::CodeSettings, directory::ServerDirectory, encoding::EncoderSetup, events::HostEvents,
    tool_filter::PinWriter,
};

/// Everything that a host needs to know. It reads no file and no environment variable on its own.
#[derive(Debug, Clone)]
pub struct HostSettings {
    /// The servers, in the order of every list.
    pub servers: Vec<ServerSetup>,
    /// When tools are deferred.
    pub exposure: ExposureSettings,
    /// The namespace that the host serves; `None` for the servers outside of namespaces.
    pub namespace: Option<String>,
    /// How many tools a search returns by default.
    pub max_results: usize,
    /// Whether found tools stay loaded. Otherwise the session can unload them.
    pub keep_loaded_tools: bool,
    /// How many tokens of the servers' instructions a session gets; 0 for none.
    pub instructions_budget: usize,
    /// How much of a result, or of a script's output and value, a model gets at once, in tokens.
    pub max_output_tokens: usize,
    /// How tools are ranked.
    pub strategy: StrategyName,
    /// Whether the draft extension for groups is spoken, with clients and with servers.
    pub groups: bool,
    /// Makes the vectors for strategies that rank by meaning. Without one, the built-in word
    /// vectors are used.
    pub encoder: Option<EncoderSetup>,
    /// The model that chooses tools, for [`StrategyName::Subagent`].
    pub subagent: Option<SubagentSettings>,
    /// Whether successful calls are remembered with the queries that led to them, and used to rank
    /// tools.
    pub usage_memory: bool,
    /// Where definitions and vectors are cached, and logs and uses stored; `None` for nowhere.
    pub store: Option<Store>,
    /// Where disabled servers and the consents of people are stored; `None` for nowhere.
    pub choices: Option<Arc<dyn ChoiceStore>>,
    /// Servers and skills that are not in use yet.
    pub directory: ServerDirectory,
    /// When servers are connected.
    pub connect: Connect,
    /// How scripts run; `None` if they are off.
    pub code: Option<CodeSettings>,
    /// Who may call what. Without rules every call is allowed.
    pub policy: PolicySettings,
    /// The approved definitions. A definition that differs from its pin is held back. `None`
    /// approves everything.
    pub lock: Option<Lock>,
    /// Stores new definitions that were let in.
    pub pin: Option<PinWriter>,
    /// How calls are recorded, if there is a store; `None` for not at all.
    pub audit: Option<AuditSettings>,
    /// Where calls are counted for limits. Hosts that share it share the counts; without it the host
    /// has its own.
    pub limiter: Option<Arc<CallLimiter>>,
    /// Where spans and metrics go.
    pub telemetry: Telemetry,
    /// Whether approvals and consents are asked for with a form in the client.
    pub forms: ClientForms,
    /// What the instructions and every search tell the model besides, one sentence or two each.
    pub notices: Vec<String>,
    /// What callers have read. Hosts that share it know the same callers.
    pub callers: CallerReads,
    /// Where it is reported what happens.
    pub events: HostEvents,
}

/// How calls are recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AuditSettings {
    /// Whether the arguments themselves are recorded, and not only their hash.
    pub arguments: bool,
    /// Whether a call is refused if it cannot be recorded.
    pub required: bool,
    /// How much of the audit log is kept.
    pub limits: AuditLimits,
}

/// A model that chooses tools from candidates.
#[derive(Debug, Clone)]
pub struct SubagentSettings {
    /// The model.
    pub chooser: Arc<dyn Chooser>,
    /// How many candidates the model gets.
    pub candidates: usize,
    /// How long a search waits for the model.
    pub timeout: Duration,
}

/// When servers are connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Connect {
    /// At the start. Servers in the cache connect after the cache has been read.
    #[default]
    AtStart,
    /// Servers in the cache connect at their first call, the others at the start.
    WhenNeeded,
}

/// One server.
#[derive(Clone)]
pub struct ServerSetup {
    /// How to reach it.
    pub spec: ServerSpec,
    /// The catalog's settings of the server.
    pub entry: CatalogServer,
    /// How the arguments for its tools are checked.
    pub validation: ValidationSettings,
    /// Which of its tools are used, by their own names.
    pub admits: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    /// Whether the server is connected only when one of its tools is called or somebody enables it.
    /// Requests do not wait for a lazy server: until then, its tools come from the cache.
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
            max_output_tokens: 4_000,
            strategy: StrategyName::default(),
            subagent: None,
            usage_memory: true,
            groups: false,
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
            limiter: None,
            telemetry: Telemetry::off(),
            forms: ClientForms::default(),
            notices: Vec::new(),
            callers: CallerReads::default(),
            events: HostEvents::default(),
        }
    }
}

impl HostSettings {
    /// The servers at which each caller has their own login.
    pub(crate) fn per_caller(&self) -> HashSet<ServerName> {
        let servers = self.servers.iter().filter(|setup| setup.spec.callers.is_some());
        servers.map(|setup| setup.spec.name.clone()).collect()
    }

    /// What the broker needs of the settings.
    pub(crate) fn broker_settings(
        &self,
        catalog: SharedCatalog,
        opened: Option<Result<Arc<dyn Journal>, JournalUnavailable>>,
    ) -> BrokerSettings {
        let (journal, no_journal) = match opened {
            Some(Ok(journal)) => (Some(journal), None),
            Some(Err(error)) => (None, Some(error.to_string())),
            None => (None, Some(format!("there is no folder for it; {WRITABLE}"))),
        };
        let endpoints = EndpointFingerprints::default();
        for ServerSetup { spec, .. } in &self.servers {
            endpoints.set(spec.name.clone(), spec.fingerprint());
        }
        let audit = self.audit.filter(|audit| audit.required || self.store.is_some());
        let audit = audit.map(|audit| AuditOptions {
            log: self.store.as_ref().map(|store| store.audit_within(audit.limits)),
            arguments: audit.arguments,
            required: audit.required,
            redactors: self.servers.iter().map(|setup| setup.spec.redactor()).collect(),
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
            forms: self.forms,
            audit,
            limiter: Some(
                self.limiter
                    .clone()
                    .unwrap_or_else(|| CallLimiter::new(self.store.as_ref().map(Store::quotas))),
            ),
            script_calls: self.code.as_ref().map_or(1, |code| code.max_parallel_calls),
            telemetry: self.telemetry.clone(),
            callers: self.callers.clone(),
            remember: KeepTime::default(),
        }
    }
}

/// Why the journal cannot be used. Without it no approval waits and no run can resume.
#[derive(Debug, Clone, Error)]
#[error("{0}")]
pub(crate) struct JournalUnavailable(String);

pub(crate) fn open_journal(store: &Store) -> Result<Arc<dyn Journal>, JournalUnavailable> {
    let opened = store.journal().map_err(|error| match error.remedy() {
        Some(remedy) => JournalUnavailable(format!("{error}; {remedy}")),
        None => JournalUnavailable(error.to_string()),
    });
    opened.inspect_err(|error| tracing::warn!("{error}"))
}

impl ServerSetup {
    /// A server with default settings.
    pub fn new(spec: ServerSpec) -> Self {
        let entry = CatalogServer {
            defer_tools: HashMap::new(),
            ..CatalogServer::named(spec.name.clone())
        };
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
