//! Time and size.

use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolgate_testkit::{Builtin, Faults, Fixture, FixtureEra};
use toolgate_upstream::{CallError, CallOptions, OutputSource, StateKind};

use crate::support::{
    Gate, NAME, Over, lines, millis, serve, stdio, until, with_limits, without_limit,
};

fn slow() -> Fixture {
    Fixture::new("slow").with_builtins([
        Builtin::Sleep,
        Builtin::Progress,
        Builtin::LastCancelled,
        Builtin::Big,
        Builtin::Add,
    ])
}

/// Waits until the server knows of a cancellation. Over HTTP a closed stream is noticed in time.
async fn cancellation_arrives(gate: &Gate) {
    let asking = async {
        while gate.structured("last_cancelled", json!({})).await["lastCancelled"].is_null() {}
    };
    crate::support::within("the cancellation", asking).await;
}

#[tokio::test]
async fn a_server_that_floods_stderr_is_cut_short_in_its_log() {
    let faults = Faults { stderr_bytes: 8_000_000, ..Faults::default() };
    let fixture = Fixture::new("loud").with_faults(faults).with_builtins([Builtin::Add]);
    let gate = Gate::ready(stdio(&fixture)).await;
    // The server writes 100,000 lines before it answers.
    let output = || gate.told.output(OutputSource::Stderr);
    let dropped = || -> usize {
        let notes = output().into_iter().filter(|line| line.starts_with('('));
        notes.map(|note| note[1..].split(' ').next().unwrap().parse::<usize>().unwrap()).sum()
    };
    let passed_on = || output().iter().filter(|line| line.starts_with('e')).count();
    gate.until("a note of each line", |_| passed_on() + dropped() == 100_000).await;
    assert!(passed_on() >= 1000 && dropped() > 0, "{} {}", passed_on(), dropped());
    assert_eq!(gate.structured("add", json!({ "a": 2, "b": 2 })).await, json!({ "sum": 4 }));
}

#[tokio::test]
async fn a_call_without_response_or_progress_times_out() {
    for over in Over::ALL {
        let (spec, _running) = serve(slow(), over).await;
        let gate = Gate::ready(with_limits(spec, |limits| limits.idle = millis(500))).await;
        let error = gate.call("sleep", json!({ "ms": 60_000 })).await.unwrap_err();
        insta::allow_duplicates! {
            let error = without_limit(&error, millis(500));
            insta::assert_snapshot!(error, @"server `fixture` gave no answer to `sleep` within LIMIT (without progress, `callIdleTimeoutSeconds`); it was asked to cancel, and whether the call took effect is unknown");
        }
        cancellation_arrives(&gate).await;
        assert_eq!(gate.state(NAME).attempts, 1);
    }
}

#[tokio::test]
async fn progress_extends_the_idle_timeout() {
    let gate = Gate::ready(with_limits(stdio(&slow()), |limits| limits.idle = millis(2000))).await;
    let arguments = json!({ "steps": 10, "intervalMs": 300 });
    gate.call("progress", arguments).await.unwrap();
}

#[tokio::test]
async fn progress_does_not_keep_a_call_alive_for_ever() {
    let gate = Gate::ready(with_limits(stdio(&slow()), |limits| limits.total = millis(700))).await;
    let arguments = json!({ "steps": 100_000, "intervalMs": 20 });
    let error = gate.call("progress", arguments).await.unwrap_err();
    assert!(matches!(error, CallError::TimedOut { total: true, .. }), "{error:?}");
    let error = without_limit(&error, millis(700));
    insta::assert_snapshot!(error, @"server `fixture` gave no answer to `progress` within LIMIT (the limit for a whole call, `callTotalTimeoutSeconds`); it was asked to cancel, and whether the call took effect is unknown");
    cancellation_arrives(&gate).await;
}

#[tokio::test]
async fn progress_comes_whole_in_order_and_before_the_result() {
    // Over HTTP with JSON answers there is no room for progress beside the answer.
    for over in [Over::Stdio, Over::HttpSse] {
        for era in [FixtureEra::Legacy, FixtureEra::Modern] {
            let (spec, _running) = serve(slow().with_era(era), over).await;
            let gate = Gate::ready(spec).await;
            let (sender, mut steps) = mpsc::channel(1000);
            let options = CallOptions { progress: Some(sender), ..CallOptions::default() };
            gate.call_with("progress", json!({ "steps": 500 }), options).await.unwrap();
            let mut seen = Vec::new();
            while let Ok(step) = steps.try_recv() {
                assert_eq!(step.total(), Some(500.0));
                assert_eq!(step.message().unwrap(), format!("step {}", step.progress()));
                seen.push(step.progress());
            }
            let expected: Vec<f64> = (1..=500).map(f64::from).collect();
            assert_eq!(seen, expected, "{era:?} over {over:?}");
        }
    }
}

