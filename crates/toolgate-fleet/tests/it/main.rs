//! Tests of the stores on PostgreSQL, and of everything that several nodes do together.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail like tests")]

mod away;
mod bench;
mod logins;
mod nodes;
mod peers;
mod schema;
mod suite;

use std::{sync::Arc, time::Duration};

use toolgate_fleet::{Fleet, FleetError, FleetOptions};
use toolgate_store::Store;
use toolgate_testkit::Postgres;

/// A PostgreSQL with the tables of toolgate in one database; `None` if it is not installed.
struct Shared {
    postgres: Postgres,
    url: String,
}

impl Shared {
    fn start() -> Option<Self> {
        let postgres = Postgres::start().unwrap()?;
        let url = postgres.database().unwrap();
        Fleet::migrate(&url).unwrap();
        Some(Self { postgres, url })
    }

    /// The name of the database.
    fn name(&self) -> String {
        self.url.rsplit('/').next().unwrap().to_owned()
    }

    /// A node with this lease.
    fn node(&self, lease: Duration) -> Arc<Fleet> {
        self.node_with(FleetOptions { lease, ..FleetOptions::default() }).unwrap()
    }

    /// A node with these options.
    fn node_with(&self, options: FleetOptions) -> Result<Arc<Fleet>, FleetError> {
        Fleet::open(&FleetOptions { database: self.url.clone(), is_node: true, ..options })
    }

    /// The stores of a node.
    fn store(&self) -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path()).sharing(self.node(Duration::from_secs(15)));
        (folder, store)
    }
}
