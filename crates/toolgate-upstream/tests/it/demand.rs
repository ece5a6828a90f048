//! Servers that are left alone until somebody needs them.

use serde_json::json;
use toolgate_testkit::{Builtin, Fixture};
use toolgate_upstream::{ServerSpec, Start, StateKind};

use crate::support::{Gate, NAME, lines, logged, within};

fn on_demand(log: &std::path::Path) -> ServerSpec {
    let fixture = Fixture::new("lazy").with_builtins([Builtin::Add]);
    ServerSpec { start: Start::OnDemand, ..logged(&fixture, log, "") }
}

#[tokio::test]
async fn the_first_call_connects() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("started");
    let gate = Gate::start(vec![on_demand(&log)]);
    within("nothing to wait for", gate.upstream.settled(NAME)).await;
    assert_eq!(gate.state(NAME).kind, StateKind::Idle);
    assert!(lines(&log).is_empty(), "no process was started");

    assert_eq!(gate.structured("add", json!({ "a": 2, "b": 3 })).await, json!({ "sum": 5 }));
    assert_eq!(gate.state(NAME).kind, StateKind::Ready);
    assert_eq!(lines(&log).len(), 1);
}

#[tokio::test]
async fn waking_connects_once_and_stopping_needs_no_connection() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("started");
    let gate = Gate::start(vec![on_demand(&log)]);
    gate.upstream.wake_all();
    gate.upstream.wake(NAME);
    gate.settled_ready(NAME).await;
    gate.upstream.wake(NAME);
    assert_eq!(lines(&log).len(), 1);

    let asleep = Gate::start(vec![on_demand(&log)]);
    within("the end", asleep.upstream.shutdown()).await;
    assert_eq!(asleep.state(NAME).kind, StateKind::Stopped);
    assert_eq!(lines(&log).len(), 1);
}