#[tokio::test]
async fn a_slow_reader_loses_progress_but_not_the_result() {
    let gate = Gate::ready(stdio(&slow())).await;
    let (sender, mut steps) = mpsc::channel(1);
    let options = CallOptions { progress: Some(sender), ..CallOptions::default() };
    gate.call_with("progress", json!({ "steps": 100 }), options).await.unwrap();
    assert!(steps.try_recv().is_ok() && steps.try_recv().is_err());
}

#[tokio::test]
async fn a_cancellation_reaches_the_server() {
    for over in Over::ALL {
        for era in [FixtureEra::Legacy, FixtureEra::Modern] {
            let folder = tempfile::tempdir().unwrap();
            let log = folder.path().join("calls");
            let (spec, _running) = serve(slow().with_era(era).with_call_log(&log), over).await;
            let gate = Gate::ready(spec).await;
            let cancel = CancellationToken::new();
            let options = CallOptions { cancel: cancel.clone(), ..CallOptions::default() };
            let (outcome, ()) =
                tokio::join!(gate.call_with("sleep", json!({ "ms": 60_000 }), options), async {
                    until("the call", || lines(&log).len() == 1).await;
                    cancel.cancel();
                });
            assert!(matches!(outcome, Err(CallError::Cancelled)), "{era:?} {over:?}: {outcome:?}");
            cancellation_arrives(&gate).await;
        }
    }
}

#[tokio::test]
async fn a_dropped_call_is_cancelled() {
    for over in Over::ALL {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("calls");
        let (spec, _running) = serve(slow().with_call_log(&log), over).await;
        let gate = Gate::ready(spec).await;
        tokio::select! {
            _ = gate.call("sleep", json!({ "ms": 60_000 })) => panic!("it sleeps"),
            () = until("the call", || lines(&log).len() == 1) => {}
        }
        cancellation_arrives(&gate).await;
    }
}

#[tokio::test]
async fn a_cancelled_call_is_not_sent() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("calls");
    let gate = Gate::ready(stdio(&slow().with_call_log(&log))).await;
    let options = CallOptions::default();
    options.cancel.cancel();
    let outcome = gate.call_with("add", json!({ "a": 1, "b": 1 }), options).await;
    assert!(matches!(outcome, Err(CallError::Cancelled)), "{outcome:?}");
    gate.structured("add", json!({ "a": 1, "b": 1 })).await;
    assert_eq!(lines(&log).len(), 1);
}

#[tokio::test]
async fn an_oversized_result_ends_only_its_call() {
    for over in Over::ALL {
        for era in [FixtureEra::Legacy, FixtureEra::Modern] {
            let (spec, _running) = serve(slow().with_era(era), over).await;
            let spec = with_limits(spec, |limits| {
                (limits.max_message_bytes, limits.max_kept_bytes) = (200_000, 1_000_000);
            });
            let gate = Gate::ready(spec).await;
            let (slept, big) = tokio::join!(
                gate.call("sleep", json!({ "ms": 500 })),
                gate.call("big", json!({ "bytes": 5_000_000 }))
            );
            slept.unwrap();
            let error = big.unwrap_err();
            assert!(matches!(error, CallError::Transport { .. }), "{error:?}");
            let text = error.to_string();
            for part in ["`big`", "`fixture`", "200000 bytes", "maxResultBytes", "was made"] {
                assert!(text.contains(part), "{era:?} over {over:?}: {text}");
            }
            assert_eq!(
                gate.structured("add", json!({ "a": 1, "b": 2 })).await,
                json!({ "sum": 3 })
            );
            let state = gate.state(NAME);
            assert_eq!((state.kind, state.attempts), (StateKind::Ready, 1));
        }
    }
}

#[tokio::test]
async fn the_text_of_an_oversized_result_is_kept() {
    for over in Over::ALL {
        for era in [FixtureEra::Legacy, FixtureEra::Modern] {
            let (spec, _running) = serve(slow().with_era(era), over).await;
            let spec = with_limits(spec, |limits| limits.max_message_bytes = 200_000);
            let gate = Gate::ready(spec).await;
            let result = gate.call("big", json!({ "bytes": 5_000_000 })).await.unwrap();
            let text = result["content"][0]["text"].as_str().unwrap();
            assert_eq!(text.len(), 5_000_000, "{era:?} over {over:?}");
        }
    }
}

#[tokio::test]
async fn a_large_result_within_the_limit_is_whole() {
    for over in Over::ALL {
        let (spec, _running) = serve(slow(), over).await;
        let gate = Gate::ready(spec).await;
        let result = gate.call("big", json!({ "bytes": 8_000_000 })).await.unwrap();
        assert_eq!(result["content"][0]["text"].as_str().unwrap().len(), 8_000_000);
    }
}
