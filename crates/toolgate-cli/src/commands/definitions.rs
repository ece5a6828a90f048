//! `toolgate definitions`

use std::{collections::BTreeSet, fmt::Write as _, process::ExitCode};

use futures::future::join_all;
use serde_json::{Value, json};
use toolgate::setup::{HostConfigError, PinFile};
use toolgate_catalog::{ServerName, Tool};
use toolgate_host::{Connect, HeldReason, HiddenReason, HiddenTool, JudgedEntry, ToolHost};
use toolgate_policy::{
    NewTools,
    definitions::{EntryKind, Lock, NotPinned, ServerEntry, ToolNames, scan, shadowing, shown},
};
use toolgate_store::AuditRecord;
use toolgate_upstream::StateKind;

use super::{
    findings::Findings,
    held::{self, Held},
};
use crate::{
    cli::{Definitions, DefinitionsCommand, Globals},
    decisions,
    failure::{CommandResult, Failure},
    lineage,
    load::{self, Loaded},
    person, print,
};

pub(crate) async fn run(globals: &Globals, arguments: &Definitions) -> CommandResult {
    let names = match &arguments.command {
        None | Some(DefinitionsCommand::Approve { all: true, .. }) => &[],
        Some(DefinitionsCommand::Diff { name }) => std::slice::from_ref(name),
        Some(DefinitionsCommand::Approve { names, .. }) => names.as_slice(),
    };
    let loaded = load::load(globals)?;
    load::report(&loaded);
    let mut settings = loaded.settings(None);
    if !names.is_empty() {
        settings.connect = Connect::WhenNeeded;
    }
    let host = ToolHost::start(settings);
    host.recalled().await;
    match &arguments.command {
        // A list need not be complete. What is approved must be.
        None => {
            let late = super::settle_within(&host, super::SOON).await;
            if !late.is_empty() {
                let names = late.join(", ");
                print::note(format!("not looked at, because they have not answered yet: {names}"));
            }
        }
        Some(DefinitionsCommand::Approve { all: true, .. }) => {
            // What is approved is what the servers have now, lazy ones too.
            for setup in &host.settings().servers {
                host.servers().wake(setup.spec.name.as_str());
            }
            super::settle(&host).await;
        }
        Some(_) => {
            let owners: BTreeSet<ServerName> =
                names.iter().flat_map(|name| host.owners(name)).collect();
            join_all(owners.iter().map(|server| host.connect(server.as_str()))).await;
        }
    }
    let entries = host.entries().await;
    let held = held::all(&host, &entries);
    let outcome = match &arguments.command {
        None => list(&loaded, &host, &entries, &held, arguments.output.json),
        Some(DefinitionsCommand::Diff { name }) => diff(&held, name),
        Some(DefinitionsCommand::Approve { names, all }) => {
            approve(&loaded, &host, &entries, &held, names, *all)
        }
    };
    host.shutdown().await;
    outcome
}

fn list(
    loaded: &Loaded,
    host: &ToolHost,
    entries: &[JudgedEntry],
    held: &[Held],
    as_json: bool,
) -> CommandResult {
    if as_json {
        let rows: Vec<Value> = held.iter().map(row).collect();
        print::json(&rows)?;
        return Ok(ExitCode::SUCCESS);
    }
    let names = held::tool_names(host);
    for held in held {
        print::line(format!("{}: {}", held.name(), held.summary()));
        for finding in held.findings(&names) {
            print::line(format!("  {finding}"));
        }
    }
    if held.is_empty() {
        print::note("nothing is held back");
    } else {
        print::note(
            "`toolgate definitions diff NAME` shows one, `toolgate definitions approve NAME` lets it in",
        );
    }
    not_looked_at(loaded).iter().for_each(print::note);
    for finding in Findings::of(host, entries).listed {
        print::note(finding);
    }
    for sentence in host.settings().lock.iter().flat_map(|lock| not_pinned(host, lock)) {
        print::note(sentence);
    }
    Ok(ExitCode::SUCCESS)
}

fn row(held: &Held) -> Value {
    let name = held.name();
    match held {
        Held::Tool(HiddenTool { why: HiddenReason::Held(change), .. }) => {
            json!({ "name": name, "change": change })
        }
        Held::Entry(entry, HeldReason::Changed(change)) => {
            let mut row = json!({ "name": name, "kind": entry.kind, "change": change });
            row["change"]["server"] = json!(entry.server);
            row
        }
        Held::Entry(entry, HeldReason::Suspicious(found)) => {
            json!({ "name": name, "kind": entry.kind, "findings": found })
        }
        Held::Tool(HiddenTool { why: HiddenReason::Suspicious(found), .. }) => {
            json!({ "name": name, "findings": found })
        }
        Held::Tool(_) => json!({ "name": name }),
    }
}

