//! The description of a server: its endpoint, its limits, and when it connects.

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use toolgate_catalog::{Fingerprint, ServerName};
use toolgate_mcp::{
    Era, InstanceMode,
    client::{
        ConnectFailure, ConnectionClient, ConnectionHandler, ConnectionSettings, Endpoint,
        HttpEndpoint, RawConnection, Redactor, ServerLimits, SpareProcesses,
    },
};

use crate::{
    auth::{CallerLogins, NoLogin},
    placement::ServerPlacement,
};

/// One server.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    /// Its name in the configuration.
    pub name: ServerName,
    /// Where it is.
    pub endpoint: Endpoint,
    /// The logins of callers, where each caller has their own.
    pub callers: Option<Arc<CallerLogins>>,
    /// Reads the values of the endpoint that are known only when the server starts.
    pub late_values: Option<Arc<dyn LateValues>>,
    /// Where it runs, if it runs once in a fleet.
    pub placement: Option<Arc<dyn ServerPlacement>>,
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

/// Values of an endpoint that are read when the server starts, such as what a command prints.
pub trait LateValues: fmt::Debug + Send + Sync {
    /// The endpoint with the values.
    fn complete(&self, endpoint: &Endpoint)
    -> BoxFuture<'static, Result<Endpoint, ConnectFailure>>;

    /// Hides the secrets of the endpoint, and the values once they are read.
    fn redactor(&self, endpoint: &Endpoint) -> Redactor;
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
            callers: None,
            late_values: None,
            placement: None,
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

    /// Hides the secrets of the endpoint, also those that are read when the server starts.
    pub fn redactor(&self) -> Redactor {
        match &self.late_values {
            Some(late) => late.redactor(&self.endpoint),
            None => self.endpoint.redactor(),
        }
    }

    /// The endpoint with all of its values.
    pub(crate) async fn complete_endpoint(&self) -> Result<Cow<'_, Endpoint>, ConnectFailure> {
        match &self.late_values {
            Some(late) => late.complete(&self.endpoint).await.map(Cow::Owned),
            None => Ok(Cow::Borrowed(&self.endpoint)),
        }
    }

    /// The server with the login of a caller, where each caller has their own. Without a login, the failure has
    /// the link that the person opens.
    pub async fn of_caller(&self, caller: &Arc<str>) -> Result<Cow<'_, Self>, ConnectFailure> {
        let (Some(callers), Endpoint::Http(http)) = (&self.callers, &self.endpoint) else {
            return Ok(Cow::Borrowed(self));
        };
        let action = "log in, and connect again";
        match callers.log_in(caller, None, &CancellationToken::new()).await {
            Ok(()) | Err(NoLogin::NotAsked) => {}
            Err(NoLogin::Open(link)) => {
                let reason = format!("it needs a login of your own at {link}");
                return Err(ConnectFailure::new(reason, action));
            }
            Err(NoLogin::Failed(why)) => return Err(ConnectFailure::new(why, action)),
            Err(NoLogin::Cancelled) => {
                return Err(ConnectFailure::new("it was cancelled", action));
            }
        }
        let authorizer = callers.authorizer(caller);
        let authorizer = authorizer.map_err(|it| ConnectFailure::new(it.to_string(), action))?;
        let endpoint = HttpEndpoint { authorizer: Some(authorizer as _), ..http.clone() };
        let endpoint = Endpoint::Http(endpoint);
        Ok(Cow::Owned(Self { endpoint, callers: None, ..self.clone() }))
    }

    /// Opens a connection for one client, without a supervisor.
    pub async fn open_connection(
        &self,
        client: &ConnectionClient,
        handler: Arc<dyn ConnectionHandler>,
    ) -> Result<RawConnection, ConnectFailure> {
        let endpoint = self.complete_endpoint().await?;
        let settings = ConnectionSettings {
            endpoint: &endpoint,
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
