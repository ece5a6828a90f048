//! The lists of resources, templates and prompts of all servers: read within bounds, and cached until
//! a server announces a change. Prompts are named by the rule for tools.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use futures::future::join_all;
use parking_lot::Mutex;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::sync::watch;
use toolgate_broker::{Broker, BrokerError};
use toolgate_catalog::{Catalog, CatalogServer, ExposedName, ServerName, ToolId, expose};
use toolgate_mcp::codes::METHOD_NOT_FOUND;
use toolgate_upstream::{CallError, CallOptions};

use super::{
    ListKind,
    subscriptions::{EventBus, ResourceEvent},
};
use crate::entry_filter::HeldEntries;

/// The list of one server.
#[derive(Debug, Default)]
pub(super) struct ServerList {
    /// The entries, in the server's order.
    pub(super) items: Vec<ListItem>,
    /// Their URIs or names.
    pub(super) keys: HashSet<Box<str>>,
    /// What is missing, and why.
    pub(super) cut: Option<String>,
    /// Whether the server has listed it. Otherwise nothing is known.
    pub(super) is_listed: bool,
    /// The entries that are held back, and the revision of the filter that decided.
    pub(super) held: Mutex<Option<(u64, Arc<HeldEntries>)>>,
}

/// Why a list could not be read.
#[derive(Debug, Error)]
pub(super) enum ListError {
    /// The request failed.
    #[error("{}", if is_not_connected(.0) { NOT_CONNECTED.to_owned() } else { .0.to_string() })]
    Request(BrokerError),
    /// The result has no list.
    #[error("its answer to {0} has no list")]
    NoList(&'static str),
    /// The pages did not end in time.
    #[error("its list did not end in {} s", LIST_READ_LIMIT.as_secs())]
    TimedOut,
}

/// An entry, as the server sent it.
#[derive(Debug)]
pub(super) struct ListItem {
    pub(super) value: Value,
    /// The length as text.
    pub(super) bytes: usize,
}

const MAX_PAGES: usize = 200;
const MAX_ITEMS: usize = 10_000;
/// The most bytes of one server's list, as text.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// The most bytes of one entry. Some contain icons as data.
const MAX_ITEM_BYTES: usize = 128 * 1024;
/// The longest URI. Names are shorter.
const MAX_KEY_BYTES: usize = 8 * 1024;
/// Why an absent server lists nothing.
pub(super) const NOT_CONNECTED: &str = "it is not connected";

impl ServerList {
    /// The URI or name of an entry.
    pub(super) fn key(&self, index: usize, kind: ListKind) -> &str {
        let value = self.items.get(index).map(|item| &item.value);
        value.and_then(|value| value.get(kind.key())?.as_str()).unwrap_or_default()
    }

    /// Adds an entry. Returns whether there is room for more.
    fn take(&mut self, value: Value, kind: ListKind, total: &mut usize) -> bool {
        let Some(key) = value.get(kind.key()).and_then(Value::as_str) else {
            return self.leave_out("entries that cannot be read");
        };
        if key.len() > MAX_KEY_BYTES {
            return self.leave_out("entries that are too large");
        }
        let key = Box::from(key);
        let bytes = value.to_string().len();
        if bytes > MAX_ITEM_BYTES {
            return self.leave_out("entries that are too large");
        }
        if self.items.len() == MAX_ITEMS || *total + bytes > MAX_BYTES {
            self.leave_out("what comes after the first entries: there are too many");
            return false;
        }
        // Of two equal entries the first is used.
        if self.keys.insert(key) {
            *total += bytes;
            self.items.push(ListItem { value, bytes });
        }
        true
    }

    fn leave_out(&mut self, what: &str) -> bool {
        self.cut = Some(format!("left out: {what}"));
        true
    }
}

/// The error of the call itself.
fn call_error(error: &BrokerError) -> Option<&CallError> {
    if let BrokerError::Call(error) = error { Some(error) } else { None }
}

fn is_not_connected(error: &BrokerError) -> bool {
    matches!(call_error(error), Some(CallError::NotConnected { .. }))
}

/// Whose list it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ListSource {
    pub(super) server: ServerName,
    /// The caller, where each caller has their own login at the server.
    pub(super) caller: Option<Arc<str>>,
}

