//! The failure of one server does not affect others.

use serde_json::json;
use toolgate_testkit::{Builtin, Faults, Fixture};
use toolgate_upstream::{CallError, CallOptions, StateKind};

use crate::support::{Gate, NAME, command, stdio, within};

#[tokio::test]
async fn slow_and_dead_servers_do_not_hold_up_the_others() {
    let slow_faults = Faults { start_delay_ms: 600_000, ..Faults::default() };
    let mut slow = stdio(&Fixture::new("slow").with_faults(slow_faults));
    slow.name = "slow".into();
    let mut dead = command("/nonexistent/command", &[]);
    dead.name = "dead".into();
    let mut closed = crate::support::url("http://127.0.0.1:9/mcp");
    closed.name = "closed".into();
    let good = stdio(&Fixture::new("good").with_builtins([Builtin::Add]));

    let gate = Gate::start(vec![slow, dead, closed, good]);
    gate.settled_ready(NAME).await;
    assert_eq!(gate.structured("add", json!({ "a": 2, "b": 2 })).await, json!({ "sum": 4 }));
    gate.until("the failures", |gate| {
        ["dead", "closed"].iter().all(|name| gate.state(name).failure.is_some())
    })
    .await;
    assert_eq!(gate.state("slow").kind, StateKind::Connecting);
    assert_eq!(gate.state(NAME).kind, StateKind::Ready);
    within("the end", gate.upstream.shutdown()).await;
    for name in ["slow", "dead", "closed", NAME] {
        assert_eq!(gate.state(name).kind, StateKind::Stopped, "{name}");
    }
}

#[tokio::test]
async fn unknown_and_stopped_servers_are_an_error() {
    let gate = Gate::ready(stdio(&Fixture::new("good").with_builtins([Builtin::Add]))).await;
    let missing = gate.upstream.call(&"missing".into(), "add", None, CallOptions::default()).await;
    assert!(matches!(missing, Err(CallError::UnknownServer(_))), "{missing:?}");
    assert!(gate.upstream.state("missing").is_none());
    within("nothing", gate.upstream.settled("missing")).await;

    within("the end", gate.upstream.shutdown()).await;
    let late = gate.call("add", json!({})).await.unwrap_err();
    insta::assert_snapshot!(late, @"server `fixture` is not connected: toolgate is stopping; start it again");
    within("a second end", gate.upstream.shutdown()).await;
}
