//! Which calls a run made, and what became of them: what has already happened.

use std::fmt::Write;

use toolgate_sandbox::{CallRecord, CallState, RunOutcome, RunReport};

use super::render::safe;

/// Names of tools that are told of each state.
const NAMES: usize = 12;
/// Calls that are told one by one, of those that did not complete.
const EACH: usize = 5;
const ARGUMENT_CHARACTERS: usize = 120;
const MESSAGE_CHARACTERS: usize = 160;

/// One line for a run that went well. After an error one for each state, so that a model knows
/// what must not be done again.
pub(super) fn ledger(report: &RunReport) -> String {
    let of = |wanted: fn(&CallState) -> bool| -> Vec<&CallRecord> {
        report.calls.iter().filter(|call| wanted(&call.state)).collect()
    };
    let completed = of(|state| matches!(state, CallState::Completed));
    let mut lines = Vec::new();
    if !completed.is_empty() {
        lines.push(format!("Calls completed: {}.", names(&completed)));
    }
    for (what, calls) in [
        ("Failed", of(|state| matches!(state, CallState::Failed(_)))),
        ("Made, result not delivered", of(|state| matches!(state, CallState::Undelivered(_)))),
        ("In flight at the end, effect unknown", of(|state| matches!(state, CallState::InFlight))),
        ("Not made", of(|state| matches!(state, CallState::Refused(_)))),
        ("Waiting for approval", of(|state| matches!(state, CallState::Suspended))),
    ] {
        if !calls.is_empty() {
            lines.push(each(what, &calls, &report.outcome));
        }
    }
    if report.calls_left_out > 0 {
        lines.push(format!("{} more calls were refused.", report.calls_left_out));
    }
    if lines.is_empty() && !matches!(report.outcome, RunOutcome::Value(_) | RunOutcome::Rejected(_))
    {
        lines.push("No call was made.".to_owned());
    }
    lines.join("\n")
}

/// `a_tool, b_tool ×3`, in the order of the first call.
fn names(calls: &[&CallRecord]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for call in calls {
        match counts.iter_mut().find(|(name, _)| *name == call.name) {
            Some((_, count)) => *count += 1,
            None => counts.push((&call.name, 1)),
        }
    }
    let shown = counts.iter().take(NAMES).map(|(name, count)| match count {
        1 => safe(name),
        _ => format!("{} ×{count}", safe(name)),
    });
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if counts.len() > NAMES {
        let _ = write!(text, " and {} other tools", counts.len() - NAMES);
    }
    text
}

fn each(what: &str, calls: &[&CallRecord], outcome: &RunOutcome) -> String {
    let mut text = format!("{what}: {}.", names(calls));
    // A script that went well has dealt with it.
    if matches!(outcome, RunOutcome::Value(_)) {
        return text;
    }
    for call in calls.iter().take(EACH) {
        let arguments = beginning(&call.arguments, ARGUMENT_CHARACTERS);
        let _ = write!(text, "\n  {}({arguments})", safe(&call.name));
        match &call.state {
            CallState::Failed(message)
            | CallState::Undelivered(message)
            | CallState::Refused(message) => {
                let _ = write!(text, ": {}", beginning(message, MESSAGE_CHARACTERS));
            }
            CallState::Completed | CallState::InFlight | CallState::Suspended => {}
        }
    }
    if calls.len() > EACH {
        let _ = write!(text, "\n  … and {} more", calls.len() - EACH);
    }
    text
}

fn beginning(text: &str, characters: usize) -> String {
    let line = safe(text).replace('\n', " ");
    if line.chars().nth(characters).is_none() {
        return line;
    }
    line.chars().take(characters).chain(['…']).collect()
}
