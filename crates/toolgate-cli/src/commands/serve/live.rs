//! Says what the sessions of a running gateway do, for `toolgate status --live`.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::MissedTickBehavior;
use toolgate_gateway::PassthroughFactory;
use toolgate_host::LiveSession;
use toolgate_store::{LiveFile, Store};

use super::ServedHosts;
use crate::folders;

/// How often it is looked whether something has changed, or somebody has asked for a reset.
const INTERVAL: Duration = Duration::from_millis(500);

/// Writes the state of the sessions while the gateway runs. Without a state folder it does nothing.
pub(super) async fn publish(
    store: Option<Store>,
    (config, address): (PathBuf, Option<SocketAddr>),
    hosts: ServedHosts,
    passthrough: Option<Arc<PassthroughFactory>>,
) {
    let opened = tokio::task::spawn_blocking(move || store.and_then(|it| it.live().open().ok()));
    let Ok(Some(file)) = opened.await else { return };
    let file = Arc::new(file);
    let mut looks = tokio::time::interval(INTERVAL);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut written = Value::Null;
    loop {
        looks.tick().await;
        let (file, config, hosts) = (Arc::clone(&file), config.clone(), hosts.clone());
        let passed = passthrough.as_ref().map(|it| it.live_sessions()).unwrap_or_default();
        let looked = tokio::task::spawn_blocking(move || {
            look(&file, (&config, address), &hosts, &passed, written)
        });
        written = looked.await.unwrap_or_default();
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
