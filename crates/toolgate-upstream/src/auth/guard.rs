//! The HTTP client for URLs that a server names.
//!
//! A server names the URLs of the login, and may be hostile. So each request is `https`, except between
//! loopback addresses. Each address is checked after it was resolved and before it is connected to. No
//! redirect is followed here; rmcp follows those of metadata within one origin with another request.
//! Bodies, times and the number of requests are bounded.
//!
//! A proxy resolves names itself. Then only addresses that are written in a URL can be checked.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use reqwest::{
    Client,
    dns::{Addrs, Name, Resolve, Resolving},
};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest};
use thiserror::Error;
use url::{Host, Url};

mod address;

use address::Reach;

/// A request with its whole body.
pub(super) type Request = http::Request<Vec<u8>>;
/// The answer to a [`Request`].
pub(super) type Response = http::Response<Vec<u8>>;

/// Metadata has a few kilobytes.
const MAX_BODY: usize = 256 * 1024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(20);
/// Discovery takes at most a dozen requests. But metadata can name any number of authorization
/// servers.
const MAX_REQUESTS: usize = 40;

/// Why a request was not made, or has no response.
#[derive(Debug, Error)]
pub(super) enum GuardError {
    #[error("{0} is not reached by `https`")]
    Plain(String),
    #[error("{0} is inside of a network that the server is not in")]
    Inside(String),
    #[error("the answer has more than {MAX_BODY} bytes")]
    TooLarge,
    #[error("there were more than {MAX_REQUESTS} requests")]
    TooMany,
    #[error("there was no answer: {0}")]
    Failed(String),
    #[error("a URL has no host to ask")]
    NoUrl,
}

/// The client, for the metadata of one server.
#[derive(Debug, Clone)]
pub(super) struct GuardedClient {
    /// Created at the first use: most servers need no login.
    client: Arc<OnceLock<Client>>,
    rule: AddressRule,
    requests: Arc<AtomicUsize>,
}

/// Which addresses may be contacted on behalf of a server. `own` is the server's own host, which a
/// person configured.
#[derive(Debug, Clone)]
struct AddressRule {
    own: Arc<Host<String>>,
}

impl GuardedClient {
    pub(super) fn new(server: &Url) -> Result<Self, GuardError> {
        let own = Arc::new(server.host().ok_or(GuardError::NoUrl)?.to_owned());
        let (client, requests) = (Arc::default(), Arc::default());
        Ok(Self { client, rule: AddressRule { own }, requests })
    }

    fn client(&self) -> Result<&Client, GuardError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let mut builder = toolgate_http::client_builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TIMEOUT)
            .dns_resolver(Arc::new(self.rule.clone()))
            .user_agent(concat!("toolgate/", env!("CARGO_PKG_VERSION")));
        if self.rule.own_reach() == Some(Reach::Loopback) {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| GuardError::Failed(error.to_string()))?;
        Ok(self.client.get_or_init(|| client))
    }

    /// The same with a full budget of requests.
    pub(super) fn renewed(&self) -> Self {
        Self { requests: Arc::default(), ..self.clone() }
    }

    /// Whether `url` may be contacted or opened in a browser, as far as its text shows.
    pub(super) fn check(&self, url: &Url) -> Result<(), GuardError> {
        self.rule.check(url)
    }

    pub(super) async fn send(&self, request: Request) -> Result<Response, GuardError> {
        if self.requests.fetch_add(1, Ordering::Relaxed) >= MAX_REQUESTS {
            return Err(GuardError::TooMany);
        }
        let request = reqwest::Request::try_from(request).map_err(|_| GuardError::NoUrl)?;
        self.check(request.url())?;
        let host = request.url().host_str().unwrap_or_default().to_owned();
        let failed = |error: reqwest::Error| {
            if disallowed(&error) {
                return GuardError::Inside(host.clone());
            }
            // URLs can contain codes, so they are not shown.
            GuardError::Failed(toolgate_mcp::client::error_chain(&error.without_url()))
        };
        let response = self.client()?.execute(request).await.map_err(failed)?;
        let mut answer = Response::default();
        *answer.status_mut() = response.status();
        answer.headers_mut().clone_from(response.headers());
        let content_type = response.headers().get(http::header::CONTENT_TYPE);
        // A stream of events may never end, and contains no metadata.
        if !content_type.is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream")) {
            let body = toolgate_http::bounded_body(response, MAX_BODY).await.map_err(failed)?;
            *answer.body_mut() = body.ok_or(GuardError::TooLarge)?;
        }
        Ok(answer)
    }
}

impl OAuthHttpClient for GuardedClient {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move { self.send(request.request).await.map_err(Into::into) })
    }
}

impl AddressRule {
    /// The reach of the server's own host, if its name shows it.
    fn own_reach(&self) -> Option<Reach> {
        Reach::of_host(&self.own)
    }

