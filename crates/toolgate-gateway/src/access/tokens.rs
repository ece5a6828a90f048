//! The access tokens of `toolgate token`.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use toolgate_store::{AccessTokens, StoreStamp, TokenHash, TokenRecord};

/// The contents of the token file. Each lookup checks the file's stamp and reads the file again if it
/// has changed.
#[derive(Debug)]
pub(super) struct TokenTable {
    tokens: Arc<dyn AccessTokens>,
    snapshot: Mutex<TokenSnapshot>,
    /// The hour in which the use of a token was last recorded.
    recorded_hours: Mutex<HashMap<String, u64>>,
}

#[derive(Debug, Default, Clone)]
struct TokenSnapshot {
    stamp: Option<StoreStamp>,
    records: Arc<[TokenRecord]>,
    /// When the tokens could last not be read. They are read again soon.
    failed: Option<Instant>,
}

/// The tokens cannot be read, and those that were read before do not have this one.
#[derive(Debug)]
pub(super) struct UnreadableTokens;

/// Between two attempts to read tokens that cannot be read.
const RETRY: Duration = Duration::from_secs(1);
const HOUR: u64 = 3_600;

impl TokenTable {
    pub(super) fn new(tokens: Arc<dyn AccessTokens>) -> Self {
        Self { tokens, snapshot: Mutex::default(), recorded_hours: Mutex::default() }
    }

    /// The record of a token that exists and has not expired.
    pub(super) fn find(
        &self,
        token: &str,
        now: u64,
    ) -> Result<Option<TokenRecord>, UnreadableTokens> {
        let hash = TokenHash::of(token);
        let TokenSnapshot { records, failed, .. } = self.snapshot();
        // Every record is compared, each in constant time, so that the duration reveals nothing.
        let mut found = None;
        for record in &*records {
            if record.hash == hash {
                found = Some(record);
            }
        }
        let Some(record) = found else {
            return if failed.is_some() { Err(UnreadableTokens) } else { Ok(None) };
        };
        if !record.is_live(now) {
            return Ok(None);
        }
        self.record_use(record.hash, now);
        Ok(Some(record.clone()))
    }

    /// Whether a token still exists and has not expired.
    pub(super) fn contains(&self, hash: TokenHash, now: u64) -> bool {
        self.snapshot().records.iter().any(|record| record.hash == hash && record.is_live(now))
    }

