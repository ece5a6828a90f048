//! Login with the help of a person, and logout.

use std::{collections::BTreeMap, sync::Arc};

use http::header;
use rmcp::transport::auth::{
    AuthorizationManager, AuthorizationMetadata, AuthorizationMetadataSource, InMemoryStateStore,
    OAuthClientConfig, StateStore as _,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_mcp::{
    client::{TokenProvider as _, bearer_challenge},
    meta, methods, versions,
};
use toolgate_store::LoginKey;
use url::Url;

use super::{
    authorizer::{Authorizer, LoginEvent},
    credentials::{ClientMethod, LoginCredentials, OauthClient, TokenGrant},
    error::{LoginError, plain, shortened},
    guard::GuardedClient,
    renew::{self, RenewError},
};

/// The name under which toolgate registers as a client.
const CLIENT_NAME: &str = "toolgate";

/// A login that waits for the redirect of the browser.
pub struct Login {
    authorizer: Arc<Authorizer>,
    request: LoginRequest,
}

/// What ends a login. Any node can end it, so all of it can be written. Its `Debug` output shows nothing.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct LoginRequest {
    /// The page that the person visits.
    url: Url,
    redirect_uri: String,
    /// Of PKCE.
    verifier: String,
    /// The issuer that the redirect must name if it names any.
    issuer: Option<String>,
    /// Whether the redirect must name the issuer (RFC 9207).
    names_issuer: bool,
    token_endpoint: String,
    revocation_endpoint: Option<String>,
    client: OauthClient,
    scopes: Vec<String>,
}

/// The outcome of a logout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogoutOutcome {
    /// There was no login.
    NotLoggedIn,
    /// It is deleted, and the authorization server revoked it.
    Revoked,
    /// It is deleted. The authorization server has no revocation endpoint, so that the tokens are
    /// valid until they expire.
    Forgotten,
    /// It is deleted. The authorization server did not revoke it, for this reason.
    NotRevoked(String),
}

impl Authorizer {
    /// Discovers the authorization server, registers toolgate if needed, and returns the URL that a
    /// person has to visit. `scopes` replace those of the configuration and of the server; `headers`
    /// are those of the configuration.
    pub async fn begin(
        self: &Arc<Self>,
        redirect_uri: &str,
        scopes: &[String],
        headers: &BTreeMap<String, String>,
    ) -> Result<Login, LoginError> {
        let http = self.http.renewed();
        let probe = probe(&http, &self.url, headers).await?;
        let client = Arc::new(http.clone());
        let mut manager =
            AuthorizationManager::new_with_oauth_http_client(self.url.clone(), client)
                .await
                .map_err(|error| LoginError::Discovery(plain(&error)))?;
        let found = manager
            .resolve_metadata_from_challenge(probe.challenge.as_deref())
            .await
            .map_err(|error| LoginError::Discovery(plain(&error)))?;
        if found.source == AuthorizationMetadataSource::LegacyEndpointFallback && !probe.refused {
            return Err(LoginError::NotAsked);
        }
        let metadata = found.metadata;
        check_endpoints(&http, &metadata)?;
        manager.set_metadata(metadata.clone());
        let scopes = self.choose_scopes(&manager, scopes).await;
        let client = self.register(&mut manager, &metadata, redirect_uri, &scopes).await?;
        let words: Vec<&str> = scopes.iter().map(String::as_str).collect();
        // rmcp makes the verifier, and gives it to its store alone.
        let states = InMemoryStateStore::new();
        manager.set_state_store(states.clone());
        let url = manager
            .get_authorization_url(&words)
            .await
            .map_err(|error| LoginError::Discovery(plain(&error)))?;
        let url =
            Url::parse(&url).map_err(|_| LoginError::Discovery("its page is no URL".into()))?;
        let state = states.load(&parameter(&url, "state").unwrap_or_default()).await;
        let state = state.ok().flatten();
        let state = state.ok_or_else(|| LoginError::Discovery("it has no `state`".into()))?;
        let revocation = field(&metadata, "revocation_endpoint").and_then(Value::as_str);
        let request = LoginRequest {
            url,
            redirect_uri: redirect_uri.to_owned(),
            verifier: state.pkce_verifier,
            issuer: state.expected_issuer,
            names_issuer: state.require_issuer,
            revocation_endpoint: revocation.map(str::to_owned),
            token_endpoint: metadata.token_endpoint,
            client,
            scopes,
        };
        Ok(Login::of(self, request))
    }

