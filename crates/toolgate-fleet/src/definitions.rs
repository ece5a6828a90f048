//! The definitions of servers that a node has listed.

use std::sync::Arc;

use toolgate_store::{DefinitionEntry, DefinitionStore, ServerKey, StoreError};

use crate::{
    database::{FleetError, PLACE},
    node::Node,
};

/// A larger content is not shared.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The definitions of the fleet.
#[derive(Debug)]
pub(crate) struct SharedDefinitions(pub(crate) Arc<Node>);

impl DefinitionStore for SharedDefinitions {
    fn entry(&self, key: &ServerKey) -> Option<DefinitionEntry> {
        let key = key.as_str();
        let found = self.0.database.with(|connection| async move {
            let select = "SELECT server, memory, fingerprint FROM definition_entry WHERE key = $1";
            let row = connection.query_opt(select, &[&key]).await?;
            Ok(row.map(|row| (row.get(0), row.get::<_, Vec<u8>>(1), row.get(2))))
        });
        let (server, memory, fingerprint) = found.ok()??;
        Some(DefinitionEntry { server, memory: serde_json::from_slice(&memory).ok()?, fingerprint })
    }

    fn content(&self, fingerprint: &str) -> Option<Vec<u8>> {
        let found = self.0.database.with(|connection| async move {
            let select = "SELECT content FROM definition_content WHERE fingerprint = $1";
            let row = connection.query_opt(select, &[&fingerprint]).await?;
            Ok(row.map(|row| row.get::<_, Vec<u8>>(0)))
        });
        found.ok()?
    }

    fn put(
        &self,
        key: &ServerKey,
        entry: &DefinitionEntry,
        content: &[u8],
    ) -> Result<(), StoreError> {
        if content.len() > MAX_BYTES {
            return Ok(());
        }
        let (key, server, fingerprint) =
            (key.as_str(), crate::plain(&entry.server), entry.fingerprint.as_str());
        let put = self.0.database.with(|mut connection| async move {
            let memory = serde_json::to_vec(&entry.memory)
                .map_err(|error| FleetError::System(error.to_string()))?;
            let transaction = connection.transaction().await?;
            let add = "INSERT INTO definition_content (fingerprint, content) VALUES ($1, $2)
                ON CONFLICT DO NOTHING";
            transaction.execute(add, &[&fingerprint, &content]).await?;
            let point = "INSERT INTO definition_entry (key, server, memory, fingerprint) VALUES ($1, $2, $3, $4)
                ON CONFLICT (key) DO UPDATE SET server = excluded.server, memory = excluded.memory,
                    fingerprint = excluded.fingerprint";
            transaction.execute(point, &[&key, &server, &memory, &fingerprint]).await?;
            let unused = "DELETE FROM definition_content WHERE NOT EXISTS (
                SELECT 1 FROM definition_entry
                WHERE definition_entry.fingerprint = definition_content.fingerprint)";
            transaction.execute(unused, &[]).await?;
            transaction.commit().await?;
            Ok(())
        });
        put.map_err(|error| StoreError::of(PLACE, error.into_io()))
    }
}
