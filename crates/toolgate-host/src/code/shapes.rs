//! Learns the shapes of results from the results themselves: for tools without an output schema, and for
//! what the others leave open.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use toolgate_bindings::{Shape, wraps_result};
use toolgate_catalog::{Fingerprint, ServerName, Tool};
use toolgate_store::ShapeStore;

use super::value::{self, Wrapping};

/// The shapes of results, by server and definition. A changed definition is learned again.
#[derive(Debug)]
pub(crate) struct LearnedShapes {
    known: Mutex<ShapeTable>,
    store: Option<Arc<dyn ShapeStore>>,
    /// Servers at which each caller has their own login: the results of one are nothing for the others.
    private: RwLock<HashSet<ServerName>>,
    /// Serializes the writes, so that the last one wins.
    writing: Arc<Mutex<()>>,
}

#[derive(Debug, Default)]
struct ShapeTable {
    shapes: HashMap<ServerName, BTreeMap<String, Shape>>,
    /// What definitions declare about their results, so that each is read once.
    declared: HashMap<Fingerprint, Option<Wrapping>>,
    loaded: HashSet<ServerName>,
}

/// How many tools of one server are learned.
const MAX_TOOLS: usize = 2_000;
/// How many definitions are remembered.
const MAX_DECLARED: usize = 50_000;

impl LearnedShapes {
    pub(crate) fn new(store: Option<Arc<dyn ShapeStore>>) -> Self {
        let private = RwLock::default();
        Self { known: Mutex::default(), store, private, writing: Arc::default() }
    }

    /// Learns nothing from the results of these servers.
    pub(crate) fn set_private(&self, servers: HashSet<ServerName>) {
        *self.private.write() = servers;
    }

    /// How a tool's declared result is wrapped; `None` if it declares none.
    pub(super) fn declared(&self, tool: &Tool) -> Option<Wrapping> {
        let fingerprint = tool.definition.fingerprint();
        if let Some(declared) = self.known.lock().declared.get(&fingerprint) {
            return *declared;
        }
        let declared = tool
            .definition
            .output_schema()
            .map(|schema| if wraps_result(&schema) { Wrapping::Result } else { Wrapping::None });
        let mut known = self.known.lock();
        if known.declared.len() >= MAX_DECLARED {
            known.declared.clear();
        }
        known.declared.insert(fingerprint, declared);
        declared
    }

    /// The learned shape of a tool's results.
    pub(crate) fn shape(&self, tool: &Tool) -> Option<Shape> {
        let mut known = self.known.lock();
        self.load(&mut known, &tool.id.server);
        known.shapes.get(&tool.id.server)?.get(&key(tool)).cloned()
    }

    /// Learns from the result of a direct call.
    pub(crate) fn learn_from_result(&self, tool: &Tool, result: &Value) {
        if let Some(value) = value::data_of(result, self.declared(tool)) {
            self.learn(tool, &value);
        }
    }

    /// Learns from one more result.
    pub(super) fn learn(&self, tool: &Tool, value: &Value) {
        let server = &tool.id.server;
        if self.private.read().contains(server) {
            return;
        }
        let mut known = self.known.lock();
        self.load(&mut known, server);
        let key = key(tool);
        let before = known.shapes.get(server).and_then(|shapes| shapes.get(&key));
        if before.is_some_and(|shape| shape.allows(value)) {
            return;
        }
        let mut after = before.cloned().unwrap_or_default();
        after.observe(value);
        if before == Some(&after) {
            return;
        }
        let shapes = known.shapes.entry(server.clone()).or_default();
        if shapes.len() >= MAX_TOOLS && !shapes.contains_key(&key) {
            return;
        }
        shapes.insert(key, after);
        let Some(store) = self.store.clone() else { return };
        let text = serde_json::to_string(&shapes).unwrap_or_default();
        drop(known);
        let (server, writing) = (server.clone(), Arc::clone(&self.writing));
        tokio::task::spawn_blocking(move || {
            let _one_at_a_time = writing.lock();
            if let Err(error) = store.save(server.as_str(), &text) {
                tracing::warn!(%server, "what its results look like is not kept: {error}");
            }
        });
    }

    /// Reads the stored shapes of a server, once.
    fn load(&self, known: &mut ShapeTable, server: &ServerName) {
        if !known.loaded.insert(server.clone()) {
            return;
        }
        let text = self.store.as_ref().and_then(|store| store.load(server.as_str()));
        if let Some(shapes) = text.and_then(|text| serde_json::from_str(&text).ok()) {
            known.shapes.insert(server.clone(), shapes);
        }
    }
}

fn key(tool: &Tool) -> String {
    tool.definition.fingerprint().to_string()
}
