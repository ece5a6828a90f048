//! The queue of calls that wait for a person: what waits, and how it is answered.
//!
//! Commands and the page both answer here. Who may answer is up to them: this module believes that a
//! person has.

use std::time::Duration;

use thiserror::Error;
use toolgate_policy::{Grant, GrantedArguments, definitions::shown};
use toolgate_store::{
    ApprovalState, AuditError, AuditRecord, Journal, JournalError, QuestionReference, Store,
    StoredApproval, utc,
};

use crate::{
    approval::{ApprovalRequest, GrantDuration, PersonAnswer},
    grants::{now, row},
};

/// A call in the queue.
#[derive(Debug, Clone)]
pub struct QueuedCall {
    /// Its row in the journal.
    pub approval: StoredApproval,
    /// The question.
    pub request: ApprovalRequest,
}

/// A question was not answered. It is as open as it was, unless it says otherwise.
#[derive(Debug, Error)]
pub enum AnswerError {
    /// The answer is for the run of the call, and the call belongs to none.
    #[error("the call belongs to no run")]
    NoRun,
    /// Somebody else was faster.
    #[error("{0} was answered already")]
    Answered(QuestionReference),
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The question is answered, and the audit log does not say so.
    #[error(transparent)]
    Audit(#[from] AuditError),
}

impl QueuedCall {
    /// All calls that wait, oldest first.
    pub fn all(journal: &dyn Journal) -> Result<Vec<Self>, JournalError> {
        let open = journal.open_approvals()?;
        Ok(open.into_iter().filter_map(Self::read).collect())
    }

    /// A call by its whole id.
    pub fn find(journal: &dyn Journal, id: &str) -> Result<Option<Self>, JournalError> {
        let found = journal.approval(id)?;
        let is_open = |call: &Self| call.approval.state == ApprovalState::Open;
        Ok(found.and_then(Self::read).filter(is_open))
    }

    /// A call by the name of its question, as agents know it.
    pub fn find_named(journal: &dyn Journal, name: &str) -> Result<Option<Self>, JournalError> {
        let is_named = |call: &Self| call.approval.reference().as_str() == name;
        Ok(Self::all(journal)?.into_iter().find(is_named))
    }

    /// Writes the answer of the person `by`. An approval becomes a grant, which the returned text
    /// describes.
    pub fn answer(
        &self,
        store: &Store,
        journal: &dyn Journal,
        answer: &PersonAnswer,
        by: &str,
        expires: Option<Duration>,
    ) -> Result<String, AnswerError> {
        let Self { approval, request } = self;
        let is_allowed = matches!(answer, PersonAnswer::Allow { .. });
        let state = if is_allowed { ApprovalState::Approved } else { ApprovalState::Denied };
        let grant = request.grant(answer, by, now(), expires);
        if grant.is_none() && is_allowed {
            return Err(AnswerError::NoRun);
        }
        let said = serde_json::to_string(answer).unwrap_or_default();
        // Only one of two people who answer at once succeeds, and only that one gives a grant.
        if !journal.answer(&approval.id, state, &said, grant.as_ref().map(row).as_ref())? {
            return Err(AnswerError::Answered(approval.reference()));
        }
        let mut text = format!("{} is denied.", request.name);
        let mut rule = format!("approval {}", approval.reference());
        if let Some(grant) = &grant {
            text = self.allowed(answer, grant, expires.is_some());
            rule = format!("{rule}; grant {}", grant.id.0);
        }
        let record = AuditRecord {
            kind: "approval".to_owned(),
            caller: by.to_owned(),
            verdict: if is_allowed { "allow" } else { "deny" }.to_owned(),
            rule,
            session: request.session.to_string(),
            run: request.run.as_ref().map(ToString::to_string),
            tool: request.name.clone(),
            server: request.tool.server.to_string(),
            arguments_hash: request.arguments_hash.to_string(),
            ..AuditRecord::default()
        };
        store.audit().append(&record)?;
        Ok(text)
    }

    fn allowed(&self, answer: &PersonAnswer, grant: &Grant, expires: bool) -> String {
        let PersonAnswer::Allow { lasts, .. } = answer else { return String::new() };
        let name = &self.request.name;
        let who = shown(&self.request.identity, 128);
        // A grant for a call, a run or a session ends with it. The time is shown only if it was given.
        let ends = grant.expires_at.filter(|_| expires || *lasts == GrantDuration::Always);
        let ends = ends.map(|end| utc(end.0 / 1_000));
        let until = ends.as_ref().map(|end| format!(", until {end} at the latest"));
        let until = until.unwrap_or_default();
        let lasts = match lasts {
            GrantDuration::Once => format!("once{until}"),
            GrantDuration::Run => format!("for this run{until}"),
            GrantDuration::Session => format!("for this session{until}"),
            GrantDuration::Always => {
                format!("to {who} until {}", ends.as_deref().unwrap_or("it is revoked"))
            }
        };
        let extent = match &grant.arguments {
            GrantedArguments::Any => String::new(),
            GrantedArguments::Exactly(_) => ", with these arguments".to_owned(),
            matching @ GrantedArguments::Matching(_) => format!(", {matching}"),
        };
        let next = match &self.request.run {
            Some(run) => format!("resume_run continues {run}"),
            None => "the agent can make the same call again".to_owned(),
        };
        format!("{name} is allowed {lasts}{extent}: {next}.")
    }

    fn read(approval: StoredApproval) -> Option<Self> {
        if approval.kind != "call" {
            return None;
        }
        let request = serde_json::from_str(&approval.question).ok()?;
        Some(Self { approval, request })
    }
}
