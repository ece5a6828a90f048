//! Servers that connect slowly: how long lists and calls wait for them.
//!
//! A client that learns of changes gets a list soon, and a notification when a late server has joined. A client that
//! does not would never see the late server, so its list waits until every server has connected or failed, which
//! `connectTimeoutSeconds` limits.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{StreamExt as _, future::join_all, stream::FuturesUnordered};
use toolgate_catalog::ServerName;
use toolgate_upstream::{CallError, CallOptions, ConnectFailure, Progress, StateKind};

use crate::{host::ToolHost, resources::ListKind, session::ToolSession};

/// A list that clients can be notified of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClientList {
    /// `tools/list`.
    Tools,
    /// `resources/list` and `resources/templates/list`.
    Resources,
    /// `prompts/list`.
    Prompts,
}

/// Says whether a client learns of a change of a list now.
#[derive(Clone)]
pub(crate) struct Hearing(Arc<dyn Fn(ClientList) -> bool + Send + Sync>);

impl Default for Hearing {
    /// A program asks again when it wants to.
    fn default() -> Self {
        Self(Arc::new(|_| true))
    }
}

impl fmt::Debug for Hearing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Hearing")
    }
}

impl ToolSession {
    /// Sets how to find out whether the client learns of a changed list. Without it, it does.
    pub fn set_hearing(&mut self, hears: impl Fn(ClientList) -> bool + Send + Sync + 'static) {
        self.hearing = Hearing(Arc::new(hears));
    }

    /// Waits for the servers that have not listed their tools: a short time if the client learns of changes and some
    /// tools are known, else until each server has connected or failed.
    pub(crate) async fn await_tools(&self, options: &CallOptions) {
        let host = self.host();
        host.recalled().await;
        let is_late = |server: &ServerName| !host.inner.live_catalog.is_known(server);
        let late: Vec<ServerName> = host.connecting_first().into_iter().filter(is_late).collect();
        if late.is_empty() {
            return;
        }
        let until = *host.inner.first_lists_until.lock();
        let mut changes = host.changes();
        let soon = async {
            tokio::time::sleep_until(until.into()).await;
            // An empty list makes clients give up.
            while !(host.knows_a_server() && (self.hearing.0)(ClientList::Tools)) {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = soon => {}
            () = host.settled_of(&late, options) => {}
            () = options.cancel.cancelled() => {}
        }
    }

    /// Waits for the servers that always list some of their tools: a list that never changes needs them all.
    pub(crate) async fn await_always_loaded(&self, options: &CallOptions) {
        let host = self.host();
        let settings = host.settings();
        let always = settings.servers.iter().filter(|setup| {
            setup.entry.defer_loading == Some(false)
                || setup.entry.defer_tools.values().any(|deferred| !deferred)
        });
        let always: Vec<&ServerName> = always.map(|setup| &setup.spec.name).collect();
        let is_late = |server: &ServerName| {
            always.contains(&server) && !host.inner.live_catalog.is_known(server)
        };
        host.recalled().await;
        let late: Vec<ServerName> = host.connecting_first().into_iter().filter(is_late).collect();
        tokio::select! {
            () = host.settled_of(&late, options) => {}
            () = options.cancel.cancelled() => {}
        }
    }

    /// Waits until each server that may have such entries has connected or failed, if the client does not learn of
    /// a later list.
    pub(crate) async fn await_entries(&self, kind: ListKind, options: &CallOptions) {
        let list = match kind {
            ListKind::Resources | ListKind::Templates | ListKind::Skills => ClientList::Resources,
            ListKind::Prompts => ClientList::Prompts,
        };
        if !(self.hearing.0)(list) {
            self.host().await_entries(kind, options).await;
        }
    }
}

impl ToolHost {
    /// Waits until each server that may have such entries has connected or failed.
    pub(crate) async fn await_entries(&self, kind: ListKind, options: &CallOptions) {
        let has_entries = |server: &ServerName| self.declares(server, kind) != Some(false);
        let late: Vec<ServerName> =
            self.connecting_first().into_iter().filter(has_entries).collect();
        tokio::select! {
            () = self.settled_of(&late, options) => {}
            () = options.cancel.cancelled() => {}
        }
    }

    /// Waits until one of these servers has made the name known, or each has connected or failed, within the time
    /// limit of its calls, which began `since`.
    pub(crate) async fn await_owners(
        &self,
        owners: &[ServerName],
        since: Instant,
        is_known: impl Fn() -> bool,
    ) {
        let settled = join_all(owners.iter().map(|server| async {
            let left = self.call_limit(server).saturating_sub(since.elapsed());
            let _ = tokio::time::timeout(left, self.connect(server.as_str())).await;
        }));
        self.known_or(is_known, async { drop(settled.await) }).await;
    }

    /// How long a call of a server may take.
    pub(crate) fn call_limit(&self, server: &ServerName) -> Duration {
        self.servers().limits(server.as_str()).unwrap_or_default().total
    }

    /// The error of a call whose tool is unknown, if the tool may be of a server that is still connecting.
    pub(crate) fn still_connecting(&self, name: &str) -> Option<CallError> {
        let server = self.unknown_owners(name).into_iter().find(|server| {
            let state = self.servers().state(server.as_str());
            state
                .is_some_and(|state| state.kind == StateKind::Connecting && state.failure.is_none())
        })?;
        let seconds = self.call_limit(&server).as_secs_f64();
        let reason = format!("it is still connecting after the {seconds} s that a call has");
        let action = format!("try again, or see `toolgate logs {server}`");
        Some(CallError::NotConnected { server, failure: ConnectFailure::new(reason, action) })
    }

    /// Waits for a future, but not once a name is known.
    pub(crate) async fn known_or(
        &self,
        is_known: impl Fn() -> bool,
        other: impl Future<Output = ()>,
    ) {
        let mut changes = self.changes();
        let known = async { while !is_known() && changes.changed().await.is_ok() {} };
        tokio::select! {
            () = known => {}
            () = other => {}
        }
    }

    /// The servers that connect at the start and have neither connected nor failed yet.
    fn connecting_first(&self) -> Vec<ServerName> {
        let settings = self.settings();
        let names = settings.servers.iter().filter(|setup| !setup.lazy);
        let names = names.map(|setup| &setup.spec.name).filter(|name| !self.is_off(name));
        let connecting = names.filter(|name| {
            self.servers().state(name.as_str()).is_some_and(|state| {
                state.kind == StateKind::Connecting
                    && state.failure.is_none()
                    && state.handshake.is_none()
            })
        });
        connecting.cloned().collect()
    }

    /// Whether a server has listed its tools, or the cache has them.
    fn knows_a_server(&self) -> bool {
        let settings = self.settings();
        settings.servers.iter().any(|setup| self.inner.live_catalog.is_known(&setup.spec.name))
    }

    /// Waits until each of these servers has connected or failed, and reports the progress.
    async fn settled_of(&self, servers: &[ServerName], options: &CallOptions) {
        let settling = servers.iter().map(|server| self.servers().settled(server.as_str()));
        let mut settling: FuturesUnordered<_> = settling.collect();
        let report = |settled: usize| {
            let Some(progress) = &options.progress else { return };
            let left = servers.len() - settled;
            let message = format!("waiting for {left} of {} servers", servers.len());
            let _ =
                progress.try_send(Progress::new(settled, Some(message)).of_total(servers.len()));
        };
        if !servers.is_empty() {
            report(0);
        }
        let mut settled = 0;
        while settling.next().await.is_some() {
            settled += 1;
            report(settled);
        }
    }
}
