//! `toolgate usage`

use std::process::ExitCode;

use serde_json::json;
use toolgate_store::{PastUse, UsageLog};

use crate::{
    cli::{Globals, Usage, UsageCommand, Which},
    failure::{CommandResult, Failure},
    load, print,
    table::{grouped, table},
};

pub(crate) fn run(globals: &Globals, arguments: &Usage) -> CommandResult {
    let store = load::required_store()?;
    let log = &*store.usage();
    match &arguments.command {
        None => list(globals, log, arguments),
        Some(UsageCommand::Erase { which, all, output }) => {
            let erased = erase(log, which, *all)?;
            if erased.is_empty() {
                check_server(globals, which)?;
            }
            print::show(output.json, &json!({ "erased": erased.len() }), || match erased.len() {
                0 => "There was nothing to erase.".to_owned(),
                1 => "1 query erased.".to_owned(),
                count => format!("{} queries erased.", grouped(count as u64)),
            })?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Fails if the selected server does not exist. Queries of a server that is gone can still be used.
fn check_server(globals: &Globals, which: &Which) -> Result<(), Failure> {
    if let Some(server) = &which.server
        && let Ok(loaded) = load::load(globals)
    {
        loaded.server(server)?;
    }
    Ok(())
}

fn list(globals: &Globals, log: &dyn UsageLog, arguments: &Usage) -> CommandResult {
    let mut uses = log.read();
    uses.retain(|past| fits(&arguments.which, past));
    if uses.is_empty() {
        check_server(globals, &arguments.which)?;
    }
    uses.sort_by(|left, right| {
        let tool = |past: &PastUse| (past.server.clone(), past.tool.clone());
        tool(left).cmp(&tool(right)).then(right.at.cmp(&left.at))
    });
    let data = uses.iter().map(|past| {
        json!({
            "server": past.server, "tool": past.tool, "query": past.query,
            "count": past.count, "against": past.against, "effect": effect(past),
            "caller": Some(&past.caller).filter(|caller| !caller.is_empty()),
            "last": past.at_utc(),
        })
    });
    let data: Vec<_> = data.collect();
    let empty =
        "search has not learned anything yet: it learns from a search and a call of what it found";
    let as_json = arguments.output.json;
    print::list(as_json, &data, empty, || render(&uses))?;
    // Otherwise a reader would believe that the queries are used.
    if !as_json
        && load::load(globals).is_ok_and(|loaded| !loaded.configuration.tool_search.usage_memory)
    {
        print::note(
            "`toolSearch.usageMemory` is false: search neither learns from queries nor uses them",
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn render(uses: &[PastUse]) -> String {
    let columns = ["server", "tool", "query", ">good", ">against", "effect", "last"];
    let rows = uses.iter().map(|past| {
        let shown = |text: &str| toolgate_host::one_line(text, 120);
        vec![
            shown(&past.server),
            shown(&past.tool),
            shown(&past.query),
            grouped(past.count),
            grouped(past.against),
            effect(past).to_owned(),
            past.at_utc(),
        ]
    });
    table(&columns, rows)
}

/// What an entry does to the rank of its tool for similar queries.
fn effect(past: &PastUse) -> &'static str {
    match past.count.saturating_sub(past.against) {
        0 => "none",
        1 => "higher",
        _ => "may be first",
    }
}

fn erase(log: &dyn UsageLog, which: &Which, all: bool) -> Result<Vec<PastUse>, Failure> {
    if !all && which.tool.is_none() && which.server.is_none() {
        return Err(Failure::usage("there is nothing selected to erase")
            .hint("name a tool or a server: --tool NAME, --server NAME; or --all"));
    }
    let keep = |past: &PastUse| !all && !fits(which, past);
    log.erase(&keep).map_err(|error| Failure::new(format!("the queries cannot be erased: {error}")))
}

/// Whether a use is selected.
fn fits(which: &Which, past: &PastUse) -> bool {
    let is_tool =
        |name: &String| *name == past.tool || *name == format!("{}_{}", past.server, past.tool);
    which.tool.as_ref().is_none_or(is_tool)
        && which.server.as_ref().is_none_or(|name| *name == past.server)
}
