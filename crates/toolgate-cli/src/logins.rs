//! Who is logged in where.

use std::{env, fmt, sync::Arc};

use serde::Serialize;
use toolgate_config::{Configuration, ServerEntry, Transport};
use toolgate_store::{Vault, VaultError, VaultKey};
use toolgate_upstream::{
    AuthorizationSettings, Authorizer, CredentialLock, CredentialStore, CredentialStoreError,
    LoginError, LoginState,
};

use crate::{failure::Failure, load};

/// A login, for people and programs. Nothing of it is secret.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LoginOverview {
    /// Where.
    pub(crate) server: String,
    /// Who gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    issuer: Option<String>,
    /// What was granted.
    scopes: Vec<String>,
    /// What the server has asked for since.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    wanted_scopes: Vec<String>,
    /// How long the token is good.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds_left: Option<u64>,
    /// Whether it is renewed without a person.
    renewable: bool,
}

impl LoginOverview {
    pub(crate) fn new(server: &str, state: LoginState) -> Self {
        Self {
            server: server.to_owned(),
            issuer: state.issuer,
            scopes: state.scopes,
            wanted_scopes: state.wanted_scopes,
            seconds_left: state.seconds_left,
            renewable: state.renewable,
        }
    }
}

impl fmt::Display for LoginOverview {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("logged in")?;
        if let Some(issuer) = &self.issuer {
            write!(formatter, " at {}", printable(issuer))?;
        }
        match (self.seconds_left, self.renewable) {
            (_, true) => formatter.write_str(", renewed by itself")?,
            (Some(0), false) => formatter.write_str(", but that is over")?,
            (Some(seconds), false) => write!(formatter, " for {}", duration(seconds))?,
            (None, false) => {}
        }
        if !self.wanted_scopes.is_empty() {
            let wanted = printable(&self.wanted_scopes.join(" "));
            write!(formatter, "; the server asks for more ({wanted}): log in again")?;
        }
        Ok(())
    }
}

/// The logins of all servers that can have any.
pub(crate) async fn of_all(configuration: &Configuration) -> Vec<LoginOverview> {
    let mut logins = Vec::new();
    for server in configuration.servers.iter().filter(|server| server.settings.enabled) {
        let Ok(Transport::Http { url, .. }) = &server.transport else { continue };
        let Ok(authorizer) = authorizer(server, url) else { continue };
        // What cannot be read is said by the server's own row.
        if let Ok(Some(state)) = authorizer.state().await {
            logins.push(LoginOverview::new(&server.name, state));
        }
    }
    logins
}

/// Who logs in at a server with this URL.
pub(crate) fn authorizer(server: &ServerEntry, url: &str) -> Result<Arc<Authorizer>, Failure> {
    let store = load::store().ok_or_else(|| {
        Failure::new("there is no place for logins on this system")
            .hint("set TOOLGATE_HOME to a folder")
    })?;
    let oauth = &server.settings.oauth;
    let settings = AuthorizationSettings {
        client_id: oauth.client_id.clone(),
        client_secret: oauth.client_secret.as_ref().map(|secret| secret.expose().to_owned()),
        client_metadata_url: oauth.client_metadata_url.clone(),
        scopes: oauth.scopes.clone(),
    };
    let keeper = Arc::new(VaultKeeper(store.vault(vault_key())));
    let authorizer = Authorizer::new(server.name.as_str(), url, settings, keeper);
    Ok(authorizer.map(Arc::new)?)
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

/// The vault as upstream wants it.
#[derive(Debug)]
struct VaultKeeper(Vault);

impl CredentialStore for VaultKeeper {
    fn load(&self, name: &str) -> Result<Option<String>, CredentialStoreError> {
        self.0.load(name).map_err(unkept)
    }

    fn save(&self, name: &str, secret: &str) -> Result<(), CredentialStoreError> {
        self.0.save(name, secret).map_err(unkept)
    }

    fn forget(&self, name: &str) -> Result<(), CredentialStoreError> {
        self.0.forget(name).map_err(unkept)
    }

    fn lock(&self, name: &str) -> Result<CredentialLock, CredentialStoreError> {
        self.0.lock(name).map(CredentialLock::new).map_err(unkept)
    }
}

fn unkept(error: VaultError) -> CredentialStoreError {
    CredentialStoreError(match error {
        VaultError::ShortKey => format!("TOOLGATE_VAULT_KEY: {error}"),
        error => error.to_string(),
    })
}

fn vault_key() -> VaultKey {
    match env::var("TOOLGATE_VAULT_KEY") {
        Ok(key) if !key.is_empty() => VaultKey::Given(key),
        _ if env::var_os("TOOLGATE_VAULT").is_some_and(|place| place == "file") => VaultKey::File,
        _ => VaultKey::Keychain,
    }
}

/// What others say is not for a terminal as it is.
fn printable(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(200).collect()
}

fn duration(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}
