//! What the fleet is at the moment.

use serde::Serialize;

use crate::{Fleet, FleetError, migrate};

/// The state of the fleet.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FleetStatus {
    /// The version of PostgreSQL.
    pub server: String,
    /// The version of the tables.
    pub schema: i32,
    /// The version of the tables that this program makes.
    pub newest_schema: i32,
    /// Bytes of the database.
    pub bytes: i64,
    /// The nodes that live, the oldest first.
    pub nodes: Vec<NodeStatus>,
    /// The servers that run once, and the nodes that have them.
    pub servers: Vec<ServerLeaseStatus>,
    /// Runs that run now.
    pub running: i64,
    /// Runs whose node is dead, and that nobody has resumed.
    pub abandoned: i64,
    /// Questions that wait for a person.
    pub open_approvals: i64,
    /// Lines of the audit log. `None` if it is damaged.
    pub audit_lines: Option<i64>,
    /// Sessions of legacy clients.
    pub sessions: i64,
}

/// A node that lives.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatus {
    /// Its id.
    pub id: String,
    /// The version of its program.
    pub version: String,
    /// Where other nodes reach it.
    pub url: String,
    /// How many seconds it has been running.
    pub up_seconds: i64,
    /// How many seconds its lease lasts unless it is renewed.
    pub lease_seconds: f64,
    /// The runs that it has now.
    pub running: i64,
}

/// A server that runs once.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerLeaseStatus {
    /// Its name.
    pub server: String,
    /// The node that has it.
    pub node: String,
    /// How often it has changed its node.
    pub epoch: i64,
}

impl Fleet {
    /// What the fleet is at the moment.
    pub fn status(&self) -> Result<FleetStatus, FleetError> {
        let schema = migrate::version(&self.node.database)?;
        let now = crate::now();
        self.node.database.with_long(|connection| async move {
            let nodes = "SELECT id, version, url, extract(epoch FROM now() - started)::bigint,
                extract(epoch FROM lease_until - now())::float8,
                (SELECT count(*) FROM run WHERE run.owner = node.id AND run.state = 'running')
                FROM node WHERE lease_until > now() ORDER BY started, id";
            let nodes = connection.query(nodes, &[]).await?;
            let nodes = nodes.iter().map(|row| NodeStatus {
                id: row.get(0),
                version: row.get(1),
                url: row.get(2),
                up_seconds: row.get(3),
                lease_seconds: row.get(4),
                running: row.get(5),
            });
            let servers = "SELECT server, node, epoch FROM server_lease
                WHERE EXISTS (SELECT 1 FROM node WHERE node.id = server_lease.node AND lease_until > now())
                ORDER BY server, scope";
            let servers = connection.query(servers, &[]).await?;
            let servers = servers.iter().map(|row| ServerLeaseStatus {
                server: row.get(0),
                node: row.get(1),
                epoch: row.get(2),
            });
            let counts =
                "SELECT current_setting('server_version'), pg_database_size(current_database()),
                (SELECT count(*) FROM run WHERE state = 'running'),
                (SELECT count(*) FROM run WHERE state = 'running' AND NOT EXISTS (
                    SELECT 1 FROM node WHERE node.id = run.owner AND lease_until > now())),
                (SELECT count(*) FROM approval WHERE state = 'open'),
                (SELECT number FROM audit_head),
                (SELECT count(*) FROM timed_value WHERE kind = 'session' AND expires > $1)";
            let row = connection.query_one(counts, &[&now]).await?;
            Ok(FleetStatus {
                server: row.get(0),
                schema,
                newest_schema: migrate::newest(),
                bytes: row.get(1),
                nodes: nodes.collect(),
                servers: servers.collect(),
                running: row.get(2),
                abandoned: row.get(3),
                open_approvals: row.get(4),
                audit_lines: row.get(5),
                sessions: row.get(6),
            })
        })
    }
}
