//! Requests of the modern era, and those that are parked until their clients answer input requests.

use std::{
    any::Any,
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};
use tokio_util::sync::{CancellationToken, DropGuard};
use toolgate_mcp::{ErrorObject, JsonObject, JsonRpcRequest, methods};
use toolgate_upstream::InputRequest;

use crate::{
    channel::{ChannelEvent, ClientChannel, InputResponder},
    era::{DeclaredMeta, Era},
    http::RequestPeer,
    service::{IncomingRequest, McpService, Owner},
    session::stopping,
};

/// A request in progress. Dropping it cancels it.
#[derive(Debug)]
pub(crate) struct ModernRequest {
    method: String,
    events: mpsc::Receiver<ChannelEvent>,
    outcome: oneshot::Receiver<Result<Value, ErrorObject>>,
    finished: Option<Result<Value, ErrorObject>>,
    /// Input requests without a response, by the key that the client sees.
    open_inputs: BTreeMap<String, (InputRequest, InputResponder)>,
    input_count: u64,
    used_keys: HashSet<String>,
    /// What must live as long as the request does.
    attachment: Option<Arc<dyn Any + Send + Sync>>,
    cancel: DropGuard,
}

/// The next event of a request.
#[derive(Debug)]
pub(crate) enum RequestEvent {
    Notification(Value),
    /// It waits for responses to its input requests.
    InputRequired,
    Finished(Result<Value, ErrorObject>),
}

/// Notifications that wait for a slow client. Further ones are lost; the result never is.
const MAX_QUEUED_EVENTS: usize = 256;
/// The longest key of an input request that is kept.
const MAX_KEY_BYTES: usize = 256;
/// How long a cancelled request may take to end.
const CANCEL_TIMEOUT: Duration = Duration::from_millis(300);

impl ModernRequest {
    pub(crate) fn start(
        service: Arc<dyn McpService>,
        request: JsonRpcRequest,
        peer: Option<RequestPeer>,
    ) -> Self {
        let capabilities = DeclaredMeta::of(request.params.as_ref()).capabilities().cloned();
        let (sender, events) = mpsc::channel(MAX_QUEUED_EVENTS);
        let (finish, outcome) = oneshot::channel();
        let cancel = CancellationToken::new();
        let method = request.method.clone();
        let incoming = IncomingRequest {
            id: request.id,
            method: request.method,
            params: request.params,
            era: Era::Modern,
            channel: ClientChannel::modern(capabilities.unwrap_or_default(), sender)
                .with_peer(peer),
            cancel: cancel.clone(),
        };
        tokio::spawn(async move {
            let _ = finish.send(service.request(incoming).await);
        });
        Self {
            method,
            events,
            outcome,
            finished: None,
            open_inputs: BTreeMap::new(),
            input_count: 0,
            used_keys: HashSet::new(),
            attachment: None,
            cancel: cancel.drop_guard(),
        }
    }

    /// Attaches what must live as long as the request, unless something is attached already.
    pub(crate) fn attach(&mut self, attachment: Arc<dyn Any + Send + Sync>) {
        self.attachment.get_or_insert(attachment);
    }

