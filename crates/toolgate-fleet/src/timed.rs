//! Values that expire, and messages between nodes.

use std::sync::Arc;

use toolgate_store::{NodeMessage, StoreError, TimedKind, TimedValue, TimedValues};

use crate::{
    database::{FleetError, PLACE},
    migrate,
    node::Node,
    now,
};

/// The largest value. Outputs are shorter.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// Identifies the lock of those who send messages.
const MESSAGES: i64 = migrate::LOCK + 1;

/// The values of the fleet.
#[derive(Debug)]
pub(crate) struct SharedValues(pub(crate) Arc<Node>);

fn unwritten(error: FleetError) -> StoreError {
    StoreError::of(PLACE, error.into_io())
}

impl TimedValues for SharedValues {
    fn put(&self, kind: TimedKind, key: &str, value: &TimedValue) -> Result<(), StoreError> {
        let (kind, content, expires) =
            (kind.name(), value.content.as_bytes(), value.expires.cast_signed());
        if content.len() > MAX_BYTES {
            return Err(unwritten(FleetError::Statement("the value is too large".to_owned())));
        }
        let put = self.0.database.with(|connection| async move {
            let write = "INSERT INTO timed_value (kind, key, owner, content, expires) VALUES ($1, $2, $3, $4, $5)
                ON CONFLICT (kind, key) DO UPDATE
                SET owner = excluded.owner, content = excluded.content, expires = excluded.expires";
            let write = connection.prepare_cached(write).await?;
            Ok(connection.execute(&write, &[&kind, &key, &value.owner, &content, &expires]).await?)
        });
        put.map(drop).map_err(unwritten)
    }

    fn get(&self, kind: TimedKind, key: &str, owner: &str) -> Result<Option<String>, StoreError> {
        let (kind, now) = (kind.name(), now());
        let found = self.0.database.with(|connection| async move {
            let select = "SELECT content FROM timed_value
                WHERE kind = $1 AND key = $2 AND owner = $3 AND expires > $4";
            let select = connection.prepare_cached(select).await?;
            let row = connection.query_opt(&select, &[&kind, &key, &owner, &now]).await?;
            Ok(row.map(|row| crate::text(row.get(0))))
        });
        found.map_err(unwritten)
    }

    fn remove(&self, kind: TimedKind, key: &str, owner: &str) -> Result<bool, StoreError> {
        let kind = kind.name();
        let removed = self.0.database.with(|connection| async move {
            let delete = "DELETE FROM timed_value WHERE kind = $1 AND key = $2 AND owner = $3";
            Ok(connection.execute(delete, &[&kind, &key, &owner]).await?)
        });
        removed.map(|removed| removed > 0).map_err(unwritten)
    }

    fn send(&self, message: &NodeMessage) -> Result<(), StoreError> {
        let NodeMessage { topic, key, content } = message;
        let content = content.as_bytes();
        let sent = self.0.database.with(|connection| async move {
            // One after the other: a node that has read a message looks for none with a smaller number.
            let send = "WITH locked AS (SELECT pg_advisory_xact_lock($4)), sent AS (
                    INSERT INTO message (topic, key, content) SELECT $1, $2, $3 FROM locked RETURNING 1
                ) SELECT pg_notify('toolgate', 'message') FROM sent";
            let send = connection.prepare_cached(send).await?;
            Ok(connection.query(&send, &[topic, key, &content, &MESSAGES]).await?)
        });
        sent.map(drop).map_err(unwritten)
    }

    fn on_message(&self, receive: Box<dyn Fn(&NodeMessage) + Send + Sync>) {
        self.0.on_message(receive);
    }
}
