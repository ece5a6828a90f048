//! `toolgate status`

mod calls;
mod limits;
mod live;

use std::{
    io::{self, IsTerminal as _},
    process::ExitCode,
    time::Duration,
};

use serde_json::json;
use toolgate_catalog::ExposureKind;
use toolgate_config::{Configuration, Problem};
use toolgate_host::{EncodeTools, ServerOverview, ToolHost, VectorProgress};

use super::findings::Findings;
use crate::{
    cli::{Globals, Status, Unit},
    failure::{CommandResult, Failure},
    folders,
    load::{self, Loaded},
    logins::{self, LoginOverview},
    print,
    table::{grouped, table},
};

/// What is said where no rule about data can apply.
const NOT_WATCHED: &str =
    "Data flow is not watched, since no tool has labels: `toolgate policy suggest` proposes them.";

/// How often `--watch` shows the state again.
const WATCH: Duration = Duration::from_secs(2);

pub(crate) async fn run(globals: &Globals, arguments: &Status) -> CommandResult {
    if arguments.live || arguments.reset.is_some() {
        return live::run(arguments).await;
    }
    if arguments.calls {
        return calls::run(arguments.output.json);
    }
    let loaded = load::load(globals)?;
    // A server that cannot be used has a row, which says why.
    let rows: Vec<&Problem> =
        unusable(&loaded.configuration).into_iter().map(|(_, problem)| problem).collect();
    load::report_but(&loaded, |problem| !arguments.output.json && rows.contains(&problem));
    let mut settings = loaded.settings(arguments.mode);
    if let Some(encoder) = &mut settings.encoder {
        // `status` changes nothing, so it encodes no tools.
        encoder.tools = EncodeTools::Never;
    }
    let host = ToolHost::start(settings);
    if arguments.watch {
        // The first screen does not wait for slow servers.
        super::settle_within(&host, WATCH).await;
        loop {
            if io::stdout().is_terminal() {
                print::clear();
            }
            show(&loaded, &host, arguments).await?;
            tokio::select! {
                () = tokio::time::sleep(WATCH) => {}
                _ = tokio::signal::ctrl_c() => break,
            }
            print::line("");
        }
        host.shutdown().await;
        return Ok(ExitCode::SUCCESS);
    }
    super::settle(&host).await;
    let is_well = show(&loaded, &host, arguments).await;
    host.shutdown().await;
    Ok(if is_well? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Shows the state of everything. Returns whether all is as it should be.
#[expect(clippy::too_many_lines, reason = "one part after the other of what is shown")]
async fn show(loaded: &Loaded, host: &ToolHost, arguments: &Status) -> Result<bool, Failure> {
    let exposure = host.exposure();
    let mut servers = host.overview(&exposure);
    for server in &mut servers {
        server.problems.extend(host.broken_schemas(server.server.as_str()));
    }
    let findings = Findings::of(host, &host.entries().await);
    let vectors = host.vectors().await;
    let costs = super::tokens::session_costs(host, Unit::Tokens).await;
    let logins = logins::of_all(loaded).await;
    let unusable = unusable(&loaded.configuration);
    let modes = modes(exposure.kind);
    let choices = loaded.choices(loaded.namespace.as_deref()).and_then(|file| file.read().ok());
    let waiting = choices.map(|choices| choices.requests.len()).unwrap_or_default();
    let calls = host.journal().and_then(|journal| journal.open_approvals().ok());
    let waiting = waiting + calls.map(|calls| calls.len()).unwrap_or_default();
    let (limits, uncounted) = limits::used(loaded);
    let log = load::store().map(|store| store.audit());
    let unrecorded = log.as_ref().map(|log| log.unrecorded()).unwrap_or_default();
    let damage = log.and_then(|log| log.damage()).map(|damage| damage.to_string());
    if arguments.output.json {
        print::json(&json!({
            "file": folders::shown(&loaded.path),
            "exposure": modes
                .iter()
                .map(|(clients, mode)| json!({ "clients": clients, "mode": mode }))
                .collect::<Vec<_>>(),
            "reason": exposure.reason.to_string(),
            "costs": costs,
            "servers": servers,
            "vectors": vectors,
            "logins": logins,
            "policy": {
                "isSet": loaded.configuration.has_policy,
                "default": loaded.policy().mode,
                "watchesData": loaded.policy().watches_data(),
            },
            "limits": limits.iter().map(limits::LimitUse::to_value).collect::<Vec<_>>(),
            "uncounted": uncounted,
            "waitingForApproval": waiting,
            "unrecorded": unrecorded,
            "auditDamage": damage,
            "findings": findings.listed,
            "flagged": findings.flagged,
            "flaggedEntries": findings.flagged_entries,
            "heldBack": findings.held,
            "heldBackEntries": findings.held_entries,
            "denied": findings.denied,
            "unusable": unusable
                .iter()
                .map(|(server, problem)| json!({ "server": server, "reason": reason(problem) }))
                .collect::<Vec<_>>(),
            "problems": loaded.configuration.problems,
        }))?;
    } else {
        print::table(&render(&servers, &unusable, &logins));
        print::line("");
        for (clients, mode) in &modes {
            print::line(format!("A session of {clients} is {mode}: {}.", exposure.reason));
        }
        print::line(format!("\n{}\n", costs.render(exposure.kind)));
        if let Some(VectorProgress { encoder, known, total, .. }) = &vectors {
            print::line(format!("Search by meaning is {encoder}'s: vectors {known} of {total}."));
        }
        if let Some(line) = loaded.first_policy() {
            print::line(line);
        }
        if !loaded.policy().watches_data() {
            print::line(NOT_WATCHED);
        }
        for limit in &limits {
            print::line(limit);
        }
        if let Some(why) = uncounted {
            print::line(format!("Calls that a limit by the day is about are refused: {why}."));
        }
        for line in [findings.line(), findings.entries_line()].into_iter().flatten() {
            print::line(line);
        }
        for finding in &findings.listed {
            print::line(format!("Look at {finding}."));
        }
        if waiting > 0 {
            print::line(format!(
                "{waiting} waiting for your decision: `toolgate approve` shows them."
            ));
        }
        if unrecorded > 0 {
            print::line(format!(
                "{unrecorded} records of the audit log could not be written: `toolgate audit --verify` shows where."
            ));
        }
        if let Some(damage) = damage {
            print::line(format!("Look at the audit log: {damage}."));
        }
        if arguments.tools {
            for server in &servers {
                print::line(tools(server));
            }
        }
    }
    let as_it_should = |server: &ServerOverview| match server.state {
        "ready" | "disabled" => true,
        "idle" => server.lazy || server.per_caller,
        _ => false,
    };
    let well = servers.iter().all(|server| as_it_should(server) && server.problems.is_empty())
        && unusable.is_empty()
        && !load::has_errors(&loaded.configuration.problems);
    Ok(well)
}

/// Servers of the file that were not even tried, and why.
fn unusable(configuration: &Configuration) -> Vec<(&str, &Problem)> {
    let enabled = configuration.servers.iter().filter(|server| server.settings.enabled);
    enabled
        .filter_map(|server| Some((server.name.as_str(), server.transport.as_ref().err()?)))
        .collect()
}

fn reason(problem: &Problem) -> String {
    let hint = problem.hint.as_deref().map(|hint| format!("; {hint}")).unwrap_or_default();
    format!("{}{hint}", problem.message)
}

/// What a session lists, by the protocol of the client.
fn modes(kind: ExposureKind) -> Vec<(&'static str, String)> {
    match kind {
        // There the list may not change during a session.
        ExposureKind::Dynamic => vec![
            ("clients up to 2025-11-25", kind.to_string()),
            ("clients from 2026-07-28 on", ExposureKind::Stable.to_string()),
        ],
        _ => vec![("all clients", kind.to_string())],
    }
}

fn render(
    servers: &[ServerOverview],
    unusable: &[(&str, &Problem)],
    logins: &[LoginOverview],
) -> String {
    let mut rows: Vec<Vec<String>> = servers
        .iter()
        .map(|server| {
            let mut remarks: Vec<String> = Vec::new();
            if let Some(reason) = &server.reason {
                let action = server.action.as_deref().unwrap_or_default();
                remarks.push(format!("{reason}; {action}"));
            }
            let own = || logins.iter().filter(|login| login.server == server.server.as_str());
            match own().filter(|login| login.caller.is_some()).count() {
                0 => remarks.extend(own().next().map(ToString::to_string)),
                1 => remarks.push("1 caller is logged in: `toolgate logins`".to_owned()),
                count => remarks.push(format!("{count} callers are logged in: `toolgate logins`")),
            }
            match server.state {
                "disabled" => {
                    remarks.push(format!("`toolgate enable {}` enables it", server.server));
                }
                "idle" if server.per_caller => {
                    remarks.push("each caller logs in with their first call".to_owned());
                }
                "idle" if server.lazy => remarks.push("lazy: connected when needed".to_owned()),
                _ => {}
            }
            remarks.extend(server.node.as_ref().map(|node| format!("node {node} runs it for all")));
            remarks.extend(server.problems.iter().cloned());
            vec![
                server.server.to_string(),
                server.state.to_owned(),
                grouped(server.tools as u64),
                grouped(server.loaded.len() as u64),
                grouped(server.deferred.len() as u64),
                server.protocol_version.clone().unwrap_or_default(),
                remarks.join("\n"),
            ]
        })
        .collect();
    rows.extend(unusable.iter().map(|(name, problem)| {
        let none = String::new;
        let why = format!("{}:{}: {}", problem.source, problem.position, reason(problem));
        vec![(*name).to_owned(), "unusable".to_owned(), none(), none(), none(), none(), why]
    }));
    let columns = ["server", "state", ">tools", ">loaded", ">deferred", "protocol", "remarks"];
    table(&columns, rows)
}

fn tools(server: &ServerOverview) -> String {
    let list = |heading: &str, names: &[String]| {
        if names.is_empty() {
            String::new()
        } else {
            format!("\n  {heading}: {}", names.join(", "))
        }
    };
    format!(
        "\n{}{}{}",
        server.server,
        list("loaded", &server.loaded),
        list("deferred", &server.deferred)
    )
}
