//! The shared database that this process uses, if its configuration names one.

mod placement;

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
};

use tokio::net::TcpListener;
use toolgate_config::FleetConfig;
use toolgate_fleet::{Fleet, FleetError, FleetOptions, PeerTls, peer_tls};
use toolgate_gateway::{FleetLink, FleetPeers};
use toolgate_http::OwnTls;
use toolgate_store::SharedStore;
use toolgate_upstream::ServerPlaces;

use self::placement::LeasedPlaces;
use crate::{cli::Globals, failure::Failure, load};

/// The database of this process. A configuration that changes does not change it.
static FLEET: OnceLock<Arc<Fleet>> = OnceLock::new();
/// How nodes reach each other, if the configuration says so.
static PEERS: OnceLock<PeerTls> = OnceLock::new();

/// Whether a process serves clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FleetRole {
    Node,
    Command,
}

/// The database of this process, once it has joined.
pub(crate) fn joined() -> Option<&'static Arc<Fleet>> {
    FLEET.get()
}

/// Connects to the shared database, if the configuration names one.
pub(crate) fn join(globals: &Globals, role: FleetRole) -> Result<(), Failure> {
    if FLEET.get().is_some() {
        return Ok(());
    }
    if let Some(config) = load::fleet(globals)? {
        let fleet = Fleet::open(&options(&config, role)?)?;
        if let (Some(_), Some(secret)) = (&config.advertise, &config.secret) {
            let _ = PEERS.set(peer_tls(secret.expose())?);
        }
        let _ = FLEET.set(fleet);
    }
    Ok(())
}

/// Where the servers are that run once in the fleet, if this process has joined one.
pub(crate) fn places() -> Option<Arc<dyn ServerPlaces>> {
    let leases = joined()?.server_leases();
    let tls = PEERS.get().map(|peers| OwnTls(Arc::clone(&peers.client)));
    Some(Arc::new(LeasedPlaces { leases, tls }))
}

/// What a gateway needs of the fleet, if this process has joined one. It listens for the other nodes where the
/// configuration advertises that.
pub(crate) async fn link(globals: &Globals) -> Result<Option<FleetLink>, Failure> {
    let (Some(fleet), Some(config)) = (joined(), load::fleet(globals)?) else { return Ok(None) };
    let store = Arc::clone(fleet) as Arc<dyn SharedStore>;
    let (Some(advertise), Some(secret)) = (&config.advertise, &config.secret) else {
        if config.advertise.is_some() {
            let missing =
                "`fleet.advertise` needs `fleet.secret`, by which the nodes know each other";
            return Err(Failure::usage(missing).hint("`openssl rand -hex 32` makes one"));
        }
        return Ok(Some(FleetLink { store, peers: None, hosts: None }));
    };
    let mut url = url::Url::parse(advertise)
        .map_err(|error| Failure::usage(format!("`fleet.advertise` is not a URL: {error}")))?;
    let port = url.port().unwrap_or(443);
    let listener = listen(&url, port, config.listen).await?;
    if let (0, Ok(address)) = (port, listener.local_addr()) {
        // A free port was chosen.
        let _ = url.set_port(Some(address.port()));
    }
    fleet.advertise(url.as_str())?;
    let PeerTls { client, server } = peer_tls(secret.expose())?;
    let peers = Some(FleetPeers { client, server, listener });
    Ok(Some(FleetLink { store, peers, hosts: None }))
}

/// Listens for the other nodes: where the configuration says, or else where they reach this one.
async fn listen(
    url: &url::Url,
    port: u16,
    configured: Option<SocketAddr>,
) -> Result<TcpListener, Failure> {
    if let Some(address) = configured {
        return TcpListener::bind(address).await.map_err(|error| {
            Failure::new(format!("`fleet.listen`: {address} cannot be listened on: {error}"))
        });
    }
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    // Of a name, the first address that is one of this machine.
    TcpListener::bind((host.as_str(), port)).await.map_err(|error| {
        let failed = format!(
            "port {port} of {host:?} in `fleet.advertise` cannot be listened on: {error}"
        );
        let hint = format!(
            "if that is no address of this machine, write where to listen: `\"listen\": \"0.0.0.0:{port}\"`"
        );
        Failure::new(failed).hint(hint)
    })
}

/// How a process with this configuration joins.
pub(crate) fn options(config: &FleetConfig, role: FleetRole) -> Result<FleetOptions, Failure> {
    Ok(FleetOptions {
        database: database(config)?.to_owned(),
        // Said once the node listens there.
        advertise: String::new(),
        lease: config.lease,
        is_node: role == FleetRole::Node,
        secret: config.secret.as_ref().map(|secret| secret.expose().to_owned()),
        spool: load::store().map(|store| store.root().join("audit").join("waiting")),
        ..FleetOptions::default()
    })
}

/// The URL of the database.
pub(crate) fn database(config: &FleetConfig) -> Result<&str, Failure> {
    let database = config.database.as_ref().map(toolgate_config::Secret::expose);
    database.ok_or_else(|| {
        let unusable =
            "`fleet` in the configuration cannot be used, so the shared database is not known";
        Failure::usage(unusable).hint("toolgate config check shows what is wrong with it")
    })
}

impl From<FleetError> for Failure {
    fn from(error: FleetError) -> Self {
        let hint = match &error {
            FleetError::Url(_) => {
                Some("such as postgresql://USER:PASSWORD@HOST:5432/DATABASE?sslmode=require")
            }
            FleetError::Away(_) => Some("check that it runs, and that its URL is right"),
            _ => None,
        };
        let message = match error {
            error @ FleetError::Url(_) => error.to_string(),
            error => format!("the shared database cannot be used: {error}"),
        };
        Failure::new(message).hint_if(hint)
    }
}
