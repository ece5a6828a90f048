//! Tools that a server has in groups (draft extension `io.modelcontextprotocol/groups`), read within limits.

use std::collections::{HashSet, VecDeque};

use serde_json::{Value, json};
use toolgate_mcp::{client::RawConnection, json_size, methods};

const MAX_GROUPS: usize = 200;
const MAX_DEPTH: usize = 8;
const MAX_PAGES: usize = 20;
const MAX_NAME_BYTES: usize = 64;

/// The tools of all groups, and whether nothing is missing. At most so many tools and bytes.
pub(super) async fn crawl(
    connection: &RawConnection,
    (mut tools_left, mut bytes_left): (usize, usize),
) -> (Vec<Value>, bool) {
    let mut is_whole = true;
    let mut tools = Vec::new();
    // A group that was seen is not read again, so that circles end.
    let mut seen: HashSet<String> = HashSet::new();
    let mut open: VecDeque<(String, usize)> = VecDeque::new();
    let mut add = |groups: Option<&Value>, depth: usize, open: &mut VecDeque<(String, usize)>| {
        let mut all_fit = true;
        for group in groups.and_then(Value::as_array).into_iter().flatten() {
            let name = group.get("name").and_then(Value::as_str);
            let Some(name) = name.filter(|name| name.len() <= MAX_NAME_BYTES) else {
                all_fit = false;
                continue;
            };
            if seen.contains(name) {
                continue;
            }
            if seen.len() == MAX_GROUPS || depth > MAX_DEPTH {
                all_fit = false;
                break;
            }
            seen.insert(name.to_owned());
            open.push_back((name.to_owned(), depth));
        }
        all_fit
    };
    let mut cursor: Option<Value> = None;
    for page in 1.. {
        let params = cursor.take().map(|cursor| json!({ "cursor": cursor }));
        let Some(listed) = ask(connection, methods::GROUPS_LIST, params).await else {
            return (tools, false);
        };
        is_whole &= add(listed.get("groups"), 1, &mut open);
        cursor = listed.get("nextCursor").filter(|next| next.is_string()).cloned();
        if cursor.is_none() {
            break;
        }
        if page == MAX_PAGES {
            is_whole = false;
            break;
        }
    }
    while let Some((name, depth)) = open.pop_front() {
        let Some(group) = ask(connection, methods::GROUPS_GET, Some(json!({ "name": name }))).await
        else {
            is_whole = false;
            continue;
        };
        let Some(contents) = group.get("contents") else { continue };
        is_whole &= add(contents.get("groups"), depth + 1, &mut open);
        for tool in contents.get("tools").and_then(Value::as_array).into_iter().flatten() {
            let size = json_size(tool);
            if tools_left == 0 || size > bytes_left {
                return (tools, false);
            }
            (tools_left, bytes_left) = (tools_left - 1, bytes_left - size);
            tools.push(tool.clone());
        }
    }
    (tools, is_whole)
}

async fn ask(connection: &RawConnection, method: &str, params: Option<Value>) -> Option<Value> {
    let mut request = connection.begin(Value::Null, method, params).ok()?;
    request.response().await.ok()
}
