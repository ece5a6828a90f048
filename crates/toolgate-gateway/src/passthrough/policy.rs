//! Applies the policy to requests. Allowed requests are passed on unchanged.

use std::sync::{Arc, atomic::Ordering};

use serde_json::{Value, json};
use toolgate_broker::{Admitted, BrokerError, CallContext};
use toolgate_catalog::{Fingerprint, Tool};
use toolgate_mcp::{ErrorObject, codes, methods};
use toolgate_policy::{CallPath, definitions::EntryKind};
use toolgate_upstream::{CallError, CallOptions, RequestError};

use super::{Admission, PassthroughService, connection::admit_unjudged};
use crate::{
    era::{Era, adapt_outcome},
    service::IncomingRequest,
};

/// How the policy treats a method.
enum MethodTreatment {
    /// It neither reveals nor changes data.
    Unrestricted,
    /// Hidden tools are removed from its result.
    ToolList,
    /// Entries are removed from the list in `field` of its result. An entry is identified by `key`, and
    /// read with `method`, whose parameter has the same name.
    List { field: &'static str, key: Option<&'static str>, method: &'static str, kind: EntryKind },
    /// Its resource subscriptions are judged one by one.
    Listen,
    /// It is judged as a whole.
    Judged,
}

/// How often a request is judged if the policy changes each time before it is sent.
const MAX_JUDGEMENTS: usize = 5;
/// Further calls that wait for input are judged again when they continue.
const MAX_WAITING: usize = 256;

impl PassthroughService {
    /// Answers a request if the policy allows it.
    pub(super) async fn answer(&self, mut request: IncomingRequest) -> Result<Value, ErrorObject> {
        if request.method == methods::TOOLS_CALL {
            self.calls.fetch_add(1, Ordering::Relaxed);
        }
        match MethodTreatment::of(&request.method) {
            MethodTreatment::Judged => self.judge(request).await,
            MethodTreatment::Listen => {
                let mut admission = self.unjudged(&request)?;
                admission.subscriptions = self.admit_resources(&mut request).await;
                if self.connection.era() == Era::Modern {
                    // The server gets them in one request.
                    for (_, admitted) in std::mem::take(&mut admission.subscriptions) {
                        admitted.end_unsent(Ok(&Value::Null)).await;
                    }
                }
                self.forward(request, &mut admission).await
            }
            MethodTreatment::ToolList if self.guard.judges() => {
                let mut admission = self.unjudged(&request)?;
                let mut result = self.forward(request, &mut admission).await?;
                if let Some(Value::Array(tools)) = result.get_mut("tools") {
                    self.tools.filter(tools).await;
                    let caller = &self.session.caller().facts;
                    if self.guard.broker().policy().tells_callers_apart() {
                        tools.retain(|tool| self.guard.is_open(tool, caller));
                    }
                }
                Ok(result)
            }
            MethodTreatment::List { field, key, method, kind } if self.guard.judges() => {
                let mut admission = self.unjudged(&request)?;
                let mut result = self.forward(request, &mut admission).await?;
                if let Some(Value::Array(entries)) = result.get_mut(field) {
                    entries.retain(|entry| {
                        let params = key.map(|key| json!({ key: entry.get(key) }));
                        let caller = &self.session.caller().facts;
                        self.guard.shows(method, params.as_ref(), caller)
                    });
                    self.entries.filter(kind, entries).await;
                }
                Ok(result)
            }
            _ => {
                let mut admission = self.unjudged(&request)?;
                self.forward(request, &mut admission).await
            }
        }
    }

