//! The instances of a server: its processes, or its sessions over HTTP.
//!
//! A server that asks by requests does not say which call it asks for. An instance that one client
//! alone uses can ask only that client, and no client waits for another. The first instance belongs
//! to the first client. Each further client gets an instance at its first call.
//!
//! Whether a server asks is not known before it has. Until then clients share the first instance,
//! except where their calls overlap and one of the tools has never answered: then a client that is new
//! to the server gets an instance. A client that has used the first instance stays there, because the
//! server may hold its state.
//!
//! A client of the modern era is asked by the result of a call. So each of its calls that overlap is treated as a client:
//! the protocol has no sessions, and calls that follow each other still use one instance. All clients that cannot be asked
//! share an instance: the server's requests there are refused.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::Notify;
use toolgate_mcp::{Era, InstanceMode, client::Endpoint, methods};

use super::{Server, demand::CallInProgress, older_era::OlderEra};
use crate::{
    connection::CallOptions,
    input_handler::{self, CallClient, ClientKey},
    spec::{ServerSpec, StartMode},
};

/// Whether a server asks by requests, and whose its first instance is. It outlives connections.
#[derive(Debug, Default)]
pub(crate) struct Asking {
    asks: AtomicBool,
    owner: Mutex<Option<ClientKey>>,
    /// Tools that have answered a call without asking.
    quiet: Mutex<HashSet<String>>,
    sharing: Mutex<Sharing>,
    /// The calls of the first instance, once it is one client's.
    calls: AtomicUsize,
    older_era: OlderEra,
}

/// Who uses the first instance, while it is not known whether the server asks.
#[derive(Debug, Default)]
struct Sharing {
    /// The open calls, by number.
    calls: HashMap<u64, SharedCall>,
    /// The clients that have used it.
    clients: HashMap<u64, ClientKey>,
}

/// An open call of the first instance, as far as it matters to other clients.
#[derive(Debug)]
struct SharedCall {
    client: CallClient,
    can_be_asked: bool,
    is_untried: bool,
}

/// Who shares an instance with whom.
#[derive(Debug)]
enum InstanceUser {
    /// All clients use the first instance together.
    Everybody,
    /// A caller without a session. It uses the first instance.
    Unnamed,
    /// The calls of one session use an instance together.
    Session(ClientKey),
    /// One call of a client that is asked by results. The next call of the client may use the instance after it.
    OneCall(ClientKey),
    /// All clients that cannot be asked use an instance together.
    Unaskable(ClientKey),
}

impl InstanceUser {
    /// Whose instance it is, unless it is the first one for all.
    fn client(&self) -> Option<&ClientKey> {
        match self {
            Self::Everybody | Self::Unnamed => None,
            Self::Session(client) | Self::OneCall(client) | Self::Unaskable(client) => Some(client),
        }
    }
}

/// What a call uses until it ends.
#[derive(Debug)]
pub(super) struct InUse {
    calls: [Option<CallInProgress>; 2],
    shared: Option<(Arc<Asking>, u64)>,
    /// Counts as a call of the first instance.
    first: Option<Arc<Asking>>,
    freed: Arc<Notify>,
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.calls = [None, None];
        if let Some((asking, number)) = self.shared.take() {
            asking.sharing.lock().calls.remove(&number);
        }
        if let Some(asking) = self.first.take() {
            asking.calls.fetch_sub(1, Ordering::AcqRel);
        }
        self.freed.notify_waiters();
    }
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

/// The most instances beside the first, for clients that can be asked. If all are in use, calls of further clients wait.
const MAX_OTHER_INSTANCES: usize = 15;
/// How long a call that needs an instance waits before it looks again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How long a connected client may take to answer before others that need its instance can have it.
const UNDISTURBED: Duration = Duration::from_mins(1);
const MAX_QUIET_TOOLS: usize = 10_000;
/// How long an instance may be idle, unless the server has its own limit.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_mins(30);

impl Asking {
    pub(crate) fn new(asks: bool) -> Self {
        Self { asks: asks.into(), ..Self::default() }
    }

