//! Answers `resources/…`, `prompts/…` and `completion/complete` for all servers.

use std::{collections::HashMap, sync::Arc, time::Instant};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use serde_json::{Map, Value, json};
use toolgate_broker::{BrokerError, CallContext};
use toolgate_catalog::ServerName;
use toolgate_mcp::{
    codes::{INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, NOT_ALLOWED, RESOURCE_NOT_FOUND},
    methods,
};
use toolgate_policy::{
    CallPath, Flow, ToolPolicy, Verdict,
    definitions::{TemplateReading, template_names},
};
use toolgate_upstream::{CallError, CallOptions, StateKind};

use super::{
    ListKind, held,
    lists::{CachedList, ListSource, NOT_CONNECTED, PromptNames, ServerList},
    skills::{self, SkillRefusal},
    uris::{self, UriTarget},
};
use crate::{
    host::ToolHost,
    meta::one_line,
    session::{CallFailure, ToolSession},
};

type Params = Map<String, Value>;

/// The most characters of a name or URI that an error repeats.
const SHOWN_CHARACTERS: usize = 200;

/// Answers a request of a session.
pub(crate) async fn answer(
    session: &ToolSession,
    method: &str,
    mut params: Params,
    mut options: CallOptions,
) -> Result<Value, CallFailure> {
    // The options carry it.
    if let Some(Value::Object(meta)) = params.remove("_meta") {
        options.meta.get_or_insert(meta);
    }
    let host = session.host();
    let is_asked = |kind: &ListKind| *kind != ListKind::Skills && kind.method() == method;
    if let Some(kind) = ListKind::ALL.into_iter().find(is_asked) {
        return list(session, kind, &params, &options).await;
    }
    match method {
        "resources/read" => read(session, params, options).await,
        "resources/subscribe" => {
            session.subscriber().subscribe(text(&params, "uri")?, options).await
        }
        "resources/unsubscribe" => {
            session.subscriber().unsubscribe(text(&params, "uri")?, options).await
        }
        "prompts/get" => {
            let (server, name) = prompt(host, text(&params, "name")?, &options).await?;
            params.insert("name".to_owned(), json!(name));
            let mut result = send(session, &server, method, Value::Object(params), options).await?;
            uris::to_client_messages(&server, &mut result);
            Ok(result)
        }
        "completion/complete" => complete(session, params, options).await,
        methods::SKILLS_LIST if host.has_skills() => skills::list(session, &params, &options).await,
        methods::SKILLS_GET if host.has_skills() => {
            skills::get(session, text(&params, "uri")?).await
        }
        _ => Err(refused(METHOD_NOT_FOUND, format!("{method} is not supported"), None)),
    }
}

/// Why a resource could not be read.
#[derive(Debug)]
pub(crate) enum ReadFailure {
    /// No request was made.
    Client(CallFailure),
    /// The broker refused the request to this server, or it failed.
    Broker(ServerName, BrokerError),
}

impl From<CallFailure> for ReadFailure {
    fn from(failure: CallFailure) -> Self {
        Self::Client(failure)
    }
}

impl From<ReadFailure> for CallFailure {
    fn from(failed: ReadFailure) -> Self {
        match failed {
            ReadFailure::Client(failure) => failure,
            ReadFailure::Broker(server, error) => failure(&server, error),
        }
    }
}

/// Reads a resource for the client.
pub(crate) async fn read(
    session: &ToolSession,
    params: Params,
    options: CallOptions,
) -> Result<Value, CallFailure> {
    let context = CallContext::direct(session.context());
    Ok(read_in(session, params, &context, options).await?)
}

