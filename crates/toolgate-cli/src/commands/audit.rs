//! `toolgate audit`

use std::{collections::VecDeque, process::ExitCode};

use serde_json::json;
use toolgate_store::{AuditExtent, AuditFilter, AuditProblem, AuditRecord, utc};

use crate::{
    cli::{Audit, Globals},
    failure::{CommandResult, Failure},
    load, print,
};

pub(crate) fn run(globals: &Globals, arguments: &Audit) -> CommandResult {
    let log = load::required_store()?.audit();
    let mut problems = Vec::<AuditProblem>::new();
    let filter = AuditFilter {
        tool: arguments.tool.clone(),
        server: arguments.server.clone(),
        session: arguments.session.clone(),
        run: arguments.run.clone(),
        caller: arguments.caller.clone(),
        verdict: arguments.verdict.clone(),
        since: arguments.since.as_ref().map(|time| time.start * 1_000),
        until: arguments.until.as_ref().map(|time| time.end * 1_000),
    };
    // With a limit, the last lines are known only at the end.
    let mut last = VecDeque::new();
    let mut is_empty = true;
    let extent = log
        .read(&mut |seen| match seen {
            Err(problem) => problems.push(problem),
            Ok((time, record)) => {
                if !arguments.verify && filter.fits(time, &record) {
                    is_empty = false;
                    let line = if arguments.output.json {
                        let mut row = json!(record);
                        row["time"] = json!(time);
                        row.to_string()
                    } else {
                        shown(time, &record)
                    };
                    match arguments.lines {
                        None => print::line(line),
                        Some(most) => {
                            last.push_back(line);
                            let excess = last.len().saturating_sub(most);
                            last.drain(..excess);
                        }
                    }
                }
            }
        })
        .map_err(|error| Failure::new(error.to_string()))?;
    last.iter().for_each(print::line);
    // Lines about a server that is gone can still be looked at.
    if is_empty
        && !arguments.verify
        && let Some(server) = &arguments.server
        && let Ok(loaded) = load::load(globals)
    {
        loaded.server(server)?;
    }
    for problem in &problems {
        print::note(format!("error: {problem}"));
    }
    if arguments.verify && problems.is_empty() {
        print::line(whole(&extent));
    }
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Describes what was verified, and where the log begins, because old records are removed.
fn whole(extent: &AuditExtent) -> String {
    let AuditExtent { first, lines, files } = *extent;
    if lines == 0 {
        return "There is no audit log yet.".to_owned();
    }
    let among = if files > 1 { format!(" in {files} files") } else { String::new() };
    let beginning = match first {
        Some((number, time)) if number > 1 => {
            format!(" It begins with number {number}, at {}.", utc(time / 1_000))
        }
        _ => String::new(),
    };
    format!("The chain is whole: {lines} lines{among}.{beginning}")
}

/// One line for a person, without control sequences.
fn shown(time: u64, record: &AuditRecord) -> String {
    let AuditRecord {
        kind, caller, session, tool, server, verdict, rule, outcome, duration, ..
    } = record;
    let what = match kind.as_str() {
        "call" => tool.clone(),
        "missing" => format!("{} records could not be written", record.missing),
        _ if tool.is_empty() => [kind.as_str(), server].join(" "),
        _ => [kind.as_str(), tool].join(" "),
    };
    let took = match *duration {
        0 => String::new(),
        micros => format!("{}.{} ms", micros / 1_000, micros / 100 % 10),
    };
    let run = record.run.as_deref().unwrap_or_default();
    let origin = [caller.as_str(), session, run].join(" ");
    let line = format!(
        "{}  {verdict:<5}  {outcome:<7}  {took:>10}  {}  ({})  {rule}",
        utc(time / 1_000),
        what.trim(),
        origin.trim()
    );
    toolgate_policy::definitions::shown(line.trim_end(), 1_000)
}
