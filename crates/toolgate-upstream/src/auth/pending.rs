//! The logins of callers that wait for a browser.
//!
//! Somebody else may open the link of a login, and log in with their own account. Then the caller would
//! use the account of somebody else. Two measures prevent that:
//!
//! - Without pages of a gateway, the browser returns to a port of 127.0.0.1. Only a browser on the machine
//!   of the caller reaches it.
//! - With pages of a gateway, the link leads to a page that the person opens as the caller
//!   ([`PendingLogin::admit_browser`]). The browser that does so gets a secret, and only the browser with
//!   this secret ends the login.
//!
//! In a fleet a browser may reach any node. So what waits is in the shared store too ([`WaitingLogins`]), and
//! any node ends it. The calls that wait for it, on whatever node, hear of the end.

use std::{
    collections::HashMap,
    fmt::{self, Write as _},
    sync::{Arc, Weak},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};
use tokio::{
    sync::{Mutex as AsyncMutex, Notify, OnceCell, watch},
    time::Instant,
};
use toolgate_catalog::ServerName;
use toolgate_mcp::client::PERSON_TIMEOUT;
use toolgate_store::{
    LoginKey, LoginStoreError, LoginWait, Logins, WaitingLogin, WaitingLogins, WhichLogin,
};
use url::Url;

use super::{
    authorizer::{AuthorizationSettings, Authorizer},
    callback::CallbackListener,
    callers::CallerLogins,
    error::LoginError,
    login::{Login, LoginRequest},
};
use crate::input_handler::InputHandler;

/// All logins of callers in this process that wait for a browser. All clones share them.
#[derive(Debug, Clone, Default)]
pub struct PendingLogins(Arc<PendingTable>);

#[derive(Debug, Default)]
struct PendingTable {
    /// By their ids.
    logins: Mutex<HashMap<String, Arc<PendingLogin>>>,
    /// The URL of the gateway's pages.
    pages: RwLock<Option<Url>>,
    /// What other nodes share.
    shared: Option<Arc<SharedPending>>,
    /// Those who have the logins of callers, so that a login that another node began is ended for them.
    logins_of_callers: Mutex<Vec<Weak<CallerLogins>>>,
}

/// The logins that wait at all nodes.
#[derive(Debug)]
struct SharedPending {
    waiting: Arc<dyn WaitingLogins>,
    logins: Arc<dyn Logins>,
    /// Woken when a login has ended somewhere.
    ended: Arc<Notify>,
}

/// What is stored of a login that waits.
#[derive(Serialize, Deserialize)]
struct StoredLogin {
    link: Url,
    request: LoginRequest,
}

/// A login of a caller that waits for a browser.
pub struct PendingLogin {
    id: String,
    server: ServerName,
    caller: Arc<str>,
    /// The page of the authorization server.
    page: Url,
    /// What the person opens.
    link: Url,
    login: AsyncMutex<Option<Login>>,
    /// The secret of the browser that was admitted last.
    browser: Mutex<Option<String>>,
    outcome: watch::Sender<Option<Result<(), String>>>,
    /// What the clients of calls answered, by the addresses of their input handlers. They are kept while calls of the
    /// handler wait.
    answers: Mutex<HashMap<usize, Weak<OnceCell<LinkAnswer>>>>,
    until: Instant,
    /// Where the other nodes have it.
    shared: Option<Arc<SharedPending>>,
}

/// What a client answered that was asked to open a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkAnswer {
    Accepted,
    Declined,
    /// It cannot be asked, or did not answer.
    None,
}

/// The path below which the pages of a gateway are.
pub const LOGIN_PATH: &str = "/login";
/// Where the browser returns to, below [`LOGIN_PATH`].
pub const CALLBACK: &str = "callback";
/// How many logins may wait at once.
const MAX_PENDING: usize = 10_000;
/// Between two looks at a login that another node may end, if nothing was heard of it.
const LOOK: Duration = Duration::from_millis(500);

impl PendingLogins {
    /// Shares the logins that wait with other nodes.
    pub fn shared(waiting: Arc<dyn WaitingLogins>, logins: Arc<dyn Logins>) -> Self {
        let ended = Arc::new(Notify::new());
        let woken = Arc::downgrade(&ended);
        waiting.on_end(Box::new(move || {
            if let Some(woken) = woken.upgrade() {
                woken.notify_waiters();
            }
        }));
        let shared = Some(Arc::new(SharedPending { waiting, logins, ended }));
        Self(Arc::new(PendingTable { shared, ..PendingTable::default() }))
    }

    /// Lets those who have the logins of callers know of logins that other nodes began.
    pub(super) fn register(&self, logins: &Arc<CallerLogins>) {
        let mut all = self.0.logins_of_callers.lock();
        all.retain(|known| known.strong_count() > 0);
        all.push(Arc::downgrade(logins));
    }

