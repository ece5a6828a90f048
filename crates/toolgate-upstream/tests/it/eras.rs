//! Both lifecycles, and servers that take the question badly.

use serde_json::json;
use toolgate_mcp::Era;
use toolgate_testkit::{AnswerFault, Builtin, Faults, Fixture, FixtureEra, ProbeRefusal};
use toolgate_upstream::{ServerSpec, StateKind};

use crate::support::{Gate, NAME, Over, lines, logged, millis, serve, with_limits};

fn echo(era: FixtureEra) -> Fixture {
    Fixture::new("ada").with_builtins([Builtin::Echo]).with_era(era).with_instructions("Be kind.")
}

/// Connects, calls, and says which era it was.
async fn era_of(spec: ServerSpec) -> Era {
    let gate = Gate::ready(spec).await;
    let answer = gate.structured("echo", json!({ "message": "hi" })).await;
    assert_eq!(answer, json!({ "message": "hi" }));
    let handshake = gate.state(NAME).handshake.unwrap();
    assert_eq!(handshake.instructions.as_deref(), Some("Be kind."));
    assert_eq!(handshake.server_info["name"], "ada");
    let version = if handshake.era == Era::Modern { "2026-07-28" } else { "2025-11-25" };
    assert_eq!(handshake.protocol_version, version);
    gate.upstream.shutdown().await;
    assert_eq!(gate.state(NAME).kind, StateKind::Stopped);
    handshake.era
}

#[tokio::test]
async fn legacy_modern_and_both_over_every_transport() {
    for over in Over::ALL {
        for (offered, expected) in [
            (FixtureEra::Legacy, Era::Legacy),
            (FixtureEra::Modern, Era::Modern),
            (FixtureEra::Both, Era::Modern),
        ] {
            let (spec, _running) = serve(echo(offered), over).await;
            assert_eq!(era_of(spec).await, expected, "{offered:?} over {over:?}");
        }
    }
}

#[tokio::test]
async fn every_refusal_of_discovery_leads_to_initialize() {
    for over in Over::ALL {
        for refusal in [
            ProbeRefusal::MethodNotFound,
            ProbeRefusal::InvalidParams,
            ProbeRefusal::NotInitialized,
        ] {
            let fixture = echo(FixtureEra::Legacy).with_probe_refusal(refusal);
            let (spec, _running) = serve(fixture, over).await;
            assert_eq!(era_of(spec).await, Era::Legacy, "{refusal:?} over {over:?}");
        }
    }
}

#[tokio::test]
async fn a_server_that_ignores_discovery_delays_little() {
    for over in Over::ALL {
        let (spec, _running) = serve(echo(FixtureEra::SilentOnProbe), over).await;
        let spec = with_limits(spec, |limits| limits.probe = millis(200));
        assert_eq!(era_of(spec).await, Era::Legacy, "{over:?}");
    }
}

#[tokio::test]
async fn a_short_time_to_connect_is_enough_for_both_handshakes() {
    let fixture = echo(FixtureEra::SilentOnProbe);
    let spec = with_limits(crate::support::stdio(&fixture), |limits| limits.connect = millis(4000));
    assert_eq!(era_of(spec).await, Era::Legacy);
}

#[tokio::test]
async fn a_silent_child_is_not_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("starts");
    let spec = logged(&echo(FixtureEra::SilentOnProbe), &log, "");
    let spec = with_limits(spec, |limits| limits.probe = millis(200));
    assert_eq!(era_of(spec).await, Era::Legacy);
    assert_eq!(lines(&log).len(), 1);
}

#[tokio::test]
async fn a_process_that_dies_of_discovery_is_started_without_it() {
    for era in [FixtureEra::DiesOfProbe, FixtureEra::SilentThenDies] {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("starts");
        let spec = logged(&echo(era), &log, "");
        let spec = with_limits(spec, |limits| limits.probe = millis(200));
        assert_eq!(era_of(spec).await, Era::Legacy, "{era:?}");
        assert_eq!(lines(&log).len(), 2, "{era:?}");
    }
}

