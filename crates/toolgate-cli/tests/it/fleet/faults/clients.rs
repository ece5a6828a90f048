//! Clients of both eras that call tools with effects, wait for approvals and use their own logins, while nodes die.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use toolgate_broker::{PersonAnswer, QueuedCall};
use toolgate_store::{SharedStore, Store};
use toolgate_testkit::scaled;

use super::{Load, NOT_SENT};
use crate::{
    fleet::{
        FleetPlace, LegacyClient,
        logins::{link_in, open_link},
        why,
    },
    support::text,
};

/// A person with an access token, and with a login at the server that wants one of each caller.
pub(super) struct Caller {
    pub(super) name: &'static str,
    pub(super) token: String,
    /// One session logs in for all.
    logs_in: tokio::sync::Mutex<()>,
}

/// What a client knows of an effect.
enum Effect {
    Done,
    /// It may have happened.
    Unknown(String),
    /// It has not, because a node did not begin the call, or nobody listened.
    NotBegun(String),
    /// A person denied it.
    Denied,
}

/// The nodes that a load balancer knows, in turn.
#[derive(Default)]
pub(super) struct Balancer {
    pub(super) urls: Mutex<Vec<String>>,
    turn: AtomicU64,
}

/// A client of either era, and whose it is.
struct Client {
    caller: Option<Arc<Caller>>,
    era: Era,
}

enum Era {
    Modern(reqwest::Client),
    Legacy(Option<LegacyClient>),
}

const TASKS: &str = "io.modelcontextprotocol/tasks";
const PAUSE: Duration = Duration::from_millis(20);

/// Whether a person denies the call with this effect.
pub(super) fn is_denied(id: u64) -> bool {
    id % 12 == 5
}

impl Caller {
    pub(super) fn new(name: &'static str, token: String) -> Self {
        Self { name, token, logs_in: tokio::sync::Mutex::default() }
    }
}

impl Balancer {
    pub(super) fn next(&self) -> String {
        let urls = self.urls.lock();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        urls[usize::try_from(turn).unwrap() % urls.len()].clone()
    }

    /// Another node than this one.
    fn other_than(&self, url: &str) -> String {
        let next = self.next();
        if next == url { self.next() } else { next }
    }
}

/// Starts clients that call until it is over.
pub(super) fn start(count: usize, load: &Arc<Load>) -> Vec<JoinHandle<()>> {
    let start = |number: usize| {
        let load = Arc::clone(load);
        tokio::spawn(async move {
            let callers = &load.callers;
            let caller =
                (!callers.is_empty()).then(|| Arc::clone(&callers[number % callers.len()]));
            let mut client = Client::new(number, caller);
            while !load.is_over.load(Ordering::Relaxed) {
                let id = load.ids.fetch_add(1, Ordering::Relaxed);
                match id % 4 {
                    1 if client.caller.is_some() => client.guarded(&load, id).await,
                    3 if client.caller.is_some() => client.who(&load).await,
                    _ => client.write(&load, id).await,
                }
            }
        })
    };
    (0..count).map(start).collect()
}

/// Starts a person who answers the questions in the queue, at no node of the fleet.
pub(super) async fn start_approver(place: &FleetPlace, load: &Arc<Load>) -> JoinHandle<()> {
    let (fleet, load) = (place.fleet().await, Arc::clone(load));
    let folder = place.folder.path().join("approver");
    tokio::spawn(async move {
        while !load.is_over.load(Ordering::Relaxed) {
            let shared = Arc::clone(&fleet) as Arc<dyn SharedStore>;
            let store = Store::new(&folder).sharing(shared);
            let answering = tokio::task::spawn_blocking(move || {
                let journal = store.journal()?;
                for call in QueuedCall::all(&*journal)? {
                    let arguments: Value = serde_json::from_str(&call.request.arguments).unwrap();
                    let is_denied = is_denied(arguments["id"].as_u64().unwrap());
                    let answer = if is_denied { PersonAnswer::Deny } else { PersonAnswer::ONCE };
                    // While the database is away, the question stays.
                    let _ = call.answer(&store, &*journal, &answer, "approver", None);
                }
                Ok::<_, toolgate_store::JournalError>(())
            });
            let _ = answering.await.unwrap();
            tokio::time::sleep(PAUSE).await;
        }
    })
}

/// Logs a caller in, unless another session just did.
pub(super) async fn log_in(load: &Load, caller: &Caller, said: &str) {
    let Ok(_alone) = caller.logs_in.try_lock() else { return };
    let Some(link) = link_in(said) else { return };
    let first = load.balancer.next();
    let other = load.balancer.other_than(&first);
    // If a node is gone, or the login was ended meanwhile, the next call says what to do.
    let _ = open_link([&first, &other], link, &caller.token, caller.name).await;
}

