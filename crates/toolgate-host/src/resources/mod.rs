//! Resources, resource templates and prompts of all servers.
//!
//! The URI of a resource names its server (`uris`), and a prompt is named like a tool; the rest is as
//! the server sent it. Lists are cached until a server announces a change (`lists`), and notifications
//! reach the sessions that they concern (`subscriptions`).

pub(crate) mod clients;
mod held;
mod lists;
mod nodes;
mod requests;
pub(crate) mod skills;
mod subscriptions;
#[cfg(test)]
mod tests;
mod uris;

use std::{
    collections::HashSet,
    sync::{Arc, OnceLock, Weak},
};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::OnceCell;
use toolgate_broker::Broker;
use toolgate_catalog::{Catalog, ServerName};
use toolgate_mcp::{JsonObject, extensions, meta::SUBSCRIPTION_ID, methods};
use toolgate_policy::definitions::EntryKind;
use toolgate_store::AuditRecord;
use toolgate_upstream::{LoginEvent, StateKind};

pub use held::JudgedEntry;
pub use nodes::{NodeFilter, NodeListener};
pub(crate) use requests::{
    ReadFailure, answer, failure, instructions_of, is_denied, read, read_in,
};
pub use subscriptions::{NotificationStream, ServerNotification, Subscriber};
pub(crate) use uris::{
    each_text, instructions_uri, is_ours, to_client_uris, to_client_views, to_server_uris,
};

use self::{
    clients::ConnectedClients,
    lists::{ListCache, PromptNames, ServerList},
    nodes::NodeNotifications,
    subscriptions::{EventBus, ListenStreams, ResourceEvent, Subscriptions},
};
use crate::{host::ToolHost, settings::Connect};

/// A kind of list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ListKind {
    /// `resources/list`.
    Resources,
    /// `resources/templates/list`.
    Templates,
    /// `prompts/list`.
    Prompts,
    /// `skills/list`, of servers with the extension.
    Skills,
}

impl ListKind {
    /// All of them.
    pub(crate) const ALL: [Self; 4] =
        [Self::Resources, Self::Templates, Self::Prompts, Self::Skills];

    /// The method that lists the entries, the field of the list in the result, the field that
    /// identifies an entry, and the capability of servers that have such entries.
    fn names(self) -> [&'static str; 4] {
        match self {
            Self::Resources => [methods::RESOURCES_LIST, "resources", "uri", "resources"],
            Self::Templates => {
                [methods::RESOURCE_TEMPLATES_LIST, "resourceTemplates", "uriTemplate", "resources"]
            }
            Self::Prompts => [methods::PROMPTS_LIST, "prompts", "name", "prompts"],
            Self::Skills => [methods::SKILLS_LIST, "skills", "uri", extensions::SKILLS],
        }
    }

    /// The method that lists the entries.
    pub(crate) fn method(self) -> &'static str {
        self.names()[0]
    }

    /// The field of the list in the result.
    pub(crate) fn field(self) -> &'static str {
        self.names()[1]
    }

    /// The field that identifies an entry.
    pub(crate) fn key(self) -> &'static str {
        self.names()[2]
    }

    /// The capability of servers that have such entries.
    fn capability(self) -> &'static str {
        self.names()[3]
    }

    /// Whether a server with these capabilities may have such entries.
    pub(crate) fn is_declared(self, capabilities: &JsonObject) -> bool {
        match self {
            Self::Skills => extensions::declared(capabilities).contains_key(self.capability()),
            _ => capabilities.contains_key(self.capability()),
        }
    }

    /// The entries of the list, as definitions.
    pub(crate) fn entries(self) -> EntryKind {
        match self {
            Self::Resources => EntryKind::Resource,
            Self::Templates => EntryKind::Template,
            Self::Prompts => EntryKind::Prompt,
            Self::Skills => EntryKind::Skill,
        }
    }
}

