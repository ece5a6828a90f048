//! Where the servers are that run once in a fleet.

use std::{fmt, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::{net::TcpStream, time::Instant};
use toolgate_catalog::ServerName;
use toolgate_gateway::SERVERS_PATH;
use toolgate_http::OwnTls;
use toolgate_store::{ServerHolder, ServerLeases, StoreError};
use toolgate_upstream::{
    ConnectFailure, HttpEndpoint, PlacedServer, ServerPlacement, ServerPlaces,
};

/// Finds the places of servers by their leases.
pub(crate) struct LeasedPlaces {
    pub(crate) leases: Arc<dyn ServerLeases>,
    /// How nodes reach each other; `None` if the configuration does not say.
    pub(crate) tls: Option<OwnTls>,
}

/// The place of one server.
struct LeasedPlace {
    leases: Arc<dyn ServerLeases>,
    tls: Option<OwnTls>,
    server: String,
    scope: String,
    /// What this node has, if it has it.
    held: Mutex<Option<ServerHolder>>,
}

/// Between two looks whether a server has moved, without asking the database.
const LOOK: Duration = Duration::from_millis(100);
/// How long another node may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

impl ServerPlaces for LeasedPlaces {
    fn place_of(&self, server: &ServerName, scope: &str) -> Arc<dyn ServerPlacement> {
        Arc::new(LeasedPlace {
            leases: Arc::clone(&self.leases),
            tls: self.tls.clone(),
            server: server.to_string(),
            scope: scope.to_owned(),
            held: Mutex::default(),
        })
    }
}

impl ServerPlacement for LeasedPlace {
    fn scope(&self) -> &str {
        &self.scope
    }

    fn is_here(&self) -> bool {
        self.held.lock().is_some() && self.leases.is_sure()
    }

    fn place(self: Arc<Self>) -> BoxFuture<'static, Result<PlacedServer, ConnectFailure>> {
        Box::pin(async move {
            let Some(tls) = self.tls.clone() else {
                let reason = "`\"fleet\": \"single\"` needs nodes that reach each other";
                let action = "set `fleet.advertise` and `fleet.secret`";
                return Err(ConnectFailure::new(reason, action));
            };
            let holder = self.ask(|place| place.leases.take(&place.server, &place.scope)).await;
            let holder = holder.map_err(|error| {
                let reason = format!("which node runs it is not known: {error}");
                ConnectFailure::new(reason, "try again")
            })?;
            let Some(holder) = holder else {
                // No node lives that could have it, and this process is none.
                return Ok(PlacedServer { node: "-".to_owned(), epoch: 0, elsewhere: None });
            };
            let (node, epoch) = (holder.node.clone(), holder.epoch);
            if holder.is_own {
                *self.held.lock() = Some(holder);
                return Ok(PlacedServer { node, epoch, elsewhere: None });
            }
            *self.held.lock() = None;
            self.check_reachable(&holder).await?;
            let url = format!("{}{SERVERS_PATH}{}", holder.url.trim_end_matches('/'), self.scope);
            let endpoint = HttpEndpoint { tls: Some(tls), ..HttpEndpoint::new(url) };
            Ok(PlacedServer { node, epoch, elsewhere: Some(endpoint) })
        })
    }

    fn moved(self: Arc<Self>, placed: PlacedServer) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let PlacedServer { node, epoch, elsewhere } = placed;
            let is_own = elsewhere.is_none();
            if epoch == 0 {
                return std::future::pending().await;
            }
            let holder = ServerHolder { node, url: String::new(), epoch, is_own };
            let (mut seen, mut asked) = (self.leases.changes(), Instant::now());
            loop {
                tokio::time::sleep(LOOK).await;
                if is_own && !self.leases.is_sure() {
                    // Another node may begin soon to run it.
                    break;
                }
                let changes = self.leases.changes();
                if changes == seen && asked.elapsed() < self.leases.lease() / 3 {
                    continue;
                }
                let known = holder.clone();
                // While the database is away, nobody can take it over.
                let has = self.ask(move |place| place.leases.has(&place.scope, &known)).await;
                if let Ok(has) = has {
                    (seen, asked) = (changes, Instant::now());
                    if !has {
                        break;
                    }
                }
            }
            *self.held.lock() = None;
        })
    }
}

impl LeasedPlace {
    /// Waits for the database on another thread.
    async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        ask: impl FnOnce(&Self) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, String> {
        let place = Arc::clone(self);
        let asked = tokio::task::spawn_blocking(move || ask(&place)).await;
        asked.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }

    /// Says what happens next if the node that has the server does not answer.
    async fn check_reachable(&self, holder: &ServerHolder) -> Result<(), ConnectFailure> {
        let url = url::Url::parse(&holder.url).ok();
        let address = url.as_ref().and_then(|url| {
            let host = url.host_str()?.trim_matches(['[', ']']);
            Some((host.to_owned(), url.port_or_known_default().unwrap_or(443)))
        });
        let reached = match address {
            Some(address) => {
                tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await
            }
            None => Ok(Err(std::io::Error::other("it has no address"))),
        };
        let why = match reached {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer".to_owned(),
        };
        let reason = format!("node {} runs it and cannot be reached: {why}", holder.node);
        let seconds = self.leases.lease().as_secs_f64();
        let action = format!(
            "try again: if the node is dead, another one runs the server after at most {seconds} s"
        );
        Err(ConnectFailure::new(reason, action))
    }
}

impl fmt::Debug for LeasedPlaces {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("LeasedPlaces")
    }
}

impl fmt::Debug for LeasedPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LeasedPlace").field("server", &self.server).finish_non_exhaustive()
    }
}