impl ListSource {
    /// The list of a server for a caller. It is the same for all callers, unless each has their own login.
    pub(super) fn new(broker: &Broker, server: &ServerName, caller: Option<&Arc<str>>) -> Self {
        let caller = caller.filter(|_| broker.servers().is_per_caller(server.as_str()));
        Self { server: server.clone(), caller: caller.cloned() }
    }
}

/// Reads all pages of a list. A server that does not support the method has an empty list.
pub(super) async fn list_all(
    broker: &Arc<Broker>,
    source: &ListSource,
    kind: ListKind,
) -> Result<ServerList, ListError> {
    let ListSource { server, caller } = source;
    let mut list = ServerList::default();
    let mut total = 0;
    let mut cursor: Option<String> = None;
    let mut seen = HashSet::new();
    for _ in 0..MAX_PAGES {
        let params = cursor.as_ref().map(|cursor| json!({ "cursor": cursor }));
        let options = CallOptions { caller: caller.clone(), ..CallOptions::default() };
        let listed = broker.request_unjudged(server, kind.method(), params, options).await;
        let mut page = match listed {
            Ok(page) => page,
            Err(error)
                if matches!(call_error(&error), Some(CallError::Refused { error, .. })
                if error.code == METHOD_NOT_FOUND) =>
            {
                return Ok(list);
            }
            // An incomplete list is better than none.
            Err(error) if !list.items.is_empty() => {
                list.cut = Some(error.to_string());
                return Ok(list);
            }
            Err(error) => return Err(ListError::Request(error)),
        };
        let Some(Value::Array(entries)) = page.get_mut(kind.field()).map(Value::take) else {
            return Err(ListError::NoList(kind.method()));
        };
        for entry in entries {
            if !list.take(entry, kind, &mut total) {
                return Ok(list);
            }
        }
        cursor = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
        let Some(next) = &cursor else { return Ok(list) };
        // A repeated cursor would be followed for ever.
        if next.len() > MAX_KEY_BYTES || !seen.insert(next.clone()) {
            list.leave_out("pages that lead in a circle");
            return Ok(list);
        }
    }
    list.leave_out("pages after the first: there are too many");
    Ok(list)
}

/// The lists of all servers.
#[derive(Debug)]
pub(super) struct ListCache {
    entries: Mutex<HashMap<(ListSource, ListKind), CacheEntry>>,
    events: EventBus,
}

/// A cached list.
#[derive(Debug, Clone, Default)]
pub(super) struct CachedList {
    /// The last list; empty if there was none.
    pub(super) list: Arc<ServerList>,
    /// Why it may be incomplete.
    pub(super) problem: Option<String>,
}

#[derive(Debug, Default)]
struct CacheEntry {
    known: CachedList,
    /// When it is requested again.
    good_until: Option<Instant>,
    asking: Option<PendingList>,
    /// Grows with each change, so that an earlier answer is not used.
    round: u64,
}

#[derive(Debug, Clone)]
struct PendingList {
    since: Instant,
    done: watch::Receiver<bool>,
}

/// How long a request waits for the list of a server. A later list is announced.
pub(super) const LIST_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a server has for all pages.
const LIST_READ_LIMIT: Duration = Duration::from_mins(1);
/// Lists are requested again after this time, because some servers announce no changes.
const GOOD_FOR: Duration = Duration::from_mins(5);
/// The same after a failure.
const RETRY_AFTER: Duration = Duration::from_secs(10);
/// Above this number of lists, outdated ones of callers are forgotten.
const MAX_LISTS: usize = 2_000;

impl ListCache {
    pub(super) fn new(events: EventBus) -> Self {
        Self { entries: Mutex::default(), events }
    }

    /// Requests the lists of `servers` that are missing or outdated, all at once, and waits a short
    /// time for them.
    pub(super) async fn refresh(
        self: &Arc<Self>,
        broker: &Arc<Broker>,
        sources: &[ListSource],
        kind: ListKind,
    ) {
        join_all(sources.iter().map(|source| async move {
            let mut deadline = None;
            // Repeated if the list changed meanwhile, as it does with a server that has just
            // connected.
            while let Some(mut asking) = self.request(broker, source, kind) {
                let until = *deadline.get_or_insert(asking.since + LIST_TIMEOUT);
                let done = asking.done.wait_for(|done| *done);
                // A late list is announced when it is complete.
                if !matches!(tokio::time::timeout_at(until.into(), done).await, Ok(Ok(_))) {
                    break;
                }
            }
        }))
        .await;
    }

