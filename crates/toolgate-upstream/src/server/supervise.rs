//! The supervisor of one server: connects, lists, watches, restarts.

use std::{
    borrow::Cow,
    sync::Arc,
    time::{Duration, Instant},
};

use toolgate_mcp::{
    Era,
    client::{
        Backoff, ConnectFailure, ConnectionSettings, Endpoint, RawConnection, RequestError,
        START_OR_CORRECT, TransportFailure,
    },
    extensions,
};

use super::{FailedAttempt, SHORTEST_RETRY, Server, StateKind};
use crate::{
    calls::ConnectionState,
    connection::{AboutServer, Connection, client},
    listing::{self, Listing},
    placement::PlacedServer,
    spec::StartMode,
};

/// The shortest time between two lists, because some servers announce changes all the time.
const SHORTEST_RELIST: Duration = Duration::from_millis(500);

/// A new connection, its tools, and where its server runs.
pub(super) type Connected = (Connection, Listing, Option<PlacedServer>);

/// Why the supervisor leaves a connection.
enum ConnectionEnd {
    /// A tool needs the legacy era.
    OtherEra,
    /// The connection ended, or the supervisor was stopped.
    Closed,
    /// The server is gone.
    Gone(ConnectFailure),
    /// Nobody needs it, or it is disabled, with the way on.
    Unneeded(Option<Arc<str>>),
}

impl Server {
    /// Runs until it is stopped.
    pub(crate) async fn supervise(self: Arc<Self>) {
        let mut backoff = Backoff::default();
        let mut era = self.spec.remembered_era;
        let mut resting = self.spec.start == StartMode::OnDemand;
        loop {
            if std::mem::take(&mut resting) {
                tokio::select! {
                    () = self.stop.cancelled() => break,
                    () = self.wanted() => {}
                }
            }
            let started = Instant::now();
            self.publish(|current| {
                current.state.kind = StateKind::Connecting;
                current.state.attempts += 1;
                current.connection = None;
            });
            let outcome = tokio::select! {
                () = self.stop.cancelled() => break,
                () = self.demand.disabled() => {
                    self.rest();
                    resting = true;
                    continue;
                }
                outcome = self.connect_in_time(self.asking.older_era().or(era)) => outcome,
            };
            self.demand.answered();
            let after_connection = outcome.is_ok();
            let failure = match outcome {
                Ok((connection, listing, placed)) => {
                    backoff.connected(Instant::now());
                    let (connection, end) =
                        self.use_connection((connection, listing, placed)).await;
                    era = Some(connection.handshake.era);
                    if self.stop.is_cancelled() {
                        connection.raw.close().await;
                        break;
                    }
                    match end {
                        ConnectionEnd::Unneeded(way_on) => {
                            connection.raw.close().await;
                            self.note_rest(way_on.as_deref());
                            resting = true;
                            continue;
                        }
                        ConnectionEnd::Gone(failure) => {
                            connection.raw.close().await;
                            failure
                        }

                        ConnectionEnd::Closed | ConnectionEnd::OtherEra => {
                            let reason = connection.raw.end_reason().await;
                            // A process that only closed its pipes would stay.
                            connection.raw.close().await;
                            self.failure(&reason)
                        }
                    }
                }
                Err(failure) => {
                    // The remembered era may be wrong: negotiate it next time.
                    era = None;
                    failure
                }
            };
            let rests = self.spec.rest_after.is_some();
            if rests && after_connection && !self.demand.has_calls() {
                self.note(&format!("{}; the next call starts it", failure.reason));
                self.rest();
                resting = true;
                continue;
            }
            let delay = backoff.next(Instant::now());
            let waits = rests || failure.is_final;
            let next = if waits {
                "with the next call".to_owned()
            } else {
                format!("in {} s", delay.as_secs_f64())
            };
            self.note(&format!("{}; next attempt {next}", failure.reason));
            self.publish(|current| {
                current.state.kind = StateKind::Failed;
                current.state.failure = Some(failure);
                current.connection = None;
                current.failed = Some(FailedAttempt { at: Instant::now(), after_connection });
            });
            tokio::select! {
                () = self.stop.cancelled() => break,
                () = tokio::time::sleep(delay), if !waits => {}
                () = async {
                    self.wanted().await;
                    tokio::time::sleep_until((started + SHORTEST_RETRY).into()).await;
                } => {}
                () = self.demand.disabled() => resting = true,
            }
        }
        self.running.close();
        self.running.wait().await;
        self.publish(|current| {
            current.state.kind = StateKind::Stopped;
            current.connection = None;
        });
    }