    async fn judge(&self, request: IncomingRequest) -> Result<Value, ErrorObject> {
        let (era, method) = (request.era, request.method.clone());
        if self.entries.holds(&method, request.params.as_ref()).await {
            let message = "there is no such prompt or resource";
            return Err(ErrorObject::invalid_params(message, None));
        }
        let mut judgements = 1..=MAX_JUDGEMENTS;
        let (arguments, admitted) = loop {
            let (tool, arguments) = match self.target(&request).await {
                Ok(target) => target,
                // Without a policy, the server refuses what is not a valid request.
                Err(_) if !self.guard.judges() => {
                    let mut admission = self.unjudged(&request)?;
                    return self.forward(request, &mut admission).await;
                }
                Err(error) => return Err(error),
            };
            let state = continuation(&method, &arguments, request.params.as_ref());
            let admitted = match self.take_waiting(state) {
                Some(admitted) => admitted,
                None => match self.admit(&tool, &arguments, &request).await {
                    Ok(admitted) => admitted,
                    Err(error) => return adapt_outcome(era, &method, refusal(&method, &error)),
                },
            };
            // While it waited for a person, another policy may have come.
            if admitted.is_of(&self.guard.broker()) {
                break (arguments, admitted);
            }
            let (server, tool) = (self.guard.server().clone(), tool.id.tool.to_string());
            let outdated = CallError::DefinitionChanged { server, tool }.into();
            admitted.end_unsent(Err(&outdated)).await;
            if judgements.next().is_none() {
                return adapt_outcome(era, &method, refusal(&method, &outdated));
            }
        };
        let mut admission = Admission { request: admitted, subscriptions: Vec::new() };
        let outcome = self.forward(request, &mut admission).await;
        let admitted = admission.request;
        match &outcome {
            _ if !admitted.is_open() => {}
            Ok(result) if result.get("resultType") == Some(&json!("input_required")) => {
                self.add_waiting(continuation(&method, &arguments, Some(result)), admitted);
            }
            Ok(result) => admitted.end_unsent(Ok(result)).await,
            Err(error) => {
                let error = BrokerError::Raw(RequestError::Refused(error.clone()));
                admitted.end_unsent(Err(&error)).await;
            }
        }
        outcome
    }

    /// The tool that a request calls, or the method as a tool, and the arguments.
    async fn target(&self, request: &IncomingRequest) -> Result<(Tool, Value), ErrorObject> {
        let params = request.params.as_ref();
        if request.method != methods::TOOLS_CALL {
            let broker = self.guard.broker();
            let tool = broker.request_tool(self.guard.server(), &request.method);
            let tool = tool.ok_or_else(|| ErrorObject::method_not_found(&request.method))?;
            let mut arguments = params.cloned().unwrap_or_else(|| json!({}));
            if let Some(arguments) = arguments.as_object_mut() {
                for key in ["_meta", "inputResponses", "requestState"] {
                    arguments.shift_remove(key);
                }
            }
            return Ok((tool, arguments));
        }
        let field = |name: &str| params.and_then(|params| params.get(name)).cloned();
        let Some(Value::String(name)) = field("name") else {
            return Err(ErrorObject::invalid_params("a call needs a `name`", None));
        };
        let tool = if self.guard.judges() {
            let definition = self.tools.find(&name).await;
            definition.map(|definition| self.guard.tool(&definition))
        } else {
            self.guard.unlisted(&name)
        };
        // For a caller who can make no call of it there is no such tool.
        let (broker, caller) = (self.guard.broker(), &self.session.caller().facts);
        let tool = tool.filter(|tool| broker.is_open(tool, caller, CallPath::Direct));
        let arguments = field("arguments").filter(|arguments| !arguments.is_null());
        let arguments = arguments.unwrap_or_else(|| json!({}));
        let Some(tool) = tool else {
            let context = CallContext::direct(&self.session);
            self.guard.broker().refuse_unknown(&name, &arguments, &context, None).await;
            let name: String = name.chars().take(128).collect();
            return Err(ErrorObject::invalid_params(format!("there is no tool `{name}`"), None));
        };
        Ok((tool, arguments))
    }

    async fn admit(
        &self,
        tool: &Tool,
        arguments: &Value,
        request: &IncomingRequest,
    ) -> Result<Admitted, BrokerError> {
        let meta = request.params.as_ref().and_then(|params| params.get("_meta")?.as_object());
        let options = CallOptions {
            // It names the trace that the request belongs to.
            meta: meta.cloned(),
            cancel: request.cancel.clone(),
            input_handler: Some(Arc::new(request.channel.clone())),
            ..CallOptions::default()
        };
        let context = CallContext::direct(&self.session);
        let broker = self.guard.broker();
        let admitted = broker.admit(tool, arguments.clone(), &context, &options).await;
        // The client knows the server's own names.
        admitted.map_err(|error| error.of_tool(&tool.id.tool))
    }

