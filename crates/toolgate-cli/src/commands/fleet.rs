//! `toolgate fleet`

use std::{process::ExitCode, time::Duration};

use indicatif::ProgressBar;
use serde_json::json;
use toolgate_fleet::{Fleet, FleetStatus, ImportSummary, ImportedChoices};

use crate::{
    cli::{FleetCommand, Globals},
    failure::{CommandResult, Failure},
    fleet::{self, FleetRole},
    load, print,
    table::{grouped, table},
};

pub(crate) fn run(globals: &Globals, command: &FleetCommand) -> CommandResult {
    let config = load::fleet(globals).ok_or_else(|| {
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
            print::show(output.json, &json!(copied), || told(copied))?;
        }
    }
    Ok(ExitCode::SUCCESS)
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
    format!(
        "{nodes}{servers}\n\nPostgreSQL {}, tables of version {}, {} MB\n{} runs, of which {} belong to nodes that are gone; \
         {} open approvals; {} lines of the audit log; {} sessions",
        status.server,
        status.schema,
        count(status.bytes / 1_000_000),
        count(status.running),
        count(status.abandoned),
        count(status.open_approvals),
        count(status.audit_lines),
        count(status.sessions),
    )
}

fn told(copied: ImportSummary) -> String {
    let ImportSummary {
        runs,
        grants,
        approvals,
        audit_lines,
        tokens,
        uses,
        choices,
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
        "Copied {} runs, {} grants, {} open approvals, {} lines of the audit log, {} tokens, {} past queries, and {} \
         disabled servers and consents.{left_out}",
        grouped(runs),
        grouped(grants),
        grouped(approvals),
        grouped(audit_lines),
        grouped(tokens),
        grouped(uses),
        grouped(choices),
    )
}