    /// Uses a connection, and then perhaps one in the legacy era, until its end. Returns the last one.
    async fn use_connection(&self, connected: Connected) -> (Arc<Connection>, ConnectionEnd) {
        let (connection, listing, mut placed) = connected;
        let mut connection = Arc::new(connection);
        if connection.handshake.era == Era::Modern && !connection.state.is_node() {
            // It may have been asked for the legacy era first.
            self.asking.older_era().is_unavailable();
        }
        self.connected(&connection, listing, placed.as_ref());
        loop {
            let end = self.attend(&connection, placed.clone()).await;
            if !matches!(end, ConnectionEnd::OtherEra) {
                return (connection, end);
            }
            if let Some((older, listing, place)) = self.connect_older().await {
                // Open calls keep the other connection until they end.
                (connection, placed) = (Arc::new(older), place);
                self.connected(&connection, listing, placed.as_ref());
            }
        }
    }

    fn note_rest(&self, way_on: Option<&str>) {
        match way_on {
            Some(way_on) => self.note(&format!("stopped: {way_on}")),
            None => self.note("stopped, because it was idle; the next call starts it"),
        }
    }

    fn rest(&self) {
        self.give_up();
        self.tell_state();
    }

    /// [`rest`](Self::rest) without notifying the observer.
    fn give_up(&self) {
        self.state.send_modify(|current| {
            current.state.kind = StateKind::Idle;
            current.connection = None;
        });
    }

    /// Waits until a call needs a connection.
    async fn wanted(&self) {
        loop {
            self.retry_now.notified().await;
            // The call may have ended already.
            if self.demand.is_wanted() {
                return;
            }
        }
    }

    /// Connects and lists the tools, both together within the time to connect.
    pub(super) async fn connect_in_time(
        &self,
        era: Option<Era>,
    ) -> Result<Connected, ConnectFailure> {
        let placed = match &self.spec.placement {
            Some(placement) => Some(Arc::clone(placement).place().await?),
            None => None,
        };
        let endpoint = match placed.as_ref().and_then(|placed| placed.elsewhere.as_ref()) {
            Some(node) => Cow::Owned(Endpoint::Http(node.clone())),
            None => self.spec.complete_endpoint().await?,
        };
        let (began, limit) = (tokio::time::Instant::now(), self.spec.limits.connect);
        let node = placed.as_ref().filter(|placed| placed.elsewhere.is_some());
        let node = node.map(|placed| placed.node.clone());
        // Nodes speak the modern era, whatever the server speaks: changes and questions of many calls find their way.
        let era = if node.is_some() { Some(Era::Modern) } else { era };
        let connection = self.connect(&endpoint, era, node.clone()).await;
        let connection = connection.map_err(|failure| match &node {
            Some(node) => no_connection_to(node, &failure.reason),
            None => failure,
        })?;
        let listed = tokio::time::timeout_at(began + limit, self.list(&connection)).await;
        let listing = listed.unwrap_or_else(|_| {
            let reason = format!("no answer to tools/list within {} s", limit.as_secs_f64());
            let raise = "raise `connectTimeoutSeconds` of the server, or see `toolgate logs";
            Err(ConnectFailure::new(reason, format!("{raise} {}`", self.spec.name)))
        })?;
        Ok((connection, listing, placed))
    }

    async fn connect(
        &self,
        endpoint: &Endpoint,
        era: Option<Era>,
        node: Option<String>,
    ) -> Result<Connection, ConnectFailure> {
        let (observer, asking) = (Arc::clone(&self.observer), Arc::clone(&self.asking));
        let mut state = ConnectionState::new(self.spec.name.clone(), observer, asking);
        (state.is_shared, state.node) = (self.is_first(), node);
        let state = Arc::new(state);
        let see_logs = self.see_logs();
        let settings = ConnectionSettings { endpoint, era, ..self.spec.settings(&see_logs) };
        let client = client(&self.extensions.read());
        let raw = RawConnection::open(settings, &client, state.clone()).await?;
        let about = AboutServer {
            name: self.spec.name.clone(),
            limits: self.spec.limits,
            redactor: self.redactor.clone(),
        };
        Ok(Connection::new(about, raw, state))
    }

    async fn list(&self, connection: &Connection) -> Result<Listing, ConnectFailure> {
        match listing::list(&connection.raw, self.has_groups(connection)).await {
            Ok(listing) => Ok(listing),
            Err(RequestError::Transport {
                cause: TransportFailure::NotSent | TransportFailure::Closed,
                ..
            }) => {
                let reason = connection.raw.end_reason().await;
                Err(self.failure(&format!("{reason} during tools/list")))
            }
            Err(error) => Err(self.failure(&format!("tools/list failed: {error}"))),
        }
    }

    /// Whether the server has groups, and toolgate speaks the extension.
    fn has_groups(&self, connection: &Connection) -> bool {
        let is_spoken = self.extensions.read().contains_key(extensions::GROUPS);
        let declared = || extensions::declared(&connection.handshake.capabilities);
        is_spoken && declared().contains_key(extensions::GROUPS)
    }

    fn failure(&self, reason: &str) -> ConnectFailure {
        ConnectFailure::new(self.redactor.line(reason), self.see_logs())
    }

