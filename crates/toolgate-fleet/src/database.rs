//! The connections to the database, and the thread that serves them.
//!
//! The stores are called from threads that may wait: as files, they have no other interface. So the connections have a
//! small runtime of their own, which goes on while the threads of a caller wait.

use std::{
    fmt,
    future::Future,
    io,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::Thread,
    time::Duration,
};

use deadpool_postgres::{
    ClientWrapper, Hook, HookError, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime,
};
use parking_lot::Mutex;
use thiserror::Error;
use tokio::runtime::{Builder, Handle, RuntimeFlavor};
use tokio_postgres::{Config, error::SqlState};

use crate::tls::DatabaseTls;

/// How the database is called in messages.
pub(crate) const PLACE: &str = "the shared database";
/// How long anything waits for the database.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(3);
/// How long what a person waits for may take, such as new tables.
pub(crate) const LONG: Duration = Duration::from_mins(10);
/// How long PostgreSQL itself works on a statement. Nobody waits for it any more then.
const STATEMENT_MILLISECONDS: u32 = 5_000;
/// The class of the codes for a wrong user or password.
const WRONG_LOGIN: &str = "28";
/// Connections of one node. PostgreSQL allows 100 in all unless it is told otherwise.
const CONNECTIONS: usize = 8;

/// Why the shared database cannot be used. Nothing was changed, unless it says so.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FleetError {
    /// The URL cannot be understood. It is not shown, because it has a password.
    #[error("the URL of the shared database cannot be understood: {0}")]
    Url(String),
    /// No connection.
    #[error("it does not answer ({0}); calls that need a record are refused until it does")]
    Away(String),
    /// It answers, and lets this program do nothing.
    #[error("it refuses the connection ({0}); check `fleet.database`")]
    Refused(String),
    /// No answer in time. It is not known whether something was changed.
    #[error("it did not answer within {} s", TIMEOUT.as_secs())]
    Slow,
    /// The secret of this node is not that of the others.
    #[error("`fleet.secret` of this node is not that of the other nodes; give all nodes the same")]
    OtherSecret,
    /// A statement failed.
    #[error("{0}")]
    Statement(String),
    /// The tables are of a version that this program does not know.
    #[error(
        "its tables are of version {found}, and this toolgate knows version {known}; use a newer toolgate"
    )]
    TooNew {
        /// The version of the tables.
        found: i32,
        /// The newest version that is known.
        known: i32,
    },
    /// The tables are older, or there are none.
    #[error("its tables are of version {found}, not {known}; run `toolgate fleet migrate`")]
    TooOld {
        /// The version of the tables.
        found: i32,
        /// The version that is needed.
        known: i32,
    },
    /// Another node has taken over the run.
    #[error("another node has taken over this run")]
    TakenOver,
    /// The system does not give what is needed.
    #[error("{0}")]
    System(String),
}

impl FleetError {
    /// Why there is no answer, for a message that says that there is none.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Away(why) => why.clone(),
            other => other.to_string(),
        }
    }
}

/// The connections. Clones are the same ones.
#[derive(Clone)]
pub(crate) struct Database {
    pool: Pool,
    config: Config,
    tls: DatabaseTls,
    runtime: Arc<OwnRuntime>,
    /// Why the database is away, if it is known to be. Then nobody waits for it.
    away: Arc<Mutex<Option<String>>>,
}

/// The runtime of the connections, which ends with them.
struct OwnRuntime(Option<tokio::runtime::Runtime>);

