//! `toolgate policy save`, `export` and `remove`: another policy, after a person has seen its effect.

use std::{fmt::Write as _, path::Path, process::ExitCode};

use serde_json::Value;
use toolgate_config::Format;
use toolgate_policy::PolicySettings;

use super::what_if;
use crate::{
    cli::Globals,
    decisions,
    failure::{CommandResult, Failure},
    lineage,
    load::{self, Loaded, OtherPolicy},
    person,
    policy_place::{self, WrittenPolicy},
    print,
};

pub(super) async fn run(globals: &Globals, file: &Path, replace: Option<u64>) -> CommandResult {
    lineage::refuse_servers()?;
    let hint = "name a file with a policy, or `-` to read it from stdin";
    let text = super::super::read_text(file, hint)?;
    let policy = what_if::policy_of(&text, Format::of_file(file))?;
    let loaded = load::load(globals)?;
    load::report(&loaded);
    let before = WrittenPolicy::of(&loaded);
    if let Some(wanted) = replace {
        let version = before.version().ok_or_else(|| {
            Failure::usage("there is no fleet, so the policy has no version")
                .hint("leave out --replace")
        })?;
        if version != wanted {
            let changed = format!("the policy of the fleet is of version {version}, not {wanted}");
            return Err(
                Failure::new(changed).hint("`toolgate policy export` prints the one that counts")
            );
        }
    }
    let (changed, warnings) = load::policy_if(&loaded, OtherPolicy::Written(&policy))?;
    let mut shown = format!("The policy now is {}.\n", before.origin());
    let pretty = serde_json::to_string_pretty(&policy).unwrap_or_default();
    let _ = writeln!(shown, "The other policy:\n{pretty}\n");
    for warning in warnings {
        let _ = writeln!(shown, "Warning: {warning}");
    }
    shown.push_str(&effect(&loaded, &changed).await?);
    let _ = writeln!(shown, "{}", before.consequence());
    person::agrees(loaded.presence()?, &shown, "Save this policy?")?;
    let store = load::required_store()?;
    let place = policy_place::save(&loaded, &store, &policy, &before, &decisions::caller())?;
    print::line(format!("The policy is in {place}."));
    if loaded.is_folders {
        print::line("`toolgate trust` trusts the changed file.");
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the policy that counts, as it is written.
pub(super) fn export(globals: &Globals) -> CommandResult {
    let loaded = load::load(globals)?;
    let written = WrittenPolicy::of(&loaded);
    if written.value == Value::Null {
        return Err(Failure::new(format!("the policy is {}", written.origin())));
    }
    print::note(format!("the policy is {}", written.origin()));
    print::line(written.text());
    Ok(ExitCode::SUCCESS)
}

/// Removes the policy that is saved in the database of a fleet.
pub(super) async fn remove(globals: &Globals) -> CommandResult {
    lineage::refuse_servers()?;
    let loaded = load::load(globals)?;
    load::report(&loaded);
    let before = WrittenPolicy::of(&loaded);
    if !before.is_saved() {
        return Err(policy_place::nothing_saved(&before));
    }
    let (changed, warnings) = load::policy_if(&loaded, OtherPolicy::OfConfiguration)?;
    let mut shown = format!(
        "The policy now is {}.\nWithout it, each node uses `policy` of its own configuration. Here, this is the effect.\n",
        before.origin()
    );
    for warning in warnings {
        let _ = writeln!(shown, "Warning: {warning}");
    }
    shown.push_str(&effect(&loaded, &changed).await?);
    person::agrees(loaded.presence()?, &shown, "Remove the saved policy?")?;
    let store = load::required_store()?;
    let place = policy_place::remove(&loaded, &store, &before, &decisions::caller())?;
    print::line(format!("The policy is in {place}."));
    Ok(ExitCode::SUCCESS)
}

/// What the other policy would have decided differently, in lines.
async fn effect(loaded: &Loaded, changed: &PolicySettings) -> Result<String, Failure> {
    let store = load::required_store()?;
    let host = super::cached_host(loaded).await;
    let found = host.what_if(changed, &*store.audit());
    host.shutdown().await;
    let found = found.map_err(|error| Failure::new(error.to_string()))?;
    Ok(what_if::words(&found).iter().fold(String::new(), |all, words| format!("{all}{words}\n")))
}
