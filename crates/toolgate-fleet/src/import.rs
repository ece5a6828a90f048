//! Copies what is in a state folder into the shared database.

use serde::Serialize;
use toolgate_store::{
    Approvals as _, AuditRecord, CallDecision, CallEnd, Choices, NewCall, QuotaCount,
    RunEntries as _, RunEntry, RunState, Runs as _, SharedStore as _, Store, StoreError,
    UsageLog as _,
};

use crate::{Fleet, audit::IMPORTED, database::FleetError};

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
    /// Disabled servers, and consents.
    pub choices: u64,
    /// Counts of limits.
    pub limits: u64,
    /// Whether the lines of the audit log were left out, because they may be there already.
    pub audit_left_out: bool,
}

/// The choices of a configuration: how the state folder calls it, and how the fleet does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedChoices {
    /// In the state folder.
    pub from: String,
    /// In the fleet.
    pub to: String,
}

/// Lines of the audit log that are written together.
const LINES_TOGETHER: usize = 500;
/// Limits of a day count by these days.
const MILLISECONDS_OF_A_DAY: i64 = 24 * 60 * 60 * 1_000;
/// The most runs that are copied.
const MOST_RUNS: u32 = 1_000_000;

impl Fleet {
    /// Copies runs, grants, open questions, the audit log, tokens, past queries and choices. What is there already stays
    /// as it is, so a second time copies what is new. The lines of the audit log are appended to the chain. Which of
    /// them were is noted; if it is not known, none are. `step` hears what is copied next.
    pub fn import(
        &self,
        from: &Store,
        choices: &[ImportedChoices],
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
        step("disabled servers and consents");
        for ImportedChoices { from: name, to } in choices {
            summary.choices += self.import_choices(&from.choices(name).read()?, to)?;
        }
        step("past queries");
        if self.usage.read().is_empty() {
            let uses = from.usage().read();
            self.usage.append(&uses)?;
            summary.uses = uses.len() as u64;
        }
        step("counts of limits");
        summary.limits = self.import_limits(&from)?;
        step("audit log");
        match self.import_audit(&from)? {
            Some(lines) => summary.audit_lines = lines,
            None => summary.audit_left_out = true,
        }
        Ok(summary)
    }

    /// Copies the counts of today that the fleet does not have.
    fn import_limits(&self, from: &Store) -> Result<u64, Box<dyn std::error::Error + Send + Sync>> {
        let quotas = from.quotas();
        let day = quotas.day(crate::now() / MILLISECONDS_OF_A_DAY)?;
        let counts = quotas.counts(day)?;
        let copied = self.node.database.with(|connection| async move {
            let row = "INSERT INTO quota (day, \"limit\", caller, used, refused_until)
                VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING";
            let mut copied = 0;
            for QuotaCount { limit, caller, used, refused_until } in &counts {
                let (used, until) = (i64::from(*used), refused_until.cast_signed());
                copied += connection.execute(row, &[&day, limit, caller, &used, &until]).await?;
            }
            Ok(copied)
        })?;
        Ok(copied)
    }

    /// Copies choices that the fleet does not have.
    fn import_choices(&self, from: &Choices, to: &str) -> Result<u64, StoreError> {
        let mut copied = 0;
        self.choices(to).change(|choices| {
            copied = 0;
            for (name, by) in &from.disabled {
                copied += u64::from(choices.disabled.insert(name.clone(), *by).is_none());
            }
            for (name, consent) in &from.consents {
                if !choices.consents.contains_key(name) {
                    choices.consents.insert(name.clone(), consent.clone());
                    copied += 1;
                }
            }
        })?;
        Ok(copied)
    }

    /// Copies the lines that are new since the last time. `None` if other lines were imported before, which may be the
    /// same ones: a log whose beginning was removed cannot be told from another.
    fn import_audit(
        &self,
        from: &Store,
    ) -> Result<Option<u64>, Box<dyn std::error::Error + Send + Sync>> {
        let mut first = None;
        from.audit().read(&mut |line| {
            if let (None, Ok(line)) = (&first, line) {
                first = Some(line);
            }
        })?;
        let Some((time, record)) = first else { return Ok(Some(0)) };
        let text = serde_json::to_string(&(time, record))?;
        let source = format!("imported audit log {}", blake3::hash(text.as_bytes()).to_hex());
        let Some(before) = self.imported_before(&source)? else { return Ok(None) };
        self.append_audit(from, &source, before).map(Some)
    }

    /// How many lines of a log were imported before. `None` if lines were, and it is not known of which log.
    fn imported_before(&self, source: &str) -> Result<Option<u64>, FleetError> {
        self.node.database.with_long(|connection| async move {
            let noted = "SELECT value FROM fingerprint WHERE name = $1";
            if let Some(row) = connection.query_opt(noted, &[&source]).await? {
                return Ok(row.get::<_, String>(0).parse().ok());
            }
            // As bytes: PostgreSQL reads no JSON with a NUL. Arguments that look alike only make it refuse.
            let others =
                "SELECT EXISTS (SELECT 1 FROM audit WHERE position($1::bytea IN line) > 0)";
            let mark = format!("\"node\":\"{IMPORTED}\"").into_bytes();
            let has_others: bool = connection.query_one(others, &[&mark]).await?.get(0);
            Ok((!has_others).then_some(0))
        })
    }

    /// Appends the lines of a log after the first ones, which `source` identifies.
    fn append_audit(
        &self,
        from: &Store,
        source: &str,
        skipped: u64,
    ) -> Result<u64, Box<dyn std::error::Error + Send + Sync>> {
        let mut position = 0_u64;
        let mut gathered: Vec<(u64, AuditRecord)> = Vec::new();
        let (mut written, mut failure) = (0, None);
        let mut write = |gathered: &mut Vec<(u64, AuditRecord)>| {
            if failure.is_none() {
                let all = skipped + written + gathered.len() as u64;
                failure = self.audit.import(gathered, source, all).err();
                written += gathered.len() as u64;
            }
            gathered.clear();
        };
        from.audit().read(&mut |line| {
            if let Ok(line) = line {
                position += 1;
                gathered.extend((position > skipped).then_some(line));
            }
            if gathered.len() >= LINES_TOGETHER {
                write(&mut gathered);
            }
        })?;
        if !gathered.is_empty() {
            write(&mut gathered);
        }
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
