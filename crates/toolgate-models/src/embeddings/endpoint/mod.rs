//! An endpoint that speaks OpenAI's embeddings API: `POST {base}/embeddings`.

mod request;
mod response;

use std::{fmt, time::Duration};

use futures::{StreamExt as _, TryStreamExt as _, future::BoxFuture, stream};
use reqwest::{Client, Url, redirect};
use thiserror::Error;
use toolgate_search::encoder::{
    EncodeError, Encoder, Encoding, MAX_DIMENSIONS, TextKind, UnitVector,
};

use self::request::{EmbeddingsRequest, EndpointRefusal};
use super::Prefixes;

/// How to send requests to an endpoint.
#[derive(Debug, Clone)]
pub struct EndpointSettings {
    /// The URL before `/embeddings`, such as `http://localhost:11434/v1`.
    pub base_url: String,
    /// The model's name.
    pub model: String,
    /// The bearer token.
    pub api_key: Option<ApiKey>,
    /// The number of dimensions, for models that let the client choose it.
    pub dimensions: Option<usize>,
    /// The prefixes of texts.
    pub prefixes: Prefixes,
    /// The time limit of one request.
    pub timeout: Duration,
}

/// A credential. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

/// Invalid settings of an endpoint. Search continues with the table in the program.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// The URL is invalid.
    #[error("the URL of the embeddings endpoint is not one that begins with http:// or https://")]
    Url,
    /// The key cannot be sent.
    #[error("the API key of the embeddings endpoint has characters that no header can carry")]
    ApiKey,
    /// The HTTP client could not be created.
    #[error("the embeddings endpoint cannot be asked: no HTTP client can be made")]
    Client,
}

/// An encoder that sends texts to an endpoint.
#[derive(Debug)]
pub struct EndpointEncoder {
    client: Client,
    url: Url,
    /// The URL in messages: without path, user or query, any of which may be secret.
    shown: String,
    settings: EndpointSettings,
    id: String,
    /// The pause before the second attempt. It doubles before each further one.
    first_pause: Duration,
}

/// Texts of one request.
const BATCH_TEXTS: usize = 64;
const BATCH_BYTES: usize = 64 * 1024;
/// The number of requests at the same time.
const CONCURRENT: usize = 4;
/// Attempts at one request, for documents. A query has no time for a second.
const ATTEMPTS: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(20);
/// A text that an endpoint finds too long is cut to this many bytes.
const SHORT_BYTES: usize = 500;

impl ApiKey {
    /// Wraps a credential.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[secret]")
    }
}

impl EndpointEncoder {
    /// An encoder for these settings. It sends no request yet.
    pub fn new(settings: EndpointSettings) -> Result<Self, EndpointError> {
        let base = settings.base_url.trim().trim_end_matches('/');
        let whole = if base.ends_with("/embeddings") {
            base.to_owned()
        } else {
            format!("{base}/embeddings")
        };
        let url = Url::parse(&whole).map_err(|_| EndpointError::Url)?;
        let host = url.host_str().filter(|_| matches!(url.scheme(), "http" | "https"));
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let shown = format!("{}{port}", host.ok_or(EndpointError::Url)?);
        if let Some(ApiKey(key)) = &settings.api_key
            && !key.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        {
            return Err(EndpointError::ApiKey);
        }
        let client = toolgate_http::client_builder()
            .timeout(settings.timeout)
            // A redirect could send the key to another host.
            .redirect(redirect::Policy::none())
            .build()
            .map_err(|_| EndpointError::Client)?;
        let id = id(&url, &settings);
        Ok(Self { client, url, shown, settings, id, first_pause: FIRST_PAUSE })
    }

    async fn vectors(
        &self,
        texts: &[&str],
        kind: TextKind,
    ) -> Result<Vec<UnitVector>, EncodeError> {
        let prefix = self.settings.prefixes.of(kind);
        let texts: Vec<String> = texts.iter().map(|text| format!("{prefix}{text}")).collect();
        let asked: Vec<BoxFuture<'_, _>> =
            batches(&texts).into_iter().map(|batch| self.batch(batch, kind)).collect();
        let parts: Vec<Vec<UnitVector>> =
            stream::iter(asked).buffered(CONCURRENT).try_collect().await?;
        let vectors: Vec<UnitVector> = parts.into_iter().flatten().collect();
        let first = vectors.first().map(UnitVector::dimensions);
        let expected = self.settings.dimensions.or(first);
        if let Some(other) = vectors.iter().find(|vector| Some(vector.dimensions()) != expected) {
            return Err(EncodeError::Lasting(format!(
                "{} gives vectors of {} numbers where {} were expected; set `dimensions` to what \
                 the model gives, or leave it out",
                self.shown,
                other.dimensions(),
                expected.unwrap_or_default(),
            )));
        }
        Ok(vectors)
    }