impl Database {
    /// Prepares connections to this database. None is made yet.
    pub(crate) fn new(url: &str) -> Result<Self, FleetError> {
        let mut config: Config =
            url.parse().map_err(|error: tokio_postgres::Error| FleetError::Url(cause(&error)))?;
        config.connect_timeout(TIMEOUT).application_name("toolgate");
        let tls = DatabaseTls::new().map_err(|error| FleetError::System(error.to_string()))?;
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(config.clone(), tls.clone(), recycling);
        let bounded = Hook::async_fn(|client: &mut ClientWrapper, _| {
            Box::pin(async move {
                let bound = format!("SET statement_timeout = {STATEMENT_MILLISECONDS}");
                client.batch_execute(&bound).await.map_err(HookError::Backend)
            })
        });
        let pool = Pool::builder(manager)
            .post_create(bounded)
            .max_size(CONNECTIONS)
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| FleetError::System(error.to_string()))?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("fleet")
            .enable_all()
            .build()
            .map_err(|error| FleetError::System(error.to_string()))?;
        let runtime = Arc::new(OwnRuntime(Some(runtime)));
        Ok(Self { pool, config, tls, runtime, away: Arc::default() })
    }

    /// A connection of the pool. Fails at once while the database is known to be away.
    pub(crate) async fn connection(&self) -> Result<Object, FleetError> {
        self.check_known()?;
        self.pool.get().await.map_err(|error| {
            let why = cause(&error);
            self.is_away(&why);
            no_connection(&error, why)
        })
    }

    /// Fails if the database is known to be away. Does not wait.
    pub(crate) fn check_known(&self) -> Result<(), FleetError> {
        self.away.lock().clone().map_or(Ok(()), |why| Err(FleetError::Away(why)))
    }

    /// Notes that the database is away, until somebody hears of it again.
    pub(crate) fn is_away(&self, why: &str) {
        let mut away = self.away.lock();
        if away.is_none() {
            tracing::debug!("{PLACE} is away: {why}");
            *away = Some(why.to_owned());
        }
        drop(away);
        // Connections to a database that hangs may never end.
        self.pool.retain(|_, _| false);
    }

    /// Notes that the database answers.
    pub(crate) fn is_back(&self) {
        if self.away.lock().take().is_some() {
            tracing::warn!("{PLACE} answers again");
        }
    }

    /// Waits for the database, within its time limit.
    pub(crate) async fn within<T>(
        &self,
        work: impl Future<Output = Result<T, FleetError>>,
    ) -> Result<T, FleetError> {
        let done = tokio::time::timeout(TIMEOUT, work).await.unwrap_or(Err(FleetError::Slow));
        if matches!(done, Err(FleetError::Slow)) {
            self.is_away(&FleetError::Slow.to_string());
        }
        done
    }

    /// A connection of one's own, with what drives it.
    pub(crate) async fn own_connection(
        &self,
    ) -> Result<
        (
            tokio_postgres::Client,
            tokio_postgres::Connection<
                tokio_postgres::Socket,
                crate::tls::EncryptedStream<tokio_postgres::Socket>,
            >,
        ),
        FleetError,
    > {
        let connecting = self.config.connect(self.tls.clone());
        let connected = tokio::time::timeout(TIMEOUT, connecting).await;
        let connected = connected.map_err(|_| FleetError::Slow)?;
        connected.map_err(|error| no_connection(&error, cause(&error)))
    }

    /// Works on a connection of the pool, and makes the calling thread wait for it.
    pub(crate) fn with<'w, T, F>(&'w self, work: impl FnOnce(Object) -> F) -> Result<T, FleetError>
    where
        F: Future<Output = Result<T, FleetError>> + 'w,
    {
        self.wait(async { work(self.connection().await?).await })
    }

    /// The same for work that may take long.
    pub(crate) fn with_long<'w, T, F>(
        &'w self,
        work: impl FnOnce(Object) -> F,
    ) -> Result<T, FleetError>
    where
        F: Future<Output = Result<T, FleetError>> + 'w,
    {
        self.wait_within(LONG, async {
            let connection = self.connection().await?;
            connection.batch_execute("SET statement_timeout = 0").await?;
            work(connection).await
        })
    }

    /// Makes the calling thread wait, within the time limit.
    pub(crate) fn wait<T>(
        &self,
        work: impl Future<Output = Result<T, FleetError>>,
    ) -> Result<T, FleetError> {
        self.wait_within(LONG, self.within(work))
    }

    /// Makes the calling thread wait for what may take longer than the database does.
    pub(crate) fn wait_within<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = Result<T, FleetError>>,
    ) -> Result<T, FleetError> {
        let Some(runtime) = &self.runtime.0 else { return Err(FleetError::Slow) };
        let within =
            async { tokio::time::timeout(limit, work).await.unwrap_or(Err(FleetError::Slow)) };
        // Another thread takes over the tasks of this one meanwhile, where there are several.
        let has_others = Handle::try_current()
            .is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
        let blocking = || {
            let _timers = runtime.enter();
            park_until(within)
        };
        if has_others { tokio::task::block_in_place(blocking) } else { blocking() }
    }

    /// Starts a task on the runtime of the connections.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime.0 {
            runtime.spawn(task);
        }
    }
}

/// Runs a future on this thread, which sleeps meanwhile. `Runtime::block_on` refuses threads of other runtimes.
fn park_until<T>(work: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut work = pin!(work);
    loop {
        if let Poll::Ready(done) = work.as_mut().poll(&mut context) {
            return done;
        }
        std::thread::park();
    }
}

/// Why there is no connection: nobody answers, or PostgreSQL refuses this user or has no such database.
fn no_connection(error: &(dyn std::error::Error + 'static), why: String) -> FleetError {
    let mut errors = std::iter::successors(Some(error), |error| error.source());
    let refused = errors.any(|error| {
        let said = error.downcast_ref::<tokio_postgres::Error>();
        said.and_then(tokio_postgres::Error::code).is_some_and(|code| {
            *code == SqlState::UNDEFINED_DATABASE || code.code().starts_with(WRONG_LOGIN)
        })
    });
    if refused { FleetError::Refused(why) } else { FleetError::Away(why) }
}

/// The innermost reason of an error. The outer ones only say where it happened.
pub(crate) fn cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

impl FleetError {
    /// As the source of an error of the stores.
    pub(crate) fn into_io(self) -> io::Error {
        io::Error::other(self)
    }
}

impl From<FleetError> for String {
    fn from(error: FleetError) -> Self {
        error.to_string()
    }
}

impl From<tokio_postgres::Error> for FleetError {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            // The end of a connection that an administrator or a restart has ended.
            Some(told) if told.code().code().starts_with("57P") => {
                Self::Away(told.message().to_owned())
            }
            Some(told) => Self::Statement(told.message().to_owned()),
            None => Self::Away(cause(&error)),
        }
    }
}

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // It may be dropped within another runtime, where waiting is not allowed.
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The configuration has a password.
        formatter.debug_struct("Database").finish_non_exhaustive()
    }
}
