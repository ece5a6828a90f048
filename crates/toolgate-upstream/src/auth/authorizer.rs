//! The tokens of one server.

use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use rmcp::transport::auth::WWWAuthenticateParams;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;
use toolgate_mcp::client::{
    AuthorizationError, ConnectFailure, Redactor, TokenProvider, TokenVerdict, place,
};
use toolgate_store::{LoginKey, LoginLock, LoginStoreError, Logins};
use url::Url;

use super::{
    credentials::{LoginCredentials, now},
    error::LoginError,
    guard::GuardedClient,
    machine::TokenSource,
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
    /// How toolgate gets a token.
    pub source: TokenSource,
}

/// Provides the access token of one server, renews it, and reports when a person has to log in.
pub struct Authorizer {
    pub(super) key: LoginKey,
    pub(super) url: Url,
    pub(super) settings: AuthorizationSettings,
    pub(super) store: Arc<dyn Logins>,
    pub(super) http: GuardedClient,
    redactor: Redactor,
    /// Locked while tokens are renewed: one renewal at a time serves all callers.
    cached: AsyncMutex<CachedCredentials>,
    /// When the store was read last.
    read_at: Mutex<Option<Instant>>,
    /// A renewed token that the server has not accepted yet.
    unproven: Mutex<Option<UnprovenToken>>,
    /// Whether the last refusal can be settled by a login alone.
    needs_login: AtomicBool,
    pub(super) events: OnceLock<LoginEvents>,
}

/// A renewed token that the server has not accepted yet.
struct UnprovenToken {
    token: String,
    /// How many renewed tokens in a row the server has not accepted, this one included.
    in_row: u32,
}

/// If a server refuses so many renewed tokens in a row, renewing once more would not help. One alone may have been
/// withdrawn before it was used.
const MOST_UNPROVEN: u32 = 2;

/// Gets what happens to a login, for the audit log.
pub(super) type LoginEvents = Arc<dyn Fn(LoginEvent) + Send + Sync>;

/// What happened to a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginEvent {
    /// A person logged in.
    LoggedIn,
    /// It was not renewed, for this reason.
    NotRenewed(String),
    /// It was deleted.
    LoggedOut,
}

/// The credentials in memory.
#[derive(Default)]
enum CachedCredentials {
    /// The store has not been read yet.
    #[default]
    Unread,
    Read(Option<Box<LoginCredentials>>),
}

/// How long the login of a caller is used before the store is read again: it may have been revoked in
/// another process.
const RECHECK: Duration = Duration::from_secs(1);

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

impl LoginState {
    /// The state of a login, from its stored secret.
    pub fn read(secret: &str) -> Option<Self> {
        serde_json::from_str(secret).ok().map(Self::of)
    }

    fn of(stored: LoginCredentials) -> Self {
        Self {
            seconds_left: stored.expires_at.map(|end| end.saturating_sub(now())),
            renewable: stored.refresh_token.is_some(),
            issuer: stored.issuer,
            scopes: stored.scopes,
            wanted_scopes: stored.wanted_scopes,
        }
    }
}

impl Authorizer {
    /// The login of this key.
    pub fn new(
        key: LoginKey,
        settings: AuthorizationSettings,
        store: Arc<dyn Logins>,
    ) -> Result<Self, LoginError> {
        let url = Url::parse(&key.url).map_err(|_| LoginError::NoUrl)?;
        // The same URL in another spelling has the same login.
        let key = LoginKey { url: url.as_str().into(), ..key };
        let http =
            GuardedClient::new(&url).map_err(|error| LoginError::Client(error.to_string()))?;
        let secrets = settings.client_secret.clone().into_iter().chain(settings.source.secrets());
        let redactor = Redactor::new(secrets);
        Ok(Self {
            key,
            url,
            settings,
            store,
            http,
            redactor,
            cached: AsyncMutex::default(),
            read_at: Mutex::default(),
            unproven: Mutex::default(),
            needs_login: AtomicBool::new(false),
            events: OnceLock::new(),
        })
    }

    /// The state of the login; `None` where there is none.
    pub async fn state(&self) -> Result<Option<LoginState>, LoginError> {
        Ok(self.stored().await?.map(LoginState::of))
    }