    fn snapshot(&self) -> TokenSnapshot {
        // The stamp is taken before the file is read. A change in between causes one more read.
        let stamp = self.tokens.stamp();
        let mut snapshot = self.snapshot.lock();
        let is_due = snapshot.failed.is_none_or(|failed| failed.elapsed() >= RETRY);
        if snapshot.stamp != stamp && is_due {
            match self.tokens.list() {
                Ok(records) => {
                    *snapshot = TokenSnapshot { stamp, records: records.into(), failed: None };
                }
                Err(error) => {
                    tracing::error!(%error, "the access tokens could not be read");
                    if stamp.as_ref().is_some_and(StoreStamp::allows_older) {
                        snapshot.failed = Some(Instant::now());
                    } else {
                        *snapshot = TokenSnapshot { stamp, ..TokenSnapshot::default() };
                    }
                }
            }
        }
        snapshot.clone()
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
    use std::sync::atomic::Ordering::Relaxed;

    use toolgate_store::{AccessToken, Store, StoreError, TokenError, TokenOrder};

    use super::*;

    const NOW: u64 = 1_794_780_371;

    fn named(name: &str) -> TokenOrder {
        TokenOrder { name: Some(name.to_owned()), ..TokenOrder::default() }
    }

    fn found(table: &TokenTable, token: &str) -> Option<String> {
        table.find(token, NOW).unwrap().map(|record| record.name)
    }

    /// A shared store, whose database may be away.
    #[derive(Debug)]
    struct SharedTokens {
        tokens: Arc<dyn AccessTokens>,
        version: std::sync::atomic::AtomicU64,
        is_away: std::sync::atomic::AtomicBool,
    }

    impl AccessTokens for SharedTokens {
        fn create(
            &self,
            order: &TokenOrder,
            now: u64,
        ) -> Result<(TokenRecord, AccessToken), TokenError> {
            self.tokens.create(order, now)
        }
        fn revoke(&self, name: &str) -> Result<TokenRecord, TokenError> {
            self.tokens.revoke(name)
        }
        fn list(&self) -> Result<Vec<TokenRecord>, TokenError> {
            if self.is_away.load(Relaxed) {
                let (path, reason) = (std::path::PathBuf::new(), "it is away".to_owned());
                return Err(TokenError::Unreadable { path, reason });
            }
            self.tokens.list()
        }
        fn stamp(&self) -> Option<StoreStamp> {
            Some(StoreStamp::Version(self.version.load(Relaxed)))
        }
        fn note_use(&self, _: TokenHash, _: u64) -> Result<(), StoreError> {
            Ok(())
        }
        fn last_use(&self, _: TokenHash) -> Option<u64> {
            None
        }
    }

    #[tokio::test]
    async fn tokens_of_a_shared_store_that_was_away_are_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let shared = Arc::new(SharedTokens {
            tokens: Store::new(folder.path()).access_tokens(),
            version: 1.into(),
            is_away: false.into(),
        });
        let table = TokenTable::new(shared.clone());
        let (_, old) = shared.create(&named("old"), NOW).unwrap();
        assert_eq!(found(&table, old.expose()).as_deref(), Some("old"));
        let (_, new) = shared.create(&named("new"), NOW).unwrap();
        shared.version.store(2, Relaxed);
        shared.is_away.store(true, Relaxed);
        assert!(table.find(new.expose(), NOW).is_err(), "it may be there");
        assert_eq!(found(&table, old.expose()).as_deref(), Some("old"));
        shared.is_away.store(false, Relaxed);
        table.snapshot.lock().failed = Instant::now().checked_sub(RETRY);
        assert_eq!(found(&table, new.expose()).as_deref(), Some("new"));
        shared.version.store(u64::MAX, Relaxed);
        shared.is_away.store(true, Relaxed);
        assert!(found(&table, old.expose()).is_none(), "it was away for too long");
    }

    #[tokio::test]
    async fn creations_and_revocations_apply_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Store::new(folder.path()).access_tokens();
        let table = TokenTable::new(tokens.clone());
        assert!(found(&table, "tgt_nothing").is_none());
        let (_, first) = tokens.create(&named("a"), NOW).unwrap();
        assert_eq!(found(&table, first.expose()).as_deref(), Some("a"));
        let (_, second) = tokens.create(&named("b"), NOW).unwrap();
        tokens.revoke("a").unwrap();
        assert!(found(&table, first.expose()).is_none());
        assert_eq!(found(&table, second.expose()).as_deref(), Some("b"));
        std::fs::write(folder.path().join("access/tokens.json"), "damaged").unwrap();
        assert!(found(&table, second.expose()).is_none(), "a damaged file accepts nobody");
    }

    #[tokio::test]
    async fn a_token_expires_and_its_use_is_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Store::new(folder.path()).access_tokens();
        let order = TokenOrder { expires: Some(NOW + 5), ..named("a") };
        let (record, token) = tokens.create(&order, NOW).unwrap();
        let table = TokenTable::new(tokens.clone());
        assert!(table.find(token.expose(), NOW + 5).unwrap().is_none());
        assert_eq!(tokens.last_use(record.hash), None);
        assert!(table.find(token.expose(), NOW + 4).unwrap().is_some());
        let recorded = tokio::time::timeout(std::time::Duration::from_secs(30), async {
            while tokens.last_use(record.hash).is_none() {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        });
        recorded.await.unwrap();
    }
}