    fn check(&self, url: &Url) -> Result<(), GuardError> {
        let host = url.host().ok_or(GuardError::NoUrl)?.to_owned();
        let reach = Reach::of_host(&host);
        let both_loopback =
            reach == Some(Reach::Loopback) && self.own_reach() == Some(Reach::Loopback);
        if url.scheme() != "https" && !(url.scheme() == "http" && both_loopback) {
            return Err(GuardError::Plain(host.to_string()));
        }
        if host == *self.own || reach.is_none_or(|reach| reach.is_within(self.own_reach())) {
            return Ok(());
        }
        Err(GuardError::Inside(host.to_string()))
    }
}

/// Resolves names to the addresses that may be contacted.
impl Resolve for AddressRule {
    fn resolve(&self, name: Name) -> Resolving {
        let rule = self.clone();
        Box::pin(async move {
            let found = lookup(name.as_str()).await?;
            if Host::parse(name.as_str()).is_ok_and(|host| host == *rule.own) {
                return Ok(Box::new(found.into_iter()) as Addrs);
            }
            let own = match (rule.own_reach(), &*rule.own) {
                (None, Host::Domain(own)) => {
                    let own = lookup(own).await.unwrap_or_default();
                    // If a name has public and private addresses, its private ones are refused.
                    own.iter().map(|address| Reach::of(address.ip())).max()
                }
                (reach, _) => reach,
            };
            let mut allowed = found;
            allowed.retain(|address| Reach::of(address.ip()).is_within(own));
            if allowed.is_empty() {
                return Err(Box::new(DisallowedAddress) as Box<dyn std::error::Error + Send + Sync>);
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

async fn lookup(name: &str) -> std::io::Result<Vec<SocketAddr>> {
    let found = tokio::time::timeout(CONNECT_TIMEOUT, tokio::net::lookup_host((name, 0))).await;
    Ok(found.map_err(|_| std::io::ErrorKind::TimedOut)??.collect())
}

/// No address of a name may be contacted.
#[derive(Debug, Error)]
#[error("none of its addresses may be asked")]
struct DisallowedAddress;

fn disallowed(error: &reqwest::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(current) = cause {
        if current.is::<DisallowedAddress>() {
            return true;
        }
        cause = current.source();
    }
    false
}

/// The address of a host, if its name is an address or always means one.
fn literal(host: &Host<String>) -> Option<IpAddr> {
    match host {
        Host::Ipv4(address) => Some((*address).into()),
        Host::Ipv6(address) => Some((*address).into()),
        Host::Domain(name) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            let is_local = name == "localhost" || name.ends_with(".localhost");
            is_local.then_some(std::net::Ipv4Addr::LOCALHOST.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(server: &str, url: &str) -> bool {
        let guarded = GuardedClient::new(&Url::parse(server).unwrap()).unwrap();
        guarded.check(&Url::parse(url).unwrap()).is_ok()
    }

    #[test]
    fn a_public_server_cannot_name_private_addresses() {
        let server = "https://mcp.example.com/mcp";
        assert!(allowed(server, "https://login.example.org/token"));
        for inside in [
            "http://login.example.org/token",
            "https://127.0.0.1/token",
            "https://localhost/token",
            "https://x.localhost./token",
            "https://10.0.0.7/token",
            "https://192.168.1.1/",
            "https://169.254.169.254/latest/meta-data/",
            "https://[::1]/",
            "https://[fe80::1]/",
            "https://[fd00::1]/",
            "https://[::ffff:10.0.0.1]/",
            "https://[64:ff9b::a00:1]/",
            "https://0.0.0.0/",
            "https://2130706433/",
            "https://0x7f.1/",
            "file:///etc/passwd",
            "ftp://example.com/",
        ] {
            assert!(!allowed(server, inside), "{inside}");
        }
    }

    #[test]
    fn a_private_server_can_name_private_addresses() {
        assert!(allowed("http://127.0.0.1:8000/mcp", "http://localhost:9000/token"));
        assert!(allowed("http://127.0.0.1:8000/mcp", "https://login.example.org/token"));
        assert!(!allowed("http://127.0.0.1:8000/mcp", "http://login.example.org/token"));
        assert!(!allowed("http://127.0.0.1:8000/mcp", "https://169.254.169.254/"));
        assert!(allowed("https://10.0.0.5/mcp", "https://10.0.0.6/token"));
        assert!(!allowed("https://10.0.0.5/mcp", "http://10.0.0.5/token"));
        assert!(!allowed("https://10.0.0.5/mcp", "https://127.0.0.1/token"));
        assert!(allowed("https://169.254.1.1/mcp", "https://169.254.1.1/token"));
    }

    #[tokio::test]
    async fn host_names_are_resolved_and_checked_before_connecting() {
        let guarded = GuardedClient::new(&Url::parse("https://203.0.113.9/mcp").unwrap()).unwrap();
        // The system resolves this name to a loopback address; the guard has no fixed entry for it.
        let name = "localhost".parse::<Name>().unwrap();
        assert!(guarded.rule.resolve(name).await.is_err());
    }
}