/// Reads a resource by its toolgate URI, or by a URI that only one server lists.
pub(crate) async fn read_in(
    session: &ToolSession,
    mut params: Params,
    context: &CallContext,
    options: CallOptions,
) -> Result<Value, ReadFailure> {
    let host = session.host();
    let ours = text(&params, "uri")?.to_owned();
    if let Some(read) = skills::read_own(session, &ours).await {
        return Ok(read?);
    }
    let (server, target) = locate(host, &ours, &options).await?;
    if let Some(refusal) = disabled(host, &server, RESOURCE_NOT_FOUND) {
        return Err(refusal.into());
    }
    let UriTarget::Resource(theirs) = target else {
        let instructions = instructions_of(session, &server).ok_or_else(|| not_found(&ours))?;
        let block = json!({ "uri": ours, "mimeType": "text/plain", "text": instructions });
        return Ok(json!({ "contents": [block] }));
    };
    if is_hidden(host, &server, ListKind::Resources)
        || held::is_resource_held(host, &source(host, &server, &options), &theirs).await
    {
        return Err(not_found(&ours).into());
    }
    let not_shown = |why: &str| {
        let shown = one_line(&ours, SHOWN_CHARACTERS);
        refused(INTERNAL_ERROR, format!("{shown} is not shown: {why}"), None)
    };
    let of_skill = match skills::file_of(host, &server, &theirs).await.transpose() {
        Ok(file) => file,
        Err(SkillRefusal::Held) => return Err(not_found(&ours).into()),
        Err(SkillRefusal::Unusable(why)) => return Err(not_shown(&why).into()),
    };
    if uris::is_view(&theirs) {
        session.views.opened(&server);
    }
    params.insert("uri".to_owned(), json!(theirs));
    let params = Value::Object(params);
    let sent = host.broker().request(&server, "resources/read", params, context, options).await;
    let mut result = sent.map_err(|error| ReadFailure::Broker(server.clone(), error))?;
    if let Some(file) = of_skill {
        file.check(&result).map_err(|why| not_shown(&why))?;
    }
    uris::to_client_contents(&server, &mut result);
    Ok(result)
}

/// The server of a resource, and the server's own URI.
pub(super) async fn locate(
    host: &ToolHost,
    given: &str,
    options: &CallOptions,
) -> Result<(ServerName, UriTarget), CallFailure> {
    if let Some((server, target)) = uris::theirs(given) {
        let known = host.catalog().read().server(server.as_str()).is_some();
        return if known { Ok((server, target)) } else { Err(not_found(given)) };
    }
    host.inner.resources.at_start(host).await;
    host.await_entries(ListKind::Resources, options).await;
    let mut owners = owners_of(host, given, options).await?;
    if owners.is_empty() {
        // It may be of a server that nothing has connected yet.
        let asleep = host.inner.resources.unlisted(host, ListKind::Resources);
        if !asleep.is_empty() {
            host.await_owners(&asleep, Instant::now(), || false).await;
            owners = owners_of(host, given, options).await?;
        }
    }
    let (off, on): (Vec<ServerName>, Vec<ServerName>) =
        owners.into_iter().partition(|server| host.is_off(server));
    match (on.as_slice(), off.first()) {
        ([server], _) => Ok((server.clone(), UriTarget::Resource(given.to_owned()))),
        ([], off) => Err(off
            .and_then(|server| disabled(host, server, RESOURCE_NOT_FOUND))
            .unwrap_or_else(|| not_found(given))),
        ([one, two, ..], _) => {
            let (one, two) = (uris::ours(one, given), uris::ours(two, given));
            Err(invalid(format!("several servers have it: read {one} or {two}")))
        }
    }
}

/// The servers that list a resource, else those with a template that names it.
async fn owners_of(
    host: &ToolHost,
    given: &str,
    options: &CallOptions,
) -> Result<Vec<ServerName>, CallFailure> {
    let lists = lists(host, ListKind::Resources, options).await?;
    let owners = lists.into_iter().filter(|(server, known)| {
        known.list.keys.contains(given) && !is_hidden(host, server, ListKind::Resources)
    });
    let owners: Vec<ServerName> = owners.map(|(server, _)| server).collect();
    if owners.is_empty() { named_by_templates(host, given, options).await } else { Ok(owners) }
}

/// The servers with a template that names a URI, or that is this very text.
async fn named_by_templates(
    host: &ToolHost,
    given: &str,
    options: &CallOptions,
) -> Result<Vec<ServerName>, CallFailure> {
    let kind = ListKind::Templates;
    let lists = lists(host, kind, options).await?;
    let names = |template: &str| {
        template == given || template_names(template, given, TemplateReading::Strict)
    };
    let owners = lists.into_iter().filter(|(server, known)| {
        known.list.keys.iter().any(|template| names(template)) && !is_hidden(host, server, kind)
    });
    Ok(owners.map(|(server, _)| server).collect())
}

/// The error for an unknown resource.
pub(super) fn not_found(uri: &str) -> CallFailure {
    let shown = one_line(uri, SHOWN_CHARACTERS);
    let message = format!("there is no resource {shown}");
    refused(RESOURCE_NOT_FOUND, message, Some(json!({ "uri": shown })))
}

