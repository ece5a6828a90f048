//! What people have allowed, as the journal has it.

use std::{sync::Arc, time::SystemTime};

use parking_lot::Mutex;
use toolgate_policy::{Grant, GrantId, GrantRequest, GrantScope, Grants, Timestamp};
use toolgate_store::{GrantRow, Journal, JournalError};

/// The grants in force. Read again whenever the journal has changed; without a journal they live as
/// long as the broker.
#[derive(Debug, Default)]
pub(crate) struct GrantBook {
    journal: Option<Arc<Journal>>,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    version: Option<(u64, u64)>,
    grants: Grants,
}

impl GrantBook {
    pub(crate) fn new(journal: Option<Arc<Journal>>) -> Self {
        Self { journal, kept: Mutex::default() }
    }

    /// A grant that covers the call. One that is good for a single call is used up, once, whichever
    /// process comes first. Touches the disk.
    pub(crate) fn take(&self, request: &GrantRequest<'_>) -> Result<Option<GrantId>, JournalError> {
        let mut kept = self.kept.lock();
        self.refresh(&mut kept)?;
        loop {
            let Some(grant) = kept.grants.covers(request) else { return Ok(None) };
            let id = grant.id.clone();
            if grant.scope != GrantScope::Once {
                return Ok(Some(id));
            }
            kept.grants.revoke(&id);
            let ours = match &self.journal {
                Some(journal) => journal.revoke(&id.0)?,
                None => true,
            };
            if ours {
                return Ok(Some(id));
            }
        }
    }

    /// Keeps a grant. Touches the disk.
    pub(crate) fn add(&self, grant: Grant) -> Result<(), JournalError> {
        if let Some(journal) = &self.journal {
            journal.grant(&row(&grant))?;
        }
        // One more than can be kept is asked for again.
        let _ = self.kept.lock().grants.add(grant);
        Ok(())
    }

    /// Forgets the grants of a session or a run that is over. Touches the disk.
    pub(crate) fn end(&self, over: &GrantScope) -> Result<(), JournalError> {
        let mut kept = self.kept.lock();
        self.refresh(&mut kept)?;
        let ids: Vec<GrantId> = kept
            .grants
            .iter()
            .filter(|grant| grant.scope == *over)
            .map(|it| it.id.clone())
            .collect();
        for id in ids {
            kept.grants.revoke(&id);
            if let Some(journal) = &self.journal {
                journal.revoke(&id.0)?;
            }
        }
        Ok(())
    }

    fn refresh(&self, kept: &mut Kept) -> Result<(), JournalError> {
        let Some(journal) = &self.journal else { return Ok(()) };
        if kept.version == Some(journal.version()?) {
            return Ok(());
        }
        let mut grants = Grants::default();
        for grant in read_grants(journal)? {
            let _ = grants.add(grant);
        }
        // Reading drops what has expired, which is a change too.
        *kept = Kept { version: Some(journal.version()?), grants };
        Ok(())
    }
}

/// All grants in a journal. What cannot be read grants nothing.
pub fn read_grants(journal: &Journal) -> Result<Vec<Grant>, JournalError> {
    let rows = journal.grants()?;
    Ok(rows.iter().filter_map(|row| serde_json::from_str(&row.text).ok()).collect())
}

/// Writes a grant into a journal.
pub fn write_grant(journal: &Journal, grant: &Grant) -> Result<(), JournalError> {
    journal.grant(&row(grant))
}

/// What time it is.
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

fn row(grant: &Grant) -> GrantRow {
    GrantRow {
        id: grant.id.0.to_string(),
        created: grant.granted_at.0,
        expires: grant.expires_at.map(|end| end.0),
        text: serde_json::to_string(grant).unwrap_or_default(),
    }
}