    /// Lets browsers open the pages of the gateway at this URL, and return there.
    pub fn serve_at(&self, gateway: Url) {
        *self.0.pages.write() = Some(gateway);
    }

    /// The URL of the gateway's pages.
    pub fn pages(&self) -> Option<Url> {
        self.0.pages.read().clone()
    }

    /// A login by its id.
    pub async fn get(&self, id: &str) -> Result<Option<Arc<PendingLogin>>, LoginError> {
        if self.0.shared.is_some() {
            let id = id.to_owned();
            return self.find(move |waiting| waiting.find(WhichLogin::Id(&id))).await;
        }
        Ok(self.0.logins.lock().get(id).filter(|login| login.is_open()).cloned())
    }

    /// The login that a redirect belongs to.
    pub async fn answered_by(&self, answer: &Url) -> Result<Option<Arc<PendingLogin>>, LoginError> {
        let state = answer.query_pairs().find(|(name, _)| name == "state");
        let Some(state) = state.map(|(_, state)| state.into_owned()) else { return Ok(None) };
        if self.0.shared.is_some() {
            return self.find(move |waiting| waiting.find(WhichLogin::State(&state))).await;
        }
        let logins = self.0.logins.lock();
        let mut open = logins.values().filter(|login| login.is_open());
        Ok(open.find(|login| login.state().as_deref() == Some(&state)).cloned())
    }

    /// The login of this key that another node has begun.
    pub(super) async fn begun_elsewhere(
        &self,
        key: &LoginKey,
    ) -> Result<Option<Arc<PendingLogin>>, LoginError> {
        if self.0.shared.is_none() || self.pages().is_none() {
            return Ok(None);
        }
        let key = key.clone();
        self.find(move |waiting| waiting.find(WhichLogin::Key(&key))).await
    }

    /// A login of the shared store, which this process may know.
    async fn find(
        &self,
        ask: impl FnOnce(&dyn WaitingLogins) -> Result<Option<WaitingLogin>, LoginStoreError>
        + Send
        + 'static,
    ) -> Result<Option<Arc<PendingLogin>>, LoginError> {
        let Some(shared) = &self.0.shared else { return Ok(None) };
        match shared.ask(ask).await? {
            Some(found) => self.restored(shared, &found),
            None => Ok(None),
        }
    }

    /// The login that another node has stored, as one of this process.
    fn restored(
        &self,
        shared: &Arc<SharedPending>,
        found: &WaitingLogin,
    ) -> Result<Option<Arc<PendingLogin>>, LoginError> {
        if let Some(known) = self.0.logins.lock().get(&found.id) {
            return Ok(Some(Arc::clone(known)));
        }
        let Some(caller) = found.key.caller.clone() else { return Ok(None) };
        // A version that this one does not know.
        let Ok(stored) = serde_json::from_str::<StoredLogin>(&found.secret) else {
            return Ok(None);
        };
        let login = Login::of(&self.authorizer(shared, &found.key, &caller)?, stored.request);
        let left = found.expires.saturating_sub(now());
        let pending = PendingLogin::new(
            found.id.clone(),
            (&found.key.server.as_ref().into(), &caller),
            login,
            stored.link,
            Instant::now() + Duration::from_millis(left),
            Some(Arc::clone(shared)),
        );
        let pending = Arc::new(pending);
        self.keep(&pending)?;
        Ok(Some(pending))
    }

    /// Whoever uses the login on this node, so that it is known at once, and written to the audit log.
    fn authorizer(
        &self,
        shared: &SharedPending,
        key: &LoginKey,
        caller: &Arc<str>,
    ) -> Result<Arc<Authorizer>, LoginError> {
        let all: Vec<_> =
            self.0.logins_of_callers.lock().iter().filter_map(Weak::upgrade).collect();
        for logins in all.iter().rev() {
            let authorizer = logins.authorizer(caller)?;
            if authorizer.key == *key {
                return Ok(authorizer);
            }
        }
        let settings = AuthorizationSettings::default();
        Ok(Arc::new(Authorizer::new(key.clone(), settings, Arc::clone(&shared.logins))?))
    }

    fn keep(&self, pending: &Arc<PendingLogin>) -> Result<(), LoginError> {
        let mut logins = self.0.logins.lock();
        if logins.len() >= MAX_PENDING {
            logins.retain(|_, login| login.is_open());
        }
        if logins.len() >= MAX_PENDING {
            return Err(LoginError::TooMany);
        }
        logins.insert(pending.id.clone(), Arc::clone(pending));
        Ok(())
    }