    /// Deletes the login, and revokes it if the authorization server supports that.
    pub async fn logout(&self) -> Result<LogoutOutcome, LoginError> {
        let stored = self.stored().await.ok().flatten();
        // Deleted first, so that a failing network does not prevent it.
        self.with_store(|store, key| store.forget(key)).await?;
        let Some(stored) = stored else { return Ok(LogoutOutcome::NotLoggedIn) };
        self.tell(LoginEvent::LoggedOut);
        Ok(match renew::revoke(&self.http.renewed(), &stored).await {
            None => LogoutOutcome::Forgotten,
            Some(Ok(())) => LogoutOutcome::Revoked,
            Some(Err(why)) => LogoutOutcome::NotRevoked(why.to_string()),
        })
    }

    /// The scopes to request: those that the person names, else those that the server names. If the
    /// server has asked for more since, those and the granted ones are added.
    pub(super) async fn choose_scopes(
        &self,
        manager: &AuthorizationManager,
        given: &[String],
    ) -> Vec<String> {
        let chosen = [given, &self.settings.scopes].into_iter().find(|scopes| !scopes.is_empty());
        let mut scopes = match chosen {
            Some(chosen) => chosen.to_vec(),
            None => manager.select_initial_scopes(&[]).await,
        };
        if given.is_empty()
            // Credentials that cannot be read are replaced by this login.
            && let Some(stored) = self.stored().await.ok().flatten()
            && !stored.wanted_scopes.is_empty()
        {
            scopes.extend(stored.scopes.into_iter().chain(stored.wanted_scopes));
        }
        let mut seen = std::collections::HashSet::new();
        scopes.retain(|scope| seen.insert(scope.clone()));
        scopes
    }

    /// The client: the configured one, else the metadata document, else one that is registered now.
    async fn register(
        &self,
        manager: &mut AuthorizationManager,
        metadata: &AuthorizationMetadata,
        redirect_uri: &str,
        scopes: &[String],
    ) -> Result<OauthClient, LoginError> {
        let reads_documents = field(metadata, "client_id_metadata_document_supported")
            .and_then(Value::as_bool)
            .unwrap_or_default();
        let document = self.settings.client_metadata_url.as_ref().filter(|_| reads_documents);
        let config = if let Some(id) = self.settings.client_id.as_ref().or(document) {
            let mut config = OAuthClientConfig::new(id, redirect_uri).with_scopes(scopes.to_vec());
            if self.settings.client_id.is_some() {
                config.client_secret.clone_from(&self.settings.client_secret);
            }
            config
        } else {
            let words: Vec<&str> = scopes.iter().map(String::as_str).collect();
            manager
                .register_client(CLIENT_NAME, redirect_uri, &words)
                .await
                .map_err(|error| LoginError::Registration(plain(&error)))?
        };
        let client = OauthClient {
            id: config.client_id.clone(),
            secret: config.client_secret.clone(),
            method: method(metadata),
        };
        self.redactor().hide(client.secret.clone());
        manager
            .configure_client(config)
            .map_err(|error| LoginError::Registration(plain(&error)))?;
        Ok(client)
    }
}

impl Login {
    /// Continues a login, which another node may have begun.
    pub(super) fn of(authorizer: &Arc<Authorizer>, request: LoginRequest) -> Self {
        authorizer.redactor().hide([request.verifier.clone()]);
        authorizer.redactor().hide(request.client.secret.clone());
        Self { authorizer: Arc::clone(authorizer), request }
    }

    /// Whose login it is.
    pub(super) fn key(&self) -> &LoginKey {
        &self.authorizer.key
    }

    /// What another node needs to end it.
    pub(super) fn request(&self) -> &LoginRequest {
        &self.request
    }

    /// The page that the person has to visit.
    pub fn url(&self) -> &Url {
        &self.request.url
    }

