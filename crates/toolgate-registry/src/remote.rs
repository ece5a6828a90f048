//! The API of the official registry: `/v0.1/servers`.

use std::{collections::HashSet, time::Duration};

use futures::StreamExt as _;
use reqwest::Client;
use serde_json::Value;
use url::Url;

use crate::error::RegistryError;

/// A client of one remote registry.
#[derive(Debug)]
pub(crate) struct RegistryClient {
    client: Client,
    base: Url,
    /// Its URL without credentials and query, for messages.
    pub(crate) name: String,
}

/// The servers that a registry sent.
#[derive(Debug)]
pub(crate) struct ServerList {
    pub(crate) servers: Vec<Value>,
    /// Why the list is not complete.
    pub(crate) shortfall: Option<RegistryError>,
}

const PAGE: &str = "100";
const MAX_PAGES: usize = 500;
const MAX_SERVERS: usize = 50_000;
const MAX_PAGE_BYTES: usize = 16 * 1024 * 1024;
const MAX_BYTES: usize = 96 * 1024 * 1024;
const TOTAL_TIMEOUT: Duration = Duration::from_mins(2);
const PAGE_TIMEOUT: Duration = Duration::from_secs(20);

impl RegistryClient {
    pub(crate) fn new(url: &str) -> Result<Self, RegistryError> {
        let unusable = |reason: &str| RegistryError::Unreadable {
            registry: "a registry".to_owned(),
            reason: reason.to_owned(),
        };
        let mut base = Url::parse(url).map_err(|_| unusable("its URL is not valid"))?;
        if base.cannot_be_a_base() || !base.has_host() {
            return Err(unusable("its URL is not valid"));
        }
        // People copy the URL of the list as well as that of the registry.
        let path = base.path().trim_end_matches('/');
        let path = path.strip_suffix("/v0.1/servers").unwrap_or(path).to_owned();
        base.set_path(&path);
        let name = format!("{}{path}", base.origin().ascii_serialization());
        let builder = toolgate_http::client_builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(PAGE_TIMEOUT)
            .user_agent(concat!("toolgate/", env!("CARGO_PKG_VERSION")));
        let local = name.contains("://localhost") || name.contains("://127.0.0.1");
        let builder = if local { builder.no_proxy() } else { builder };
        let client = builder.build().map_err(|_| unusable("no client can be made for it"))?;
        Ok(Self { client, base, name })
    }

    /// The latest versions of all its servers, page by page.
    pub(crate) async fn servers(&self) -> Result<ServerList, RegistryError> {
        let mut list = ServerList { servers: Vec::new(), shortfall: None };
        let reading = tokio::time::timeout(TOTAL_TIMEOUT, self.pages(&mut list)).await;
        let reading = reading.unwrap_or_else(|_| {
            Err(self.unreachable(format!("it took longer than {} s", TOTAL_TIMEOUT.as_secs())))
        });
        match reading {
            Ok(()) => Ok(list),
            Err(error @ RegistryError::TooMuch { .. }) => {
                list.shortfall = Some(error);
                Ok(list)
            }
            // A part of the list would replace the whole list of the cache.
            Err(error) => Err(error),
        }
    }

    async fn pages(&self, list: &mut ServerList) -> Result<(), RegistryError> {
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
            list.servers.extend(servers.iter().cloned());
            let metadata = page.get("metadata");
            let next =
                metadata.and_then(|it| it.get("nextCursor").or_else(|| it.get("next_cursor")));
            let next = next.and_then(Value::as_str).filter(|next| !next.is_empty());
            let Some(next) = next else { return Ok(()) };
            if !seen.insert(next.to_owned()) {
                return Err(self.unreadable("its pages repeat"));
            }
            if list.servers.len() > MAX_SERVERS || bytes > MAX_BYTES {
                break;
            }
            cursor = Some(next.to_owned());
        }
        list.servers.truncate(MAX_SERVERS);
        Err(RegistryError::TooMuch { registry: self.name.clone() })
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
            return Err(self.unreachable(format!("it responds with status {}", status.as_u16())));
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
        Ok((value.map_err(|_| self.unreadable("a page is not JSON"))?, body.len()))
    }

    fn unreachable(&self, reason: String) -> RegistryError {
        RegistryError::Unreachable { registry: self.name.clone(), reason }
    }

    fn unreadable(&self, reason: &str) -> RegistryError {
        RegistryError::Unreadable { registry: self.name.clone(), reason: reason.to_owned() }
    }
}

/// Describes an error without the URL, which may hold a secret.
fn reason(error: &reqwest::Error) -> String {
    let reason = if error.is_timeout() {
        "it does not respond in time"
    } else if error.is_connect() {
        "no connection"
    } else {
        "the connection broke off"
    };
    reason.to_owned()
}
