//! From a configured server to one that a host can start.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolgate_broker::ValidationSettings;
use toolgate_catalog::CatalogServer;
use toolgate_config::{Secret, ServerConfig, Transport};
use toolgate_host::ServerSetup;
use toolgate_store::{Vault, VaultError};
use toolgate_upstream::{
    AuthorizationSettings, Authorizer, ConnectFailure, CredentialLock, CredentialStore,
    CredentialStoreError, Endpoint, HttpEndpoint, LateValues as _, LoginError, ServerLimits,
    ServerSpec, StdioEndpoint,
};

use crate::{host_config::HostConfig, stored_values::CommandValues};

/// Why nobody can log in at a server.
#[derive(Debug, thiserror::Error)]
pub enum AuthorizerError {
    /// Logins are stored in the state folder.
    #[error("there is no state folder to store logins in")]
    NoStateFolder,
    /// The server cannot have a login.
    #[error(transparent)]
    Login(#[from] LoginError),
}

impl HostConfig {
    /// What logs in at the server with this URL.
    pub fn authorizer(
        &self,
        server: &ServerConfig,
        url: &str,
    ) -> Result<Arc<Authorizer>, AuthorizerError> {
        let environment = self.environment();
        let store = environment.store.as_ref().ok_or(AuthorizerError::NoStateFolder)?;
        let oauth = &server.settings.oauth;
        let settings = AuthorizationSettings {
            client_id: oauth.client_id.clone(),
            client_secret: oauth.client_secret.as_ref().map(|secret| secret.expose().to_owned()),
            client_metadata_url: oauth.client_metadata_url.clone(),
            scopes: oauth.scopes.clone(),
        };
        let vault = Arc::new(VaultCredentials(store.vault(environment.vault_key.clone())));
        Ok(Arc::new(Authorizer::new(server.name.as_str(), url, settings, vault)?))
    }

    /// The headers of a server, with the values that commands print.
    pub async fn headers(
        &self,
        server: &ServerConfig,
        headers: &BTreeMap<String, Secret>,
    ) -> Result<BTreeMap<String, String>, ConnectFailure> {
        let headers = exposed(headers);
        let Some(values) = CommandValues::of(&server.commands) else { return Ok(headers) };
        let endpoint = HttpEndpoint { headers, ..HttpEndpoint::new("") };
        match values.complete(&Endpoint::Http(endpoint)).await? {
            Endpoint::Http(complete) => Ok(complete.headers),
            _ => Ok(BTreeMap::new()),
        }
    }

    /// The settings of a server; none where its transport cannot be used.
    pub(crate) fn server_setup(&self, server: &ServerConfig) -> Option<ServerSetup> {
        let endpoint = self.endpoint(server)?;
        let settings = &server.settings;
        let limits = ServerLimits {
            connect: settings.connect_timeout,
            idle: settings.call_idle_timeout,
            total: settings.call_total_timeout,
            max_message_bytes: settings.max_result_bytes,
            ..ServerLimits::default()
        };
        let spec = ServerSpec {
            limits,
            rest_after: settings.idle_timeout,
            instances: settings.instances,
            late_values: CommandValues::of(&server.commands).map(|values| values as _),
            ..ServerSpec::new(server.name.as_str(), endpoint)
        };
        let tools = &settings.tools;
        let entry = CatalogServer {
            name: server.name.as_str().into(),
            prefix: settings.prefix.clone(),
            description: settings.description.clone(),
            defer_loading: settings.defer_loading,
            defer_tools: tools
                .iter()
                .filter_map(|(name, tool)| Some((name.clone(), tool.defer_loading?)))
                .collect(),
        };
        let validation = ValidationSettings {
            tell_caller: settings.tell_caller,
            skip_validation: !settings.validate_arguments,
            skip_validation_of: tools
                .iter()
                .filter_map(|(name, tool)| Some((name.clone(), !tool.validate_arguments?)))
                .collect(),
        };
        let filter = settings.clone();
        let admits = move |name: &str| filter.admits(name);
        Some(ServerSetup { spec, entry, validation, admits: Arc::new(admits), lazy: settings.lazy })
    }

    fn endpoint(&self, server: &ServerConfig) -> Option<Endpoint> {
        Some(match server.transport.as_ref().ok()? {
            Transport::Stdio { command, args, env, cwd } => Endpoint::Stdio(StdioEndpoint {
                command: command.clone(),
                args: args.clone(),
                env: exposed(env),
                cwd: cwd.clone(),
            }),
            Transport::Http { url, headers, dialect } => Endpoint::Http(HttpEndpoint {
                url: url.clone(),
                headers: exposed(headers),
                dialect: *dialect,
                // Without a state folder nobody can have logged in.
                authorizer: self.authorizer(server, url).ok().map(|authorizer| authorizer as _),
            }),
        })
    }
}

/// The values themselves, for what sends them to a server.
pub(crate) fn exposed(values: &BTreeMap<String, Secret>) -> BTreeMap<String, String> {
    values.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect()
}

/// Stores logins in the vault of the state folder.
#[derive(Debug)]
struct VaultCredentials(Vault);

impl CredentialStore for VaultCredentials {
    fn load(&self, name: &str) -> Result<Option<String>, CredentialStoreError> {
        self.0.load(name).map_err(store_error)
    }

    fn save(&self, name: &str, secret: &str) -> Result<(), CredentialStoreError> {
        self.0.save(name, secret).map_err(store_error)
    }

    fn forget(&self, name: &str) -> Result<(), CredentialStoreError> {
        self.0.forget(name).map_err(store_error)
    }

    fn lock(&self, name: &str) -> Result<CredentialLock, CredentialStoreError> {
        self.0.lock(name).map(CredentialLock::new).map_err(store_error)
    }
}

fn store_error(error: VaultError) -> CredentialStoreError {
    CredentialStoreError(match error {
        VaultError::ShortKey => format!("TOOLGATE_VAULT_KEY: {error}"),
        error => error.to_string(),
    })
}