    /// Whether there is a login, and the server has not refused it since.
    pub(crate) async fn is_logged_in(&self) -> Result<bool, LoginError> {
        if !self.needs_login()
            && !self.is_due()
            && matches!(&*self.cached.lock().await, CachedCredentials::Read(Some(_)))
        {
            return Ok(true);
        }
        let Some(stored) = self.stored().await? else {
            // It was revoked, perhaps by another process.
            *self.cached.lock().await = CachedCredentials::Read(None);
            return Ok(false);
        };
        let mut cached = self.cached.lock().await;
        if !self.needs_login() {
            if !matches!(&*cached, CachedCredentials::Read(Some(_))) {
                *cached = CachedCredentials::Read(Some(Box::new(stored)));
            }
            return Ok(true);
        }
        // The person may have logged in meanwhile, in another process.
        let is_refused = matches!(&*cached, CachedCredentials::Read(Some(known))
            if known.access_token == stored.access_token);
        if !is_refused {
            *cached = CachedCredentials::Read(Some(Box::new(stored)));
            self.needs_login.store(false, Ordering::Relaxed);
        }
        Ok(!is_refused)
    }

    /// Whether a login can settle the last refusal.
    pub(crate) fn needs_login(&self) -> bool {
        self.needs_login.load(Ordering::Relaxed)
    }

    /// Reads the store again before the login is next used: the person may have logged in at another node.
    pub(super) async fn reread(&self) {
        *self.cached.lock().await = CachedCredentials::Unread;
        *self.unproven.lock() = None;
        self.needs_login.store(false, Ordering::Relaxed);
    }

    /// Uses a new login from now on.
    pub(super) async fn use_login(&self, credentials: LoginCredentials) {
        *self.cached.lock().await = CachedCredentials::Read(Some(Box::new(credentials)));
        *self.read_at.lock() = Some(Instant::now());
        *self.unproven.lock() = None;
        self.needs_login.store(false, Ordering::Relaxed);
    }

    pub(super) fn tell(&self, event: LoginEvent) {
        if let Some(events) = self.events.get() {
            events(event);
        }
    }

    /// Whether the store has to be read again before the login is used.
    fn is_due(&self) -> bool {
        let is_old = |at: Option<Instant>| at.is_none_or(|at| at.elapsed() >= RECHECK);
        self.key.caller.is_some() && is_old(*self.read_at.lock())
    }

