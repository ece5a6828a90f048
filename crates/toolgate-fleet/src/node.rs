//! This process as a node of the fleet: its lease, and what it hears of the others.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

use futures::{FutureExt as _, StreamExt as _, future, stream};
use parking_lot::{Mutex, RwLock};
use tokio_postgres::AsyncMessage;
use toolgate_store::NodeMessage;

use crate::{
    FleetOptions,
    database::{Database, FleetError, TIMEOUT},
};

/// The channel of `NOTIFY`.
const CHANNEL: &str = "toolgate";
/// Between two looks without a notification.
const POLL: Duration = Duration::from_millis(500);
/// How long what was read before counts while the database is away.
const STALE: Duration = Duration::from_mins(5);
/// The part of a lease before whose end a node ends what it has by the lease: that takes time.
const SURE_PART: u32 = 6;
/// How long messages are kept for nodes that were not listening.
const MESSAGE_SECONDS: f64 = 60.0;

/// Makes a version of a topic newer, and tells the other nodes, in the transaction of the caller.
pub(crate) const BUMP: &str = "WITH bumped AS (
        INSERT INTO version (topic, number) VALUES ($1, 1)
        ON CONFLICT (topic) DO UPDATE SET number = version.number + 1 RETURNING number
    ) SELECT number, pg_notify('toolgate', $1) FROM bumped";

type Waker = Box<dyn Fn() + Send + Sync>;
type Receiver = Box<dyn Fn(&NodeMessage) + Send + Sync>;

/// What a node knows without asking.
pub(crate) struct Node {
    /// Its id, which no other process has ever had.
    pub(crate) id: String,
    pub(crate) database: Database,
    pub(crate) lease: Duration,
    /// Until when no other node believes this one to be dead.
    sure_until: Mutex<Option<Instant>>,
    /// The most bytes of outputs.
    output_bytes: u64,
    url: RwLock<String>,
    versions: RwLock<Versions>,
    /// Those who wait for a change of a topic.
    listeners: Mutex<Vec<(String, Waker)>>,
    receivers: Mutex<Vec<Receiver>>,
    last_message: AtomicI64,
    /// The position of this node among those that live, and how many there are.
    place: Mutex<(u32, u32)>,
}

struct Versions {
    numbers: HashMap<String, i64>,
    heard: Instant,
}

impl Node {
    /// Registers this process, and starts to listen.
    pub(crate) fn start(
        database: Database,
        options: &FleetOptions,
    ) -> Result<Arc<Self>, FleetError> {
        let mut random = [0_u8; 16];
        getrandom::fill(&mut random).map_err(|error| FleetError::System(error.to_string()))?;
        let random = blake3::hash(&random).to_hex();
        let node = Arc::new(Self {
            id: format!("n_{}", &random[..16]),
            database,
            lease: options.lease,
            sure_until: Mutex::default(),
            output_bytes: options.output_bytes,
            url: RwLock::new(options.advertise.clone()),
            versions: RwLock::new(Versions { numbers: HashMap::new(), heard: Instant::now() }),
            listeners: Mutex::default(),
            receivers: Mutex::default(),
            last_message: AtomicI64::new(0),
            place: Mutex::new((0, 1)),
        });
        node.database.wait(async {
            let connection = node.database.connection().await?;
            if options.is_node {
                node.renew(&connection).await?;
            }
            let last =
                connection.query_one("SELECT coalesce(max(id), 0) FROM message", &[]).await?;
            node.last_message.store(last.get(0), Ordering::Relaxed);
            node.look(&connection).await
        })?;
        if options.is_node {
            node.database.spawn(keep_lease(Arc::downgrade(&node), node.lease / 3));
        }
        node.database.spawn(listen(Arc::downgrade(&node)));
        Ok(node)
    }

    /// The version of a topic, without a look. It changes too when nothing was heard for so long that what was read
    /// before no longer counts.
    pub(crate) fn version(&self, topic: &str) -> u64 {
        let versions = self.versions.read();
        if versions.heard.elapsed() > STALE {
            return u64::MAX;
        }
        versions.numbers.get(topic).copied().unwrap_or_default().cast_unsigned()
    }

    /// Takes in a version that this node has made itself.
    pub(crate) fn made(&self, topic: &str, number: i64) {
        self.versions.write().numbers.insert(topic.to_owned(), number);
        self.tell(&[topic.to_owned()]);
    }

    /// Calls `wake` after changes of a topic.
    pub(crate) fn on_change(&self, topic: &str, wake: Waker) {
        self.listeners.lock().push((topic.to_owned(), wake));
    }

    pub(crate) fn on_message(&self, receive: Receiver) {
        self.receivers.lock().push(receive);
    }