/// What an earlier version of toolgate did not pin, a sentence a server.
fn not_pinned(host: &ToolHost, lock: &Lock) -> Vec<String> {
    let sentence = |server: &ServerName| {
        let NotPinned { tools, entries } = lock.not_pinned(server);
        if tools == 0 {
            return None;
        }
        let fields = format!("`_meta`, icons and other fields of {tools} of its tools");
        let kinds = entries.iter().map(|kind| format!("its {}", kind.section()));
        let what: Vec<String> = std::iter::once(fields).chain(kinds).collect();
        let what = what.join(", ");
        Some(format!(
            "server `{server}`: an earlier version wrote toolgate.lock, which does not pin {what}; \
             `toolgate definitions approve --all` pins them"
        ))
    };
    host.settings().servers.iter().filter_map(|it| sentence(&it.spec.name)).collect()
}

fn diff(held: &[Held], name: &str) -> CommandResult {
    let held = held::find(held, name)?;
    if let Some(differences) = held.differences() {
        print::line(differences);
    } else {
        print::line(format!("{}: {}", held.name(), held.summary()));
        print::line(held.definition());
    }
    Ok(ExitCode::SUCCESS)
}

fn approve(
    loaded: &Loaded,
    host: &ToolHost,
    entries: &[JudgedEntry],
    held: &[Held],
    names: &[String],
    all: bool,
) -> CommandResult {
    let pins = loaded.pins().unwrap_or_else(|| PinFile::beside(&loaded.path));
    let mut lock = pins.read(NewTools::Hold).map_err(HostConfigError::Pins)?.unwrap_or_default();
    let chosen: Vec<&Held> = if all {
        held.iter().collect()
    } else {
        names.iter().map(|name| held::find(held, name)).collect::<Result<_, _>>()?
    };
    let tool_names = held::tool_names(host);
    let used = if all { Used::all(host, entries, &tool_names) } else { Vec::new() };
    let suspicious: Vec<&Used> = used.iter().filter(|used| used.is_suspicious(&lock)).collect();
    agreed(loaded, &chosen, &suspicious, &tool_names)?;
    // The findings of what is held back were shown.
    for held in &chosen {
        held.approve(&mut lock, !held.findings(&tool_names).is_empty());
    }
    for used in &used {
        used.approve(&mut lock);
    }
    let pinned = chosen.len() + used.len();
    if all {
        // What a connected server has none of is new when it comes.
        let is_ready = |name: &str| {
            host.servers().state(name).is_some_and(|state| state.kind == StateKind::Ready)
        };
        let servers = &host.settings().servers;
        for setup in servers.iter().filter(|setup| is_ready(setup.spec.name.as_str())) {
            for kind in EntryKind::WITHOUT_EXTENSION {
                lock.cover(&setup.spec.name, kind);
            }
        }
    }
    pins.write(&lock)
        .map_err(|error| Failure::new(format!("cannot write toolgate.lock: {error}")))?;
    if let Some(store) = load::store() {
        for held in &chosen {
            let record = AuditRecord {
                tool: shown(&held.name(), 128),
                server: held.server().to_owned(),
                ..decisions::record("definition", true, held.record())
            };
            decisions::write(&store, &record)?;
        }
        if all {
            let rule = format!("{pinned} definitions approved");
            decisions::about_server("definition", "", true, rule)?;
        }
    }
    print::line(match pinned {
        0 => "No definition is approved: no server that was looked at has any.".to_owned(),
        1 => "1 definition is approved as it is now.".to_owned(),
        pinned => format!("{pinned} definitions are approved as they are now."),
    });
    load::report(loaded);
    if !all {
        return Ok(ExitCode::SUCCESS);
    }
    not_looked_at(loaded).iter().for_each(print::note);
    let missing = missing(host);
    for sentence in &missing {
        print::note(sentence);
    }
    Ok(if missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Approves one definition that is held back. The person `by` has seen it as `digest` says.
pub(super) async fn approve_seen(
    loaded: &Loaded,
    host: &ToolHost,
    (name, digest): (&str, &str),
    by: &str,
) -> Result<(), Failure> {
    let entries = host.entries().await;
    let held = held::all(host, &entries);
    let held = held::find(&held, name)?;
    if held.digest() != digest {
        return Err(Failure::new("the definition has changed since; look at it again"));
    }
    let pins = loaded.pins().unwrap_or_else(|| PinFile::beside(&loaded.path));
    let mut lock = pins.read(NewTools::Hold).map_err(HostConfigError::Pins)?.unwrap_or_default();
    // The findings were shown.
    held.approve(&mut lock, !held.findings(&held::tool_names(host)).is_empty());
    pins.write(&lock)
        .map_err(|error| Failure::new(format!("cannot write toolgate.lock: {error}")))?;
    let Some(store) = load::store() else { return Ok(()) };
    let record = AuditRecord {
        tool: shown(&held.name(), 128),
        server: held.server().to_owned(),
        caller: by.to_owned(),
        ..decisions::record("definition", true, held.record())
    };
    decisions::write(&store, &record)
}

/// The namespaces whose servers this command does not use, a sentence each.
fn not_looked_at(loaded: &Loaded) -> Vec<String> {
    let namespaces = loaded.configuration.namespaces.iter();
    let left_out = namespaces.filter(|it| it.exclusive && loaded.namespace.is_none());
    let sentence = |name: &str| {
        format!(
            "the servers of the namespace `{name}` were not looked at, because it is exclusive; `toolgate definitions \
             --namespace {name}` looks at them"
        )
    };
    left_out.map(|it| sentence(&it.name)).collect()
}

/// The servers whose definitions are not known or may be old, with the reasons.
fn missing(host: &ToolHost) -> Vec<String> {
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
fn agreed(
    loaded: &Loaded,
    held: &[&Held],
    suspicious: &[&Used],
    names: &ToolNames,
) -> Result<(), Failure> {
    if held.is_empty() && suspicious.is_empty() {
        return lineage::refuse_servers();
    }
    let mut text = String::new();
    for held in held {
        let _ = writeln!(text, "{}: {}", shown(&held.name(), 300), held.summary());
        match held.differences() {
            Some(differences) => {
                let _ = writeln!(text, "{differences}");
            }
            None => {
                let _ = writeln!(text, "{}", held.definition());
            }
        }
    }
    for held in held {
        for finding in held.findings(names) {
            let _ = writeln!(text, "`{}`: {finding}", shown(&held.name(), 300));
        }
    }
    for used in suspicious {
        for finding in &used.findings {
            let _ = writeln!(text, "`{}`: {finding}", shown(&used.name, 300));
        }
    }
    person::agrees(loaded.presence()?, &text, "Approve these definitions, as they are shown?")
}

/// A definition that is used anyway, and pinned by `--all`.
struct Used {
    name: String,
    findings: Vec<String>,
    what: Pinnable,
}

enum Pinnable {
    Tool(Tool),
    Entry(ServerEntry),
}

impl Used {
    /// All of them.
    fn all(host: &ToolHost, entries: &[JudgedEntry], names: &ToolNames) -> Vec<Self> {
        let tools: Vec<Tool> = host.catalog().read().tools().cloned().collect();
        let shadows = shadowing(tools.iter().map(|tool| &tool.id));
        let tools = tools.into_iter().map(|tool| {
            let mut found = scan(&tool.definition);
            found.extend(names.scan(&tool.id.server, &tool.definition.to_value()));
            let alike = shadows.iter().filter(|shadow| shadow.tool == tool.id);
            let findings = found.iter().map(ToString::to_string);
            let findings = findings.chain(alike.map(ToString::to_string)).collect();
            Self { name: tool.name.to_string(), findings, what: Pinnable::Tool(tool) }
        });
        let used = entries.iter().filter(|judged| judged.held.is_none());
        let entries = used.map(|JudgedEntry { entry, .. }| {
            let found = held::entry_findings(entry, names);
            let findings = found.iter().map(ToString::to_string).collect();
            Self { name: entry.to_string(), findings, what: Pinnable::Entry(entry.clone()) }
        });
        tools.chain(entries).collect()
    }

    /// Whether a person has to look at it.
    fn is_suspicious(&self, lock: &Lock) -> bool {
        !self.findings.is_empty()
            && !match &self.what {
                Pinnable::Tool(tool) => lock.is_reviewed(&tool.id.server, &tool.definition),
                Pinnable::Entry(entry) => lock.is_entry_reviewed(entry),
            }
    }

    /// Approves it with its findings: a person who approves all of them approves these, too.
    fn approve(&self, lock: &mut Lock) {
        match (&self.what, self.findings.is_empty()) {
            (Pinnable::Tool(tool), true) => lock.approve(&tool.id.server, &tool.definition),
            (Pinnable::Tool(tool), false) => lock.review(&tool.id.server, &tool.definition),
            (Pinnable::Entry(entry), true) => lock.approve_entry(entry),
            (Pinnable::Entry(entry), false) => lock.review_entry(entry),
        }
    }
}
