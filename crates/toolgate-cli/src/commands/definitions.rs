//! `toolgate definitions`

use std::{collections::BTreeSet, fmt::Write as _, process::ExitCode};

use serde_json::{Value, json};
use toolgate::setup::{HostConfigError, PinFile};
use toolgate_catalog::{Tool, ToolId};
use toolgate_host::{HiddenReason, HiddenTool, Host};
use toolgate_policy::{
    NewTools,
    definitions::{Change, ChangeKind, scan, shadowing, shown},
};
use toolgate_store::AuditRecord;
use toolgate_upstream::StateKind;

use super::findings::{Findings, is_held};
use crate::{
    cli::{Definitions, DefinitionsCommand, Globals},
    decisions,
    failure::{CommandResult, Failure},
    lineage,
    load::{self, Loaded},
    person, print,
};

/// How much of a definition is shown.
const LONGEST_DEFINITION: usize = 20_000;

pub(crate) async fn run(globals: &Globals, arguments: &Definitions) -> CommandResult {
    let (loaded, host) = super::start(globals, None)?;
    if matches!(arguments.command, Some(DefinitionsCommand::Approve { .. })) {
        // What is approved is what the servers have now, lazy ones too.
        host.recalled().await;
        for setup in &host.settings().servers {
            host.servers().wake(setup.spec.name.as_str());
        }
    }
    super::settle(&host).await;
    let held: Vec<HiddenTool> = host.hidden_tools().into_iter().filter(is_held).collect();
    let outcome = match &arguments.command {
        None => list(&host, &held, arguments.output.json),
        Some(DefinitionsCommand::Diff { name }) => diff(&held, name),
        Some(DefinitionsCommand::Approve { names, all }) => {
            approve(&loaded, &host, &held, names, *all)
        }
    };
    host.shutdown().await;
    outcome
}

fn list(host: &Host, held: &[HiddenTool], as_json: bool) -> CommandResult {
    if as_json {
        let rows: Vec<Value> = held
            .iter()
            .map(|tool| match &tool.why {
                HiddenReason::Held(change) => json!({ "name": tool.name, "change": change }),
                HiddenReason::Suspicious(found) => json!({ "name": tool.name, "findings": found }),
                HiddenReason::Denied => json!({ "name": tool.name }),
            })
            .collect();
        print::json(&rows)?;
        return Ok(ExitCode::SUCCESS);
    }
    for tool in held {
        print::line(format!("{}: {}", tool.name, summary(tool)));
        let found = match &tool.why {
            HiddenReason::Suspicious(found) => found.clone(),
            _ => scan(&tool.definition).iter().map(ToString::to_string).collect(),
        };
        for finding in found {
            print::line(format!("  {finding}"));
        }
    }
    if held.is_empty() {
        print::note("no tool is held back");
    } else {
        print::note(
            "`toolgate definitions diff TOOL` shows one, `toolgate definitions approve TOOL` lets it in",
        );
    }
    for finding in Findings::of(host).listed {
        print::note(finding);
    }
    Ok(ExitCode::SUCCESS)
}

fn diff(held: &[HiddenTool], name: &str) -> CommandResult {
    let tool = find(held, name)?;
    if let HiddenReason::Held(change) = &tool.why
        && let ChangeKind::Changed(differences) = &change.kind
    {
        print::line(differences);
    } else {
        print::line(format!("{}: {}", tool.name, summary(tool)));
        print::line(shown(&tool.definition.to_value().to_string(), LONGEST_DEFINITION));
    }
    Ok(ExitCode::SUCCESS)
}

