//! `toolgate policy`

mod show;

use std::process::ExitCode;

use serde_json::{Value, json};
use toolgate_catalog::Tool;
use toolgate_host::{HiddenReason, HiddenTool, Host};
use toolgate_policy::{Flow, LabelSet, ToolPolicy, is_reading, request_as_tool};

use crate::{
    cli::{Globals, Policy, PolicyCommand},
    failure::Failure,
    printer::Printer,
};

pub(crate) async fn run(
    globals: &Globals,
    arguments: &Policy,
    printer: &mut Printer,
) -> Result<ExitCode, Failure> {
    match &arguments.command {
        None => show::show(globals, arguments.output.json, printer).await,
        Some(PolicyCommand::Check { name, arguments, output }) => {
            check(globals, name, arguments.as_deref(), output.json, printer).await
        }
    }
}

/// A tool and the policy for it, also where nobody is shown it.
struct Found {
    policy: ToolPolicy,
    server: String,
    withheld: Option<HiddenReason>,
}

async fn check(
    globals: &Globals,
    name: &str,
    arguments: Option<&str>,
    as_json: bool,
    printer: &mut Printer,
) -> Result<ExitCode, Failure> {
    let arguments: Value = serde_json::from_str(arguments.unwrap_or("{}"))
        .map_err(|error| Failure::usage(format!("the arguments are no JSON: {error}")))?;
    let names = [name.to_owned()];
    let (_, host) = super::start_when_needed(globals, &names, None, printer).await?;
    let found = find(&host, name).ok_or_else(|| unknown(&host, name));
    host.shutdown().await;
    let Found { policy, server, withheld } = found?;
    let explanation = policy.explain(&arguments, &Flow::NONE);
    if as_json {
        let mut data = json!(explanation);
        data["tool"] = json!(name);
        data["server"] = json!(server);
        data["labels"] = json!(policy.labels());
        data["hidden"] = json!(withheld.is_some());
        printer.json(&data)?;
        return Ok(ExitCode::SUCCESS);
    }
    printer.line(&explanation);
    if policy.labels() != LabelSet::EMPTY {
        printer.line(format!("  labels: {}", policy.labels()));
    }
    match withheld {
        Some(HiddenReason::Denied) => printer.line(
            "  Every call is denied, so that nobody is shown the tool: no list, no search, no script.",
        ),
        Some(HiddenReason::Suspicious(found)) => {
            printer.line("  It is held back for what is in its definition:");
            for finding in found {
                printer.line(format!("  - {finding}"));
            }
        }
        Some(HiddenReason::Held(_)) => printer.line(
            "  It is not as it was approved, so that nobody is shown it: `toolgate definitions` tells.",
        ),
        None => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn find(host: &Host, name: &str) -> Option<Found> {
    let tool: Option<Tool> = host.catalog().read().resolve(name).cloned();
    if let Some(tool) = tool {
        let policy = (*host.broker().policy_of(&tool)).clone();
        return Some(Found { policy, server: tool.id.server.to_string(), withheld: None });
    }
    if let Some((server, method)) = name.split_once('/').filter(|(_, it)| is_reading(it)) {
        let prefix = host.catalog().read().server(server)?.prefix.as_deref().map(Into::into);
        let tool = request_as_tool(&server.into(), prefix, method)?;
        let policy = (*host.broker().policy_of(&tool)).clone();
        return Some(Found { policy, server: server.to_owned(), withheld: None });
    }
    let withheld: HiddenTool = host.hidden_tools().into_iter().find(|tool| tool.name == name)?;
    let policy = host.broker().policy().of(&withheld.tool());
    let server = withheld.id.server.to_string();
    Some(Found { policy, server, withheld: Some(withheld.why) })
}

fn unknown(host: &Host, name: &str) -> Failure {
    let catalog = host.catalog().read();
    let withheld = host.hidden_tools();
    let names = catalog.tools().map(|tool| tool.name.as_str());
    let names = names.chain(withheld.iter().map(|tool| tool.name.as_str()));
    Failure::usage(format!("there is no tool `{name}`"))
        .meaning(name, names)
        .hint("`toolgate search` finds those there are")
}
