//! Requests of the modern era: each says all there is to know.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use axum::{
    Json,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::task_tracker::TaskTrackerToken};
use toolgate_mcp::ErrorObject;

use super::{
    Here, headers,
    refusal::{Refusal, status},
    sse::Event,
};
use crate::{
    caller::Caller,
    era::{Declared, Era},
    face::{Face, own_name},
    greeting::Greeting,
    handshake,
    message::{self, Message, Request},
    running::{Running, Step},
};

/// The faces of one place: one a caller and client, so that nothing is made anew for a request.
#[derive(Debug, Default)]
pub(crate) struct Faces {
    /// By the caller, and what tells its clients apart: what they can, or what they call themselves.
    table: Mutex<HashMap<(Caller, String), Arc<Place>>>,
}

#[derive(Debug)]
pub(crate) struct Place {
    face: tokio::sync::OnceCell<Arc<dyn Face>>,
    under_way: Arc<Semaphore>,
    used: Mutex<Instant>,
    /// Cancelled when it is dropped.
    dropped: CancellationToken,
}

/// Clients that are remembered at once.
const FACES: usize = 1024;
/// Clients of one caller that are told apart by what they call themselves. Further ones share a face.
const CLIENTS: usize = 32;
/// The same where each has a connection of its own, and maybe a process.
const COSTLY_FACES: usize = 16;

/// Answers what was posted.
pub(crate) async fn post(
    here: &Here,
    headers: &HeaderMap,
    message: Message,
) -> Result<Response, Refusal> {
    match message {
        Message::Request(request) => {
            let id = request.id.clone();
            answer(here, headers, request).await.map_err(|refusal| refusal.about(&id))
        }
        // What notifications there are in this era say nothing that a lost connection does not.
        Message::Notification(notification) => {
            let params = notification.params.as_ref();
            headers::check_names(headers, &notification.method, params)?;
            Ok(StatusCode::ACCEPTED.into_response())
        }
        Message::Response(_) => {
            let message = "nothing was asked: in this version answers come with the request";
            Err(Refusal::new(StatusCode::BAD_REQUEST, message))
        }
    }
}

async fn answer(here: &Here, headers: &HeaderMap, request: Request) -> Result<Response, Refusal> {
    headers::check_names(headers, &request.method, request.params.as_ref())?;
    let declared = Declared::of(request.params.as_ref());
    declared.known().and_then(|()| declared.complete()).map_err(Refusal::bad_request)?;
    if request.method == "initialize" {
        let error = message::method_not_found(&request.method);
        return Err(Refusal::with(StatusCode::NOT_FOUND, error));
    }
    let place = here.namespace.faces.place(here, &request)?;
    let Ok(permit) = Arc::clone(&place.under_way).try_acquire_owned() else {
        let message = "too many requests are under way already";
        return Err(Refusal::new(StatusCode::TOO_MANY_REQUESTS, message));
    };
    let face = place
        .face(here, declared)
        .await
        .map_err(|error| Refusal::with(StatusCode::BAD_GATEWAY, error))?;
    if request.method == "tools/call"
        && let Some(Value::String(tool)) = request.fields().and_then(|params| params.get("name"))
        && let Some(schema) = face.header_schema(tool).await
    {
        headers::check_arguments(headers, &request, &schema)?;
    }
    let id = request.id.clone();
    if request.method == "server/discover" {
        let outcome = face.greeting(Era::Modern).await.map(Greeting::into_discover);
        return Ok(whole(&id, outcome));
    }
    let (suspended, caller) = (&here.server.suspended, &here.caller);
    let begun = suspended.resume_or_start(caller, &here.namespace.place, face, request);
    let mut running = match begun {
        Ok(running) => running,
        Err(error) => return Ok(whole(&id, Err(error))),
    };
    // Also while it waits for answers: what it asks on behalf of would end with the face.
    running.keep(place);
    let kept = (permit, here.server.telling.token());
    // Whoever leaves drops this, and with it the request.
    let step = tokio::select! {
        step = running.step() => step,
        () = here.server.stop.cancelled() => {
            let ended = running.end().await;
            let gone = |error| Refusal::with(StatusCode::SERVICE_UNAVAILABLE, error);
            return ended.map(|result| whole(&id, Ok(result))).map_err(gone);
        }
    };
    match step {
        Step::Done(outcome) => Ok(whole(&id, outcome)),
        Step::Waiting => Ok(whole(&id, suspended.park(caller, &here.namespace.place, running))),
        Step::Notification(first) => {
            let telling = Telling { here: here.clone(), id, running, _kept: kept };
            Ok(here.events(telling.events(&first)))
        }
    }
}

fn whole(id: &Value, outcome: Result<Value, ErrorObject>) -> Response {
    let status = status(&outcome);
    (status, Json(message::answer(id, outcome))).into_response()
}

