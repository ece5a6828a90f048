//! Tool lists: long ones, endless ones, broken ones.

use serde_json::{Value, json};
use toolgate_catalog::{Definition, Malformed};
use toolgate_testkit::{
    AnswerFault, Builtin, Cursors, Faults, Fixture, FixtureEra, Pages, StrayOutput, malformed,
};
use toolgate_upstream::{ListingProblem, OutputSource, StateKind};

use crate::support::{
    Gate, NAME, Over, definition, millis, serve, stdio, with_limits, without_limit,
};

fn paged(count: usize, cursors: Cursors) -> Fixture {
    let faults = Faults { pages: Some(Pages { size: 2, cursors }), ..Faults::default() };
    let tools = (0..count).map(|number| definition(&format!("tool_{number}")));
    Fixture::new("paged").with_tools(tools).with_faults(faults)
}

#[tokio::test]
async fn definitions_are_what_the_server_sent() {
    let mut tools = vec![malformed::unknown_fields("unknown_fields")];
    tools.push(json!({
        "name": "numbers",
        "inputSchema": { "type": "object", "minimum": 1.0, "x": [1e300, -0.1, 18_446_744_073_709_551_615_u64] },
        "description": "Ünïcode \u{1F980} and \"quotes\"",
    }));
    tools.extend(Builtin::ALL.map(Builtin::definition));
    for over in Over::ALL {
        for era in [FixtureEra::Legacy, FixtureEra::Modern] {
            let fixture = Fixture::new("raw").with_tools(tools.clone()).with_era(era);
            let (spec, _running) = serve(fixture, over).await;
            let gate = Gate::ready(spec).await;
            let listing = gate.told.last_listing(NAME);
            let listed: Vec<Value> = listing.definitions.iter().map(Definition::to_value).collect();
            assert_eq!(listed, tools, "{era:?} over {over:?}");
            assert_eq!(listing.problems, []);
        }
    }
}

#[tokio::test]
async fn malformed_tools_are_reported_and_skipped() {
    for over in Over::ALL {
        let fixture = Fixture::new("malformed")
            .with_tools(malformed::all())
            .with_tools([definition("twice"), definition("twice")]);
        let (spec, _running) = serve(fixture, over).await;
        let gate = Gate::ready(spec).await;
        assert_eq!(
            gate.told.tools_of(NAME),
            ["no_type", "invalid_pattern", "dangling_reference", "unknown_fields", "twice"]
        );
        let problems = gate.state(NAME).problems;
        assert_eq!(problems.len(), 6, "{problems:?}");
        assert!(matches!(
            &problems[5],
            ListingProblem::Tool(rejected) if rejected.reason == Malformed::Duplicate
        ));
        insta::allow_duplicates! {
            insta::assert_snapshot!(problems[2].to_string(), @"tool `#3` is left out: the definition is a string, not an object");
        }
        gate.call("unknown_fields", json!({})).await.unwrap();
    }
}

#[tokio::test]
async fn pages_are_followed_to_the_end() {
    for over in Over::ALL {
        let (spec, _running) = serve(paged(7, Cursors::Honest), over).await;
        let gate = Gate::ready(spec).await;
        let expected: Vec<String> = (0..7).map(|number| format!("tool_{number}")).collect();
        assert_eq!(gate.told.tools_of(NAME), expected);
        assert_eq!(gate.state(NAME).problems, []);
    }
}

#[tokio::test]
async fn a_repeated_cursor_ends_the_list() {
    let gate = Gate::ready(stdio(&paged(5, Cursors::Repeating))).await;
    assert_eq!(gate.told.tools_of(NAME), ["tool_0", "tool_1"]);
    let problems = gate.state(NAME).problems;
    assert!(problems.contains(&ListingProblem::CursorLoop { pages: 2 }), "{problems:?}");
}

#[tokio::test]
async fn a_list_without_end_is_cut() {
    let gate = Gate::ready(stdio(&paged(3, Cursors::Endless))).await;
    let problems = gate.state(NAME).problems;
    let [ListingProblem::TooLong { kept }] = problems[..] else { panic!("{problems:?}") };
    assert_eq!(kept, gate.told.tools_of(NAME).len());
    assert!(kept >= 1000, "{kept}");
}

