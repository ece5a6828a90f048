//! Requests of the legacy era: a handshake, then a session.

use std::sync::Arc;

use axum::{
    Json,
    http::{HeaderMap, HeaderValue, StatusCode},
    response::{IntoResponse, Response},
};
use toolgate_mcp::{ErrorObject, codes};

use super::{
    Here,
    events::{Standing, Streams, read_id},
    headers::{LAST_EVENT, SESSION},
    refusal::Refusal,
    sessions::Session,
};
use crate::{
    conversation::Unwelcome,
    handshake::{self, Agreed, Terms},
    link::Outbox as _,
    message::{self, Message, Request},
};

/// The first version whose clients know an event that says nothing.
const PRIMED: &str = "2025-11-25";

/// Answers what was posted: a message, or a batch.
pub(crate) async fn post(
    here: &Here,
    headers: &HeaderMap,
    messages: Vec<Message>,
) -> Result<Response, Refusal> {
    if let [Message::Request(request)] = messages.as_slice()
        && request.method == "initialize"
    {
        return initialize(here, request).await.map_err(|refusal| refusal.about(&request.id));
    }
    let only = match messages.as_slice() {
        [Message::Request(request)] => Some(request.id.clone()),
        _ => None,
    };
    let about = |refusal| only.iter().fold(refusal, Refusal::about);
    let session = session(here, headers).map_err(about)?;
    let requests = messages.iter().filter(|message| matches!(message, Message::Request(_))).count();
    let stream = (requests > 0).then(|| session.streams.open(requests));
    if let Some(stream) = &stream
        && session.version >= PRIMED
    {
        stream.prime();
    }
    for message in messages {
        match message {
            Message::Response(response) => session.conversation.response(response),
            Message::Notification(notification) => {
                session.conversation.notification(notification).await;
            }
            Message::Request(request) => {
                let Some(stream) = &stream else { continue };
                let id = request.id.clone();
                if let Err(unwelcome) = session.conversation.request(request, stream.clone()) {
                    let error = ErrorObject::from(unwelcome);
                    if requests == 1 {
                        stream.end();
                        let status = match unwelcome {
                            Unwelcome::Twice => StatusCode::BAD_REQUEST,
                            Unwelcome::TooMany => StatusCode::TOO_MANY_REQUESTS,
                        };
                        return Err(Refusal::with(status, error).about(&id));
                    }
                    stream.finish(Some(message::answer(&id, Err(error)))).await;
                }
            }
        }
    }
    let Some(stream) = stream else { return Ok(StatusCode::ACCEPTED.into_response()) };
    let events = stream.read(None).ok_or_else(crowded)?;
    Ok(here.events(events))
}

/// Opens the stream for what belongs to no request, or goes on with one that was lost.
pub(crate) fn get(here: &Here, headers: &HeaderMap) -> Result<Response, Refusal> {
    let session = session(here, headers)?;
    let last = headers.get(LAST_EVENT).map(|value| value.to_str().ok().and_then(read_id));
    let stream = match last {
        None => session.streams.standing().read(None),
        Some(last) => {
            let found = last.and_then(|(stream, after)| {
                session.streams.get(stream).map(|stream| (stream, after))
            });
            let Some((stream, after)) = found else {
                // An error would have the client try again with the same id, and again.
                return Ok(here.events(futures::stream::empty()));
            };
            stream.read(Some(after))
        }
    };
    Ok(here.events(stream.ok_or_else(crowded)?))
}

/// Ends a session.
pub(crate) fn delete(here: &Here, headers: &HeaderMap) -> Result<Response, Refusal> {
    let id = session_id(headers)?;
    here.server.sessions.remove(id, &here.caller, &here.namespace.place)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn initialize(here: &Here, request: &Request) -> Result<Response, Refusal> {
    let room = here.server.sessions.make_room(&here.caller)?;
    let streams = Streams::new();
    let terms = Terms {
        caller: here.caller.clone(),
        outbox: Arc::new(Standing(Arc::downgrade(streams.standing()))),
        patience: here.server.limits.patience,
        in_flight: here.server.limits.in_flight,
    };
    let agreed = handshake::initialize(&*here.namespace.source, request, terms).await;
    let Agreed { version, conversation, greeting } = agreed.map_err(|error| match error.code {
        codes::INVALID_PARAMS => Refusal::bad_request(error),
        _ => Refusal::with(StatusCode::BAD_GATEWAY, error),
    })?;
    let place = Arc::clone(&here.namespace.place);
    let session = Session::new(here.caller.clone(), place, version, conversation, streams);
    let id = here.server.sessions.insert(session, room)?;
    let answer = message::answer(&request.id, Ok(greeting));
    let mut response = Json(answer).into_response();
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(SESSION, id);
    }
    Ok(response)
}

fn session(here: &Here, headers: &HeaderMap) -> Result<Arc<Session>, Refusal> {
    here.server.sessions.get(session_id(headers)?, &here.caller, &here.namespace.place)
}

fn session_id(headers: &HeaderMap) -> Result<&str, Refusal> {
    let id = headers.get(SESSION).and_then(|value| value.to_str().ok());
    id.ok_or_else(|| {
        let message = "`Mcp-Session-Id` is missing: this is an MCP endpoint, and a session begins \
                       with a POST of initialize";
        Refusal::new(StatusCode::BAD_REQUEST, message)
    })
}

fn crowded() -> Refusal {
    let message = "too many connections read this stream already";
    Refusal::new(StatusCode::TOO_MANY_REQUESTS, message)
}
