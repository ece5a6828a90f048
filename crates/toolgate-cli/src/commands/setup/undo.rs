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
    let (lines, is_whole) = restore(arguments.dry_run)?;
    if arguments.output.json {
        print::json(&json!({ "files": lines, "restored": is_whole }))?;
    } else {
        lines.iter().for_each(print::line);
    }
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Restores the files of the last setup, or only says which they are. Returns what became of each, and whether all are
/// as they were.
pub(super) fn restore(only_shown: bool) -> Result<(Vec<String>, bool), Failure> {
    let all = ChangeRecord::all(&records()?);
    if all.is_empty() {
        return Err(Failure::usage("there is no setup to undo"));
    }
    let mut lines = Vec::new();
    let mut is_whole = true;
    let mut staying = Vec::new();
    for path in &all {
        let damaged = || {
            Failure::new(format!("{} is damaged", folders::shown(path)))
                .hint("restore the files from their back-ups: FILE.toolgate-DATE")
        };
        let text = fs::read_to_string(path).map_err(|_| damaged())?;
        let record: ChangeRecord = serde_json::from_str(&text).map_err(|_| damaged())?;
        if only_shown {
            let shown = record.files.iter().map(|file| folders::shown(&file.path));
            lines.extend(shown.map(|file| format!("{file} would be restored")));
            break;
        }
        let undone = undo(&record, &mut staying);
        lines.extend(undone.iter().map(told));
        let open: Vec<&Path> = undone.iter().filter_map(open).collect();
        is_whole &= open.is_empty();
        if open.is_empty() {
            forget(&record, path)?;
            break;
        }
        // Those that are restored are not looked at again, unless one of them uses a file that stays.
        let is_user = |path: &Path| {
            undone.iter().any(|it| matches!(it, Undone::Used { by, .. } if by == path))
        };
        let is_open = |path: &Path| open.contains(&path) || is_user(path);
        let is_stuck = undone.iter().all(|it| is_open(it.path()));
        let mut rest = record.clone();
        rest.files.retain(|file| is_open(&file.path));
        rest.update(path).map_err(|error| {
            Failure::new(format!("cannot write {}: {error}", folders::shown(path)))
        })?;
        if !is_stuck {
            break;
        }
        // What stays stops no earlier setup from being undone.
    }
    Ok((lines, is_whole))
}

/// The file that stays as it is.
fn open(undone: &Undone) -> Option<&Path> {
    match undone {
        Undone::Changed { path, .. } | Undone::Used { path, .. } | Undone::Failed(path, _) => {
            Some(path)
        }
        _ => None,
    }
}

/// Forgets what a setup that is undone has stored.
fn forget(record: &ChangeRecord, path: &Path) -> Result<(), Failure> {
    // The clients have the values in their files again.
    let store = load::required_store()?;
    let vault = store.vault(load::vault_key());
    for name in &record.secrets {
        let _ = vault.forget(&vault_name(name));
    }
    for name in &record.tokens {
        let _ = store.access_tokens().revoke(name);
    }
    fs::remove_file(path)
        .map_err(|error| Failure::new(format!("cannot remove {}: {error}", folders::shown(path))))
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
            let backup =
                backup.as_deref().map(|it| format!("the back-up is {}", folders::shown(it)));
            changed(path, what, since, backup)
        }
        Undone::Changed { path, backup, since } => {
            let out = match backup {
                Some(backup) => format!(
                    "put the back-up in its place, and undo again: cp {} {}",
                    folders::shown(backup),
                    folders::shown(path)
                ),
                None => "take toolgate out of it, or remove it, and undo again".to_owned(),
            };
            changed(path, "has changed since, and stays as it is", since, Some(out))
        }
        Undone::Failed(path, why) => format!("{} cannot be restored: {why}", folders::shown(path)),
    }
}

fn changed(path: &Path, what: &str, since: &str, hint: Option<String>) -> String {
    let hint = hint.map(|it| format!("\n  hint: {it}")).unwrap_or_default();
    format!("{} {what}:\n{}{hint}", folders::shown(path), since.trim_end())
}
