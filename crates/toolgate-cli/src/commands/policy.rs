//! `toolgate policy`

mod save;
mod show;
mod suggest;
mod what_if;

use std::process::ExitCode;

use serde_json::{Value, json};
use toolgate_catalog::Tool;
use toolgate_host::{Connect, HiddenReason, HiddenTool, HostSettings, ToolHost};
use toolgate_policy::{Flow, LabelSet, ToolPolicy, is_reading, request_as_tool};

use crate::{
    cli::{Globals, Policy, PolicyCommand},
    failure::{CommandResult, Failure},
    load::Loaded,
    print,
};

pub(crate) async fn run(globals: &Globals, arguments: &Policy) -> CommandResult {
    match &arguments.command {
        None => show::show(globals, arguments.output.json).await,
        Some(PolicyCommand::Suggest { server, write, output }) => {
            suggest::run(globals, server.as_deref(), *write, output.json).await
        }
        Some(PolicyCommand::WhatIf { file, output }) => {
            what_if::run(globals, file, output.json).await
        }
        Some(PolicyCommand::Save { file, replace }) => save::run(globals, file, *replace).await,
        Some(PolicyCommand::Export) => save::export(globals),
        Some(PolicyCommand::Remove) => save::remove(globals).await,
        Some(PolicyCommand::Check { name, arguments, output }) => {
            check(globals, name, arguments.as_deref(), output.json).await
        }
    }
}

/// A host with the tools that are in the cache. It starts no server.
async fn cached_host(loaded: &Loaded) -> ToolHost {
    let mut settings = HostSettings {
        connect: Connect::WhenNeeded,
        code: None,
        encoder: None,
        ..loaded.settings(None)
    };
    for setup in &mut settings.servers {
        setup.lazy = true;
    }
    let host = ToolHost::start(settings);
    host.recalled().await;
    host
}

/// A tool's policy, its server, and why the tool is not listed if it is not.
type ToolStatus = (ToolPolicy, String, Option<HiddenReason>);

async fn check(
    globals: &Globals,
    name: &str,
    arguments: Option<&str>,
    as_json: bool,
) -> CommandResult {
    let arguments: Value = serde_json::from_str(arguments.unwrap_or("{}"))
        .map_err(|error| Failure::usage(format!("the arguments are not JSON: {error}")))?;
    if !arguments.is_object() {
        return Err(Failure::usage("the arguments are JSON, but no object")
            .hint("write them as an object: '{\"path\": \"notes.txt\"}'"));
    }
    let names = [name.to_owned()];
    let (_, host) = super::start_when_needed(globals, super::Needed::Names(&names), None).await?;
    let found = find(&host, name).ok_or_else(|| unknown(&host, name));
    host.shutdown().await;
    let (policy, server, hidden) = found?;
    let explanation = policy.explain(&arguments, &Flow::NONE);
    if as_json {
        let mut data = json!(explanation);
        data["tool"] = json!(name);
        data["server"] = json!(server);
        data["labels"] = json!(policy.labels());
        data["hidden"] = json!(hidden.is_some());
        print::json(&data)?;
        return Ok(ExitCode::SUCCESS);
    }
    print::line(&explanation);
    if policy.labels() != LabelSet::EMPTY {
        print::line(format!("  labels: {}", policy.labels()));
    }
    match hidden {
        Some(HiddenReason::Denied) => print::line(
            "  Every call is denied. The tool is not listed, not found and not callable in scripts.",
        ),
        Some(HiddenReason::Suspicious(found)) => {
            print::line("  It is held back because of its definition:");
            for finding in found {
                print::line(format!("  - {finding}"));
            }
        }
        Some(HiddenReason::Held(_)) => print::line(
            "  It differs from its approved definition and is not listed: see `toolgate definitions`.",
        ),
        None => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn find(host: &ToolHost, name: &str) -> Option<ToolStatus> {
    let tool: Option<Tool> = host.catalog().read().resolve(name).cloned();
    if let Some(tool) = tool {
        let policy = (*host.broker().policy_of(&tool)).clone();
        return Some((policy, tool.id.server.to_string(), None));
    }
    if let Some((server, method)) = name.split_once('/').filter(|(_, it)| is_reading(it)) {
        let prefix = host.catalog().read().server(server)?.prefix.as_deref().map(Into::into);
        let tool = request_as_tool(&server.into(), prefix, method)?;
        let policy = (*host.broker().policy_of(&tool)).clone();
        return Some((policy, server.to_owned(), None));
    }
    let hidden: HiddenTool = host.hidden_tools().into_iter().find(|tool| tool.name == name)?;
    let policy = host.broker().policy().of(&hidden.tool());
    Some((policy, hidden.id.server.to_string(), Some(hidden.why)))
}

fn unknown(host: &ToolHost, name: &str) -> Failure {
    let catalog = host.catalog().read();
    let hidden = host.hidden_tools();
    let names = catalog.tools().map(|tool| tool.name.as_str());
    let names = names.chain(hidden.iter().map(|tool| tool.name.as_str()));
    Failure::usage(format!("there is no tool `{name}`"))
        .meaning(name, names)
        .hint("`toolgate search` finds tools")
}