    /// The vectors of a batch. If the endpoint refuses one text, the others still get their vectors.
    fn batch<'a>(
        &'a self,
        texts: &'a [String],
        kind: TextKind,
    ) -> BoxFuture<'a, Result<Vec<UnitVector>, EncodeError>> {
        Box::pin(async move {
            match self.with_retries(texts, kind).await {
                Err(EndpointRefusal::Content(_)) if texts.len() > 1 => {
                    let (left, right) = texts.split_at(texts.len() / 2);
                    let mut vectors = self.batch(left, kind).await?;
                    vectors.extend(self.batch(right, kind).await?);
                    Ok(vectors)
                }
                Err(EndpointRefusal::Content(reason)) => match texts {
                    [text] if text.len() > SHORT_BYTES => {
                        let short = text[..text.floor_char_boundary(SHORT_BYTES)].to_owned();
                        let answer = self.with_retries(&[short], kind).await;
                        answer.map_err(|refusal| self.error(refusal))
                    }
                    _ => Err(self.error(EndpointRefusal::Content(reason))),
                },
                answer => answer.map_err(|refusal| self.error(refusal)),
            }
        })
    }

    /// Sends a request, and again after a pause if that may help.
    async fn with_retries(
        &self,
        texts: &[String],
        kind: TextKind,
    ) -> Result<Vec<UnitVector>, EndpointRefusal> {
        let attempts = if kind == TextKind::Query { 1 } else { ATTEMPTS };
        let mut attempt = 1;
        loop {
            let asked = EmbeddingsRequest {
                client: &self.client,
                url: &self.url,
                key: self.settings.api_key.as_ref().map(|ApiKey(key)| key.as_str()),
                model: &self.settings.model,
                dimensions: self.settings.dimensions,
            };
            match asked.send(texts).await {
                Err(EndpointRefusal::Passing { pause, .. }) if attempt < attempts => {
                    let doubled =
                        self.first_pause.saturating_mul(2_u32.saturating_pow(attempt - 1));
                    tokio::time::sleep(pause.unwrap_or(doubled).min(LONGEST_PAUSE)).await;
                    attempt += 1;
                }
                answer => return answer,
            }
        }
    }

    fn error(&self, refusal: EndpointRefusal) -> EncodeError {
        let shown = &self.shown;
        match refusal {
            EndpointRefusal::Passing { reason, .. } => {
                EncodeError::Passing(format!("{shown} {reason}"))
            }
            EndpointRefusal::Content(reason) | EndpointRefusal::Lasting(reason) => {
                EncodeError::Lasting(format!("{shown} {reason}"))
            }
        }
    }
}

impl Encoder for EndpointEncoder {
    fn id(&self) -> &str {
        &self.id
    }

    fn name(&self) -> &str {
        &self.settings.model
    }

    fn encode<'a>(&'a self, texts: &'a [&'a str], kind: TextKind) -> Encoding<'a> {
        Box::pin(self.vectors(texts, kind))
    }
}

/// The id of an encoder. It contains a hash of the URL, because the URL may contain a secret.
fn id(url: &Url, settings: &EndpointSettings) -> String {
    let mut hasher = blake3::Hasher::new();
    let dimensions = settings.dimensions.unwrap_or(MAX_DIMENSIONS + 1).to_string();
    let Prefixes { query, document } = &settings.prefixes;
    for part in [url.as_str(), &settings.model, &dimensions, query, document] {
        hasher.update(&part.len().to_le_bytes()).update(part.as_bytes());
    }
    let model: String = settings.model.chars().take(100).collect();
    format!("endpoint {model} {}", &hasher.finalize().to_hex()[..32])
}

/// Splits texts into the batches of requests.
fn batches(texts: &[String]) -> Vec<&[String]> {
    let mut batches = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (place, text) in texts.iter().enumerate() {
        let full = place - start == BATCH_TEXTS || bytes + text.len() > BATCH_BYTES;
        if full && place > start {
            batches.push(&texts[start..place]);
            (start, bytes) = (place, 0);
        }
        bytes += text.len();
    }
    if start < texts.len() {
        batches.push(&texts[start..]);
    }
    batches
}

#[cfg(test)]
mod tests;
