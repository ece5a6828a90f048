//! One server: its state, and calls to it.

use std::{
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use toolgate_catalog::Fingerprint;
use toolgate_mcp::{
    Era, JsonObject,
    client::{ConnectFailure, Endpoint, OutputSource, Redactor},
    methods,
};

use crate::{
    connection::{CallFailure, CallOptions, Connection},
    error::CallError,
    handshake::Handshake,
    input_handler::ClientKey,
    listing::{Listing, ListingProblem},
    spec::{ServerSpec, StartMode},
    upstream::ServerObserver,
};

mod callers;
mod demand;
mod instances;
mod lists;
mod older_era;
mod supervise;

pub(crate) use instances::Asking;
pub(crate) use supervise::node_is_gone;

use callers::CallerServers;
use demand::Demand;
use instances::OtherInstance;
use lists::{FIRST, InstanceLists};

/// The state of a server.
#[derive(Debug, Clone, Default)]
pub struct ServerState {
    /// The state in one word.
    pub kind: StateKind,
    /// Why there is no connection.
    pub failure: Option<ConnectFailure>,
    /// The last handshake of the server.
    pub handshake: Option<Handshake>,
    /// What is wrong with its list of tools.
    pub problems: Vec<ListingProblem>,
    /// How many attempts to connect there were.
    pub attempts: u32,
    /// The node that runs it, if it runs once in a fleet. Known once it was connected.
    pub node: Option<String>,
}

/// The state of a server, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StateKind {
    /// Not connected, because no call needs it.
    Idle,
    /// An attempt to connect is in progress.
    #[default]
    Connecting,
    /// Connected, and its tools are known.
    Ready,
    /// Not connected. toolgate will try again.
    Failed,
    /// Not connected, because it is disabled.
    Disabled,
    /// Ended by toolgate.
    Stopped,
}

/// One server, its supervisor and its callers. Each instance beside the first is one more of these,
/// which only its server knows.
pub(crate) struct Server {
    pub(crate) spec: ServerSpec,
    redactor: Redactor,
    observer: Arc<dyn ServerObserver>,
    asking: Arc<Asking>,
    /// The servers of callers, where each caller has their own login.
    callers: Option<CallerServers>,
    /// The caller whose server this is, and the server of all callers.
    owner: Option<ServerOwner>,
    /// The instances beside the first.
    others: Mutex<Vec<OtherInstance>>,
    /// Notified when a call ends.
    freed: Arc<Notify>,
    /// The number of the instance.
    number: u64,
    /// What the instances list. All of them share it.
    lists: Arc<InstanceLists>,
    /// The supervisors of the other instances.
    running: TaskTracker,
    state: watch::Sender<SupervisedState>,
    demand: Demand,
    retry_now: Notify,
    pub(crate) stop: CancellationToken,
    /// Cancelled when the server was taken away.
    retired: CancellationToken,
    /// The list that was passed on last. Locked while a list is passed on, so that none of a server
    /// that was taken away follows. All instances share it.
    listed: Arc<Mutex<Option<Fingerprint>>>,
    /// Cancelled when the supervisor has ended for any reason.
    pub(crate) finished: CancellationToken,
    /// The extensions that clients have declared.
    extensions: Arc<RwLock<JsonObject>>,
    /// How many servers have instances that list different tools.
    differing_lists: Arc<AtomicUsize>,
}

/// The caller of a server that only its parent knows. All instances share it.
#[derive(Debug, Clone)]
struct ServerOwner {
    parent: Weak<Server>,
    caller: Arc<str>,
    /// Cancelled when another server has taken the place of this one, after a login.
    replaced: CancellationToken,
}

#[derive(Debug, Clone, Default)]
struct SupervisedState {
    state: ServerState,
    connection: Option<Arc<Connection>>,
    failed: Option<FailedAttempt>,
}

/// A failed attempt to connect.
#[derive(Debug, Clone, Copy)]
struct FailedAttempt {
    at: Instant,
    /// Whether a connection had been open. Then toolgate connects again at once.
    after_connection: bool,
}

