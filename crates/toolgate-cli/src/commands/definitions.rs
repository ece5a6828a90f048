//! `toolgate definitions`

use std::{collections::BTreeSet, process::ExitCode};

use serde_json::{Value, json};
use toolgate::{HostConfigError, PinFile};
use toolgate_catalog::{Definition, ServerName, Tool, ToolId};
use toolgate_host::{HiddenReason, HiddenTool, Host};
use toolgate_policy::{
    NewTools,
    definitions::{ChangeKind, Lock, scan, shadowing, shown},
};
use toolgate_store::AuditRecord;

use super::findings::{Findings, is_held};
use crate::{
    cli::{Definitions, DefinitionsCommand, Globals},
    decisions,
    failure::Failure,
    load::{self, Loaded},
    printer::Printer,
};

pub(crate) async fn run(
    globals: &Globals,
    arguments: &Definitions,
    printer: &mut Printer,
) -> Result<ExitCode, Failure> {
    let (loaded, host) = super::start(globals, None, printer)?;
    super::settle(&host).await;
    let held: Vec<HiddenTool> = host.hidden_tools().into_iter().filter(is_held).collect();
    let outcome = match &arguments.command {
        None => list(&host, &held, arguments.output.json, printer),
        Some(DefinitionsCommand::Diff { name }) => diff(&held, name, printer),
        Some(DefinitionsCommand::Approve { names, all }) => {
            approve(&loaded, &host, &held, names, *all, printer)
        }
    };
    host.shutdown().await;
    outcome
}

fn list(
    host: &Host,
    held: &[HiddenTool],
    as_json: bool,
    printer: &mut Printer,
) -> Result<ExitCode, Failure> {
    if as_json {
        let rows: Vec<Value> = held
            .iter()
            .map(|tool| match &tool.why {
                HiddenReason::Held(change) => json!({ "name": tool.name, "change": change }),
                HiddenReason::Suspicious(found) => json!({ "name": tool.name, "findings": found }),
                HiddenReason::Denied => json!({ "name": tool.name }),
            })
            .collect();
        printer.json(&rows)?;
        return Ok(ExitCode::SUCCESS);
    }
    for tool in held {
        printer.line(format!("{}: {}", tool.name, summary(tool)));
        let found = match &tool.why {
            HiddenReason::Suspicious(found) => found.clone(),
            _ => scan(&tool.definition).iter().map(ToString::to_string).collect(),
        };
        for finding in found {
            printer.line(format!("  {finding}"));
        }
    }
    if held.is_empty() {
        printer.note("no tool is held back");
    } else {
        printer.note(
            "`toolgate definitions diff TOOL` shows one, `toolgate definitions approve TOOL` lets it in",
        );
    }
    for finding in Findings::of(host).told {
        printer.note(finding);
    }
    Ok(ExitCode::SUCCESS)
}

fn diff(held: &[HiddenTool], name: &str, printer: &mut Printer) -> Result<ExitCode, Failure> {
    let tool = find(held, name)?;
    if let HiddenReason::Held(change) = &tool.why
        && let ChangeKind::Changed(differences) = &change.kind
    {
        printer.line(differences);
    } else {
        printer.line(format!("{}: {}", tool.name, summary(tool)));
        printer.line(shown(&tool.definition.to_value().to_string(), 20_000));
    }
    Ok(ExitCode::SUCCESS)
}

fn approve(
    loaded: &Loaded,
    host: &Host,
    held: &[HiddenTool],
    names: &[String],
    all: bool,
    printer: &mut Printer,
) -> Result<ExitCode, Failure> {
    let pins = PinFile::beside(&loaded.path);
    let mut lock = pins.read(NewTools::Hold).map_err(HostConfigError::Pins)?.unwrap_or_default();
    let chosen: Vec<&HiddenTool> = if all {
        held.iter().collect()
    } else {
        names.iter().map(|name| find(held, name)).collect::<Result<_, _>>()?
    };
    for tool in &chosen {
        keep(&mut lock, &tool.id.server, &tool.definition, &tool.why);
    }
    let mut pinned = chosen.len();
    if all {
        let tools: Vec<Tool> = host.catalog().read().tools().cloned().collect();
        let ids: Vec<ToolId> = tools.iter().map(|tool| tool.id.clone()).collect();
        let alike: BTreeSet<ToolId> =
            shadowing(&ids).into_iter().map(|shadow| shadow.tool).collect();
        for tool in &tools {
            // A person who approves all of them approves what is told of them, too.
            if alike.contains(&tool.id) || !scan(&tool.definition).is_empty() {
                lock.review(&tool.id.server, &tool.definition);
            } else {
                lock.approve(&tool.id.server, &tool.definition);
            }
        }
        pinned += tools.len();
    }
    pins.write(&lock)
        .map_err(|error| Failure::new(format!("cannot write toolgate.lock: {error}")))?;
    if let Some(store) = load::store() {
        for tool in &chosen {
            decisions::write(&store, approved(tool))?;
        }
        if all {
            let rule = format!("{pinned} definitions approved");
            decisions::about_server("definition", "", true, rule)?;
        }
    }
    printer.line(match pinned {
        1 => "1 definition is approved as it is now.".to_owned(),
        pinned => format!("{pinned} definitions are approved as they are now."),
    });
    load::report(loaded, printer);
    Ok(ExitCode::SUCCESS)
}

/// That a definition was approved, for the record.
fn approved(tool: &HiddenTool) -> AuditRecord {
    AuditRecord {
        kind: "definition".to_owned(),
        tool: shown(&tool.name, 128),
        server: tool.id.server.to_string(),
        verdict: "allow".to_owned(),
        rule: format!("definition {} approved", tool.definition.fingerprint()),
        ..AuditRecord::default()
    }
}

fn find<'h>(held: &'h [HiddenTool], name: &str) -> Result<&'h HiddenTool, Failure> {
    held.iter().find(|tool| tool.name == name).ok_or_else(|| {
        Failure::usage(format!("no tool `{name}` is held back"))
            .hint("`toolgate definitions` lists those that are")
    })
}

/// Approves a definition that was held back, with whatever is suspicious in it: that was shown.
fn keep(lock: &mut Lock, server: &ServerName, definition: &Definition, why: &HiddenReason) {
    if matches!(why, HiddenReason::Suspicious(_)) || !scan(definition).is_empty() {
        lock.review(server, definition);
    } else {
        lock.approve(server, definition);
    }
}

fn summary(tool: &HiddenTool) -> String {
    match &tool.why {
        HiddenReason::Held(change) => match &change.kind {
            ChangeKind::Changed(differences) => {
                let count = differences.listed.len() + differences.left_out;
                format!("changed in {count} place{}", if count == 1 { "" } else { "s" })
            }
            _ => "new".to_owned(),
        },
        HiddenReason::Suspicious(_) => "suspicious".to_owned(),
        HiddenReason::Denied => "denied".to_owned(),
    }
}
