//! HTTP requests of the modern era. Each request is complete in itself.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, Weak},
    time::Duration,
};

use axum::{
    Json,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response, sse::Event},
};
use futures::{Stream, StreamExt as _};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    sync::{OnceCell, OwnedSemaphorePermit, Semaphore},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::task_tracker::TaskTrackerToken};
use toolgate_mcp::{ErrorObject, JsonRpcMessage, extensions, json_text, methods, response_message};

use super::{
    RequestContext,
    error::{HttpError, status_of},
    headers,
};
use crate::{
    era::{DeclaredMeta, Era, ServerInfo},
    modern::{ModernRequest, RequestEvent},
    service::{AuthenticatedClient, ClientInfo, McpService, claimed_name},
};

/// Answers a POST with one message.
pub(crate) async fn post(
    context: &RequestContext,
    headers: &HeaderMap,
    message: JsonRpcMessage,
) -> Result<Response, HttpError> {
    let request = match message {
        JsonRpcMessage::Request(request) => request,
        // A modern client cancels a request by closing its connection, so there is nothing to do.
        JsonRpcMessage::Notification(notification) => {
            let params = notification.params.as_ref();
            headers::check_names(headers, &notification.method, params)?;
            let declared = DeclaredMeta::of(params);
            // In pass-through each request has all that the server needs.
            if declared.check_complete().is_ok()
                && !context.endpoint.factory.depends_on_capabilities()
            {
                let client = context.endpoint.clients.get(context, declared)?;
                if let Ok(service) = client.service(context, declared).await {
                    let (method, params) =
                        (notification.method.clone(), notification.params.clone());
                    service.notification(method, params).await;
                }
            }
            return Ok(StatusCode::ACCEPTED.into_response());
        }
        JsonRpcMessage::Response(_) => {
            let message = "in this protocol version, responses are sent within the next request";
            return Err(HttpError::new(StatusCode::BAD_REQUEST, message));
        }
    };
    headers::check_names(headers, &request.method, request.params.as_ref())?;
    let declared = DeclaredMeta::of(request.params.as_ref());
    let checked = declared.check_version().and_then(|()| declared.check_complete());
    checked.map_err(HttpError::bad_request)?;
    if request.method == methods::INITIALIZE {
        let error = ErrorObject::method_not_found(&request.method);
        return Err(HttpError::with(StatusCode::NOT_FOUND, error));
    }
    let client = context.endpoint.clients.get(context, declared)?;
    let Ok(permit) = Arc::clone(&client.in_flight).try_acquire_owned() else {
        let message = "too many requests are already in progress";
        return Err(HttpError::new(StatusCode::TOO_MANY_REQUESTS, message));
    };
    let service = client
        .service(context, declared)
        .await
        .map_err(|error| HttpError::with(StatusCode::BAD_GATEWAY, error))?;
    if request.method == methods::TOOLS_CALL
        && let Some(Value::String(tool)) = request.fields().and_then(|params| params.get("name"))
        && let Some(schema) = service.header_schema(tool).await
    {
        headers::check_arguments(headers, &request, &schema)?;
    }
    let id = request.id.clone();
    if request.method == methods::DISCOVER {
        let info = service.server_info(Era::Modern).await;
        return Ok(json_response(&id, info.map(ServerInfo::into_discover)));
    }
    // A subscription ends when the gateway stops: nobody waits for a result.
    let is_subscription = request.method == methods::LISTEN;
    let (parked, owner) = (&context.server.parked, &context.owner);
    let peer = Some(context.peer());
    let mut running = match parked.resume_or_start(owner, service, request, peer) {
        Ok(running) => running,
        Err(error) => return Ok(json_response(&id, Err(error))),
    };
    // A parked request needs its service, which ends with the client's entry.
    running.attach(client);
    let guards = (permit, (!is_subscription).then(|| context.server.responding.token()));
    // When the client disconnects, this future is dropped, and with it the request.
    let event = tokio::select! {
        event = running.next_event() => event,
        () = context.server.stop.cancelled() => {
            let ended = running.end().await;
            let stopped = |error| HttpError::with(StatusCode::SERVICE_UNAVAILABLE, error);
            return ended.map(|result| json_response(&id, Ok(result))).map_err(stopped);
        }
    };
    match event {
        RequestEvent::Finished(outcome) => Ok(json_response(&id, outcome)),
        RequestEvent::InputRequired => {
            let waiting = parked.park(owner, running);
            context.store_parked(&waiting).await;
            Ok(json_response(&id, waiting))
        }
        RequestEvent::Notification(first) => {
            let rest = ResponseStream { context: context.clone(), id, running, _guards: guards };
            let first = futures::stream::once(std::future::ready(message_event(&first)));
            Ok(context.event_stream(first.chain(rest.events())))
        }
    }
}

