//! The tokens of one server.

use std::{fmt, sync::Arc};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use rmcp::transport::auth::WWWAuthenticateParams;
use tokio::sync::Mutex as AsyncMutex;
use toolgate_catalog::ServerName;
use toolgate_mcp::client::{
    AuthorizationError, ConnectFailure, Redactor, TokenProvider, TokenVerdict, place,
};
use url::Url;

use super::{
    credential_store::{CredentialLock, CredentialStore, CredentialStoreError},
    credentials::{LoginCredentials, now},
    error::LoginError,
    guard::GuardedClient,
    renew::{self, RenewError},
};

/// The configuration of logins at a server. The secret is not shown.
#[derive(Clone, Default)]
pub struct AuthorizationSettings {
    /// The id of a client that was registered beforehand.
    pub client_id: Option<String>,
    /// The secret that goes with it.
    pub client_secret: Option<String>,
    /// The URL of a client id metadata document (CIMD), for authorization servers that support it.
    pub client_metadata_url: Option<String>,
    /// The scopes to request instead of those that the server names.
    pub scopes: Vec<String>,
}

/// Provides the access token of one server, renews it, and reports when a person has to log in.
pub struct Authorizer {
    pub(super) server: ServerName,
    pub(super) url: Url,
    pub(super) settings: AuthorizationSettings,
    pub(super) store: Arc<dyn CredentialStore>,
    pub(super) http: GuardedClient,
    redactor: Redactor,
    /// Locked while tokens are renewed: one renewal at a time serves all callers.
    cached: AsyncMutex<CachedCredentials>,
    /// A renewed token that the server has not accepted yet. If it refuses that one too, renewing
    /// once more would not help.
    unproven: Mutex<Option<String>>,
}

/// The credentials in memory.
#[derive(Default)]
enum CachedCredentials {
    /// The store has not been read yet.
    #[default]
    Unread,
    Read(Option<Box<LoginCredentials>>),
}

/// The state of a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginState {
    /// The issuer, if it is known.
    pub issuer: Option<String>,
    /// The granted scopes.
    pub scopes: Vec<String>,
    /// The scopes that the server has asked for since. Another login requests them.
    pub wanted_scopes: Vec<String>,
    /// For how many seconds the access token is valid, if that is known.
    pub seconds_left: Option<u64>,
    /// Whether it is renewed without a person.
    pub renewable: bool,
}

impl Authorizer {
    /// The logins at `url`, which is the server called `server`.
    pub fn new(
        server: impl Into<ServerName>,
        url: &str,
        settings: AuthorizationSettings,
        store: Arc<dyn CredentialStore>,
    ) -> Result<Self, LoginError> {
        let url = Url::parse(url).map_err(|_| LoginError::NoUrl)?;
        let http =
            GuardedClient::new(&url).map_err(|error| LoginError::Client(error.to_string()))?;
        let redactor = Redactor::new(settings.client_secret.clone());
        Ok(Self {
            server: server.into(),
            url,
            settings,
            store,
            http,
            redactor,
            cached: AsyncMutex::default(),
            unproven: Mutex::default(),
        })
    }

    /// The state of the login; `None` where there is none.
    pub async fn state(&self) -> Result<Option<LoginState>, LoginError> {
        Ok(self.stored().await?.map(|stored| LoginState {
            seconds_left: stored.expires_at.map(|end| end.saturating_sub(now())),
            renewable: stored.refresh_token.is_some(),
            issuer: stored.issuer,
            scopes: stored.scopes,
            wanted_scopes: stored.wanted_scopes,
        }))
    }

    async fn current(&self) -> Result<Option<String>, AuthorizationError> {
        let mut cached = self.cached.lock().await;
        if matches!(*cached, CachedCredentials::Unread) {
            let stored = self.stored().await.map_err(|error| self.unreadable(&error))?;
            *cached = CachedCredentials::Read(stored.map(Box::new));
        }
        let CachedCredentials::Read(Some(credentials)) = &*cached else { return Ok(None) };
        if credentials.is_fresh()
            || (credentials.refresh_token.is_none() && !credentials.is_expired())
        {
            return Ok(Some(credentials.access_token.clone()));
        }
        let still_good = (!credentials.is_expired()).then(|| credentials.access_token.clone());
        match self.renew(&mut cached, None).await {
            Ok(token) => Ok(Some(token)),
            Err(error) => still_good.map(Some).ok_or(error),
        }
    }