/// The resources and prompts of all servers, and the subscriptions to them.
#[derive(Debug)]
pub(crate) struct ResourceHub {
    lists: Arc<ListCache>,
    events: EventBus,
    subscriptions: Subscriptions,
    streams: ListenStreams,
    nodes: NodeNotifications,
    pub(crate) clients: Arc<ConnectedClients>,
    prompts: Mutex<Arc<PromptNames>>,
    broker: OnceLock<Weak<Broker>>,
    /// The servers that were connected at their last change of state.
    connected: Mutex<HashSet<ServerName>>,
    /// The capabilities whose lists a client has received since their last announcement. A change
    /// is announced once, however often a server repeats it.
    given: Mutex<HashSet<&'static str>>,
    /// Set once the servers are connecting that connect at the start.
    woken: OnceCell<()>,
}

impl ResourceHub {
    pub(crate) fn new() -> Self {
        let events = EventBus::new();
        Self {
            lists: Arc::new(ListCache::new(events.clone())),
            events,
            subscriptions: Subscriptions::default(),
            streams: ListenStreams::default(),
            nodes: NodeNotifications::default(),
            clients: Arc::default(),
            prompts: Mutex::default(),
            broker: OnceLock::new(),
            connected: Mutex::default(),
            given: Mutex::default(),
            woken: OnceCell::new(),
        }
    }

    /// Sets the broker, which is made after this.
    pub(crate) fn attach(&self, broker: &Arc<Broker>) {
        let _ = self.broker.set(Arc::downgrade(broker));
    }

    /// Handles a new state of a server. One that has reconnected may list other things, and has lost
    /// its subscriptions.
    pub(crate) fn state_changed(self: &Arc<Self>, server: &ServerName) {
        let Some(broker) = self.broker.get().and_then(Weak::upgrade) else { return };
        let state = broker.servers().state(server.as_str());
        let ready = state.filter(|state| state.kind == StateKind::Ready);
        let mut connected = self.connected.lock();
        let Some(handshake) = ready.and_then(|state| state.handshake) else {
            connected.remove(server);
            return;
        };
        if !connected.insert(server.clone()) {
            return;
        }
        drop(connected);
        for kind in ListKind::ALL {
            self.lists.outdated(server, kind);
            if kind.is_declared(&handshake.capabilities) {
                self.announce(kind);
            }
        }
        for method in [methods::PROMPTS_CHANGED, methods::RESOURCES_CHANGED] {
            self.nodes.send(server, method, None);
        }
        let (hub, server, era) = (Arc::clone(self), server.clone(), handshake.era);
        tokio::spawn(async move {
            hub.clients.set_level(&broker, &server, &handshake).await;
            subscriptions::resubscribe(&hub, &broker, &server, era).await;
        });
    }

    /// Handles a change of a caller's login: forgets the lists that another login had, and writes it to the audit
    /// log.
    pub(crate) fn login_changed(&self, server: &ServerName, caller: &str, event: LoginEvent) {
        if event == LoginEvent::LoggedIn {
            for kind in ListKind::ALL {
                self.lists.outdated(server, kind);
                self.announce(kind);
            }
        }
        let Some(broker) = self.broker.get().and_then(Weak::upgrade) else { return };
        let (verdict, rule) = match event {
            LoginEvent::LoggedIn => ("allow", "logged in".to_owned()),
            LoginEvent::NotRenewed(why) => ("deny", format!("the login was not renewed: {why}")),
            LoginEvent::LoggedOut => ("deny", "logged out".to_owned()),
        };
        broker.record(AuditRecord {
            kind: "login".to_owned(),
            caller: caller.to_owned(),
            server: server.to_string(),
            verdict: verdict.to_owned(),
            rule,
            ..AuditRecord::default()
        });
    }

    /// Forgets the lists of a server that was taken away.
    pub(crate) fn removed(&self, server: &ServerName) {
        self.connected.lock().remove(server);
        for kind in ListKind::ALL {
            self.lists.outdated(server, kind);
            self.announce(kind);
        }
    }