    /// The part of a number that this node may use without asking the others.
    pub(crate) fn share(&self, most: u32) -> u32 {
        let (rank, nodes) = *self.place.lock();
        let nodes = nodes.max(1);
        most / nodes + u32::from(rank < most % nodes)
    }

    /// How many nodes live.
    pub(crate) fn nodes(&self) -> u32 {
        self.place.lock().1.max(1)
    }

    async fn renew(&self, connection: &tokio_postgres::Client) -> Result<(), FleetError> {
        let renew = "INSERT INTO node (id, version, url, lease_until)
            VALUES ($1, $2, $3, now() + $4 * interval '1 second')
            ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until, url = excluded.url";
        let version = env!("CARGO_PKG_VERSION");
        let seconds = self.lease.as_secs_f64();
        let url = self.url.read().clone();
        let sent = Instant::now();
        connection.execute(renew, &[&self.id, &version, &url, &seconds]).await?;
        *self.sure_until.lock() = Some(sent + self.lease / SURE_PART * (SURE_PART - 1));
        let place =
            "SELECT count(*) FILTER (WHERE id < $1), count(*) FROM node WHERE lease_until > now()";
        let row = connection.query_one(place, &[&self.id]).await?;
        let number = |column| u32::try_from(row.get::<_, i64>(column)).unwrap_or(u32::MAX);
        *self.place.lock() = (number(0), number(1));
        Ok(())
    }

    /// Says where other nodes reach this one.
    pub(crate) fn advertise(&self, url: &str) -> Result<(), FleetError> {
        url.clone_into(&mut self.url.write());
        self.database.with(|connection| async move { self.renew(&connection).await })
    }

    /// Whether other nodes reach this one.
    pub(crate) fn is_reachable(&self) -> bool {
        !self.url.read().is_empty()
    }

    /// Whether no other node believes this one to be dead, for a while.
    pub(crate) fn is_sure(&self) -> bool {
        self.sure_until.lock().is_some_and(|until| Instant::now() < until)
    }

    /// Removes what nobody needs any more.
    async fn tidy(&self, connection: &tokio_postgres::Client) -> Result<(), FleetError> {
        let dead = "DELETE FROM node WHERE lease_until < now() - interval '1 day'";
        connection.execute(dead, &[]).await?;
        let old = "DELETE FROM message WHERE sent < now() - $1 * interval '1 second'";
        connection.execute(old, &[&MESSAGE_SECONDS]).await?;
        let expired =
            "DELETE FROM timed_value WHERE expires < (extract(epoch FROM now()) * 1000)::bigint";
        connection.execute(expired, &[]).await?;
        let logins = "DELETE FROM waiting_login
            WHERE expires < (extract(epoch FROM now()) * 1000)::bigint - 60000";
        connection.execute(logins, &[]).await?;
        // Those that expire first are the oldest. The length of a value is known without reading it.
        let outputs = "DELETE FROM timed_value WHERE kind = 'output' AND key IN (
            SELECT key FROM (
                SELECT key, sum(octet_length(content)) OVER (ORDER BY expires DESC, key) AS total
                FROM timed_value WHERE kind = 'output') AS kept
            WHERE total > $1::bigint)";
        let most = i64::try_from(self.output_bytes).unwrap_or(i64::MAX);
        connection.execute(outputs, &[&most]).await?;
        Ok(())
    }

    /// Removes it now.
    pub(crate) fn tidy_now(&self) -> Result<(), FleetError> {
        self.database.with(|connection| async move { self.tidy(&connection).await })
    }

    /// Ends the lease, so that others need not wait for its end.
    pub(crate) fn leave(&self) {
        // If this fails, the lease runs out.
        let _ = self.database.with(|connection| async move {
            connection.execute("DELETE FROM node WHERE id = $1", &[&self.id]).await?;
            // What this node had is free at once.
            connection.query_one(BUMP, &[&crate::servers::TOPIC]).await?;
            Ok(())
        });
    }

    /// Reads the versions, and the messages that are new.
    async fn look(&self, connection: &tokio_postgres::Client) -> Result<(), FleetError> {
        let rows = connection.query("SELECT topic, number FROM version", &[]).await?;
        let mut changed = Vec::new();
        {
            let mut versions = self.versions.write();
            for row in rows {
                let (topic, number): (String, i64) = (row.get(0), row.get(1));
                // An answer that was under way may be older than what this node has made itself.
                if versions.numbers.get(&topic).is_none_or(|known| *known < number) {
                    versions.numbers.insert(topic.clone(), number);
                    changed.push(topic);
                }
            }
            versions.heard = Instant::now();
        }
        self.database.is_back();
        self.tell(&changed);
        let last = self.last_message.load(Ordering::Relaxed);
        let new =
            "SELECT id, topic, key, content FROM message WHERE id > $1 ORDER BY id LIMIT 1000";
        for row in connection.query(new, &[&last]).await? {
            self.last_message.fetch_max(row.get(0), Ordering::Relaxed);
            let content = crate::text(row.get(3));
            let message = NodeMessage { topic: row.get(1), key: row.get(2), content };
            self.receivers.lock().iter().for_each(|receive| receive(&message));
        }
        Ok(())
    }

    fn tell(&self, changed: &[String]) {
        for (topic, wake) in &*self.listeners.lock() {
            if changed.contains(topic) {
                wake();
            }
        }
    }
}

