//! Which node runs a server that runs once.

use std::{sync::Arc, time::Duration};

use toolgate_store::{ServerHolder, ServerLeases, StoreError};

use crate::{
    database::{FleetError, PLACE},
    node::{BUMP, Node},
};

/// The topic of their changes.
pub(crate) const TOPIC: &str = "server leases";

/// The servers of the fleet.
#[derive(Debug)]
pub(crate) struct SharedServers {
    node: Arc<Node>,
    /// Whether this process serves clients.
    is_node: bool,
}

/// Takes a server, unless a living node has it. Only one of several nodes that try it at once succeeds: the row is
/// locked meanwhile.
const TAKE: &str = "INSERT INTO server_lease (scope, server, node, url, epoch)
    SELECT $1, $2, id, url, 1 FROM node WHERE id = $3 AND url <> '' AND lease_until > now()
    ON CONFLICT (scope) DO UPDATE
        SET node = excluded.node, url = excluded.url, epoch = server_lease.epoch + 1
        WHERE NOT EXISTS (
            SELECT 1 FROM node WHERE node.id = server_lease.node AND node.lease_until > now())
    RETURNING epoch";
const HOLDER: &str = "SELECT server_lease.node, node.url, server_lease.epoch
    FROM server_lease JOIN node ON node.id = server_lease.node
    WHERE scope = $1 AND node.lease_until > now()";
/// A node that can run a server for a process that is none.
const ANY: &str = "SELECT id FROM node WHERE url <> '' AND lease_until > now() ORDER BY id LIMIT 1";

impl SharedServers {
    pub(crate) fn new(node: Arc<Node>, is_node: bool) -> Self {
        Self { node, is_node }
    }

    async fn holder(
        &self,
        connection: &tokio_postgres::Client,
        scope: &str,
    ) -> Result<Option<ServerHolder>, FleetError> {
        let row = connection.query_opt(HOLDER, &[&scope]).await?;
        Ok(row.map(|row| {
            let node: String = row.get(0);
            let epoch = row.get::<_, i64>(2).cast_unsigned();
            ServerHolder { is_own: node == self.node.id, node, url: row.get(1), epoch }
        }))
    }
}

impl ServerLeases for SharedServers {
    fn take(&self, server: &str, scope: &str) -> Result<Option<ServerHolder>, StoreError> {
        let server = &crate::plain(server);
        let taken = self.node.database.with(|connection| async move {
            if let Some(holder) = self.holder(&connection, scope).await? {
                return Ok(Some(holder));
            }
            let mut taker = Some(self.node.id.clone());
            if !self.is_node || !self.node.is_reachable() {
                taker = connection.query_opt(ANY, &[]).await?.map(|row| row.get(0));
            }
            let Some(taker) = taker else { return Ok(None) };
            let row = connection.query_opt(TAKE, &[&scope, server, &taker]).await?;
            if row.is_some() {
                let number: i64 = connection.query_one(BUMP, &[&TOPIC]).await?.get(0);
                self.node.made(TOPIC, number);
            }
            self.holder(&connection, scope).await
        });
        taken.map_err(|error| StoreError::of(PLACE, error.into_io()))
    }

    fn has(&self, scope: &str, holder: &ServerHolder) -> Result<bool, StoreError> {
        let found = self
            .node
            .database
            .with(|connection| async move { self.holder(&connection, scope).await });
        let found = found.map_err(|error| StoreError::of(PLACE, error.into_io()))?;
        Ok(found.is_some_and(|found| (&found.node, found.epoch) == (&holder.node, holder.epoch)))
    }

    fn is_sure(&self) -> bool {
        self.node.is_sure()
    }

    fn changes(&self) -> u64 {
        self.node.version(TOPIC)
    }

    fn lease(&self) -> Duration {
        self.node.lease
    }
}
