//! The supervisor of one server: connects, lists, watches, restarts.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use rmcp::service::ServiceError;
use toolgate_mcp::Era;

use super::{Failed, SHORTEST_RETRY, Server, StateKind};
use crate::{
    backoff::Backoff,
    connection::Connection,
    error::ConnectFailure,
    listing::Listing,
    reasons,
    spec::{Endpoint, StartMode, place},
};

/// The least time between two lists after the first change: some servers announce all the time.
const SHORTEST_RELIST: Duration = Duration::from_millis(500);

/// Why a connection is not attended to any longer.
enum End {
    /// It is over, or we are stopped.
    Closed,
    /// Nobody is at the other end.
    Gone(ConnectFailure),
    /// Nobody needs it.
    Unneeded,
}

impl Server {
    /// Runs until it is stopped.
    pub(crate) async fn supervise(self: Arc<Self>) {
        let mut backoff = Backoff::new();
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
                outcome = self.connect_in_time(era) => outcome,
            };
            self.demand.answered();
            let after_connection = outcome.is_ok();
            let failure = match outcome {
                Ok((connection, listing)) => {
                    era = Some(connection.handshake.era);
                    backoff.connected(Instant::now());
                    let connection = Arc::new(connection);
                    self.connected(&connection, listing);
                    let end = self.attend(&connection).await;
                    if self.stop.is_cancelled() {
                        connection.close().await;
                        break;
                    }
                    match end {
                        End::Unneeded => {
                            connection.close().await;
                            self.note("stopped, since nobody needs it; the next call starts it");
                            resting = true;
                            continue;
                        }
                        End::Gone(failure) => {
                            connection.close().await;
                            failure
                        }
                        End::Closed => self.end_of(&connection).await,
                    }
                }
                Err(failure) => {
                    // What was remembered may be out of date: ask again next time.
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
            let next = if rests {
                "with the next call".to_owned()
            } else {
                format!("in {} s", delay.as_secs_f64())
            };
            self.note(&format!("{}; next attempt {next}", failure.reason));
            self.publish(|current| {
                current.state.kind = StateKind::Failed;
                current.state.failure = Some(failure);
                current.connection = None;
                current.failed = Some(Failed { at: Instant::now(), after_connection });
            });
            tokio::select! {
                () = self.stop.cancelled() => break,
                () = tokio::time::sleep(delay), if !rests => {}
                () = self.asked_for_retry(started) => {}
                () = self.demand.disabled() => resting = true,
            }
        }
        self.stopped();
    }

    fn stopped(&self) {
        self.publish(|current| {
            current.state.kind = StateKind::Stopped;
            current.connection = None;
        });
    }

    fn rest(&self) {
        self.give_up();
        self.observer.state_changed(&self.spec.name);
    }

    /// [`rest`](Self::rest) without telling anybody, who might ask back.
    fn give_up(&self) {
        self.state.send_modify(|current| {
            current.state.kind = StateKind::Idle;
            current.connection = None;
        });
    }

    /// Waits until somebody needs a connection.
    async fn wanted(&self) {
        loop {
            self.retry_now.notified().await;
            // Who asked may have been answered, or be gone, long since.
            if self.demand.is_wanted() {
                return;
            }
        }
    }

    /// Waits until somebody wants an attempt, and until one may be made after that of `started`.
    async fn asked_for_retry(&self, started: Instant) {
        self.wanted().await;
        tokio::time::sleep_until((started + SHORTEST_RETRY).into()).await;
    }

    async fn connect_in_time(
        &self,
        era: Option<Era>,
    ) -> Result<(Connection, Listing), ConnectFailure> {
        let limit = self.spec.limits.connect;
        match tokio::time::timeout(limit, self.connect(era)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(ConnectFailure {
                reason: format!(
                    "no answer to {} within {} s",
                    self.stage.lock(),
                    limit.as_secs_f64()
                ),
                action: format!(
                    "raise `connectTimeoutSeconds` of the server, or see `toolgate logs {}`",
                    self.spec.name
                ),
            }),
        }
    }

