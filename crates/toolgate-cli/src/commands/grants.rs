//! `toolgate grants`

use std::process::ExitCode;

use toolgate_broker::read_grants;
use toolgate_policy::{Grant, GrantScope};
use toolgate_store::{AuditRecord, utc};

use super::approvals::unusable;
use crate::{
    cli::{Grants, GrantsCommand},
    decisions,
    failure::Failure,
    load,
    printer::Printer,
};

pub(crate) fn run(arguments: &Grants, printer: &mut Printer) -> Result<ExitCode, Failure> {
    let store = load::store().ok_or_else(super::no_data_folder)?;
    let journal = store.journal().map_err(unusable)?;
    let grants = read_grants(&journal).map_err(unusable)?;
    if let Some(GrantsCommand::Revoke { id }) = &arguments.command {
        let Some(grant) = grants.iter().find(|grant| *grant.id.0 == **id) else {
            return Err(Failure::usage(format!("there is no grant `{id}`"))
                .hint("`toolgate grants` lists those there are"));
        };
        journal.revoke(id).map_err(unusable)?;
        let record = AuditRecord {
            kind: "grant".to_owned(),
            tool: grant.tool.tool.to_string(),
            server: grant.tool.server.to_string(),
            verdict: "deny".to_owned(),
            rule: format!("grant {id} revoked"),
            ..AuditRecord::default()
        };
        decisions::write(&store, record)?;
        printer.line(format!("{id} is revoked."));
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.output.json {
        printer.json(&grants)?;
        return Ok(ExitCode::SUCCESS);
    }
    for grant in &grants {
        printer.line(line(grant));
    }
    if grants.is_empty() {
        printer.note("there are no grants");
    }
    Ok(ExitCode::SUCCESS)
}

fn line(grant: &Grant) -> String {
    let Grant { id, scope, caller, tool, arguments, labels, expires_at, by, .. } = grant;
    let scope = match scope {
        GrantScope::Once => "one call".to_owned(),
        GrantScope::Run(run) => format!("the run {run}"),
        GrantScope::Session(session) => format!("the session {session}"),
        GrantScope::Always => "always".to_owned(),
    };
    let labels = if labels.is_empty() { String::new() } else { format!(", with {labels} data") };
    let until = expires_at.map(|end| format!(", until {}", utc(end.0 / 1_000))).unwrap_or_default();
    let line = format!(
        "{}  {}/{} for {caller}: {scope}, {arguments}{labels}{until} (by {by})",
        id.0, tool.server, tool.tool
    );
    toolgate_policy::definitions::shown(&line, 1_000)
}