    pub(super) fn older_era(&self) -> &OlderEra {
        &self.older_era
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

    /// Lets a call share the first instance. Returns its number, or `None` if it needs another instance.
    fn share(&self, call: SharedCall, client: Option<&ClientKey>) -> Option<u64> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let mut sharing = self.sharing.lock();
        let stands_alone = !matches!(call.client, CallClient::Named(_));
        if let Some(client) = client
            && (stands_alone || !sharing.clients.contains_key(&client.number))
        {
            if sharing.calls.values().any(|open| open.may_be_confused_with(&call)) {
                return None;
            }
            sharing.add_client(client.clone());
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        sharing.calls.insert(number, call);
        Some(number)
    }
}

impl Sharing {
    fn add_client(&mut self, client: ClientKey) {
        // Seldom enough, and often enough that those that are gone are never the most for long.
        if self.clients.len().is_power_of_two() {
            self.clients.retain(|_, client| !client.gone.is_cancelled());
        }
        self.clients.insert(client.number, client);
    }
}

impl SharedCall {
    /// Whether it would not be known for which of both the server asks.
    fn may_be_confused_with(&self, other: &Self) -> bool {
        self.client != other.client
            && (self.is_untried || other.is_untried)
            && (self.can_be_asked || other.can_be_asked)
    }
}

fn live(client: Option<&ClientKey>) -> Option<&ClientKey> {
    client.filter(|client| !client.gone.is_cancelled())
}

impl Server {
    /// The instance that gets a call. From now on the call counts. `None` if the client needs an instance,
    /// and all are in use.
    pub(super) fn instance(
        self: &Arc<Self>,
        about: &str,
        method: &str,
        options: &CallOptions,
    ) -> Option<(Arc<Self>, InUse)> {
        let (server, in_use) = self.choose(about, method, options)?;
        let client = options.input_handler.as_ref().and_then(|handler| handler.client());
        if let Some(client) = client.filter(|_| !is_for_all(method))
            && self.lists.note_user(client.key(), server.number)
        {
            self.observer.offers_changed(&self.spec.name);
        }
        Some((server, in_use))
    }

    fn choose(
        self: &Arc<Self>,
        about: &str,
        method: &str,
        options: &CallOptions,
    ) -> Option<(Arc<Self>, InUse)> {
        let asks = self.asks_clients();
        let user = self.user(method, options, asks);
        if matches!(user, InstanceUser::Everybody) {
            return Some(self.first());
        }
        let is_one_call = matches!(user, InstanceUser::OneCall(_));
        // Locked until the call counts, so that its instance is not stopped before.
        let mut others = self.others.lock();
        if !is_one_call && let Some(known) = self.known(&others, &user) {
            return Some(known);
        }
        // No server asks for a list, so nobody is kept from the first instance by one.
        if !asks && methods::is_list(method) {
            return Some(self.first());
        }
        if !asks && let Some(first) = self.shared_first(about, options, &user) {
            return Some(first);
        }
        let Some(client) = user.client().filter(|_| !asks || !self.demand.is_disabled()) else {
            return Some(self.first());
        };
        if asks && let Some(first) = self.own_first(&user, client) {
            return Some(first);
        }
        if is_one_call && let Some(known) = self.known(&others, &user) {
            return Some(known);
        }
        if !has_room(&mut others, &user) {
            if !asks {
                return Some(self.first());
            }
            withdraw_longest(&others);
            return None;
        }
        let server = self.start_instance(client);
        others.push(OtherInstance { client: client.clone(), server: Arc::clone(&server) });
        Some(self.other(server))
    }

    /// Whether clients that can be asked have instances of their own, because the server asks or because of the settings.
    pub(super) fn asks_clients(&self) -> bool {
        match self.spec.instances {
            InstanceMode::Auto => self.asking.asks.load(Ordering::Acquire),
            InstanceMode::Shared => false,
            InstanceMode::PerSession => true,
        }
    }

    /// Who uses the instance of a call.
    fn user(&self, method: &str, options: &CallOptions, asks: bool) -> InstanceUser {
        if self.spec.instances == InstanceMode::Shared || is_for_all(method) {
            return InstanceUser::Everybody;
        }
        let Some(handler) = options.input_handler.as_ref() else { return InstanceUser::Unnamed };
        let Some(id) = handler.client() else { return InstanceUser::Unnamed };
        let can_be_asked = input_handler::can_be_asked(handler.as_ref());
        if !can_be_asked && asks && self.spec.instances == InstanceMode::Auto {
            InstanceUser::Unaskable(ClientKey::of_unaskable())
        } else if can_be_asked && handler.is_asked_by_results() {
            InstanceUser::OneCall(id.key().clone())
        } else {
            InstanceUser::Session(id.key().clone())
        }
    }

    /// The first instance, for a call that may share it with all others.
    fn first(self: &Arc<Self>) -> (Arc<Self>, InUse) {
        (Arc::clone(self), self.in_use())
    }

    /// An instance beside the first.
    fn other(&self, server: Arc<Self>) -> (Arc<Self>, InUse) {
        let mut in_use = self.in_use();
        in_use.calls[1] = Some(server.demand.call());
        (server, in_use)
    }

    fn in_use(&self) -> InUse {
        InUse {
            calls: [Some(self.demand.call()), None],
            shared: None,
            first: None,
            freed: Arc::clone(&self.freed),
        }
    }

    /// The instance that a user has. For one call only if no other call uses it.
    fn known(&self, others: &[OtherInstance], user: &InstanceUser) -> Option<(Arc<Self>, InUse)> {
        let client = user.client()?;
        let is_free = |server: &Self| match user {
            InstanceUser::OneCall(_) => !server.demand.has_calls(),
            _ => true,
        };
        let is_usable = |other: &&OtherInstance| other.client == *client && is_free(&other.server);
        let other = others.iter().find(is_usable)?;
        Some(self.other(Arc::clone(&other.server)))
    }

