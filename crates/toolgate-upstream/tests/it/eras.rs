//! Both lifecycles, and servers that take the question badly.

use serde_json::json;
use toolgate_mcp::Era;
use toolgate_testkit::{Builtin, Faults, Fixture, FixtureEra, ProbeRefusal};
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
async fn a_late_response_to_discovery_is_not_taken_for_another() {
    for (offered, expected) in [
        (FixtureEra::Legacy, Era::Legacy),
        (FixtureEra::Both, Era::Legacy),
        (FixtureEra::Modern, Era::Modern),
    ] {
        let faults = Faults { start_delay_ms: 600, ..Faults::default() };
        let spec = crate::support::stdio(&echo(offered).with_faults(faults));
        let spec = with_limits(spec, |limits| limits.probe = millis(50));
        assert_eq!(era_of(spec).await, expected, "{offered:?}");
    }
}