fn json_response(id: &Value, outcome: Result<Value, ErrorObject>) -> Response {
    let status = status_of(&outcome);
    (status, Json(response_message(id, outcome))).into_response()
}

fn message_event(message: &Value) -> Event {
    Event::default().data(json_text(message))
}

/// A request that sent a notification before its response, so that the HTTP response is a stream.
struct ResponseStream {
    context: RequestContext,
    id: Value,
    running: ModernRequest,
    _guards: (OwnedSemaphorePermit, Option<TaskTrackerToken>),
}

impl ResponseStream {
    fn events(self) -> impl Stream<Item = Event> + Send + use<> {
        futures::stream::unfold(Some(self), |stream| async move {
            let mut stream = stream?;
            let event = tokio::select! {
                event = stream.running.next_event() => event,
                () = stream.context.server.stop.cancelled() => {
                    RequestEvent::Finished(stream.running.end().await)
                }
            };
            let outcome = match event {
                RequestEvent::Notification(message) => {
                    return Some((message_event(&message), Some(stream)));
                }
                RequestEvent::Finished(outcome) => outcome,
                RequestEvent::InputRequired => {
                    let RequestContext { server, owner, .. } = &stream.context;
                    let waiting = server.parked.park(owner, stream.running);
                    stream.context.store_parked(&waiting).await;
                    waiting
                }
            };
            Some((message_event(&response_message(&stream.id, outcome)), None))
        })
    }
}

/// The clients of one endpoint, so that a service is not created for every request.
#[derive(Debug, Default)]
pub(crate) struct ModernClients {
    /// By the caller, and by the client's capabilities or claimed name.
    table: Mutex<HashMap<(AuthenticatedClient, String), Arc<ModernClient>>>,
}

#[derive(Debug)]
struct ModernClient {
    service: OnceCell<Arc<dyn McpService>>,
    /// Shared by all clients of a caller.
    in_flight: Arc<Semaphore>,
    last_used: Mutex<Instant>,
    dropped: CancellationToken,
}

const MAX_CLIENTS: usize = 1024;
/// The limit where each client has a connection of its own, and perhaps a process.
const MAX_CONNECTED_CLIENTS: usize = 16;
/// Clients of one caller with a service of their own. Further ones share a service.
const MAX_CLIENTS_PER_CALLER: usize = 32;