    fn connected(
        &self,
        connection: &Arc<Connection>,
        listing: Listing,
        placed: Option<&PlacedServer>,
    ) {
        let handshake = connection.handshake.clone();
        self.note(&format!(
            "connected with protocol version {}; {} tools",
            handshake.protocol_version,
            listing.definitions.len()
        ));
        let problems = listing.problems.clone();
        self.pass_on(&handshake, listing);
        self.publish(|current| {
            current.state.kind = StateKind::Ready;
            current.state.failure = None;
            current.state.handshake = Some(handshake);
            current.state.problems = problems;
            current.state.node = placed.map(|placed| placed.node.clone());
            current.connection = Some(Arc::clone(connection));
        });
    }

    /// Lists the tools again after changes. Returns when the connection ends, when toolgate stops,
    /// when no call needs the connection, or with a failure when the server is gone or at another node.
    async fn attend(&self, connection: &Connection, placed: Option<PlacedServer>) -> ConnectionEnd {
        let over = async {
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = connection.raw.closed() => {}
            }
        };
        let listing = async {
            let mut trouble = Backoff::default();
            loop {
                connection.list_is_due().await;
                let announced = connection.state.lists.announced();
                let listing = tokio::time::timeout(
                    self.spec.limits.connect,
                    listing::list(&connection.raw, self.has_groups(connection)),
                );
                match listing.await {
                    Ok(Ok(listing)) => {
                        trouble = Backoff::default();
                        let problems = listing.problems.clone();
                        self.pass_on(&connection.handshake, listing);
                        self.publish(|current| current.state.problems = problems);
                        connection.state.lists.fetched(announced);
                    }
                    Ok(Err(error)) => {
                        if let Some(failure) = gone(&error, connection.state.node.as_deref()) {
                            return failure;
                        }
                        self.note(&format!("the list of tools did not come: {error}"));
                        connection.state.lists.failed(announced);
                        if matches!(error, RequestError::Transport { .. }) {
                            // The server may be ending, or the network be down for a moment.
                            connection.doubt_after(trouble.next(Instant::now())).await;
                        }
                    }
                    Err(_) => {
                        self.note("the list of tools did not come in time");
                        connection.state.lists.failed(announced);
                    }
                }
                tokio::time::sleep(SHORTEST_RELIST).await;
            }
        };
        let moved = async {
            match self.spec.placement.as_ref().zip(placed) {
                Some((placement, placed)) => Arc::clone(placement).moved(placed).await,
                None => std::future::pending().await,
            }
        };
        let may_need_older = connection.handshake.era == Era::Modern && !connection.state.is_node();
        tokio::select! {
            () = over => ConnectionEnd::Closed,
            () = self.asking.older_era().needed(), if may_need_older => ConnectionEnd::OtherEra,
            failure = listing => ConnectionEnd::Gone(failure),
            way_on = self.unneeded() => ConnectionEnd::Unneeded(way_on),
            () = moved => {
                let reason = "the node that ran it has it no longer";
                ConnectionEnd::Gone(ConnectFailure::new(reason, "try again: another node runs it then"))
            }
        }
    }

    /// Waits until no call needs the connection, and removes it, so that later calls do not use it. Returns the way on
    /// if the server is disabled.
    async fn unneeded(&self) -> Option<Arc<str>> {
        let rest_after = self.spec.rest_after;
        loop {
            self.demand.over(rest_after).await;
            let way_on = self.demand.way_on();
            if self.demand.rest_if_over(rest_after, || self.give_up()) {
                self.tell_state();
                return way_on;
            }
        }
    }
}

/// The failure, if an error means that the server at the URL is gone or refuses toolgate. `node` is the other node that
/// runs it.
fn gone(error: &RequestError, node: Option<&str>) -> Option<ConnectFailure> {
    let RequestError::Transport { cause, message } = error else { return None };
    match (cause, node) {
        (TransportFailure::Authorization(error), _) if !error.only_this_request => {
            Some(error.failure.clone())
        }
        (TransportFailure::Unreachable, Some(node)) => Some(node_is_gone(node)),
        (TransportFailure::Unreachable, None) => {
            Some(ConnectFailure::new(message, START_OR_CORRECT))
        }
        _ => None,
    }
}

/// The node that ran a server answers no more. What a caller can do is to wait: nobody has to start anything.
pub(crate) fn node_is_gone(node: &str) -> ConnectFailure {
    ConnectFailure::new(
        format!("node {node} ran it and cannot be reached any more"),
        "nothing was sent; try again: if the node is dead, another one runs the server once its lease is over",
    )
}

/// There is no connection to the node that runs a server.
fn no_connection_to(node: &str, why: &str) -> ConnectFailure {
    ConnectFailure::new(
        format!("node {node} runs it, and there is no connection to that node: {why}"),
        "nothing was sent; try again: if the node is dead, another one runs the server once its lease is over",
    )
}
