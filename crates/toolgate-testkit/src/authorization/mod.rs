//! An authorization server that agrees to everything, and lies on request.
//!
//! ```no_run
//! use toolgate_testkit::{AuthorizationOptions, AuthorizationServer, Fixture};
//!
//! # async fn example() -> Result<(), toolgate_testkit::TestkitError> {
//! let authorization = AuthorizationServer::start(AuthorizationOptions::default()).await?;
//! let address = ([127, 0, 0, 1], 0).into();
//! let server = Fixture::new("guarded").serve_http_for(address, &authorization).await?;
//! # Ok(())
//! # }
//! ```

mod grants;
mod guard;
mod routes;
mod visit;

use std::{collections::BTreeMap, sync::Arc};

use axum::Router;
use parking_lot::Mutex;
use tokio::{net::TcpListener, task::JoinHandle};

use self::grants::IssuedGrants;
pub use self::{
    guard::PERSON,
    visit::{Visited, send_form, visit, visit_with},
};
use crate::TestkitError;

/// The features of an authorization server, and of the server that it protects.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is something that is offered or not")]
pub struct AuthorizationOptions {
    /// The declared lifetime of an access token in seconds.
    pub lifetime: u64,
    /// Whether refresh tokens are issued. Each is valid once; a second use revokes everything.
    pub refreshes: bool,
    /// Whether clients may register themselves.
    pub registers: bool,
    /// Whether the URL of a metadata document is accepted as a client id.
    pub reads_documents: bool,
    /// A preregistered client: its id and its secret.
    pub client: Option<(String, String)>,
    /// How clients can authenticate, and whether clients that register get a secret.
    pub methods: Vec<String>,
    /// Whether there is an endpoint for revocation.
    pub revokes: bool,
    /// The scopes that the guarded server lists in its metadata.
    pub scopes: Vec<String>,
    /// The scope that the guarded server names in its 401.
    pub challenge_scope: Option<String>,
    /// A tool that needs a scope, and the scope. Without it the response is 403.
    pub step_up: Option<(String, String)>,
    /// How the protected server says where to log in.
    pub discovery: Discovery,
    /// How the server misbehaves.
    pub fault: Option<AuthorizationFault>,
}

/// How a protected server says where to log in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Discovery {
    /// By protected resource metadata, which its 401 points to.
    #[default]
    Challenge,
    /// By protected resource metadata at the well-known path; its 401 names nothing.
    WellKnown,
    /// Not at all: `/authorize`, `/token` and `/register` are at the same host, as in 2025-03-26.
    Endpoints,
}

/// How an authorization server, or the metadata that leads to it, is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthorizationFault {
    /// Its metadata name another issuer.
    OtherIssuer,
    /// Its answer to the browser names another issuer.
    OtherIss,
    /// It says that its answers name the issuer, and they do not.
    NoIss,
    /// It cannot do PKCE with S256.
    NoPkce,
    /// The protected resource metadata name another resource.
    OtherResource,
    /// The protected resource metadata name this authorization server instead.
    PointsTo(String),
    /// The protected resource metadata name a thousand authorization servers that are not there.
    PointsToMany,
    /// The protected resource metadata are elsewhere: a redirect leads there.
    RedirectsTo(String),
    /// The protected resource metadata have no end.
    Endless,
    /// Its metadata name this token endpoint.
    TokenEndpoint(String),
    /// Its metadata name this page to log in.
    Page(String),
    /// The person says no.
    Denies,
    /// The guarded server accepts no token, ever.
    AcceptsNothing,
    /// Tokens cannot be renewed for now.
    RenewsNothing,
}

/// The requests that an authorization server has received.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthorizationRecord {
    /// The bodies of registrations.
    pub registrations: Vec<String>,
    /// The parameters of requests to the login page.
    pub authorizations: Vec<BTreeMap<String, String>>,
    /// The fields of requests to the token endpoint; `authorization` is the header.
    pub token_requests: Vec<BTreeMap<String, String>>,
    /// The number of refreshed tokens.
    pub renewals: usize,
    /// The number of refresh tokens that were used twice.
    pub reuses: usize,
    /// The tokens that were revoked.
    pub revoked: Vec<String>,
    /// The number of requests that the protected server refused because of their token.
    pub refusals: usize,
    /// The requests for metadata.
    pub metadata_requests: usize,
}

/// An authorization server that is running in this process. Dropping it stops it.
#[derive(Debug)]
pub struct AuthorizationServer {
    state: Arc<AuthorizationState>,
    server: JoinHandle<()>,
}

/// What the handlers share.
#[derive(Debug)]
struct AuthorizationState {
    url: String,
    options: AuthorizationOptions,
    grants: Mutex<IssuedGrants>,
    record: Mutex<AuthorizationRecord>,
}

impl Default for AuthorizationOptions {
    fn default() -> Self {
        Self {
            lifetime: 3600,
            refreshes: true,
            registers: true,
            reads_documents: false,
            client: None,
            methods: vec!["none".to_owned()],
            revokes: true,
            scopes: Vec::new(),
            challenge_scope: None,
            step_up: None,
            discovery: Discovery::default(),
            fault: None,
        }
    }
}

impl AuthorizationServer {
    /// Starts one on a free port of 127.0.0.1, in tasks of the current runtime.
    pub async fn start(options: AuthorizationOptions) -> Result<Self, TestkitError> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let (grants, record) = Default::default();
        let state = Arc::new(AuthorizationState { url, options, grants, record });
        let router = routes::endpoints(&state).merge(routes::metadata(&state));
        let server = tokio::spawn(async move {
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { state, server })
    }

    /// Its URL, which is its issuer.
    pub fn url(&self) -> &str {
        &self.state.url
    }

    /// The requests so far.
    pub fn record(&self) -> AuthorizationRecord {
        self.state.record.lock().clone()
    }

    /// Expires all access tokens. Refresh tokens stay valid.
    pub fn expire_access_tokens(&self) {
        self.state.grants.lock().expire();
    }

    /// Expires the access tokens of a person. Refresh tokens stay valid.
    pub fn expire_access_tokens_of(&self, person: &str) {
        self.state.grants.lock().expire_of(person);
    }

    /// Who a valid access token belongs to.
    pub fn person_of(&self, access_token: &str) -> Option<String> {
        self.state.grants.lock().person(access_token).map(str::to_owned)
    }

    /// Removes all clients and tokens.
    pub fn forget_everything(&self) {
        *self.state.grants.lock() = IssuedGrants::default();
    }

    /// The valid access tokens.
    pub fn access_tokens(&self) -> Vec<String> {
        self.state.grants.lock().access_tokens()
    }

    /// Adds a token check to a server's router. The refusal says where to get a token.
    pub(crate) fn guard(&self, router: Router, resource: &str) -> Router {
        guard::guarded(&self.state, router, resource)
    }
}

impl Drop for AuthorizationServer {
    fn drop(&mut self) {
        self.server.abort();
    }
}