    fn connected(&self, connection: &Arc<Connection>, listing: Listing) {
        let handshake = connection.handshake.clone();
        self.note(&format!(
            "connected with protocol version {}; {} tools",
            handshake.protocol_version,
            listing.definitions.len()
        ));
        let problems = listing.problems.clone();
        self.observer.listed(&self.spec.name, &handshake, listing);
        self.publish(|current| {
            current.state.kind = StateKind::Ready;
            current.state.failure = None;
            current.state.handshake = Some(handshake);
            current.state.problems = problems;
            current.connection = Some(Arc::clone(connection));
        });
    }

    /// Lists again whenever there is a reason to. Returns when the connection ends, when we are
    /// stopped, when nobody needs it any more, or with a failure when it turns out that nobody is
    /// there any more.
    async fn attend(&self, connection: &Connection) -> End {
        let over = async {
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = connection.closed() => {}
            }
        };
        let listing = async {
            let mut trouble = Backoff::new();
            loop {
                connection.list_is_due().await;
                let listing = tokio::time::timeout(self.spec.limits.connect, connection.list());
                match listing.await {
                    Ok(Ok(listing)) => {
                        trouble = Backoff::new();
                        let problems = listing.problems.clone();
                        self.observer.listed(&self.spec.name, &connection.handshake, listing);
                        self.publish(|current| current.state.problems = problems);
                    }
                    Ok(Err(error)) => {
                        if let Some(failure) = self.gone(&error) {
                            return failure;
                        }
                        let text = reasons::plain(&error);
                        self.note(&format!("the list of tools did not come: {text}"));
                        if matches!(error, ServiceError::TransportSend(_)) {
                            // Somebody who is going, or a moment's trouble: time will tell.
                            tokio::time::sleep(trouble.next(Instant::now())).await;
                            connection.doubt();
                        }
                    }
                    Err(_) => self.note("the list of tools did not come in time"),
                }
                tokio::time::sleep(SHORTEST_RELIST).await;
            }
        };
        tokio::select! {
            () = over => End::Closed,
            failure = listing => End::Gone(failure),
            () = self.unneeded() => End::Unneeded,
        }
    }

    /// Waits until nobody needs the connection, and takes it away from who comes later.
    async fn unneeded(&self) {
        let rest_after = self.spec.rest_after;
        loop {
            self.demand.over(rest_after).await;
            if self.demand.rest_if_over(rest_after, || self.give_up()) {
                self.observer.state_changed(&self.spec.name);
                return;
            }
        }
    }

    /// Says that nobody is at the URL any more, or nobody for us, if that is what the error means.
    fn gone(&self, error: &ServiceError) -> Option<ConnectFailure> {
        let Endpoint::Http(endpoint) = &self.spec.endpoint else { return None };
        if let Some(trouble) = reasons::trouble(error).filter(|trouble| !trouble.only_this_request)
        {
            return Some(trouble.failure.clone());
        }
        let reason = reasons::unreachable(error, &place(&endpoint.url))?;
        let action = reasons::START_OR_CORRECT.to_owned();
        Some(ConnectFailure { reason: self.redactor.line(&reason), action })
    }

    /// Why a connection that had been made is over.
    async fn end_of(&self, connection: &Connection) -> ConnectFailure {
        let reason = match &connection.process {
            Some(process) => match process.exited_within(Duration::from_millis(500)).await {
                Some(status) => {
                    let words = process.last_words().await;
                    with_words(format!("the process ended ({status})"), &words)
                }
                None => "the process closed its output".to_owned(),
            },
            None => "the connection was closed".to_owned(),
        };
        // A child that only closed its pipes would stay behind.
        connection.close().await;
        ConnectFailure { reason: self.redactor.line(&reason), action: self.see_logs() }
    }
}

/// What happened, and what the server said about it.
pub(crate) fn with_words(what: String, words: &[String]) -> String {
    match reasons::telling_line(words) {
        Some(words) => format!("{what}: {words}"),
        None => what,
    }
}
