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

use std::{
    collections::HashMap,
    fmt::{self, Write as _},
    sync::Arc,
};

use parking_lot::{Mutex, RwLock};
use tokio::{
    sync::{Mutex as AsyncMutex, watch},
    time::Instant,
};
use toolgate_catalog::ServerName;
use toolgate_mcp::client::PERSON_TIMEOUT;
use url::Url;

use super::{callback::CallbackListener, error::LoginError, login::Login};

/// All logins of callers in this process that wait for a browser. All clones share them.
#[derive(Debug, Clone, Default)]
pub struct PendingLogins(Arc<PendingTable>);

#[derive(Debug, Default)]
struct PendingTable {
    /// By their ids.
    logins: Mutex<HashMap<String, Arc<PendingLogin>>>,
    /// The URL of the gateway's pages.
    pages: RwLock<Option<Url>>,
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
    /// Locked by the call that asks the person.
    pub(super) asking: AsyncMutex<()>,
    until: Instant,
}

/// The path below which the pages of a gateway are.
pub const LOGIN_PATH: &str = "/login";
/// Where the browser returns to, below [`LOGIN_PATH`].
pub const CALLBACK: &str = "callback";
/// How many logins may wait at once.
const MAX_PENDING: usize = 10_000;

impl PendingLogins {
    /// Lets browsers open the pages of the gateway at this URL, and return there.
    pub fn serve_at(&self, gateway: Url) {
        *self.0.pages.write() = Some(gateway);
    }

    /// The URL of the gateway's pages.
    pub fn pages(&self) -> Option<Url> {
        self.0.pages.read().clone()
    }

    /// A login by its id.
    pub fn get(&self, id: &str) -> Option<Arc<PendingLogin>> {
        self.0.logins.lock().get(id).filter(|login| login.is_open()).cloned()
    }

    /// The login that a redirect belongs to.
    pub fn answered_by(&self, answer: &Url) -> Option<Arc<PendingLogin>> {
        let state = answer.query_pairs().find(|(name, _)| name == "state")?.1.into_owned();
        let logins = self.0.logins.lock();
        let mut open = logins.values().filter(|login| login.is_open());
        open.find(|login| login.state().as_deref() == Some(&state)).cloned()
    }

    /// Where the browser returns to: a page of the gateway, or else a port of this machine.
    pub(super) async fn redirect(&self, port: Option<u16>) -> Result<Redirect, LoginError> {
        match self.pages() {
            Some(pages) => Ok(Redirect::Page(page(&pages, CALLBACK))),
            None => Ok(Redirect::Port(CallbackListener::bind(port).await?)),
        }
    }

    /// Adds a login. With a port, waits there for the browser in the background.
    pub(super) fn add(
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
        let pending = Arc::new(PendingLogin {
            id: id.clone(),
            server: server.clone(),
            caller: Arc::clone(caller),
            page: login.url().clone(),
            link,
            login: AsyncMutex::new(Some(login)),
            browser: Mutex::default(),
            outcome: watch::Sender::new(None),
            asking: AsyncMutex::default(),
            until: Instant::now() + PERSON_TIMEOUT,
        });
        match redirect {
            Redirect::Page(_) => {
                let mut logins = self.0.logins.lock();
                if logins.len() >= MAX_PENDING {
                    logins.retain(|_, login| login.is_open());
                }
                if logins.len() >= MAX_PENDING {
                    return Err(LoginError::TooMany);
                }
                logins.insert(id, Arc::clone(&pending));
            }
            Redirect::Port(listener) => {
                tokio::spawn(Arc::clone(&pending).wait_at(listener));
            }
        }
        Ok(pending)
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
    pub fn admit_browser(&self) -> Result<String, LoginError> {
        let secret = random()?;
        *self.browser.lock() = Some(secret.clone());
        Ok(secret)
    }

    /// Whether a browser with this secret may end the login.
    pub fn is_admitted(&self, secret: &str) -> bool {
        self.browser.lock().as_deref() == Some(secret)
    }

    /// Ends the login with the redirect of the browser.
    pub async fn finish(&self, answer: &Url) -> Result<(), LoginError> {
        let login = self.login.lock().await.take();
        let login = login.ok_or_else(|| LoginError::Foreign("it was used before".to_owned()))?;
        let finished = login.finish(answer).await;
        let told = finished.as_ref().map(|_| ()).map_err(ToString::to_string);
        self.outcome.send_replace(Some(told));
        finished.map(|_| ())
    }

    /// Waits for the end of the login. An error says why there is none.
    pub(super) async fn ended(&self) -> Result<(), String> {
        let mut outcome = self.outcome.subscribe();
        let ended = tokio::time::timeout_at(self.until, outcome.wait_for(Option::is_some)).await;
        match ended {
            Ok(Ok(outcome)) => (*outcome).clone().unwrap_or(Ok(())),
            _ => Err(LoginError::TimedOut.to_string()),
        }
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

/// 256 random bits.
fn random() -> Result<String, LoginError> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|_| LoginError::NoRandomness)?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}