    /// The cached list of a server.
    pub(super) fn known(&self, source: &ListSource, kind: ListKind) -> CachedList {
        let entries = self.entries.lock();
        let Some(entry) = entries.get(&(source.clone(), kind)) else {
            return CachedList::default();
        };
        let mut known = entry.known.clone();
        if entry.asking.as_ref().is_some_and(PendingList::goes_on) {
            let limit = LIST_TIMEOUT.as_secs();
            known.problem.get_or_insert_with(|| format!("no answer in {limit} s"));
        }
        known
    }

    /// Whether a server's list was requested since it last changed.
    pub(super) fn is_known(&self, server: &ServerName, kind: ListKind) -> bool {
        let source = ListSource { server: server.clone(), caller: None };
        let entries = self.entries.lock();
        entries.get(&(source, kind)).is_some_and(|entry| entry.good_until.is_some())
    }

    /// Marks a list as outdated: it is requested when it is needed next.
    pub(super) fn outdated(&self, server: &ServerName, kind: ListKind) {
        let mut entries = self.entries.lock();
        let outdated = entries.iter_mut();
        for (_, entry) in outdated.filter(|((of, list), _)| of.server == *server && *list == kind) {
            entry.round += 1;
            entry.good_until = None;
            entry.asking = None;
        }
    }

    /// Requests a list unless it is current. Returns the pending request.
    fn request(
        self: &Arc<Self>,
        broker: &Arc<Broker>,
        source: &ListSource,
        kind: ListKind,
    ) -> Option<PendingList> {
        let mut entries = self.entries.lock();
        if source.caller.is_some() && entries.len() >= MAX_LISTS {
            let now = Instant::now();
            // Those of callers that are outdated.
            entries.retain(|(of, _), entry| {
                of.caller.is_none() || entry.good_until.is_some_and(|until| until > now)
            });
        }
        let entry = entries.entry((source.clone(), kind)).or_default();
        if entry.good_until.is_some_and(|until| until > Instant::now()) {
            return None;
        }
        if let Some(asking) = entry.asking.as_ref().filter(|asking| asking.goes_on()) {
            return Some(asking.clone());
        }
        let (sender, done) = watch::channel(false);
        let asking = PendingList { since: Instant::now(), done };
        entry.asking = Some(asking.clone());
        let (lists, broker, source) = (Arc::clone(self), Arc::clone(broker), source.clone());
        let (since, round) = (asking.since, entry.round);
        tokio::spawn(async move {
            let listing = list_all(&broker, &source, kind);
            let listed = tokio::time::timeout(LIST_READ_LIMIT, listing)
                .await
                .unwrap_or_else(|_| Err(ListError::TimedOut));
            let changed = lists.put(&source, kind, round, listed);
            sender.send_replace(true);
            if changed && kind != ListKind::Skills && since.elapsed() >= LIST_TIMEOUT {
                lists.events.send(ResourceEvent::ListChanged(kind));
            }
        });
        Some(asking)
    }

    /// Stores the outcome of a request. Returns whether the list may have changed.
    fn put(
        &self,
        source: &ListSource,
        kind: ListKind,
        round: u64,
        listed: Result<ServerList, ListError>,
    ) -> bool {
        let mut entries = self.entries.lock();
        let Some(entry) = entries.get_mut(&(source.clone(), kind)) else { return false };
        if entry.round != round {
            return false;
        }
        entry.asking = None;
        let now = Instant::now();
        match listed {
            Ok(mut list) => {
                list.is_listed = true;
                let changed = !(list.items.is_empty() && entry.known.list.items.is_empty());
                entry.known = CachedList { problem: list.cut.clone(), list: Arc::new(list) };
                entry.good_until = Some(now + GOOD_FOR);
                changed
            }
            // The earlier list is the best there is.
            Err(error) => {
                entry.known.problem = Some(error.to_string());
                entry.good_until = Some(now + RETRY_AFTER);
                false
            }
        }
    }
}

