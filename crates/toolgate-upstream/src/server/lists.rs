//! What the instances of a server list, and which sessions see it.
//!
//! Most instances of a server list the same tools. Where they do not, a session sees what its own instance lists. The
//! catalog has the tools of all instances; for a name with several definitions it has that of the first instance. So a
//! session whose instance has another definition for it does not see the tool.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;
use toolgate_catalog::Fingerprint;

use crate::{handshake::Handshake, input_handler::ClientKey, listing::Listing};

/// The number of the first instance.
pub(super) const FIRST: u64 = 0;

/// The lists of the instances of one server.
#[derive(Debug)]
pub(super) struct InstanceLists {
    lists: Mutex<Lists>,
    /// How many servers have instances that list different tools.
    differing: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct Lists {
    /// By the numbers of the instances.
    all: BTreeMap<u64, Arc<InstanceList>>,
    /// The instances that clients use beside the first, by the numbers of the clients.
    users: HashMap<u64, (ClientKey, u64)>,
    differ: bool,
}

#[derive(Debug)]
struct InstanceList {
    fingerprint: Fingerprint,
    handshake: Handshake,
    listing: Listing,
    tools: HashMap<Arc<str>, Fingerprint>,
}

impl InstanceLists {
    pub(super) fn new(differing: Arc<AtomicUsize>) -> Self {
        Self { lists: Mutex::default(), differing }
    }

    /// Notes what an instance lists. Returns what all of them list, with the handshake of the first.
    pub(super) fn add(
        &self,
        instance: u64,
        handshake: &Handshake,
        listing: Listing,
    ) -> (Handshake, Listing) {
        let fingerprint = Fingerprint::of_list(&listing.definitions);
        let tools = listing.definitions.iter();
        let tools = tools.map(|tool| (Arc::from(&**tool.name()), tool.fingerprint())).collect();
        let handshake = handshake.clone();
        let list = InstanceList { fingerprint, handshake, listing, tools };
        let mut lists = self.lists.lock();
        lists.all.insert(instance, Arc::new(list));
        self.compare(&mut lists);
        let merged = lists.merged();
        merged.unwrap_or_else(|| unreachable!("one was added"))
    }

    /// Forgets an instance that has ended. Returns what the others list, if that is something else.
    pub(super) fn remove(&self, instance: u64) -> Option<(Handshake, Listing)> {
        let mut lists = self.lists.lock();
        lists.users.retain(|_, (_, used)| *used != instance);
        lists.all.remove(&instance)?;
        let did_differ = lists.differ;
        self.compare(&mut lists);
        did_differ.then(|| lists.merged()).flatten()
    }

    /// Whether instances list different tools.
    pub(super) fn differ(&self) -> bool {
        self.lists.lock().differ
    }

    /// Notes which instance a client uses. Returns whether the client may see other tools than before.
    pub(super) fn note_user(&self, client: &ClientKey, instance: u64) -> bool {
        let mut lists = self.lists.lock();
        if instance == FIRST {
            return lists.users.remove(&client.number).is_some() && lists.differ;
        }
        // Seldom enough, and often enough that those that are gone are never the most for long.
        if lists.users.len().is_power_of_two() {
            lists.users.retain(|_, (client, _)| !client.gone.is_cancelled());
        }
        let before = lists.users.insert(client.number, (client.clone(), instance));
        before.is_none_or(|(_, before)| before != instance) && lists.differ
    }

    /// Whether the instance that a client uses lists a tool with this definition.
    pub(super) fn offers(
        &self,
        client: Option<&ClientKey>,
        tool: &str,
        definition: Fingerprint,
    ) -> bool {
        let lists = self.lists.lock();
        let used = client.and_then(|client| lists.users.get(&client.number));
        let own = used.and_then(|(_, instance)| lists.all.get(instance));
        let list = own.or_else(|| lists.all.get(&FIRST));
        // Before the first list the catalog has what the cache remembers.
        list.is_none_or(|list| list.tools.get(tool) == Some(&definition))
    }

    fn compare(&self, lists: &mut Lists) {
        let mut fingerprints = lists.all.values().map(|list| list.fingerprint);
        let first = fingerprints.next();
        let differ = fingerprints.any(|other| Some(other) != first);
        match (lists.differ, differ) {
            (false, true) => {
                self.differing.fetch_add(1, Ordering::Relaxed);
            }
            (true, false) => {
                self.differing.fetch_sub(1, Ordering::Relaxed);
            }
            _ => {}
        }
        lists.differ = differ;
    }
}

impl Drop for InstanceLists {
    fn drop(&mut self) {
        if self.lists.get_mut().differ {
            self.differing.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Lists {
    /// All tools, each with its first definition. `None` if there is no list.
    fn merged(&self) -> Option<(Handshake, Listing)> {
        let (_, first) = self.all.first_key_value()?;
        let mut merged = first.listing.clone();
        let mut names: HashSet<_> =
            merged.definitions.iter().map(|tool| Arc::clone(tool.name())).collect();
        for list in self.all.values().filter(|list| list.fingerprint != first.fingerprint) {
            let new = list.listing.definitions.iter();
            let new = new.filter(|tool| names.insert(Arc::clone(tool.name())));
            merged.definitions.extend(new.cloned());
        }
        Some((first.handshake.clone(), merged))
    }
}
