//! Whether a client learns of changed lists: a list that misses late servers is only for clients that do.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::Value;
use toolgate_host::ClientList;
use toolgate_mcp::JsonObject;

use crate::service::ClientInfo;

/// Clients that list once and end, by the names that they give themselves: the command line of the Inspector, and
/// programs on the Python SDK that set no name. No message tells such a client apart, and over stdio every client gets
/// notifications.
const LIST_ONCE: [&str; 2] = ["inspector-cli", "mcp"];

/// How many `subscriptions/listen` requests of a modern client wait for the change of each list.
#[derive(Debug, Default)]
pub(super) struct OpenListens([AtomicUsize; 3]);

/// Counts one such request while it is open.
#[derive(Debug)]
pub(super) struct OpenListen<'a> {
    listens: &'a OpenListens,
    lists: Vec<ClientList>,
}

const KEYS: [(ClientList, &str); 3] = [
    (ClientList::Tools, "toolsListChanged"),
    (ClientList::Resources, "resourcesListChanged"),
    (ClientList::Prompts, "promptsListChanged"),
];

impl OpenListens {
    /// Counts a request with these parameters.
    pub(super) fn open(&self, params: &JsonObject) -> OpenListen<'_> {
        let filter = params.get("notifications");
        let wants =
            |key: &str| filter.and_then(|filter| filter.get(key)) == Some(&Value::Bool(true));
        let lists = KEYS.into_iter().filter(|(_, key)| wants(key)).map(|(list, _)| list).collect();
        let listen = OpenListen { listens: self, lists };
        for list in &listen.lists {
            self.count(*list).fetch_add(1, Ordering::Relaxed);
        }
        listen
    }

    fn count(&self, list: ClientList) -> &AtomicUsize {
        let [tools, resources, prompts] = &self.0;
        match list {
            ClientList::Tools => tools,
            ClientList::Resources => resources,
            ClientList::Prompts => prompts,
        }
    }
}

impl Drop for OpenListen<'_> {
    fn drop(&mut self) {
        for list in &self.lists {
            self.listens.count(*list).fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Whether a client learns of the change of a list now: a legacy client over its pipe or its general stream, a modern
/// client by an open `subscriptions/listen`.
pub(super) fn of(
    client: &ClientInfo,
    listens: Arc<OpenListens>,
) -> impl Fn(ClientList) -> bool + Send + Sync + use<> {
    let name = client.info.get("name").and_then(Value::as_str).unwrap_or_default();
    let lists_once = LIST_ONCE.contains(&name);
    let channel = client.channel.clone();
    move |list| match &channel {
        Some(channel) => !lists_once && channel.is_read(),
        None => listens.count(list).load(Ordering::Relaxed) > 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_listen_counts_while_it_is_open() {
        let listens = OpenListens::default();
        let count = |list| listens.count(list).load(Ordering::Relaxed);
        let params =
            json!({ "notifications": { "toolsListChanged": true, "promptsListChanged": 1 } });
        let open = listens.open(params.as_object().unwrap());
        assert_eq!([count(ClientList::Tools), count(ClientList::Prompts)], [1, 0]);
        drop(open);
        assert_eq!(count(ClientList::Tools), 0);
    }
}
