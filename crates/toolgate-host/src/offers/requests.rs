//! `resources/…`, `prompts/…` and `completion/complete`, answered for all servers.

use std::{collections::HashMap, sync::Arc};

use serde_json::{Map, Value, json};
use toolgate_catalog::ServerName;
use toolgate_mcp::codes::{INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND};
use toolgate_upstream::{CallOptions, StateKind};

use super::{
    guarded::{self, send},
    kind::Kind,
    links,
    listing::{List, NOT_CONNECTED},
    page::{Cursor, page},
    prompts::PromptNames,
    shelf::Known,
    uri::{self, Target},
};
use crate::{
    host::Host,
    meta::one_line,
    session::{CallFailure, Session},
};

type Params = Map<String, Value>;

/// The most of a name or URI that an error repeats.
const SHOWN_CHARACTERS: usize = 200;

/// Answers a request of a session.
pub(crate) async fn answer(
    session: &Session,
    method: &str,
    mut params: Params,
    mut options: CallOptions,
) -> Result<Value, CallFailure> {
    // It travels with the options.
    if let Some(Value::Object(meta)) = params.remove("_meta") {
        options.meta.get_or_insert(meta);
    }
    let host = session.host();
    if let Some(kind) = Kind::listed_by(method) {
        return list(session, kind, &params, &options).await;
    }
    match method {
        "resources/read" => read(session, params, options).await,
        "resources/subscribe" => session.watcher().subscribe(text(&params, "uri")?, options).await,
        "resources/unsubscribe" => {
            session.watcher().unsubscribe(text(&params, "uri")?, options).await
        }
        "prompts/get" => {
            let (server, name) = prompt(host, text(&params, "name")?, &options).await?;
            params.insert("name".to_owned(), json!(name));
            let mut result = send(session, &server, method, Value::Object(params), options).await?;
            links::own_messages(&server, &mut result);
            Ok(result)
        }
        "completion/complete" => complete(session, params, options).await,
        _ => Err(refused(METHOD_NOT_FOUND, format!("{method} is not supported"), None)),
    }
}

/// Reads a resource by a URI of ours, or by one that a single server lists.
pub(crate) async fn read(
    session: &Session,
    mut params: Params,
    options: CallOptions,
) -> Result<Value, CallFailure> {
    let host = session.host();
    let ours = text(&params, "uri")?.to_owned();
    let (server, target) = locate(host, &ours, &options).await?;
    if let Some(refusal) = disabled(host, &server, RESOURCE_NOT_FOUND) {
        return Err(refusal);
    }
    let Target::Resource(theirs) = target else {
        let words = host.words_of(&server).ok_or_else(|| not_found(&ours))?;
        let content = json!({ "uri": ours, "mimeType": "text/plain", "text": words });
        return Ok(json!({ "contents": [content] }));
    };
    if guarded::is_hidden(host, &server, Kind::Resources) {
        return Err(not_found(&ours));
    }
    params.insert("uri".to_owned(), json!(theirs));
    let params = Value::Object(params);
    let mut result = send(session, &server, "resources/read", params, options).await?;
    links::own_contents(&server, &mut result);
    Ok(result)
}

/// Whose resource it is, and how its server calls it.
pub(super) async fn locate(
    host: &Host,
    given: &str,
    options: &CallOptions,
) -> Result<(ServerName, Target), CallFailure> {
    if let Some((server, target)) = uri::theirs(given) {
        let known = host.catalog().read().server(server.as_str()).is_some();
        return if known { Ok((server, target)) } else { Err(not_found(given)) };
    }
    let lists = lists(host, Kind::Resources, options).await?;
    let owners = lists.into_iter().filter(|(server, known)| {
        known.list.keys.contains(given) && !guarded::is_hidden(host, server, Kind::Resources)
    });
    let (off, on): (Vec<ServerName>, Vec<ServerName>) =
        owners.map(|(server, _)| server).partition(|server| host.is_off(server));
    match (on.as_slice(), off.first()) {
        ([server], _) => Ok((server.clone(), Target::Resource(given.to_owned()))),
        ([], off) => Err(off
            .and_then(|server| disabled(host, server, RESOURCE_NOT_FOUND))
            .unwrap_or_else(|| not_found(given))),
        ([one, two, ..], _) => {
            let (one, two) = (uri::ours(one, given), uri::ours(two, given));
            Err(invalid(format!("several servers have it: read {one} or {two}")))
        }
    }
}

