//! The description of a server: its endpoint, its limits, and when it connects.

use std::{sync::Arc, time::Duration};

use toolgate_catalog::{Fingerprint, ServerName};
use toolgate_mcp::{
    Era, InstanceMode,
    client::{
        ConnectFailure, ConnectionClient, ConnectionHandler, ConnectionSettings, Endpoint,
        RawConnection, ServerLimits, SpareProcesses,
    },
};

/// One server.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    /// Its name in the configuration.
    pub name: ServerName,
    /// Where it is.
    pub endpoint: Endpoint,
    /// Limits of time and size.
    pub limits: ServerLimits,
    /// The era of an earlier connection, which is tried first.
    pub remembered_era: Option<Era>,
    /// When it is connected.
    pub start: StartMode,
    /// How long a connection may be idle before it is closed. The next call opens it again. `None`
    /// means never: a server may hold state.
    pub rest_after: Option<Duration>,
    /// Which clients share an instance.
    pub instances: InstanceMode,
    /// Whether the server is known to ask by requests.
    pub asks: bool,
    /// Processes that were started ahead, for [`open_connection`](Self::open_connection).
    pub spares: Option<Arc<SpareProcesses>>,
}

/// When a server is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StartMode {
    /// At once.
    #[default]
    Now,
    /// At the first call, or when [`Upstream::wake`](crate::Upstream::wake) is called.
    OnDemand,
}

impl ServerSpec {
    /// A server with the default limits and no remembered era.
    pub fn new(name: impl Into<ServerName>, endpoint: Endpoint) -> Self {
        Self {
            name: name.into(),
            endpoint,
            limits: ServerLimits::default(),
            remembered_era: None,
            start: StartMode::Now,
            rest_after: None,
            instances: InstanceMode::default(),
            asks: false,
            spares: None,
        }
    }

    /// Identifies what is run or contacted, regardless of variables and headers.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.endpoint.identity())
    }

    /// Opens a connection for one client, without a supervisor.
    pub async fn open_connection(
        &self,
        client: &ConnectionClient,
        handler: Arc<dyn ConnectionHandler>,
    ) -> Result<RawConnection, ConnectFailure> {
        let settings = ConnectionSettings {
            spares: self.spares.as_ref(),
            ..self.settings("check that it is an MCP server")
        };
        RawConnection::open(settings, client, handler).await
    }

    pub(crate) fn settings<'a>(&'a self, see_output: &'a str) -> ConnectionSettings<'a> {
        let Self { endpoint, limits, remembered_era, .. } = self;
        let (limits, era) = (*limits, *remembered_era);
        ConnectionSettings { endpoint, limits, era, see_output, spares: None }
    }
}
