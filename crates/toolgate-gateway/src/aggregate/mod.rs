//! The face of a whole host: its tools, and whatever else its servers have, as one server.

mod asked;
mod instructions;
mod listen;
mod news;
mod watch_list;

use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use toolgate_broker::{Caller, SessionContext};
use toolgate_host::{CallFailure, Host, Session};
use toolgate_mcp::{ErrorObject, JsonObject};
use toolgate_upstream::{CallOptions, ClientId, Progress};

use self::{asked::AskedClient, watch_list::Given};
use crate::{
    era::Era,
    face::{Asked, Client, Face, Source},
    greeting::Greeting,
    link::Link,
    message::method_not_found,
    results::{self, Cached},
};

/// Gives every client a session of one host.
#[derive(Debug, Clone)]
pub struct AggregateSource(Host);

/// One session, and what its client was given of it.
#[derive(Debug)]
struct Aggregate {
    session: Arc<Session>,
    /// Whom its servers ask, in whichever of its calls.
    client: ClientId,
    given: Arc<Given>,
    outlet: Option<Link>,
    /// Watches the list for a client that has said that it is ready. Ends with this.
    watching: OnceLock<DropGuard>,
}

/// Progress that waits to be sent to a slow client. More is lost; a result never is.
const QUEUED_PROGRESS: usize = 256;

impl AggregateSource {
    /// For this host.
    pub fn new(host: Host) -> Self {
        Self(host)
    }
}

impl Source for AggregateSource {
    fn open(&self, client: Client) -> BoxFuture<'_, Result<Arc<dyn Face>, ErrorObject>> {
        let session = self.0.session_of(SessionContext::new(caller_of(&client)));
        if client.era == Era::Modern {
            session.fix_list();
        }
        let face = Aggregate {
            session: Arc::new(session),
            client: ClientId::unique(),
            given: Arc::default(),
            outlet: client.outlet,
            watching: OnceLock::new(),
        };
        Box::pin(std::future::ready(Ok(Arc::new(face) as Arc<dyn Face>)))
    }

    fn takes_trace_headers(&self) -> bool {
        true
    }
}