/// There is no such resource.
pub(super) fn not_found(uri: &str) -> CallFailure {
    let shown = one_line(uri, SHOWN_CHARACTERS);
    let message = format!("there is no resource {shown}");
    refused(RESOURCE_NOT_FOUND, message, Some(json!({ "uri": shown })))
}

/// What is said where whoever has it is switched off.
fn disabled(host: &Host, server: &ServerName, code: i64) -> Option<CallFailure> {
    let action = host.inner.switches.way_on(server)?;
    Some(refused(code, format!("server `{server}` is disabled; {action}"), None))
}

/// The request cannot be understood.
pub(super) fn invalid(message: String) -> CallFailure {
    refused(INVALID_PARAMS, message, None)
}

async fn list(
    session: &Session,
    kind: Kind,
    params: &Params,
    options: &CallOptions,
) -> Result<Value, CallFailure> {
    let host = session.host();
    session.begin().await;
    let unknown = || invalid("the cursor is none of ours, or no longer good".to_owned());
    let from = match params.get("cursor") {
        None | Some(Value::Null) => None,
        Some(cursor) => Some(cursor.as_str().and_then(Cursor::read).ok_or_else(unknown)?),
    };
    let mut lists = lists(host, kind, options).await?;
    // Names are what they are, whether or not a server is off.
    let names = (kind == Kind::Prompts).then(|| prompt_names(host, &lists));
    lists.retain(|(server, _)| session.sees(server));
    let shown: HashMap<&ServerName, _> =
        lists.iter().map(|(server, _)| (server, guarded::shows(host, server, kind))).collect();
    let result = page(kind, &lists, from.as_ref(), |server, index, value| {
        let key = &mut value[kind.key()];
        let theirs = key.as_str().unwrap_or_default();
        if !shown.get(server).is_some_and(|shows| shows(theirs)) {
            return false;
        }
        let ours = match kind {
            Kind::Resources => uri::ours(server, theirs),
            Kind::Templates => uri::ours_template(server, theirs),
            Kind::Prompts => {
                let name = names.as_ref().and_then(|names| names.name(server, index));
                name.map(ToString::to_string).unwrap_or_default()
            }
        };
        *key = Value::String(ours);
        true
    });
    result.ok_or_else(unknown)
}

/// What all servers have of a kind, in the order of the configuration. Those that are connected, or
/// about to be, are asked; what the others listed before is still theirs.
async fn lists(
    host: &Host,
    kind: Kind,
    options: &CallOptions,
) -> Result<Vec<(ServerName, Known)>, CallFailure> {
    host.offers().at_start(host).await;
    host.offers().given(kind);
    let servers: Vec<ServerName> =
        host.catalog().read().servers().map(|entry| entry.name.clone()).collect();
    let mut asked = Vec::new();
    let mut absent = Vec::new();
    for server in &servers {
        let list = match host.state(server.as_str()).map(|state| state.kind) {
            Some(StateKind::Ready | StateKind::Connecting) => &mut asked,
            Some(StateKind::Failed) => &mut absent,
            _ => continue,
        };
        if host.may_have(server, kind) {
            list.push(server.clone());
        }
    }
    let shelf = &host.offers().shelf;
    tokio::select! {
        () = options.cancel.cancelled() => return Err(CallFailure::Cancelled),
        () = shelf.refresh(host.upstream(), &asked, kind) => {}
    }
    let known = servers.into_iter().map(|server| {
        let mut known = shelf.known(&server, kind);
        if absent.contains(&server) {
            known.problem = Some(NOT_CONNECTED.to_owned());
        }
        (server, known)
    });
    Ok(known.collect())
}