impl PendingList {
    /// Whether the request is still pending.
    fn goes_on(&self) -> bool {
        !*self.done.borrow() && self.done.has_changed().is_ok()
    }
}

/// The exposed names of all known prompts.
#[derive(Debug, Default)]
pub(super) struct PromptNames {
    lists: Vec<(ServerName, Arc<ServerList>)>,
    /// By server and index, as in `lists`.
    names: Vec<Vec<ExposedName>>,
    by_name: HashMap<ExposedName, (usize, usize)>,
}

/// Whether a prompt of this name could belong to the server.
pub(super) fn could_name(server: &CatalogServer, prompt: &str) -> bool {
    // The prefix of any exposed name of the server.
    let example = (ToolId::new(server.name.clone(), "x"), server.prefix.as_deref());
    expose([example])
        .first()
        .and_then(|name| name.as_str().strip_suffix('x'))
        .is_some_and(|before| prompt.starts_with(before))
}

impl PromptNames {
    /// Names the prompts in these lists, with the prefixes from the catalog.
    pub(super) fn new(lists: Vec<(ServerName, Arc<ServerList>)>, catalog: &Catalog) -> Self {
        let ids = lists.iter().flat_map(|(server, list)| {
            let prefix = catalog.server(server.as_str()).and_then(|entry| entry.prefix.as_deref());
            let prompts = (0..list.items.len()).map(|index| list.key(index, ListKind::Prompts));
            prompts.map(move |prompt| (ToolId::new(server.clone(), prompt), prefix))
        });
        let mut given = expose(ids).into_iter();
        let mut names = Vec::new();
        let mut by_name = HashMap::new();
        for (place, (_, list)) in lists.iter().enumerate() {
            let own: Vec<ExposedName> = given.by_ref().take(list.items.len()).collect();
            by_name.extend(own.iter().cloned().enumerate().map(|(i, name)| (name, (place, i))));
            names.push(own);
        }
        Self { lists, names, by_name }
    }

    /// Whether these names belong to exactly these lists.
    pub(super) fn are_of(&self, lists: &[(ServerName, Arc<ServerList>)]) -> bool {
        self.lists.len() == lists.len()
            && self
                .lists
                .iter()
                .zip(lists)
                .all(|(old, new)| old.0 == new.0 && Arc::ptr_eq(&old.1, &new.1))
    }

    /// The exposed name of one prompt.
    pub(super) fn name(&self, server: &ServerName, index: usize) -> Option<&ExposedName> {
        let place = self.lists.iter().position(|(name, _)| name == server)?;
        self.names.get(place)?.get(index)
    }

    /// The server of a prompt, and the prompt's own name.
    pub(super) fn resolve(&self, name: &str) -> Option<(ServerName, String)> {
        let (place, index) = *self.by_name.get(name)?;
        let (server, list) = self.lists.get(place)?;
        Some((server.clone(), list.key(index, ListKind::Prompts).to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take_all(values: impl IntoIterator<Item = Value>) -> ServerList {
        let (mut list, mut total) = (ServerList::default(), 0);
        for value in values {
            if !list.take(value, ListKind::Resources, &mut total) {
                break;
            }
        }
        list
    }

    #[test]
    fn at_most_ten_thousand_entries_are_listed() {
        let list = take_all((0..1_000_000).map(|number| json!({ "uri": format!("x:{number}") })));
        assert_eq!(list.items.len(), MAX_ITEMS);
        assert!(list.cut.unwrap().contains("too many"));
    }

    #[test]
    fn an_invalid_entry_leaves_the_others() {
        let long = "x".repeat(1_000_000);
        let list = take_all([
            json!({ "uri": format!("x:{long}") }),
            json!({ "uri": "x:large", "description": long }),
            json!("junk"),
            json!({ "uri": 7 }),
            json!({ "uri": "x:good" }),
            json!({ "uri": "x:good", "name": "again" }),
        ]);
        assert_eq!(list.items.len(), 1);
        assert_eq!(list.key(0, ListKind::Resources), "x:good");
        assert!(list.cut.is_some());
    }
}