#[tokio::test]
async fn a_remembered_era_needs_no_probe() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("starts");
    let mut spec = logged(&echo(FixtureEra::DiesOfProbe), &log, "");
    spec.remembered_era = Some(Era::Legacy);
    assert_eq!(era_of(spec).await, Era::Legacy);
    assert_eq!(lines(&log).len(), 1);

    for over in Over::ALL {
        for era in [Era::Legacy, Era::Modern] {
            let (mut spec, _running) = serve(echo(FixtureEra::Both), over).await;
            spec.remembered_era = Some(era);
            assert_eq!(era_of(spec).await, era, "{over:?}");
        }
    }
}

#[tokio::test]
async fn a_wrong_remembered_era_is_corrected_in_the_same_attempt() {
    for over in Over::ALL {
        for (offered, remembered, expected) in [
            (FixtureEra::Legacy, Era::Modern, Era::Legacy),
            (FixtureEra::DiesOfProbe, Era::Modern, Era::Legacy),
            (FixtureEra::Modern, Era::Legacy, Era::Modern),
        ] {
            if over != Over::Stdio && offered == FixtureEra::DiesOfProbe {
                continue; // There is no process to start again.
            }
            let (mut spec, _running) = serve(echo(offered), over).await;
            spec.remembered_era = Some(remembered);
            let gate = Gate::ready(spec).await;
            let state = gate.state(NAME);
            assert_eq!(state.handshake.unwrap().era, expected, "{offered:?} over {over:?}");
            assert_eq!(state.attempts, 1);
        }
    }
}

#[tokio::test]
async fn a_remembered_era_that_fails_is_negotiated_next_time() {
    let mut spec = crate::support::stdio(&echo(FixtureEra::SilentOnProbe));
    spec.remembered_era = Some(Era::Modern);
    let spec = with_limits(spec, |limits| {
        limits.connect = millis(1500);
        limits.probe = millis(100);
    });
    let gate = Gate::start(vec![spec]);
    gate.until("the second attempt", |gate| gate.state(NAME).kind == StateKind::Ready).await;
    assert_eq!(gate.state(NAME).handshake.unwrap().era, Era::Legacy);
}

#[tokio::test]
async fn the_first_good_response_of_a_slow_server_counts() {
    for (offered, expected) in [
        (FixtureEra::Legacy, Era::Legacy),
        (FixtureEra::Both, Era::Modern),
        (FixtureEra::Modern, Era::Modern),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("starts");
        let faults = Faults { start_delay_ms: 1_000, ..Faults::default() };
        let spec = logged(&echo(offered).with_faults(faults), &log, "");
        // Each handshake alone would have half of that time after the other.
        let spec = with_limits(spec, |limits| limits.probe = millis(50));
        assert_eq!(era_of(spec).await, expected, "{offered:?}");
        assert_eq!(lines(&log).len(), 1, "{offered:?}: it is not started again");
    }
}

#[tokio::test]
async fn without_a_good_response_the_failure_says_what_was_sent_and_answered() {
    let silence = |method: &str| Faults::broken_answer(method, AnswerFault::Silence);
    let fixture = echo(FixtureEra::Legacy).with_faults(silence("initialize"));
    let spec = with_limits(crate::support::stdio(&fixture), |limits| {
        limits.connect = millis(1_500);
        limits.probe = millis(100);
    });
    let (_gate, failure) = Gate::failure(spec).await;
    let reason = &failure.reason;
    assert!(reason.starts_with("no answer to the handshake within 1.5 s: "), "{reason}");
    assert!(reason.contains("`server/discover` was sent at 0"), "{reason}");
    assert!(reason.contains("-32601"), "the refusal: {reason}");
    assert!(reason.contains("`initialize` was sent at "), "{reason}");
    assert!(reason.ends_with("and not answered"), "{reason}");
}

#[tokio::test]
async fn a_server_that_prints_something_else_is_named_as_such() {
    let script = "echo 'Listening on port 3000'; sleep 60";
    let spec = with_limits(crate::support::command("sh", &["-c", script]), |limits| {
        limits.connect = millis(1_000);
        limits.probe = millis(100);
    });
    let (_gate, failure) = Gate::failure(spec).await;
    let told = "it prints to stdout what is not MCP: `Listening on port 3000`";
    assert!(failure.reason.contains(told), "{failure:?}");
    let (_gate, failure) =
        Gate::failure(crate::support::command("sh", &["-c", "echo hello"])).await;
    assert!(failure.reason.contains("it prints to stdout what is not MCP: `hello`"), "{failure:?}");
}
