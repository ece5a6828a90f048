//! `toolgate trust`

use std::{path::Path, process::ExitCode};

use serde_json::{Value, json};
use toolgate_store::utc;

use crate::{
    cli::Trust,
    decisions,
    failure::{CommandResult, Failure},
    folders, load, person, print,
    trust::{self, FolderFile, Trusted},
};

pub(crate) fn run(arguments: &Trust) -> CommandResult {
    let folder = arguments.folder.as_deref().unwrap_or_else(|| Path::new("."));
    if arguments.list {
        return list(arguments.output.json);
    }
    if arguments.forget {
        let gone = trust::forget(folder)?;
        if gone.is_empty() {
            return Err(Failure::usage(format!("{} is not trusted", folders::shown(folder)))
                .hint("`toolgate trust --list` lists what is"));
        }
        for path in gone {
            record(&path, false, "the trust is taken back")?;
            print::line(format!("{} is no longer trusted.", folders::shown(Path::new(&path))));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let Some(path) = folders::configuration_of(folder) else {
        return Err(Failure::usage(format!(
            "{} has no configuration that needs trust; looked for {}",
            folders::shown(folder),
            folders::OF_FOLDER.join(", ")
        )));
    };
    let file = FolderFile::read(path)?;
    let path = folders::shown(&file.path);
    let says = format!("{path} says:\n\n{}", file.shown()?);
    if file.is_trusted() {
        print::line(says);
        print::line(format!("{path} is trusted, as it is now."));
        return Ok(ExitCode::SUCCESS);
    }
    let env_files = if file.has_env_files() { ", or of its env files," } else { "" };
    let shown = format!(
        "{says}\nIf you trust it, all of this is used whenever toolgate is started in this folder. Your \
         own policy holds as well. After any change of the file{env_files} you are asked again."
    );
    person::agrees(load::own_presence()?, &shown, "Trust this file, as it is shown?")?;
    file.trust()?;
    record(&file.path.display().to_string(), true, &file.fingerprint())?;
    print::line(format!(
        "{path} is trusted. A gateway that runs in this folder uses it within seconds."
    ));
    Ok(ExitCode::SUCCESS)
}

fn list(as_json: bool) -> CommandResult {
    let all = trust::all()?;
    let state = |trusted: &Trusted| {
        let file = FolderFile::read(trusted.path.clone().into());
        match file.map(|file| file.fingerprint() == trusted.fingerprint) {
            Ok(true) => "trusted",
            Ok(false) => "changed since, so not trusted",
            Err(_) => "not there",
        }
    };
    let rows: Vec<Value> = all
        .iter()
        .map(|one| json!({ "file": one.path, "state": state(one), "at": one.at }))
        .collect();
    print::list(as_json, &rows, "no folder is trusted", || {
        let line = |one: &Trusted| {
            let path = folders::shown(Path::new(&one.path));
            format!("{path}: {} ({})", state(one), utc(one.at))
        };
        all.iter().map(line).collect::<Vec<_>>().join("\n")
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the decision to the audit log.
fn record(path: &str, allowed: bool, what: &str) -> Result<(), Failure> {
    let Some(store) = load::store() else { return Ok(()) };
    let record = decisions::record("trust", allowed, format!("{path}: {what}"));
    decisions::write(&store, &record)
}
