//! Says what the sessions of a running gateway do, for `toolgate status --live`.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::MissedTickBehavior;
use toolgate_store::{LiveFile, Store};

use super::ServedHosts;
use crate::folders;

/// How often it is looked whether something has changed, or somebody has asked for a reset.
const INTERVAL: Duration = Duration::from_millis(500);

/// Writes the state of the sessions while the gateway runs. Without a state folder it does nothing.
pub(super) async fn publish(store: Option<Store>, config: PathBuf, hosts: ServedHosts) {
    let opened = tokio::task::spawn_blocking(move || store.and_then(|it| it.live().open().ok()));
    let Ok(Some(file)) = opened.await else { return };
    let file = Arc::new(file);
    let mut looks = tokio::time::interval(INTERVAL);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut written = Value::Null;
    loop {
        looks.tick().await;
        let (file, config, hosts) = (Arc::clone(&file), config.clone(), hosts.clone());
        let looked = tokio::task::spawn_blocking(move || look(&file, &config, &hosts, written));
        written = looked.await.unwrap_or_default();
    }
}

/// Resets the sessions that somebody wants to be reset, and writes what has changed. Returns what is
/// written.
fn look(file: &LiveFile, config: &Path, hosts: &ServedHosts, written: Value) -> Value {
    for (_, host) in hosts.all() {
        for session in host.live_sessions() {
            if file.take_reset(&session.id) {
                host.reset_session(&session.id);
            }
        }
    }
    let now = state(config, hosts);
    if now == written || file.write(now.to_string().as_bytes()).is_err() {
        return written;
    }
    now
}

fn state(config: &Path, hosts: &ServedHosts) -> Value {
    let hosts = hosts.all();
    let sessions = hosts.iter().flat_map(|(namespace, host)| {
        host.live_sessions().into_iter().map(move |session| {
            let mut session = json!(session);
            session["namespace"] = json!(namespace);
            session
        })
    });
    json!({ "config": folders::shown(config), "sessions": sessions.collect::<Vec<_>>() })
}
