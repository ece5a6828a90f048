//! The grants of people, stored in the journal.

use std::{sync::Arc, time::SystemTime};

use parking_lot::Mutex;
use toolgate_policy::{Grant, GrantId, GrantRequest, GrantScope, Grants, Timestamp};
use toolgate_store::{GrantRow, Journal, JournalError};

/// The grants in force. They are read again whenever the journal has changed. Without a journal
/// they live as long as the broker.
#[derive(Debug, Default)]
pub(crate) struct GrantStore {
    journal: Option<Arc<dyn Journal>>,
    cached: Mutex<CachedGrants>,
}

#[derive(Debug, Default)]
struct CachedGrants {
    version: Option<(u64, u64)>,
    grants: Grants,
}

impl GrantStore {
    pub(crate) fn new(journal: Option<Arc<dyn Journal>>) -> Self {
        Self { journal, cached: Mutex::default() }
    }

    /// Takes a grant that covers the call. A grant for a single call is used up once, by whichever
    /// process comes first. Touches the disk.
    pub(crate) fn take(&self, request: &GrantRequest<'_>) -> Result<Option<GrantId>, JournalError> {
        let mut cached = self.cached.lock();
        self.refresh(&mut cached)?;
        loop {
            let Some(grant) = cached.grants.covers(request) else { return Ok(None) };
            let id = grant.id.clone();
            if grant.scope != GrantScope::Once {
                return Ok(Some(id));
            }
            cached.grants.revoke(&id);
            let ours = match &self.journal {
                Some(journal) => journal.revoke(&id.0)?,
                None => true,
            };
            if ours {
                return Ok(Some(id));
            }
        }
    }

    /// Has the grants read again at the next look. Another process may have written one of which this one has not heard.
    pub(crate) fn forget(&self) {
        self.cached.lock().version = None;
    }

    /// Stores a grant. Touches the disk.
    pub(crate) fn add(&self, grant: Grant) -> Result<(), JournalError> {
        if let Some(journal) = &self.journal {
            journal.grant(&row(&grant))?;
        }
        // A grant that exceeds the limit is asked for again.
        let _ = self.cached.lock().grants.add(grant);
        Ok(())
    }

    /// Removes the grants of a session or a run that has ended. Touches the disk.
    pub(crate) fn end(&self, ended: &GrantScope) -> Result<(), JournalError> {
        let mut cached = self.cached.lock();
        self.refresh(&mut cached)?;
        let ids: Vec<GrantId> = cached
            .grants
            .iter()
            .filter(|grant| grant.scope == *ended)
            .map(|it| it.id.clone())
            .collect();
        for id in ids {
            cached.grants.revoke(&id);
            if let Some(journal) = &self.journal {
                journal.revoke(&id.0)?;
            }
        }
        Ok(())
    }

    fn refresh(&self, cached: &mut CachedGrants) -> Result<(), JournalError> {
        let Some(journal) = &self.journal else { return Ok(()) };
        if cached.version == Some(journal.version()?) {
            return Ok(());
        }
        // Taken before they are read: what another process writes meanwhile is read the next time. Reading drops
        // expired grants, which changes the version too, and costs one more reading.
        let version = journal.version()?;
        let mut grants = Grants::default();
        for grant in read_grants(&**journal)? {
            let _ = grants.add(grant);
        }
        *cached = CachedGrants { version: Some(version), grants };
        Ok(())
    }
}

/// All grants in a journal. Unreadable ones are skipped.
pub fn read_grants(journal: &dyn Journal) -> Result<Vec<Grant>, JournalError> {
    let rows = journal.grants()?;
    Ok(rows.iter().filter_map(|row| serde_json::from_str(&row.text).ok()).collect())
}

/// Writes a grant to a journal.
pub fn write_grant(journal: &dyn Journal, grant: &Grant) -> Result<(), JournalError> {
    journal.grant(&row(grant))
}

/// The current time.
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// A grant as a journal keeps it.
pub(crate) fn row(grant: &Grant) -> GrantRow {
    GrantRow {
        id: grant.id.0.to_string(),
        created: grant.granted_at.0,
        expires: grant.expires_at.map(|end| end.0),
        text: serde_json::to_string(grant).unwrap_or_default(),
    }
}
