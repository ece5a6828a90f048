//! Restores the files that a setup has changed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use serde_json::json;
use toolgate::setup::vault_name;
use toolgate_clients::{ChangeRecord, Undone, undo};

use crate::{
    cli::Setup,
    failure::{CommandResult, Failure},
    folders, load, print,
};

/// The folder with the records of setups.
pub(super) fn records() -> Result<PathBuf, Failure> {
    let state = folders::state().ok_or_else(|| Failure::new("there is no state folder"))?;
    Ok(state.join("setup"))
}

pub(super) fn run(arguments: &Setup) -> CommandResult {
    let last = ChangeRecord::last(&records()?);
    let Some(path) = last else {
        return Err(Failure::usage("there is no setup to undo"));
    };
    let damaged = || {
        Failure::new(format!("{} is damaged", folders::shown(&path)))
            .hint("restore the files from their back-ups: FILE.toolgate-DATE")
    };
    let text = fs::read_to_string(&path).map_err(|_| damaged())?;
    let record: ChangeRecord = serde_json::from_str(&text).map_err(|_| damaged())?;
    if arguments.dry_run {
        for file in &record.files {
            print::line(format!("{} would be restored", folders::shown(&file.path)));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let undone = undo(&record);
    let is_open = |it: &Undone| {
        matches!(it, Undone::Changed { .. } | Undone::Used { .. } | Undone::Failed(..))
    };
    let is_whole = !undone.iter().any(is_open);
    let lines: Vec<String> = undone.iter().map(told).collect();
    if arguments.output.json {
        print::json(&json!({ "files": lines, "restored": is_whole }))?;
    } else {
        lines.iter().for_each(print::line);
    }
    if !is_whole {
        // Those that are restored are not looked at again.
        let is_open = |path: &PathBuf| {
            undone.iter().any(|it| matches!(it, Undone::Changed { path: it, .. } | Undone::Used { path: it, .. } | Undone::Failed(it, _) if it == path))
        };
        let mut rest = record.clone();
        rest.files.retain(|file| is_open(&file.path));
        rest.update(&path).map_err(|error| {
            Failure::new(format!("cannot write {}: {error}", folders::shown(&path)))
        })?;
        return Ok(ExitCode::FAILURE);
    }
    // The clients have the values in their files again.
    let vault = load::required_store()?.vault(load::vault_key());
    for name in &record.secrets {
        let _ = vault.forget(&vault_name(name));
    }
    fs::remove_file(&path).map_err(|error| {
        Failure::new(format!("cannot remove {}: {error}", folders::shown(&path)))
    })?;
    Ok(ExitCode::SUCCESS)
}

fn told(undone: &Undone) -> String {
    match undone {
        Undone::Restored(path) => format!("{} is what it was.", folders::shown(path)),
        Undone::Removed(path) => {
            format!("{} was not there before, and is removed.", folders::shown(path))
        }
        Undone::Untouched(path) => {
            format!("{} was not changed.", folders::shown(path))
        }
        Undone::Used { path, by } => {
            let (path, by) = (folders::shown(path), folders::shown(by));
            format!(
                "{path} was not there before, and stays, because {by} uses it.\n  hint: take toolgate out of that file, and undo again"
            )
        }
        Undone::TakenBack { path, backup, since } => {
            let what = "has its servers as they were. What has changed since stays";
            changed(path, what, since, backup.as_deref())
        }
        Undone::Changed { path, backup, since } => {
            changed(path, "has changed since, and stays as it is", since, backup.as_deref())
        }
        Undone::Failed(path, why) => format!("{} cannot be restored: {why}", folders::shown(path)),
    }
}

fn changed(path: &Path, what: &str, since: &str, backup: Option<&Path>) -> String {
    let backup = backup.map(|it| format!("\n  hint: the back-up is {}", folders::shown(it)));
    let backup = backup.unwrap_or_default();
    format!("{} {what}:\n{}{backup}", folders::shown(path), since.trim_end())
}