    /// Announces all lists, because other entries may be held back now.
    pub(crate) fn filter_changed(&self) {
        for kind in [ListKind::Resources, ListKind::Prompts] {
            self.announce(kind);
        }
    }

    /// Handles a notification of a server.
    pub(crate) fn notified(&self, server: &ServerName, method: &str, params: Option<&Value>) {
        self.nodes.send(server, method, params);
        match method {
            methods::RESOURCES_CHANGED => {
                self.lists.outdated(server, ListKind::Resources);
                self.lists.outdated(server, ListKind::Templates);
                self.announce(ListKind::Resources);
            }
            methods::PROMPTS_CHANGED => {
                self.lists.outdated(server, ListKind::Prompts);
                self.announce(ListKind::Prompts);
            }
            methods::RESOURCE_UPDATED => {
                let Some(params) = params else { return };
                let Some(changed) = params.get("uri").and_then(Value::as_str) else { return };
                let subscribers = self.subscriptions.subscribers(server, changed);
                if !subscribers.is_empty() {
                    let mut params = params.clone();
                    uris::to_client_uri(server, Some(&mut params));
                    if let Some(Value::Object(meta)) = params.get_mut("_meta") {
                        // The listen request is ours, and clients do not know its id.
                        meta.remove(SUBSCRIPTION_ID);
                    }
                    self.events.send(ResourceEvent::Updated(Arc::new(subscribers), params));
                }
            }
            methods::LOG_MESSAGE => {
                let params = params.cloned().unwrap_or_default();
                self.events.send(ResourceEvent::Logged(server.clone(), params));
            }
            _ => {}
        }
    }

    /// Starts to connect the servers that connect at the start, once: otherwise the first list of a
    /// client would be incomplete, and many clients request no second one.
    async fn at_start(&self, host: &ToolHost) {
        let wake = async || {
            if host.settings().connect == Connect::AtStart {
                host.wake().await;
            }
        };
        self.woken.get_or_init(wake).await;
    }

    /// Notes that a client has a list, or waits for its changes.
    fn list_given(&self, kind: ListKind) {
        self.given.lock().insert(kind.capability());
    }

    /// Announces the change of a list.
    fn announce(&self, kind: ListKind) {
        // The extension for skills has no such notification.
        if kind != ListKind::Skills && self.given.lock().remove(kind.capability()) {
            self.events.send(ResourceEvent::ListChanged(kind));
        }
    }

    /// The exposed names of all prompts in these lists.
    fn prompt_names(
        &self,
        lists: Vec<(ServerName, Arc<ServerList>)>,
        catalog: &Catalog,
    ) -> Arc<PromptNames> {
        let mut names = self.prompts.lock();
        if !names.are_of(&lists) {
            *names = Arc::new(PromptNames::new(lists, catalog));
        }
        Arc::clone(&names)
    }

    /// The servers that may have a prompt of this name and were never asked for their prompts.
    fn may_name(&self, host: &ToolHost, prompt: &str) -> Vec<ServerName> {
        let catalog = host.catalog().read();
        let mut servers = self.unlisted(host, ListKind::Prompts);
        servers.retain(|server| {
            let entry = catalog.server(server.as_str());
            entry.is_some_and(|entry| lists::could_name(entry, prompt))
        });
        servers
    }

    /// The enabled servers that may have entries of a kind and were never asked for them.
    fn unlisted(&self, host: &ToolHost, kind: ListKind) -> Vec<ServerName> {
        let catalog = host.catalog().read();
        let names = catalog.servers().map(|entry| entry.name.clone());
        let unknown = names.filter(|server| {
            !host.is_off(server)
                && host.declares(server, kind) != Some(false)
                && !self.lists.is_known(server, kind)
        });
        unknown.collect()
    }
}
