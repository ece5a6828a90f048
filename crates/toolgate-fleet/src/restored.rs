//! What the database must not say any more after a restore: it is of the time of the back-up, and the servers are not.

use serde::Serialize;
use toolgate_store::{AuditRecord, SharedStore as _};

use crate::{Fleet, database::FleetError};

/// How many things were ended after a restore.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RestoreSummary {
    /// Runs that can no longer be resumed.
    pub runs: u64,
    /// Questions and answers that no longer count.
    pub approvals: u64,
    /// Sessions, requests that waited, and tasks.
    pub requests: u64,
}

/// Why the runs have ended.
const ENDED: &str =
    "the database was restored from a back-up, and what the run did after it is not known";

impl Fleet {
    /// Ends what was open at the time of the back-up: it may have gone on since, and must not happen twice. No node may
    /// live meanwhile.
    pub fn restored(&self) -> Result<RestoreSummary, FleetError> {
        let now = crate::now();
        let summary = self.node.database.with_long(|mut connection| async move {
            let transaction = connection.transaction().await?;
            let living = "SELECT count(*) FROM node WHERE lease_until > now()";
            let living: i64 = transaction.query_one(living, &[]).await?.get(0);
            if living > 0 {
                return Err(FleetError::System(format!(
                    "{living} nodes live; stop them first, and wait until their leases are over"
                )));
            }
            // A run that is done is never resumed, whatever the version of the program.
            let runs = "UPDATE run SET state = 'done', error = $1, ended = coalesce(ended, $2) WHERE state <> 'done'";
            let runs = transaction.execute(runs, &[&ENDED.as_bytes(), &now]).await?;
            let approvals = transaction.execute("DELETE FROM approval", &[]).await?;
            let mut requests = 0;
            for what in ["DELETE FROM timed_value", "DELETE FROM task", "DELETE FROM message"] {
                requests += transaction.execute(what, &[]).await?;
            }
            transaction.commit().await?;
            Ok(RestoreSummary { runs, approvals, requests })
        })?;
        let record = AuditRecord {
            kind: "restored".to_owned(),
            rule: "the database was restored from a back-up: later records are missing".to_owned(),
            ..AuditRecord::default()
        };
        self.audit().append(&record).map_err(|error| FleetError::System(error.to_string()))?;
        Ok(summary)
    }
}
