//! All that one server lists of a kind, within bounds.

use std::collections::HashSet;

use serde_json::{Value, json};
use toolgate_catalog::ServerName;
use toolgate_mcp::codes::METHOD_NOT_FOUND;
use toolgate_upstream::{CallError, CallOptions, Upstream};

use super::kind::Kind;

/// What a server listed.
#[derive(Debug, Default)]
pub(super) struct List {
    /// The entries, in the server's order.
    pub(super) items: Vec<Item>,
    /// Their URIs or names.
    pub(super) keys: HashSet<Box<str>>,
    /// What of it is missing, and why.
    pub(super) cut: Option<String>,
}

/// An entry, as the server sent it.
#[derive(Debug)]
pub(super) struct Item {
    /// The entry.
    pub(super) value: Value,
    /// How long it is as text.
    pub(super) bytes: usize,
}

const MAX_PAGES: usize = 200;
const MAX_ITEMS: usize = 10_000;
/// What one server's list may take, as text.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// What one entry may take. Icons are data in it at times.
const MAX_ITEM_BYTES: usize = 128 * 1024;
/// The longest URI. A name has less.
const MAX_KEY_BYTES: usize = 8 * 1024;
/// Why a server that is not there lists nothing.
pub(super) const NOT_CONNECTED: &str = "it is not connected";

impl List {
    /// The text that tells this entry from others.
    pub(super) fn key(&self, index: usize, kind: Kind) -> &str {
        let value = self.items.get(index).map(|item| &item.value);
        value.and_then(|value| value.get(kind.key())?.as_str()).unwrap_or_default()
    }

    /// Takes an entry; says whether there is room for more.
    fn take(&mut self, value: Value, kind: Kind, total: &mut usize) -> bool {
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
        // Where two are one, the first is used.
        if self.keys.insert(key) {
            *total += bytes;
            self.items.push(Item { value, bytes });
        }
        true
    }

    fn leave_out(&mut self, what: &str) -> bool {
        self.cut = Some(format!("left out: {what}"));
        true
    }
}

/// Asks a server for everything of a kind. A server that does not know the method has nothing.
pub(super) async fn list_all(
    upstream: &Upstream,
    server: &ServerName,
    kind: Kind,
) -> Result<List, String> {
    let mut list = List::default();
    let mut total = 0;
    let mut cursor: Option<String> = None;
    let mut seen = HashSet::new();
    for _ in 0..MAX_PAGES {
        let params = cursor.as_ref().map(|cursor| json!({ "cursor": cursor }));
        let answer = upstream.request(server, kind.method(), params, CallOptions::default()).await;
        let mut page = match answer {
            Ok(page) => page,
            Err(CallError::Refused { error, .. }) if error.code == METHOD_NOT_FOUND => {
                return Ok(list);
            }
            // What came so far is worth more than nothing.
            Err(error) if !list.items.is_empty() => {
                list.cut = Some(error.to_string());
                return Ok(list);
            }
            Err(CallError::NotConnected { .. }) => return Err(NOT_CONNECTED.to_owned()),
            Err(error) => return Err(error.to_string()),
        };
        let Some(Value::Array(entries)) = page.get_mut(kind.field()).map(Value::take) else {
            return Err(format!("its answer to {} has no list", kind.method()));
        };
        for entry in entries {
            if !list.take(entry, kind, &mut total) {
                return Ok(list);
            }
        }
        cursor = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
        let Some(next) = &cursor else { return Ok(list) };
        // A cursor that leads back to itself would be followed for ever.
        if next.len() > MAX_KEY_BYTES || !seen.insert(next.clone()) {
            list.leave_out("pages that lead in a circle");
            return Ok(list);
        }
    }
    list.leave_out("pages after the first: there are too many");
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take_all(values: impl IntoIterator<Item = Value>) -> List {
        let (mut list, mut total) = (List::default(), 0);
        for value in values {
            if !list.take(value, Kind::Resources, &mut total) {
                break;
            }
        }
        list
    }

    #[test]
    fn a_million_entries_are_ten_thousand() {
        let list = take_all((0..1_000_000).map(|number| json!({ "uri": format!("x:{number}") })));
        assert_eq!(list.items.len(), MAX_ITEMS);
        assert!(list.cut.unwrap().contains("too many"));
    }

    #[test]
    fn what_is_too_large_or_no_entry_costs_itself_alone() {
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
        assert_eq!(list.key(0, Kind::Resources), "x:good");
        assert!(list.cut.is_some());
    }
}
