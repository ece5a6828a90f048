//! Who may come in over the network.

use schemars::JsonSchema;
use serde::Serialize;

use crate::schema::GatewayOauthFile;

/// Who may come in over the network, and what they may ask: the `gateway` key.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Gateway {
    /// Whether clients on this machine need a token too. Those of other machines always do.
    pub require_token: bool,
    /// Names under which the gateway is reached beside those of this machine, with or without a
    /// port: what a proxy in front of it sends as `Host`.
    pub allowed_hosts: Vec<String>,
    /// Web pages that may talk to the gateway beside those of this machine, such as
    /// `https://app.example.com`.
    pub allowed_origins: Vec<String>,
    /// The authorisation server whose tokens open the gateway, beside those of `toolgate token`.
    #[schemars(with = "Option<GatewayOauthFile>")]
    pub oauth: Option<GatewayOauth>,
    /// How many connections there may be at once.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_connections: u64,
    /// The largest body of a request, in bytes.
    #[schemars(range(min = 1_024, max = 268_435_456))]
    pub max_body_bytes: u64,
    /// The largest head of a request, in bytes.
    #[schemars(range(min = 8_192, max = 1_048_576))]
    pub max_header_bytes: u64,
    /// How many sessions there may be at once.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_sessions: u64,
    /// How many of them one caller may have.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_sessions_per_caller: u64,
    /// How many requests of a session may be under way at once.
    #[schemars(range(min = 1, max = 100_000))]
    pub max_requests_in_flight: u64,
    /// After how many seconds a session that nobody uses ends.
    #[schemars(range(min = 10, max = 604_800))]
    pub session_idle_seconds: u64,
}

/// The authorisation server whose tokens open the gateway: the `oauth` key of `gateway`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GatewayOauth {
    /// As it is in the tokens' `iss`: an `https` URL, or an `http` one of this machine.
    pub issuer: String,
    /// The URL under which clients reach the gateway, without query and fragment.
    pub resource: String,
    /// What tokens have to have in `aud`; where it is not said, the resource.
    pub audience: Option<String>,
    /// Where the public keys are; where it is not said, the issuer's metadata says so.
    pub jwks_url: Option<String>,
    /// Scopes that a token has to have, all of them.
    pub required_scopes: Vec<String>,
}

impl Default for Gateway {
    fn default() -> Self {
        Self {
            require_token: false,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            oauth: None,
            max_connections: 4_096,
            max_body_bytes: 4 * 1024 * 1024,
            max_header_bytes: 64 * 1024,
            max_sessions: 4_000,
            max_sessions_per_caller: 1_000,
            max_requests_in_flight: 256,
            session_idle_seconds: 30 * 60,
        }
    }
}
