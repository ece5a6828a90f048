//! From a configured server to one that a host can start.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolgate_broker::ValidationSettings;
use toolgate_catalog::{CatalogServer, Fingerprint};
use toolgate_config::{
    FleetMode, LoginConfig, LoginGrant, Secret, ServerAuth, ServerConfig, Transport,
};
use toolgate_host::ServerSetup;
use toolgate_store::{LoginKey, Logins};
use toolgate_upstream::{
    ACCESS_TOKEN_TYPE, AuthorizationSettings, Authorizer, CallerLoginSettings, CallerLogins,
    ConnectFailure, Endpoint, HttpEndpoint, InstanceMode, LateValues as _, LoginError,
    ServerLimits, ServerPlacement, ServerSpec, StdioEndpoint, SubjectToken, TokenSource,
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
    /// What logs in at the server with this URL: for all callers, or for one whose own login it is.
    pub fn authorizer(
        &self,
        server: &ServerConfig,
        url: &str,
        caller: Option<&str>,
    ) -> Result<Arc<Authorizer>, AuthorizerError> {
        let key = LoginKey::shared(&server.name, url);
        let key = caller.map_or_else(|| key.clone(), |caller| key.of(caller));
        let authorizer = Authorizer::new(key, authorization(server), self.logins()?)?;
        Ok(Arc::new(authorizer))
    }

    /// The stored logins.
    pub fn logins(&self) -> Result<Arc<dyn Logins>, AuthorizerError> {
        let environment = self.environment();
        let store = environment.store.as_ref().ok_or(AuthorizerError::NoStateFolder)?;
        Ok(store.logins(&environment.vault_key))
    }

    /// The logins of callers at a server, if each has their own.
    fn caller_logins(&self, server: &ServerConfig) -> Option<Arc<CallerLogins>> {
        let Ok(Transport::Http { url, headers, .. }) = &server.transport else { return None };
        if server.settings.auth != ServerAuth::PerCaller {
            return None;
        }
        let settings = CallerLoginSettings {
            authorization: authorization(server),
            store: self.logins().ok()?,
            headers: exposed(headers),
            redirect_port: server.settings.oauth.redirect_port,
            pending: self.pending_logins.clone(),
        };
        Some(CallerLogins::new(&server.name, url, settings))
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
    pub(crate) fn server_setup(
        &self,
        server: &ServerConfig,
        namespace: Option<&str>,
    ) -> Option<ServerSetup> {
        let callers = self.caller_logins(server);
        let endpoint = self.endpoint(server, callers.as_deref())?;
        let settings = &server.settings;
        let limits = ServerLimits {
            connect: settings.connect_timeout,
            idle: settings.call_idle_timeout,
            total: settings.call_total_timeout,
            max_message_bytes: settings.max_result_bytes,
            ..ServerLimits::default()
        };
        let placement = self.placement(server, &endpoint, namespace);
        let spec = ServerSpec {
            limits,
            callers,
            rest_after: settings.idle_timeout,
            remembered_era: settings.protocol.era(),
            // One process serves all nodes.
            instances: match placement {
                Some(_) => InstanceMode::Shared,
                None => settings.instances,
            },
            placement,
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

    /// Where a server runs that runs once in a fleet. The nodes have one configuration, so they agree on the scope.
    fn placement(
        &self,
        server: &ServerConfig,
        endpoint: &Endpoint,
        namespace: Option<&str>,
    ) -> Option<Arc<dyn ServerPlacement>> {
        let places = self.environment().places.as_ref()?;
        let Endpoint::Stdio(StdioEndpoint { command, args, cwd, .. }) = endpoint else {
            return None;
        };
        if server.settings.fleet != FleetMode::Single {
            return None;
        }
        let what = serde_json::json!([namespace, server.name, command, args, cwd]);
        let scope = Fingerprint::of(&what).to_string();
        Some(places.place_of(&server.name.as_str().into(), &scope))
    }

    fn endpoint(&self, server: &ServerConfig, callers: Option<&CallerLogins>) -> Option<Endpoint> {
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
                tls: None,
                authorizer: match (callers, server.settings.auth) {
                    (Some(callers), _) => Some(callers.nobody()),
                    // Without a state folder nobody can have logged in.
                    (None, ServerAuth::PerCaller) => None,
                    (None, ServerAuth::Shared) => {
                        self.authorizer(server, url, None).ok().map(|authorizer| authorizer as _)
                    }
                },
            }),
        })
    }
}

/// The values themselves, for what sends them to a server.
pub(crate) fn exposed(values: &BTreeMap<String, Secret>) -> BTreeMap<String, String> {
    values.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect()
}

fn authorization(server: &ServerConfig) -> AuthorizationSettings {
    let oauth = &server.settings.oauth;
    AuthorizationSettings {
        client_id: oauth.client_id.clone(),
        client_secret: oauth.client_secret.as_ref().map(|secret| secret.expose().to_owned()),
        client_metadata_url: oauth.client_metadata_url.clone(),
        scopes: oauth.scopes.clone(),
        source: source(oauth),
    }
}

fn source(oauth: &LoginConfig) -> TokenSource {
    let exposed = |secret: &Option<Secret>| secret.as_ref().map(|it| it.expose().to_owned());
    let token = || match (&oauth.subject_token_file, exposed(&oauth.subject_token)) {
        (Some(path), None) => SubjectToken::File(path.clone()),
        (_, token) => SubjectToken::Given(token.unwrap_or_default()),
    };
    match oauth.grant {
        LoginGrant::Person => TokenSource::Person,
        LoginGrant::ClientCredentials => {
            TokenSource::ClientCredentials { private_key: exposed(&oauth.private_key) }
        }
        LoginGrant::JwtBearer => TokenSource::JwtBearer(token()),
        LoginGrant::TokenExchange => TokenSource::Exchange {
            token: token(),
            kind: oauth.subject_token_type.clone().unwrap_or_else(|| ACCESS_TOKEN_TYPE.to_owned()),
        },
        LoginGrant::Enterprise => TokenSource::Enterprise {
            token: token(),
            endpoint: oauth.idp_token_endpoint.clone().unwrap_or_default(),
            client_id: oauth.idp_client_id.clone(),
            client_secret: exposed(&oauth.idp_client_secret),
        },
    }
}
