//! Servers that end while they are needed.

use std::time::Duration;

use serde_json::json;
use toolgate_testkit::{Builtin, Faults, Fixture, FixtureEra};
use toolgate_upstream::{CallError, StateKind};

use crate::support::{Gate, NAME, Over, lines, logged, serve, stdio, until};

fn counter() -> Fixture {
    Fixture::new("counter").with_builtins([Builtin::Counter, Builtin::Crash, Builtin::Sleep])
}

#[tokio::test]
async fn a_crash_during_a_call_is_reported_and_the_call_is_not_repeated() {
    for era in [FixtureEra::Legacy, FixtureEra::Modern] {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("calls");
        let faults = Faults { crash_after_calls: Some(1), ..Faults::default() };
        let fixture = counter().with_era(era).with_faults(faults).with_call_log(&log);
        let gate = Gate::ready(stdio(&fixture)).await;
        assert_eq!(gate.structured("counter", json!({})).await, json!({ "count": 1 }));

        let error = gate.call("counter", json!({})).await.unwrap_err();
        assert!(matches!(error, CallError::Stopped { .. }), "{error:?}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(error, @"server `fixture` stopped during the call, so it is unknown whether `counter` took effect; it was not repeated, and the server is being restarted (`toolgate logs fixture` shows its last output)");
        }
        assert_eq!(lines(&log).len(), 2);

        // The next call waits for the restart: the counter is that of a new process.
        assert_eq!(gate.structured("counter", json!({})).await, json!({ "count": 1 }));
        assert_eq!(lines(&log).len(), 3);
        assert_eq!(gate.state(NAME).attempts, 2);
        assert_eq!(gate.told.listings_of(NAME), 2);
    }
}

#[tokio::test]
async fn every_call_in_flight_ends_with_the_server() {
    let gate = Gate::ready(stdio(&counter())).await;
    let (slept, crashed) = tokio::join!(
        gate.call("sleep", json!({ "ms": 60_000 })),
        gate.call("crash", json!({ "code": 7 }))
    );
    for error in [slept.unwrap_err(), crashed.unwrap_err()] {
        assert!(matches!(error, CallError::Stopped { .. }), "{error:?}");
    }
    gate.until("the restart", |gate| gate.state(NAME).attempts == 2).await;
    gate.settled_ready(NAME).await;
    let told = gate.told.output(toolgate_upstream::OutputSource::Toolgate);
    assert!(
        told.contains(&"the process ended (exit status: 7); next attempt in 0.5 s".to_owned()),
        "{told:?}"
    );
}

#[tokio::test]
async fn a_call_is_not_repeated_after_a_broken_http_response() {
    for over in Over::HTTP {
        for era in [FixtureEra::Legacy, FixtureEra::Modern] {
            let (spec, running) = serve(counter().with_era(era), over).await;
            let running = running.unwrap();
            let gate = Gate::ready(spec).await;
            let error = gate.call("crash", json!({})).await.unwrap_err();
            let text = error.to_string();
            assert!(text.contains("`fixture`") && text.contains("unknown"), "{over:?}: {text}");
            assert_eq!(running.calls(), 1, "{era:?} over {over:?}");
            running.shutdown().await;

            // The loss of the server is noticed without another call.
            gate.until("the news", |gate| gate.state(NAME).kind == StateKind::Failed).await;
        }
    }
}

#[tokio::test]
async fn an_http_server_that_is_gone_is_noticed_by_the_next_call() {
    for over in Over::HTTP {
        for era in [FixtureEra::Legacy, FixtureEra::Modern] {
            let (spec, running) = serve(counter().with_era(era), over).await;
            let gate = Gate::ready(spec).await;
            running.unwrap().shutdown().await;
            assert_eq!(gate.state(NAME).kind, StateKind::Ready, "nobody has looked");
            let error = gate.call("counter", json!({})).await.unwrap_err();
            assert!(matches!(error, CallError::NotConnected { .. }), "{era:?} {over:?}: {error:?}");
            gate.until("the news", |gate| gate.state(NAME).kind == StateKind::Failed).await;
            let reason = gate.state(NAME).failure.unwrap().reason;
            assert!(reason.starts_with("nothing answers at http://127.0.0.1:"), "{reason}");
        }
    }
}

#[tokio::test]
async fn a_server_that_never_restarts_is_reported_with_back_off() {
    let folder = tempfile::tempdir().unwrap();
    let (starts, first) = (folder.path().join("starts"), folder.path().join("first"));
    let prelude = format!(
        "if [ -e '{0}' ]; then echo 'Error: the licence has expired' >&2; exit 3; fi; touch '{0}'",
        first.display()
    );
    let gate = Gate::ready(logged(&counter(), &starts, &prelude)).await;
    gate.call("crash", json!({})).await.unwrap_err();

    // The restart is waited for, and its failure is the answer.
    let error = gate.call("counter", json!({})).await.unwrap_err();
    insta::assert_snapshot!(error, @"server `fixture` is not connected: the process ended before it answered (exit status: 3): Error: the licence has expired; see `toolgate logs fixture`");

    // Callers that insist do not make it start more often than every two seconds.
    while gate.state(NAME).attempts < 5 {
        let error = gate.call("counter", json!({})).await.unwrap_err();
        assert!(matches!(error, CallError::NotConnected { .. }), "{error:?}");
        tokio::task::yield_now().await;
    }
    // Connecting, ready, failed; then connecting and failed again and again.
    let changes = gate.state_changes();
    let begun: Vec<_> =
        std::iter::once(changes[0]).chain(changes[3..].iter().copied().step_by(2)).collect();
    let pauses: Vec<Duration> = begun.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let least = [0, 900, 1900, 1900].map(Duration::from_millis);
    assert!(pauses.iter().zip(least).all(|(pause, least)| *pause >= least), "{pauses:?}");
}

#[tokio::test]
async fn a_child_that_only_closes_its_output_is_ended_and_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let starts = folder.path().join("starts");
    // The shell stays when the fixture has crashed, without an output.
    let entry = counter().entry().unwrap();
    let script = format!("echo $$ >> '{}'; \"$0\" \"$@\"; exec >&-; sleep 300", starts.display());
    let mut args = vec!["-c", &script, &entry.command];
    args.extend(entry.args.iter().map(String::as_str));
    let gate = Gate::ready(crate::support::command("/bin/sh", &args)).await;
    gate.call("crash", json!({})).await.unwrap_err();
    assert_eq!(gate.structured("counter", json!({})).await, json!({ "count": 1 }));
    let first = lines(&starts)[0].clone();
    until("the end of the first shell", || !crate::processes::is_alive(&first)).await;
}

#[tokio::test]
async fn a_process_that_left_the_group_delays_nothing() {
    let folder = tempfile::tempdir().unwrap();
    // It keeps the server's pipes open for longer than the deadline of the test.
    let prelude = "setsid sh -c 'echo $$ >> \"$0\"; exec sleep 120' \"$ESCAPED\" &";
    let escaped = folder.path().join("escaped");
    let mut spec = logged(&counter(), &folder.path().join("starts"), prelude);
    if let toolgate_upstream::Endpoint::Stdio(endpoint) = &mut spec.endpoint {
        endpoint.env.insert("ESCAPED".into(), escaped.display().to_string());
    }
    let gate = Gate::ready(spec).await;
    gate.call("crash", json!({})).await.unwrap_err();
    assert_eq!(gate.structured("counter", json!({})).await, json!({ "count": 1 }));
    until("both that left", || lines(&escaped).len() >= 2).await;
    for pid in lines(&escaped) {
        std::process::Command::new("kill").arg(pid).status().unwrap();
    }
}
