//! Tokens without a person: client credentials, and the exchange of a token that toolgate has.

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc};

use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use ring::{
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
        Ed25519KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
    },
};
use rmcp::transport::auth::{AuthorizationManager, OAuthClientConfig};
use serde_json::json;
use url::Url;

use super::{
    authorizer::Authorizer,
    credentials::{LoginCredentials, OauthClient, now},
    error::{LoginError, plain},
    guard::GuardedClient,
    login::{check_endpoints, field, method, parameter, probe},
    renew::{self, RenewError},
};

/// How toolgate gets a token.
#[derive(Clone, Default)]
pub enum TokenSource {
    /// A person logs in.
    #[default]
    Person,
    /// By the credentials of toolgate itself: its secret, or this private key (PKCS #8, in PEM).
    ClientCredentials {
        /// Signs for the client in place of a secret.
        private_key: Option<String>,
    },
    /// The authorization server takes this token as an assertion (RFC 7523), such as that of a workload.
    JwtBearer(SubjectToken),
    /// The authorization server exchanges this token (RFC 8693).
    Exchange {
        /// The token.
        token: SubjectToken,
        /// Its type, as RFC 8693 names it.
        kind: String,
    },
    /// An identity provider exchanges this ID token for an assertion (ID-JAG), which the authorization server
    /// takes.
    Enterprise {
        /// The ID token.
        token: SubjectToken,
        /// The token endpoint of the identity provider.
        endpoint: String,
        /// toolgate as a client of the identity provider.
        client_id: Option<String>,
        /// The secret that goes with it.
        client_secret: Option<String>,
    },
}

/// A token that toolgate has.
#[derive(Clone)]
pub enum SubjectToken {
    /// This one.
    Given(String),
    /// The content of a file, which somebody else renews.
    File(PathBuf),
}

/// The type of a token that an authorization server takes as an access token.
pub const ACCESS_TOKEN_TYPE: &str = "urn:ietf:params:oauth:token-type:access_token";
const ID_TOKEN_TYPE: &str = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG_TYPE: &str = "urn:ietf:params:oauth:token-type:id-jag";
const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// For how many seconds an assertion is valid.
const ASSERTION_SECONDS: u64 = 120;
/// The longest token in a file.
const MAX_TOKEN_BYTES: u64 = 64 * 1024;
/// Nobody is redirected.
const NO_REDIRECT: &str = "http://127.0.0.1/callback";

impl TokenSource {
    pub(super) fn is_machine(&self) -> bool {
        !matches!(self, Self::Person)
    }

    /// The values that must not be shown.
    pub(super) fn secrets(&self) -> Vec<String> {
        let given = |token: &SubjectToken| match token {
            SubjectToken::Given(token) => Some(token.clone()),
            SubjectToken::File(_) => None,
        };
        match self {
            Self::Person => Vec::new(),
            Self::ClientCredentials { private_key } => private_key.iter().cloned().collect(),
            Self::JwtBearer(token) | Self::Exchange { token, .. } => {
                given(token).into_iter().collect()
            }
            Self::Enterprise { token, client_secret, .. } => {
                given(token).into_iter().chain(client_secret.clone()).collect()
            }
        }
    }
}

impl SubjectToken {
    async fn read(&self) -> Result<String, RenewError> {
        let path = match self {
            Self::Given(token) => return Ok(token.clone()),
            Self::File(path) => path.clone(),
        };
        let failed = |why: &str| RenewError::Failed(format!("{}: {why}", path.display()));
        let about = tokio::fs::metadata(&path).await;
        let about = about.map_err(|error| failed(&error.to_string()))?;
        if !about.is_file() || about.len() > MAX_TOKEN_BYTES {
            return Err(failed("it is not a file with a token"));
        }
        let text = tokio::fs::read_to_string(&path).await;
        Ok(text.map_err(|error| failed(&error.to_string()))?.trim().to_owned())
    }
}

/// What is known of the authorization server.
struct GrantPlace {
    issuer: Option<String>,
    token_endpoint: String,
    resource: String,
    scopes: Vec<String>,
    client: OauthClient,
}

