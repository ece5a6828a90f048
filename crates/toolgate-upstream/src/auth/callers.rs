//! The logins of callers at one server.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, OnceLock},
};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Mutex as AsyncMutex;
use tokio_util::sync::CancellationToken;
use toolgate_catalog::ServerName;
use toolgate_mcp::{
    client::{
        AuthorizationError, ConnectFailure, InputRequest, Redactor, TokenProvider, TokenVerdict,
        place,
    },
    methods,
};
use toolgate_store::{LoginKey, Logins};

use super::{
    authorizer::{AuthorizationSettings, Authorizer, LoginEvent},
    error::LoginError,
    pending::{LinkAnswer, PendingLogin, PendingLogins},
};
use crate::input_handler::{InputHandler, can_answer};

/// Gives each caller their own login at one server.
///
/// > **Invariant:** an [`Authorizer`] of a caller gives its tokens to connections of that caller alone.
pub struct CallerLogins {
    server: ServerName,
    key: LoginKey,
    settings: CallerLoginSettings,
    callers: Mutex<HashMap<Arc<str>, Arc<CallerRecord>>>,
    observer: OnceLock<Arc<CallerLoginObserver>>,
}

/// How callers log in at a server.
#[derive(Debug, Clone)]
pub struct CallerLoginSettings {
    /// The settings of each login.
    pub authorization: AuthorizationSettings,
    /// Where logins are stored.
    pub store: Arc<dyn Logins>,
    /// The headers of requests to the server.
    pub headers: BTreeMap<String, String>,
    /// The port of 127.0.0.1 that browsers return to; any free one if it is `None`.
    pub redirect_port: Option<u16>,
    /// Where logins wait for a browser.
    pub pending: PendingLogins,
}

/// Gets what happens to the logins of callers.
pub(crate) type CallerLoginObserver = dyn Fn(&ServerName, &str, LoginEvent) + Send + Sync;

#[derive(Debug)]
struct CallerRecord {
    authorizer: Arc<Authorizer>,
    /// The login that waits for a browser.
    pending: AsyncMutex<Option<Arc<PendingLogin>>>,
}

/// Why a caller has no login.
#[derive(Debug)]
pub(crate) enum NoLogin {
    /// The server requires none.
    NotAsked,
    /// The person has to open this link, and to call again.
    Open(String),
    /// It failed, or the person declined.
    Failed(String),
    /// The caller cancelled.
    Cancelled,
}

impl CallerLogins {
    /// The logins at the server called `server`.
    pub fn new(server: &str, url: &str, settings: CallerLoginSettings) -> Arc<Self> {
        let (key, server) = (LoginKey::shared(server, url), server.into());
        let pending = settings.pending.clone();
        let (callers, observer) = (Mutex::default(), OnceLock::new());
        let logins = Arc::new(Self { server, key, settings, callers, observer });
        pending.register(&logins);
        logins
    }

    /// Reports what happens to logins. Only the first observer counts.
    pub(crate) fn observe(&self, observer: Arc<CallerLoginObserver>) {
        let _ = self.observer.set(observer);
    }

    /// The login of a caller.
    pub fn authorizer(&self, caller: &Arc<str>) -> Result<Arc<Authorizer>, LoginError> {
        Ok(Arc::clone(&self.record(caller)?.authorizer))
    }

    /// Provides no token, for the connection that no caller has.
    pub fn nobody(&self) -> Arc<dyn TokenProvider> {
        Arc::new(NobodysTokens { url: Arc::clone(&self.key.url), redactor: Redactor::default() })
    }

    /// Why the connection that no caller has is refused.
    pub(crate) fn nobody_is_logged_in(&self) -> ConnectFailure {
        login_needed(&self.key.url)
    }

    pub(crate) async fn is_logged_in(&self, caller: &Arc<str>) -> Result<bool, LoginError> {
        self.record(caller)?.authorizer.is_logged_in().await
    }

    /// Whether a login can settle what failed.
    pub(crate) fn needs_login(&self, caller: &Arc<str>) -> bool {
        self.record(caller).is_ok_and(|record| record.authorizer.needs_login())
    }