fn approve(
    loaded: &Loaded,
    host: &Host,
    held: &[HiddenTool],
    names: &[String],
    all: bool,
) -> CommandResult {
    let pins = PinFile::beside(&loaded.path);
    let mut lock = pins.read(NewTools::Hold).map_err(HostConfigError::Pins)?.unwrap_or_default();
    let chosen: Vec<&HiddenTool> = if all {
        held.iter().collect()
    } else {
        names.iter().map(|name| find(held, name)).collect::<Result<_, _>>()?
    };
    let tools: Vec<Tool> =
        if all { host.catalog().read().tools().cloned().collect() } else { Vec::new() };
    let ids: Vec<ToolId> = tools.iter().map(|tool| tool.id.clone()).collect();
    let alike: BTreeSet<ToolId> = shadowing(&ids).into_iter().map(|shadow| shadow.tool).collect();
    let is_suspicious =
        |tool: &&Tool| alike.contains(&tool.id) || !scan(&tool.definition).is_empty();
    let suspicious: Vec<&Tool> = tools
        .iter()
        .filter(is_suspicious)
        .filter(|tool| !lock.is_reviewed(&tool.id.server, &tool.definition))
        .collect();
    agreed(loaded, &chosen, &suspicious)?;
    // The findings of held tools were shown.
    for HiddenTool { id, definition, why, .. } in chosen.iter().copied() {
        if matches!(why, HiddenReason::Suspicious(_)) || !scan(definition).is_empty() {
            lock.review(&id.server, definition);
        } else {
            lock.approve(&id.server, definition);
        }
    }
    for tool in &tools {
        // A person who approves all of them approves their findings, too.
        if is_suspicious(&tool) {
            lock.review(&tool.id.server, &tool.definition);
        } else {
            lock.approve(&tool.id.server, &tool.definition);
        }
    }
    let pinned = chosen.len() + tools.len();
    pins.write(&lock)
        .map_err(|error| Failure::new(format!("cannot write toolgate.lock: {error}")))?;
    if let Some(store) = load::store() {
        for tool in &chosen {
            let rule = format!("definition {} approved", tool.definition.fingerprint());
            let record = AuditRecord {
                tool: shown(&tool.name, 128),
                server: tool.id.server.to_string(),
                ..decisions::record("definition", true, rule)
            };
            decisions::write(&store, &record)?;
        }
        if all {
            let rule = format!("{pinned} definitions approved");
            decisions::about_server("definition", "", true, rule)?;
        }
    }
    print::line(match pinned {
        1 => "1 definition is approved as it is now.".to_owned(),
        pinned => format!("{pinned} definitions are approved as they are now."),
    });
    load::report(loaded);
    if !all {
        return Ok(ExitCode::SUCCESS);
    }
    let missing = missing(host);
    for sentence in &missing {
        print::note(sentence);
    }
    Ok(if missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The servers whose definitions are not known or may be old, with the reasons.
fn missing(host: &Host) -> Vec<String> {
    let sentence = |name: &str| {
        let state = host.servers().state(name)?;
        let (reason, action) = match (state.kind, state.failure) {
            (StateKind::Ready, _) => return None,
            (StateKind::Disabled, _) => {
                ("it is disabled".to_owned(), format!("enable it with `toolgate enable {name}`"))
            }
            (_, Some(failure)) => (failure.reason, failure.action),
            (_, None) => ("it is not connected".to_owned(), format!("see `toolgate logs {name}`")),
        };
        let what = if host.catalog().read().tools_of(name).is_empty() {
            "no definition of its tools is approved"
        } else {
            "the definitions of its last connection are approved"
        };
        Some(format!(
            "warning: server `{name}` did not list its tools, so {what}: {reason}; {action}, and then \
             repeat `toolgate definitions approve --all`"
        ))
    };
    host.settings().servers.iter().filter_map(|it| sentence(it.spec.name.as_str())).collect()
}

/// Asks the person about the tools that would be let in or no longer be suspected. To pin what is used
/// anyway permits nothing.
fn agreed(loaded: &Loaded, held: &[&HiddenTool], suspicious: &[&Tool]) -> Result<(), Failure> {
    if held.is_empty() && suspicious.is_empty() {
        return lineage::refuse_servers();
    }
    let mut text = String::new();
    for tool in held {
        let _ = writeln!(text, "{}: {}", shown(&tool.name, 128), summary(tool));
        if let HiddenReason::Held(Change { kind: ChangeKind::Changed(differences), .. }) = &tool.why
        {
            let _ = writeln!(text, "{differences}");
        } else {
            let definition = tool.definition.to_value().to_string();
            let _ = writeln!(text, "{}", shown(&definition, LONGEST_DEFINITION));
        }
    }
    let held = held.iter().map(|tool| (&tool.name[..], &tool.definition));
    let suspicious = suspicious.iter().map(|tool| (tool.name.as_str(), &tool.definition));
    for (name, definition) in held.chain(suspicious) {
        for finding in scan(definition) {
            let _ = writeln!(text, "`{}`: {finding}", shown(name, 128));
        }
    }
    person::agrees(loaded.presence(), &text, "Approve these definitions, as they are shown?")
}

fn find<'h>(held: &'h [HiddenTool], name: &str) -> Result<&'h HiddenTool, Failure> {
    held.iter().find(|tool| tool.name == name).ok_or_else(|| {
        Failure::usage(format!("no tool `{name}` is held back"))
            .hint("`toolgate definitions` lists those that are")
    })
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
