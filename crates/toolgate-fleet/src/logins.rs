//! The logins at servers, and those that wait for a browser. The database has them encrypted, and never has the key.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use toolgate_store::{
    LoginKey, LoginLock, LoginStoreError, LoginWait, Logins, SecretSeal, VaultError, WaitingLogin,
    WaitingLogins, WhichLogin,
};

use crate::{
    database::{FleetError, PLACE},
    node::{BUMP, Node},
    now,
};

/// The topic of logins that have ended.
const TOPIC: &str = "waiting logins";
/// How long a node waits for another one that renews the same login: a few requests.
const RENEWAL_TIMEOUT: Duration = Duration::from_mins(1);
/// Logins that one node renews at once. Each needs a connection meanwhile.
pub(crate) const RENEWALS: usize = 4;
/// A node that has taken a login and not ended it for so long is dead.
const TAKEN_MILLISECONDS: i64 = 60_000;
/// What the fingerprint of the key is of.
const KEY: &str = "key of logins";

/// The logins of the fleet.
#[derive(Debug)]
pub(crate) struct SharedLogins {
    node: Arc<Node>,
    seal: SecretSeal,
    renewals: Arc<Semaphore>,
    /// Whether the key is known to be that of the other nodes.
    is_checked: AtomicBool,
}

/// A login, before it is encrypted.
#[derive(Serialize, Deserialize)]
struct Content {
    caller: Option<String>,
    server: String,
    url: String,
    secret: String,
    /// Of a login that waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    waiting: Option<Waiting>,
}

#[derive(Serialize, Deserialize)]
struct Waiting {
    id: String,
    state: String,
}

impl SharedLogins {
    pub(crate) fn new(node: Arc<Node>, seal: SecretSeal, renewals: Arc<Semaphore>) -> Self {
        Self { node, seal, renewals, is_checked: AtomicBool::new(false) }
    }

