//! Which model is asked, with which key.

use toolgate::setup::Store;
use toolgate_agent::{ModelAddress, ModelKey, ModelSettings, ProviderError};
use toolgate_store::{Vault, VaultError};

use crate::{
    failure::{CommandResult, Failure},
    load, print, typed,
};

/// The variable of a key for any endpoint.
const KEY: &str = "TOOLGATE_MODEL_KEY";

/// A model and where it is.
#[derive(Debug, Clone)]
pub(super) struct ModelChoice {
    /// `provider/name`.
    pub(super) name: String,
    /// The URL in place of the provider's own.
    pub(super) url: Option<String>,
    address: ModelAddress,
}

impl ModelChoice {
    /// The model of this name, or an error that says which names there are.
    pub(super) fn new(name: &str, url: Option<&str>) -> Result<Self, Failure> {
        let address =
            ModelAddress::parse(name).map_err(|error| Failure::usage(error.to_string()))?;
        let url = url.map(|url| url.trim_end_matches('/').to_owned());
        Ok(Self { name: name.to_owned(), url, address })
    }

    /// How the model is asked, with its key.
    pub(super) fn settings(&self) -> Result<ModelSettings, Failure> {
        let key = self.key()?;
        if key.is_none() && self.url.is_none() && self.address.needs_key() {
            let variable = self.address.key_variable();
            let save = format!("toolgate chat --save-key --model {}", self.name);
            return Err(Failure::usage(format!("there is no key for {}", self.name))
                .hint(format!("set {variable} or {KEY}, or store the key encrypted: {save}")));
        }
        let mut settings = self.address.settings(key);
        if let Some(url) = &self.url {
            settings.url.clone_from(url);
        }
        Ok(settings)
    }

    /// The key of the environment, else of the vault. A provider's own key goes to its own URL only.
    fn key(&self) -> Result<Option<ModelKey>, Failure> {
        let set = |name: &str| load::variable(name).filter(|key| !key.trim().is_empty());
        let own = || set(self.address.key_variable()).filter(|_| self.url.is_none());
        if let Some(key) = set(KEY).or_else(own) {
            return Ok(Some(key.into()));
        }
        let Some(store) = load::store() else { return Ok(None) };
        let stored = vault(&store).load(&self.place()).map_err(|error| self.not_stored(&error))?;
        Ok(stored.map(Into::into))
    }

    /// The name of the key in the vault.
    fn place(&self) -> String {
        match &self.url {
            Some(url) => format!("model key {url}"),
            None => format!("model key of {}", self.address.provider()),
        }
    }

    fn not_stored(&self, error: &VaultError) -> Failure {
        let variable = if self.url.is_some() { KEY } else { self.address.key_variable() };
        Failure::new(format!("the stored keys of models cannot be used: {error}"))
            .hint(format!("set {variable} instead"))
    }

    /// Stores the key that is typed.
    pub(super) fn save_key(&self) -> CommandResult {
        let key = typed::secret("key")?;
        let store = load::required_store()?;
        vault(&store).save(&self.place(), &key).map_err(|error| self.not_stored(&error))?;
        print::note(format!("The key for {} is stored, encrypted.", self.whose()));
        Ok(std::process::ExitCode::SUCCESS)
    }

    /// Removes the stored key.
    pub(super) fn forget_key(&self) -> CommandResult {
        let store = load::required_store()?;
        vault(&store).forget(&self.place()).map_err(|error| self.not_stored(&error))?;
        print::note(format!("No key for {} is stored now.", self.whose()));
        Ok(std::process::ExitCode::SUCCESS)
    }

    fn whose(&self) -> &str {
        self.url.as_deref().unwrap_or(self.address.provider())
    }

    /// What to do about an error of the provider.
    pub(super) fn advice(&self, error: &ProviderError) -> Option<String> {
        let variable = if self.url.is_some() { KEY } else { self.address.key_variable() };
        match error {
            ProviderError::Status { status: 401 | 403, .. } => {
                Some(format!("check the key in {variable}, and that it may use this model"))
            }
            ProviderError::Status { status: 404, .. } => Some(format!(
                "check the name after --model (`{}`){}",
                self.name,
                if self.url.is_some() { " and the path of --url" } else { "" }
            )),
            ProviderError::Status { status: 429, retry_after, .. } => Some(match retry_after {
                Some(wait) => format!(
                    "wait {} s, as the provider says, or ask another model with --model",
                    wait.as_secs()
                ),
                None => "wait, or ask another model with --model".to_owned(),
            }),
            ProviderError::Unreachable(_) => Some(match (&self.url, self.address.needs_key()) {
                (Some(_), _) => "check --url, and that the server there runs".to_owned(),
                (None, false) => format!(
                    "start the server of {}, or name its address with --url",
                    self.address.provider()
                ),
                (None, true) => "check the network".to_owned(),
            }),
            _ => None,
        }
    }
}

fn vault(store: &Store) -> Vault {
    store.vault(load::vault_key())
}
