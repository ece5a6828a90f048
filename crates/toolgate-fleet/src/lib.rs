//! What several toolgates share: the stores of `toolgate-store` on PostgreSQL 13 or newer.
//!
//! [`Fleet`] is a connection to the shared database. A process that serves clients is a *node*: it has a lease, which it
//! renews while it lives. What a node has begun and not ended belongs to it until its lease is over; then any other node
//! may continue it. Everything else in the database belongs to nobody.
//!
//! Nothing here makes consensus: PostgreSQL orders the changes. Nodes hear of them by `LISTEN`, and look twice a second
//! besides. While the database is away, what was read before is used for five minutes, and nothing new is begun that
//! needs a record.

mod audit;
mod database;
mod definitions;
mod documents;
mod import;
mod journal;
mod logins;
mod migrate;
mod node;
mod peer;
mod quotas;
mod restored;
mod servers;
mod spool;
mod status;
mod timed;
mod tls;
mod tokens;
mod usage;

use std::{
    borrow::Cow,
    fmt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokio::sync::Semaphore;
use toolgate_store::{
    AccessTokens, AuditLimits, AuditLog, ChoiceStore, DefinitionStore, Journal, JournalError,
    Logins, NodeHealth, PinStore, PolicyStore, Quotas, SecretSeal, ServerLeases, ShapeStore,
    SharedStore, StoreError, TimedValues, UsageLog, WaitingLogins,
};

pub use database::FleetError;
pub use import::{ImportSummary, ImportedChoices};
pub use peer::{PeerTls, peer_tls};
pub use restored::RestoreSummary;
pub use status::{FleetStatus, NodeStatus, ServerLeaseStatus};

use audit::SharedAudit;
use database::{Database, PLACE};
use definitions::SharedDefinitions;
use documents::{SharedChoices, SharedPins, SharedPolicy, SharedShapes};
use journal::SharedJournal;
use logins::{RENEWALS, SharedLogins};
use node::Node;
use quotas::SharedQuotas;
use servers::SharedServers;
use timed::SharedValues;
use tokens::SharedTokens;
use usage::SharedUsage;

/// How a process joins the fleet.
#[derive(Clone)]
pub struct FleetOptions {
    /// The URL of the database, with its password.
    pub database: String,
    /// The URL at which other nodes reach this one; empty if they cannot.
    pub advertise: String,
    /// How long a node counts as alive after it was last heard of.
    pub lease: Duration,
    /// Whether this process serves clients. A command does not, and has no lease.
    pub is_node: bool,
    /// What all nodes have in common. A node with another secret than the others does not join.
    pub secret: Option<String>,
    /// A folder in which records of the audit log wait while the database is away.
    pub spool: Option<PathBuf>,
    /// The most bytes of records that wait there. Further records are counted.
    pub spool_bytes: u64,
    /// The most bytes of outputs that are kept. Older ones are removed.
    pub output_bytes: u64,
}

/// The shared database.
pub struct Fleet {
    node: Arc<Node>,
    journal: Arc<SharedJournal>,
    audit: Arc<SharedAudit>,
    tokens: Arc<SharedTokens>,
    usage: Arc<SharedUsage>,
    shapes: Arc<SharedShapes>,
    quotas: Arc<SharedQuotas>,
    values: Arc<SharedValues>,
    servers: Arc<SharedServers>,
    /// Taken by the logins that are renewed.
    renewals: Arc<Semaphore>,
    is_node: bool,
}

impl Fleet {
    /// Connects. The tables must be those of this program, or one version newer.
    pub fn open(options: &FleetOptions) -> Result<Arc<Self>, FleetError> {
        let database = Database::new(&options.database)?;
        migrate::check(&database)?;
        if let (true, Some(secret)) = (options.is_node, &options.secret) {
            node::check_secret(&database, secret)?;
        }
        let node = Node::start(database, options)?;
        let shared = || Arc::clone(&node);
        Ok(Arc::new(Self {
            journal: Arc::new(SharedJournal::new(shared())),
            audit: SharedAudit::new(shared(), options),
            tokens: Arc::new(SharedTokens(shared())),
            usage: Arc::new(SharedUsage::new(shared())),
            shapes: Arc::new(SharedShapes(shared())),
            quotas: Arc::new(SharedQuotas::new(shared())),
            values: Arc::new(SharedValues(shared())),
            servers: Arc::new(SharedServers::new(shared(), options.is_node)),
            renewals: Arc::new(Semaphore::new(RENEWALS)),
            is_node: options.is_node,
            node,
        }))
    }

    /// Makes the tables, or brings them to the version of this program. Returns the versions before and after. Several
    /// nodes may do this at once.
    pub fn migrate(database: &str) -> Result<(i32, i32), FleetError> {
        migrate::migrate(&Database::new(database)?)
    }

    /// Says where other nodes reach this one, once that is known. Waits for the database.
    pub fn advertise(&self, url: &str) -> Result<(), FleetError> {
        self.node.advertise(url)
    }

    fn shared_logins(&self, seal: SecretSeal) -> SharedLogins {
        SharedLogins::new(Arc::clone(&self.node), seal, Arc::clone(&self.renewals))
    }

    /// Removes the oldest lines of the audit log now, if it has more than is kept. A node does that by itself.
    pub fn prune_audit(&self) -> Result<(), FleetError> {
        self.audit.prune()
    }

    /// Removes now what nobody needs any more: what has expired, and the oldest outputs if there are too many. A node
    /// does that by itself.
    pub fn tidy(&self) -> Result<(), FleetError> {
        self.node.tidy_now()
    }

    /// Ends the lease and gives back what was leased, so that other nodes need not wait. Waits for the database.
    pub fn leave(&self) {
        if self.is_node {
            toolgate_store::RunEntries::flush(&*self.journal);
            self.quotas.give_back();
            self.node.leave();
        }
    }
}

impl SharedStore for Fleet {
    fn journal(&self) -> Result<Arc<dyn Journal>, JournalError> {
        Ok(Arc::clone(&self.journal) as Arc<dyn Journal>)
    }

    fn audit(&self) -> Arc<dyn AuditLog> {
        Arc::clone(&self.audit) as Arc<dyn AuditLog>
    }

    fn limit_audit(&self, limits: AuditLimits) {
        self.audit.limit(limits);
    }

    fn definitions(&self) -> Arc<dyn DefinitionStore> {
        Arc::new(SharedDefinitions(Arc::clone(&self.node)))
    }

    fn pins(&self) -> Arc<dyn PinStore> {
        Arc::new(SharedPins(Arc::clone(&self.node)))
    }

    fn policy(&self) -> Arc<dyn PolicyStore> {
        Arc::new(SharedPolicy(Arc::clone(&self.node)))
    }

    fn health(&self) -> NodeHealth {
        NodeHealth {
            nodes: u64::from(self.node.nodes()),
            is_away: self.node.database.check_known().is_err(),
            waiting_bytes: self.audit.waiting_bytes(),
        }
    }

    fn access_tokens(&self) -> Arc<dyn AccessTokens> {
        Arc::clone(&self.tokens) as Arc<dyn AccessTokens>
    }

    fn choices(&self, configuration: &str) -> Arc<dyn ChoiceStore> {
        Arc::new(SharedChoices::new(Arc::clone(&self.node), configuration))
    }

    fn usage(&self) -> Arc<dyn UsageLog> {
        Arc::clone(&self.usage) as Arc<dyn UsageLog>
    }

    fn shapes(&self) -> Arc<dyn ShapeStore> {
        Arc::clone(&self.shapes) as Arc<dyn ShapeStore>
    }

    fn quotas(&self) -> Arc<dyn Quotas> {
        Arc::clone(&self.quotas) as Arc<dyn Quotas>
    }

    fn logins(&self, seal: SecretSeal) -> Arc<dyn Logins> {
        Arc::new(self.shared_logins(seal))
    }

    fn waiting_logins(&self, seal: SecretSeal) -> Arc<dyn WaitingLogins> {
        Arc::new(self.shared_logins(seal))
    }

    fn server_leases(&self) -> Arc<dyn ServerLeases> {
        Arc::clone(&self.servers) as Arc<dyn ServerLeases>
    }

    fn timed_values(&self) -> Arc<dyn TimedValues> {
        Arc::clone(&self.values) as Arc<dyn TimedValues>
    }

    fn node(&self) -> &str {
        &self.node.id
    }

    fn node_url(&self, node: &str) -> Result<Option<String>, StoreError> {
        let found = self.node.database.with(|connection| async move {
            let url = "SELECT url FROM node WHERE id = $1 AND lease_until > now()";
            let url = connection.prepare_cached(url).await?;
            Ok(connection.query_opt(&url, &[&node]).await?.map(|row| row.get(0)))
        });
        found.map_err(|error| StoreError::of(PLACE, error.into_io()))
    }

    fn check(&self) -> Result<(), StoreError> {
        let answered = self
            .node
            .database
            .with(|connection| async move { Ok(connection.query_one("SELECT 1", &[]).await?) });
        answered.map(drop).map_err(|error| StoreError::of(PLACE, error.into_io()))
    }
}

/// A text of the database.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|broken| String::from_utf8_lossy(broken.as_bytes()).into_owned())
}

/// A name as PostgreSQL can store it.
fn plain(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        Cow::Owned(text.replace('\0', "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Milliseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

impl Default for FleetOptions {
    fn default() -> Self {
        Self {
            database: String::new(),
            advertise: String::new(),
            lease: Duration::from_secs(15),
            is_node: false,
            secret: None,
            spool: None,
            spool_bytes: 64 * 1024 * 1024,
            output_bytes: 1024 * 1024 * 1024,
        }
    }
}

impl fmt::Debug for FleetOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("FleetOptions")
            .field("advertise", &self.advertise)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Fleet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Fleet").field("node", &self.node).finish_non_exhaustive()
    }
}