impl Face for Aggregate {
    fn greeting(&self, _era: Era) -> BoxFuture<'_, Result<Greeting, ErrorObject>> {
        let fields = json!({
            "capabilities": {
                "tools": { "listChanged": true },
                "resources": { "subscribe": true, "listChanged": true },
                "prompts": { "listChanged": true },
                "completions": {},
            },
            "serverInfo": { "name": "toolgate", "version": env!("CARGO_PKG_VERSION") },
            "instructions": instructions::instructions(&self.session),
        });
        let Value::Object(fields) = fields else { unreachable!("it is an object") };
        Box::pin(std::future::ready(Ok(Greeting { era: Era::Legacy, fields })))
    }

    fn request(&self, asked: Asked) -> BoxFuture<'_, Result<Value, ErrorObject>> {
        Box::pin(async move {
            let (era, cached) = (asked.era, Cached::of(&asked.method));
            results::fit(era, cached, self.answer(asked).await)
        })
    }

    fn notification(&self, method: String, _params: Option<Value>) -> BoxFuture<'_, ()> {
        if method == "notifications/initialized"
            && let Some(outlet) = self.outlet.clone()
        {
            // Once, however often it is said.
            self.watching.get_or_init(|| {
                let (session, given) = (Arc::downgrade(&self.session), Arc::clone(&self.given));
                let over = CancellationToken::new();
                let watching = watch_list::watch(session, given, outlet.clone());
                let forwarding = news::forward(self.session.notifications(), outlet);
                tokio::spawn(over.clone().run_until_cancelled_owned(async {
                    tokio::join!(watching, forwarding);
                }));
                over.drop_guard()
            });
        }
        Box::pin(std::future::ready(()))
    }

    fn header_schema<'a>(&'a self, tool: &'a str) -> BoxFuture<'a, Option<Value>> {
        let catalog = self.session.host().catalog().read();
        let schema = catalog
            .resolve(tool)
            .filter(|tool| tool.definition.json().get().contains("x-mcp-header"))
            .map(|tool| tool.definition.input_schema());
        Box::pin(std::future::ready(schema))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn closed(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

impl Aggregate {
    async fn answer(&self, mut asked: Asked) -> Result<Value, ErrorObject> {
        let mut params = match asked.params.take() {
            Some(Value::Object(params)) => params,
            _ => Map::new(),
        };
        match asked.method.as_str() {
            "tools/list" => {
                let tools = self.session.list_tools().await;
                self.given.note(&tools);
                Ok(json!({ "tools": tools }))
            }
            "tools/call" => {
                let Some(Value::String(name)) = params.remove("name") else {
                    return Err(ErrorObject::invalid_params("a call has a `name`", None));
                };
                let arguments = match params.remove("arguments") {
                    None | Some(Value::Null) => Map::new(),
                    Some(Value::Object(arguments)) => arguments,
                    Some(_) => {
                        let message = "the `arguments` of a call are an object";
                        return Err(ErrorObject::invalid_params(message, None));
                    }
                };
                self.watched(asked, params.remove("_meta"), async |options| {
                    self.session.call(&name, arguments, options).await
                })
                .await
            }
            "subscriptions/listen" if asked.era == Era::Modern => {
                listen::listen(&self.session, &params, asked).await
            }
            method if is_of_servers(method, asked.era) => {
                let method = method.to_owned();
                let meta = params.remove("_meta");
                self.watched(asked, meta, async |options| {
                    self.session.request(&method, params, options).await
                })
                .await
            }
            method => Err(method_not_found(method)),
        }
    }

    /// Does something that a server takes part in: its progress and its questions reach the client.
    async fn watched(
        &self,
        asked: Asked,
        meta: Option<Value>,
        work: impl AsyncFnOnce(CallOptions) -> Result<Value, CallFailure>,
    ) -> Result<Value, ErrorObject> {
        let meta = match meta {
            Some(Value::Object(meta)) if !meta.is_empty() => Some(meta),
            _ => None,
        };
        let token = meta.as_ref().and_then(|meta| meta.get("progressToken")).cloned();
        let (sender, mut reports) = mpsc::channel(QUEUED_PROGRESS);
        let options = CallOptions {
            meta,
            progress: token.is_some().then_some(sender),
            cancel: asked.cancel.clone(),
            input_handler: Some(Arc::new(AskedClient::new(self.client, asked.link.clone()))),
        };
        let forwarding = async {
            while let Some(report) = reports.recv().await {
                asked.link.notify("notifications/progress", Some(progress(token.as_ref(), report)));
            }
        };
        // The sender is gone with the call, so that no report comes after the result.
        let (outcome, ()) = tokio::join!(work(options), forwarding);
        outcome.map_err(refusal)
    }
}

/// What a client is to the broker. Who had to show who they are is not at this machine.
fn caller_of(client: &Client) -> Caller {
    let caller = Caller::model(client.caller.as_str()).calling_itself(&client.own_name());
    if client.caller.is_local() { caller } else { caller.remote() }
}

/// Whether a method is about what servers have beside tools.
fn is_of_servers(method: &str, era: Era) -> bool {
    match method {
        "resources/list"
        | "resources/templates/list"
        | "resources/read"
        | "prompts/list"
        | "prompts/get"
        | "completion/complete" => true,
        "resources/subscribe" | "resources/unsubscribe" | "logging/setLevel" => era == Era::Legacy,
        _ => false,
    }
}

fn progress(token: Option<&Value>, report: Progress) -> Value {
    let mut params = JsonObject::new();
    params.insert("progressToken".to_owned(), json!(token));
    params.insert("progress".to_owned(), json!(report.progress));
    if let Some(total) = report.total {
        params.insert("total".to_owned(), json!(total));
    }
    if let Some(message) = report.message {
        params.insert("message".to_owned(), json!(message));
    }
    Value::Object(params)
}

fn refusal(failure: CallFailure) -> ErrorObject {
    match failure {
        CallFailure::UnknownTool(message) => ErrorObject::invalid_params(message, None),
        CallFailure::Refused { code, message, data } => ErrorObject::new(code, message, data),
        CallFailure::Cancelled => ErrorObject::internal_error("the call was cancelled", None),
    }
}

#[cfg(test)]
mod tests {
    use toolgate_broker::CallerLocation;

    use super::*;

    #[test]
    fn whoever_has_a_token_is_elsewhere() {
        let location = |caller: crate::caller::Caller| {
            let (era, info, capabilities) = (Era::Modern, json!({}), JsonObject::new());
            caller_of(&Client { caller, era, info, capabilities, outlet: None }).location
        };
        assert_eq!(location(crate::caller::Caller::local()), CallerLocation::Local);
        assert_eq!(
            location(crate::caller::Caller::named("token local 0a1b")),
            CallerLocation::Remote
        );
    }
}
