//! Who may ask what of the one server. What is let through stays as it is.

use std::{collections::VecDeque, sync::Arc};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use toolgate_broker::{Admitted, BrokerError, CallContext, Caller, SessionContext};
use toolgate_catalog::{Fingerprint, Tool};
use toolgate_host::PassthroughGuard;
use toolgate_mcp::{ErrorObject, codes};
use toolgate_upstream::{CallError, CallOptions, RequestError};

use super::{Passthrough, roster::Roster};
use crate::{
    face::Asked,
    results::{self, Cached},
};

/// Decides on the requests of a connection's clients, and records them.
#[derive(Debug)]
pub(crate) struct Guarded {
    guard: Arc<PassthroughGuard>,
    session: Arc<SessionContext>,
    roster: Roster,
    /// Calls to which the server has answered with a question: they are let through once, and go on with
    /// the client's answers.
    asking: Mutex<VecDeque<(Fingerprint, Admitted)>>,
}

/// What a request is to a guard.
enum Concern {
    /// It brings nothing in or out that is not asked for elsewhere.
    None,
    /// It lists tools.
    Tools,
    /// It lists something else: where in the result, under which key, and what reads it.
    List {
        field: &'static str,
        key: &'static str,
        parameter: Option<&'static str>,
        method: &'static str,
    },
    /// It listens to resources.
    Listen,
    /// It calls a tool.
    Call,
    /// It reads something, or does what nobody here knows.
    Request,
}

/// Calls that may wait for answers at once. Of older ones nothing more is recorded.
const ASKING: usize = 256;
/// Of the codes that are left to servers: the request was understood, and may not be made.

impl Guarded {
    pub(crate) fn new(
        guard: Arc<PassthroughGuard>,
        caller: Caller,
        changes: watch::Receiver<u64>,
    ) -> Self {
        let session = Arc::new(SessionContext::new(caller));
        Self { guard, session, roster: Roster::new(changes), asking: Mutex::default() }
    }

    /// Answers a request, if it may be made.
    pub(crate) async fn answer(
        &self,
        face: &Passthrough,
        mut asked: Asked,
    ) -> Result<Value, ErrorObject> {
        match Concern::of(&asked.method) {
            Concern::Call | Concern::Request => self.judged(face, asked).await,
            Concern::None => face.route(asked).await,
            _ if !self.guard.judges() => face.route(asked).await,
            Concern::Tools => {
                let mut result = face.route(asked).await?;
                if let Some(Value::Array(tools)) = result.get_mut("tools") {
                    self.roster.filter(tools, &self.guard, &face.line).await;
                }
                Ok(result)
            }
            Concern::List { field, key, parameter, method } => {
                let mut result = face.route(asked).await?;
                if let Some(Value::Array(entries)) = result.get_mut(field) {
                    entries.retain(|entry| {
                        let params = parameter.map(|name| json!({ name: entry.get(key) }));
                        self.guard.shows(method, params.as_ref())
                    });
                }
                Ok(result)
            }
            Concern::Listen => {
                self.leave_out_refused(&mut asked).await;
                face.route(asked).await
            }
        }
    }

    async fn judged(&self, face: &Passthrough, asked: Asked) -> Result<Value, ErrorObject> {
        let (era, is_call) = (asked.era, asked.method == "tools/call");
        let (tool, arguments) = match self.subject(face, &asked).await {
            Ok(subject) => subject,
            // What is no request at all is the server's to refuse.
            Err(_) if !self.guard.judges() => return face.route(asked).await,
            Err(error) => return Err(error),
        };
        let continued = continuation(&asked.method, &arguments, asked.params.as_ref());
        let admitted = match self.take(continued) {
            Some(admitted) => admitted,
            None => match self.admit(&tool, &arguments, &asked).await {
                Ok(admitted) => admitted,
                Err(error) if is_call => {
                    return results::fit(era, Cached::No, call_refusal(error));
                }
                Err(error) => return Err(refusal(error)),
            },
        };
        let method = asked.method.clone();
        let outcome = face.route(asked).await;
        match &outcome {
            Ok(result) if result.get("resultType") == Some(&json!("input_required")) => {
                admitted.learn(result);
                self.keep(continuation(&method, &arguments, Some(result)), admitted);
            }
            Ok(result) => admitted.end_unsent(Ok(result)),
            Err(error) => {
                let error = BrokerError::Raw(RequestError::Refused(error.clone()));
                admitted.end_unsent(Err(&error));
            }
        }
        outcome
    }

