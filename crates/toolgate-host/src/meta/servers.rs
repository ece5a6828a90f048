//! `search_available_servers`, `enable_server` and `disable_server`.

use std::{fmt::Write, sync::Arc};

use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_broker::Seat;
use toolgate_catalog::{ServerName, nearest};
use toolgate_store::{AuditRecord, SwitchedBy};
use toolgate_upstream::{CallOptions, StateKind};

use super::{Whole, one_line, result};
use crate::{
    enabling::Enabled,
    host::Host,
    session::{CallFailure, Session, error_result},
    supply::{Item, Kind},
};

/// The arguments of `search_available_servers`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FindRequest {
    #[serde(default)]
    query: String,
    #[serde(default)]
    limit: Option<Whole<1>>,
}

/// The arguments of `enable_server` and `disable_server`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerRequest {
    name: String,
}

const FOUND: usize = 5;
const MAX_FOUND: usize = 20;
const QUERY_CHARACTERS: usize = 1_000;
const DESCRIPTION_CHARACTERS: usize = 200;
const NOTE_CHARACTERS: usize = 200;
/// How many of a server's tools are named.
const NAMED_TOOLS: usize = 10;

pub(super) async fn find(session: &Session, request: &FindRequest) -> Value {
    let host = session.host();
    let query: String = request.query.chars().take(QUERY_CHARACTERS).collect();
    if query.trim().is_empty() {
        return error_result("Say what the server should be for: search_available_servers(query).");
    }
    let limit = request.limit.map_or(FOUND, |Whole(limit)| limit).clamp(1, MAX_FOUND);
    let mut notes = Vec::new();
    if let Some(registry) = &host.settings().supply.registry {
        let known = registry.servers().await;
        let (inner, entries) = (Arc::clone(&host.inner), known.entries);
        // Where that fails, what was known before is searched.
        let _ = tokio::task::spawn_blocking(move || inner.shelf.list(&entries)).await;
        notes.extend(known.notes.iter().map(|note| one_line(note, NOTE_CHARACTERS)));
    }
    let shelf = &host.inner.shelf;
    let mut rows = Vec::new();
    let mut text = String::new();
    let servers = shelf.search(&query, &[Kind::Servers, Kind::Listed], limit);
    let skills = shelf.search(&query, &[Kind::Skills], limit);
    for item in servers.iter().chain(&skills) {
        let (line, row) = described(host, item);
        let _ = writeln!(text, "- {line}");
        rows.push(row);
    }
    if rows.is_empty() {
        let _ = writeln!(text, "No server or skill matches \"{}\".", one_line(&query, 80));
    } else {
        text.insert_str(0, &format!("For \"{}\":\n", one_line(&query, 80)));
        if !servers.is_empty() {
            notes.insert(0, "To connect a server: enable_server.".to_owned());
        }
        if !skills.is_empty() {
            notes.insert(0, "To use a skill: load_skill.".to_owned());
        }
    }
    for note in &notes {
        let _ = writeln!(text, "{note}");
    }
    result(text.trim_end(), &json!({ "found": rows, "notes": notes }))
}

/// A line and a row about something that can be had.
fn described(host: &Host, item: &Item) -> (String, Value) {
    let (kind, name, state, description) = match item {
        Item::Server(server) => {
            let setup = host.settings().servers.iter().find(|setup| setup.spec.name == *server);
            let description = setup.and_then(|setup| setup.entry.description.clone());
            let state = state_of(host, server);
            ("server", server.to_string(), state, description.unwrap_or_default())
        }
        Item::Listed(entry) => {
            let used = host.inner.switches.consented(&entry.name.as_str().into()).is_some();
            let state = if used {
                state_of(host, &entry.name.as_str().into())
            } else {
                "not configured: a person is asked".to_owned()
            };
            let title =
                entry.title.as_deref().map(|title| format!("{title}. ")).unwrap_or_default();
            ("server", entry.name.clone(), state, format!("{title}{}", entry.description))
        }
        Item::Skill(skill) => {
            ("skill", skill.name.clone(), "skill".to_owned(), skill.description.clone())
        }
    };
    let description = one_line(&description, DESCRIPTION_CHARACTERS);
    let colon = if description.is_empty() { "" } else { ": " };
    let line = format!("{name} ({state}){colon}{description}");
    (line, json!({ "kind": kind, "name": name, "state": state, "description": description }))
}

/// How it stands with a server, for a model.
pub(super) fn state_of(host: &Host, server: &ServerName) -> String {
    match host.state(server.as_str()).unwrap_or_default().kind {
        StateKind::Ready => "connected",
        StateKind::Connecting => "starting",
        StateKind::Idle => "not connected",
        StateKind::Failed => "failed",
        StateKind::Disabled => match host.inner.switches.switched_off_by(server) {
            Some(SwitchedBy::Person) => "disabled by a person",
            Some(SwitchedBy::Model) | None => "disabled",
        },
        StateKind::Stopped => "stopped",
    }
    .to_owned()
}

