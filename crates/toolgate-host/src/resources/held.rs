//! Which prompts, resources and templates are held back.

use std::sync::Arc;

use toolgate_catalog::ServerName;
use toolgate_policy::definitions::{ServerEntry, is_only_named_by};
use toolgate_upstream::{CallOptions, StateKind};

use super::{
    ListKind,
    lists::{ListSource, ServerList},
    requests,
};
use crate::{
    entry_filter::{HeldEntries, HeldReason},
    host::ToolHost,
};

/// An entry of a server, and whether it is held back.
#[derive(Debug, Clone)]
pub struct JudgedEntry {
    /// The entry.
    pub entry: ServerEntry,
    /// Why nobody sees it; `None` if it is used.
    pub held: Option<HeldReason>,
}

impl ToolHost {
    /// The instructions, prompts, resources and templates of all connected servers, without those that
    /// the policy denies. Asks the servers for lists that are not current.
    pub async fn entries(&self) -> Vec<JudgedEntry> {
        let mut all = Vec::new();
        let servers: Vec<ServerName> =
            self.catalog().read().servers().map(|entry| entry.name.clone()).collect();
        for server in &servers {
            let text = requests::sent_instructions(self, server).unwrap_or_default();
            if !text.is_empty() {
                let held = self.inner.live_catalog.filter().hold_instructions(server, &text);
                all.push(JudgedEntry { entry: ServerEntry::instructions(server, &text), held });
            }
        }
        for kind in ListKind::ALL {
            let options = CallOptions::default();
            let lists = requests::lists_of(self, kind, &options, &[StateKind::Ready]).await;
            let Ok(lists) = lists else { continue };
            for (server, known) in lists {
                if requests::is_hidden(self, &server, kind) {
                    continue;
                }
                let held = held_in(self, &server, kind, &known.list).await;
                all.extend(entries_of(&server, kind, &known.list).map(|entry| {
                    let held = held.get(&entry.key).cloned();
                    JudgedEntry { entry, held }
                }));
            }
        }
        all
    }
}

/// The entries of a list that are held back.
pub(super) async fn held_in(
    host: &ToolHost,
    server: &ServerName,
    kind: ListKind,
    list: &Arc<ServerList>,
) -> Arc<HeldEntries> {
    let filter = host.inner.live_catalog.filter();
    if !filter.judges_entries() || !list.is_listed {
        return Arc::default();
    }
    let revision = filter.revision();
    if let Some((at, held)) = &*list.held.lock()
        && *at == revision
    {
        return Arc::clone(held);
    }
    let (server, judged) = (server.clone(), Arc::clone(list));
    // Long lists take a while, and new pins are written to a file.
    let judging = tokio::task::spawn_blocking(move || {
        let entries: Vec<ServerEntry> = entries_of(&server, kind, &judged).collect();
        filter.hold_entries(&server, kind.entries(), &entries, judged.cut.is_none())
    });
    let Ok(held) = judging.await.map(Arc::new) else { return Arc::default() };
    *list.held.lock() = Some((revision, Arc::clone(&held)));
    held
}

/// Whether a resource is held back, or is not listed and only named by templates that are.
pub(super) async fn is_resource_held(host: &ToolHost, source: &ListSource, uri: &str) -> bool {
    let Some((held, list)) = judged_list(host, source, ListKind::Resources).await else {
        return false;
    };
    if held.contains_key(uri) || list.keys.contains(uri) {
        return held.contains_key(uri);
    }
    let Some((held, list)) = judged_list(host, source, ListKind::Templates).await else {
        return false;
    };
    let others = list.keys.iter().map(|key| &**key).filter(|key| !held.contains_key(*key));
    is_only_named_by(held.keys().map(|key| &**key), others, uri)
}

/// Whether an entry is held back. The list of its server is requested if it is not current.
pub(super) async fn is_held(
    host: &ToolHost,
    source: &ListSource,
    kind: ListKind,
    key: &str,
) -> bool {
    let judged = judged_list(host, source, kind).await;
    judged.is_some_and(|(held, _)| held.contains_key(key))
}

/// The current list of a server, and what of it is held back; `None` if nothing ever is.
async fn judged_list(
    host: &ToolHost,
    source: &ListSource,
    kind: ListKind,
) -> Option<(Arc<HeldEntries>, Arc<ServerList>)> {
    let server = &source.server;
    if !host.inner.live_catalog.filter().judges_entries() {
        return None;
    }
    // The request that this is about needs the connection too.
    let state = host.servers().state(server.as_str()).map(|state| state.kind);
    if state != Some(StateKind::Ready) {
        host.connect(server.as_str()).await;
    }
    let lists = &host.inner.resources.lists;
    if host.declares(server, kind) != Some(false) {
        lists.refresh(host.broker(), std::slice::from_ref(source), kind).await;
    }
    let list = lists.known(source, kind).list;
    Some((held_in(host, server, kind, &list).await, list))
}

fn entries_of(
    server: &ServerName,
    kind: ListKind,
    list: &ServerList,
) -> impl Iterator<Item = ServerEntry> {
    let values = list.items.iter().map(|item| item.value.clone());
    values.filter_map(move |value| ServerEntry::new(server, kind.entries(), value))
}