    /// Where the browser returns to: a page of the gateway, or else a port of this machine.
    pub(super) async fn redirect(&self, port: Option<u16>) -> Result<Redirect, LoginError> {
        match self.pages() {
            Some(pages) => Ok(Redirect::Page(page(&pages, CALLBACK))),
            None => Ok(Redirect::Port(CallbackListener::bind(port).await?)),
        }
    }

    /// Adds a login. With a port, waits there for the browser in the background. If another node was faster,
    /// returns what that one has begun.
    pub(super) async fn add(
        &self,
        server: &ServerName,
        caller: &Arc<str>,
        login: Login,
        redirect: Redirect,
    ) -> Result<Arc<PendingLogin>, LoginError> {
        let id = random()?;
        let link = match (&redirect, self.pages()) {
            (Redirect::Page(_), Some(pages)) => page(&pages, &id),
            _ => login.url().clone(),
        };
        let is_page = matches!(redirect, Redirect::Page(_));
        let shared = self.0.shared.clone().filter(|_| is_page);
        if let Some(shared) = &shared {
            let stored = StoredLogin { link: link.clone(), request: login.request().clone() };
            let unwritten = |_| LoginStoreError("the login cannot be written".to_owned());
            let waiting = WaitingLogin {
                id: id.clone(),
                key: login.key().clone(),
                state: login.request().state().unwrap_or_default(),
                secret: serde_json::to_string(&stored).map_err(unwritten)?,
                expires: now() + u64::try_from(PERSON_TIMEOUT.as_millis()).unwrap_or(u64::MAX),
            };
            if let Some(faster) = shared.ask(move |store| store.add(&waiting)).await?
                && let Some(faster) = self.restored(shared, &faster)?
            {
                return Ok(faster);
            }
        }
        let until = Instant::now() + PERSON_TIMEOUT;
        let pending = Arc::new(PendingLogin::new(id, (server, caller), login, link, until, shared));
        match redirect {
            Redirect::Page(_) => self.keep(&pending)?,
            Redirect::Port(listener) => {
                tokio::spawn(Arc::clone(&pending).wait_at(listener));
            }
        }
        Ok(pending)
    }
}

impl SharedPending {
    /// Asks the shared store on a thread that may wait.
    async fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&dyn WaitingLogins) -> Result<T, LoginStoreError> + Send + 'static,
    ) -> Result<T, LoginStoreError> {
        let waiting = Arc::clone(&self.waiting);
        let asked = tokio::task::spawn_blocking(move || ask(&*waiting)).await;
        asked.unwrap_or_else(|_| Err(LoginStoreError("the store did not answer".to_owned())))
    }
}

/// Where a browser returns to.
#[derive(Debug)]
pub(super) enum Redirect {
    Page(Url),
    Port(CallbackListener),
}

impl Redirect {
    pub(super) fn uri(&self) -> String {
        match self {
            Self::Page(url) => url.to_string(),
            Self::Port(listener) => listener.redirect_uri(),
        }
    }
}

impl PendingLogin {
    fn new(
        id: String,
        (server, caller): (&ServerName, &Arc<str>),
        login: Login,
        link: Url,
        until: Instant,
        shared: Option<Arc<SharedPending>>,
    ) -> Self {
        Self {
            id,
            server: server.clone(),
            caller: Arc::clone(caller),
            page: login.url().clone(),
            link,
            login: AsyncMutex::new(Some(login)),
            browser: Mutex::default(),
            outcome: watch::Sender::new(None),
            answers: Mutex::default(),
            until,
            shared,
        }
    }

    /// The server.
    pub fn server(&self) -> &ServerName {
        &self.server
    }

    /// Whose login it is.
    pub fn caller(&self) -> &str {
        &self.caller
    }

    /// The page of the authorization server. Only a browser of the caller is sent there.
    pub fn page(&self) -> &Url {
        &self.page
    }

    /// What the person opens.
    pub fn link(&self) -> &Url {
        &self.link
    }

    /// The id of the login, which is in its link.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Notes that the browser is one of the caller. Returns the secret that the browser ends the login with.
    /// An earlier browser can no longer end it.
    pub async fn admit_browser(&self) -> Result<String, LoginError> {
        let secret = random()?;
        match &self.shared {
            Some(shared) => {
                let (id, secret) = (self.id.clone(), secret.clone());
                shared.ask(move |waiting| waiting.admit(&id, &secret)).await?;
            }
            None => *self.browser.lock() = Some(secret.clone()),
        }
        Ok(secret)
    }

    /// Whether a browser with this secret may end the login.
    pub async fn is_admitted(&self, secret: &str) -> Result<bool, LoginError> {
        let Some(shared) = &self.shared else {
            return Ok(self.browser.lock().as_deref() == Some(secret));
        };
        let (id, secret) = (self.id.clone(), secret.to_owned());
        Ok(shared.ask(move |waiting| waiting.is_admitted(&id, &secret)).await?)
    }

