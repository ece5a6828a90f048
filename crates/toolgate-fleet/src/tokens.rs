//! The access tokens of HTTP clients.

use std::{path::PathBuf, sync::Arc};

use toolgate_store::{
    AccessToken, AccessTokens, MAX_TOKENS, StoreError, StoreStamp, TokenError, TokenHash,
    TokenOrder, TokenRecord,
};

use crate::{
    database::{FleetError, PLACE},
    node::{BUMP, Node},
};

/// The topic of their changes.
const TOPIC: &str = "tokens";
const HOUR: u64 = 3_600;

/// The tokens of the fleet.
#[derive(Debug)]
pub(crate) struct SharedTokens(pub(crate) Arc<Node>);

impl SharedTokens {
    /// Stores a token that was created elsewhere. `false` if its name is taken.
    pub(crate) fn add(&self, record: &TokenRecord) -> Result<bool, TokenError> {
        let (created, expires) =
            (record.created.cast_signed(), record.expires.map(u64::cast_signed));
        let namespaces = serde_json::to_string(&record.namespaces).unwrap_or_default();
        let hash = String::from(record.hash);
        let added = self.0.database.with(|mut connection| async move {
            let transaction = connection.transaction().await?;
            let insert = "INSERT INTO access_token (name, hash, created, expires, namespaces)
                SELECT $1, $2, $3, $4, $5 WHERE (SELECT count(*) FROM access_token) < $6
                ON CONFLICT DO NOTHING";
            let most = i64::try_from(MAX_TOKENS).unwrap_or(i64::MAX);
            let name = &record.name;
            let added = transaction
                .execute(insert, &[name, &hash, &created, &expires, &namespaces, &most])
                .await?;
            let number: i64 = transaction.query_one(BUMP, &[&TOPIC]).await?.get(0);
            transaction.commit().await?;
            self.0.made(TOPIC, number);
            Ok(added > 0)
        });
        added.map_err(unwritten)
    }
}

fn unwritten(error: FleetError) -> TokenError {
    TokenError::Write(StoreError::of(PLACE, error.into_io()))
}

impl AccessTokens for SharedTokens {
    fn create(
        &self,
        order: &TokenOrder,
        now: u64,
    ) -> Result<(TokenRecord, AccessToken), TokenError> {
        let (record, token) = order.token(now)?;
        if !self.add(&record)? {
            let is_taken = self.list()?.iter().any(|token| token.name == record.name);
            return Err(if is_taken {
                TokenError::Taken(record.name)
            } else {
                TokenError::TooMany
            });
        }
        Ok((record, token))
    }

    fn revoke(&self, name: &str) -> Result<TokenRecord, TokenError> {
        let revoked = self.0.database.with(|mut connection| async move {
            let transaction = connection.transaction().await?;
            let delete = "DELETE FROM access_token WHERE name = $1
                RETURNING name, hash, created, expires, namespaces";
            let row = transaction.query_opt(delete, &[&name]).await?;
            let number: i64 = transaction.query_one(BUMP, &[&TOPIC]).await?.get(0);
            transaction.commit().await?;
            self.0.made(TOPIC, number);
            Ok(row.as_ref().and_then(record))
        });
        let revoked = revoked.map_err(unwritten)?;
        revoked.ok_or_else(|| TokenError::Unknown(name.chars().take(64).collect()))
    }

    fn list(&self) -> Result<Vec<TokenRecord>, TokenError> {
        let rows = self.0.database.with(|connection| async move {
            let select = "SELECT name, hash, created, expires, namespaces FROM access_token ORDER BY position";
            Ok(connection.query(select, &[]).await?)
        });
        let unreadable = |error: FleetError| TokenError::Unreadable {
            path: PathBuf::from(PLACE),
            reason: error.to_string(),
        };
        Ok(rows.map_err(unreadable)?.iter().filter_map(record).collect())
    }

    fn stamp(&self) -> Option<StoreStamp> {
        Some(StoreStamp::Version(self.0.version(TOPIC)))
    }

    fn note_use(&self, hash: TokenHash, now: u64) -> Result<(), StoreError> {
        let (hash, hour) = (String::from(hash), (now - now % HOUR).cast_signed());
        let noted = self.0.database.with(|connection| async move {
            let update =
                "UPDATE access_token SET last_use = greatest(last_use, $2) WHERE hash = $1";
            Ok(connection.execute(update, &[&hash, &hour]).await?)
        });
        noted.map(drop).map_err(|error| StoreError::of(PLACE, error.into_io()))
    }

    fn last_use(&self, hash: TokenHash) -> Option<u64> {
        let hash = String::from(hash);
        let used = self.0.database.with(|connection| async move {
            let select = "SELECT last_use FROM access_token WHERE hash = $1";
            let row = connection.query_opt(select, &[&hash]).await?;
            Ok(row.and_then(|row| row.get::<_, Option<i64>>(0)))
        });
        used.ok().flatten().map(i64::cast_unsigned)
    }
}

fn record(row: &tokio_postgres::Row) -> Option<TokenRecord> {
    Some(TokenRecord {
        name: row.get(0),
        hash: TokenHash::try_from(row.get::<_, String>(1)).ok()?,
        created: row.get::<_, i64>(2).cast_unsigned(),
        expires: row.get::<_, Option<i64>>(3).map(i64::cast_unsigned),
        namespaces: serde_json::from_str(row.get(4)).ok()?,
    })
}
