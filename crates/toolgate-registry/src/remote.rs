//! The API of the official registry: `/v0.1/servers`.

use std::{collections::HashSet, time::Duration};

use futures::StreamExt as _;
use reqwest::Client;
use serde_json::Value;
use url::Url;

use crate::error::RegistryError;

/// One registry.
#[derive(Debug)]
pub(crate) struct Remote {
    client: Client,
    base: Url,
    /// Its URL without what could be a secret.
    pub(crate) place: String,
}

/// What a registry said.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) servers: Vec<Value>,
    /// Why this is not all.
    pub(crate) shortfall: Option<RegistryError>,
}

const PAGE: &str = "100";
const MAX_PAGES: usize = 500;
const MAX_SERVERS: usize = 50_000;
const MAX_PAGE_BYTES: usize = 16 * 1024 * 1024;
const MAX_BYTES: usize = 96 * 1024 * 1024;
const ALL_PATIENCE: Duration = Duration::from_mins(2);
const PAGE_PATIENCE: Duration = Duration::from_secs(20);

impl Remote {
    pub(crate) fn new(url: &str) -> Result<Self, RegistryError> {
        let unusable = |reason: &str| RegistryError::Unreadable {
            place: "a registry".to_owned(),
            reason: reason.to_owned(),
        };
        let mut base = Url::parse(url).map_err(|_| unusable("its URL is not valid"))?;
        if base.cannot_be_a_base() || !base.has_host() {
            return Err(unusable("its URL is not valid"));
        }
        // Whoever copied the URL of the list means the registry.
        let path = base.path().trim_end_matches('/');
        let path = path.strip_suffix("/v0.1/servers").unwrap_or(path).to_owned();
        base.set_path(&path);
        let place = format!("{}{path}", base.origin().ascii_serialization());
        let builder = toolgate_http::client_builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(PAGE_PATIENCE)
            .user_agent(concat!("toolgate/", env!("CARGO_PKG_VERSION")));
        let local = place.contains("://localhost") || place.contains("://127.0.0.1");
        let builder = if local { builder.no_proxy() } else { builder };
        let client = builder.build().map_err(|_| unusable("no client can be made for it"))?;
        Ok(Self { client, base, place })
    }

    /// The latest versions of all its servers, page by page.
    pub(crate) async fn servers(&self) -> Result<Answer, RegistryError> {
        let mut answer = Answer { servers: Vec::new(), shortfall: None };
        let reading = tokio::time::timeout(ALL_PATIENCE, self.pages(&mut answer)).await;
        let reading = reading.unwrap_or_else(|_| {
            Err(self.unreachable(format!("it took longer than {} s", ALL_PATIENCE.as_secs())))
        });
        match reading {
            Ok(()) => Ok(answer),
            Err(error @ RegistryError::TooMuch { .. }) => {
                answer.shortfall = Some(error);
                Ok(answer)
            }
            // Half a list would hide what the cache has.
            Err(error) => Err(error),
        }
    }

    async fn pages(&self, answer: &mut Answer) -> Result<(), RegistryError> {
        let mut seen: HashSet<String> = HashSet::new();
        let mut cursor: Option<String> = None;
        let mut bytes = 0;
        for _ in 0..MAX_PAGES {
            let mut url = self.at(&["v0.1", "servers"]);
            url.query_pairs_mut().append_pair("limit", PAGE).append_pair("version", "latest");
            if let Some(cursor) = &cursor {
                url.query_pairs_mut().append_pair("cursor", cursor);
            }
            let (page, size) = self.get(url).await?;
            bytes += size;
            let Some(servers) = page.get("servers").and_then(Value::as_array) else {
                return Err(self.unreadable("there is no list of `servers`"));
            };
            answer.servers.extend(servers.iter().cloned());
            let metadata = page.get("metadata");
            let next =
                metadata.and_then(|it| it.get("nextCursor").or_else(|| it.get("next_cursor")));
            let next = next.and_then(Value::as_str).filter(|next| !next.is_empty());
            let Some(next) = next else { return Ok(()) };
            if !seen.insert(next.to_owned()) {
                return Err(self.unreadable("its pages go round in a circle"));
            }
            if answer.servers.len() > MAX_SERVERS || bytes > MAX_BYTES {
                break;
            }
            cursor = Some(next.to_owned());
        }
        answer.servers.truncate(MAX_SERVERS);
        Err(RegistryError::TooMuch { place: self.place.clone() })
    }

    /// One version of one server.
    pub(crate) async fn version(&self, name: &str, version: &str) -> Result<Value, RegistryError> {
        let url = self.at(&["v0.1", "servers", name, "versions", version]);
        Ok(self.get(url).await?.0)
    }

    fn at(&self, parts: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            // A slash in a name is not one of the path.
            path.pop_if_empty().extend(parts);
        }
        url
    }

    async fn get(&self, url: Url) -> Result<(Value, usize), RegistryError> {
        let fault = |error: reqwest::Error| self.unreachable(reason(&error));
        let request = self.client.get(url).header("accept", "application/json");
        let response = request.send().await.map_err(fault)?;
        let status = response.status();
        if !status.is_success() {
            return Err(self.unreachable(format!("it answers with status {}", status.as_u16())));
        }
        let mut body: Vec<u8> = Vec::new();
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(fault)?;
            if body.len() + chunk.len() > MAX_PAGE_BYTES {
                return Err(self.unreadable("a page is larger than 16 MiB"));
            }
            body.extend_from_slice(&chunk);
        }
        let value = serde_json::from_slice(&body);
        Ok((value.map_err(|_| self.unreadable("a page is no JSON"))?, body.len()))
    }

    fn unreachable(&self, reason: String) -> RegistryError {
        RegistryError::Unreachable { place: self.place.clone(), reason }
    }

    fn unreadable(&self, reason: &str) -> RegistryError {
        RegistryError::Unreadable { place: self.place.clone(), reason: reason.to_owned() }
    }
}

/// In words of our own: the library's have the URL in them.
fn reason(error: &reqwest::Error) -> String {
    let reason = if error.is_timeout() {
        "it does not answer in time"
    } else if error.is_connect() {
        "no connection"
    } else {
        "the connection broke off"
    };
    reason.to_owned()
}
