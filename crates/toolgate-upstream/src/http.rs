//! Streamable HTTP, with results kept raw.
//!
//! rmcp's transport does sessions, streams and resumption; this is the HTTP client it asks. Every
//! message is posted here, so that what comes back is bounded, ends the request that it answers,
//! and is decoded only where rmcp itself has to understand it.

use std::{collections::HashMap, sync::Arc};

use futures::{StreamExt, stream::BoxStream};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use reqwest::{Response, StatusCode};
use rmcp::{
    model::{ClientJsonRpcMessage, ClientRequest, RequestId, ServerJsonRpcMessage},
    transport::{
        common::http_header::{EVENT_STREAM_MIME_TYPE, JSON_MIME_TYPE},
        streamable_http_client::{
            AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError,
            StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
        },
    },
};
use serde_json::{Map, Value};
use sse_stream::Sse;

use crate::{
    raw::{self, Seal},
    reasons,
    spec::HttpEndpoint,
    tap::Heard,
};

mod authorized;
mod body;
mod marks;
mod parameters;

pub(crate) use authorized::AuthorizedClient;
pub(crate) use body::bounded_events;
use parameters::ParameterHeaders;
pub(crate) use parameters::header_value;

pub(crate) type Error = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;
pub(crate) type Events = BoxStream<'static, Result<Sse, SseError>>;

/// The HTTP client of one server.
#[derive(Debug, Clone)]
pub(crate) struct RawHttp {
    client: AuthorizedClient,
    max_message_bytes: usize,
    heard: Arc<Heard>,
    parameters: ParameterHeaders,
}

/// A request and how its answer is to be read.
#[derive(Debug, Clone)]
struct Asked {
    id: RequestId,
    /// Whether rmcp needs the answer in its own types.
    typed: bool,
    /// Whether it is a list of tools, in a version in which those can want headers.
    lists_tools: bool,
}

/// A response that has been dealt with, or one whose body is to be read.
enum Answer {
    Message(Box<StreamableHttpPostResponse>),
    Body(Response),
}

impl RawHttp {
    pub(crate) fn new(
        endpoint: &HttpEndpoint,
        max_message_bytes: usize,
        heard: Arc<Heard>,
    ) -> Result<Self, reqwest::Error> {
        let (client, parameters) = (AuthorizedClient::new(endpoint)?, ParameterHeaders::default());
        Ok(Self { client, max_message_bytes, heard, parameters })
    }

    async fn post(
        &self,
        uri: &str,
        message: &ClientJsonRpcMessage,
        session: Option<&str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Response, Error> {
        let mut all: HeaderMap = headers.into_iter().collect();
        if let ClientJsonRpcMessage::Request(request) = message
            && let Some((tool, arguments)) = called_tool(&request.request)
        {
            self.parameters.add(tool, arguments, &mut all);
        }
        let accepted = format!("{EVENT_STREAM_MIME_TYPE}, {JSON_MIME_TYPE}");
        if let Ok(accepted) = HeaderValue::from_str(&accepted) {
            all.insert(header::ACCEPT, accepted);
        }
        if let Some(session) = session.and_then(|session| HeaderValue::from_str(session).ok()) {
            all.insert(HeaderName::from_static(SESSION), session);
        }
        let mut request = self.client.plain().post(uri).headers(all).json(message);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        Ok(self.client.send(request).await?)
    }

    /// Posts a request and reads the start of its answer, or all of it.
    async fn ask(
        &self,
        asked: Asked,
        response: Response,
        in_session: bool,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let limit = self.max_message_bytes;
        let response = match accepted(response, in_session, &asked).await? {
            Answer::Message(message) => return Ok(*message),
            Answer::Body(response) => response,
        };
        let session = header_text(&response, SESSION);
        let content_type =
            header_text(&response, header::CONTENT_TYPE.as_str()).unwrap_or_default();
        if raw::is_json(&content_type) {
            let message = if let Some(body) = body::bounded(response, limit).await? {
                self.read_answer(&asked, &body)
            } else {
                let why = crate::stdio::too_large(None, limit);
                raw::unreadable(&why, Some(asked.id.clone()))
            };
            let message = if asked.typed { message } else { raw::sealed(message) };
            Ok(StreamableHttpPostResponse::Json(message, session))
        } else if content_type.starts_with(EVENT_STREAM_MIME_TYPE) {
            let events = body::events(response, limit, asked.id.clone());
            let seal = if asked.typed { Seal::Initiatives } else { Seal::All };
            let events = self.sealed(events, seal, asked.lists_tools);
            Ok(StreamableHttpPostResponse::Sse(events, session))
        } else {
            Err(StreamableHttpError::UnexpectedContentType(Some(content_type)))
        }
    }

    /// The answer to one request. Whatever it is, it ends that request.
    fn read_answer(&self, asked: &Asked, body: &[u8]) -> ServerJsonRpcMessage {
        let id = || Some(asked.id.clone());
        let mut value: Value = match serde_json::from_slice(body) {
            Ok(value) => value,
            Err(error) => return raw::unreadable(&format!("it is no JSON: {error}"), id()),
        };
        if asked.lists_tools {
            self.parameters.admit(value.get_mut("result"));
        }
        let Some(mut message) = raw::decode(value, |_| asked.typed) else {
            return raw::unreadable("it is no JSON-RPC message", id());
        };
        let answers = match &message {
            ServerJsonRpcMessage::Response(response) => raw::same_id(&asked.id, &response.id),
            // Servers leave out the id of what they could not read.
            ServerJsonRpcMessage::Error(error) => {
                error.id.as_ref().is_none_or(|other| raw::same_id(&asked.id, other))
            }
            ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_) => false,
        };
        if !answers {
            return raw::unreadable("it belongs to another request", id());
        }
        match &mut message {
            ServerJsonRpcMessage::Response(response) => response.id = asked.id.clone(),
            ServerJsonRpcMessage::Error(error) => error.id = id(),
            _ => {}
        }
        message
    }

