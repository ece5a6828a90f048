//! Servers that are left alone until somebody needs them.

use std::time::Duration;

use serde_json::json;
use toolgate_testkit::{Builtin, Fixture};
use toolgate_upstream::{CallError, CallOptions, ServerSpec, StartMode, StateKind};

use crate::support::{Gate, NAME, lines, logged, millis, stdio, until, within};

fn on_demand(log: &std::path::Path) -> ServerSpec {
    let fixture = Fixture::new("lazy").with_builtins([Builtin::Add]);
    ServerSpec { start: StartMode::OnDemand, ..logged(&fixture, log, "") }
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
    gate.upstream.wake(NAME);
    gate.upstream.wake(NAME);
    gate.settled_ready(NAME).await;
    gate.upstream.wake(NAME);
    assert_eq!(lines(&log).len(), 1);

    let asleep = Gate::start(vec![on_demand(&log)]);
    within("the end", asleep.upstream.shutdown()).await;
    assert_eq!(asleep.state(NAME).kind, StateKind::Stopped);
    assert_eq!(lines(&log).len(), 1);
}

fn add_up() -> serde_json::Value {
    json!({ "a": 2, "b": 3 })
}

#[tokio::test]
async fn an_idle_server_is_stopped_and_started_by_the_next_call() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("started");
    let gate = Gate::start(vec![ServerSpec { rest_after: Some(millis(50)), ..on_demand(&log) }]);
    for count in 1..=2 {
        gate.structured("add", add_up()).await;
        assert_eq!(lines(&log).len(), count);
        gate.until("rest", |gate| gate.state(NAME).kind == StateKind::Idle).await;
    }
    assert_eq!(lines(&log).len(), 2, "nobody needs it, so that nobody starts it");
}

/// Calls that come in the very moment of the stop either keep the connection or wait for the next.
#[tokio::test]
async fn no_call_is_lost_to_a_stop() {
    let fixture = Fixture::new("lazy").with_builtins([Builtin::Add]);
    let gate = Gate::start(vec![ServerSpec { rest_after: Some(millis(3)), ..stdio(&fixture) }]);
    for pause in (0..10).cycle().take(60) {
        assert_eq!(gate.structured("add", add_up()).await, json!({ "sum": 5 }));
        tokio::time::sleep(Duration::from_micros(500 * pause)).await;
    }
    assert!(gate.state(NAME).attempts > 1, "some of them found it stopped");
}

#[tokio::test]
async fn who_was_woken_rests_too() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("started");
    let gate = Gate::start(vec![ServerSpec { rest_after: Some(millis(50)), ..on_demand(&log) }]);
    gate.upstream.wake(NAME);
    within("the connection", gate.upstream.settled(NAME)).await;
    gate.until("rest", |gate| gate.state(NAME).kind == StateKind::Idle).await;
    assert_eq!(lines(&log).len(), 1);
}

#[tokio::test]
async fn a_call_keeps_the_connection_however_long_it_takes() {
    let fixture = Fixture::new("slow").with_builtins([Builtin::Sleep]);
    let gate = Gate::start(vec![ServerSpec { rest_after: Some(millis(20)), ..stdio(&fixture) }]);
    let result = gate.call("sleep", json!({ "ms": 400 })).await.unwrap();
    assert_ne!(result["isError"], true, "{result}");
}

#[tokio::test]
async fn a_lazy_server_that_ends_stays_stopped_until_the_next_call() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("started");
    let rest_after = Some(Duration::from_hours(1));
    let gate = Gate::start(vec![ServerSpec { rest_after, ..on_demand(&log) }]);
    gate.structured("add", add_up()).await;
    let pid = lines(&log)[0].clone();
    assert!(std::process::Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
    gate.until("rest", |gate| gate.state(NAME).kind == StateKind::Idle).await;
    assert_eq!(lines(&log).len(), 1);
    assert_eq!(gate.structured("add", add_up()).await, json!({ "sum": 5 }));
    assert_eq!(lines(&log).len(), 2);
}

#[tokio::test]
async fn a_disabled_server_finishes_what_it_does_and_refuses_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let calls = folder.path().join("calls");
    let fixture = Fixture::new("slow").with_builtins([Builtin::Sleep, Builtin::Add]);
    let gate = Gate::ready(stdio(&fixture.with_call_log(&calls))).await;
    let meanwhile = async {
        until("the call", || lines(&calls).len() == 1).await;
        gate.upstream.disable(NAME, "ask whoever disabled it");
        assert_eq!(gate.state(NAME).kind, StateKind::Disabled);
        gate.call("add", add_up()).await.unwrap_err()
    };
    let slow = gate.call("sleep", json!({ "ms": 500 }));
    let (slow, refused) = tokio::join!(slow, meanwhile);
    assert!(matches!(refused, CallError::NotConnected { .. }), "{refused}");
    assert!(refused.to_string().contains("it is disabled"), "{refused}");
    assert_ne!(slow.unwrap()["isError"], true);
    gate.upstream.wake(NAME);
    assert_eq!(gate.state(NAME).kind, StateKind::Disabled, "nothing wakes it");
    assert_eq!(lines(&calls).len(), 1);

    gate.upstream.enable(NAME);
    assert_eq!(gate.structured("add", add_up()).await, json!({ "sum": 5 }));
}

#[tokio::test]
async fn servers_come_and_go_while_others_work() {
    let folder = tempfile::tempdir().unwrap();
    let calls = folder.path().join("calls");
    let fixture = Fixture::new("slow").with_builtins([Builtin::Sleep, Builtin::Add]);
    let gate = Gate::ready(stdio(&fixture)).await;
    let later = stdio(&fixture.with_call_log(&calls));
    let later = ServerSpec { name: "later".into(), ..later };
    assert!(gate.upstream.add(later.clone()));
    assert!(!gate.upstream.add(later), "the name is taken");
    let call = |tool: &'static str, arguments: serde_json::Value| {
        let arguments = arguments.as_object().cloned();
        let (upstream, options) = (&gate.upstream, CallOptions::default());
        async move { upstream.call(&"later".into(), tool, arguments, options).await }
    };
    assert_eq!(call("add", add_up()).await.unwrap()["structuredContent"]["sum"], 5);

    let removal = async {
        until("the call", || lines(&calls).len() == 2).await;
        gate.upstream.remove("later").await;
    };
    let slow = call("sleep", json!({ "ms": 60_000 }));
    let (ended, ()) = within("the end", async { tokio::join!(slow, removal) }).await;
    let ended = ended.unwrap_err();
    assert!(matches!(ended, CallError::Stopped { .. }), "{ended}");
    let gone = call("add", add_up()).await.unwrap_err();
    assert!(matches!(gone, CallError::UnknownServer(_)), "{gone}");
    assert!(gate.upstream.state("later").is_none());
    assert_eq!(gate.structured("add", add_up()).await, json!({ "sum": 5 }));
}