/// Calls can cause an earlier attempt, but not more often than this.
const SHORTEST_RETRY: Duration = Duration::from_secs(2);
/// The limit of a call can be too long to be added to a time.
const A_YEAR: Duration = Duration::from_hours(24 * 365);
/// How many connections a call tries if they end before it is sent.
const MAX_CONNECTIONS_TRIED: usize = 3;

impl Server {
    pub(crate) fn new(
        spec: ServerSpec,
        observer: Arc<dyn ServerObserver>,
        stop: CancellationToken,
        extensions: Arc<RwLock<JsonObject>>,
        differing_lists: Arc<AtomicUsize>,
    ) -> Self {
        let mut current = SupervisedState::default();
        if spec.start == StartMode::OnDemand {
            current.state.kind = StateKind::Idle;
        }
        Self {
            redactor: spec.redactor(),
            asking: Arc::new(Asking::new(spec.asks)),
            callers: spec.callers.clone().map(CallerServers::new),
            owner: None,
            spec,
            observer,
            others: Mutex::default(),
            freed: Arc::default(),
            number: FIRST,
            lists: Arc::new(InstanceLists::new(Arc::clone(&differing_lists))),
            differing_lists,
            running: TaskTracker::new(),
            state: watch::Sender::new(current),
            demand: Demand::new(),
            retry_now: Notify::new(),
            stop,
            retired: CancellationToken::new(),
            listed: Arc::default(),
            finished: CancellationToken::new(),
            extensions,
        }
    }

