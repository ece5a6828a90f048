//! `toolgate fleet`

use std::{process::ExitCode, time::Duration};

use indicatif::ProgressBar;
use serde_json::json;
use toolgate_fleet::{Fleet, FleetStatus, ImportSummary, ImportedChoices, RestoreSummary};
use toolgate_store::{LoginStoreError, Store};

use crate::{
    cli::{FleetCommand, Globals},
    failure::{CommandResult, Failure},
    fleet::{self, FleetRole},
    load, print,
    table::{grouped, table},
};

pub(crate) fn run(globals: &Globals, command: &FleetCommand) -> CommandResult {
    let config = load::fleet(globals)?.ok_or_else(|| {
        Failure::usage("the configuration has no `fleet`, so there is no shared database")
            .hint("write \"fleet\": { \"database\": \"${DATABASE_URL}\" }")
    })?;
    match command {
        FleetCommand::Status { output } => {
            let status = Fleet::open(&fleet::options(&config, FleetRole::Command)?)?.status()?;
            print::show(output.json, &json!(status), || shown(&status))?;
        }
        FleetCommand::Migrate { output } => {
            let (before, after) = Fleet::migrate(fleet::database(&config)?)?;
            print::show(output.json, &json!({ "before": before, "after": after }), || {
                if before == after {
                    format!("The tables are of version {after}; there was nothing to do.")
                } else {
                    format!("The tables are of version {after} now; before, {before}.")
                }
            })?;
        }
        FleetCommand::Import { output } => {
            let store = load::required_store()?.embedded();
            let fleet = Fleet::open(&fleet::options(&config, FleetRole::Command)?)?;
            let loaded = load::load(globals)?;
            let namespaces = loaded.configuration.namespaces.iter();
            let namespaces = namespaces.map(|it| Some(it.name.as_str())).chain([None]);
            let names = namespaces.filter_map(|name| loaded.choice_names(name));
            let choices: Vec<ImportedChoices> =
                names.map(|(from, to)| ImportedChoices { from, to }).collect();
            let progress = progress();
            let told_of = &mut |what: &str| progress.set_message(format!("copying {what}"));
            let copied = fleet.import(&store, &choices, told_of);
            progress.finish_and_clear();
            let copied = copied.map_err(|error| {
                Failure::new(format!("not everything was copied: {error}"))
                    .hint("run the command again; it copies what is missing")
            })?;
            // Without the key there may still be all the rest.
            let logins = import_logins(&store);
            let mut row = json!(copied);
            row["logins"] = json!(logins.as_ref().ok());
            print::show(output.json, &row, || told(copied, logins.as_ref().copied().unwrap_or(0)))?;
            logins?;
        }
        FleetCommand::Restored { output } => {
            let fleet = Fleet::open(&fleet::options(&config, FleetRole::Command)?)?;
            let ended = fleet.restored()?;
            print::show(output.json, &json!(ended), || after_restore(ended))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What was ended, and what only a person can know.
fn after_restore(ended: RestoreSummary) -> String {
    let RestoreSummary { runs, approvals, requests } = ended;
    format!(
        "Ended {} runs, {} questions and answers, and {} sessions, requests and tasks.\n\
         These are of the time of the back-up too, so look through them before you start the nodes:\n\
         - `toolgate token list`: a token that was revoked since then is valid again.\n\
         - `toolgate grants`: the same holds for grants.\n\
         - `toolgate policy`: a policy that was saved or removed since then is as it was.\n\
         - `toolgate logins`: a login that was renewed since then has an old token, and its caller has to log in again.\n\
         - The limits of a day count from the back-up on.",
        grouped(runs),
        grouped(approvals),
        grouped(requests),
    )
}

/// Copies the logins of callers that the shared database does not have.
fn import_logins(from: &Store) -> Result<u64, Failure> {
    let key = load::vault_key();
    let failed = |error: LoginStoreError| Failure::new(format!("no login was copied: {error}"));
    let own = from.logins(&key).list().map_err(failed)?;
    if own.is_empty() {
        return Ok(0);
    }
    let shared = load::required_store()?.logins(&key);
    let mut copied = 0;
    for (login, secret) in own {
        if shared.load(&login).map_err(failed)?.is_none() {
            shared.save(&login, &secret).map_err(failed)?;
            copied += 1;
        }
    }
    Ok(copied)
}

fn progress() -> ProgressBar {
    let progress = ProgressBar::new_spinner();
    progress.enable_steady_tick(Duration::from_millis(100));
    progress
}

fn shown(status: &FleetStatus) -> String {
    let rows = status.nodes.iter().map(|node| {
        vec![
            node.id.clone(),
            node.version.clone(),
            if node.url.is_empty() { "-".to_owned() } else { node.url.clone() },
            format!("{} s", grouped(node.up_seconds.unsigned_abs())),
            grouped(node.running.unsigned_abs()),
        ]
    });
    let nodes = match status.nodes.len() {
        0 => "No node is running.".to_owned(),
        _ => table(&["node", "version", "advertises", "up", "runs"], rows),
    };
    let rows = status.servers.iter().map(|lease| {
        vec![lease.server.clone(), lease.node.clone(), grouped(lease.epoch.unsigned_abs())]
    });
    let servers = match status.servers.len() {
        0 => String::new(),
        _ => format!("\n\n{}", table(&["runs once", "at node", "epoch"], rows)),
    };
    let count = |number: i64| grouped(number.unsigned_abs());
    let audit = match status.audit_lines {
        Some(lines) => format!("{} lines of the audit log", count(lines)),
        None => "the audit log is damaged (`toolgate audit --verify`)".to_owned(),
    };
    format!(
        "{nodes}{servers}\n\nPostgreSQL {}, tables of version {}, {} MB\n{} runs, of which {} belong to nodes that are gone; \
         {} open approvals; {audit}; {} sessions",
        status.server,
        status.schema,
        count(status.bytes / 1_000_000),
        count(status.running),
        count(status.abandoned),
        count(status.open_approvals),
        count(status.sessions),
    )
}

fn told(copied: ImportSummary, logins: u64) -> String {
    let ImportSummary {
        runs,
        grants,
        approvals,
        audit_lines,
        tokens,
        uses,
        choices,
        limits,
        audit_left_out,
    } = copied;
    let left_out = if audit_left_out {
        "\nThe audit log was not copied: the shared log has lines of another state folder, or of an earlier time of \
         this one, and lines must not be there twice. Keep the state folder: without `fleet` in the configuration, \
         `toolgate audit` reads it there."
    } else {
        ""
    };
    format!(
        "Copied {} runs, {} grants, {} open approvals, {} lines of the audit log, {} tokens, {} past queries, {} disabled \
         servers and consents, {} counts of limits, and {} logins of callers.{left_out}",
        grouped(runs),
        grouped(grants),
        grouped(approvals),
        grouped(audit_lines),
        grouped(tokens),
        grouped(uses),
        grouped(choices),
        grouped(limits),
        grouped(logins),
    )
}
