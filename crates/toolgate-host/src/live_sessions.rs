//! The sessions of a host that exist now, for those who look from outside.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::watch;

use crate::host::ToolHost;

/// What one session was shown, has found and has saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LiveSession {
    /// The id of the session.
    pub id: Arc<str>,
    /// The caller, with the name that the client gives itself.
    pub caller: Arc<str>,
    /// The mode; `None` before the first request.
    pub mode: Option<String>,
    /// Why the session has this mode.
    pub reason: Option<String>,
    /// How many searches it has made.
    pub searches: u64,
    /// How many calls it has made.
    pub calls: u64,
    /// The tools that its searches found, each once.
    pub found: Vec<String>,
    /// The tools that were added to its list.
    pub loaded: Vec<String>,
    /// How many definitions its list has, and their tokens.
    pub listed_tools: usize,
    /// The tokens of its list.
    pub listed_tokens: u64,
    /// How many tools the host has.
    pub all_tools: usize,
    /// The tokens of a list of all of them.
    pub all_tokens: u64,
    /// The tokens of results that its model did not have to read: they were cut, or a script has read them. They are
    /// estimated, at four bytes a token.
    pub saved_results: u64,
}

impl LiveSession {
    /// A session that has done nothing yet.
    pub fn new(id: &Arc<str>, caller: &Arc<str>) -> Self {
        Self {
            id: Arc::clone(id),
            caller: Arc::clone(caller),
            mode: None,
            reason: None,
            searches: 0,
            calls: 0,
            found: Vec::new(),
            loaded: Vec::new(),
            listed_tools: 0,
            listed_tokens: 0,
            all_tools: 0,
            all_tokens: 0,
            saved_results: 0,
        }
    }

    /// Forgets what was found and loaded.
    fn forget(&mut self) {
        self.found.clear();
        self.loaded.clear();
        self.searches = 0;
    }
}

/// The sessions of a host.
#[derive(Debug, Default)]
pub(crate) struct LiveSessions(Mutex<BTreeMap<Arc<str>, Arc<LiveRecord>>>);

/// The record of one session. It is removed when the session ends.
#[derive(Debug)]
pub(crate) struct LiveRecord {
    state: Mutex<LiveSession>,
    is_reset: AtomicBool,
    list_changes: watch::Sender<u64>,
}

/// How many names are kept.
const MAX_NAMES: usize = 200;
/// A token of ordinary text has about so many bytes.
const BYTES_A_TOKEN: u64 = 4;

impl LiveSessions {
    /// Adds a session. `list_changes` tells its client to read the list again.
    pub(crate) fn add(
        &self,
        id: &Arc<str>,
        caller: &Arc<str>,
        list_changes: watch::Sender<u64>,
    ) -> Arc<LiveRecord> {
        let session = LiveSession::new(id, caller);
        let is_reset = AtomicBool::new(false);
        let record = Arc::new(LiveRecord { state: Mutex::new(session), is_reset, list_changes });
        self.0.lock().insert(Arc::clone(id), Arc::clone(&record));
        record
    }

    pub(crate) fn remove(&self, id: &str) {
        self.0.lock().remove(id);
    }
}

impl LiveRecord {
    pub(crate) fn note(&self, change: impl FnOnce(&mut LiveSession)) {
        change(&mut self.state.lock());
    }

    /// Notes bytes of results that the model did not have to read.
    pub(crate) fn saved(&self, bytes: u64) {
        self.state.lock().saved_results += bytes / BYTES_A_TOKEN;
    }

    /// Notes what a search found.
    pub(crate) fn found(&self, names: impl Iterator<Item = String>) {
        let mut state = self.state.lock();
        state.searches += 1;
        for name in names {
            if state.found.len() < MAX_NAMES && !state.found.contains(&name) {
                state.found.push(name);
            }
        }
    }

    /// Whether somebody has asked for a reset since the last time.
    pub(crate) fn take_reset(&self) -> bool {
        let is_reset = self.is_reset.swap(false, Ordering::AcqRel);
        if is_reset {
            self.state.lock().forget();
        }
        is_reset
    }
}

impl ToolHost {
    /// The sessions that exist now. Counts the tokens of all tools, which takes time at the first use.
    pub fn live_sessions(&self) -> Vec<LiveSession> {
        let records = self.inner.live_sessions.0.lock();
        let shown = |record: &Arc<LiveRecord>| {
            let mut state = record.state.lock().clone();
            // The session has nothing loaded when its client asks the next time.
            if record.is_reset.load(Ordering::Acquire) {
                state.forget();
            }
            state
        };
        let mut sessions: Vec<LiveSession> = records.values().map(shown).collect();
        drop(records);
        if !sessions.is_empty() {
            let catalog = self.catalog().read();
            let (tools, tokens) = catalog.tools().fold((0, 0), |(tools, tokens), tool| {
                (tools + 1, tokens + u64::from(tool.definition.tokens()))
            });
            for session in &mut sessions {
                (session.all_tools, session.all_tokens) = (tools, tokens);
            }
        }
        sessions
    }

    /// Makes a session forget what it has found and loaded. A session with a constant list keeps its
    /// list. Returns whether there is such a session.
    pub fn reset_session(&self, id: &str) -> bool {
        let record = self.inner.live_sessions.0.lock().get(id).cloned();
        let Some(record) = record else { return false };
        record.is_reset.store(true, Ordering::Release);
        // The client reads the list again, and the session resets itself then.
        record.list_changes.send_modify(|count| *count += 1);
        true
    }
}