    /// The redirect URL that a person copied from the browser, if it belongs to this login.
    pub fn read_answer(&self, text: &str) -> Option<Url> {
        Url::parse(text.trim()).ok().filter(|answer| self.is_answered_by(answer))
    }

    /// Whether `answer` has the `state` of this login.
    pub fn is_answered_by(&self, answer: &Url) -> bool {
        let state = self.request.state();
        state.is_some() && parameter(answer, "state") == state
    }

    /// Exchanges the code in the redirect URL for tokens, and stores them.
    pub async fn finish(self, answer: &Url) -> Result<LoginCredentials, LoginError> {
        let foreign = |text: &str| LoginError::Foreign(text.to_owned());
        if !self.is_answered_by(answer) {
            return Err(foreign("its `state` is another one"));
        }
        let hidden = ["code", "state"].into_iter().filter_map(|name| parameter(answer, name));
        self.authorizer.redactor().hide(hidden);
        if let Some(error) = parameter(answer, "error") {
            let more = parameter(answer, "error_description");
            let more = more.map(|more| format!(" ({more})")).unwrap_or_default();
            let said = shortened(&format!("{error}{more}"));
            return Err(LoginError::Refused(self.authorizer.redactor().line(&said)));
        }
        let code = parameter(answer, "code").ok_or_else(|| foreign("it has no `code`"))?;
        self.request.check_issuer(parameter(answer, "iss").as_deref())?;
        let granted = self.exchange(&code).await?;
        let credentials = self.credentials(granted);
        self.authorizer.hide(&credentials);
        self.authorizer.save(&credentials).await?;
        self.authorizer.use_login(credentials.clone()).await;
        self.authorizer.tell(LoginEvent::LoggedIn);
        Ok(credentials)
    }

    /// Gets tokens for a code, with the verifier of PKCE.
    async fn exchange(&self, code: &str) -> Result<TokenGrant, LoginError> {
        let LoginRequest { redirect_uri, verifier, token_endpoint, client, .. } = &self.request;
        let resource = self.resource();
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect_uri),
            ("code_verifier", verifier),
            ("resource", &resource),
        ];
        let http = self.authorizer.http.renewed();
        let granted = renew::request_token(&http, token_endpoint, client, &fields).await;
        granted.map_err(|error| {
            LoginError::Exchange(match error {
                RenewError::Over => "it refuses the code or the client".to_owned(),
                RenewError::Failed(why) => self.authorizer.redactor().line(&why),
            })
        })
    }

    fn resource(&self) -> String {
        // rmcp has it in this URL only.
        parameter(self.url(), "resource").unwrap_or_else(|| self.authorizer.url.to_string())
    }

    fn credentials(&self, granted: TokenGrant) -> LoginCredentials {
        let blank = LoginCredentials {
            url: self.authorizer.url.to_string(),
            issuer: self.request.issuer.clone(),
            resource: self.resource(),
            token_endpoint: self.request.token_endpoint.clone(),
            revocation_endpoint: self.request.revocation_endpoint.clone(),
            client: self.request.client.clone(),
            access_token: String::new(),
            refresh_token: None,
            expires_at: None,
            scopes: self.request.scopes.clone(),
            wanted_scopes: Vec::new(),
        };
        blank.renewed(granted)
    }
}

impl LoginRequest {
    /// What the browser returns with.
    pub(super) fn state(&self) -> Option<String> {
        parameter(&self.url, "state")
    }

    /// Refuses the answer of another authorization server than the one that was asked (RFC 9207).
    fn check_issuer(&self, named: Option<&str>) -> Result<(), LoginError> {
        let wrong = match (named, self.issuer.as_deref()) {
            (Some(named), Some(issuer)) if named == issuer => return Ok(()),
            (Some(_), _) => "issuer mismatch: the redirect names another authorization server",
            (None, _) if self.names_issuer => {
                "missing required issuer: the redirect names no authorization server"
            }
            // Older authorization servers name none.
            (None, _) => return Ok(()),
        };
        Err(LoginError::Exchange(wrong.to_owned()))
    }
}

impl std::fmt::Debug for LoginRequest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("LoginRequest").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Login {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Login")
            .field("authorizer", &self.authorizer)
            .finish_non_exhaustive()
    }
}