/// The error for a disabled server.
fn disabled(host: &ToolHost, server: &ServerName, code: i64) -> Option<CallFailure> {
    let action = host.inner.enabled.how_to_enable(server)?;
    Some(refused(code, format!("server `{server}` is disabled; {action}"), None))
}

/// The error for invalid parameters.
pub(super) fn invalid(message: String) -> CallFailure {
    refused(INVALID_PARAMS, message, None)
}

async fn list(
    session: &ToolSession,
    kind: ListKind,
    params: &Params,
    options: &CallOptions,
) -> Result<Value, CallFailure> {
    let host = session.host();
    session.begin().await;
    let unknown = || invalid("the cursor is unknown or no longer valid".to_owned());
    let from = match params.get("cursor") {
        None | Some(Value::Null) => None,
        Some(cursor) => Some(cursor.as_str().and_then(ListCursor::read).ok_or_else(unknown)?),
    };
    host.inner.resources.at_start(host).await;
    session.await_entries(kind, options).await;
    let mut lists = lists(host, kind, options).await?;
    // The names must not depend on which servers are enabled.
    let names = (kind == ListKind::Prompts).then(|| prompt_names(host, &lists));
    lists.retain(|(server, _)| session.sees(server));
    let mut shown: HashMap<&ServerName, _> = HashMap::new();
    for (server, known) in &lists {
        let held = held::held_in(host, server, kind, &known.list).await;
        let is_open = shows(session, server, kind);
        shown.insert(server, move |key: &str| !held.contains_key(key) && is_open(key));
    }
    let result = page(kind, &lists, from.as_ref(), |server, index, value| {
        let key = &mut value[kind.key()];
        let theirs = key.as_str().unwrap_or_default();
        if !shown.get(server).is_some_and(|shows| shows(theirs)) {
            return false;
        }
        let ours = match kind {
            ListKind::Resources | ListKind::Skills => uris::ours(server, theirs),
            ListKind::Templates => uris::ours_template(server, theirs),
            ListKind::Prompts => {
                let name = names.as_ref().and_then(|names| names.name(server, index));
                name.map(ToString::to_string).unwrap_or_default()
            }
        };
        *key = Value::String(ours);
        true
    });
    result.ok_or_else(unknown)
}

/// Whose list a request needs.
fn source(host: &ToolHost, server: &ServerName, options: &CallOptions) -> ListSource {
    ListSource::new(host.broker(), server, options.caller.as_ref())
}

/// The lists of all servers, in the order of the configuration. Servers that are connected or
/// connecting are asked; for the others the last list is used.
pub(super) async fn lists(
    host: &ToolHost,
    kind: ListKind,
    options: &CallOptions,
) -> Result<Vec<(ServerName, CachedList)>, CallFailure> {
    lists_of(host, kind, options, &[StateKind::Ready, StateKind::Connecting]).await
}

/// [`lists`], of which those of servers in these states are up to date.
pub(super) async fn lists_of(
    host: &ToolHost,
    kind: ListKind,
    options: &CallOptions,
    states: &[StateKind],
) -> Result<Vec<(ServerName, CachedList)>, CallFailure> {
    host.inner.resources.at_start(host).await;
    host.inner.resources.list_given(kind);
    let mut servers: Vec<ServerName> =
        host.catalog().read().servers().map(|entry| entry.name.clone()).collect();
    if options.caller.is_none() {
        servers.retain(|server| !host.servers().is_per_caller(server.as_str()));
    }
    let state_of = |server: &ServerName| match &options.caller {
        Some(caller) => host.servers().state_for(server.as_str(), caller),
        None => host.servers().state(server.as_str()),
    };
    let mut asked = Vec::new();
    let mut absent = Vec::new();
    for server in &servers {
        let list = match state_of(server).map(|state| state.kind) {
            Some(state) if states.contains(&state) => &mut asked,
            Some(StateKind::Failed) => &mut absent,
            _ => continue,
        };
        if host.declares(server, kind) != Some(false) {
            list.push(source(host, server, options));
        }
    }
    let lists = &host.inner.resources.lists;
    tokio::select! {
        () = options.cancel.cancelled() => return Err(CallFailure::Cancelled),
        () = lists.refresh(host.broker(), &asked, kind) => {}
    }
    // A change that was announced meanwhile is one that the client has asked before. Further ones are new to it.
    host.inner.resources.list_given(kind);
    let known = servers.into_iter().map(|server| {
        let source = source(host, &server, options);
        let mut known = lists.known(&source, kind);
        if absent.contains(&source) {
            known.problem = Some(NOT_CONNECTED.to_owned());
        }
        (server, known)
    });
    Ok(known.collect())
}

