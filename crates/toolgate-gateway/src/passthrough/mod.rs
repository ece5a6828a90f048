//! The face of one server: everything of the protocol, as it is, whatever the eras of both sides.

mod bridge;
mod desk;
mod guarded;
mod held;
mod listen;
mod roster;
mod schemas;
#[cfg(test)]
mod tests;
mod wire;

use std::sync::Arc;

use futures::future::{BoxFuture, try_join_all};
use parking_lot::Mutex;
use serde_json::{Value, json};
use toolgate_broker::Caller;
use toolgate_host::ServerGuard;
use toolgate_mcp::{ErrorObject, JsonObject};
use toolgate_upstream::{ConnectionClient, InputRequest, RawRequest, ServerSpec};

use self::{
    desk::Desk,
    guarded::Guarded,
    held::Held,
    schemas::Schemas,
    wire::{Dial, Wire},
};
use crate::{
    era::{Era, META_LOG_LEVEL, META_SUBSCRIPTION},
    face::{Asked, Client, Face, Source},
    greeting::Greeting,
    message::method_not_found,
    results::{self, Cached},
};

/// Gives clients connections of their own to one server; those of the modern era share theirs where
/// they can be asked the same.
#[derive(Debug)]
pub struct PassthroughSource {
    server: Arc<dyn Dial>,
    guard: Option<Arc<ServerGuard>>,
}

/// One connection, and those who talk over it.
#[derive(Debug)]
struct Passthrough {
    line: Arc<dyn Wire>,
    desk: Arc<Desk>,
    held: Held,
    schemas: Schemas,
    /// Who may ask what, where that is limited or recorded.
    guarded: Option<Guarded>,
    /// The level at which the client wants the server's logs, where one side has no word for it.
    level: Mutex<Option<Value>>,
}

/// How often a server may ask before it has a result.
const ROUNDS: usize = 16;
/// How much it may ask at once.
const QUESTIONS: usize = 32;

impl PassthroughSource {
    /// For the server that this describes.
    pub fn new(server: ServerSpec) -> Self {
        Self { server: Arc::new(server), guard: None }
    }

    /// With somebody who decides on requests and records them. What is let through stays as it is.
    #[must_use]
    pub fn guarded_by(self, guard: Arc<ServerGuard>) -> Self {
        Self { guard: Some(guard), ..self }
    }
}

impl Source for PassthroughSource {
    fn open(&self, client: Client) -> BoxFuture<'_, Result<Arc<dyn Face>, ErrorObject>> {
        Box::pin(async move {
            let caller = Caller::model(client.caller.as_str()).calling_itself(&client.own_name());
            let desk = Arc::new(Desk::new(client.outlet));
            let whom = ConnectionClient {
                info: client.info,
                legacy_capabilities: client.capabilities.clone(),
                modern_capabilities: client.capabilities,
            };
            let line = self.server.dial(client.era, whom, Arc::clone(&desk) as _).await?;
            let schemas = Schemas::new(desk.changes.subscribe());
            let held = Held::default();
            let guard = self.guard.clone();
            let guarded = guard.map(|guard| Guarded::new(guard, caller, desk.changes.subscribe()));
            let level = Mutex::default();
            let face = Passthrough { line, desk, held, schemas, guarded, level };
            Ok(Arc::new(face) as Arc<dyn Face>)
        })
    }

    fn minds_capabilities(&self) -> bool {
        true
    }
}