    /// Returns another token than the refused one.
    async fn another_token(&self, used: Option<&str>) -> Result<String, AuthorizationError> {
        let mut cached = self.cached.lock().await;
        if let CachedCredentials::Read(Some(credentials)) = &*cached
            && Some(credentials.access_token.as_str()) != used
            && credentials.is_fresh()
        {
            // Another request was refused before, and has renewed the token.
            return Ok(credentials.access_token.clone());
        }
        if used.is_some() && self.unproven.lock().as_deref() == used {
            // A person may have logged in meanwhile, in another process.
            return self.stored_token(&mut cached, used).await?.ok_or_else(|| self.login_needed());
        }
        self.renew(&mut cached, used).await
    }

    /// Returns a token with more rights, if another login has stored one.
    async fn more_rights(
        &self,
        used: Option<&str>,
        wanted: Vec<String>,
    ) -> Result<String, AuthorizationError> {
        let mut cached = self.cached.lock().await;
        let _lock = self.lock().await?;
        if let Some(token) = self.stored_token(&mut cached, used).await? {
            return Ok(token);
        }
        let asked = wanted.join(" ");
        if let CachedCredentials::Read(Some(credentials)) = &mut *cached {
            let new = wanted.into_iter().filter(|scope| !credentials.wanted_scopes.contains(scope));
            let new: Vec<String> = new.collect();
            if !new.is_empty() {
                credentials.wanted_scopes.extend(new);
                // Without it, the next login requests what the server names.
                let _ = self.save(credentials).await;
            }
        }
        let asked = super::error::shortened(&asked);
        let what = if asked.is_empty() { String::new() } else { format!(" ({asked})") };
        let mut error = self.needs_login(&format!("asks for more rights than it was given{what}"));
        error.only_this_request = true;
        Err(error)
    }

    /// Renews, unless what is stored is another token than `used` already.
    async fn renew(
        &self,
        cached: &mut CachedCredentials,
        used: Option<&str>,
    ) -> Result<String, AuthorizationError> {
        let known = match cached {
            CachedCredentials::Read(Some(known)) => Some(known.access_token.clone()),
            _ => None,
        };
        let _lock = self.lock().await?;
        if let Some(token) = self.stored_token(cached, used.or(known.as_deref())).await? {
            return Ok(token);
        }
        let CachedCredentials::Read(Some(credentials)) = cached else {
            return Err(self.needs_login("asks for a login"));
        };
        match renew::renew(&self.http.renewed(), credentials).await {
            Ok(renewed) => {
                self.hide(&renewed);
                // A token that cannot be stored is used until this process ends.
                if let Err(error) = self.save(&renewed).await {
                    tracing::warn!(server = %self.server, %error, "the renewed login is not stored");
                }
                let token = renewed.access_token.clone();
                *self.unproven.lock() = Some(token.clone());
                *cached = CachedCredentials::Read(Some(Box::new(renewed)));
                Ok(token)
            }
            Err(RenewError::Over) => Err(self.login_needed()),
            Err(RenewError::Failed(why)) => Err(self.not_renewed(&why)),
        }
    }

    /// Locks the credentials, so that no other process renews them at the same time.
    async fn lock(&self) -> Result<CredentialLock, AuthorizationError> {
        let lock = self.with_store(|store, name| store.lock(name)).await;
        lock.map_err(|error| self.unreadable(&error.into()))
    }

    /// Reads the stored credentials again. Returns their token if it is valid and not `used`.
    async fn stored_token(
        &self,
        cached: &mut CachedCredentials,
        used: Option<&str>,
    ) -> Result<Option<String>, AuthorizationError> {
        let stored = self.stored().await.map_err(|error| self.unreadable(&error))?;
        let another = stored
            .as_ref()
            .filter(|stored| Some(stored.access_token.as_str()) != used && stored.is_fresh())
            .map(|stored| stored.access_token.clone());
        *cached = CachedCredentials::Read(stored.map(Box::new));
        Ok(another)
    }

    /// The stored credentials for this server and URL.
    pub(super) async fn stored(&self) -> Result<Option<LoginCredentials>, LoginError> {
        let text = self.with_store(|store, name| store.load(name)).await?;
        // Credentials that cannot be read are of another version. A login replaces them.
        let stored: Option<LoginCredentials> =
            text.and_then(|text| serde_json::from_str(&text).ok());
        let stored = stored.filter(|stored| stored.url == self.url.as_str());
        if let Some(stored) = &stored {
            self.hide(stored);
        }
        Ok(stored)
    }

    /// Stores credentials.
    pub(super) async fn save(&self, credentials: &LoginCredentials) -> Result<(), LoginError> {
        let text = serde_json::to_string(credentials)
            .map_err(|_| CredentialStoreError("the credentials cannot be written".to_owned()))?;
        Ok(self.with_store(move |store, name| store.save(name, &text)).await?)
    }

