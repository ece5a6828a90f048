//! Says what the sessions of a running gateway do, for `toolgate status --live`.

use std::{
    collections::HashMap,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::MissedTickBehavior;
use toolgate_gateway::PassthroughFactory;
use toolgate_host::LiveSession;
use toolgate_store::{LiveFile, SavedTokens, SavingsFile, Store};

use super::ServedHosts;
use crate::folders;

/// How often it is looked whether something has changed, or somebody has asked for a reset.
const INTERVAL: Duration = Duration::from_millis(500);
/// How often it is noted what was saved; a new session at once.
const NOTED_EVERY: Duration = Duration::from_secs(20);

/// Writes the state of the sessions while the gateway runs. Without a state folder it does nothing.
pub(super) async fn publish(
    store: Option<Store>,
    (config, address): (PathBuf, Option<SocketAddr>),
    hosts: ServedHosts,
    passthrough: Option<Arc<PassthroughFactory>>,
) {
    let saved_file = store.as_ref().map(Store::savings);
    let opened = tokio::task::spawn_blocking(move || store.and_then(|it| it.live().open().ok()));
    let Ok(Some(file)) = opened.await else { return };
    let file = Arc::new(file);
    let mut looks = tokio::time::interval(INTERVAL);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut written = Value::Null;
    let savings = Arc::new(Mutex::new(Savings::default()));
    loop {
        looks.tick().await;
        let (file, config, hosts) = (Arc::clone(&file), config.clone(), hosts.clone());
        let (savings, saved) = (Arc::clone(&savings), saved_file.clone());
        let passed = passthrough.as_ref().map(|it| it.live_sessions()).unwrap_or_default();
        let looked = tokio::task::spawn_blocking(move || {
            savings.lock().note(saved.as_ref(), &hosts);
            look(&file, (&config, address), &hosts, &passed, written)
        });
        written = looked.await.unwrap_or_default();
    }
}

/// What the sessions of this process have saved so far, so that each token is noted once.
#[derive(Default)]
struct Savings {
    /// By session: tokens of definitions and of results.
    noted: HashMap<Arc<str>, (u64, u64)>,
    written: Option<Instant>,
}

impl Savings {
    /// Notes what was saved since the last time. Not often: a line each time would be many.
    fn note(&mut self, file: Option<&SavingsFile>, hosts: &ServedHosts) {
        let Some(file) = file else { return };
        let all: Vec<LiveSession> =
            hosts.all().iter().flat_map(|(_, host)| host.live_sessions()).collect();
        let is_new = |session: &LiveSession| {
            session.listed_tokens > 0 && !self.noted.contains_key(&session.id)
        };
        let is_due = self.written.is_none_or(|at| at.elapsed() >= NOTED_EVERY);
        if !is_due && !all.iter().any(is_new) {
            return;
        }
        let mut saved = SavedTokens::default();
        for session in all.iter().filter(|session| session.listed_tokens > 0) {
            let definitions = session.all_tokens.saturating_sub(session.listed_tokens);
            let known = self.noted.entry(Arc::clone(&session.id)).or_default();
            // The list is read once by a model, however it changes later.
            if known.0 == 0 {
                (saved.definitions, known.0) = (saved.definitions + definitions, definitions);
            }
            saved.results += session.saved_results.saturating_sub(known.1);
            known.1 = known.1.max(session.saved_results);
        }
        self.noted.retain(|id, _| all.iter().any(|session| session.id == *id));
        if saved.definitions + saved.results > 0 {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            saved.time = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
            // What cannot be noted is missing in a plot, and nowhere else.
            let _ = file.append(&saved);
        }
        self.written = Some(Instant::now());
    }
}

/// Resets the sessions that somebody wants to be reset, and writes what has changed. Returns what is
/// written.
fn look(
    file: &LiveFile,
    about: (&Path, Option<SocketAddr>),
    hosts: &ServedHosts,
    passed: &[LiveSession],
    written: Value,
) -> Value {
    let mut reset = Vec::new();
    for (_, host) in hosts.all() {
        for session in host.live_sessions() {
            if file.wants_reset(&session.id) {
                host.reset_session(&session.id);
                reset.push(session.id);
            }
        }
    }
    // A session that is passed through has found nothing.
    let passed_reset = passed.iter().map(|session| &session.id);
    reset.extend(passed_reset.filter(|id| file.wants_reset(id)).cloned());
    let now = state(about, hosts, passed);
    let is_written = now != written && file.write(now.to_string().as_bytes()).is_ok();
    for id in reset {
        file.end_reset(&id);
    }
    if is_written { now } else { written }
}

fn state(
    (config, address): (&Path, Option<SocketAddr>),
    hosts: &ServedHosts,
    passed: &[LiveSession],
) -> Value {
    let hosts = hosts.all();
    let sessions = hosts.iter().flat_map(|(namespace, host)| {
        host.live_sessions().into_iter().map(move |session| {
            let mut session = json!(session);
            session["namespace"] = json!(namespace);
            session
        })
    });
    let sessions = sessions.chain(passed.iter().map(|session| json!(session)));
    let mut state =
        json!({ "config": folders::shown(config), "sessions": sessions.collect::<Vec<_>>() });
    if let Some(address) = address {
        state["address"] = json!(address.to_string());
    }
    state
}