impl Face for Passthrough {
    fn greeting(&self, _era: Era) -> BoxFuture<'_, Result<Greeting, ErrorObject>> {
        let fields = self.line.greeting().as_object().cloned().unwrap_or_default();
        let greeting = Greeting { era: self.line.era(), fields };
        Box::pin(std::future::ready(Ok(greeting)))
    }

    fn request(&self, asked: Asked) -> BoxFuture<'_, Result<Value, ErrorObject>> {
        Box::pin(async move {
            match &self.guarded {
                Some(guarded) => guarded.answer(self, asked).await,
                None => self.route(asked).await,
            }
        })
    }

    fn notification(&self, method: String, params: Option<Value>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            match (method.as_str(), self.line.era()) {
                // The connection has said that it is initialised when it was.
                ("notifications/initialized", Era::Modern) => {
                    let held = self.held.hold(&self.line, &self.desk, self.capabilities()).await;
                    if let Err(error) = held {
                        tracing::warn!(%error, "the server cannot be listened to");
                    }
                }
                // The modern era has no notifications of clients: what its servers want to know of
                // roots, they ask for in the request that needs them.
                ("notifications/initialized", Era::Legacy) | (_, Era::Modern) => {}
                // A request without an id is none that is judged, and a server might heed it all the same.
                (method, Era::Legacy) if method.starts_with("notifications/") => {
                    self.line.notify(method, params).await;
                }
                (_, Era::Legacy) => tracing::debug!("a request without an id is not passed on"),
            }
        })
    }

    fn header_schema<'a>(&'a self, tool: &'a str) -> BoxFuture<'a, Option<Value>> {
        Box::pin(self.schemas.of(tool, &self.line))
    }

    fn has_states(&self) -> bool {
        self.line.era() == Era::Modern
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.line.close()
    }

    fn closed(&self) -> BoxFuture<'_, ()> {
        self.line.closed()
    }
}

impl Passthrough {
    fn capabilities(&self) -> Option<&Value> {
        self.line.greeting().get("capabilities")
    }

    /// Sends a request that may be sent, in the words of the server's era.
    async fn route(&self, asked: Asked) -> Result<Value, ErrorObject> {
        match (asked.era, self.line.era()) {
            (Era::Legacy, Era::Legacy) => self.pass(&asked, asked.params.clone()).await,
            (Era::Modern, Era::Modern) => self.pass_shared(asked).await,
            (Era::Legacy, Era::Modern) => self.to_modern(asked).await,
            (Era::Modern, Era::Legacy) => self.to_legacy(asked).await,
        }
    }

    /// Sends a request as it is.
    async fn pass(&self, asked: &Asked, params: Option<Value>) -> Result<Value, ErrorObject> {
        let ticket = Desk::ticket(&asked.link, &asked.id, params.as_ref());
        let place = self.desk.enter(ticket);
        let (method, cancel) = (asked.method.clone(), asked.cancel.clone());
        self.line.request(RawRequest { key: json!(place.key), method, params, cancel }).await
    }

    /// The same where others use the connection too, who may have chosen the same progress token.
    async fn pass_shared(&self, asked: Asked) -> Result<Value, ErrorObject> {
        let ticket = Desk::ticket(&asked.link, &asked.id, asked.params.as_ref());
        let place = self.desk.enter(ticket);
        let mut params = asked.params;
        if bridge::meta(params.as_ref(), "progressToken").is_some()
            && let Some(params) = &mut params
        {
            bridge::set_meta(params, "progressToken", json!(place.key));
        }
        let listens = asked.method == "subscriptions/listen";
        let (key, method, cancel) = (json!(place.key), asked.method, asked.cancel.clone());
        let outcome = self.line.request(RawRequest { key, method, params, cancel }).await;
        if listens && asked.cancel.is_cancelled() {
            return Ok(listen::over(&asked.id));
        }
        let mut result = outcome?;
        if bridge::meta(Some(&result), META_SUBSCRIPTION).is_some() {
            bridge::set_meta(&mut result, META_SUBSCRIPTION, asked.id);
        }
        Ok(result)
    }

