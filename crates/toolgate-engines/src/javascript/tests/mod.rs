//! Scripts, run in memory.

mod calls;
mod console;
mod endings;
mod globals;
mod growth;
mod hostile;
mod language;
mod locales;
mod modules;
mod positions;
mod round_trip;
mod world;

use self::world::{JavaScriptRun, LIMITS, run, run_at, run_with};
use crate::{EngineOutcome, FailureKind, ScriptFailure};

/// The JSON that a script returned.
#[track_caller]
fn value(source: &str) -> String {
    match run(source).outcome {
        EngineOutcome::Value(Some(json)) => json.get().to_owned(),
        other => panic!("{source}\nhas no value: {other:?}"),
    }
}

/// Scripts and the JSON that they return.
#[track_caller]
fn assert_values(cases: &[(&str, &str)]) {
    for (source, expected) in cases {
        assert_eq!(value(source), *expected, "{source}");
    }
}

/// How a script failed.
#[track_caller]
fn failure(source: &str) -> ScriptFailure {
    failure_of(source, run(source))
}

#[track_caller]
fn failure_of(source: &str, run: JavaScriptRun) -> ScriptFailure {
    match run.outcome {
        EngineOutcome::Failed(failure) => failure,
        other @ EngineOutcome::Value(_) => panic!("{source}\ndid not fail: {other:?}"),
    }
}

/// Scripts, the sorts of their failures, and what the messages have in them.
#[track_caller]
fn assert_failures(cases: &[(&str, FailureKind, &str)]) {
    for (source, kind, part) in cases {
        let failure = failure(source);
        assert_eq!(failure.kind, *kind, "{source}\n{failure:?}");
        assert!(failure.message.contains(part), "{source}\n{failure:?}");
    }
}