    async fn current(&self) -> Result<Option<String>, AuthorizationError> {
        let mut cached = self.cached.lock().await;
        if matches!(*cached, CachedCredentials::Unread) || self.is_due() {
            let stored = self.stored().await.map_err(|error| self.unreadable(&error))?;
            *cached = CachedCredentials::Read(stored.map(Box::new));
        }
        let is_machine = self.settings.source.is_machine();
        let CachedCredentials::Read(Some(credentials)) = &*cached else {
            return if is_machine {
                self.renew(&mut cached, None).await.map(Some)
            } else {
                Ok(None)
            };
        };
        let is_renewed = credentials.refresh_token.is_some() || is_machine;
        if credentials.is_fresh() || (!is_renewed && !credentials.is_expired()) {
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
        if self.unproven_in_row(used) >= MOST_UNPROVEN {
            // A person may have logged in meanwhile, in another process.
            return self.stored_token(&mut cached, used).await?.ok_or_else(|| self.login_needed());
        }
        self.renew(&mut cached, used).await
    }

    /// How many renewed tokens in a row the server has not accepted, if `used` is the last of them.
    fn unproven_in_row(&self, used: Option<&str>) -> u32 {
        let unproven = self.unproven.lock();
        let last = unproven.as_ref().filter(|last| Some(last.token.as_str()) == used);
        last.map_or(0, |last| last.in_row)
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
        let mut error = self.login_error(&format!("asks for more rights than it was given{what}"));
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
        let renewed = match cached {
            _ if self.settings.source.is_machine() => self.grant().await,
            CachedCredentials::Read(Some(credentials)) => {
                renew::renew(&self.http.renewed(), credentials).await
            }
            _ => return Err(self.login_error("asks for a login")),
        };
        match renewed {
            Ok(renewed) => {
                self.hide(&renewed);
                // A token that cannot be stored is used until this process ends.
                match self.replace(&renewed).await {
                    Ok(true) => {}
                    Ok(false) => {
                        // Somebody has revoked the login while it was renewed.
                        *cached = CachedCredentials::Read(None);
                        let _ = renew::revoke(&self.http.renewed(), &renewed).await;
                        return Err(self.login_needed());
                    }
                    Err(error) => {
                        tracing::warn!(server = %self.key.server, %error, "the renewed login is not stored");
                    }
                }
                let token = renewed.access_token.clone();
                let in_row = self.unproven_in_row(used) + 1;
                *self.unproven.lock() = Some(UnprovenToken { token: token.clone(), in_row });
                *cached = CachedCredentials::Read(Some(Box::new(renewed)));
                Ok(token)
            }
            Err(RenewError::Over) => {
                self.tell(LoginEvent::NotRenewed("it is over".to_owned()));
                Err(self.login_needed())
            }
            Err(RenewError::Failed(why)) => {
                self.tell(LoginEvent::NotRenewed(self.redactor.line(&why)));
                Err(self.not_renewed(&why))
            }
        }
    }

    /// Locks the credentials, so that no other process renews them at the same time.
    async fn lock(&self) -> Result<LoginLock, AuthorizationError> {
        let lock = self.with_store(|store, key| store.lock(key)).await;
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
        let text = self.with_store(|store, key| store.load(key)).await?;
        *self.read_at.lock() = Some(Instant::now());
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
        let text = written(credentials)?;
        Ok(self.with_store(move |store, key| store.save(key, &text)).await?)
    }

    /// Stores renewed credentials. `false` if the login was revoked meanwhile; there is none to revoke where no
    /// person logs in.
    async fn replace(&self, credentials: &LoginCredentials) -> Result<bool, LoginError> {
        if self.settings.source.is_machine() {
            return self.save(credentials).await.map(|()| true);
        }
        let text = written(credentials)?;
        Ok(self.with_store(move |store, key| store.replace(key, &text)).await?)
    }

    /// Adds the secrets of the credentials to the redactor.
    pub(super) fn hide(&self, credentials: &LoginCredentials) {
        self.redactor.hide(credentials.secrets());
    }

    /// Calls the store on a thread that may block.
    pub(super) async fn with_store<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&dyn Logins, &LoginKey) -> Result<T, LoginStoreError> + Send + 'static,
    ) -> Result<T, LoginStoreError> {
        let (store, key) = (Arc::clone(&self.store), self.key.clone());
        let asked = tokio::task::spawn_blocking(move || ask(store.as_ref(), &key)).await;
        asked.unwrap_or_else(|_| Err(LoginStoreError("the store did not answer".to_owned())))
    }

    fn login_error(&self, what: &str) -> AuthorizationError {
        self.needs_login.store(true, Ordering::Relaxed);
        let action = match &self.key.caller {
            _ if self.settings.source.is_machine() => "check `oauth` of the server".to_owned(),
            Some(_) => "log in: the next call says where".to_owned(),
            None => format!("run `toolgate login {}`", self.key.server),
        };
        self.authorization_error(&format!("{} {what}", place(self.url.as_str())), action)
    }

    fn not_renewed(&self, why: &str) -> AuthorizationError {
        self.authorization_error(
            &format!("the login at {} could not be renewed: {why}", place(self.url.as_str())),
            if self.settings.source.is_machine() {
                "try again, or check `oauth` of the server".to_owned()
            } else {
                format!("try again, or run `toolgate login {}`", self.key.server)
            },
        )
    }

    fn unreadable(&self, error: &LoginError) -> AuthorizationError {
        self.authorization_error(
            &format!("the stored login cannot be read: {error}"),
            format!("run `toolgate login {}`", self.key.server),
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
                && !self.is_due()
                && (cached.is_some() || !self.settings.source.is_machine())
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
        if unproven.as_ref().is_some_and(|unproven| unproven.token == token) {
            *unproven = None;
        }
    }

    fn login_needed(&self) -> AuthorizationError {
        self.login_error("no longer accepts the login")
    }

    fn redactor(&self) -> &Redactor {
        &self.redactor
    }
}

impl fmt::Debug for Authorizer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Authorizer")
            .field("server", &self.key.server)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for AuthorizationSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AuthorizationSettings")
            .field("client_id", &self.client_id)
            .field("client_metadata_url", &self.client_metadata_url)
            .field("scopes", &self.scopes)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

fn written(credentials: &LoginCredentials) -> Result<String, LoginStoreError> {
    serde_json::to_string(credentials)
        .map_err(|_| LoginStoreError("the credentials cannot be written".to_owned()))
}

/// The scopes that a challenge names.
fn scopes_of(challenge: &WWWAuthenticateParams) -> Vec<String> {
    // A header can have any number of them.
    const MOST: usize = 64;
    let scopes = challenge.scope.as_deref().unwrap_or_default().split_whitespace();
    scopes.take(MOST).map(str::to_owned).collect()
}