    /// A client of the legacy era asks a server of the modern. What the server wants to know is asked
    /// of the client, and the request made again with its answers.
    async fn to_modern(&self, asked: Asked) -> Result<Value, ErrorObject> {
        let uri = asked.params.as_ref().and_then(|params| params.get("uri"));
        let uri = uri.and_then(Value::as_str);
        match (asked.method.as_str(), uri) {
            ("logging/setLevel", _) => {
                let level = asked.params.as_ref().and_then(|params| params.get("level"));
                *self.level.lock() = level.cloned();
                return Ok(json!({}));
            }
            ("resources/subscribe", Some(uri)) => {
                self.held.subscribe(uri);
                self.held.hold(&self.line, &self.desk, self.capabilities()).await?;
                return Ok(json!({}));
            }
            ("resources/unsubscribe", Some(uri)) => {
                self.held.unsubscribe(uri);
                self.held.hold(&self.line, &self.desk, self.capabilities()).await?;
                return Ok(json!({}));
            }
            _ => {}
        }
        let mut params = asked.params.clone().unwrap_or_else(|| json!({}));
        if let Some(level) = self.level.lock().clone() {
            bridge::set_meta(&mut params, META_LOG_LEVEL, level);
        }
        for _ in 0..ROUNDS {
            let result = self.pass(&asked, Some(params.clone())).await?;
            if result.get("resultType") != Some(&json!("input_required")) {
                return results::fit(Era::Legacy, Cached::No, Ok(result));
            }
            let responses = ask_all(&asked, result.get("inputRequests")).await?;
            params["inputResponses"] = Value::Object(responses);
            match result.get("requestState") {
                Some(state) => params["requestState"] = state.clone(),
                None => {
                    params.as_object_mut().map(|params| params.remove("requestState"));
                }
            }
        }
        Err(ErrorObject::internal_error("the server asked again and again", None))
    }

    /// A client of the modern era asks a server of the legacy.
    async fn to_legacy(&self, asked: Asked) -> Result<Value, ErrorObject> {
        match asked.method.as_str() {
            "subscriptions/listen" => {
                return listen::listen(&self.line, &self.desk, self.capabilities(), asked).await;
            }
            "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => {
                return Err(method_not_found(&asked.method));
            }
            _ => {}
        }
        self.set_level(&asked).await;
        let cached = Cached::of(&asked.method);
        let ticket = Desk::ticket(&asked.link, &asked.id, asked.params.as_ref());
        let place = self.desk.enter(ticket);
        let mut params = asked.params;
        bridge::without_declaration(&mut params);
        if bridge::meta(params.as_ref(), "progressToken").is_some()
            && let Some(params) = &mut params
        {
            bridge::set_meta(params, "progressToken", json!(place.key));
        }
        let (key, method, cancel) = (json!(place.key), asked.method, asked.cancel);
        let outcome = self.line.request(RawRequest { key, method, params, cancel }).await;
        results::fit(Era::Modern, cached, outcome)
    }

    /// Tells the server what the request says of logs, unless it was told last.
    async fn set_level(&self, asked: &Asked) {
        let Some(level) = bridge::meta(asked.params.as_ref(), META_LOG_LEVEL) else { return };
        let logs = self.capabilities().is_some_and(|all| all.get("logging").is_some());
        if !logs || self.level.lock().replace(level.clone()).as_ref() == Some(level) {
            return;
        }
        let request = RawRequest {
            key: Value::Null,
            method: "logging/setLevel".to_owned(),
            params: Some(json!({ "level": level })),
            cancel: asked.cancel.clone(),
        };
        if let Err(error) = self.line.request(request).await {
            tracing::debug!(%error, "the server would not have its level of logs set");
        }
    }
}

/// Asks a client of the legacy era what a server of the modern wants to know.
async fn ask_all(asked: &Asked, requests: Option<&Value>) -> Result<JsonObject, ErrorObject> {
    let Some(requests) = requests.and_then(Value::as_object) else {
        return Ok(JsonObject::new());
    };
    if requests.len() > QUESTIONS {
        return Err(ErrorObject::internal_error("the server asks too much at once", None));
    }
    let asking = requests.iter().map(|(key, request)| async move {
        let method = request.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
        let params = request.get("params").cloned();
        let answer = asked.link.ask(InputRequest { method, params }).await?;
        Ok::<_, ErrorObject>((key.clone(), answer))
    });
    let answers = tokio::select! {
        answers = try_join_all(asking) => answers?,
        () = asked.cancel.cancelled() => {
            return Err(ErrorObject::internal_error("the request was cancelled", None));
        }
    };
    Ok(answers.into_iter().collect())
}