/// Whose prompt it is, and how its server calls it.
async fn prompt(
    host: &Host,
    name: &str,
    options: &CallOptions,
) -> Result<(ServerName, String), CallFailure> {
    let may_be =
        |(server, _): &(ServerName, String)| !guarded::is_hidden(host, server, Kind::Prompts);
    let known = prompt_names(host, &lists(host, Kind::Prompts, options).await?);
    if let Some(found) = known.resolve(name).filter(may_be) {
        return disabled(host, &found.0, INVALID_PARAMS).map_or(Ok(found), Err);
    }
    // A client may know it from an earlier conversation: who could have it is woken for it.
    let asleep = host.offers().may_name(host, name);
    if !asleep.is_empty() {
        host.offers().shelf.refresh(host.upstream(), &asleep, Kind::Prompts).await;
        let known = prompt_names(host, &lists(host, Kind::Prompts, options).await?);
        if let Some(found) = known.resolve(name).filter(may_be) {
            return Ok(found);
        }
    }
    Err(invalid(format!("there is no prompt `{}`", one_line(name, SHOWN_CHARACTERS))))
}

fn prompt_names(host: &Host, lists: &[(ServerName, Known)]) -> Arc<PromptNames> {
    let lists: Vec<(ServerName, Arc<List>)> =
        lists.iter().map(|(server, known)| (server.clone(), Arc::clone(&known.list))).collect();
    host.offers().prompt_names(lists, &host.catalog().read())
}

async fn complete(
    session: &Session,
    mut params: Params,
    options: CallOptions,
) -> Result<Value, CallFailure> {
    let host = session.host();
    let unknown = || invalid("`ref` is neither a prompt nor a resource".to_owned());
    let reference = params.get_mut("ref").and_then(Value::as_object_mut).ok_or_else(unknown)?;
    let (server, field, theirs) = match reference.get("type").and_then(Value::as_str) {
        Some("ref/prompt") => {
            let (server, name) = prompt(host, text(reference, "name")?, &options).await?;
            (server, "name", name)
        }
        Some("ref/resource") => {
            let (server, theirs) = template(host, text(reference, "uri")?, &options).await?;
            (server, "uri", theirs)
        }
        _ => return Err(unknown()),
    };
    reference.insert(field.to_owned(), Value::String(theirs));
    send(session, &server, "completion/complete", Value::Object(params), options).await
}

/// Whose template it is, and how its server wrote it.
async fn template(
    host: &Host,
    ours: &str,
    options: &CallOptions,
) -> Result<(ServerName, String), CallFailure> {
    let (server, target) = locate(host, ours, options).await?;
    let lists = lists(host, Kind::Templates, options).await?;
    let list = lists.into_iter().find(|(owner, _)| *owner == server).map(|(_, known)| known.list);
    let written = list
        .iter()
        .flat_map(|list| (0..list.items.len()).map(|index| list.key(index, Kind::Templates)));
    let exact = written.into_iter().find(|theirs| uri::ours_template(&server, theirs) == ours);
    match (exact, target) {
        (Some(theirs), _) => Ok((server, theirs.to_owned())),
        (None, Target::Resource(theirs)) => Ok((server, theirs)),
        (None, Target::Words) => Err(not_found(ours)),
    }
}

fn text<'a>(params: &'a Params, field: &str) -> Result<&'a str, CallFailure> {
    let text = params.get(field).and_then(Value::as_str);
    text.ok_or_else(|| invalid(format!("`{field}` is missing or no string")))
}

pub(super) fn refused(code: i64, message: String, data: Option<Value>) -> CallFailure {
    CallFailure::Refused { code, message, data }
}