    /// The first instance, while the server is not known to ask. `None` if it would not be known whom the server asks.
    fn shared_first(
        self: &Arc<Self>,
        about: &str,
        options: &CallOptions,
        user: &InstanceUser,
    ) -> Option<(Arc<Self>, InUse)> {
        if !self.may_ask_by_requests() || self.demand.is_disabled() {
            return Some(self.first());
        }
        let handler = options.input_handler.as_ref();
        let call = SharedCall {
            client: CallClient::of(handler),
            can_be_asked: handler.is_some_and(|it| input_handler::can_be_asked(it.as_ref())),
            is_untried: !self.asking.is_quiet(about),
        };
        let number = self.asking.share(call, user.client())?;
        let (server, mut in_use) = self.first();
        in_use.shared = Some((Arc::clone(&self.asking), number));
        Some((server, in_use))
    }

    /// The first instance, if it is this client's.
    fn own_first(
        self: &Arc<Self>,
        user: &InstanceUser,
        client: &ClientKey,
    ) -> Option<(Arc<Self>, InUse)> {
        let is_free = || self.asking.calls.load(Ordering::Acquire) == 0;
        let is_usable = !matches!(user, InstanceUser::OneCall(_)) || is_free();
        if !self.is_first_of(client) || !is_usable {
            return None;
        }
        self.asking.calls.fetch_add(1, Ordering::AcqRel);
        let (server, mut in_use) = self.first();
        in_use.first = Some(Arc::clone(&self.asking));
        Some((server, in_use))
    }

    /// The same. Waits as long as all instances are in use.
    pub(super) async fn free_instance(
        self: &Arc<Self>,
        about: &str,
        method: &str,
        options: &CallOptions,
    ) -> (Arc<Self>, InUse) {
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable();
            if let Some(found) = self.instance(about, method, options) {
                return found;
            }
            // Time alone can make an instance free: a question is withdrawn that has no answer for long.
            let _ = tokio::time::timeout(LOOK_AGAIN, freed).await;
        }
    }

    /// Whether the server may ask by requests that do not name their call: over stdio in the legacy era.
    fn may_ask_by_requests(&self) -> bool {
        let era = self.state.borrow().state.handshake.as_ref().map(|handshake| handshake.era);
        matches!(self.spec.endpoint, Endpoint::Stdio(_))
            && era.or(self.spec.remembered_era) != Some(Era::Modern)
    }

    /// Whether the first instance is this client's. One that another client has left is free when the
    /// server has answered the calls of that client.
    fn is_first_of(&self, client: &ClientKey) -> bool {
        self.asking.is_owner(client, || {
            let current = self.state.borrow();
            let connection = current.connection.as_ref();
            connection.is_none_or(|it| it.state.has_only_calls_of(client))
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
            drop(others);
            self.unlist(instance);
        }
        !is_needed
    }
}

/// Whether one more instance may be started for a user. Stops an idle one if there are too many.
fn has_room(others: &mut Vec<OtherInstance>, user: &InstanceUser) -> bool {
    // Clients that cannot be asked wait for nobody's answer.
    let askable = others.iter().filter(|other| other.client.is_askable()).count();
    askable < MAX_OTHER_INSTANCES || matches!(user, InstanceUser::Unaskable(_)) || stop_idle(others)
}

/// Stops the instance of a client that can be asked which was idle for longest. Returns false if all are in use.
fn stop_idle(others: &mut Vec<OtherInstance>) -> bool {
    let idle =
        |(index, other): (usize, &OtherInstance)| Some((other.server.demand.idle_since()?, index));
    let askable = others.iter().enumerate().filter(|(_, other)| other.client.is_askable());
    let longest = askable.filter_map(idle).min();
    let Some((_, index)) = longest else { return false };
    others.swap_remove(index).server.stop.cancel();
    true
}

/// Makes room if every instance waits for answers of clients: withdraws the questions of the one that has waited longest.
fn withdraw_longest(others: &[OtherInstance]) {
    let waiting = |other: &OtherInstance| {
        let current = other.server.state.borrow();
        let state = Arc::clone(&current.connection.as_ref()?.state);
        Some((state.waits_for_clients().filter(|time| *time >= UNDISTURBED)?, state))
    };
    let longest = others.iter().filter_map(waiting).max_by_key(|(time, _)| *time);
    if let Some((_, state)) = longest {
        state.withdraw();
    }
}

/// Whether a request is for all clients: what follows from it reaches all.
pub(super) fn is_for_all(method: &str) -> bool {
    matches!(
        method,
        methods::RESOURCES_SUBSCRIBE
            | methods::RESOURCES_UNSUBSCRIBE
            | methods::LISTEN
            | methods::SET_LOG_LEVEL
    )
}

/// All instances beside the first.
pub(super) fn all(others: &Mutex<Vec<OtherInstance>>) -> Vec<Arc<Server>> {
    others.lock().iter().map(|other| Arc::clone(&other.server)).collect()
}

/// Disables or enables all instances beside the first.
pub(super) fn set_disabled(others: &Mutex<Vec<OtherInstance>>, way_on: Option<&str>) {
    for other in others.lock().iter() {
        other.server.set_disabled(way_on);
    }
}