    /// Asks the person behind the caller to log in, and waits until they have. If the client cannot open a
    /// link for them, the error has the link.
    pub(crate) async fn log_in(
        &self,
        caller: &Arc<str>,
        handler: Option<&dyn InputHandler>,
        cancel: &CancellationToken,
    ) -> Result<(), NoLogin> {
        let begun = tokio::select! {
            () = cancel.cancelled() => return Err(NoLogin::Cancelled),
            begun = self.begin(caller) => begun,
        };
        let pending = match begun {
            Ok(Some(pending)) => pending,
            Ok(None) => return Ok(()),
            Err(LoginError::NotAsked) => return Err(NoLogin::NotAsked),
            Err(error) => return Err(NoLogin::Failed(error.to_string())),
        };
        let question = self.question(&pending);
        let handler = handler.filter(|it| can_answer(it.capabilities(), &question));
        let Some(handler) = handler else { return Err(NoLogin::Open(pending.link().to_string())) };
        let link = || NoLogin::Open(pending.link().to_string());
        let answer = pending.answer_of(handler);
        let asking = answer.get_or_init(|| async {
            let Ok(answer) = handler.answer(question).await else { return LinkAnswer::None };
            match answer.get("action").and_then(Value::as_str) {
                Some("accept") => LinkAnswer::Accepted,
                _ => LinkAnswer::Declined,
            }
        });
        let ended = pending.ended();
        let (mut asking, mut ended) = (std::pin::pin!(asking), std::pin::pin!(ended));
        let (mut is_accepted, mut is_ended) = (false, false);
        // Both: the person may log in although the client that asked is gone.
        while !is_accepted || !is_ended {
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(NoLogin::Cancelled),
                outcome = &mut ended, if !is_ended => {
                    let done = json!({ "elicitationId": pending.id() });
                    handler.notify(methods::ELICITATION_COMPLETE, done);
                    outcome.map_err(NoLogin::Failed)?;
                    is_ended = true;
                }
                answer = &mut asking, if !is_accepted => match answer {
                    LinkAnswer::Accepted => is_accepted = true,
                    LinkAnswer::Declined => {
                        return Err(NoLogin::Failed("the person did not log in".to_owned()));
                    }
                    LinkAnswer::None => return Err(link()),
                }
            }
        }
        if !handler.is_there() {
            let gone = "the client did not wait for the login, so nothing was called";
            return Err(NoLogin::Failed(gone.to_owned()));
        }
        // Another node may have ended it.
        if let Ok(record) = self.record(caller)
            && !matches!(record.authorizer.is_logged_in().await, Ok(true))
        {
            record.authorizer.reread().await;
        }
        Ok(())
    }

    /// Begins a login, or returns the one that the caller has begun; `None` if the caller has logged in
    /// meanwhile.
    async fn begin(&self, caller: &Arc<str>) -> Result<Option<Arc<PendingLogin>>, LoginError> {
        let record = self.record(caller)?;
        let mut pending = record.pending.lock().await;
        if record.authorizer.is_logged_in().await? {
            return Ok(None);
        }
        if let Some(pending) = pending.as_ref().filter(|pending| pending.is_open()) {
            return Ok(Some(Arc::clone(pending)));
        }
        let CallerLoginSettings { pending: waiting, headers, redirect_port, .. } = &self.settings;
        if let Some(begun) = waiting.begun_elsewhere(&record.authorizer.key).await? {
            *pending = Some(Arc::clone(&begun));
            return Ok(Some(begun));
        }
        let redirect = waiting.redirect(*redirect_port).await?;
        let login = record.authorizer.begin(&redirect.uri(), &[], headers).await?;
        let begun = waiting.add(&self.server, caller, login, redirect).await?;
        *pending = Some(Arc::clone(&begun));
        Ok(Some(begun))
    }

    /// What the person is asked. It is about toolgate's own page, or a page that the server names.
    fn question(&self, pending: &PendingLogin) -> InputRequest {
        let host = pending.page().host_str().unwrap_or_default();
        let message = format!(
            "Log in at server {:?}, so that your calls use your own account. You log in at {host:?}. Open the \
             link yourself, and pass it on to nobody.",
            self.server.as_str()
        );
        let params = json!({
            "mode": "url",
            "message": message,
            "url": pending.link().as_str(),
            "elicitationId": pending.id(),
        });
        InputRequest { method: methods::ELICITATION_CREATE.to_owned(), params: Some(params) }
    }

    fn record(&self, caller: &Arc<str>) -> Result<Arc<CallerRecord>, LoginError> {
        let mut callers = self.callers.lock();
        if let Some(record) = callers.get(caller) {
            return Ok(Arc::clone(record));
        }
        let CallerLoginSettings { authorization, store, .. } = &self.settings;
        let key = self.key.of(caller);
        let authorizer = Authorizer::new(key, authorization.clone(), Arc::clone(store))?;
        if let Some(observer) = self.observer.get() {
            let (observer, server) = (Arc::clone(observer), self.server.clone());
            let caller = Arc::clone(caller);
            let _ = authorizer.events.set(Arc::new(move |event| observer(&server, &caller, event)));
        }
        let record =
            CallerRecord { authorizer: Arc::new(authorizer), pending: AsyncMutex::default() };
        let record = Arc::new(record);
        callers.insert(Arc::clone(caller), Arc::clone(&record));
        Ok(record)
    }
}

impl fmt::Debug for CallerLogins {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("CallerLogins").field("server", &self.server).finish_non_exhaustive()
    }
}

/// Provides no token: of the connection that no caller has.
#[derive(Debug)]
struct NobodysTokens {
    url: Arc<str>,
    redactor: Redactor,
}

impl TokenProvider for NobodysTokens {
    fn token(self: Arc<Self>) -> BoxFuture<'static, Result<Option<String>, AuthorizationError>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    fn refused(
        self: Arc<Self>,
        status: u16,
        _challenge: Option<String>,
        _used: Option<String>,
    ) -> BoxFuture<'static, TokenVerdict> {
        let verdict = match status {
            401 => TokenVerdict::Failed(self.login_needed()),
            _ => TokenVerdict::Unrelated,
        };
        Box::pin(std::future::ready(verdict))
    }

    fn accepted(&self, _token: &str) {}

    fn login_needed(&self) -> AuthorizationError {
        AuthorizationError { failure: login_needed(&self.url), only_this_request: false }
    }

    fn redactor(&self) -> &Redactor {
        &self.redactor
    }
}

fn login_needed(url: &str) -> ConnectFailure {
    let reason = format!("each caller logs in at {}", place(url));
    ConnectFailure {
        is_final: true,
        ..ConnectFailure::new(reason, "the first call of a caller says where")
    }
}