    /// Waits for the next event. Notifications come before the outcome that follows them.
    pub(crate) async fn next_event(&mut self) -> RequestEvent {
        loop {
            if let Some(outcome) = self.finished.take() {
                while let Ok(event) = self.events.try_recv() {
                    if let ChannelEvent::Notification(message) = event {
                        self.finished = Some(outcome);
                        return RequestEvent::Notification(message);
                    }
                }
                return RequestEvent::Finished(outcome);
            }
            // The service may have withdrawn an input request.
            self.open_inputs.retain(|_, (_, responder)| !responder.is_closed());
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => match event {
                    ChannelEvent::Notification(message) => {
                        return RequestEvent::Notification(message);
                    }
                    ChannelEvent::InputRequest(key, request, responder) => {
                        let key = self.input_key(key);
                        self.open_inputs.insert(key, (request, responder));
                    }
                },
                outcome = &mut self.outcome => {
                    let failed = || Err(ErrorObject::internal_error("the request failed", None));
                    self.finished = Some(outcome.unwrap_or_else(|_| failed()));
                }
                // Yields first, so that input requests that are made together are sent together.
                () = tokio::task::yield_now(), if !self.open_inputs.is_empty() => {
                    return RequestEvent::InputRequired;
                }
            }
        }
    }

    /// The key of an input request: that of its server, unless another one of this request has it.
    fn input_key(&mut self, given: Option<String>) -> String {
        let mut key = given.filter(|key| key.len() <= MAX_KEY_BYTES);
        loop {
            if let Some(key) = key.filter(|key| self.used_keys.insert(key.clone())) {
                return key;
            }
            self.input_count += 1;
            key = Some(self.input_count.to_string());
        }
    }

    /// Cancels the request. Returns its result if it ends with one, as a subscription does.
    pub(crate) async fn end(&mut self) -> Result<Value, ErrorObject> {
        self.cancel.token().cancel();
        let ending = async {
            loop {
                match self.next_event().await {
                    RequestEvent::Finished(outcome) => return outcome.ok(),
                    RequestEvent::InputRequired => return None,
                    RequestEvent::Notification(_) => {}
                }
            }
        };
        let result = tokio::time::timeout(CANCEL_TIMEOUT, ending).await;
        result.ok().flatten().ok_or_else(stopping)
    }

    /// Delivers the client's responses. Input requests without a response stay open.
    pub(crate) fn respond(&mut self, responses: &JsonObject) {
        for (key, response) in responses {
            if let Some((_, responder)) = self.open_inputs.remove(key) {
                let _ = responder.send(Ok(response.clone()));
            }
        }
    }

    /// The `input_required` result.
    pub(crate) fn input_required(&self, state: &str) -> Value {
        let requests: Map<String, Value> = self
            .open_inputs
            .iter()
            .map(|(key, (input, _))| {
                let mut request = json!({ "method": input.method });
                if let Some(params) = &input.params {
                    request["params"] = params.clone();
                }
                (key.clone(), request)
            })
            .collect();
        json!({ "resultType": "input_required", "inputRequests": requests, "requestState": state })
    }
}

/// Requests that wait until their clients send responses to input requests.
#[derive(Debug)]
pub(crate) struct ParkedRequests {
    /// By their `requestState`.
    table: Mutex<HashMap<String, ParkedRequest>>,
    limit: usize,
    limit_per_caller: usize,
    timeout: Duration,
}

#[derive(Debug)]
struct ParkedRequest {
    owner: Owner,
    until: Instant,
    request: ModernRequest,
}

impl ParkedRequests {
    pub(crate) fn new(limit: usize, limit_per_caller: usize, timeout: Duration) -> Self {
        Self { table: Mutex::default(), limit, limit_per_caller, timeout }
    }

    /// Stores a request. Returns the `input_required` result.
    pub(crate) fn park(&self, owner: &Owner, request: ModernRequest) -> Result<Value, ErrorObject> {
        let state = random_id()?;
        let result = request.input_required(&state);
        self.remove_expired();
        let mut table = self.table.lock();
        let own = table.values().filter(|parked| parked.owner.caller == owner.caller).count();
        if table.len() >= self.limit || own >= self.limit_per_caller {
            let message = "too many requests wait for input from their clients; try again later";
            return Err(ErrorObject::internal_error(message, None));
        }
        let until = Instant::now() + self.timeout;
        table.insert(state, ParkedRequest { owner: owner.clone(), until, request });
        Ok(result)
    }

    /// Continues the parked request that this one names, or starts a new one. A request with an unknown
    /// state is refused: what it continues may have had an effect already.
    pub(crate) fn resume_or_start(
        &self,
        owner: &Owner,
        service: Arc<dyn McpService>,
        request: JsonRpcRequest,
        peer: Option<RequestPeer>,
    ) -> Result<ModernRequest, ErrorObject> {
        if let Some(parked) = self.resume(owner, &request) {
            return Ok(parked);
        }
        let params = request.fields();
        let has = |key: &str| params.and_then(|all| all.get(key)).is_some_and(|it| !it.is_null());
        // A task takes its responses without a state.
        let is_update = request.method == methods::TASKS_UPDATE;
        if !service.has_request_states()
            && !is_update
            && (has("requestState") || has("inputResponses"))
        {
            let message = "this `requestState` is unknown, has expired or belongs to another client; \
                           nothing is called now, and what the call did before it asked is not known; look \
                           before you send it again without `requestState` and `inputResponses`";
            return Err(ErrorObject::invalid_params(message, None));
        }
        Ok(ModernRequest::start(service, request, peer))
    }

