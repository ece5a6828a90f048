//! The settings of an HTTP endpoint.

use std::{sync::Arc, time::Duration};

use axum::Router;
use parking_lot::RwLock;

use toolgate_upstream::PendingLogins;

use super::{ServedEndpoint, fleet::FleetLink, own_logins::OwnLogins};
use crate::{
    access::{AccessControl, CredentialRequirement},
    service::ServiceFactory,
};

/// The settings of an HTTP endpoint.
#[derive(Debug)]
pub struct HttpSettings {
    /// The paths that are served, the default first.
    pub namespaces: RouteTable,
    /// Limits on what clients may use.
    pub limits: HttpLimits,
    /// Accepted values of `Host` besides those of loopback, with or without a port.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may use the endpoint besides those of loopback, as browsers write them.
    pub allowed_origins: Vec<String>,
    /// Decides who may connect.
    pub access: AccessControl,
    /// The fleet that this gateway is a node of.
    pub fleet: Option<FleetLink>,
    /// How long requests in progress may go on when the gateway stops. New ones are not accepted meanwhile.
    pub drain: Duration,
    /// The logins of callers at servers that wait for a browser.
    pub logins: PendingLogins,
    /// Lets callers see and end their logins at servers.
    pub own_logins: Option<Arc<dyn OwnLogins>>,
    /// Pages for people, at paths of their own. Their requests carry a [`BrowserPeer`](super::BrowserPeer), and who may
    /// see them is up to the pages: `access` is about MCP clients.
    pub pages: Option<Router>,
}

/// A path and its services.
#[derive(Debug, Clone)]
pub struct NamespaceRoute {
    /// The path, such as `/mcp`.
    pub path: String,
    /// Creates the services of the clients at this path.
    pub factory: Arc<dyn ServiceFactory>,
}

/// The paths that are served. All clones share them, so that paths can be added while clients are
/// served.
#[derive(Debug, Clone, Default)]
pub struct RouteTable(Arc<RwLock<Vec<Arc<ServedEndpoint>>>>);

impl RouteTable {
    /// Serves one more path. A path that is served already stays as it is.
    pub fn push(&self, route: NamespaceRoute) {
        let mut served = self.0.write();
        if served.iter().all(|known| *known.path != *route.path) {
            served.push(Arc::new(ServedEndpoint::new(route)));
        }
    }

    /// The paths, the default first.
    pub fn routes(&self) -> Vec<NamespaceRoute> {
        let route = |served: &Arc<ServedEndpoint>| NamespaceRoute {
            path: served.path.to_string(),
            factory: Arc::clone(&served.factory),
        };
        self.0.read().iter().map(route).collect()
    }

    pub(crate) fn get(&self, path: &str) -> Option<Arc<ServedEndpoint>> {
        self.0.read().iter().find(|known| *known.path == *path).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<ServedEndpoint>> {
        self.0.read().clone()
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        self.0.read().iter().map(|known| known.path.to_string()).collect()
    }
}

/// Limits on what clients may use.
#[derive(Debug, Clone)]
pub struct HttpLimits {
    /// Connections at once.
    pub connections: usize,
    /// Connections of one address of which no request was accepted yet. Beyond it, the one that has
    /// waited longest ends.
    pub new_connections: usize,
    /// How long a connection may wait for a request that is accepted.
    pub new_connection_timeout: Duration,
    /// Bytes of a request body.
    pub body_bytes: usize,
    /// Headers of a request.
    pub headers: usize,
    /// Bytes of the request line and the headers of a request.
    pub header_bytes: usize,
    /// How long the headers may take to arrive, then the body, and how long a client may read nothing of
    /// the response.
    pub io_timeout: Duration,
    /// Legacy sessions at once.
    pub sessions: usize,
    /// Legacy sessions of one caller.
    pub sessions_per_caller: usize,
    /// After this time an unused session ends.
    pub session_idle: Duration,
    /// Requests in progress in a legacy session or of a modern caller. A modern caller may have as many
    /// parked requests besides.
    pub in_flight: usize,
    /// Requests that wait for input from their clients.
    pub parked: usize,
    /// How long a client may take to answer an input request.
    pub input_timeout: Duration,
    /// The interval of keep-alive comments on a silent stream.
    pub keep_alive: Duration,
}

impl HttpSettings {
    /// Serves `/mcp` for clients on this machine.
    pub fn new(factory: Arc<dyn ServiceFactory>) -> Self {
        let settings = Self::nothing();
        settings.namespaces.push(NamespaceRoute { path: "/mcp".to_owned(), factory });
        settings
    }

    /// Serves pages alone, for browsers on this machine.
    pub fn of_pages(pages: Router) -> Self {
        Self { pages: Some(pages), ..Self::nothing() }
    }

    fn nothing() -> Self {
        Self {
            namespaces: RouteTable::default(),
            limits: HttpLimits::default(),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            access: AccessControl::new(CredentialRequirement::Optional),
            fleet: None,
            drain: Duration::ZERO,
            logins: PendingLogins::default(),
            own_logins: None,
            pages: None,
        }
    }
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            connections: 4096,
            new_connections: 256,
            new_connection_timeout: Duration::from_secs(10),
            body_bytes: 4 * 1024 * 1024,
            headers: 100,
            header_bytes: 64 * 1024,
            io_timeout: Duration::from_secs(30),
            sessions: 4000,
            sessions_per_caller: 1000,
            session_idle: Duration::from_mins(30),
            in_flight: 256,
            parked: 1000,
            input_timeout: Duration::from_mins(10),
            keep_alive: Duration::from_secs(15),
        }
    }
}
