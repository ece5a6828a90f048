//! Small documents of an authorisation server, fetched with care.

use std::time::Duration;

use reqwest::{Client, header::CACHE_CONTROL, redirect::Policy};
use serde_json::Value;
use url::{Host, Url};

use super::IssuerError;

/// The largest document that is read.
const MAX_BYTES: usize = 256 * 1024;
/// How long one may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Fetches documents that whoever is in between cannot change: over https, or from this machine if
/// the issuer is on it. Redirects are not followed, sizes and times are bounded.
#[derive(Debug)]
pub(super) struct Fetcher {
    client: Client,
    is_local: bool,
}

/// A document, and for how long it is good.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) value: Value,
    pub(super) lifetime: Option<Duration>,
}

impl Fetcher {
    /// For the documents of this issuer.
    pub(super) fn new(issuer: &str) -> Result<Self, IssuerError> {
        let url = Url::parse(issuer).map_err(|_| IssuerError::Address("issuer"))?;
        let is_local = is_loopback(&url);
        let client = Client::builder()
            .redirect(Policy::none())
            .timeout(PATIENCE)
            .connect_timeout(PATIENCE / 2)
            .user_agent(concat!("toolgate/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| IssuerError::Client(error.to_string()))?;
        let fetcher = Self { client, is_local };
        fetcher.allowed(issuer).ok_or(IssuerError::Address("issuer"))?;
        Ok(fetcher)
    }

    /// The address, if it may be asked.
    pub(super) fn allowed(&self, address: &str) -> Option<Url> {
        let url = Url::parse(address).ok()?;
        let plain = url.username().is_empty() && url.password().is_none() && url.has_host();
        let guarded = match url.scheme() {
            "https" => !is_loopback(&url) || self.is_local,
            "http" => is_loopback(&url) && self.is_local,
            _ => false,
        };
        (plain && guarded).then_some(url)
    }

    /// Fetches a document of JSON. Errors are for a log, and say nothing of what was received.
    pub(super) async fn json(&self, url: Url) -> Result<Document, String> {
        let shown = |error: reqwest::Error| error.without_url().to_string();
        let request = self.client.get(url).header("accept", "application/json");
        let mut response = request.send().await.map_err(shown)?;
        if response.status() != reqwest::StatusCode::OK {
            return Err(format!("the answer was {}", response.status().as_u16()));
        }
        let control = response.headers().get(CACHE_CONTROL).and_then(|value| value.to_str().ok());
        let lifetime = control.and_then(lifetime);
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(shown)? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > MAX_BYTES {
                return Err(format!("the answer has more than {MAX_BYTES} bytes"));
            }
        }
        let value =
            serde_json::from_slice(&bytes).map_err(|_| "the answer is no JSON".to_owned())?;
        Ok(Document { value, lifetime })
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// How long `Cache-Control` lets a document be kept.
fn lifetime(control: &str) -> Option<Duration> {
    let mut seconds = None;
    for directive in control.split(',').map(str::trim) {
        if directive.eq_ignore_ascii_case("no-store") || directive.eq_ignore_ascii_case("no-cache")
        {
            return Some(Duration::ZERO);
        }
        if let Some((name, value)) = directive.split_once('=')
            && name.eq_ignore_ascii_case("max-age")
        {
            seconds = value.trim_matches('"').parse::<u64>().ok();
        }
    }
    seconds.map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_guarded_addresses_are_asked() {
        let public = Fetcher::new("https://idp.example/").unwrap();
        assert!(public.allowed("https://keys.example/jwks").is_some(), "keys may be elsewhere");
        for wrong in [
            "http://idp.example/jwks",
            "http://127.0.0.1/jwks",
            "https://localhost/jwks",
            "https://user@idp.example/",
            "file:///etc/passwd",
            "idp.example",
        ] {
            assert!(public.allowed(wrong).is_none(), "{wrong}");
        }
        let local = Fetcher::new("http://127.0.0.1:9").unwrap();
        assert!(local.allowed("http://[::1]:9/jwks").is_some());
        assert!(local.allowed("http://idp.example/jwks").is_none());
        assert!(Fetcher::new("http://idp.example").is_err());
    }

    #[test]
    fn lifetimes_are_read() {
        let seconds = |text| lifetime(text).map(|lifetime| lifetime.as_secs());
        assert_eq!(seconds("public, max-age=300, must-revalidate"), Some(300));
        assert_eq!(seconds("Max-Age=\"5\""), Some(5));
        assert_eq!(seconds("max-age=300, no-cache"), Some(0));
        assert_eq!(seconds("max-age=-1"), None);
        assert_eq!(seconds("private"), None);
    }
}
