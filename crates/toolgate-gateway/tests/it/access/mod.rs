//! Access control, and its refusals.

mod keys;
mod pages;
mod signed;
mod tokens;

use std::sync::Arc;

use reqwest::{RequestBuilder, Response};
use serde_json::json;
use tempfile::TempDir;
use toolgate_gateway::{AccessControl, CredentialRequirement, IssuerSettings, NamespaceRoute};
use toolgate_store::{AccessTokens, Store, TokenOrder};
use toolgate_testkit::Issuer;

use crate::support::Endpoint;

/// An endpoint that knows tokens, in a folder of their own.
struct Guarded {
    endpoint: Endpoint,
    tokens: Arc<dyn AccessTokens>,
    folder: TempDir,
}

impl Guarded {
    async fn start(credentials: CredentialRequirement) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Store::new(folder.path()).access_tokens();
        let access = AccessControl::new(credentials).with_tokens(tokens.clone());
        let endpoint = Endpoint::with(|settings| {
            settings.access = access;
            let factory = settings.namespaces.routes().remove(0).factory;
            settings.namespaces.push(NamespaceRoute { path: "/mcp/work".to_owned(), factory });
        });
        Self { endpoint: endpoint.await, tokens, folder }
    }

    fn token(&self, name: &str) -> String {
        self.limited(name, None, &[])
    }

    fn limited(&self, name: &str, expires: Option<u64>, namespaces: &[&str]) -> String {
        let namespaces = namespaces.iter().map(ToString::to_string).collect();
        let order = TokenOrder { name: Some(name.to_owned()), expires, namespaces };
        self.tokens.create(&order, 1_794_780_371).unwrap().1.expose().to_owned()
    }

    /// A request that needs no session.
    fn ask(&self) -> RequestBuilder {
        ask(&self.endpoint)
    }
}

/// An endpoint that knows an issuer.
async fn signed(issuer: &Issuer, change: impl FnOnce(&mut IssuerSettings)) -> Endpoint {
    let mut settings = IssuerSettings {
        issuer: issuer.url().to_owned(),
        resource: RESOURCE.to_owned(),
        audience: None,
        jwks_url: None,
        required_scopes: vec!["tools:call".to_owned()],
    };
    change(&mut settings);
    let access = AccessControl::new(CredentialRequirement::Required).with_issuer(settings).unwrap();
    Endpoint::with(|settings| settings.access = access).await
}

const RESOURCE: &str = "https://tools.example.com/mcp";
const METADATA: &str = "https://tools.example.com/.well-known/oauth-protected-resource/mcp";

fn ask(endpoint: &Endpoint) -> RequestBuilder {
    endpoint.modern("tools/list", json!({}))
}

/// The status and the challenge.
async fn answer(request: RequestBuilder) -> (u16, Option<String>) {
    let response = request.send().await.unwrap();
    (response.status().as_u16(), challenge(&response))
}

fn challenge(response: &Response) -> Option<String> {
    let value = response.headers().get("www-authenticate")?;
    Some(value.to_str().unwrap().to_owned())
}
