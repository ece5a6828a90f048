//! The logins at servers.

use std::fmt;

use serde::Serialize;
use toolgate::setup::AuthorizerError;
use toolgate_config::{ServerAuth, ServerConfig, Transport};
use toolgate_host::one_line;
use toolgate_store::Logins;
use toolgate_upstream::{LoginError, LoginState, LogoutOutcome};

use crate::{failure::Failure, load::Loaded};

/// A login, for people and programs. Nothing of it is secret.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LoginOverview {
    /// The caller whose login it is; `None` for the login that all callers share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) caller: Option<String>,
    /// The server.
    pub(crate) server: String,
    /// The authorization server.
    #[serde(skip_serializing_if = "Option::is_none")]
    issuer: Option<String>,
    /// The granted scopes.
    scopes: Vec<String>,
    /// The scopes that the server has required since then.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    wanted_scopes: Vec<String>,
    /// How long the token is valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds_left: Option<u64>,
    /// Whether it is renewed without a person.
    renewable: bool,
}

impl LoginOverview {
    pub(crate) fn new(server: &str, state: LoginState) -> Self {
        Self {
            caller: None,
            server: server.to_owned(),
            issuer: state.issuer,
            scopes: state.scopes,
            wanted_scopes: state.wanted_scopes,
            seconds_left: state.seconds_left,
            renewable: state.renewable,
        }
    }

    /// Whether somebody has to log in again.
    pub(crate) fn is_over(&self) -> bool {
        self.seconds_left == Some(0) && !self.renewable || !self.wanted_scopes.is_empty()
    }
}

impl fmt::Display for LoginOverview {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("logged in")?;
        if let Some(issuer) = &self.issuer {
            write!(formatter, " at {}", one_line(issuer, 200))?;
        }
        match (self.seconds_left, self.renewable) {
            (_, true) => formatter.write_str(", renewed by itself")?,
            (Some(0), false) => formatter.write_str(", but that is over")?,
            (Some(seconds), false) => write!(formatter, " for {}", duration(seconds))?,
            (None, false) => {}
        }
        if !self.wanted_scopes.is_empty() {
            let wanted = one_line(&self.wanted_scopes.join(" "), 200);
            write!(formatter, "; the server asks for more ({wanted}): log in again")?;
        }
        Ok(())
    }
}

/// The caller that a login from the command line is for: the user of this machine, where each caller has their
/// own login; otherwise it is for all.
pub(crate) fn own_caller(server: &ServerConfig) -> Option<&'static str> {
    (server.settings.auth == ServerAuth::PerCaller).then_some("local")
}

/// The logins of callers.
pub(crate) fn of_callers(logins: &dyn Logins) -> Result<Vec<LoginOverview>, Failure> {
    let stored = logins.list().map_err(|error| Failure::new(error.to_string()))?;
    let shown = stored.into_iter().filter_map(|(key, secret)| {
        let state = LoginState::read(&secret)?;
        let caller = key.caller.as_deref().map(str::to_owned);
        Some(LoginOverview { caller, ..LoginOverview::new(&key.server, state) })
    });
    Ok(shown.collect())
}

/// What a person is told about the end of a login.
pub(crate) fn outcome(outcome: &LogoutOutcome) -> String {
    match outcome {
        LogoutOutcome::NotLoggedIn => "there was no login".to_owned(),
        LogoutOutcome::Revoked => "logged out".to_owned(),
        LogoutOutcome::Forgotten => {
            "the login is deleted here; the authorization server supports no \
                                     revocation, so its tokens stay valid until they expire"
                .to_owned()
        }
        LogoutOutcome::NotRevoked(why) => {
            format!("the login is deleted here; the authorization server did not revoke it ({why})")
        }
    }
}

/// The logins of all servers that can have any.
pub(crate) async fn of_all(loaded: &Loaded) -> Vec<LoginOverview> {
    let mut logins = Vec::new();
    let mut of_callers = loaded.logins().ok().and_then(|stored| of_callers(&*stored).ok());
    let of_callers = of_callers.take().unwrap_or_default();
    for server in loaded.configuration.servers.iter().filter(|server| server.settings.enabled) {
        if server.settings.auth == ServerAuth::PerCaller {
            let own = of_callers.iter().filter(|login| login.server == server.name);
            logins.extend(own.cloned());
            continue;
        }
        let Ok(Transport::Http { url, .. }) = &server.transport else { continue };
        let Ok(authorizer) = loaded.authorizer(server, url, None) else { continue };
        // The row of the server reports a login that cannot be read.
        if let Ok(Some(state)) = authorizer.state().await {
            logins.push(LoginOverview::new(&server.name, state));
        }
    }
    logins
}

impl From<AuthorizerError> for Failure {
    fn from(error: AuthorizerError) -> Self {
        match error {
            AuthorizerError::NoStateFolder => {
                Failure::new(error.to_string()).hint("set TOOLGATE_HOME to a folder")
            }
            AuthorizerError::Login(error) => error.into(),
        }
    }
}

impl From<LoginError> for Failure {
    fn from(error: LoginError) -> Self {
        let failure = Failure::new(error.to_string());
        match error {
            LoginError::Registration(_) => failure.hint(
                "register toolgate there yourself, and write `\"oauth\": { \"clientId\": \"…\" }` into \
                 the server",
            ),
            LoginError::Listen(_) => {
                failure.hint("choose another `redirectPort` under `oauth` of the server")
            }
            LoginError::TimedOut => failure.hint("--timeout gives you more time"),
            _ => failure,
        }
    }
}

fn duration(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}
