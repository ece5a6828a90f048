//! `toolgate grants`

use std::process::ExitCode;

use toolgate_broker::read_grants;
use toolgate_policy::{Grant, GrantScope};
use toolgate_store::{AuditRecord, utc};

use crate::{
    cli::{Grants, GrantsCommand},
    decisions,
    failure::{CommandResult, Failure},
    load, print,
};

pub(crate) fn run(arguments: &Grants) -> CommandResult {
    let store = load::required_store()?;
    let journal = &*store.journal()?;
    let grants = read_grants(journal)?;
    if let Some(GrantsCommand::Revoke { id }) = &arguments.command {
        let Some(grant) = grants.iter().find(|grant| *grant.id.0 == **id) else {
            return Err(Failure::usage(format!("there is no grant `{id}`"))
                .hint("`toolgate grants` lists the grants"));
        };
        journal.revoke(id)?;
        let record = AuditRecord {
            tool: grant.tool.tool.to_string(),
            server: grant.tool.server.to_string(),
            ..decisions::record("grant", false, format!("grant {id} revoked"))
        };
        decisions::write(&store, &record)?;
        print::line(format!("{id} is revoked."));
        return Ok(ExitCode::SUCCESS);
    }
    let lines = || grants.iter().map(line).collect::<Vec<_>>().join("\n");
    print::list(arguments.output.json, &grants, "there are no grants", lines)?;
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