impl Authorizer {
    /// Gets a token without a person.
    pub(super) async fn grant(&self) -> Result<LoginCredentials, RenewError> {
        let http = self.http.renewed();
        let place = self.find_place(&http).await;
        let place = place.map_err(|error| RenewError::Failed(error.to_string()))?;
        let scope = place.scopes.join(" ");
        let mut fields = vec![("resource", place.resource.clone())];
        if !scope.is_empty() {
            fields.push(("scope", scope));
        }
        match &self.settings.source {
            TokenSource::Person => return Err(RenewError::Over),
            TokenSource::ClientCredentials { private_key } => {
                fields.push(("grant_type", "client_credentials".to_owned()));
                if let Some(key) = private_key {
                    let audience = place.issuer.as_ref().unwrap_or(&place.token_endpoint);
                    let signed = assertion(key, &place.client.id, audience);
                    let signed = signed.ok_or_else(|| {
                        RenewError::Failed(
                            "`privateKey` is no PKCS #8 key that can sign".to_owned(),
                        )
                    })?;
                    fields.push(("client_assertion_type", ASSERTION_TYPE.to_owned()));
                    fields.push(("client_assertion", signed));
                }
            }
            TokenSource::JwtBearer(token) => {
                fields.push(("grant_type", JWT_BEARER.to_owned()));
                fields.push(("assertion", self.hidden(token.read().await?)));
            }
            TokenSource::Exchange { token, kind } => {
                fields.push(("grant_type", EXCHANGE.to_owned()));
                fields.push(("subject_token", self.hidden(token.read().await?)));
                fields.push(("subject_token_type", kind.clone()));
                fields.push(("requested_token_type", ACCESS_TOKEN_TYPE.to_owned()));
            }
            TokenSource::Enterprise { token, endpoint, client_id, client_secret } => {
                let token = self.hidden(token.read().await?);
                let provider = Provider { endpoint, client_id, client_secret };
                let assertion = provider.exchange(&token, &place).await?;
                fields.push(("grant_type", JWT_BEARER.to_owned()));
                fields.push(("assertion", self.hidden(assertion)));
            }
        }
        let fields: Vec<(&str, &str)> =
            fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let granted =
            renew::request_token(&http, &place.token_endpoint, &place.client, &fields).await?;
        let blank = LoginCredentials {
            url: self.url.to_string(),
            issuer: place.issuer,
            resource: place.resource,
            token_endpoint: place.token_endpoint,
            revocation_endpoint: None,
            client: place.client,
            access_token: String::new(),
            refresh_token: None,
            expires_at: None,
            scopes: place.scopes,
            wanted_scopes: Vec::new(),
        };
        // A machine asks again with what it has, and needs no refresh token.
        Ok(LoginCredentials { refresh_token: None, ..blank.renewed(granted) })
    }

    fn hidden(&self, secret: String) -> String {
        use toolgate_mcp::client::TokenProvider as _;
        self.redactor().hide([secret.clone()]);
        secret
    }

    /// Finds the authorization server.
    async fn find_place(&self, http: &GuardedClient) -> Result<GrantPlace, LoginError> {
        let discovery = |error| LoginError::Discovery(plain(&error));
        let probe = probe(http, &self.url, &BTreeMap::new()).await?;
        let mut manager = AuthorizationManager::new_with_oauth_http_client(
            self.url.clone(),
            Arc::new(http.clone()),
        )
        .await
        .map_err(discovery)?;
        let found = manager.resolve_metadata_from_challenge(probe.challenge.as_deref()).await;
        let metadata = found.map_err(discovery)?.metadata;
        check_endpoints(http, &metadata)?;
        manager.set_metadata(metadata.clone());
        let scopes = self.choose_scopes(&manager, &[]).await;
        let settings = &self.settings;
        let id = settings.client_id.clone().unwrap_or_default();
        let words: Vec<&str> = scopes.iter().map(String::as_str).collect();
        // rmcp has the resource in this URL only, which nobody visits.
        let config = OAuthClientConfig::new(&id, NO_REDIRECT).with_scopes(scopes.clone());
        let page = match manager.configure_client(config) {
            Ok(()) => manager.get_authorization_url(&words).await.ok(),
            Err(_) => None,
        };
        let resource = page.and_then(|page| parameter(&Url::parse(&page).ok()?, "resource"));
        let client =
            OauthClient { id, secret: settings.client_secret.clone(), method: method(&metadata) };
        Ok(GrantPlace {
            issuer: metadata.issuer.clone().or_else(|| {
                field(&metadata, "issuer").and_then(|issuer| issuer.as_str()).map(str::to_owned)
            }),
            token_endpoint: metadata.token_endpoint.clone(),
            resource: resource.unwrap_or_else(|| self.url.to_string()),
            scopes,
            client,
        })
    }
}

