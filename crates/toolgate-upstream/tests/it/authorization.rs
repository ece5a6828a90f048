//! Servers that require a login.

mod discovery;
mod tokens;

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
};

use parking_lot::Mutex;
use toolgate_store::{LoginKey, LoginLock, LoginStoreError, Logins};
use toolgate_testkit::{
    AuthorizationOptions, AuthorizationServer, Builtin, Fixture, RunningHttp, visit,
};
use toolgate_upstream::{
    AuthorizationSettings, Authorizer, CallbackListener, Endpoint, HttpEndpoint, LoginCredentials,
    LoginError, ServerSpec,
};

use crate::support::{NAME, within};

/// Stores logins in memory.
#[derive(Clone, Default)]
pub(crate) struct MemoryLogins {
    stored: Arc<Mutex<HashMap<LoginKey, String>>>,
}

impl fmt::Debug for MemoryLogins {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "MemoryLogins({} entries)", self.stored.lock().len())
    }
}

impl Logins for MemoryLogins {
    fn load(&self, key: &LoginKey) -> Result<Option<String>, LoginStoreError> {
        Ok(self.stored.lock().get(key).cloned())
    }

    fn save(&self, key: &LoginKey, secret: &str) -> Result<(), LoginStoreError> {
        self.stored.lock().insert(key.clone(), secret.to_owned());
        Ok(())
    }

    fn replace(&self, key: &LoginKey, secret: &str) -> Result<bool, LoginStoreError> {
        let mut stored = self.stored.lock();
        let known = stored.get_mut(key);
        Ok(known.map(|known| secret.clone_into(known)).is_some())
    }

    fn forget(&self, key: &LoginKey) -> Result<(), LoginStoreError> {
        self.stored.lock().remove(key);
        Ok(())
    }

    fn list(&self) -> Result<Vec<(LoginKey, String)>, LoginStoreError> {
        let stored = self.stored.lock();
        let own = stored.iter().filter(|(key, _)| key.caller.is_some());
        Ok(own.map(|(key, secret)| (key.clone(), secret.clone())).collect())
    }

    fn lock(&self, _key: &LoginKey) -> Result<LoginLock, LoginStoreError> {
        // One process, one authorizer: its own lock is enough.
        Ok(LoginLock::new(()))
    }
}

/// A guarded server, its authorization server, and somebody who can log in there.
struct Guarded {
    authorization: AuthorizationServer,
    server: RunningHttp,
    keeper: MemoryLogins,
    settings: AuthorizationSettings,
}

impl Guarded {
    async fn start(options: AuthorizationOptions) -> Self {
        let fixture = Fixture::new("guarded").with_builtins([Builtin::Echo, Builtin::Counter]);
        Self::with(fixture, options).await
    }

    async fn with(fixture: Fixture, options: AuthorizationOptions) -> Self {
        let authorization = AuthorizationServer::start(options).await.unwrap();
        let address = ([127, 0, 0, 1], 0).into();
        let server = fixture.serve_http_for(address, &authorization).await.unwrap();
        let settings = AuthorizationSettings::default();
        Self { authorization, server, keeper: MemoryLogins::default(), settings }
    }

    /// As a process of its own would see it.
    fn authorizer(&self) -> Arc<Authorizer> {
        self.authorizer_at(self.server.url())
    }

    fn authorizer_at(&self, url: &str) -> Arc<Authorizer> {
        let keeper = Arc::new(self.keeper.clone());
        let key = LoginKey::shared(NAME, url);
        Arc::new(Authorizer::new(key, self.settings.clone(), keeper).unwrap())
    }

    fn spec(&self) -> ServerSpec {
        self.spec_at(self.server.url())
    }

    fn spec_at(&self, url: &str) -> ServerSpec {
        let authorizer = Some(self.authorizer_at(url) as _);
        let endpoint = HttpEndpoint { authorizer, ..HttpEndpoint::new(url) };
        ServerSpec::new(NAME, Endpoint::Http(endpoint))
    }

    async fn login(&self) -> Result<LoginCredentials, LoginError> {
        self.login_for(&[]).await
    }

    /// A person logs in, with a browser that follows wherever it is sent.
    async fn login_for(&self, scopes: &[&str]) -> Result<LoginCredentials, LoginError> {
        let scopes: Vec<String> = scopes.iter().map(ToString::to_string).collect();
        let listener = CallbackListener::bind(None).await?;
        let authorizer = self.authorizer();
        let (redirect, headers) = (listener.redirect_uri(), BTreeMap::new());
        let begun = authorizer.begin(&redirect, &scopes, &headers);
        let login = within("the start of the login", begun).await?;
        let page = visit(login.url().as_str()).await.unwrap();
        let back = page.location.unwrap_or_else(|| panic!("{} {}", page.status, page.body));
        let browser = tokio::spawn(async move { visit(&back).await.unwrap() });
        let answer = within("the browser", listener.answer(&login)).await?;
        assert_eq!(browser.await.unwrap().status, 200);
        within("the end of the login", login.finish(&answer)).await
    }
}