#[tokio::test]
async fn a_missing_list_is_a_failure_with_a_reason() {
    let cases = [
        (Over::Stdio, AnswerFault::Silence),
        (Over::HttpJson, AnswerFault::Silence),
        (Over::HttpSse, AnswerFault::Silence),
        (Over::Stdio, AnswerFault::WrongId),
        (Over::Stdio, AnswerFault::Garbage),
    ];
    futures::future::join_all(cases.map(async |(over, fault)| {
        let fixture =
            Fixture::new("broken").with_faults(Faults::broken_answer("tools/list", fault));
        let (spec, _running) = serve(fixture, over).await;
        let spec = with_limits(spec, |limits| limits.connect = millis(2500));
        let (_gate, failure) = Gate::failure(spec).await;
        let reason = without_limit(&failure.reason, millis(2500));
        assert_eq!(reason, "no answer to tools/list within LIMIT", "{fault:?} {over:?}");
    }))
    .await;
}

#[tokio::test]
async fn a_list_that_cannot_be_read_is_a_failure_at_once() {
    for over in Over::ALL {
        for fault in [
            AnswerFault::Garbage,
            AnswerFault::Truncated,
            AnswerFault::WrongId,
            AnswerFault::Hollow,
        ] {
            if over == Over::Stdio && matches!(fault, AnswerFault::WrongId | AnswerFault::Garbage) {
                continue; // On a pipe, nothing says what such a line was meant to answer.
            }
            let fixture = Fixture::new("broken")
                .with_builtins([Builtin::Echo])
                .with_faults(Faults::broken_answer("tools/list", fault));
            let (spec, _running) = serve(fixture, over).await;
            let (_gate, failure) = Gate::failure(spec).await;
            let reason = &failure.reason;
            assert!(reason.contains("tools/list"), "{fault:?} over {over:?}: {reason}");
        }
    }
}

#[tokio::test]
async fn stray_output_changes_nothing() {
    let stray_output =
        StrayOutput { at_start: true, between_messages: true, long_line_bytes: 300_000 };
    let faults = Faults { stray_output, stderr_bytes: 300_000, ..Faults::default() };
    let fixture = Fixture::new("chatty").with_builtins([Builtin::Add]).with_faults(faults);
    let spec = with_limits(stdio(&fixture), |limits| limits.max_message_bytes = 100_000);
    let gate = Gate::ready(spec).await;
    assert_eq!(gate.structured("add", json!({ "a": 1, "b": 2 })).await, json!({ "sum": 3 }));
    let strays = gate.told.output(OutputSource::Stdout);
    assert_eq!(strays[0], "Fixture server starting up…");
    assert_eq!(strays[1], "(a message of 300000 bytes, over the limit, was dropped)");
    assert_eq!(strays[2], "[debug] about to send a message");
}

#[tokio::test]
async fn input_requests_right_after_the_handshake_are_answered() {
    for over in Over::ALL {
        let faults = Faults { asks_after_handshake: true, ..Faults::default() };
        let fixture = Fixture::new("curious")
            .with_builtins([Builtin::Add, Builtin::AskRoots])
            .with_faults(faults);
        let (spec, _running) = serve(fixture, over).await;
        let gate = Gate::ready(spec).await;
        assert_eq!(gate.structured("add", json!({ "a": 1, "b": 2 })).await, json!({ "sum": 3 }));
        // What it is told when it waits for the answer: that there are none, and not nothing.
        let told = gate.structured("ask_roots", json!({})).await;
        assert_eq!(told, json!({ "result": { "roots": [] } }), "{over:?}");
    }
}

#[tokio::test]
async fn a_server_without_tools_is_ready() {
    let gate = Gate::ready(stdio(&Fixture::new("empty"))).await;
    assert_eq!(gate.state(NAME).kind, StateKind::Ready);
    assert_eq!(gate.told.listings_of(NAME), 1);
}
