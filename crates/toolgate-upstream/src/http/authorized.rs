//! Requests with a token, where somebody has logged in.

use std::sync::Arc;

use http::header;
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use rmcp::transport::streamable_http_client::StreamableHttpError;
use thiserror::Error;

use crate::{
    auth::{Authorizer, Trouble, Verdict},
    spec::HttpEndpoint,
};

/// The HTTP client of one server, and who has its tokens.
#[derive(Debug, Clone)]
pub(crate) struct AuthorizedClient {
    client: Client,
    authorizer: Option<Arc<Authorizer>>,
}

/// Why a request has no response.
#[derive(Debug, Error)]
pub(crate) enum SendError {
    /// Without its URL, which can hold a key.
    #[error(transparent)]
    Http(reqwest::Error),
    #[error(transparent)]
    Trouble(#[from] Trouble),
}

impl AuthorizedClient {
    pub(crate) fn new(endpoint: &HttpEndpoint) -> Result<Self, reqwest::Error> {
        let mut builder = toolgate_http::client_builder()
            // A redirect could carry credentials to another host.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("toolgate/", env!("CARGO_PKG_VERSION")));
        if is_loopback(&endpoint.url) {
            builder = builder.no_proxy();
        }
        Ok(Self { client: builder.build()?, authorizer: endpoint.authorizer().cloned() })
    }

    /// The client itself, which adds no token.
    pub(crate) fn plain(&self) -> &Client {
        &self.client
    }

    /// The token to send, where there is one.
    pub(crate) async fn token(&self) -> Result<Option<String>, Trouble> {
        match &self.authorizer {
            Some(authorizer) => authorizer.token().await,
            None => Ok(None),
        }
    }

    /// Another token than the one that got a 401.
    pub(super) async fn another_token(
        &self,
        used: Option<&str>,
    ) -> Result<String, StreamableHttpError<reqwest::Error>> {
        let status = StatusCode::UNAUTHORIZED.as_u16();
        let unauthorized =
            || rmcp::transport::streamable_http_client::HttpStatusError::new(status, None);
        let Some(authorizer) = &self.authorizer else { return Err(unauthorized().into()) };
        match authorizer.refused(status, None, used).await {
            Verdict::Retry(token) => Ok(token),
            Verdict::Trouble(trouble) => Err(trouble.into()),
            Verdict::Other => Err(unauthorized().into()),
        }
    }

    /// Sends a request with the token, once more with another one where the first is refused: a
    /// server that asks who we are has not done what it was asked for.
    pub(crate) async fn send(&self, request: RequestBuilder) -> Result<Response, SendError> {
        let Some(authorizer) = &self.authorizer else { return send(request, None).await };
        let token = authorizer.token().await?;
        let again = request.try_clone();
        let response = send(request, token.as_deref()).await?;
        let (token, request) = match (judge(authorizer, &response, token.as_deref()).await, again) {
            (Some(Verdict::Retry(token)), Some(again)) => (token, again),
            (Some(Verdict::Trouble(trouble)), _) => return Err(trouble.into()),
            _ => return Ok(response),
        };
        let response = send(request, Some(&token)).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            return Err(authorizer.over().into());
        }
        match judge(authorizer, &response, Some(&token)).await {
            Some(Verdict::Trouble(trouble)) => Err(trouble.into()),
            Some(Verdict::Retry(_)) => Err(authorizer.over().into()),
            Some(Verdict::Other) | None => Ok(response),
        }
    }
}

impl From<Trouble> for StreamableHttpError<reqwest::Error> {
    fn from(trouble: Trouble) -> Self {
        Self::Io(std::io::Error::other(trouble))
    }
}

impl From<SendError> for StreamableHttpError<reqwest::Error> {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Http(error) => Self::Client(error),
            SendError::Trouble(trouble) => trouble.into(),
        }
    }
}

async fn send(request: RequestBuilder, token: Option<&str>) -> Result<Response, SendError> {
    let request = match token {
        Some(token) => request.bearer_auth(token),
        None => request,
    };
    request.send().await.map_err(|error| SendError::Http(error.without_url()))
}

/// What is to be done about a refusal; `None` where there is none.
async fn judge(
    authorizer: &Arc<Authorizer>,
    response: &Response,
    token: Option<&str>,
) -> Option<Verdict> {
    let status = response.status();
    if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        if let Some(token) = token.filter(|_| status.is_success()) {
            authorizer.accepted(token);
        }
        return None;
    }
    let challenges = response.headers().get_all(header::WWW_AUTHENTICATE).into_iter();
    let mut challenges = challenges.filter_map(|value| value.to_str().ok());
    let challenge = challenges.find(|text| text.to_ascii_lowercase().starts_with("bearer"));
    Some(authorizer.refused(status.as_u16(), challenge, token).await)
}

fn is_loopback(url: &str) -> bool {
    let url = url::Url::parse(url).ok();
    url.as_ref().and_then(url::Url::host).is_some_and(|host| match host {
        url::Host::Domain(name) => name == "localhost",
        url::Host::Ipv4(address) => address.is_loopback(),
        url::Host::Ipv6(address) => address.is_loopback(),
    })
}