    /// Adds the secrets of the credentials to the redactor.
    pub(super) fn hide(&self, credentials: &LoginCredentials) {
        self.redactor.hide(credentials.secrets());
    }

    /// Calls the store on a thread that may block.
    pub(super) async fn with_store<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&dyn CredentialStore, &str) -> Result<T, CredentialStoreError> + Send + 'static,
    ) -> Result<T, CredentialStoreError> {
        let store = Arc::clone(&self.store);
        // Two configurations can have servers of one name at different URLs.
        let name = format!("{}\n{}", self.server, self.url);
        let asked = tokio::task::spawn_blocking(move || ask(store.as_ref(), &name)).await;
        asked.unwrap_or_else(|_| Err(CredentialStoreError("the store did not answer".to_owned())))
    }

    fn needs_login(&self, what: &str) -> AuthorizationError {
        self.authorization_error(
            &format!("{} {what}", place(self.url.as_str())),
            format!("run `toolgate login {}`", self.server),
        )
    }

    fn not_renewed(&self, why: &str) -> AuthorizationError {
        self.authorization_error(
            &format!("the login at {} could not be renewed: {why}", place(self.url.as_str())),
            format!("try again, or run `toolgate login {}`", self.server),
        )
    }

    fn unreadable(&self, error: &LoginError) -> AuthorizationError {
        self.authorization_error(
            &format!("the stored login cannot be read: {error}"),
            format!("run `toolgate login {}`", self.server),
        )
    }

    fn authorization_error(&self, reason: &str, action: String) -> AuthorizationError {
        let reason = self.redactor.line(reason);
        AuthorizationError {
            failure: ConnectFailure::new(reason, action),
            only_this_request: false,
        }
    }
}

impl TokenProvider for Authorizer {
    fn token(self: Arc<Self>) -> BoxFuture<'static, Result<Option<String>, AuthorizationError>> {
        Box::pin(async move {
            if let CachedCredentials::Read(cached) = &*self.cached.lock().await
                && cached.as_ref().is_none_or(|cached| cached.is_fresh())
            {
                return Ok(cached.as_ref().map(|cached| cached.access_token.clone()));
            }
            // In a task, so that a cancelled call does not lose a renewed token.
            let this = Arc::clone(&self);
            let current = tokio::spawn(async move { this.current().await });
            current.await.unwrap_or_else(|_| Err(self.not_renewed("it was interrupted")))
        })
    }

    fn refused(
        self: Arc<Self>,
        status: u16,
        challenge: Option<String>,
        used: Option<String>,
    ) -> BoxFuture<'static, TokenVerdict> {
        Box::pin(async move {
            let challenge = challenge.map(|text| WWWAuthenticateParams::parse(&text, &self.url));
            let wanted = match (status, &challenge) {
                (401, _) => Vec::new(),
                (403, Some(challenge)) if challenge.is_insufficient_scope() => scopes_of(challenge),
                _ => return TokenVerdict::Unrelated,
            };
            let this = Arc::clone(&self);
            let judged = tokio::spawn(async move {
                match status {
                    401 => this.another_token(used.as_deref()).await,
                    _ => this.more_rights(used.as_deref(), wanted).await,
                }
            });
            match judged.await {
                Ok(Ok(token)) => TokenVerdict::Retry(token),
                Ok(Err(error)) => TokenVerdict::Failed(error),
                Err(_) => TokenVerdict::Failed(self.not_renewed("it was interrupted")),
            }
        })
    }

    fn accepted(&self, token: &str) {
        let mut unproven = self.unproven.lock();
        if unproven.as_deref() == Some(token) {
            *unproven = None;
        }
    }

    fn login_needed(&self) -> AuthorizationError {
        self.needs_login("no longer accepts the login")
    }

    fn redactor(&self) -> &Redactor {
        &self.redactor
    }
}

impl fmt::Debug for Authorizer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Authorizer").field("server", &self.server).finish_non_exhaustive()
    }
}

impl fmt::Debug for AuthorizationSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AuthorizationSettings")
            .field("client_id", &self.client_id)
            .field("client_metadata_url", &self.client_metadata_url)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// The scopes that a challenge names.
fn scopes_of(challenge: &WWWAuthenticateParams) -> Vec<String> {
    // A header can have any number of them.
    const MOST: usize = 64;
    let scopes = challenge.scope.as_deref().unwrap_or_default().split_whitespace();
    scopes.take(MOST).map(str::to_owned).collect()
}
