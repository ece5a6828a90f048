//! The tools of the server: which of them are visible, and which want arguments as HTTP headers.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde_json::{Value, json};
use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;
use toolgate_broker::RawChannel;
use toolgate_catalog::{Definition, Fingerprint, read_list};
use toolgate_host::PassthroughGuard;
use toolgate_mcp::methods;
use toolgate_upstream::RawRequest;

use super::{changes::ListChanges, connection};

/// The server's tool list. It is read when it is first needed, and again after each change.
#[derive(Debug)]
pub(crate) struct ToolList {
    connection: Arc<dyn RawChannel>,
    guard: Arc<PassthroughGuard>,
    cache: Mutex<Option<CachedTools>>,
    changes: ListChanges,
}

#[derive(Debug, Default)]
struct CachedTools {
    /// The input schemas of tools that want arguments as headers.
    header_schemas: HashMap<String, Value>,
    /// The visible tools, by name.
    visible: HashMap<Arc<str>, Arc<Definition>>,
    /// Whether each known definition is visible.
    verdicts: HashMap<Fingerprint, bool>,
    /// The tools with several definitions, none of which is visible.
    ambiguous: HashSet<String>,
}

const MAX_PAGES: usize = 50;
/// With more verdicts than this, the server lists other definitions each time, and the cache is cleared.
const MAX_VERDICTS: usize = 20_000;

impl ToolList {
    pub(crate) fn new(
        connection: Arc<dyn RawChannel>,
        guard: Arc<PassthroughGuard>,
        changes: watch::Receiver<u64>,
    ) -> Self {
        let changes = ListChanges::new(&guard, changes);
        Self { connection, guard, cache: Mutex::default(), changes }
    }

    /// The input schema of a tool that wants arguments as headers.
    pub(crate) async fn header_schema(&self, tool: &str) -> Option<Value> {
        let mut cache = self.cache.lock().await;
        self.current(&mut cache).await.header_schemas.get(tool).cloned()
    }

    /// The definition of a visible tool.
    pub(crate) async fn find(&self, name: &str) -> Option<Arc<Definition>> {
        let mut cache = self.cache.lock().await;
        self.current(&mut cache).await.visible.get(name).cloned()
    }

    /// Removes hidden tools from a list. Each entry is judged as it is, because a server may list other
    /// definitions than before.
    pub(crate) async fn filter(&self, entries: &mut Vec<Value>) {
        let mut cache = self.cache.lock().await;
        let tools = self.current(&mut cache).await;
        for name in ambiguous(entries) {
            tools.visible.remove(name.as_str());
            tools.ambiguous.insert(name);
        }
        entries.retain(|entry| tools.is_visible(entry, &self.guard));
    }

    async fn current<'c>(&self, cache: &'c mut Option<CachedTools>) -> &'c mut CachedTools {
        if self.changes.take()
            || cache.as_ref().is_some_and(|tools| tools.verdicts.len() > MAX_VERDICTS)
        {
            *cache = None;
        }
        if cache.is_none() {
            let (connection, method) = (&*self.connection, methods::TOOLS_LIST);
            let (tools, _) = read_pages(&self.guard, connection, method, "tools").await;
            *cache = Some(CachedTools::new(tools, &self.guard));
        }
        cache.get_or_insert_default()
    }
}

/// Reads a list of the server as far as possible. Also returns whether that is all of it.
pub(crate) async fn read_pages(
    guard: &PassthroughGuard,
    connection: &dyn RawChannel,
    method: &str,
    field: &str,
) -> (Vec<Value>, bool) {
    let mut list = Vec::new();
    let mut cursor: Option<Value> = None;
    for _ in 0..MAX_PAGES {
        let params = cursor.as_ref().map_or(json!({}), |cursor| json!({ "cursor": cursor }));
        let request = RawRequest {
            key: Value::Null,
            method: method.to_owned(),
            params: Some(params),
            cancel: CancellationToken::new(),
            hold: None,
        };
        let page = connection::send_unjudged(guard, connection, request).await;
        let Ok(mut page) = page else { return (list, false) };
        if let Some(Value::Array(entries)) = page.get_mut(field).map(Value::take) {
            list.extend(entries);
        }
        cursor = page.get("nextCursor").filter(|cursor| cursor.is_string()).cloned();
        if cursor.is_none() {
            return (list, true);
        }
    }
    (list, false)
}

impl CachedTools {
    fn new(tools: Vec<Value>, guard: &PassthroughGuard) -> Self {
        let mut cached = Self::default();
        if guard.judges() {
            // The whole list at once: only so the guard can tell which tools of a known server are new.
            let (mut definitions, _) = read_list(&tools);
            cached.ambiguous = ambiguous(&tools).collect();
            let hidden = definitions.iter().map(|definition| (definition.fingerprint(), false));
            cached.verdicts = hidden.collect();
            guard.filter(&mut definitions);
            for definition in definitions {
                cached.verdicts.insert(definition.fingerprint(), true);
                cached.visible.insert(Arc::clone(definition.name()), Arc::new(definition));
            }
        }
        for mut tool in tools {
            let Some(schema) = tool.get_mut("inputSchema").map(Value::take) else { continue };
            if let Some(name) = tool.get("name").and_then(Value::as_str)
                && schema.to_string().contains("x-mcp-header")
            {
                cached.header_schemas.insert(name.to_owned(), schema);
            }
        }
        cached
    }

    fn is_visible(&mut self, entry: &Value, guard: &PassthroughGuard) -> bool {
        // A definition that cannot be parsed cannot be judged.
        let Ok(definition) = Definition::from_value(entry) else { return false };
        let (name, fingerprint) = (Arc::clone(definition.name()), definition.fingerprint());
        if self.ambiguous.contains(&*name) {
            return false;
        }
        if let Some(is_visible) = self.verdicts.get(&fingerprint) {
            return *is_visible;
        }
        let mut definitions = vec![definition];
        guard.filter(&mut definitions);
        let visible = definitions.pop().map(Arc::new);
        let is_visible = visible.is_some();
        match visible {
            Some(definition) => self.visible.insert(name, definition),
            None => self.visible.remove(&name),
        };
        self.verdicts.insert(fingerprint, is_visible);
        is_visible
    }
}

/// The names of tools with several definitions in a list.
fn ambiguous(entries: &[Value]) -> impl Iterator<Item = String> {
    let mut seen: HashMap<&str, Fingerprint> = HashMap::new();
    let mut found = HashSet::new();
    for entry in entries {
        let Some(name) = entry.get("name").and_then(Value::as_str) else { continue };
        let fingerprint = Fingerprint::of(entry);
        if *seen.entry(name).or_insert(fingerprint) != fingerprint {
            found.insert(name.to_owned());
        }
    }
    found.into_iter()
}
