//! Writes decisions that a person makes at the shell to the audit log.

use std::env;

use toolgate_store::{AuditRecord, Store};

use crate::{failure::Failure, load};

/// Longer user names are cut.
const LONGEST_NAME: usize = 64;

/// The caller of the person at the shell, for audit records.
pub(crate) fn caller() -> String {
    let user = ["USER", "LOGNAME", "USERNAME"].iter().find_map(|name| env::var(name).ok());
    let user: String = user.unwrap_or_default().chars().take(LONGEST_NAME).collect();
    if user.is_empty() { "shell".to_owned() } else { format!("shell:{user}") }
}

/// The audit record of a decision: its `kind`, and what was done.
pub(crate) fn record(kind: &str, allowed: bool, what: impl Into<String>) -> AuditRecord {
    AuditRecord {
        kind: kind.to_owned(),
        caller: caller(),
        verdict: if allowed { "allow" } else { "deny" }.to_owned(),
        rule: what.into(),
        ..AuditRecord::default()
    }
}

/// Writes a decision about a server.
pub(crate) fn about_server(
    kind: &str,
    server: &str,
    allowed: bool,
    what: impl Into<String>,
) -> Result<(), Failure> {
    let Some(store) = load::store() else { return Ok(()) };
    let server = server.to_owned();
    write(&store, &AuditRecord { server, ..record(kind, allowed, what) })
}

/// Writes a decision.
pub(crate) fn write(store: &Store, record: &AuditRecord) -> Result<(), Failure> {
    Ok(store.audit().append(record)?)
}
