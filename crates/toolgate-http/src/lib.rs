//! The HTTP client of all crates.
//!
//! TLS is `rustls` with `ring`. The default of `reqwest` is `aws-lc-rs`, whose C code takes more than a minute of
//! processor time to build. `reqwest` then needs a provider that the process has installed.

use std::{fmt, sync::Arc};

/// TLS with other keys than those of the world: what a client shows, and whom it believes.
#[derive(Clone)]
pub struct OwnTls(pub Arc<rustls::ClientConfig>);

impl fmt::Debug for OwnTls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("OwnTls")
    }
}

/// Starts a client that speaks this TLS alone. It uses no proxy, and opens a connection for each request: what has the
/// keys closes none that it has begun to read.
pub fn client_builder_with(tls: &OwnTls) -> reqwest::ClientBuilder {
    client_builder()
        .tls_backend_preconfigured(rustls::ClientConfig::clone(&tls.0))
        .no_proxy()
        .pool_max_idle_per_host(0)
}

/// Starts a client. Every client of the workspace starts here, so that TLS works in it.
pub fn client_builder() -> reqwest::ClientBuilder {
    install_tls();
    reqwest::Client::builder()
}

/// Installs `ring` for TLS, unless the process has installed another provider. Clients that other crates build need it too.
pub fn install_tls() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // An error means that another thread was quicker.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

/// Whether a URL is on this machine.
pub fn is_loopback(url: &reqwest::Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Why the endpoint of a model sent no response, without the URL, which may have a credential in it.
pub fn unreachable_reason(error: &reqwest::Error) -> &'static str {
    if error.is_connect() {
        "no connection"
    } else if error.is_builder() {
        "the request cannot be sent"
    } else {
        "the connection was lost"
    }
}

/// The body of a response, or `None` if it has more than `limit` bytes.
pub async fn bounded_body(
    mut response: reqwest::Response,
    limit: usize,
) -> Result<Option<Vec<u8>>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > limit {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_client_can_be_built_more_than_once() {
        super::client_builder().build().unwrap();
        super::client_builder().build().unwrap();
    }

    #[test]
    fn this_machine_has_several_names() {
        let on_this_machine = |url: &str| super::is_loopback(&url.parse().unwrap());
        for url in ["http://localhost/x", "http://127.0.0.2:80", "https://[::1]:8080/"] {
            assert!(on_this_machine(url), "{url}");
        }
        for url in ["http://localhost.example.com", "http://10.0.0.1", "data:text/plain,x"] {
            assert!(!on_this_machine(url), "{url}");
        }
    }
}
