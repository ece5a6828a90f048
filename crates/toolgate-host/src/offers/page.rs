//! A part of the lists of all servers, as a client gets it.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use serde_json::{Map, Value, json};
use toolgate_catalog::ServerName;

use super::{kind::Kind, shelf::Known};

/// Where a page begins: an entry of a server. Other servers' changes do not move it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cursor {
    server: ServerName,
    index: usize,
}

/// The key in `_meta` of a list that says which servers' entries are missing, and why.
const INCOMPLETE: &str = "toolgate/incomplete";
const PAGE_ITEMS: usize = 500;
/// Large entries come in smaller pages.
const PAGE_BYTES: usize = 2 * 1024 * 1024;
/// The most of a problem that is told.
const PROBLEM_CHARACTERS: usize = 300;

impl Cursor {
    /// The cursor as clients send it back; `None` for what we never gave.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (server, index): (String, usize) =
            serde_json::from_slice(&BASE64.decode(text).ok()?).ok()?;
        Some(Self { server: server.into(), index })
    }

    fn write(&self) -> String {
        BASE64.encode(json!([self.server, self.index]).to_string())
    }
}

/// The result of a list, from a cursor on. `rename` makes an entry of a server ours, or says that it is
/// left out. `None` where the cursor's server is gone.
pub(super) fn page(
    kind: Kind,
    lists: &[(ServerName, Known)],
    from: Option<&Cursor>,
    mut rename: impl FnMut(&ServerName, usize, &mut Value) -> bool,
) -> Option<Value> {
    let first = match from {
        Some(cursor) => lists.iter().position(|(server, _)| *server == cursor.server)?,
        None => 0,
    };
    let (mut items, mut bytes, mut next) = (Vec::new(), 0, None);
    'servers: for (place, (server, known)) in lists.iter().enumerate().skip(first) {
        let start = from.filter(|_| place == first).map_or(0, |cursor| cursor.index);
        for (index, item) in known.list.items.iter().enumerate().skip(start) {
            let mut value = item.value.clone();
            if !rename(server, index, &mut value) {
                continue;
            }
            bytes += item.bytes;
            if items.len() == PAGE_ITEMS || (bytes > PAGE_BYTES && !items.is_empty()) {
                next = Some(Cursor { server: server.clone(), index });
                break 'servers;
            }
            items.push(value);
        }
    }
    let mut result = json!({ kind.field(): items });
    if let Some(next) = next {
        result["nextCursor"] = json!(next.write());
    }
    let problems: Map<String, Value> = lists
        .iter()
        .filter_map(|(server, known)| Some((server, known.problem.as_ref()?)))
        .map(|(server, problem)| {
            let problem: String = problem.chars().take(PROBLEM_CHARACTERS).collect();
            (server.to_string(), json!(problem))
        })
        .collect();
    if !problems.is_empty() {
        result["_meta"] = json!({ INCOMPLETE: problems });
    }
    Some(result)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::offers::listing::{Item, List};

    fn known(uris: impl Iterator<Item = String>, bytes: usize) -> Known {
        let items = uris.map(|uri| Item { value: json!({ "uri": uri }), bytes }).collect();
        Known { list: Arc::new(List { items, ..List::default() }), problem: None }
    }

    fn walk(lists: &[(ServerName, Known)]) -> Vec<Vec<String>> {
        let (mut pages, mut cursor) = (Vec::new(), None);
        loop {
            let page = page(Kind::Resources, lists, cursor.as_ref(), |_, _, _| true).unwrap();
            let items = page["resources"].as_array().unwrap();
            pages.push(items.iter().map(|item| item["uri"].as_str().unwrap().to_owned()).collect());
            match page.get("nextCursor") {
                Some(next) => cursor = Cursor::read(next.as_str().unwrap()),
                None => return pages,
            }
            assert!(cursor.is_some());
        }
    }

    #[test]
    fn pages_go_through_all_servers_in_order() {
        let lists = [
            ("b".into(), known((0..700).map(|n| format!("b:{n}")), 10)),
            ("empty".into(), known(std::iter::empty(), 0)),
            ("a".into(), known((0..400).map(|n| format!("a:{n}")), 10)),
        ];
        let pages = walk(&lists);
        assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [500, 500, 100]);
        assert_eq!(pages[0][0], "b:0");
        assert_eq!(pages[2][99], "a:399");
    }

    #[test]
    fn large_entries_come_in_smaller_pages_but_always_come() {
        let lists = [("a".into(), known((0..3).map(|n| format!("a:{n}")), PAGE_BYTES + 1))];
        assert_eq!(walk(&lists), [["a:0"], ["a:1"], ["a:2"]]);
    }

    #[test]
    fn a_cursor_that_we_never_gave_is_none() {
        for text in ["", "x", "!", "WyJhIl0", &BASE64.encode("[\"a\", -1]")] {
            assert_eq!(Cursor::read(text), None, "{text}");
        }
        let gone = Cursor { server: "gone".into(), index: 0 };
        assert_eq!(Cursor::read(&gone.write()), Some(gone.clone()));
        assert!(page(Kind::Prompts, &[], Some(&gone), |_, _, _| true).is_none());
    }

    #[test]
    fn what_is_missing_is_said() {
        let mut late = known(std::iter::empty(), 0);
        late.problem = Some("no answer in 3 s".to_owned());
        let result = page(Kind::Prompts, &[("late".into(), late)], None, |_, _, _| true).unwrap();
        assert_eq!(
            result,
            json!({"prompts": [], "_meta": {"toolgate/incomplete": {"late": "no answer in 3 s"}}})
        );
    }
}
