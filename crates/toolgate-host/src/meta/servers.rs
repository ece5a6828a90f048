//! `search_available_servers`, `enable_server`, `disable_server` and `load_skill`.

use std::{fmt::Write, sync::Arc};

use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_broker::CallerLocation;
use toolgate_catalog::{ServerName, nearest};
use toolgate_store::{AuditRecord, SwitchedBy};
use toolgate_upstream::{CallOptions, StateKind};

use super::{Whole, one_line, result};
use crate::{
    directory::{DirectoryEntry, DirectoryKind},
    enabling::EnableOutcome,
    host::ToolHost,
    resources::skills::{self, ServerSkill, SkillFailure},
    session::{CallFailure, ToolSession, error_result},
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
/// How many tools of a server are named.
const NAMED_TOOLS: usize = 10;

pub(super) async fn find(session: &ToolSession, request: &FindRequest) -> Value {
    let host = session.host();
    let query: String = request.query.chars().take(QUERY_CHARACTERS).collect();
    if query.trim().is_empty() {
        return error_result("Say what the server should be for: search_available_servers(query).");
    }
    let limit = request.limit.map_or(FOUND, |Whole(limit)| limit).clamp(1, MAX_FOUND);
    let mut notes = Vec::new();
    if let Some(registry) = &host.settings().directory.registry {
        let known = registry.servers().await;
        let (inner, entries) = (Arc::clone(&host.inner), known.entries);
        // If that fails, the earlier entries are searched.
        let _ = tokio::task::spawn_blocking(move || inner.directory.list(&entries)).await;
        notes.extend(known.notes.iter().map(|note| one_line(note, NOTE_CHARACTERS)));
    }
    let directory = &host.inner.directory;
    let mut rows = Vec::new();
    let mut text = String::new();
    let servers = directory.search(&query, &[DirectoryKind::Servers, DirectoryKind::Listed], limit);
    let skills = directory.search(&query, &[DirectoryKind::Skills], limit);
    for item in servers.iter().chain(&skills) {
        let (line, row) = described(host, item);
        let _ = writeln!(text, "- {line}");
        rows.push(row);
    }
    let of_servers = skills::matching(session, std::slice::from_ref(&query), limit).await;
    for skill in &of_servers {
        let _ = writeln!(text, "- {}", skill.line());
        rows.push(skill.row());
    }
    if rows.is_empty() {
        let _ = writeln!(text, "No server or skill matches \"{}\".", one_line(&query, 80));
    } else {
        text.insert_str(0, &format!("For \"{}\":\n", one_line(&query, 80)));
        if !servers.is_empty() {
            notes.insert(0, "To connect a server: enable_server.".to_owned());
        }
        if !skills.is_empty() || !of_servers.is_empty() {
            notes.insert(0, "To use a skill: load_skill.".to_owned());
        }
    }
    for note in &notes {
        let _ = writeln!(text, "{note}");
    }
    result(text.trim_end(), &json!({ "found": rows, "notes": notes }))
}

/// A line and a row about an entry of the directory.
fn described(host: &ToolHost, item: &DirectoryEntry) -> (String, Value) {
    let (kind, name, state, description) = match item {
        DirectoryEntry::Server(server) => {
            let settings = host.settings();
            let setup = settings.servers.iter().find(|setup| setup.spec.name == *server);
            let description = setup.and_then(|setup| setup.entry.description.clone());
            let state = state_of(host, server);
            ("server", server.to_string(), state, description.unwrap_or_default())
        }
        DirectoryEntry::Listed(entry) => {
            let used = host.inner.enabled.consented(&entry.name.as_str().into()).is_some();
            let state = if used {
                state_of(host, &entry.name.as_str().into())
            } else {
                "not configured: a person is asked".to_owned()
            };
            let title =
                entry.title.as_deref().map(|title| format!("{title}. ")).unwrap_or_default();
            ("server", entry.name.clone(), state, format!("{title}{}", entry.description))
        }
        DirectoryEntry::Skill(skill) => {
            ("skill", skill.name.clone(), "skill".to_owned(), skill.description.clone())
        }
    };
    let description = one_line(&description, DESCRIPTION_CHARACTERS);
    let colon = if description.is_empty() { "" } else { ": " };
    let line = format!("{name} ({state}){colon}{description}");
    (line, json!({ "kind": kind, "name": name, "state": state, "description": description }))
}

/// The state of a server, for a model.
fn state_of(host: &ToolHost, server: &ServerName) -> String {
    match host.servers().state(server.as_str()).unwrap_or_default().kind {
        StateKind::Ready => "connected",
        StateKind::Connecting => "starting",
        StateKind::Idle => "not connected",
        StateKind::Failed => "failed",
        StateKind::Disabled => match host.inner.enabled.switched_off_by(server) {
            Some(SwitchedBy::Person) => "disabled by a person",
            Some(SwitchedBy::Model) | None => "disabled",
        },
        StateKind::Stopped => "stopped",
    }
    .to_owned()
}

pub(super) async fn enable(
    session: &ToolSession,
    request: &ServerRequest,
    options: &CallOptions,
) -> Result<Value, CallFailure> {
    let host = session.host();
    let enabled = host.enable(&request.name, session.context().caller(), options).await;
    let (verdict, rule) = match &enabled {
        EnableOutcome::Connected
        | EnableOutcome::LoginNeeded { .. }
        | EnableOutcome::Failed { .. } => ("allow", "enabled".to_owned()),
        EnableOutcome::Waits { question } => ("ask", format!("approval {question}")),
        EnableOutcome::Declined => ("deny", "a person denied it".to_owned()),
        EnableOutcome::Unusable(_) => ("deny", "it cannot be enabled".to_owned()),
        EnableOutcome::Unknown { .. } => ("deny", "there is no such server".to_owned()),
        EnableOutcome::Cancelled => ("deny", "it was cancelled".to_owned()),
    };
    note(session, &request.name, verdict, rule);
    let (text, data) = match enable_report(session, &request.name, enabled) {
        EnableReport::Text { text, data } => (text, data),
        EnableReport::Cancelled => return Err(CallFailure::Cancelled),
        EnableReport::Problem(problem) => return Ok(error_result(&problem)),
    };
    Ok(result(&text, &data))
}

/// What a model is told about an attempt to enable a server.
enum EnableReport {
    Text { text: String, data: Value },
    Problem(String),
    Cancelled,
}

fn enable_report(session: &ToolSession, name: &str, enabled: EnableOutcome) -> EnableReport {
    let host = session.host();
    let shown = one_line(name, 200);
    let plain = name.split('@').next().unwrap_or(name);
    EnableReport::Problem(match enabled {
        EnableOutcome::Connected => {
            let catalog = host.catalog().read();
            let mut tools = catalog.tools_of(plain).to_vec();
            tools.retain(|tool| session.host().broker().offers(tool, session.context()));
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
            return EnableReport::Text { text, data };
        }
        EnableOutcome::Waits { question } => {
            let text = format!(
                "Server {shown} is not configured and waits for the approval of a person, question \
                 {question}: `toolgate approve`, in a terminal of their own, shows what would be run or \
                 contacted, and asks them. Then call enable_server again."
            );
            let question = question.as_str();
            let data = json!({ "server": plain, "state": "waiting", "reference": question });
            return EnableReport::Text { text, data };
        }
        EnableOutcome::Cancelled => return EnableReport::Cancelled,
        EnableOutcome::LoginNeeded { link } => format!(
            "Server {shown} needs a login of the person: they open {link} in their browser and log in. Then call \
             enable_server again."
        ),
        EnableOutcome::Failed { reason, action } => {
            let (reason, action) = (one_line(&reason, 300), one_line(&action, 200));
            format!("Server {shown} is enabled and could not be connected: {reason}; {action}.")
        }
        EnableOutcome::Declined => {
            format!("The person who was asked did not allow server {shown}. Do without it.")
        }
        EnableOutcome::Unusable(reason) => {
            format!("Server {shown} cannot be enabled: {}.", one_line(&reason, 500))
        }
        EnableOutcome::Unknown { nearest } if nearest.is_empty() => {
            format!("There is no server `{shown}`; search_available_servers finds those there are.")
        }
        EnableOutcome::Unknown { nearest } => {
            format!("There is no server `{shown}`. Nearest: {}.", nearest.join(", "))
        }
    })
}

/// Records a decision about a server.
fn note(session: &ToolSession, server: &str, verdict: &str, rule: String) {
    let context = session.context();
    session.host().broker().record(AuditRecord {
        kind: "server".to_owned(),
        caller: context.caller().name.to_string(),
        session: context.id().to_string(),
        server: one_line(server, 128),
        verdict: verdict.to_owned(),
        rule,
        ..AuditRecord::default()
    });
}

pub(super) async fn disable(session: &ToolSession, request: &ServerRequest) -> Value {
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
    if session.context().caller().location == CallerLocation::Remote {
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

/// The arguments of `load_skill`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SkillRequest {
    #[serde(default)]
    name: String,
    #[serde(default)]
    server: Option<String>,
    #[serde(default)]
    uri: Option<String>,
}

/// How many bytes of a skill's text are shown at once.
const BODY_BYTES: usize = 24_000;

/// Returns the text of a skill, and connects the servers it declares. If a server cannot be
/// connected, the result says so, and has the text anyway.
pub(super) async fn load(
    session: &ToolSession,
    request: &SkillRequest,
    options: &CallOptions,
) -> Result<Value, CallFailure> {
    let host = session.host();
    if let (Some(server), Some(uri)) = (&request.server, &request.uri) {
        return load_of_server(session, &server.as_str().into(), uri, options).await;
    }
    let skills = Arc::clone(&host.settings().directory.skills);
    let Some(skill) = skills.named(&request.name) else {
        let names = skills.skills.iter().map(|skill| skill.name.as_str());
        let nearest = nearest(&request.name, names, 3);
        let hint = if nearest.is_empty() {
            "search_available_servers finds those there are.".to_owned()
        } else {
            format!("Nearest: {}.", nearest.join(", "))
        };
        let shown = one_line(&request.name, 64);
        let same = skills::of_servers(session).await;
        let same = same.iter().filter(|skill| skill.name == request.name).take(FOUND);
        let same: Vec<String> = same.map(ServerSkill::how_to_load).collect();
        if !same.is_empty() {
            let text = format!("The skill `{shown}` is of a server: {}.", same.join(" or "));
            return Ok(error_result(&text));
        }
        return Ok(error_result(&format!("There is no skill `{shown}`. {hint}")));
    };
    let mut remarks = Vec::new();
    for server in &skill.servers {
        let enabled = host.enable(server, session.context().caller(), options).await;
        match enable_report(session, server, enabled) {
            EnableReport::Text { text, .. } | EnableReport::Problem(text) => remarks.push(text),
            EnableReport::Cancelled => return Err(CallFailure::Cancelled),
        }
    }
    let mut text = format!("Skill {}\n\n{}", skill.name, first_part(session, &skill.body));
    for remark in &remarks {
        let _ = write!(text, "\n\n{remark}");
    }
    let data = json!({ "skill": skill.name, "servers": skill.servers, "remarks": remarks });
    Ok(result(&text, &data))
}

/// The beginning of a skill's text, and how to read the rest.
fn first_part(session: &ToolSession, body: &str) -> String {
    let shown = &body[..body.floor_char_boundary(BODY_BYTES)];
    let mut text = shown.to_owned();
    if shown.len() < body.len() {
        let id = session.host().code().outputs(session.context()).store(body);
        let (next, total) = (shown.len(), body.len());
        let _ = write!(
            text,
            "\n[{total} bytes in all; the rest: read_output with id: {id}, offset: {next}]"
        );
    }
    text
}

/// The most files of a skill that are named.
const NAMED_FILES: usize = 50;

/// Returns the text of a skill of a server, whose files are those that the server lists.
async fn load_of_server(
    session: &ToolSession,
    server: &ServerName,
    uri: &str,
    options: &CallOptions,
) -> Result<Value, CallFailure> {
    let loaded = match skills::load(session, server, uri, options).await {
        Ok(loaded) => loaded,
        Err(SkillFailure::Cancelled) => return Err(CallFailure::Cancelled),
        Err(SkillFailure::Refused(why)) => {
            let uri = one_line(uri, 200);
            return Ok(error_result(&format!(
                "The skill {uri} of server {server} is not loaded: {why}."
            )));
        }
    };
    let mut text = format!(
        "Skill {} of server {server}\n\n{}",
        one_line(&loaded.name, 64),
        first_part(session, &loaded.text)
    );
    if !loaded.files.is_empty() {
        text.push_str("\n\nIts other files, for read_output:");
        for file in loaded.files.iter().take(NAMED_FILES) {
            let _ = write!(text, "\n- {}", one_line(file, 400));
        }
        if loaded.files.len() > NAMED_FILES {
            let _ = write!(text, "\n- … {} more", loaded.files.len() - NAMED_FILES);
        }
    }
    if loaded.is_dynamic {
        text.push_str("\n\nThe server lists no digests of it, so its content was not checked.");
    }
    let data = json!({
        "skill": loaded.name, "server": server, "uri": uri, "files": loaded.files, "remarks": [],
    });
    Ok(result(&text, &data))
}