/// The server of a prompt, and the prompt's own name.
async fn prompt(
    host: &ToolHost,
    name: &str,
    options: &CallOptions,
) -> Result<(ServerName, String), CallFailure> {
    let may_be = |(server, _): &(ServerName, String)| !is_hidden(host, server, ListKind::Prompts);
    let unknown = || invalid(format!("there is no prompt `{}`", one_line(name, SHOWN_CHARACTERS)));
    let usable = async |found: (ServerName, String)| {
        let source = source(host, &found.0, options);
        let is_held = held::is_held(host, &source, ListKind::Prompts, &found.1).await;
        if is_held { Err(unknown()) } else { Ok(found) }
    };
    let known = prompt_names(host, &lists(host, ListKind::Prompts, options).await?);
    if let Some(found) = known.resolve(name).filter(may_be) {
        return match disabled(host, &found.0, INVALID_PARAMS) {
            Some(refusal) => Err(refusal),
            None => usable(found).await,
        };
    }
    // A client may know the name from an earlier session, so the servers that could have it are
    // connected.
    let asleep = host.inner.resources.may_name(host, name);
    if !asleep.is_empty() {
        host.await_owners(&asleep, Instant::now(), || false).await;
        let asleep: Vec<_> = asleep.iter().map(|server| source(host, server, options)).collect();
        host.inner.resources.lists.refresh(host.broker(), &asleep, ListKind::Prompts).await;
        let known = prompt_names(host, &lists(host, ListKind::Prompts, options).await?);
        if let Some(found) = known.resolve(name).filter(may_be) {
            return usable(found).await;
        }
    }
    Err(unknown())
}

fn prompt_names(host: &ToolHost, lists: &[(ServerName, CachedList)]) -> Arc<PromptNames> {
    let lists: Vec<(ServerName, Arc<ServerList>)> =
        lists.iter().map(|(server, known)| (server.clone(), Arc::clone(&known.list))).collect();
    host.inner.resources.prompt_names(lists, &host.catalog().read())
}

async fn complete(
    session: &ToolSession,
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

/// The server of a template, and the server's own text of it.
async fn template(
    host: &ToolHost,
    ours: &str,
    options: &CallOptions,
) -> Result<(ServerName, String), CallFailure> {
    let (server, target) = locate(host, ours, options).await?;
    let lists = lists(host, ListKind::Templates, options).await?;
    let list = lists.into_iter().find(|(owner, _)| *owner == server).map(|(_, known)| known.list);
    let written = list
        .iter()
        .flat_map(|list| (0..list.items.len()).map(|index| list.key(index, ListKind::Templates)));
    let exact = written.into_iter().find(|theirs| uris::ours_template(&server, theirs) == ours);
    if let Some(theirs) = exact
        && held::is_held(host, &source(host, &server, options), ListKind::Templates, theirs).await
    {
        return Err(not_found(ours));
    }
    match (exact, target) {
        (Some(theirs), _) => Ok((server, theirs.to_owned())),
        (None, UriTarget::Resource(theirs)) => Ok((server, theirs)),
        (None, UriTarget::Instructions) => Err(not_found(ours)),
    }
}

fn text<'a>(params: &'a Params, field: &str) -> Result<&'a str, CallFailure> {
    let text = params.get(field).and_then(Value::as_str);
    text.ok_or_else(|| invalid(format!("`{field}` is missing or no string")))
}

fn refused(code: i64, message: String, data: Option<Value>) -> CallFailure {
    CallFailure::Refused { code, message, data }
}

/// Sends a request to one server if it is allowed. The names and URIs in it are the server's own.
async fn send(
    session: &ToolSession,
    server: &ServerName,
    method: &str,
    params: Value,
    options: CallOptions,
) -> Result<Value, CallFailure> {
    let context = CallContext::direct(session.context());
    let sent = session.host().broker().request(server, method, params, &context, options).await;
    sent.map_err(|error| failure(server, error))
}

/// Whether the policy denies the caller everything of a server.
pub(crate) fn is_denied(session: &ToolSession, server: &ServerName) -> bool {
    let (host, caller) = (session.host(), &session.context().caller().facts);
    let is_closed = |kind| {
        policy(host, server, kind)
            .is_some_and(|policy| policy.is_closed_to(caller, CallPath::Direct))
    };
    is_closed(ListKind::Resources)
        && is_closed(ListKind::Prompts)
        && session.offered_of(&host.catalog().read(), server.as_str()) == 0
}