impl ModernClients {
    fn get(
        &self,
        context: &RequestContext,
        declared: DeclaredMeta<'_>,
    ) -> Result<Arc<ModernClient>, HttpError> {
        let (limit, name) = if context.endpoint.factory.depends_on_capabilities() {
            (MAX_CONNECTED_CLIENTS, declared.capabilities().map(|all| json!(all).to_string()))
        } else {
            (MAX_CLIENTS, Some(aggregate_name(declared)))
        };
        let caller = &context.owner.caller;
        // A client of an earlier generation is closed when it is idle.
        let mut name = name.unwrap_or_default();
        let generation = context.endpoint.factory.generation();
        if generation > 0 {
            name = format!("{name} {generation}");
        }
        let mut key = (caller.clone(), name);
        let now = Instant::now();
        let mut table = self.table.lock();
        let own_clients = || table.keys().filter(|(other, _)| other == caller).count();
        if !table.contains_key(&key) && own_clients() >= MAX_CLIENTS_PER_CALLER {
            key.1.clear();
        }
        if let Some(client) = table.get(&key) {
            *client.last_used.lock() = now;
            return Ok(Arc::clone(client));
        }
        if table.len() >= limit {
            let unused = table.iter().filter(|(_, client)| Arc::strong_count(client) == 1);
            let oldest = unused.min_by_key(|(_, client)| *client.last_used.lock());
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else {
                let message = "too many clients are connected; try again later";
                return Err(HttpError::new(StatusCode::SERVICE_UNAVAILABLE, message));
            };
            table.remove(&oldest).into_iter().for_each(ModernClient::close);
        }
        let same_caller = table.iter().find(|((other, _), _)| other == caller);
        let in_flight = same_caller.map_or_else(
            || Arc::new(Semaphore::new(context.server.limits.in_flight)),
            |(_, client)| Arc::clone(&client.in_flight),
        );
        let client = Arc::new(ModernClient {
            service: OnceCell::new(),
            in_flight,
            last_used: Mutex::new(now),
            dropped: CancellationToken::new(),
        });
        table.insert(key, Arc::clone(&client));
        Ok(client)
    }

    /// Closes the clients that are idle for too long.
    pub(crate) fn remove_idle(&self, idle: Duration) {
        let now = Instant::now();
        let is_idle = |client: &Arc<ModernClient>| {
            Arc::strong_count(client) == 1
                && now.saturating_duration_since(*client.last_used.lock()) >= idle
        };
        let mut table = self.table.lock();
        table.extract_if(|_, client| is_idle(client)).for_each(|(_, client)| client.close());
    }

    /// Removes a client whose service has closed.
    fn remove(&self, closed: &Weak<ModernClient>) {
        self.table.lock().retain(|_, client| Arc::as_ptr(client) != closed.as_ptr());
    }

    pub(crate) async fn end(&self) {
        let all: Vec<_> = self.table.lock().drain().map(|(_, client)| client).collect();
        let services = all.iter().filter_map(|client| client.service.get());
        futures::future::join_all(services.map(|service| service.close())).await;
    }
}

/// What tells the clients of a caller apart: their names, and the extensions that they declare.
fn aggregate_name(declared: DeclaredMeta<'_>) -> String {
    let name = declared.client_info().map(claimed_name).unwrap_or_default();
    let extensions = declared.capabilities().map(extensions::declared).unwrap_or_default();
    if extensions.is_empty() {
        return name;
    }
    let mut hasher = DefaultHasher::new();
    Value::Object(extensions).to_string().hash(&mut hasher);
    format!("{name} {:x}", hasher.finish())
}

impl ModernClient {
    fn close(self: Arc<Self>) {
        tokio::spawn(async move {
            if let Some(service) = self.service.get() {
                service.close().await;
            }
        });
    }

    /// The service, which the first request creates.
    async fn service(
        self: &Arc<Self>,
        context: &RequestContext,
        declared: DeclaredMeta<'_>,
    ) -> Result<Arc<dyn McpService>, ErrorObject> {
        let opened = self.service.get_or_try_init(|| async {
            let client = ClientInfo::modern(context.owner.caller.clone(), declared);
            let service = context.endpoint.factory.open(client).await?;
            let (watched, dropped) = (Arc::clone(&service), self.dropped.clone());
            let (endpoint, client) = (Arc::downgrade(&context.endpoint), Arc::downgrade(self));
            tokio::spawn(async move {
                tokio::select! {
                    () = watched.closed() => {}
                    () = dropped.cancelled() => return,
                }
                if let Some(endpoint) = endpoint.upgrade() {
                    endpoint.clients.remove(&client);
                }
            });
            Ok(service)
        });
        opened.await.cloned()
    }
}

impl Drop for ModernClient {
    fn drop(&mut self) {
        self.dropped.cancel();
    }
}
