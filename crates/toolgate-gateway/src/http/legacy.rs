//! HTTP requests of the legacy era: a handshake, then a session.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    body::Body,
    http::{HeaderMap, HeaderValue, StatusCode},
    response::{IntoResponse, Response},
};
use futures::{StreamExt as _, stream};
use toolgate_mcp::{
    ErrorObject, JsonRpcMessage, JsonRpcRequest, codes, methods, response_message, versions,
};

use super::{
    RequestContext,
    error::HttpError,
    headers::{LAST_EVENT_ID, SESSION_ID},
    sessions::HttpSession,
    streams::{GeneralSink, SessionStreams, parse_event_id},
};
use crate::{
    channel::MessageSink as _,
    session::{LegacySession, NO_BATCHES, RequestRejection, SessionOptions},
};

/// The first version whose clients accept an event without a message.
const PRIMING_VERSION: &str = versions::LATEST_LEGACY;

/// How long the head of an HTTP response waits for the first event.
const SOON: Duration = Duration::from_millis(50);

/// Answers a POST with one message.
pub(crate) async fn post_one(
    context: &RequestContext,
    headers: &HeaderMap,
    message: JsonRpcMessage,
) -> Result<Response, HttpError> {
    match message {
        JsonRpcMessage::Request(request) if request.method == methods::INITIALIZE => {
            initialize(context, &request).await
        }
        message => {
            let session = session(context, headers)?;
            post(context, &session, vec![message]).await
        }
    }
}

/// Answers a POST with a batch, which one protocol version has.
pub(crate) async fn post_batch(
    context: &RequestContext,
    headers: &HeaderMap,
    messages: Vec<JsonRpcMessage>,
) -> Result<Response, HttpError> {
    let session = session(context, headers)?;
    if session.session.version != versions::BATCHES {
        return Err(no_batches());
    }
    post(context, &session, messages).await
}

pub(crate) fn no_batches() -> HttpError {
    HttpError::new(StatusCode::BAD_REQUEST, NO_BATCHES)
}

async fn post(
    context: &RequestContext,
    session: &HttpSession,
    messages: Vec<JsonRpcMessage>,
) -> Result<Response, HttpError> {
    let is_request = |message: &&JsonRpcMessage| matches!(message, JsonRpcMessage::Request(_));
    let requests = messages.iter().filter(is_request).count();
    let stream = (requests > 0).then(|| session.streams.open(requests));
    let priming = stream
        .as_ref()
        .filter(|_| session.session.version >= PRIMING_VERSION)
        .map(|stream| stream.prime());
    for message in messages {
        match message {
            JsonRpcMessage::Response(response) => session.session.response(response),
            JsonRpcMessage::Notification(notification) => {
                session.session.notification(notification).await;
            }
            JsonRpcMessage::Request(request) => {
                let Some(stream) = &stream else { continue };
                let id = request.id.clone();
                let peer = Some(context.peer());
                if let Err(rejection) = session.session.request(request, stream.clone(), peer) {
                    let error = ErrorObject::from(rejection);
                    if requests == 1 {
                        stream.end();
                        let status = match rejection {
                            RequestRejection::DuplicateId => StatusCode::BAD_REQUEST,
                            RequestRejection::TooMany => StatusCode::TOO_MANY_REQUESTS,
                        };
                        return Err(HttpError::with(status, error).for_request(Some(&id)));
                    }
                    stream.finish(Some(response_message(&id, Err(error)))).await;
                }
            }
        }
    }
    let Some(stream) = stream else { return Ok(StatusCode::ACCEPTED.into_response()) };
    // If the response comes soon, the head of the HTTP response, the event and the end are one write.
    let _ = tokio::time::timeout(SOON, stream.has_news()).await;
    let events = stream.read(None).ok_or_else(too_many_readers)?;
    let response = context.event_stream(events);
    let Some(priming) = priming else { return Ok(response) };
    Ok(response.map(|body| {
        let priming = stream::once(std::future::ready(Ok(priming.into())));
        Body::from_stream(priming.chain(body.into_data_stream()))
    }))
}

/// Answers a GET: opens the general stream, or resumes a stream that was interrupted.
pub(crate) fn get(context: &RequestContext, headers: &HeaderMap) -> Result<Response, HttpError> {
    let session = session(context, headers)?;
    let Some(last) = headers.get(LAST_EVENT_ID) else {
        let events = session.streams.general.read(None).ok_or_else(too_many_readers)?;
        return Ok(context.event_stream(events));
    };
    let last = last.to_str().ok().and_then(parse_event_id);
    let Some((stream, after)) =
        last.and_then(|(stream, after)| Some((session.streams.get(stream)?, after)))
    else {
        // After an error the client would try again with the same id, without end.
        return Ok(context.event_stream(stream::empty()));
    };
    Ok(context.event_stream(stream.read(Some(after)).ok_or_else(too_many_readers)?))
}

/// Answers a DELETE: ends the session.
pub(crate) async fn delete(
    context: &RequestContext,
    headers: &HeaderMap,
) -> Result<Response, HttpError> {
    let id = session_id(headers)?;
    context.server.sessions.remove(id, &context.owner)?;
    if let Some(fleet) = &context.server.fleet {
        fleet.session_ended(id, &context.owner).await;
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn initialize(
    context: &RequestContext,
    request: &JsonRpcRequest,
) -> Result<Response, HttpError> {
    let (sessions, limits) = (&context.server.sessions, &context.server.limits);
    let reservation = sessions.reserve(&context.owner.caller)?;
    let streams = SessionStreams::new();
    let options = SessionOptions {
        caller: context.owner.caller.clone(),
        sink: Arc::new(GeneralSink(Arc::downgrade(&streams.general))),
        input_timeout: limits.input_timeout,
        max_in_flight: limits.in_flight,
    };
    let initialized = LegacySession::initialize(&*context.endpoint.factory, request, options).await;
    let (session, result) = initialized.map_err(|error| match error.code {
        codes::INVALID_PARAMS => HttpError::bad_request(error),
        _ => HttpError::with(StatusCode::BAD_GATEWAY, error),
    })?;
    let session = HttpSession::new(context.owner.clone(), session, streams);
    let session = session.opened_with(request.params.clone());
    let id = sessions.insert(session, reservation)?;
    if let Some(fleet) = &context.server.fleet {
        let (params, keep) = (request.params.as_ref(), limits.session_idle);
        if let Err(error) = fleet.session_began(&id, &context.owner, params, keep).await {
            // Other nodes would not know it.
            let _ = sessions.remove(&id, &context.owner);
            return Err(error);
        }
    }
    let mut response = Json(response_message(&request.id, Ok(result))).into_response();
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(SESSION_ID, id);
    }
    Ok(response)
}

fn session(context: &RequestContext, headers: &HeaderMap) -> Result<Arc<HttpSession>, HttpError> {
    context.server.sessions.get(session_id(headers)?, &context.owner)
}

fn session_id(headers: &HeaderMap) -> Result<&str, HttpError> {
    let id = headers.get(SESSION_ID).and_then(|value| value.to_str().ok());
    id.ok_or_else(|| {
        let message = "`Mcp-Session-Id` is missing: this is an MCP endpoint, and a session starts \
                       with a POST of initialize";
        HttpError::new(StatusCode::BAD_REQUEST, message)
    })
}

fn too_many_readers() -> HttpError {
    let message = "too many connections read this stream already";
    HttpError::new(StatusCode::TOO_MANY_REQUESTS, message)
}