/// Whether the policy denies all entries of a kind, so that they are hidden.
pub(super) fn is_hidden(host: &ToolHost, server: &ServerName, kind: ListKind) -> bool {
    policy(host, server, kind).is_some_and(|policy| policy.is_hidden())
}

/// Whether an entry of a server's list is shown: not if reading it is denied in any case.
pub(super) fn shows(
    session: &ToolSession,
    server: &ServerName,
    kind: ListKind,
) -> impl Fn(&str) -> bool + use<> {
    let caller = session.context().caller().facts.clone();
    let policy = policy(session.host(), server, kind);
    let policy = policy.map(|policy| (policy.is_closed_to(&caller, CallPath::Direct), policy));
    move |key: &str| {
        let Some((is_hidden, policy)) = &policy else { return true };
        let arguments = match kind {
            ListKind::Resources | ListKind::Skills => json!({ "uri": key }),
            ListKind::Prompts => json!({ "name": key }),
            // The resource is not known yet.
            ListKind::Templates => return !is_hidden,
        };
        let decide = || policy.decide_for(&caller, CallPath::Direct, &arguments, &Flow::NONE);
        !is_hidden && decide().verdict != Verdict::Deny
    }
}

/// Converts an error of the broker to one of the protocol.
pub(crate) fn failure(server: &ServerName, error: BrokerError) -> CallFailure {
    match error {
        BrokerError::Call(error) => match *error {
            CallError::Cancelled => CallFailure::Cancelled,
            CallError::Refused { mut error, .. } => {
                uris::to_client_uri(server, error.data.as_mut());
                refused(error.code, error.message, error.data)
            }
            other => refused(INTERNAL_ERROR, other.to_string(), None),
        },
        BrokerError::UnknownMethod(_) => invalid(error.to_string()),
        other => refused(NOT_ALLOWED, other.to_string(), other.data()),
    }
}

fn policy(host: &ToolHost, server: &ServerName, kind: ListKind) -> Option<Arc<ToolPolicy>> {
    let method = match kind {
        ListKind::Resources | ListKind::Templates | ListKind::Skills => "resources/read",
        ListKind::Prompts => "prompts/get",
    };
    host.broker().policy_of_request(server, method)
}

/// The instructions of a server. `None` if the policy denies the caller everything of the server, or
/// if they are held back.
pub(crate) fn instructions_of(session: &ToolSession, server: &ServerName) -> Option<String> {
    let host = session.host();
    if is_denied(session, server) {
        return None;
    }
    let text = sent_instructions(host, server)?;
    let is_held = host.inner.live_catalog.filter().hold_instructions(server, &text).is_some();
    (!is_held && !text.is_empty()).then_some(text)
}

/// The instructions that a server sent: over its connection, or in the cache. Empty if it has none,
/// and `None` if that is not known.
pub(super) fn sent_instructions(host: &ToolHost, server: &ServerName) -> Option<String> {
    let text = match host.servers().state(server.as_str()).and_then(|state| state.handshake) {
        Some(handshake) => handshake.instructions,
        None => host.inner.live_catalog.memory(server)?.instructions,
    };
    Some(text.unwrap_or_default())
}

/// Where a page begins: at an entry of a server. Changes of other servers do not move it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ListCursor {
    server: ServerName,
    index: usize,
}

/// The key in the `_meta` of a list that names servers whose entries are missing, and why.
const INCOMPLETE: &str = "toolgate/incomplete";
const PAGE_ITEMS: usize = 500;
/// Large entries come in smaller pages.
const PAGE_BYTES: usize = 2 * 1024 * 1024;
/// The most characters of a problem that are shown.
const PROBLEM_CHARACTERS: usize = 300;

impl ListCursor {
    /// Reads a cursor from a client; `None` if it is not one of ours.
    fn read(text: &str) -> Option<Self> {
        let (server, index): (String, usize) =
            serde_json::from_slice(&BASE64.decode(text).ok()?).ok()?;
        Some(Self { server: server.into(), index })
    }

    fn write(&self) -> String {
        BASE64.encode(json!([self.server, self.index]).to_string())
    }
}

