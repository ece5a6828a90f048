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

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use thiserror::Error;
use tokio::runtime::{Builder, Handle, RuntimeFlavor};
use tokio_postgres::Config;

use crate::tls::DatabaseTls;

/// How the database is called in messages.
pub(crate) const PLACE: &str = "the shared database";
/// How long anything waits for the database.
const TIMEOUT: Duration = Duration::from_secs(5);
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
    /// No answer in time. It is not known whether something was changed.
    #[error("it did not answer within {} s", TIMEOUT.as_secs())]
    Slow,
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

/// The connections. Clones are the same ones.
#[derive(Clone)]
pub(crate) struct Database {
    pool: Pool,
    config: Config,
    tls: DatabaseTls,
    runtime: Arc<OwnRuntime>,
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
        let pool = Pool::builder(manager)
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
        Ok(Self { pool, config, tls, runtime: Arc::new(OwnRuntime(Some(runtime))) })
    }

    /// A connection of the pool.
    pub(crate) async fn connection(&self) -> Result<Object, FleetError> {
        self.pool.get().await.map_err(|error| FleetError::Away(cause(&error)))
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
        let connected = self.config.connect(self.tls.clone()).await;
        connected.map_err(|error| FleetError::Away(cause(&error)))
    }

    /// Works on a connection of the pool, and makes the calling thread wait for it.
    pub(crate) fn with<'w, T, F>(&'w self, work: impl FnOnce(Object) -> F) -> Result<T, FleetError>
    where
        F: Future<Output = Result<T, FleetError>> + 'w,
    {
        self.wait(async { work(self.connection().await?).await })
    }

    /// Makes the calling thread wait, within the time limit.
    pub(crate) fn wait<T>(
        &self,
        work: impl Future<Output = Result<T, FleetError>>,
    ) -> Result<T, FleetError> {
        self.wait_within(TIMEOUT, work)
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