    /// One more instance of a server.
    fn instance_of(first: &Self, spec: ServerSpec) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(FIRST + 1);
        Self {
            asking: Arc::clone(&first.asking),
            owner: first.owner.clone(),
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            lists: Arc::clone(&first.lists),
            retired: first.retired.clone(),
            listed: Arc::clone(&first.listed),
            ..Self::new(
                spec,
                Arc::clone(&first.observer),
                first.stop.child_token(),
                Arc::clone(&first.extensions),
                Arc::clone(&first.differing_lists),
            )
        }
    }

    /// Takes no more calls, and lists no more tools. Calls that wait for a connection end.
    pub(crate) fn retire(&self) {
        {
            let _no_list_is_passed_on = self.listed.lock();
            self.retired.cancel();
        }
        self.set_disabled(Some("it is replaced"));
    }

    /// Waits until a retired server has no more calls.
    pub(crate) async fn unused(&self) {
        self.demand.over(None).await;
    }

    /// Passes a list on, unless the server was taken away. Most instances list what the first has.
    fn pass_on(&self, handshake: &Handshake, listing: Listing) {
        if let Some(callers) = &self.callers {
            return self.list_for(callers, None, handshake, listing);
        }
        if let Some(owner) = &self.owner {
            let parent = owner.parent.upgrade();
            if let Some(parent) = parent
                && let Some(callers) = &parent.callers
            {
                parent.list_for(callers, Some(owner), handshake, listing);
            }
            return;
        }
        let mut listed = self.listed.lock();
        let (handshake, listing) = self.lists.add(self.number, handshake, listing);
        self.pass_on_merged(&mut listed, &handshake, listing, self.is_first());
    }

    /// Passes on what all instances list. What is known is passed on only if it `is_news`.
    fn pass_on_merged(
        &self,
        listed: &mut Option<Fingerprint>,
        handshake: &Handshake,
        listing: Listing,
        is_news: bool,
    ) {
        let fingerprint = Fingerprint::of_list(&listing.definitions);
        let is_known = !is_news && listed.as_ref() == Some(&fingerprint);
        if self.retired.is_cancelled() {
            return;
        }
        if !is_known {
            *listed = Some(fingerprint);
            self.observer.listed(&self.spec.name, handshake, listing);
        } else if self.lists.differ() {
            self.observer.offers_changed(&self.spec.name);
        }
    }

    /// Forgets what an instance listed that has ended.
    fn unlist(&self, instance: &Self) {
        let mut listed = self.listed.lock();
        if let Some((handshake, listing)) = self.lists.remove(instance.number) {
            self.pass_on_merged(&mut listed, &handshake, listing, false);
        }
    }

    fn is_first(&self) -> bool {
        self.number == FIRST
    }

    /// Whether each caller has their own login.
    pub(crate) fn is_per_caller(&self) -> bool {
        self.callers.is_some()
    }

    /// The state of the server for a caller.
    pub(crate) fn state_for(&self, caller: &str) -> ServerState {
        match &self.callers {
            Some(callers) => self.state_of_caller(callers, caller),
            None => self.state(),
        }
    }

    /// The state for people who look at all callers.
    pub(crate) fn overall_state(&self) -> ServerState {
        match &self.callers {
            Some(callers) => self.state_of_all_callers(callers),
            None => self.state(),
        }
    }

    /// Whether a caller is offered a tool with this definition, in a session of this client.
    pub(crate) fn offers(
        &self,
        caller: impl FnOnce() -> Arc<str>,
        client: Option<&ClientKey>,
        tool: &str,
        definition: Fingerprint,
    ) -> bool {
        match &self.callers {
            Some(callers) => Self::is_offered(callers, &caller(), tool, definition),
            None => self.lists.offers(client, tool, definition),
        }
    }

    /// Connects for the caller of the options, who may have to log in.
    pub(crate) async fn connect_for(
        self: &Arc<Self>,
        options: &CallOptions,
    ) -> Result<(), CallError> {
        match &self.callers {
            Some(callers) => self.connect_as_caller(callers, options).await,
            None => Ok(()),
        }
    }

    /// Connects for a caller who has logged in, and waits for it.
    pub(crate) async fn recall(self: &Arc<Self>, caller: &Arc<str>) {
        if let Some(callers) = &self.callers {
            self.recall_caller(callers, caller).await;
        }
    }

    pub(crate) fn state(&self) -> ServerState {
        let disabled = self.demand.is_disabled();
        let mut state = self.state.borrow().state.clone();
        if disabled && state.kind != StateKind::Stopped {
            state.kind = StateKind::Disabled;
        }
        state
    }

    /// Connects now if the state is one of these.
    pub(crate) fn wake_from(&self, kinds: &[StateKind]) {
        if self.demand.is_disabled() {
            return;
        }
        let asleep = kinds.contains(&self.state.borrow().state.kind);
        if asleep {
            self.demand.wake();
            // Set here and not by the supervisor, so that later callers wait for the attempt.
            self.publish(|current| current.state.kind = StateKind::Connecting);
            self.retry_now.notify_one();
        }
    }

    /// Disables or enables the server. A disabled server refuses new calls, completes the open ones
    /// and then disconnects. `way_on` says how to enable it.
    pub(crate) fn set_disabled(&self, way_on: Option<&str>) {
        if self.demand.set_disabled(way_on) {
            // Notifies calls that wait for a connection.
            self.publish(|_| {});
        }
        instances::set_disabled(&self.others, way_on);
        if let Some(callers) = &self.callers {
            callers.set_disabled(way_on);
        }
    }

    /// Waits until neither the disabled server nor an instance of it has a connection.
    pub(crate) async fn disconnected(&self) {
        let mut states: Vec<_> = vec![self.state.subscribe()];
        states.extend(instances::all(&self.others).iter().map(|other| other.state.subscribe()));
        let callers = self.callers.iter().flat_map(CallerServers::all);
        states.extend(callers.map(|own| own.state.subscribe()));
        for mut state in states {
            let has_none = |current: &SupervisedState| {
                current.connection.is_none() && current.state.kind != StateKind::Connecting
            };
            let _ = state.wait_for(has_none).await;
        }
    }

    /// Waits until the current attempt to connect has ended.
    pub(crate) async fn settled(&self) {
        let mut state = self.state.subscribe();
        let _ = state.wait_for(|current| current.state.kind != StateKind::Connecting).await;
    }

    /// Sends a request. Waits for a connection, and causes an attempt if the last one failed.
    /// `about` names the tool or the method, for errors.
    ///
    /// The request runs in a separate task: a caller that stops waiting cancels it in order.
    pub(crate) async fn request(
        self: &Arc<Self>,
        about: &str,
        method: &str,
        params: JsonObject,
        options: CallOptions,
    ) -> Result<Value, CallError> {
        if let Some(callers) = &self.callers {
            // Boxed, because it makes another request.
            return Box::pin(self.request_as_caller(callers, about, method, params, options)).await;
        }
        let cancel = options.cancel.child_token();
        let _cancelled_when_dropped = cancel.clone().drop_guard();
        let asked = self.asks_clients();
        let instance = self.instance(about, method, &options);
        let (first, about, method) = (Arc::clone(self), about.to_owned(), method.to_owned());
        let options = CallOptions { cancel, ..options };
        let sent = tokio::spawn(async move {
            let until = tokio::time::Instant::now() + first.spec.limits.total.min(A_YEAR);
            let (mut server, mut in_use) = if let Some(found) = instance {
                found
            } else {
                tokio::select! {
                    biased;
                    () = options.cancel.cancelled() => return Err(CallError::Cancelled),
                    found = first.free_instance(&about, &method, &options) => found,
                    () = tokio::time::sleep_until(until) => return Err(first.all_in_use()),
                }
            };
            for _ in 0..MAX_CONNECTIONS_TRIED {
                let connection = tokio::select! {
                    biased;
                    () = options.cancel.cancelled() => return Err(CallError::Cancelled),
                    // Nothing was sent, and another server may have the name now.
                    () = server.retired.cancelled() => {
                        let (server, tool) = (server.spec.name.clone(), about);
                        return Err(CallError::DefinitionChanged { server, tool });
                    }
                    connection = server.connection() => connection?,
                    () = tokio::time::sleep_until(until) => return Err(server.connects_too_long()),
                };
                if Arc::ptr_eq(&server, &first)
                    && connection.let_others_begin(&options).await
                    && first.asks_clients() != asked
                {
                    // Clients have instances of their own from now on.
                    if let Some(found) = first.instance(&about, &method, &options) {
                        (server, in_use) = found;
                    }
                    if !Arc::ptr_eq(&server, &first) {
                        continue;
                    }
                }
                let mut sent = connection.request(&about, &method, &params, &options).await;
                if let Some(is_switched) = server.use_older_era(&connection, &sent).await {
                    if is_switched && options.is_repeatable {
                        // In that era clients may need instances of their own.
                        if let Some(found) = first.instance(&about, &method, &options) {
                            (server, in_use) = found;
                        }
                        continue;
                    }
                    older_era::advise(&mut sent, is_switched);
                }
                match sent {
                    Ok(result) => return Ok(result),
                    Err(CallFailure::Failed(error)) => return Err(error),
                    // Nothing was sent, so nothing is repeated.
                    Err(CallFailure::NotSent) => connection.raw.closed().await,
                }
            }
            drop(in_use);
            let failure = server.state.borrow().state.failure.clone();
            Err(server.not_connected(failure.unwrap_or_else(unknown_failure)))
        });
        // It fails only if the runtime ends.
        sent.await.unwrap_or(Err(CallError::Cancelled))
    }

    /// Tells the connected instances of a server of the legacy era that the roots of clients changed.
    pub(crate) async fn roots_changed(&self) {
        let connected = |server: &Self| server.state.borrow().connection.clone();
        let mut connections: Vec<_> = connected(self).into_iter().collect();
        connections.extend(self.others.lock().iter().filter_map(|other| connected(other.server())));
        for connection in connections.iter().filter(|it| it.handshake.era == Era::Legacy) {
            if let Err(error) = connection.raw.notify(methods::ROOTS_CHANGED, None).await {
                tracing::debug!(server = %self.spec.name, %error, "the server was not told of new roots");
            }
        }
    }

    /// Sends a notification, if there is a connection.
    pub(crate) async fn notify(
        &self,
        method: &str,
        params: Option<Value>,
    ) -> Result<(), CallError> {
        let connection = self.state.borrow().connection.clone();
        let connection = connection.filter(|_| self.callers.is_none());
        let Some(connection) = connection else {
            return Err(
                self.not_connected(ConnectFailure::new("it is not connected", "call it first"))
            );
        };
        connection.raw.notify(method, params).await.map_err(|error| CallError::Transport {
            server: self.spec.name.clone(),
            tool: method.to_owned(),
            message: self.redactor.line(&error.to_string()),
        })
    }

    async fn connection(&self) -> Result<Arc<Connection>, CallError> {
        let mut states = self.state.subscribe();
        let mut asked_after = None;
        loop {
            if let Some(way_on) = self.demand.way_on() {
                return Err(self.not_connected(ConnectFailure::new("it is disabled", &*way_on)));
            }
            {
                let current = states.borrow_and_update();
                match (current.state.kind, &current.connection) {
                    (StateKind::Ready, Some(connection)) if !connection.raw.is_closed() => {
                        return Ok(Arc::clone(connection));
                    }
                    (StateKind::Failed, _) => {
                        let attempts = current.state.attempts;
                        let worth_waiting = current.failed.is_none_or(|failed| {
                            failed.after_connection || failed.at.elapsed() >= SHORTEST_RETRY
                        });
                        // One more attempt, unless the last one was just now.
                        let may_wait = asked_after.map_or(worth_waiting, |asked| attempts <= asked);
                        if !may_wait {
                            let failure = current.state.failure.clone();
                            return Err(self.not_connected(failure.unwrap_or_else(unknown_failure)));
                        }
                        asked_after.get_or_insert(attempts);
                        self.retry_now.notify_one();
                    }
                    (StateKind::Idle, _) => self.retry_now.notify_one(),
                    (StateKind::Stopped, _) => return Err(self.not_connected(stopped_failure())),
                    _ => {}
                }
            }
            if states.changed().await.is_err() {
                return Err(self.not_connected(stopped_failure()));
            }
        }
    }

    /// The error of a call whose time is over before there is a connection.
    fn connects_too_long(&self) -> CallError {
        let seconds = self.spec.limits.total.as_secs_f64();
        let reason = format!("it is still connecting after the {seconds} s that a call has");
        self.not_connected(ConnectFailure::new(
            reason,
            format!("try again, or {}", self.see_logs()),
        ))
    }

    /// The error of a call whose time is over before an instance was free.
    fn all_in_use(&self) -> CallError {
        let reason = "each session has its own instance of it, and all are in use";
        self.not_connected(ConnectFailure::new(reason, "try again when other calls have ended"))
    }

    fn not_connected(&self, failure: ConnectFailure) -> CallError {
        CallError::NotConnected { server: self.spec.name.clone(), failure }
    }

    fn see_logs(&self) -> String {
        match self.spec.endpoint {
            Endpoint::Stdio(_) => format!("see `toolgate logs {}`", self.spec.name),
            Endpoint::Http(_) => "check that the server runs".to_owned(),
            Endpoint::InProcess(_) => "restart the program".to_owned(),
        }
    }

    fn publish(&self, change: impl FnOnce(&mut SupervisedState)) {
        self.state.send_modify(change);
        self.tell_state();
    }

    fn tell_state(&self) {
        if self.is_first() {
            self.observer.state_changed(&self.spec.name);
        }
    }

    fn note(&self, text: &str) {
        let whose = match (&self.owner, self.is_first()) {
            (Some(_), _) => "the connection of one caller: ",
            (None, true) => "",
            (None, false) => "the instance of one session: ",
        };
        let text = self.redactor.line(&format!("{whose}{text}"));
        tracing::debug!(server = %self.spec.name, "{text}");
        self.observer.output(&self.spec.name, OutputSource::Toolgate, &text);
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Server").field("spec", &self.spec).finish_non_exhaustive()
    }
}

fn unknown_failure() -> ConnectFailure {
    ConnectFailure::new("the last attempt failed", "try again")
}

fn stopped_failure() -> ConnectFailure {
    ConnectFailure::new("toolgate is stopping", "start it again")
}
