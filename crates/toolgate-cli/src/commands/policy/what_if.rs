//! `toolgate policy what-if`: what another policy would have decided about the last calls.

use std::{path::Path, process::ExitCode};

use serde_json::Value;
use toolgate_config::{Format, policy_in};
use toolgate_host::PolicyWhatIf;
use toolgate_policy::definitions::shown;
use toolgate_store::utc;

use crate::{
    cli::Globals,
    failure::{CommandResult, Failure},
    load::{self, OtherPolicy},
    print,
    table::{grouped, table},
};

/// The longest rule that is shown.
const RULE: usize = 120;

pub(super) async fn run(globals: &Globals, file: &Path, as_json: bool) -> CommandResult {
    let text =
        super::super::read_text(file, "name a file with a policy, or `-` to read it from stdin")?;
    let policy = policy_of(&text, Format::of_file(file))?;
    let loaded = load::load(globals)?;
    load::report(&loaded);
    let (changed, warnings) = load::policy_if(&loaded, OtherPolicy::Written(&policy))?;
    for warning in warnings {
        print::note(format!("warning: {warning}"));
    }
    let store = load::required_store()?;
    let host = super::cached_host(&loaded).await;
    let found = host.what_if(&changed, &*store.audit());
    host.shutdown().await;
    let found = found.map_err(|error| Failure::new(error.to_string()))?;
    if as_json {
        print::json(&found)?;
    } else {
        show(&found);
    }
    Ok(ExitCode::SUCCESS)
}

/// The policy in a text: the value of the key `policy` alone, or a configuration with that key.
pub(super) fn policy_of(text: &str, format: Format) -> Result<Value, Failure> {
    if let Some(policy) = policy_in(text, format) {
        return Ok(policy);
    }
    match serde_json::from_str::<Value>(text) {
        Ok(policy @ (Value::Object(_) | Value::String(_))) => Ok(policy),
        Ok(_) => Err(Failure::usage("a policy is an object or a word")),
        Err(error) => Err(Failure::usage(format!("the policy is not JSON: {error}"))
            .hint("the file has the value of `policy`, or is a configuration with this key")),
    }
}

fn show(found: &PolicyWhatIf) {
    if let Some(table) = differences(found) {
        print::line(table);
    }
    notes(found).into_iter().for_each(print::note);
}

/// The same as parts of one text.
pub(super) fn words(found: &PolicyWhatIf) -> Vec<String> {
    differences(found).into_iter().chain(notes(found)).collect()
}

/// The calls that would be decided differently.
fn differences(found: &PolicyWhatIf) -> Option<String> {
    if found.changes.is_empty() {
        return None;
    }
    let columns = ["tool", "now", "then", ">calls", "last", "because"];
    let rows = found.changes.iter().map(|change| {
        let last = change.examples.first().map(|call| utc(call.time / 1_000));
        vec![
            change.tool.clone(),
            change.before.to_string(),
            change.after.to_string(),
            grouped(change.count as u64),
            last.unwrap_or_default(),
            shown(&change.rule_after, RULE),
        ]
    });
    Some(table(&columns, rows))
}

/// How many calls were looked at, and what is not known of them.
fn notes(found: &PolicyWhatIf) -> Vec<String> {
    let differ: usize = found.changes.iter().map(|change| change.count).sum();
    let mut notes = vec![format!(
        "{differ} of the last {} calls would be decided differently; grants do not count",
        found.calls
    )];
    if found.without_arguments > 0 {
        notes.push(format!(
            "  the arguments of {} of them are not stored: conditions on arguments may decide otherwise; \"audit\": \
             {{ \"arguments\": true }} stores them",
            found.without_arguments
        ));
    }
    if found.unknown_tools > 0 {
        notes.push(format!(
            "  {} more calls were of tools that are not known now",
            found.unknown_tools
        ));
    }
    notes
}