/// The response of a server to a request without a token.
pub(super) struct LoginProbe {
    refused: bool,
    pub(super) challenge: Option<String>,
}

/// Sends the first requests of both eras without a token, to get the challenge of the server. A server
/// that accepts the handshake may refuse the request after it.
pub(super) async fn probe(
    http: &GuardedClient,
    url: &Url,
    headers: &BTreeMap<String, String>,
) -> Result<LoginProbe, LoginError> {
    let client = json!({ "name": CLIENT_NAME, "version": env!("CARGO_PKG_VERSION") });
    let hello = json!({ "protocolVersion": versions::LATEST_LEGACY, "capabilities": {}, "clientInfo": client });
    let own_meta = json!({
        meta::PROTOCOL_VERSION: versions::MODERN,
        meta::CLIENT_INFO: client,
        meta::CLIENT_CAPABILITIES: {},
    });
    let first = probe_with(http, url, headers, methods::INITIALIZE, &hello).await?;
    for (method, params) in
        [(methods::DISCOVER, json!({ "_meta": own_meta })), (methods::TOOLS_LIST, json!({}))]
    {
        if first.refused {
            break;
        }
        // Only the first request decides whether the server can be reached.
        if let Ok(probe) = probe_with(http, url, headers, method, &params).await
            && probe.refused
        {
            return Ok(probe);
        }
    }
    Ok(first)
}

/// Sends one request without a token.
async fn probe_with(
    http: &GuardedClient,
    url: &Url,
    headers: &BTreeMap<String, String>,
    method: &'static str,
    params: &Value,
) -> Result<LoginProbe, LoginError> {
    let message = json!({ "jsonrpc": "2.0", "id": 0, "method": method, "params": params });
    let request = http::Request::post(url.as_str()).body(message.to_string().into_bytes());
    let mut request = request.map_err(|error| LoginError::Discovery(error.to_string()))?;
    request.headers_mut().extend(headers.iter().filter_map(|(name, value)| {
        let name = header::HeaderName::try_from(name).ok()?;
        Some((name, header::HeaderValue::try_from(value).ok()?))
    }));
    let always =
        [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    let newer = [("mcp-protocol-version", versions::MODERN), ("mcp-method", method)];
    let newer = newer.into_iter().filter(|_| method == methods::DISCOVER);
    for (name, value) in always.into_iter().chain(newer) {
        request.headers_mut().insert(name, header::HeaderValue::from_static(value));
    }
    let sent = http.send(request).await;
    let response = sent.map_err(|error| LoginError::Discovery(error.to_string()))?;
    let refused = matches!(response.status().as_u16(), 401 | 403);
    let challenge = bearer_challenge(response.headers()).filter(|_| refused);
    Ok(LoginProbe { refused, challenge })
}

/// Checks the endpoints that toolgate contacts or opens in a browser, which follows other schemes too.
pub(super) fn check_endpoints(
    http: &GuardedClient,
    metadata: &AuthorizationMetadata,
) -> Result<(), LoginError> {
    let endpoints = [
        Some(&metadata.authorization_endpoint),
        Some(&metadata.token_endpoint),
        metadata.registration_endpoint.as_ref(),
    ];
    for endpoint in endpoints.into_iter().flatten() {
        let url = Url::parse(endpoint);
        let url = url.map_err(|_| LoginError::Discovery("an endpoint is not a URL".to_owned()))?;
        http.check(&url).map_err(|error| LoginError::Discovery(error.to_string()))?;
    }
    Ok(())
}

/// How the secret is sent: as rmcp sends it when it exchanges the code.
pub(super) fn method(metadata: &AuthorizationMetadata) -> ClientMethod {
    let methods = field(metadata, "token_endpoint_auth_methods_supported");
    let methods = methods.and_then(Value::as_array);
    let has =
        |name: &str| methods.is_some_and(|methods| methods.iter().any(|method| method == name));
    if has("client_secret_post") && !has("client_secret_basic") {
        ClientMethod::Post
    } else {
        ClientMethod::Basic
    }
}

pub(super) fn field<'m>(metadata: &'m AuthorizationMetadata, name: &str) -> Option<&'m Value> {
    metadata.additional_fields.get(name)
}

pub(super) fn parameter(url: &Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}
