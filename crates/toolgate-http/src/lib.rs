//! The HTTP client of all crates.
//!
//! TLS is `rustls` with `ring`. The default of `reqwest` is `aws-lc-rs`, whose C code takes more than a minute of
//! processor time to build. `reqwest` then needs a provider that the process has installed.

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

#[cfg(test)]
mod tests {
    #[test]
    fn a_client_can_be_built_more_than_once() {
        super::client_builder().build().unwrap();
        super::client_builder().build().unwrap();
    }
}
