//! What was called lately, as the audit log has it.

use std::{collections::BTreeMap, ops::ControlFlow};

use serde::Serialize;
use toolgate_store::{AuditError, AuditLog};

/// The calls of the last hour.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallActivity {
    /// For each minute, the oldest first: the calls that went well, and the others.
    pub minutes: Vec<(u64, u64)>,
    /// By server.
    pub servers: BTreeMap<String, ServerCalls>,
    /// Whether there were more calls than were looked at.
    pub is_cut: bool,
}

/// The calls of one server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerCalls {
    /// How many calls there were.
    pub calls: u64,
    /// How many of them had no result, or an error.
    pub failed: u64,
    /// The time that half of the calls took at most, in microseconds.
    pub median: u64,
    /// The time that 95 of 100 calls took at most, in microseconds.
    pub slow: u64,
    /// The last call that failed: when, in milliseconds since 1970, of which tool, and how.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<(u64, String, String)>,
    #[serde(skip)]
    durations: Vec<u64>,
}

/// The minutes that are counted.
const MINUTES: usize = 60;
/// How many records are looked at.
const LOOKED_AT: usize = 100_000;

impl CallActivity {
    /// Reads the calls of the hour before `now`, which is in milliseconds since 1970.
    pub fn read(log: &dyn AuditLog, now: u64) -> Result<Self, AuditError> {
        let mut activity = Self { minutes: vec![(0, 0); MINUTES], ..Self::default() };
        let mut looked_at = 0;
        log.read_back(None, &mut |seen| {
            looked_at += 1;
            let ago = usize::try_from(now.saturating_sub(seen.time) / 60_000).unwrap_or(usize::MAX);
            let Some(place) = MINUTES.checked_sub(ago.saturating_add(1)) else {
                return ControlFlow::Break(());
            };
            let record = seen.record;
            // A call that waits for a person has neither gone well nor failed. It is counted when it is made.
            if record.kind == "call"
                && record.outcome != "waiting"
                && let Some(minute) = activity.minutes.get_mut(place)
            {
                let is_well = record.outcome == "ok";
                if is_well {
                    minute.0 += 1;
                } else {
                    minute.1 += 1;
                }
                let server = activity.servers.entry(record.server).or_default();
                server.calls += 1;
                server.durations.push(record.duration);
                if !is_well {
                    server.failed += 1;
                    // The newest comes first.
                    let failure = || (seen.time, record.tool, record.outcome);
                    server.last_failure.get_or_insert_with(failure);
                }
            }
            activity.is_cut = looked_at >= LOOKED_AT;
            if activity.is_cut { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        for server in activity.servers.values_mut() {
            server.durations.sort_unstable();
            let last = server.durations.len().saturating_sub(1);
            let at = |share: usize| server.durations.get(last * share / 100).copied();
            (server.median, server.slow) = (at(50).unwrap_or_default(), at(95).unwrap_or_default());
        }
        Ok(activity)
    }
}
