//! The tokens of `toolgate token`, as they are at the moment.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use toolgate_store::{AccessTokens, FileStamp, TokenHash, TokenRecord};

/// What is in the file, read again when it is another file: one look at the folder a request.
#[derive(Debug)]
pub(super) struct Book {
    tokens: AccessTokens,
    page: Mutex<Page>,
    /// The hour for which a use of a token was noted last.
    noted: Mutex<HashMap<String, u64>>,
}

#[derive(Debug, Default, Clone)]
struct Page {
    stamp: Option<FileStamp>,
    records: Arc<[TokenRecord]>,
}

const HOUR: u64 = 3_600;

impl Book {
    pub(super) fn new(tokens: AccessTokens) -> Self {
        Self { tokens, page: Mutex::default(), noted: Mutex::default() }
    }

    /// The token, if there is such a one and its time is not over.
    pub(super) fn find(&self, token: &str, now: u64) -> Option<TokenRecord> {
        let hash = TokenHash::of(token);
        let records = self.records();
        // All are compared, in constant time each: how long it takes says nothing.
        let mut found = None;
        for record in &*records {
            if record.hash == hash {
                found = Some(record);
            }
        }
        let record = found.filter(|record| record.is_live(now))?;
        self.note(record.hash, now);
        Some(record.clone())
    }

    /// Whether a token is still there and its time is not over.
    pub(super) fn has(&self, hash: TokenHash, now: u64) -> bool {
        self.records().iter().any(|record| record.hash == hash && record.is_live(now))
    }

    fn records(&self) -> Arc<[TokenRecord]> {
        // Before the file is read: what comes between makes for one reading too many at worst.
        let stamp = self.tokens.stamp();
        let mut page = self.page.lock();
        if page.stamp != stamp {
            let records = self.tokens.list().unwrap_or_else(|error| {
                tracing::error!(%error, "access tokens cannot be read");
                Vec::new()
            });
            *page = Page { stamp, records: records.into() };
        }
        Arc::clone(&page.records)
    }

    /// Notes a use, once an hour, aside.
    fn note(&self, hash: TokenHash, now: u64) {
        let hour = now / HOUR;
        let mut noted = self.noted.lock();
        if noted.insert(hash.short(), hour) == Some(hour) {
            return;
        }
        noted.retain(|_, noted| *noted == hour);
        drop(noted);
        let tokens = self.tokens.clone();
        tokio::task::spawn_blocking(move || {
            if let Err(error) = tokens.note_use(hash, now) {
                tracing::debug!(%error, "the use of a token could not be noted");
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
    async fn creations_and_revocations_are_seen_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Store::new(folder.path()).access_tokens();
        let book = Book::new(tokens.clone());
        assert!(book.find("tgt_nothing", NOW).is_none());
        let (_, first) = tokens.create(&named("a"), NOW).unwrap();
        assert_eq!(book.find(first.expose(), NOW).unwrap().name, "a");
        let (_, second) = tokens.create(&named("b"), NOW).unwrap();
        tokens.revoke("a").unwrap();
        assert!(book.find(first.expose(), NOW).is_none());
        assert_eq!(book.find(second.expose(), NOW).unwrap().name, "b");
        std::fs::write(folder.path().join("access/tokens.json"), "damaged").unwrap();
        assert!(book.find(second.expose(), NOW).is_none(), "nobody is let in by a guess");
    }

    #[tokio::test]
    async fn time_ends_a_token_and_a_use_is_noted() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Store::new(folder.path()).access_tokens();
        let order = TokenOrder { expires: Some(NOW + 5), ..named("a") };
        let (record, token) = tokens.create(&order, NOW).unwrap();
        let book = Book::new(tokens.clone());
        assert!(book.find(token.expose(), NOW + 5).is_none());
        assert_eq!(tokens.last_use(record.hash), None);
        assert!(book.find(token.expose(), NOW + 4).is_some());
        let noted = tokio::time::timeout(std::time::Duration::from_secs(30), async {
            while tokens.last_use(record.hash).is_none() {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        });
        noted.await.unwrap();
    }
}