/// The identity provider of an enterprise.
struct Provider<'s> {
    endpoint: &'s str,
    client_id: &'s Option<String>,
    client_secret: &'s Option<String>,
}

impl Provider<'_> {
    /// Exchanges an ID token for an assertion to the authorization server.
    async fn exchange(&self, token: &str, place: &GrantPlace) -> Result<String, RenewError> {
        let failed = |why: &str| RenewError::Failed(format!("the identity provider: {why}"));
        let url = Url::parse(self.endpoint).map_err(|_| failed("its endpoint is not a URL"))?;
        // A person configured the endpoint.
        let http = GuardedClient::new(&url).map_err(|error| failed(&error.to_string()))?;
        let client = OauthClient {
            id: self.client_id.clone().unwrap_or_default(),
            secret: self.client_secret.clone(),
            method: super::credentials::ClientMethod::Basic,
        };
        let audience = place.issuer.as_deref().unwrap_or(&place.token_endpoint);
        let scope = place.scopes.join(" ");
        let mut fields = vec![
            ("grant_type", EXCHANGE),
            ("requested_token_type", ID_JAG_TYPE),
            ("subject_token", token),
            ("subject_token_type", ID_TOKEN_TYPE),
            ("audience", audience),
            ("resource", &place.resource),
        ];
        if !scope.is_empty() {
            fields.push(("scope", &scope));
        }
        let granted = renew::request_token(&http, self.endpoint, &client, &fields).await;
        granted.map(|granted| granted.access_token).map_err(|error| match error {
            RenewError::Over => failed("it refused the ID token"),
            RenewError::Failed(why) => failed(&why),
        })
    }
}

/// A signed statement of who the client is (RFC 7523, section 3).
fn assertion(key: &str, client: &str, audience: &str) -> Option<String> {
    let body: String =
        key.lines().filter(|line| !line.starts_with("-----")).map(str::trim).collect();
    let der = BASE64_STANDARD.decode(body).ok()?;
    let random = SystemRandom::new();
    let ecdsa = |algorithm| EcdsaKeyPair::from_pkcs8(algorithm, &der, &random).ok();
    let mut id = [0_u8; 16];
    getrandom::fill(&mut id).ok()?;
    let begins = now();
    let claims = json!({
        "iss": client, "sub": client, "aud": audience, "iat": begins,
        "exp": begins + ASSERTION_SECONDS, "jti": BASE64_URL_SAFE_NO_PAD.encode(id),
    });
    let signed = |algorithm: &str, sign: &dyn Fn(&[u8]) -> Option<Vec<u8>>| {
        let header = json!({ "alg": algorithm, "typ": "JWT" }).to_string();
        let parts = [header, claims.to_string()].map(|part| BASE64_URL_SAFE_NO_PAD.encode(part));
        let text = parts.join(".");
        let signature = BASE64_URL_SAFE_NO_PAD.encode(sign(text.as_bytes())?);
        Some(format!("{text}.{signature}"))
    };
    for (name, algorithm) in
        [("ES256", &ECDSA_P256_SHA256_FIXED_SIGNING), ("ES384", &ECDSA_P384_SHA384_FIXED_SIGNING)]
    {
        if let Some(pair) = ecdsa(algorithm) {
            return signed(name, &|text| Some(pair.sign(&random, text).ok()?.as_ref().to_vec()));
        }
    }
    if let Ok(pair) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der) {
        return signed("EdDSA", &|text| Some(pair.sign(text).as_ref().to_vec()));
    }
    let pair = RsaKeyPair::from_pkcs8(&der).ok()?;
    signed("RS256", &|text| {
        let mut signature = vec![0; pair.public().modulus_len()];
        pair.sign(&RSA_PKCS1_SHA256, &random, text, &mut signature).ok()?;
        Some(signature)
    })
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Person => "Person",
            Self::ClientCredentials { .. } => "ClientCredentials",
            Self::JwtBearer(_) => "JwtBearer",
            Self::Exchange { .. } => "Exchange",
            Self::Enterprise { .. } => "Enterprise",
        })
    }
}
