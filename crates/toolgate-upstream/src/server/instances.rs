//! The instances of a server: its processes, or its sessions over HTTP.
//!
//! A server that asks by requests does not say which call it asks for. An instance that one client
//! alone uses can ask only that client, and no client waits for another. The first instance belongs
//! to the first client. Each further client gets an instance at its first call.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use toolgate_mcp::{InstanceMode, methods};

use super::{Server, demand::CallInProgress};
use crate::{
    connection::CallOptions,
    input_handler::{CallClient, ClientKey},
    spec::{ServerSpec, StartMode},
};

/// Whether a server asks by requests, and whose its first instance is. It outlives connections.
#[derive(Debug, Default)]
pub(crate) struct Asking {
    asks: AtomicBool,
    owner: Mutex<Option<ClientKey>>,
    /// Tools that have answered a call without asking.
    quiet: Mutex<HashSet<String>>,
}

/// An instance beside the first, and its client.
#[derive(Debug)]
pub(super) struct OtherInstance {
    client: ClientKey,
    server: Arc<Server>,
}

impl OtherInstance {
    pub(super) fn server(&self) -> &Server {
        &self.server
    }
}

/// The most instances beside the first. If all are in use, further clients share the first.
const MAX_OTHER_INSTANCES: usize = 15;
const MAX_QUIET_TOOLS: usize = 10_000;
/// How long an instance may be idle, unless the server has its own limit.
const IDLE_TIMEOUT: Duration = Duration::from_mins(30);

impl Asking {
    pub(crate) fn new(asks: bool) -> Self {
        Self { asks: asks.into(), ..Self::default() }
    }

    pub(crate) fn is_quiet(&self, tool: &str) -> bool {
        self.quiet.lock().contains(tool)
    }

    /// Notes that a tool has answered a call without asking.
    pub(crate) fn note_quiet(&self, tool: &str) {
        let mut quiet = self.quiet.lock();
        if quiet.len() < MAX_QUIET_TOOLS && !quiet.contains(tool) {
            quiet.insert(tool.to_owned());
        }
    }

    /// Notes that the server asks. The client of the newest open call keeps the first instance.
    /// Returns whether it was not known.
    pub(crate) fn note(&self, newest: &CallClient) -> bool {
        let mut owner = self.owner.lock();
        if let (None, CallClient::Named(client)) = (live(owner.as_ref()), newest) {
            *owner = Some(client.clone());
        }
        !self.asks.swap(true, Ordering::AcqRel)
    }

    /// Whether the first instance is this client's. If no client has it and it `is_free`, this client
    /// gets it.
    fn is_owner(&self, client: &ClientKey, is_free: impl FnOnce() -> bool) -> bool {
        let mut owner = self.owner.lock();
        if live(owner.as_ref()).is_none() && is_free() {
            *owner = Some(client.clone());
        }
        owner.as_ref() == Some(client)
    }
}

fn live(client: Option<&ClientKey>) -> Option<&ClientKey> {
    client.filter(|client| !client.gone.is_cancelled())
}

impl Server {
    /// The instance that gets a call. From now on the call counts.
    pub(super) fn instance(
        self: &Arc<Self>,
        method: &str,
        options: &CallOptions,
    ) -> (Arc<Self>, [Option<CallInProgress>; 2]) {
        let first = || (Arc::clone(self), [Some(self.demand.call()), None]);
        let is_shared = match self.spec.instances {
            InstanceMode::Auto => !self.asking.asks.load(Ordering::Acquire),
            InstanceMode::Shared => true,
            InstanceMode::PerSession => false,
        };
        let client = options.input_handler.as_ref().and_then(|handler| handler.client());
        let Some(client) = client.filter(|_| !is_shared && !is_for_all(method)) else {
            return first();
        };
        // Locked until the call counts, so that its instance is not stopped before.
        let mut others = self.others.lock();
        let known = others.iter().find(|other| other.client == *client.key());
        let server = match known {
            Some(other) => Arc::clone(&other.server),
            None if self.is_first_of(client.key()) || self.demand.is_disabled() => return first(),
            None => {
                if others.len() >= MAX_OTHER_INSTANCES && !stop_idle(&mut others) {
                    return first();
                }
                let server = self.start_instance(client.key());
                let client = client.key().clone();
                others.push(OtherInstance { client, server: Arc::clone(&server) });
                server
            }
        };
        let counted = server.demand.call();
        (server, [Some(self.demand.call()), Some(counted)])
    }

    /// Whether the first instance is this client's. One that another client has left is free when the
    /// server has answered the calls of that client.
    fn is_first_of(&self, client: &ClientKey) -> bool {
        self.asking.is_owner(client, || {
            let current = self.state.borrow();
            let connection = current.connection.as_ref();
            connection
                .is_none_or(|it| it.state.has_only_calls_of(&CallClient::Named(client.clone())))
        })
    }

    /// Starts an instance. It connects at its first call, and ends when its client is gone or when it
    /// is idle.
    fn start_instance(self: &Arc<Self>, client: &ClientKey) -> Arc<Self> {
        let idle = self.spec.rest_after.unwrap_or(IDLE_TIMEOUT);
        let era = self.state.borrow().state.handshake.as_ref().map(|handshake| handshake.era);
        let spec = ServerSpec {
            start: StartMode::OnDemand,
            rest_after: Some(idle),
            remembered_era: era.or(self.spec.remembered_era),
            ..self.spec.clone()
        };
        let instance = Arc::new(Self::instance_of(self, spec));
        self.running.spawn(Arc::clone(&instance).supervise());
        let (first, watched, gone) = (Arc::clone(self), Arc::clone(&instance), client.gone.clone());
        self.running.spawn(async move {
            while !first.remove_instance(&watched) {
                tokio::select! {
                    () = watched.stop.cancelled() => {}
                    () = watched.demand.over(Some(idle)) => {}
                    () = async {
                        gone.cancelled().await;
                        watched.demand.over(Some(Duration::ZERO)).await;
                    } => {}
                }
            }
            watched.stop.cancel();
        });
        instance
    }

    /// Removes an instance, unless it has calls. Returns whether it is removed.
    fn remove_instance(&self, instance: &Arc<Self>) -> bool {
        let mut others = self.others.lock();
        let is_needed = instance.demand.has_calls() && !instance.stop.is_cancelled();
        if !is_needed {
            others.retain(|other| !Arc::ptr_eq(&other.server, instance));
        }
        !is_needed
    }
}

/// Stops the instance that was idle for longest. Returns false if all are in use.
fn stop_idle(others: &mut Vec<OtherInstance>) -> bool {
    let idle =
        |(index, other): (usize, &OtherInstance)| Some((other.server.demand.idle_since()?, index));
    let longest = others.iter().enumerate().filter_map(idle).min();
    let Some((_, index)) = longest else { return false };
    others.swap_remove(index).server.stop.cancel();
    true
}

/// Whether a request is for all clients: what follows from it reaches all.
fn is_for_all(method: &str) -> bool {
    matches!(
        method,
        methods::RESOURCES_SUBSCRIBE
            | methods::RESOURCES_UNSUBSCRIBE
            | methods::LISTEN
            | methods::SET_LOG_LEVEL
    )
}

/// Disables or enables all instances beside the first.
pub(super) fn set_disabled(others: &Mutex<Vec<OtherInstance>>, way_on: Option<&str>) {
    for other in others.lock().iter() {
        other.server.set_disabled(way_on);
    }
}
