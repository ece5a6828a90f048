//! What a host's settings are to the gate.

use std::sync::Arc;

use toolgate_broker::{Audit, Endpoints, GuardSettings};
use toolgate_store::{Journal, Store, WRITABLE};

use crate::settings::{HostSettings, ServerSetup};

/// What decides on calls and keeps what was decided.
pub(crate) fn guard(
    settings: &HostSettings,
    opened: Option<Result<Arc<Journal>, String>>,
) -> GuardSettings {
    let (journal, no_journal) = match opened {
        Some(Ok(journal)) => (Some(journal), None),
        Some(Err(why)) => (None, Some(why)),
        None => (None, Some(format!("there is no folder for it; {WRITABLE}"))),
    };
    let endpoints = Endpoints::default();
    for ServerSetup { spec, .. } in &settings.servers {
        endpoints.set(spec.name.clone(), spec.fingerprint());
    }
    let wanted = settings.audit.filter(|audit| audit.required || settings.store.is_some());
    let audit = wanted.map(|audit| Audit {
        log: settings.store.as_ref().map(|store| store.audit().with_limits(audit.limits)),
        arguments: audit.arguments,
        required: audit.required,
        redactors: settings.servers.iter().map(|setup| setup.spec.endpoint.redactor()).collect(),
    });
    let script_calls = settings.code.as_ref().map_or(1, |code| code.max_parallel_calls);
    let (policy, telemetry) = (settings.policy.clone(), settings.telemetry.clone());
    GuardSettings { policy, journal, no_journal, endpoints, audit, script_calls, telemetry }
}

/// Without a journal nothing waits for a person and nothing outlives the process.
pub(crate) fn open_journal(store: &Store) -> Result<Arc<Journal>, String> {
    let opened = store.journal().map_err(|error| match error.way_out() {
        Some(way_out) => format!("{error}; {way_out}"),
        None => error.to_string(),
    });
    opened.map(Arc::new).inspect_err(|error| tracing::warn!("{error}"))
}