impl Client {
    fn new(number: usize, caller: Option<Arc<Caller>>) -> Self {
        let era = if number.is_multiple_of(2) {
            let http = toolgate_http::client_builder().no_proxy().pool_max_idle_per_host(0);
            Era::Modern(http.build().unwrap())
        } else {
            Era::Legacy(None)
        };
        Self { caller, era }
    }

    fn token(&self) -> Option<&str> {
        self.caller.as_deref().map(|caller| caller.token.as_str())
    }

    /// Calls a tool whose effect needs no approval.
    async fn write(&mut self, load: &Load, id: u64) {
        let began = Instant::now();
        let answer = self.call(load, "kit_write", json!({ "id": id })).await;
        let effect = effect(answer);
        if matches!(effect, Effect::Done) {
            load.told.times.lock().push(began.elapsed().as_secs_f64() * 1_000.0);
        }
        load.told.note(id, effect).await;
    }

    /// Calls a tool that says with whose login it was called.
    async fn who(&mut self, load: &Load) {
        let Ok(result) = self.call(load, "crm_who", json!({})).await else { return };
        let caller = Arc::clone(self.caller.as_ref().unwrap());
        let said = text(&result);
        match said.strip_prefix("account ") {
            Some(name) if name == caller.name => {
                *load.told.accounts.lock().entry(caller.name).or_default() += 1;
            }
            Some(name) => load.told.crossed.lock().push(format!("{name} for {}", caller.name)),
            None => {
                log_in(load, &caller, said).await;
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// Calls a tool that needs an approval, which is given at another node than the one where the call waits.
    async fn guarded(&mut self, load: &Load, id: u64) {
        let token = self.token().map(str::to_owned);
        let token = token.as_deref();
        let asking: std::pin::Pin<Box<dyn Future<Output = _> + Send>> = match &mut self.era {
            Era::Legacy(session) => Box::pin(legacy_form(load, session, token, id)),
            Era::Modern(http) if id % 8 == 1 => Box::pin(modern_form(load, http, token, id)),
            Era::Modern(http) => Box::pin(modern_task(load, http, token, id)),
        };
        let answer = tokio::time::timeout(scaled(load.patience), asking).await;
        let answer = answer.unwrap_or_else(|_| Err("no answer in time".to_owned()));
        let said = answer.as_ref().map_or("", |result| text(result)).to_owned();
        assert!(!said.contains("with other arguments"), "{id} was allowed as it is: {said}");
        let effect = match effect(answer) {
            Effect::Unknown(_) if said.contains("a person denied it") => {
                assert!(is_denied(id), "{id} was allowed, and the client was told: {said}");
                load.told.denied.fetch_add(1, Ordering::Relaxed);
                Effect::Denied
            }
            effect => effect,
        };
        if matches!(effect, Effect::Done) {
            load.told.approved.fetch_add(1, Ordering::Relaxed);
        }
        load.told.note(id, effect).await;
    }

    async fn call(&mut self, load: &Load, tool: &str, arguments: Value) -> Result<Value, String> {
        let token = self.token().map(str::to_owned);
        match &mut self.era {
            Era::Modern(http) => {
                let params = json!({ "name": tool, "arguments": arguments });
                let url = load.balancer.next();
                modern(http, &url, token.as_deref(), "tools/call", params, json!({})).await
            }
            Era::Legacy(session) => {
                let client = open(session, load, token.as_deref()).await?;
                client.call(&load.balancer.next(), tool, arguments).await
            }
        }
    }
}

/// The session of a client, which may have to be begun.
async fn open<'s>(
    session: &'s mut Option<LegacyClient>,
    load: &Load,
    token: Option<&str>,
) -> Result<&'s LegacyClient, String> {
    if session.is_none() {
        // Without a session nothing was called.
        let begun = LegacyClient::begin_as(&load.balancer.next(), token).await;
        *session = Some(begun.map_err(|why| format!("{NOT_SENT}: {why}"))?);
    }
    Ok(session.as_ref().unwrap())
}

/// The answer of the person to the form of an approval.
fn form_answer(id: u64) -> Value {
    let answer = if is_denied(id) { "deny" } else { "allow once" };
    json!({ "action": "accept", "content": { "answer": answer } })
}

/// The client is asked in a stream, and sends the answer to another node.
async fn legacy_form(
    load: &Load,
    session: &mut Option<LegacyClient>,
    token: Option<&str>,
    id: u64,
) -> Result<Value, String> {
    let client = open(session, load, token).await?;
    let url = load.balancer.next();
    let mut events = client.begin_call(&url, "kit_guarded", json!({ "id": id })).await?;
    loop {
        let mut message = events.next().await?;
        if message["method"] == "elicitation/create" {
            let answer =
                json!({ "jsonrpc": "2.0", "id": message["id"], "result": form_answer(id) });
            // A node that is gone does not take it.
            while client.post(&load.balancer.other_than(&url), &answer).await.is_err() {
                tokio::time::sleep(PAUSE).await;
            }
        } else if message.get("method").is_none() {
            return match message.get("result") {
                Some(_) => Ok(message["result"].take()),
                None => Err(message["error"].to_string()),
            };
        }
    }
}

/// The client is asked in the result, and continues at another node.
async fn modern_form(
    load: &Load,
    http: &reqwest::Client,
    token: Option<&str>,
    id: u64,
) -> Result<Value, String> {
    let capabilities = json!({ "elicitation": {} });
    let mut params = json!({ "name": "kit_guarded", "arguments": { "id": id } });
    let mut url = load.balancer.next();
    let waiting =
        modern(http, &url, token, "tools/call", params.clone(), capabilities.clone()).await?;
    if waiting["resultType"] != "input_required" {
        return Ok(waiting);
    }
    let asked = waiting["inputRequests"].as_object().cloned().unwrap_or_default();
    let responses: BTreeMap<&String, Value> =
        asked.keys().map(|key| (key, form_answer(id))).collect();
    params["requestState"] = waiting["requestState"].clone();
    params["inputResponses"] = json!(responses);
    loop {
        url = load.balancer.other_than(&url);
        let sending = modern(http, &url, token, "tools/call", params.clone(), capabilities.clone());
        match sending.await {
            Err(why) if why.contains(NOT_SENT) => tokio::time::sleep(PAUSE).await,
            answer => return answer,
        }
    }
}

/// The call becomes a task, which waits until the approver has answered.
async fn modern_task(
    load: &Load,
    http: &reqwest::Client,
    token: Option<&str>,
    id: u64,
) -> Result<Value, String> {
    let capabilities = json!({ "extensions": { TASKS: {} } });
    let params = json!({ "name": "kit_guarded", "arguments": { "id": id } });
    let task = loop {
        let (url, params) = (load.balancer.next(), params.clone());
        let made = modern(http, &url, token, "tools/call", params, capabilities.clone()).await?;
        if made["resultType"] == "task" {
            break made["taskId"].clone();
        }
        // A caller with many tasks makes the same call again.
        if !text(&made).contains("waiting for approval") {
            return Ok(made);
        }
        tokio::time::sleep(PAUSE).await;
    };
    loop {
        tokio::time::sleep(PAUSE).await;
        let (url, params) = (load.balancer.next(), json!({ "taskId": task }));
        let seen = modern(http, &url, token, "tasks/get", params, capabilities.clone()).await;
        let Ok(mut seen) = seen else { continue };
        match seen["status"].as_str() {
            Some("completed") => return Ok(seen["result"].take()),
            Some("failed" | "cancelled") => return Err(seen["error"].to_string()),
            _ => {}
        }
    }
}

/// What the answer of a call says about its effect.
fn effect(answer: Result<Value, String>) -> Effect {
    match answer {
        Ok(result) if result["isError"] != true && text(&result) == "written" => Effect::Done,
        // Neither a node that does not listen, nor one that stops, nor one that cannot pass a request on has called
        // anything.
        Err(why)
            if [NOT_SENT, "was not begun; try again", "cannot be reached; try again"]
                .iter()
                .any(|refused| why.contains(refused)) =>
        {
            Effect::NotBegun(why)
        }
        Err(why) => Effect::Unknown(why),
        Ok(result) => Effect::Unknown(result.to_string()),
    }
}

impl super::Told {
    async fn note(&self, id: u64, effect: Effect) {
        match effect {
            Effect::Done => {
                self.done.lock().insert(id);
            }
            Effect::Unknown(why) => {
                self.unknown.lock().insert(id);
                self.why.lock().push(why);
                // While the database is away, answers come at once.
                tokio::time::sleep(PAUSE).await;
            }
            Effect::NotBegun(why) => {
                // Where nobody listens, a balancer asks the next node.
                if !why.contains(NOT_SENT) {
                    self.refused.lock().push(why);
                }
                tokio::time::sleep(PAUSE).await;
            }
            Effect::Denied => tokio::time::sleep(PAUSE).await,
        }
    }
}

async fn modern(
    http: &reqwest::Client,
    url: &str,
    token: Option<&str>,
    method: &str,
    mut params: Value,
    capabilities: Value,
) -> Result<Value, String> {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "modern", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    let mut request = http
        .post(url)
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method);
    if let Some(name) = params["name"].as_str().or(params["taskId"].as_str()) {
        request = request.header("mcp-name", name);
    }
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let answer = request.json(&body).send().await.map_err(|error| why(&error))?;
    let answer = answer.text().await.map_err(|error| error.to_string())?;
    let events = answer.lines().filter_map(|line| line.strip_prefix("data:"));
    let last = events.map(str::trim).rfind(|data| !data.is_empty()).unwrap_or(&answer);
    let mut message: Value = serde_json::from_str(last).map_err(|error| error.to_string())?;
    match message.get("result") {
        Some(_) => Ok(message["result"].take()),
        None => Err(message["error"].to_string()),
    }
}