    fn unjudged(&self, request: &IncomingRequest) -> Result<Admission, ErrorObject> {
        let request = admit_unjudged(&self.guard, &request.method)?;
        Ok(Admission { request, subscriptions: Vec::new() })
    }

    /// Admits the resources in `subscriptions/listen` one by one, and removes denied ones. The
    /// acknowledgement lists the others.
    async fn admit_resources(&self, request: &mut IncomingRequest) -> Vec<(Value, Admitted)> {
        let mut allowed = Vec::new();
        let Some(mut params) = request.params.take() else { return allowed };
        let uris = params.pointer_mut("/notifications/resourceSubscriptions");
        let broker = self.guard.broker();
        if let Some(Value::Array(uris)) = uris
            && let Some(tool) =
                broker.request_tool(self.guard.server(), methods::RESOURCES_SUBSCRIBE)
        {
            for uri in std::mem::take(uris).into_iter().filter(Value::is_string) {
                let params = json!({ "uri": uri });
                if self.entries.holds(methods::RESOURCES_SUBSCRIBE, Some(&params)).await {
                    continue;
                }
                if let Ok(admitted) = self.admit(&tool, &params, request).await {
                    allowed.push((uri, admitted));
                }
            }
            *uris = allowed.iter().map(|(uri, _)| uri.clone()).collect();
        }
        request.params = Some(params);
        allowed
    }

    fn take_waiting(&self, state: Option<Fingerprint>) -> Option<Admitted> {
        let state = state?;
        let mut waiting = self.waiting_for_input.lock();
        let index = waiting.iter().position(|(other, _)| *other == state)?;
        waiting.remove(index).map(|(_, admitted)| admitted)
    }

    fn add_waiting(&self, state: Option<Fingerprint>, admitted: Admitted) {
        let Some(state) = state else { return };
        let mut waiting = self.waiting_for_input.lock();
        if waiting.len() >= MAX_WAITING {
            waiting.pop_front();
        }
        waiting.push_back((state, admitted));
    }
}

impl Drop for PassthroughService {
    fn drop(&mut self) {
        self.guard.broker().end_session(&self.session);
    }
}

impl MethodTreatment {
    fn of(method: &str) -> Self {
        let list = |field, key, method, kind| Self::List { field, key, method, kind };
        match method {
            methods::TOOLS_LIST => Self::ToolList,
            methods::RESOURCES_LIST => {
                list("resources", Some("uri"), methods::RESOURCES_READ, EntryKind::Resource)
            }
            // Which resource it will be is not known.
            methods::RESOURCE_TEMPLATES_LIST => {
                list("resourceTemplates", None, methods::RESOURCES_READ, EntryKind::Template)
            }
            methods::PROMPTS_LIST => {
                list("prompts", Some("name"), methods::PROMPTS_GET, EntryKind::Prompt)
            }
            methods::LISTEN => Self::Listen,
            methods::PING
            | methods::INITIALIZE
            | methods::DISCOVER
            | methods::SET_LOG_LEVEL
            | methods::RESOURCES_UNSUBSCRIBE
            | "tasks/list"
            | "tasks/cancel"
            | "tasks/update" => Self::Unrestricted,
            _ => Self::Judged,
        }
    }
}

/// Identifies a call that continues: the call itself, and the state that the server gave it.
fn continuation(method: &str, arguments: &Value, state: Option<&Value>) -> Option<Fingerprint> {
    let state = state?.get("requestState")?;
    Some(Fingerprint::of(&json!([method, arguments, state])))
}

/// The response to a request that may not be sent. For a call it is a result that the model sees.
fn refusal(method: &str, error: &BrokerError) -> Result<Value, ErrorObject> {
    match error {
        BrokerError::Call(call) if matches!(**call, CallError::Cancelled) => {
            Err(ErrorObject::internal_error("the call was cancelled", None))
        }
        error if method == methods::TOOLS_CALL && !matches!(error, BrokerError::Call(_)) => {
            let content = json!([{ "type": "text", "text": error.to_string() }]);
            let mut result = json!({ "content": content, "isError": true });
            if let Some(data) = error.data() {
                result["_meta"] = data;
            }
            Ok(result)
        }
        _ => Err(ErrorObject::new(codes::NOT_ALLOWED, error.to_string(), error.data())),
    }
}
