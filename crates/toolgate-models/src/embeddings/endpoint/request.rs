//! One request to an embeddings endpoint, and its errors.

use std::time::Duration;

use bytes::BytesMut;
use futures::StreamExt as _;
use reqwest::{Client, Response, StatusCode, Url, header};
use serde::Serialize;
use toolgate_search::encoder::UnitVector;

use super::response;

/// A request without its texts.
pub(super) struct EmbeddingsRequest<'a> {
    pub(super) client: &'a Client,
    pub(super) url: &'a Url,
    pub(super) key: Option<&'a str>,
    pub(super) model: &'a str,
    pub(super) dimensions: Option<usize>,
}

/// Why there are no vectors. The reason follows the endpoint's name in a message.
#[derive(Debug)]
pub(super) enum EndpointRefusal {
    /// The request may work later, or after the pause that the endpoint requests.
    Passing { reason: String, pause: Option<Duration> },
    /// The endpoint refuses a text. Other texts may work.
    Content(String),
    /// The request will not work without a change.
    Lasting(String),
}

#[derive(Serialize)]
struct RequestBody<'a> {
    model: &'a str,
    input: &'a [String],
    encoding_format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<usize>,
}

/// The size of 64 vectors with the most dimensions and all digits.
const MAX_ANSWER_BYTES: usize = 32 * 1024 * 1024;
/// The number of bytes of an error response that are read.
const MAX_ERROR_BYTES: usize = 8 * 1024;
const SHOWN_CHARACTERS: usize = 200;

impl EmbeddingsRequest<'_> {
    pub(super) async fn send(&self, texts: &[String]) -> Result<Vec<UnitVector>, EndpointRefusal> {
        let body = RequestBody {
            model: self.model,
            input: texts,
            encoding_format: "float",
            dimensions: self.dimensions,
        };
        let mut request = self.client.post(self.url.clone()).json(&body);
        if let Some(key) = self.key {
            request = request.bearer_auth(key);
        }
        let response = request.send().await.map_err(|error| unreachable(&error))?;
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
        let bytes = read(response, MAX_ANSWER_BYTES).await?;
        if bytes.len() > MAX_ANSWER_BYTES {
            return Err(EndpointRefusal::Lasting(format!(
                "answers with more than {MAX_ANSWER_BYTES} bytes"
            )));
        }
        response::vectors(&bytes, texts.len())
    }

    async fn refusal(&self, response: Response) -> EndpointRefusal {
        let status = response.status();
        let pause = response
            .headers()
            .get(header::RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.trim().parse().ok())
            .map(Duration::from_secs);
        let reason = format!("answers with {}", status.as_u16());
        match status {
            // The response may contain the key, or a part of it.
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => EndpointRefusal::Lasting(format!(
                "{reason}: it refuses the API key; check `apiKey`"
            )),
            StatusCode::TOO_MANY_REQUESTS => {
                EndpointRefusal::Passing { reason: format!("{reason}: too many requests"), pause }
            }
            status if status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT => {
                EndpointRefusal::Passing { reason, pause }
            }
            StatusCode::BAD_REQUEST
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::UNPROCESSABLE_ENTITY => {
                EndpointRefusal::Content(format!("{reason}{}", self.said(response).await))
            }
            StatusCode::NOT_FOUND => EndpointRefusal::Lasting(format!(
                "{reason}{}; check the endpoint's path and the model's name",
                self.said(response).await
            )),
            status if status.is_redirection() => {
                EndpointRefusal::Lasting(format!("{reason}; write the URL that it redirects to"))
            }
            _ => EndpointRefusal::Lasting(format!("{reason}{}", self.said(response).await)),
        }
    }

    /// The error message of the endpoint, on one line.
    async fn said(&self, response: Response) -> String {
        let bytes = read(response, MAX_ERROR_BYTES).await.unwrap_or_default();
        let said = response::message(&bytes);
        let said = match self.key.filter(|key| !key.is_empty()) {
            Some(key) => said.replace(key, "[secret]"),
            None => said,
        };
        let words: Vec<&str> = said
            .split(|c: char| c.is_whitespace() || c.is_control())
            .filter(|w| !w.is_empty())
            .collect();
        let line: String = words.join(" ").chars().take(SHOWN_CHARACTERS).collect();
        if line.is_empty() { line } else { format!(": {line}") }
    }
}

/// Why there is no response. The error of the HTTP client would show the URL.
fn unreachable(error: &reqwest::Error) -> EndpointRefusal {
    let reason = if error.is_timeout() {
        "does not answer in time"
    } else if error.is_connect() {
        "cannot be reached"
    } else {
        "broke the connection off"
    };
    EndpointRefusal::Passing { reason: reason.to_owned(), pause: None }
}

/// Reads until there are more than `most` bytes, so that the caller notices a larger response.
async fn read(response: Response, most: usize) -> Result<BytesMut, EndpointRefusal> {
    let mut bytes = BytesMut::new();
    let mut parts = response.bytes_stream();
    while let Some(part) = parts.next().await {
        bytes.extend_from_slice(&part.map_err(|error| unreachable(&error))?);
        if bytes.len() > most {
            break;
        }
    }
    Ok(bytes)
}
