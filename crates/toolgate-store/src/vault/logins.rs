//! The logins in a vault.
//!
//! The login that all callers share is an entry of the vault. The login of a caller is a file of its own:
//! there may be thousands, and each is read and renewed alone.

use std::{fs, io, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::{Key, Vault, VaultError};
use crate::{
    files,
    logins::{LoginKey, LoginLock, LoginStoreError, Logins},
};

/// A login has a few kilobytes.
const MAX_LOGIN_BYTES: u64 = 1024 * 1024;
const ENDING: &str = "login";

/// The content of the file of a login, before it is encrypted.
#[derive(Serialize, Deserialize)]
struct CallerLogin {
    caller: String,
    server: String,
    url: String,
    secret: String,
}

impl Logins for Vault {
    fn load(&self, key: &LoginKey) -> Result<Option<String>, LoginStoreError> {
        let Some(caller) = &key.caller else { return Ok(Vault::load(self, &shared_name(key))?) };
        let Some(vault_key) = self.login_key()? else { return Ok(None) };
        let label = vault_key.label(&name(caller, key));
        Ok(self.read_login(&vault_key, &label)?.map(|login| login.secret))
    }

    fn save(&self, key: &LoginKey, secret: &str) -> Result<(), LoginStoreError> {
        let Some(caller) = &key.caller else {
            return Ok(Vault::save(self, &shared_name(key), secret)?);
        };
        let login = CallerLogin {
            caller: caller.to_string(),
            server: key.server.to_string(),
            url: key.url.to_string(),
            secret: secret.to_owned(),
        };
        let text = serde_json::to_string(&login).map_err(|_| VaultError::Crypto)?;
        let vault_key = self.login_key_or_new()?;
        let label = vault_key.label(&name(caller, key));
        let sealed = vault_key.seal(&label, &text)?;
        Ok(files::replace(&self.login_file(&label), sealed.as_bytes()).map_err(VaultError::from)?)
    }

    fn replace(&self, key: &LoginKey, secret: &str) -> Result<bool, LoginStoreError> {
        if Logins::load(self, key)?.is_none() {
            return Ok(false);
        }
        Logins::save(self, key, secret)?;
        Ok(true)
    }

    fn forget(&self, key: &LoginKey) -> Result<(), LoginStoreError> {
        let Some(caller) = &key.caller else {
            return Ok(Vault::forget(self, &shared_name(key))?);
        };
        let Some(vault_key) = self.login_key()? else { return Ok(()) };
        let path = self.login_file(&vault_key.label(&name(caller, key)));
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(VaultError::File { path, source }.into())
            }
            _ => Ok(()),
        }
    }

    fn list(&self) -> Result<Vec<(LoginKey, String)>, LoginStoreError> {
        let folder = self.login_folder();
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(VaultError::File { path: folder, source }.into()),
        };
        let Some(vault_key) = self.login_key()? else { return Ok(Vec::new()) };
        let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
        let paths = paths.filter(|path| path.extension().is_some_and(|it| it == ENDING));
        let mut logins = Vec::new();
        for path in paths {
            let Some(label) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
            // A file that cannot be read is of another key, or damaged: a login replaces it.
            let Ok(Some(login)) = self.read_login(&vault_key, label) else { continue };
            let CallerLogin { caller, server, url, secret } = login;
            let key =
                LoginKey { caller: Some(caller.into()), server: server.into(), url: url.into() };
            logins.push((key, secret));
        }
        logins.sort_by(|one, two| one.0.cmp(&two.0));
        Ok(logins)
    }

    fn lock(&self, key: &LoginKey) -> Result<LoginLock, LoginStoreError> {
        let name = key.caller.as_ref().map_or_else(|| shared_name(key), |it| name(it, key));
        Ok(LoginLock::new(Vault::lock(self, &name)?))
    }
}

impl Vault {
    /// The key, if there is a vault.
    fn login_key(&self) -> Result<Option<Key>, VaultError> {
        if let Some(key) = self.known_key.get() {
            return Ok(Some(key.clone()));
        }
        let Some(holder) = self.read()?.key_in else { return Ok(None) };
        let key = self.key.existing(&self.folder, holder)?;
        Ok(Some(self.known_key.get_or_init(|| key).clone()))
    }

    /// The key. Makes one if there is none, and notes where it is.
    fn login_key_or_new(&self) -> Result<Key, VaultError> {
        match self.login_key() {
            Ok(Some(key)) => return Ok(key),
            // The key is lost. The old logins are lost with it, but new ones can be stored.
            Ok(None) | Err(VaultError::OtherKey | VaultError::Damaged { .. }) => {}
            Err(error) => return Err(error),
        }
        self.change(|_, _| Ok(()))?;
        self.login_key()?.ok_or(VaultError::OtherKey)
    }

    fn login_folder(&self) -> PathBuf {
        self.folder.join("logins")
    }

    fn login_file(&self, label: &str) -> PathBuf {
        self.login_folder().join(format!("{label}.{ENDING}"))
    }

    fn read_login(&self, key: &Key, label: &str) -> Result<Option<CallerLogin>, VaultError> {
        let path = self.login_file(label);
        let sealed = match files::read_bounded(&path, MAX_LOGIN_BYTES) {
            Ok(sealed) => sealed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(VaultError::File { path, source }),
        };
        let sealed = String::from_utf8(sealed).map_err(|_| VaultError::OtherKey)?;
        let text = key.open(label, &sealed)?;
        let login: CallerLogin = serde_json::from_str(&text).map_err(|_| VaultError::OtherKey)?;
        Ok(Some(login))
    }
}

impl From<VaultError> for LoginStoreError {
    fn from(error: VaultError) -> Self {
        Self(match error {
            VaultError::ShortKey => format!("TOOLGATE_VAULT_KEY: {error}"),
            error => error.to_string(),
        })
    }
}

/// The name of the login that all callers share.
fn shared_name(key: &LoginKey) -> String {
    format!("{}\n{}", key.server, key.url)
}

/// The name of a login of a caller. It is JSON, so that two logins never have the same name.
fn name(caller: &str, key: &LoginKey) -> String {
    serde_json::json!(["login", caller, key.server, key.url]).to_string()
}