/// The page of a list from a cursor on. `rename` gives an entry its exposed name, or omits it.
/// `None` if the cursor's server is gone.
fn page(
    kind: ListKind,
    lists: &[(ServerName, CachedList)],
    from: Option<&ListCursor>,
    mut rename: impl FnMut(&ServerName, usize, &mut Value) -> bool,
) -> Option<Value> {
    let first = match from {
        Some(cursor) => lists.iter().position(|(server, _)| *server == cursor.server)?,
        None => 0,
    };
    let (mut items, mut bytes, mut next) = (Vec::new(), 0, None);
    'servers: for (place, (server, known)) in lists.iter().enumerate().skip(first) {
        let start = from.filter(|_| place == first).map_or(0, |cursor| cursor.index);
        for (index, item) in known.list.items.iter().enumerate().skip(start) {
            let mut value = item.value.clone();
            if !rename(server, index, &mut value) {
                continue;
            }
            bytes += item.bytes;
            if items.len() == PAGE_ITEMS || (bytes > PAGE_BYTES && !items.is_empty()) {
                next = Some(ListCursor { server: server.clone(), index });
                break 'servers;
            }
            items.push(value);
        }
    }
    let mut result = json!({ kind.field(): items });
    if let Some(next) = next {
        result["nextCursor"] = json!(next.write());
    }
    let problems: Map<String, Value> = lists
        .iter()
        .filter_map(|(server, known)| Some((server, known.problem.as_ref()?)))
        .map(|(server, problem)| {
            let problem: String = problem.chars().take(PROBLEM_CHARACTERS).collect();
            (server.to_string(), json!(problem))
        })
        .collect();
    if !problems.is_empty() {
        result["_meta"] = json!({ INCOMPLETE: problems });
    }
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::lists::ListItem;

    fn known(uris: impl Iterator<Item = String>, bytes: usize) -> CachedList {
        let items = uris.map(|uri| ListItem { value: json!({ "uri": uri }), bytes }).collect();
        CachedList { list: Arc::new(ServerList { items, ..ServerList::default() }), problem: None }
    }

    fn walk(lists: &[(ServerName, CachedList)]) -> Vec<Vec<String>> {
        let (mut pages, mut cursor) = (Vec::new(), None);
        loop {
            let page = page(ListKind::Resources, lists, cursor.as_ref(), |_, _, _| true).unwrap();
            let items = page["resources"].as_array().unwrap();
            pages.push(items.iter().map(|item| item["uri"].as_str().unwrap().to_owned()).collect());
            match page.get("nextCursor") {
                Some(next) => cursor = ListCursor::read(next.as_str().unwrap()),
                None => return pages,
            }
            assert!(cursor.is_some());
        }
    }

    #[test]
    fn pages_go_through_all_servers_in_order() {
        let lists = [
            ("b".into(), known((0..700).map(|n| format!("b:{n}")), 10)),
            ("empty".into(), known(std::iter::empty(), 0)),
            ("a".into(), known((0..400).map(|n| format!("a:{n}")), 10)),
        ];
        let pages = walk(&lists);
        assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [500, 500, 100]);
        assert_eq!(pages[0][0], "b:0");
        assert_eq!(pages[2][99], "a:399");
    }

    #[test]
    fn large_entries_come_in_smaller_pages_but_always_come() {
        let lists = [("a".into(), known((0..3).map(|n| format!("a:{n}")), PAGE_BYTES + 1))];
        assert_eq!(walk(&lists), [["a:0"], ["a:1"], ["a:2"]]);
    }

    #[test]
    fn an_unknown_cursor_is_refused() {
        for text in ["", "x", "!", "WyJhIl0", &BASE64.encode("[\"a\", -1]")] {
            assert_eq!(ListCursor::read(text), None, "{text}");
        }
        let gone = ListCursor { server: "gone".into(), index: 0 };
        assert_eq!(ListCursor::read(&gone.write()), Some(gone.clone()));
        assert!(page(ListKind::Prompts, &[], Some(&gone), |_, _, _| true).is_none());
    }

    #[test]
    fn what_is_missing_is_said() {
        let mut late = known(std::iter::empty(), 0);
        late.problem = Some("no answer in 3 s".to_owned());
        let result =
            page(ListKind::Prompts, &[("late".into(), late)], None, |_, _, _| true).unwrap();
        assert_eq!(
            result,
            json!({"prompts": [], "_meta": {"toolgate/incomplete": {"late": "no answer in 3 s"}}})
        );
    }
}