pub(super) async fn enable(
    session: &Session,
    request: &ServerRequest,
    options: &CallOptions,
) -> Result<Value, CallFailure> {
    let host = session.host();
    let enabled = host.enable(&request.name, session.context().caller(), options).await;
    let (verdict, rule) = match &enabled {
        Enabled::Connected | Enabled::Failed { .. } => ("allow", "enabled".to_owned()),
        Enabled::Waits { id } => ("ask", format!("approval {id}")),
        Enabled::Declined => ("deny", "a person said no".to_owned()),
        Enabled::Unusable(_) => ("deny", "it cannot be enabled".to_owned()),
        Enabled::Unknown { .. } => ("deny", "there is no such server".to_owned()),
        Enabled::Cancelled => ("deny", "it was cancelled".to_owned()),
    };
    note(session, &request.name, verdict, rule);
    let (text, data) = match told(host, &request.name, enabled) {
        Told::Text { text, data } => (text, data),
        Told::Cancelled => return Err(CallFailure::Cancelled),
        Told::Problem(problem) => return Ok(error_result(&problem)),
    };
    Ok(result(&text, &data))
}

/// What a model is told of an attempt to enable a server.
pub(super) enum Told {
    Text { text: String, data: Value },
    Problem(String),
    Cancelled,
}

pub(super) fn told(host: &Host, name: &str, enabled: Enabled) -> Told {
    let shown = one_line(name, 200);
    let plain = name.split('@').next().unwrap_or(name);
    Told::Problem(match enabled {
        Enabled::Connected => {
            let catalog = host.catalog().read();
            let tools = catalog.tools_of(plain);
            let names: Vec<&str> =
                tools.iter().take(NAMED_TOOLS).map(|tool| tool.name.as_str()).collect();
            let plural = if tools.len() == 1 { "" } else { "s" };
            let mut text = format!("Server {shown} is connected: {} tool{plural}", tools.len());
            if !names.is_empty() {
                let more = if tools.len() > names.len() { ", …" } else { "" };
                let _ = write!(text, " ({}{more})", names.join(", "));
            }
            text.push_str(". search_tools finds them.");
            let data = json!({ "server": plain, "state": "connected", "tools": names });
            return Told::Text { text, data };
        }
        Enabled::Waits { id } => {
            let text = format!(
                "Server {shown} is not configured and waits for the approval of a person, id {id}: they \
                 run `toolgate approve {id}`, which shows what would be run or contacted. Then call \
                 enable_server again."
            );
            let data = json!({ "server": plain, "state": "waiting", "approval": id });
            return Told::Text { text, data };
        }
        Enabled::Cancelled => return Told::Cancelled,
        Enabled::Failed { reason, action } => {
            let (reason, action) = (one_line(&reason, 300), one_line(&action, 200));
            format!("Server {shown} is enabled and could not be connected: {reason}; {action}.")
        }
        Enabled::Declined => {
            format!("The person who was asked did not allow server {shown}. Do without it.")
        }
        Enabled::Unusable(reason) => {
            format!("Server {shown} cannot be enabled: {}.", one_line(&reason, 500))
        }
        Enabled::Unknown { nearest } if nearest.is_empty() => {
            format!("There is no server `{shown}`; search_available_servers finds those there are.")
        }
        Enabled::Unknown { nearest } => {
            format!("There is no server `{shown}`. Nearest: {}.", nearest.join(", "))
        }
    })
}

/// Records what was decided of a server, and for whom.
fn note(session: &Session, server: &str, verdict: &str, rule: String) {
    let context = session.context();
    session.host().broker().note(AuditRecord {
        kind: "server".to_owned(),
        caller: context.caller().name.to_string(),
        session: context.id().to_string(),
        server: one_line(server, 128),
        verdict: verdict.to_owned(),
        rule,
        ..AuditRecord::default()
    });
}

pub(super) async fn disable(session: &Session, request: &ServerRequest) -> Value {
    let host = session.host();
    let known = host.catalog().read().server(&request.name).map(|entry| entry.name.clone());
    let Some(server) = known else {
        let shown = one_line(&request.name, 200);
        let catalog = host.catalog().read();
        let names = catalog.servers().map(|entry| entry.name.as_str());
        let nearest = nearest(&request.name, names, 3);
        let hint = if nearest.is_empty() {
            String::new()
        } else {
            format!(" Nearest: {}.", nearest.join(", "))
        };
        return error_result(&format!("There is no server `{shown}`.{hint}"));
    };
    if session.context().caller().seat == Seat::Elsewhere {
        note(session, server.as_str(), "deny", "not for others to disable".to_owned());
        return error_result(&format!(
            "Server {server} is not disabled: others use it too. A person does that where toolgate \
             runs: `toolgate disable {server}`. To do without it, do not call its tools."
        ));
    }
    host.switch(&server, false).await;
    note(session, server.as_str(), "deny", "disabled".to_owned());
    let text = format!(
        "Server {server} is disabled. Its tools stay listed in this conversation, and their calls are \
         refused until enable_server; new conversations do not see them."
    );
    result(&text, &json!({ "server": server, "state": "disabled" }))
}