    fn sealed(&self, events: Events, seal: Seal, lists_tools: bool) -> Events {
        let parameters = lists_tools.then(|| self.parameters.clone());
        events
            .map(move |event| {
                event.map(|mut event| {
                    event.data = event.data.map(|data| {
                        let admitted = match &parameters {
                            Some(parameters) => parameters.admit_text(data),
                            None => data,
                        };
                        raw::seal(admitted, seal)
                    });
                    event
                })
            })
            .boxed()
    }
}

const SESSION: &str = "mcp-session-id";

impl StreamableHttpClient for RawHttp {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let version = HeaderName::from_static(parameters::VERSION_HEADER);
        let has_marks = parameters::are_spoken(headers.get(&version));
        let response = self.post(&uri, &message, session.as_deref(), token, headers).await?;
        if let ClientJsonRpcMessage::Request(request) = &message {
            let asked = Asked {
                id: request.id.clone(),
                typed: raw::needs_types(&request.request),
                lists_tools: has_marks && request.request.method() == "tools/list",
            };
            let answer = self.ask(asked, response, session.is_some()).await?;
            if matches!(request.request, ClientRequest::InitializeRequest(_)) {
                // The first time, the list comes anyway. After that it means that the server lost
                // the session, perhaps because it is another one now.
                self.heard.initialized();
            }
            return Ok(answer);
        }
        // Nothing waits for an answer to the rest.
        if response.status().is_success() {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        Err(refusal(&response, session.is_some()))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), Error> {
        // What a server does not let us end, it ends itself some day.
        let token = token.or(self.client.token().await?);
        self.client.plain().delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Events, Error> {
        let limit = self.max_message_bytes;
        let open = async |token: Option<String>| {
            let (uri, session, last) = (uri.clone(), session.clone(), last_event.clone());
            let client = self.client.plain();
            client
                .get_stream_with_max_sse_event_size(
                    uri,
                    session,
                    last,
                    token,
                    headers.clone(),
                    limit,
                )
                .await
        };
        let first = token.or(self.client.token().await?);
        let events = match open(first.clone()).await {
            Err(error) if reasons::status(&error) == Some(401) || is_challenge(&error) => {
                open(Some(self.client.another_token(first.as_deref()).await?)).await?
            }
            events => events?,
        };
        Ok(self.sealed(events, Seal::All, false))
    }
}

async fn accepted(response: Response, in_session: bool, asked: &Asked) -> Result<Answer, Error> {
    let status = response.status();
    if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
        return Ok(Answer::Message(Box::new(StreamableHttpPostResponse::Accepted)));
    }
    if status.is_success() {
        return Ok(Answer::Body(response));
    }
    let refusal = refusal(&response, in_session);
    if !matches!(refusal, StreamableHttpError::HttpStatus(_))
        || matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
    {
        return Err(refusal);
    }
    // The body may hold a JSON-RPC error, which says more than the status.
    let start = body::start(response).await;
    let error = serde_json::from_slice(&start).ok().and_then(|value: Value| {
        let is_error = value.get("error").is_some_and(Value::is_object);
        is_error.then(|| raw::decode(value, |_| false)).flatten()
    });
    match error {
        // It answers this request, whatever id it has: there is no other on this connection.
        Some(ServerJsonRpcMessage::Error(error)) => {
            let message = ServerJsonRpcMessage::error(error.error, Some(asked.id.clone()));
            Ok(Answer::Message(Box::new(StreamableHttpPostResponse::Json(message, None))))
        }
        _ => Err(refusal),
    }
}

/// What an unsuccessful response means.
fn refusal(response: &Response, in_session: bool) -> Error {
    let status = response.status();
    let challenge = header_text(response, header::WWW_AUTHENTICATE.as_str());
    match (status, challenge) {
        (StatusCode::UNAUTHORIZED, Some(challenge)) => {
            StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge))
        }
        (StatusCode::FORBIDDEN, Some(challenge)) => {
            StreamableHttpError::InsufficientScope(InsufficientScopeError::new(challenge, None))
        }
        (StatusCode::NOT_FOUND, _) if in_session => StreamableHttpError::SessionExpired,
        _ => {
            let retry_after = header_text(response, header::RETRY_AFTER.as_str());
            HttpStatusError::new(status.as_u16(), retry_after).into()
        }
    }
}

/// The tool that a request calls, and with what.
fn called_tool(request: &ClientRequest) -> Option<(&str, &Map<String, Value>)> {
    match request {
        ClientRequest::CallToolRequest(call) => {
            Some((call.params.name.as_ref(), call.params.arguments.as_ref()?))
        }
        ClientRequest::CustomRequest(custom) if custom.method == "tools/call" => {
            let params = custom.params.as_ref()?;
            Some((params.get("name")?.as_str()?, params.get("arguments")?.as_object()?))
        }
        _ => None,
    }
}

fn header_text(response: &Response, name: &str) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}

fn is_challenge(error: &Error) -> bool {
    matches!(error, StreamableHttpError::AuthRequired(_))
}

/// A URL can hold a key, and errors are shown.
fn without_url(error: reqwest::Error) -> Error {
    StreamableHttpError::Client(error.without_url())
}
