//! Copies what is in a state folder into the shared database.

use serde::Serialize;
use toolgate_store::{
    Approvals as _, AuditRecord, CallDecision, CallEnd, NewCall, RunEntries as _, RunEntry,
    RunState, Runs as _, Store, UsageLog as _,
};

use crate::Fleet;

/// How many things were copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportSummary {
    /// Runs with their calls.
    pub runs: u64,
    /// Grants.
    pub grants: u64,
    /// Questions that wait for a person.
    pub approvals: u64,
    /// Lines of the audit log.
    pub audit_lines: u64,
    /// Access tokens.
    pub tokens: u64,
    /// Past queries.
    pub uses: u64,
}

/// Lines of the audit log that are written together.
const LINES_TOGETHER: usize = 500;
/// The most runs that are copied.
const MOST_RUNS: u32 = 1_000_000;

impl Fleet {
    /// Copies runs, grants, open questions, the audit log, tokens and past queries. What is there already stays as it
    /// is, so a second time copies what is new; but the lines of the audit log are appended each time, so they are
    /// copied only into an empty log. `step` hears what is copied next.
    pub fn import(
        &self,
        from: &Store,
        step: &mut dyn FnMut(&str),
    ) -> Result<ImportSummary, Box<dyn std::error::Error + Send + Sync>> {
        let from = from.embedded();
        let mut summary = ImportSummary::default();
        let journal = from.journal()?;
        step("runs");
        for run in journal.runs(MOST_RUNS)?.iter().rev() {
            let known = self.journal.history(&run.id)?.is_some();
            if !known && run.state != RunState::Damaged && self.import_run(&*journal, &run.id)? {
                summary.runs += 1;
            }
        }
        step("grants and questions");
        let known = self.journal.grants()?;
        for grant in
            journal.grants()?.iter().filter(|grant| !known.iter().any(|it| it.id == grant.id))
        {
            self.journal.grant(grant)?;
            summary.grants += 1;
        }
        for approval in journal.open_approvals()? {
            if self.journal.approval(&approval.id)?.is_none()
                && self.journal.ask(&approval)?.is_some()
            {
                summary.approvals += 1;
            }
        }
        step("tokens");
        for token in from.access_tokens().list()? {
            summary.tokens += u64::from(self.tokens.add(&token)?);
        }
        step("past queries");
        if self.usage.read().is_empty() {
            let uses = from.usage().read();
            self.usage.append(&uses)?;
            summary.uses = uses.len() as u64;
        }
        step("audit log");
        if self.status()?.audit_lines == 0 {
            summary.audit_lines = self.import_audit(&from)?;
        }
        Ok(summary)
    }

    fn import_audit(&self, from: &Store) -> Result<u64, Box<dyn std::error::Error + Send + Sync>> {
        let mut gathered: Vec<(u64, AuditRecord)> = Vec::new();
        let (mut written, mut failure) = (0, None);
        let mut write = |gathered: &mut Vec<(u64, AuditRecord)>| {
            if failure.is_none() {
                failure = self.audit.import(gathered).err();
                written += gathered.len() as u64;
            }
            gathered.clear();
        };
        from.audit().read(&mut |line| {
            gathered.extend(line.ok());
            if gathered.len() >= LINES_TOGETHER {
                write(&mut gathered);
            }
        })?;
        write(&mut gathered);
        failure.map_or(Ok(written), |error| Err(error.into()))
    }

    fn import_run(
        &self,
        from: &dyn toolgate_store::Journal,
        id: &str,
    ) -> Result<bool, Box<dyn std::error::Error + Send + Sync>> {
        let (Some(history), Some(detail)) = (from.history(id)?, from.run(id)?) else {
            return Ok(false);
        };
        if from.is_running(id)? {
            return Ok(false);
        }
        self.journal.write_soon(RunEntry::began(&history.run))?;
        let shown = |number: u64| detail.calls.iter().find(|call| call.number == number);
        for call in &history.calls {
            let shown = shown(call.number);
            let verdict = shown.and_then(|shown| shown.verdict.as_ref());
            let decision = CallDecision {
                verdict: verdict.map_or("", |(verdict, _)| verdict),
                rule: verdict.map_or("", |(_, rule)| rule),
                sent: call.sent,
                once: call.sent,
                flow: shown.and_then(|shown| shown.flow.as_deref()),
                origin: call.origin.as_deref(),
            };
            let new = NewCall {
                number: call.number,
                name: &call.name,
                arguments: &call.arguments,
                decision: Some(decision),
                lost: false,
            };
            self.journal.write_soon(RunEntry::called(id, &new))?;
        }
        for event in &history.events {
            let call = event
                .call
                .and_then(|number| history.calls.iter().find(|call| call.number == number));
            let end =
                call.and_then(|call| Some((call.number, call.unknown, call.outcome.as_ref()?)));
            let entry = match end {
                Some((number, _, Ok(value))) => {
                    RunEntry::answered(id, number, event.at, CallEnd::Returned(value))
                }
                Some((number, true, Err((tool, message)))) => {
                    RunEntry::answered(id, number, event.at, CallEnd::Unknown { tool, message })
                }
                Some((number, false, Err((tool, message)))) => {
                    RunEntry::answered(id, number, event.at, CallEnd::Threw { tool, message })
                }
                None => RunEntry::time(id, event.at),
            };
            self.journal.write_soon(entry)?;
        }
        let state =
            if history.state == RunState::Running { RunState::Failed } else { history.state };
        self.journal.write(RunEntry::ended(id, state, &detail.output, detail.error.as_deref()))?;
        let created = detail.summary.created.cast_signed();
        let ended = detail.summary.ended.map(u64::cast_signed);
        self.node.database.with(|connection| async move {
            let times = "UPDATE run SET created = $2, ended = coalesce($3, ended) WHERE id = $1";
            Ok(connection.execute(times, &[&id, &created, &ended]).await?)
        })?;
        for (handle, data) in from.media(id)? {
            self.journal.keep_media(id, &handle, &data)?;
        }
        Ok(true)
    }
}