/// Fails if the nodes that live have another secret. The database has a fingerprint of it, which says nothing of it.
pub(crate) fn check_secret(database: &Database, secret: &str) -> Result<(), FleetError> {
    const NAME: &str = "secret";
    let key = blake3::derive_key("toolgate 2026-11-18 fingerprint of the fleet", secret.as_bytes());
    let own = blake3::keyed_hash(&key, NAME.as_bytes()).to_hex().to_string();
    let is_same = database.with(|connection| async move {
        // The first node of a fleet may bring a new one.
        let note = "INSERT INTO fingerprint (name, value) VALUES ($1, $2)
            ON CONFLICT (name) DO UPDATE SET value = excluded.value
            WHERE NOT EXISTS (SELECT 1 FROM node WHERE lease_until > now())";
        connection.execute(note, &[&NAME, &own]).await?;
        let same = "SELECT value = $2 FROM fingerprint WHERE name = $1";
        Ok(connection.query_one(same, &[&NAME, &own]).await?.get::<_, bool>(0))
    });
    if is_same? { Ok(()) } else { Err(FleetError::OtherSecret) }
}

/// Renews the lease while the node is in use.
async fn keep_lease(node: Weak<Node>, pause: Duration) {
    let mut rounds = 0_u32;
    loop {
        tokio::time::sleep(pause).await;
        let Some(node) = node.upgrade() else { return };
        let renewed = node.database.within(async {
            let connection = node.database.connection().await?;
            node.renew(&connection).await?;
            if rounds.is_multiple_of(12) {
                node.tidy(&connection).await?;
            }
            Ok(())
        });
        match renewed.await {
            Ok(()) => rounds = rounds.wrapping_add(1),
            Err(error) => tracing::warn!("the lease of this node was not renewed: {error}"),
        }
    }
}

/// Listens for changes, and looks now and then too. Connects again without end.
async fn listen(node: Weak<Node>) {
    let mut was_heard = true;
    loop {
        let Some(strong) = node.upgrade() else { return };
        let connected = strong.database.own_connection().await;
        drop(strong);
        let error = match connected {
            Ok((client, mut connection)) => {
                was_heard = true;
                let mut notices = stream::poll_fn(move |context| connection.poll_message(context));
                let heard = hear(&node, &client, &mut notices).await;
                match heard {
                    None => return,
                    Some(error) => error,
                }
            }
            Err(error) => error,
        };
        if let Some(node) = node.upgrade() {
            node.database.is_away(&error.reason());
        }
        if std::mem::take(&mut was_heard) {
            tracing::warn!("the shared database cannot be heard: {error}");
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Hears notices until the connection ends. `None` if the node is gone.
async fn hear(
    node: &Weak<Node>,
    client: &tokio_postgres::Client,
    notices: &mut (impl futures::Stream<Item = Result<AsyncMessage, tokio_postgres::Error>> + Unpin),
) -> Option<FleetError> {
    let begun = format!("LISTEN {CHANNEL}");
    let listening = async { Ok(client.batch_execute(&begun).await?) };
    let mut work = in_time(listening).boxed();
    let (mut is_looking, mut has_news) = (true, true);
    loop {
        let pause = tokio::time::sleep(if has_news { Duration::ZERO } else { POLL });
        tokio::select! {
            // What drives the connection comes first.
            biased;
            notice = notices.next() => match notice {
                Some(Ok(notice)) => {
                    has_news |= matches!(notice, AsyncMessage::Notification(_));
                    continue;
                }
                Some(Err(error)) => return Some(error.into()),
                None => return Some(FleetError::Away("the connection ended".to_owned())),
            },
            done = &mut work, if is_looking => {
                if let Err(error) = done {
                    return Some(error);
                }
                is_looking = false;
                work = future::pending().boxed();
                continue;
            }
            () = pause, if !is_looking => {}
        }
        let node = node.upgrade()?;
        (is_looking, has_news) = (true, false);
        work = in_time(async move { node.look(client).await }).boxed();
    }
}

/// Waits for a database that may hang.
async fn in_time(work: impl Future<Output = Result<(), FleetError>>) -> Result<(), FleetError> {
    tokio::time::timeout(TIMEOUT, work).await.unwrap_or(Err(FleetError::Slow))
}

impl fmt::Debug for Node {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Node").field("id", &self.id).finish_non_exhaustive()
    }
}