    /// Ends the login with the redirect of the browser.
    pub async fn finish(&self, answer: &Url) -> Result<(), LoginError> {
        let used = || LoginError::Foreign("it was used before".to_owned());
        if let Some(shared) = &self.shared {
            let id = self.id.clone();
            if !shared.ask(move |waiting| waiting.take(&id)).await? {
                return Err(used());
            }
        }
        let login = self.login.lock().await.take().ok_or_else(used)?;
        let finished = login.finish(answer).await;
        let told = finished.as_ref().map(|_| ()).map_err(ToString::to_string);
        self.outcome.send_replace(Some(told.clone()));
        if let Some(shared) = &self.shared {
            let id = self.id.clone();
            let tell = move |waiting: &dyn WaitingLogins| {
                waiting.end(&id, told.as_ref().copied().map_err(String::as_str))
            };
            // If this fails, the calls at other nodes wait until the link is no longer valid.
            if let Err(error) = shared.ask(tell).await {
                tracing::warn!(server = %self.server, %error, "other nodes do not hear of a login");
            }
        }
        finished.map(|_| ())
    }

    /// Waits for the end of the login. An error says why there is none.
    pub(super) async fn ended(&self) -> Result<(), String> {
        let mut outcome = self.outcome.subscribe();
        let here = async {
            let ended = outcome.wait_for(Option::is_some).await;
            ended.map_or(Ok(()), |ended| (*ended).clone().unwrap_or(Ok(())))
        };
        let ended = async {
            tokio::select! {
                ended = here => ended,
                ended = self.ended_elsewhere() => ended,
            }
        };
        let late = || Err(LoginError::TimedOut.to_string());
        tokio::time::timeout_at(self.until, ended).await.unwrap_or_else(|_| late())
    }

    /// Waits until another node has ended the login.
    async fn ended_elsewhere(&self) -> Result<(), String> {
        let Some(shared) = &self.shared else { return std::future::pending().await };
        loop {
            let woken = shared.ended.notified();
            let mut woken = std::pin::pin!(woken);
            // From here on no end is missed.
            woken.as_mut().enable();
            let id = self.id.clone();
            match shared.ask(move |waiting| waiting.outcome(&id)).await {
                Ok(LoginWait::Ended(outcome)) => {
                    self.outcome.send_if_modified(|known| {
                        let is_new = known.is_none();
                        known.get_or_insert_with(|| outcome.clone());
                        is_new
                    });
                    return outcome;
                }
                Ok(LoginWait::Gone) => return Err(LoginError::TimedOut.to_string()),
                // The store may be back soon.
                Ok(LoginWait::Open) | Err(_) => {}
            }
            let _ = tokio::time::timeout(LOOK, woken).await;
        }
    }

    /// The answer of the client behind an input handler. Calls of one request share it, such as those of a script: the
    /// first of them asks. Every other request asks its own client, which may not know of the first.
    pub(super) fn answer_of(&self, handler: &dyn InputHandler) -> Arc<OnceCell<LinkAnswer>> {
        let address = std::ptr::from_ref(handler).cast::<()>().addr();
        let mut answers = self.answers.lock();
        answers.retain(|_, answer| answer.strong_count() > 0);
        if let Some(known) = answers.get(&address).and_then(Weak::upgrade) {
            return known;
        }
        let answer = Arc::new(OnceCell::new());
        answers.insert(address, Arc::downgrade(&answer));
        answer
    }

    /// Whether the person can still log in.
    pub(super) fn is_open(&self) -> bool {
        Instant::now() < self.until && self.outcome.borrow().is_none()
    }

    async fn wait_at(self: Arc<Self>, listener: CallbackListener) {
        let answering = async {
            let login = self.login.lock().await;
            match &*login {
                Some(login) => listener.answer(login).await,
                None => Err(LoginError::TimedOut),
            }
        };
        if let Ok(Ok(answer)) = tokio::time::timeout_at(self.until, answering).await {
            // Whoever waits gets the outcome.
            let _ = self.finish(&answer).await;
        }
    }

    fn state(&self) -> Option<String> {
        let found = self.page.query_pairs().find(|(name, _)| name == "state");
        found.map(|(_, state)| state.into_owned())
    }
}

impl fmt::Debug for PendingLogin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, caller, .. } = self;
        let mut debug = formatter.debug_struct("PendingLogin");
        debug.field("server", server).field("caller", caller).finish_non_exhaustive()
    }
}

/// A page of the gateway. A proxy may have put a path in front of it.
fn page(pages: &Url, name: &str) -> Url {
    let mut url = pages.clone();
    url.set_path(&format!("{}{LOGIN_PATH}/{name}", pages.path().trim_end_matches('/')));
    url
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// 256 random bits.
fn random() -> Result<String, LoginError> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|_| LoginError::NoRandomness)?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}