    /// Takes out the request that `retry` continues, and delivers the responses.
    fn resume(&self, owner: &Owner, retry: &JsonRpcRequest) -> Option<ModernRequest> {
        let params = retry.fields()?;
        let state = params.get("requestState")?.as_str()?;
        let mut table = self.table.lock();
        table.get(state).filter(|parked| {
            parked.owner == *owner
                && parked.request.method == retry.method
                && parked.until > Instant::now()
        })?;
        let mut request = table.remove(state)?.request;
        drop(table);
        if let Some(Value::Object(responses)) = params.get("inputResponses") {
            request.respond(responses);
        }
        Some(request)
    }

    /// Whether a request waits under this `requestState`.
    pub(crate) fn has(&self, state: &str) -> bool {
        self.table.lock().contains_key(state)
    }

    /// Cancels the requests whose clients did not respond in time.
    pub(crate) fn remove_expired(&self) {
        let now = Instant::now();
        self.table.lock().retain(|_, parked| parked.until > now);
    }
}

/// 256 random bits, as text that fits into a header.
pub(crate) fn random_id() -> Result<String, ErrorObject> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        tracing::error!(%error, "the system provides no random numbers");
        ErrorObject::internal_error("the system provides no random numbers", None)
    })?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::AuthenticatedClient;

    /// A request that sends one input request and waits for ever.
    fn waiting() -> ModernRequest {
        let (sender, events) = mpsc::channel(MAX_QUEUED_EVENTS);
        let input = InputRequest { method: "roots/list".to_owned(), params: None };
        sender.try_send(ChannelEvent::InputRequest(None, input, oneshot::channel().0)).unwrap();
        ModernRequest {
            method: "tools/call".to_owned(),
            events,
            outcome: oneshot::channel().1,
            finished: None,
            open_inputs: BTreeMap::new(),
            input_count: 0,
            used_keys: HashSet::new(),
            attachment: None,
            cancel: CancellationToken::new().drop_guard(),
        }
    }

    fn owner(name: &str, path: &str) -> Owner {
        Owner { caller: AuthenticatedClient::named(name), path: path.into() }
    }

    #[test]
    fn only_the_owner_can_resume_a_request() {
        let parked = ParkedRequests::new(8, 8, Duration::from_mins(1));
        let mine = owner("me", "/mcp");
        let result = parked.park(&mine, waiting()).unwrap();
        let state = &result["requestState"];
        let resumes = |owner: &Owner, method: &str, state: &Value| {
            let (method, params) = (method.to_owned(), Some(json!({ "requestState": state })));
            parked.resume(owner, &JsonRpcRequest { id: json!(2), method, params }).is_some()
        };
        assert!(!resumes(&owner("other", "/mcp"), "tools/call", state));
        assert!(!resumes(&owner("me", "/mcp/work"), "tools/call", state));
        assert!(!resumes(&mine, "prompts/get", state));
        assert!(!resumes(&mine, "tools/call", &json!("x")));
        assert!(resumes(&mine, "tools/call", state));
        assert!(!resumes(&mine, "tools/call", state), "only once");
    }

    #[test]
    fn one_caller_cannot_use_the_whole_limit() {
        let parked = ParkedRequests::new(4, 2, Duration::from_mins(1));
        let park = |name: &str| parked.park(&owner(name, "/mcp"), waiting()).is_ok();
        assert_eq!([park("greedy"), park("greedy"), park("greedy")], [true, true, false]);
        assert_eq!([park("one"), park("two"), park("three")], [true, true, false]);
    }

    #[tokio::test]
    async fn a_withdrawn_input_request_is_not_sent() {
        let mut request = waiting();
        let (finish, outcome) = oneshot::channel();
        request.outcome = outcome;
        finish.send(Ok(json!(1))).unwrap();
        assert!(matches!(request.next_event().await, RequestEvent::Finished(Ok(_))));
    }
}
