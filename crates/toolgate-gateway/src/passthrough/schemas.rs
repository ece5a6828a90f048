//! Which arguments a server's tools want repeated as headers.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Value, json};
use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;
use toolgate_upstream::RawRequest;

use super::wire::Wire;

/// The schemas of such tools, read once and again after each change.
#[derive(Debug)]
pub(crate) struct Schemas {
    known: Mutex<Option<HashMap<String, Value>>>,
    changes: parking_lot::Mutex<watch::Receiver<u64>>,
}

/// Pages of a list that are read.
const PAGES: usize = 50;

impl Schemas {
    pub(crate) fn new(changes: watch::Receiver<u64>) -> Self {
        Self { known: Mutex::default(), changes: parking_lot::Mutex::new(changes) }
    }

    /// The schema of a tool, if it wants headers.
    pub(crate) async fn of(&self, tool: &str, line: &Arc<dyn Wire>) -> Option<Value> {
        let mut known = self.known.lock().await;
        let stale = {
            let mut changes = self.changes.lock();
            let stale = changes.has_changed().unwrap_or_default();
            changes.mark_unchanged();
            stale
        };
        if stale {
            *known = None;
        }
        if known.is_none() {
            *known = Some(read(line).await);
        }
        known.as_ref()?.get(tool).cloned()
    }
}

async fn read(line: &Arc<dyn Wire>) -> HashMap<String, Value> {
    let mut found = HashMap::new();
    for mut tool in list(line).await {
        let Some(schema) = tool.get_mut("inputSchema").map(Value::take) else { continue };
        if let Some(name) = tool.get("name").and_then(Value::as_str)
            && schema.to_string().contains("x-mcp-header")
        {
            found.insert(name.to_owned(), schema);
        }
    }
    found
}

/// What a server lists as its tools, as far as it can be read.
pub(crate) async fn list(line: &Arc<dyn Wire>) -> Vec<Value> {
    let mut found = Vec::new();
    let mut cursor: Option<Value> = None;
    for _ in 0..PAGES {
        let params = cursor.as_ref().map_or(json!({}), |cursor| json!({ "cursor": cursor }));
        let request = RawRequest {
            key: Value::Null,
            method: "tools/list".to_owned(),
            params: Some(params),
            cancel: CancellationToken::new(),
        };
        let Ok(mut page) = line.request(request).await else { return found };
        if let Some(Value::Array(tools)) = page.get_mut("tools").map(Value::take) {
            found.extend(tools);
        }
        cursor = page.get("nextCursor").filter(|cursor| cursor.is_string()).cloned();
        if cursor.is_none() {
            break;
        }
    }
    found
}
