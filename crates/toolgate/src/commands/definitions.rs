//! `toolgate definitions`

use std::process::ExitCode;

use serde_json::{Value, json};
use toolgate_catalog::{Tool, ToolId};
use toolgate_host::{Host, Withheld, Withholding};
use toolgate_policy::{
    NewTools,
    definitions::{ChangeKind, Likeness, Shadow, Shadowed, scan, shadowing, shown},
};
use toolgate_store::AuditRecord;

use crate::{
    cli::{Definitions, DefinitionsCommand, Globals},
    decisions,
    failure::Failure,
    load::{self, Loaded},
    pins::Pins,
    printer::Printer,
};

/// How many findings of one server are told.
const MOST_FINDINGS: usize = 10;

pub(crate) async fn run(
    globals: &Globals,
    arguments: &Definitions,
    printer: &mut Printer,
) -> Result<ExitCode, Failure> {
    let (loaded, host) = super::start(globals, None, printer)?;
    super::settle(&host).await;
    let held: Vec<Withheld> = host
        .withheld()
        .into_iter()
        .filter(|tool| matches!(tool.why, Withholding::Held(_)))
        .collect();
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

/// What a person should look at in the definitions of a server's tools, and which of them are held.
pub(crate) fn findings(host: &Host, server: &str) -> Vec<String> {
    let tools: Vec<Tool> = host.catalog().read().tools_of(server).to_vec();
    let suspicious = tools.iter().flat_map(|tool| {
        let found = scan(&tool.definition).into_iter();
        found.map(|finding| format!("`{}`: {finding}", tool.name))
    });
    let ids: Vec<ToolId> = host.catalog().read().tools().map(|tool| tool.id.clone()).collect();
    let shadows = shadowing(&ids).into_iter().filter(|shadow| {
        // The same name on two servers is common, and told apart by its prefix.
        shadow.tool.server.as_str() == server && shadow.likeness != Likeness::Same
    });
    let held = host.withheld().into_iter().filter(|tool| {
        tool.id.server.as_str() == server && matches!(tool.why, Withholding::Held(_))
    });
    let held = held.map(|tool| format!("`{}` is held back: `toolgate definitions`", tool.name));
    let all = held.chain(suspicious).chain(shadows.map(|shadow| shadowed(&shadow)));
    all.take(MOST_FINDINGS).collect()
}

fn list(
    host: &Host,
    held: &[Withheld],
    as_json: bool,
    printer: &mut Printer,
) -> Result<ExitCode, Failure> {
    if as_json {
        let rows: Vec<Value> = held
            .iter()
            .map(|tool| match &tool.why {
                Withholding::Held(change) => json!({ "name": tool.name, "change": change }),
                Withholding::Denied => json!({ "name": tool.name }),
            })
            .collect();
        printer.json(&rows)?;
        return Ok(ExitCode::SUCCESS);
    }
    for tool in held {
        printer.line(format!("{}: {}", tool.name, summary(tool)));
        for finding in scan(&tool.definition) {
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
    let servers: Vec<String> =
        host.settings().servers.iter().map(|setup| setup.spec.name.to_string()).collect();
    for finding in servers.iter().flat_map(|server| findings(host, server)) {
        printer.note(finding);
    }
    Ok(ExitCode::SUCCESS)
}

fn diff(held: &[Withheld], name: &str, printer: &mut Printer) -> Result<ExitCode, Failure> {
    let tool = find(held, name)?;
    if let Withholding::Held(change) = &tool.why
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
    held: &[Withheld],
    names: &[String],
    all: bool,
    printer: &mut Printer,
) -> Result<ExitCode, Failure> {
    let pins = Pins::beside(&loaded.path);
    let mut lock = pins.read(NewTools::Hold)?.unwrap_or_default();
    let chosen: Vec<&Withheld> = if all {
        held.iter().collect()
    } else {
        names.iter().map(|name| find(held, name)).collect::<Result<_, _>>()?
    };
    for tool in &chosen {
        lock.approve(&tool.id.server, &tool.definition);
    }
    let mut pinned = chosen.len();
    if all {
        let tools: Vec<Tool> = host.catalog().read().tools().cloned().collect();
        for tool in &tools {
            lock.approve(&tool.id.server, &tool.definition);
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
fn approved(tool: &Withheld) -> AuditRecord {
    AuditRecord {
        kind: "definition".to_owned(),
        tool: shown(&tool.name, 128),
        server: tool.id.server.to_string(),
        verdict: "allow".to_owned(),
        rule: format!("definition {} approved", tool.definition.fingerprint()),
        ..AuditRecord::default()
    }
}

fn find<'h>(held: &'h [Withheld], name: &str) -> Result<&'h Withheld, Failure> {
    held.iter().find(|tool| tool.name == name).ok_or_else(|| {
        Failure::usage(format!("no tool `{name}` is held back"))
            .hint("`toolgate definitions` lists those that are")
    })
}

fn summary(tool: &Withheld) -> String {
    match &tool.why {
        Withholding::Held(change) => match &change.kind {
            ChangeKind::Changed(differences) => {
                let count = differences.told.len() + differences.left_out;
                format!("changed in {count} place{}", if count == 1 { "" } else { "s" })
            }
            _ => "new".to_owned(),
        },
        Withholding::Denied => "denied".to_owned(),
    }
}

fn shadowed(shadow: &Shadow) -> String {
    let name = |id: &ToolId| format!("{}/{}", id.server, shown(&id.tool, 128));
    let of = match &shadow.of {
        Shadowed::Tool(other) => name(other),
        Shadowed::Host(own) => format!("toolgate's own {own}"),
    };
    format!("`{}` can be taken for {of}", name(&shadow.tool))
}
