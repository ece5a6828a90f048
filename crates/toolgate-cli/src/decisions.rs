//! Writes decisions that a person makes at the shell to the audit log.

use std::env;

use toolgate_store::{AuditRecord, Store};

use crate::{failure::Failure, load};

/// Longer user names are cut.
const LONGEST_NAME: usize = 64;

/// The caller of the person at the shell, for audit records.
pub(crate) fn who() -> String {
    let user = ["USER", "LOGNAME", "USERNAME"].iter().find_map(|name| env::var(name).ok());
    let user: String = user.unwrap_or_default().chars().take(LONGEST_NAME).collect();
    if user.is_empty() { "shell".to_owned() } else { format!("shell:{user}") }
}

/// Records a decision about a server: its `kind`, and in words what was done.
pub(crate) fn about_server(
    kind: &str,
    server: &str,
    allowed: bool,
    what: impl Into<String>,
) -> Result<(), Failure> {
    let Some(store) = load::store() else { return Ok(()) };
    let record = AuditRecord {
        kind: kind.to_owned(),
        server: server.to_owned(),
        verdict: if allowed { "allow" } else { "deny" }.to_owned(),
        rule: what.into(),
        ..AuditRecord::default()
    };
    write(&store, record)
}

/// Records a decision.
pub(crate) fn write(store: &Store, record: AuditRecord) -> Result<(), Failure> {
    let record = AuditRecord { caller: who(), ..record };
    store.audit().append(&record).map_err(|error| Failure::new(error.to_string()))
}