    fn with<'w, T, F>(
        &'w self,
        work: impl FnOnce(deadpool_postgres::Object) -> F,
    ) -> Result<T, LoginStoreError>
    where
        F: Future<Output = Result<T, FleetError>> + 'w,
    {
        self.check_key()?;
        self.node.database.with(work).map_err(failed)
    }

    /// Fails if the logins in the database were encrypted with another key.
    fn check_key(&self) -> Result<(), LoginStoreError> {
        if self.is_checked.load(Ordering::Relaxed) {
            return Ok(());
        }
        let own = self.seal.label(KEY);
        let is_same = self.node.database.with(|connection| async move {
            // Where there are no logins, there is nothing that another key could have encrypted.
            let note = "INSERT INTO fingerprint (name, value) VALUES ($1, $2)
                ON CONFLICT (name) DO UPDATE SET value = excluded.value
                WHERE NOT EXISTS (SELECT 1 FROM login)";
            connection.execute(note, &[&KEY, &own]).await?;
            let same = "SELECT value = $2 FROM fingerprint WHERE name = $1";
            Ok(connection.query_one(same, &[&KEY, &own]).await?.get::<_, bool>(0))
        });
        if !is_same.map_err(failed)? {
            let other = "the logins in the shared database were encrypted with another key; give this node the \
                         TOOLGATE_VAULT_KEY of the others";
            return Err(LoginStoreError(other.to_owned()));
        }
        self.is_checked.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn label(&self, key: &LoginKey) -> String {
        let name = serde_json::json!(["login", key.caller, key.server, key.url]);
        self.seal.label(&name.to_string())
    }

    /// Encrypts a login under a label.
    fn sealed(
        &self,
        label: &str,
        key: &LoginKey,
        secret: &str,
        waiting: Option<Waiting>,
    ) -> Result<String, LoginStoreError> {
        let content = Content {
            caller: key.caller.as_deref().map(str::to_owned),
            server: key.server.to_string(),
            url: key.url.to_string(),
            secret: secret.to_owned(),
            waiting,
        };
        let text = serde_json::to_string(&content).map_err(|_| VaultError::Crypto)?;
        Ok(self.seal.seal(label, &text)?)
    }

    fn opened(&self, label: &str, sealed: &str) -> Result<(LoginKey, Content), LoginStoreError> {
        let text = self.seal.open(label, sealed)?;
        let content: Content = serde_json::from_str(&text).map_err(|_| VaultError::OtherKey)?;
        let key = LoginKey {
            caller: content.caller.as_deref().map(Into::into),
            server: content.server.as_str().into(),
            url: content.url.as_str().into(),
        };
        Ok((key, content))
    }

    fn waiting_label(&self, what: &str, value: &str) -> String {
        self.seal.label(&serde_json::json!(["waiting", what, value]).to_string())
    }

    /// Begins a transaction that has the lock of a login, and ends with its connection.
    async fn locked(
        &self,
        label: &str,
        permit: OwnedSemaphorePermit,
    ) -> Result<LoginLock, FleetError> {
        let (client, connection) = self.node.database.own_connection().await?;
        self.node.database.spawn(async move {
            // Its end is seen by the client.
            let _ = connection.await;
        });
        let timeouts = format!(
            "SET idle_in_transaction_session_timeout = {0}; SET lock_timeout = {0}; SET statement_timeout = {0}",
            RENEWAL_TIMEOUT.as_millis()
        );
        client.batch_execute(&timeouts).await?;
        loop {
            // Its own transaction, so that others can see the row and wait for it.
            let row = "INSERT INTO login_lock (label) VALUES ($1) ON CONFLICT DO NOTHING";
            client.execute(row, &[&label]).await?;
            client.batch_execute("BEGIN").await?;
            let lock = "SELECT 1 FROM login_lock WHERE label = $1 FOR UPDATE";
            if client.query_opt(lock, &[&label]).await?.is_some() {
                return Ok(LoginLock::new((client, permit)));
            }
            // The login was deleted meanwhile.
            client.batch_execute("ROLLBACK").await?;
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is passed to `map_err`")]
fn failed(error: FleetError) -> LoginStoreError {
    LoginStoreError(format!("{PLACE} cannot be used: {error}"))
}

impl Logins for SharedLogins {
    fn load(&self, key: &LoginKey) -> Result<Option<String>, LoginStoreError> {
        let label = &self.label(key);
        let sealed = self.with(|connection| async move {
            let select =
                connection.prepare_cached("SELECT sealed FROM login WHERE label = $1").await?;
            let row = connection.query_opt(&select, &[label]).await?;
            Ok(row.map(|row| row.get::<_, String>(0)))
        })?;
        sealed.map(|sealed| Ok(self.opened(label, &sealed)?.1.secret)).transpose()
    }

    fn save(&self, key: &LoginKey, secret: &str) -> Result<(), LoginStoreError> {
        let label = &self.label(key);
        let sealed = &self.sealed(label, key, secret, None)?;
        self.with(|connection| async move {
            let write = "INSERT INTO login (label, sealed) VALUES ($1, $2)
                ON CONFLICT (label) DO UPDATE SET sealed = excluded.sealed";
            Ok(connection.execute(write, &[label, sealed]).await?)
        })?;
        Ok(())
    }

    fn replace(&self, key: &LoginKey, secret: &str) -> Result<bool, LoginStoreError> {
        let label = &self.label(key);
        let sealed = &self.sealed(label, key, secret, None)?;
        self.with(|connection| async move {
            let write = "UPDATE login SET sealed = $2 WHERE label = $1";
            Ok(connection.execute(write, &[label, sealed]).await? > 0)
        })
    }

    fn forget(&self, key: &LoginKey) -> Result<(), LoginStoreError> {
        let label = &self.label(key);
        self.with(|connection| async move {
            connection.execute("DELETE FROM login WHERE label = $1", &[label]).await?;
            // A node that renews it has its lock, and finds no login to write.
            let lock = "DELETE FROM login_lock WHERE label IN (
                SELECT label FROM login_lock WHERE label = $1 FOR UPDATE SKIP LOCKED)";
            Ok(connection.execute(lock, &[label]).await?)
        })?;
        Ok(())
    }

    fn list(&self) -> Result<Vec<(LoginKey, String)>, LoginStoreError> {
        let rows = self.with(|connection| async move {
            Ok(connection.query("SELECT label, sealed FROM login", &[]).await?)
        })?;
        let mut logins: Vec<(LoginKey, String)> = rows
            .iter()
            // What cannot be read is of another key, or damaged: a login replaces it.
            .filter_map(|row| self.opened(row.get(0), row.get(1)).ok())
            .filter(|(key, _)| key.caller.is_some())
            .map(|(key, content)| (key, content.secret))
            .collect();
        logins.sort_by(|one, two| one.0.cmp(&two.0));
        Ok(logins)
    }

    fn lock(&self, key: &LoginKey) -> Result<LoginLock, LoginStoreError> {
        self.check_key()?;
        let (label, renewals) = (self.label(key), Arc::clone(&self.renewals));
        let locked = self.node.database.wait_within(RENEWAL_TIMEOUT, async move {
            let closed = |_| FleetError::System("no more logins are renewed".to_owned());
            let permit = renewals.acquire_owned().await.map_err(closed)?;
            self.locked(&label, permit).await
        });
        locked.map_err(failed)
    }
}

/// The logins that are open.
const OPEN: &str = "outcome IS NULL AND taken IS NULL AND expires > $2";

impl WaitingLogins for SharedLogins {
    fn add(&self, login: &WaitingLogin) -> Result<Option<WaitingLogin>, LoginStoreError> {
        let id = &self.waiting_label("id", &login.id);
        let (owner, state) = (&self.label(&login.key), &self.waiting_label("state", &login.state));
        let waiting = Waiting { id: login.id.clone(), state: login.state.clone() };
        let sealed = &self.sealed(id, &login.key, &login.secret, Some(waiting))?;
        let expires = login.expires.cast_signed();
        let is_added = self.with(|mut connection| async move {
            let transaction = connection.transaction().await?;
            let over = "DELETE FROM waiting_login
                WHERE login = $1 AND outcome IS NULL AND (expires <= $2 OR taken < $3)";
            transaction.execute(over, &[owner, &now(), &(now() - TAKEN_MILLISECONDS)]).await?;
            let add = "INSERT INTO waiting_login (id, login, state, sealed, expires)
                VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING";
            let added = transaction.execute(add, &[id, owner, state, sealed, &expires]).await?;
            transaction.commit().await?;
            Ok(added > 0)
        })?;
        if is_added {
            return Ok(None);
        }
        // One that is just being ended is not found: it is added to the database no more, and ends here alone.
        self.find(WhichLogin::Key(&login.key))
    }

    fn find(&self, which: WhichLogin<'_>) -> Result<Option<WaitingLogin>, LoginStoreError> {
        let (column, value) = match which {
            WhichLogin::Id(id) => ("id", self.waiting_label("id", id)),
            WhichLogin::State(state) => ("state", self.waiting_label("state", state)),
            WhichLogin::Key(key) => ("login", self.label(key)),
        };
        let found = self.with(|connection| async move {
            let select = format!(
                "SELECT id, sealed, expires FROM waiting_login WHERE {column} = $1 AND {OPEN}"
            );
            Ok(connection.query_opt(&select, &[&value, &now()]).await?)
        })?;
        let Some(row) = found else { return Ok(None) };
        let (key, content) = self.opened(row.get(0), row.get(1))?;
        let expires = row.get::<_, i64>(2).cast_unsigned();
        Ok(content.waiting.map(|Waiting { id, state }| WaitingLogin {
            id,
            key,
            state,
            secret: content.secret,
            expires,
        }))
    }

    fn admit(&self, id: &str, browser: &str) -> Result<(), LoginStoreError> {
        let (id, browser) =
            (&self.waiting_label("id", id), &self.waiting_label("browser", browser));
        self.with(|connection| async move {
            let update = "UPDATE waiting_login SET browser = $2 WHERE id = $1";
            Ok(connection.execute(update, &[id, browser]).await?)
        })?;
        Ok(())
    }

    fn is_admitted(&self, id: &str, browser: &str) -> Result<bool, LoginStoreError> {
        let (id, browser) =
            (&self.waiting_label("id", id), &self.waiting_label("browser", browser));
        self.with(|connection| async move {
            let select = "SELECT 1 FROM waiting_login WHERE id = $1 AND browser = $2";
            Ok(connection.query_opt(select, &[id, browser]).await?.is_some())
        })
    }

    fn take(&self, id: &str) -> Result<bool, LoginStoreError> {
        let id = &self.waiting_label("id", id);
        self.with(|connection| async move {
            let take = format!("UPDATE waiting_login SET taken = $2 WHERE id = $1 AND {OPEN}");
            Ok(connection.execute(&take, &[id, &now()]).await? > 0)
        })
    }

    fn end(&self, id: &str, outcome: Result<(), &str>) -> Result<(), LoginStoreError> {
        let id = &self.waiting_label("id", id);
        let text = serde_json::json!(outcome.err()).to_string();
        let outcome = &self.seal.seal(id, &text)?;
        self.with(|mut connection| async move {
            let transaction = connection.transaction().await?;
            let end = "UPDATE waiting_login SET outcome = $2 WHERE id = $1";
            transaction.execute(end, &[id, outcome]).await?;
            let number: i64 = transaction.query_one(BUMP, &[&TOPIC]).await?.get(0);
            transaction.commit().await?;
            self.node.made(TOPIC, number);
            Ok(())
        })
    }

    fn outcome(&self, id: &str) -> Result<LoginWait, LoginStoreError> {
        let id = &self.waiting_label("id", id);
        let row = self.with(|connection| async move {
            let select = "SELECT outcome, expires > $2 FROM waiting_login WHERE id = $1";
            Ok(connection.query_opt(select, &[id, &now()]).await?)
        })?;
        let Some(row) = row else { return Ok(LoginWait::Gone) };
        let Some(outcome) = row.get::<_, Option<String>>(0) else {
            return Ok(if row.get(1) { LoginWait::Open } else { LoginWait::Gone });
        };
        let text = self.seal.open(id, &outcome)?;
        let why: Option<String> = serde_json::from_str(&text).unwrap_or_default();
        Ok(LoginWait::Ended(why.map_or(Ok(()), Err)))
    }

    fn on_end(&self, wake: Box<dyn Fn() + Send + Sync>) {
        self.node.on_change(TOPIC, wake);
    }
}