    /// What is called or asked for, and with what.
    async fn subject(
        &self,
        face: &Passthrough,
        asked: &Asked,
    ) -> Result<(Tool, Value), ErrorObject> {
        let params = asked.params.as_ref();
        let field = |name: &str| params.and_then(|params| params.get(name)).cloned();
        if asked.method != "tools/call" {
            let method = &asked.method;
            let unknown = || crate::message::method_not_found(method);
            let mut arguments = params.cloned().unwrap_or_else(|| json!({}));
            if let Some(arguments) = arguments.as_object_mut() {
                for beside in ["_meta", "inputResponses", "requestState"] {
                    arguments.shift_remove(beside);
                }
            }
            let broker = self.guard.broker();
            let tool = broker.request_tool(self.guard.server(), method).ok_or_else(unknown)?;
            return Ok((tool, arguments));
        }
        let Some(Value::String(name)) = field("name") else {
            return Err(ErrorObject::invalid_params("a call has a `name`", None));
        };
        let tool = if self.guard.judges() {
            let found = self.roster.find(&name, &self.guard, &face.line).await;
            found.map(|definition| self.guard.tool(&definition))
        } else {
            self.guard.unlisted(&name)
        };
        let arguments = field("arguments").filter(|arguments| !arguments.is_null());
        let arguments = arguments.unwrap_or_else(|| json!({}));
        let Some(tool) = tool else {
            let context = CallContext::direct(&self.session);
            self.guard.broker().refuse_unknown(&name, &arguments, &context, None);
            let name: String = name.chars().take(128).collect();
            return Err(ErrorObject::invalid_params(format!("there is no tool `{name}`"), None));
        };
        Ok((tool, arguments))
    }

    async fn admit(
        &self,
        tool: &Tool,
        arguments: &Value,
        asked: &Asked,
    ) -> Result<Admitted, BrokerError> {
        let meta = asked.params.as_ref().and_then(|params| params.get("_meta")?.as_object());
        let options = CallOptions {
            // Which trace it belongs to.
            meta: meta.cloned(),
            cancel: asked.cancel.clone(),
            input_handler: Some(Arc::new(asked.link.clone())),
            ..CallOptions::default()
        };
        let context = CallContext::direct(&self.session);
        let broker = self.guard.broker();
        let admitted = broker.admit(tool, arguments.clone(), &context, &options).await;
        // Its client knows the server's own names.
        admitted.map_err(|error| error.of_tool(&tool.id.tool))
    }

    /// Takes the resources out of what is listened to that may not be subscribed to. The server's answer
    /// says what is left.
    async fn leave_out_refused(&self, asked: &mut Asked) {
        let Some(mut params) = asked.params.take() else { return };
        let uris = params.pointer_mut("/notifications/resourceSubscriptions");
        if let Some(Value::Array(uris)) = uris
            && let Some(tool) =
                self.guard.broker().request_tool(self.guard.server(), "resources/subscribe")
        {
            let mut left = Vec::new();
            for uri in std::mem::take(uris) {
                if let Ok(admitted) = self.admit(&tool, &json!({ "uri": uri }), asked).await {
                    admitted.end_unsent(Ok(&Value::Null));
                    left.push(uri);
                }
            }
            *uris = left;
        }
        asked.params = Some(params);
    }

    fn take(&self, continued: Option<Fingerprint>) -> Option<Admitted> {
        let continued = continued?;
        let mut asking = self.asking.lock();
        let place = asking.iter().position(|(known, _)| *known == continued)?;
        asking.remove(place).map(|(_, admitted)| admitted)
    }

    fn keep(&self, continued: Option<Fingerprint>, admitted: Admitted) {
        let Some(continued) = continued else { return };
        let mut asking = self.asking.lock();
        if asking.len() >= ASKING {
            asking.pop_front();
        }
        asking.push_back((continued, admitted));
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.guard.broker().end_session(&self.session);
    }
}

impl Concern {
    fn of(method: &str) -> Self {
        let list = |field, key, parameter, method| Self::List { field, key, parameter, method };
        match method {
            "tools/call" => Self::Call,
            "tools/list" => Self::Tools,
            "resources/list" => list("resources", "uri", Some("uri"), "resources/read"),
            // Which resource it will be is not known.
            "resources/templates/list" => list("resourceTemplates", "", None, "resources/read"),
            "prompts/list" => list("prompts", "name", Some("name"), "prompts/get"),
            "subscriptions/listen" => Self::Listen,
            "ping"
            | "initialize"
            | "server/discover"
            | "logging/setLevel"
            | "resources/unsubscribe"
            | "tasks/list"
            | "tasks/cancel"
            | "tasks/update" => Self::None,
            _ => Self::Request,
        }
    }
}

/// What tells a call that goes on from all others: what it is, and the state that the server gave it.
fn continuation(method: &str, arguments: &Value, state: Option<&Value>) -> Option<Fingerprint> {
    let state = state?.get("requestState")?;
    Some(Fingerprint::of(&json!([method, arguments, state])))
}

/// A call that may not be made, in the form that models are shown.
fn call_refusal(error: BrokerError) -> Result<Value, ErrorObject> {
    match error {
        BrokerError::Call(_) => Err(refusal(error)),
        other => {
            let content = json!([{ "type": "text", "text": other.to_string() }]);
            Ok(json!({ "content": content, "isError": true }))
        }
    }
}

fn refusal(error: BrokerError) -> ErrorObject {
    match error {
        BrokerError::Call(error) if matches!(*error, CallError::Cancelled) => {
            ErrorObject::internal_error("the call was cancelled", None)
        }
        other => ErrorObject::new(codes::NOT_ALLOWED, other.to_string(), None),
    }
}