/// A request that has said something before its end, so that its answer is a stream.
struct Telling {
    here: Here,
    id: Value,
    running: Running,
    _kept: (OwnedSemaphorePermit, TaskTrackerToken),
}

impl Telling {
    fn events(self, first: &Value) -> impl futures::Stream<Item = Event> + Send + use<> {
        let first = Event::message(first);
        let rest = futures::stream::unfold(Some(self), |telling| async move {
            let mut telling = telling?;
            let step = tokio::select! {
                step = telling.running.step() => step,
                () = telling.here.server.stop.cancelled() => {
                    Step::Done(telling.running.end().await)
                }
            };
            let outcome = match step {
                Step::Notification(message) => {
                    return Some((Event::message(&message), Some(telling)));
                }
                Step::Done(outcome) => outcome,
                Step::Waiting => {
                    let Here { server, caller, namespace, .. } = &telling.here;
                    server.suspended.park(caller, &namespace.place, telling.running)
                }
            };
            Some((Event::message(&message::answer(&telling.id, outcome)), None))
        });
        futures::StreamExt::chain(futures::stream::once(std::future::ready(first)), rest)
    }
}

impl Faces {
    fn place(&self, here: &Here, request: &Request) -> Result<Arc<Place>, Refusal> {
        let declared = Declared::of(request.params.as_ref());
        let (limit, client) = if here.namespace.source.minds_capabilities() {
            let capabilities = declared.capabilities();
            (COSTLY_FACES, capabilities.map(|all| json!(all).to_string()).unwrap_or_default())
        } else {
            (FACES, declared.client_info().map(own_name).unwrap_or_default())
        };
        let mut key = (here.caller.clone(), client);
        let now = Instant::now();
        let mut table = self.table.lock();
        let clients = || table.keys().filter(|(caller, _)| *caller == here.caller).count();
        if !table.contains_key(&key) && clients() >= CLIENTS {
            key.1.clear();
        }
        if let Some(place) = table.get(&key) {
            *place.used.lock() = now;
            return Ok(Arc::clone(place));
        }
        if table.len() >= limit {
            let unused = table.iter().filter(|(_, place)| Arc::strong_count(place) == 1);
            let oldest = unused.min_by_key(|(_, place)| *place.used.lock());
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else {
                let message = "too many clients are served already; try again later";
                return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message));
            };
            table.remove(&oldest).into_iter().for_each(Place::close);
        }
        // However many clients a caller has, they are one caller.
        let same = table.iter().find(|((caller, _), _)| *caller == here.caller);
        let under_way = same.map_or_else(
            || Arc::new(Semaphore::new(here.server.limits.in_flight)),
            |(_, place)| Arc::clone(&place.under_way),
        );
        let place = Arc::new(Place {
            face: tokio::sync::OnceCell::new(),
            under_way,
            used: Mutex::new(now),
            dropped: CancellationToken::new(),
        });
        table.insert(key, Arc::clone(&place));
        Ok(place)
    }

    /// Closes those that nobody has used for long.
    pub(crate) fn sweep(&self, idle: Duration) {
        let now = Instant::now();
        let unused = |place: &Arc<Place>| {
            Arc::strong_count(place) == 1
                && now.saturating_duration_since(*place.used.lock()) >= idle
        };
        let mut table = self.table.lock();
        table.extract_if(|_, place| unused(place)).for_each(|(_, place)| Place::close(place));
    }

    /// Forgets a face that can answer no more.
    fn forget(&self, gone: &Weak<Place>) {
        self.table.lock().retain(|_, place| Arc::as_ptr(place) != gone.as_ptr());
    }

    pub(crate) async fn end(&self) {
        let all: Vec<_> = self.table.lock().drain().map(|(_, place)| place).collect();
        let faces = all.iter().filter_map(|place| place.face.get());
        futures::future::join_all(faces.map(|face| face.close())).await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.dropped.cancel();
    }
}

impl Place {
    fn close(self: Arc<Self>) {
        tokio::spawn(async move {
            if let Some(face) = self.face.get() {
                face.close().await;
            }
        });
    }

    async fn face(
        self: &Arc<Self>,
        here: &Here,
        declared: Declared<'_>,
    ) -> Result<Arc<dyn Face>, ErrorObject> {
        let opened = self.face.get_or_try_init(|| async {
            let source = &*here.namespace.source;
            let face = handshake::meet(source, here.caller.clone(), declared).await?;
            let (watched, dropped) = (Arc::clone(&face), self.dropped.clone());
            let (namespace, place) = (Arc::downgrade(&here.namespace), Arc::downgrade(self));
            tokio::spawn(async move {
                tokio::select! {
                    () = watched.closed() => {}
                    () = dropped.cancelled() => return,
                }
                if let Some(namespace) = namespace.upgrade() {
                    namespace.faces.forget(&place);
                }
            });
            Ok(face)
        });
        opened.await.cloned()
    }
}
