//! The access tokens of `toolgate token`.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use toolgate_store::{AccessTokens, FileStamp, TokenHash, TokenRecord};

/// The contents of the token file. Each lookup checks the file's stamp and reads the file again if it
/// has changed.
#[derive(Debug)]
pub(super) struct TokenTable {
    tokens: AccessTokens,
    snapshot: Mutex<TokenSnapshot>,
    /// The hour in which the use of a token was last recorded.
    recorded_hours: Mutex<HashMap<String, u64>>,
}

#[derive(Debug, Default, Clone)]
struct TokenSnapshot {
    stamp: Option<FileStamp>,
    records: Arc<[TokenRecord]>,
}

const HOUR: u64 = 3_600;

impl TokenTable {
    pub(super) fn new(tokens: AccessTokens) -> Self {
        Self { tokens, snapshot: Mutex::default(), recorded_hours: Mutex::default() }
    }

    /// The record of a token that exists and has not expired.
    pub(super) fn find(&self, token: &str, now: u64) -> Option<TokenRecord> {
        let hash = TokenHash::of(token);
        let records = self.records();
        // Every record is compared, each in constant time, so that the duration reveals nothing.
        let mut found = None;
        for record in &*records {
            if record.hash == hash {
                found = Some(record);
            }
        }
        let record = found.filter(|record| record.is_live(now))?;
        self.record_use(record.hash, now);
        Some(record.clone())
    }

    /// Whether a token still exists and has not expired.
    pub(super) fn contains(&self, hash: TokenHash, now: u64) -> bool {
        self.records().iter().any(|record| record.hash == hash && record.is_live(now))
    }

    fn records(&self) -> Arc<[TokenRecord]> {
        // The stamp is taken before the file is read. A change in between causes one more read.
        let stamp = self.tokens.stamp();
        let mut snapshot = self.snapshot.lock();
        if snapshot.stamp != stamp {
            let records = self.tokens.list().unwrap_or_else(|error| {
                tracing::error!(%error, "the access tokens could not be read");
                Vec::new()
            });
            *snapshot = TokenSnapshot { stamp, records: records.into() };
        }
        Arc::clone(&snapshot.records)
    }

    /// Records a use at most once an hour, in the background.
    fn record_use(&self, hash: TokenHash, now: u64) {
        let hour = now / HOUR;
        let mut recorded = self.recorded_hours.lock();
        if recorded.insert(hash.short(), hour) == Some(hour) {
            return;
        }
        recorded.retain(|_, recorded| *recorded == hour);
        drop(recorded);
        let tokens = self.tokens.clone();
        tokio::task::spawn_blocking(move || {
            if let Err(error) = tokens.note_use(hash, now) {
                tracing::debug!(%error, "the use of a token could not be recorded");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use toolgate_store::{Store, TokenOrder};

    use super::*;

    const NOW: u64 = 1_794_780_371;

    fn named(name: &str) -> TokenOrder {
        TokenOrder { name: Some(name.to_owned()), ..TokenOrder::default() }
    }

    #[tokio::test]
    async fn creations_and_revocations_apply_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Store::new(folder.path()).access_tokens();
        let table = TokenTable::new(tokens.clone());
        assert!(table.find("tgt_nothing", NOW).is_none());
        let (_, first) = tokens.create(&named("a"), NOW).unwrap();
        assert_eq!(table.find(first.expose(), NOW).unwrap().name, "a");
        let (_, second) = tokens.create(&named("b"), NOW).unwrap();
        tokens.revoke("a").unwrap();
        assert!(table.find(first.expose(), NOW).is_none());
        assert_eq!(table.find(second.expose(), NOW).unwrap().name, "b");
        std::fs::write(folder.path().join("access/tokens.json"), "damaged").unwrap();
        assert!(table.find(second.expose(), NOW).is_none(), "a damaged file accepts nobody");
    }

    #[tokio::test]
    async fn a_token_expires_and_its_use_is_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Store::new(folder.path()).access_tokens();
        let order = TokenOrder { expires: Some(NOW + 5), ..named("a") };
        let (record, token) = tokens.create(&order, NOW).unwrap();
        let table = TokenTable::new(tokens.clone());
        assert!(table.find(token.expose(), NOW + 5).is_none());
        assert_eq!(tokens.last_use(record.hash), None);
        assert!(table.find(token.expose(), NOW + 4).is_some());
        let recorded = tokio::time::timeout(std::time::Duration::from_secs(30), async {
            while tokens.last_use(record.hash).is_none() {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        });
        recorded.await.unwrap();
    }
}
