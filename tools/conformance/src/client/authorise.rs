//! Authorisation by rmcp's own means, with a person who consents at once.

use rmcp::transport::auth::{
    AuthClient, AuthorizationCallback, AuthorizationRequest, OAuthState, WWWAuthenticateParams,
};

use super::Scenario;
use crate::Failure;

/// The document that the suite knows this client by.
pub(super) const CLIENT_METADATA_URL: &str = "https://conformance-test.local/client-metadata.json";

const REDIRECT_URI: &str = "http://localhost:3000/callback";

/// A client that has been authorised.
pub(super) struct Authorised {
    client: AuthClient<reqwest::Client>,
}

impl Authorised {
    /// Does what a challenge asks for: a first authorisation, or a wider one.
    pub(super) async fn answer(
        url: &str,
        scenario: &Scenario,
        before: Option<Self>,
        challenge: &str,
    ) -> Result<Self, Failure> {
        let params = WWWAuthenticateParams::parse(challenge, &url.parse()?);
        match before {
            Some(before) if params.is_insufficient_scope() => {
                before.widen(&params.scope.unwrap_or_default()).await?;
                Ok(before)
            }
            _ => Self::first(url, scenario, challenge).await,
        }
    }

    /// An HTTP client that says who it is.
    pub(super) fn client(&self) -> AuthClient<reqwest::Client> {
        self.client.clone()
    }

    async fn first(url: &str, scenario: &Scenario, challenge: &str) -> Result<Self, Failure> {
        let mut request = AuthorizationRequest::new(REDIRECT_URI)
            .with_initial_scope_selection()
            .with_client_name("toolgate-conformance")
            .with_client_metadata_url(CLIENT_METADATA_URL)
            .with_challenge(challenge);
        if let Some(id) = scenario.said("client_id") {
            request = request.with_preregistered_client(id);
        }
        if let Some(secret) = scenario.said("client_secret") {
            request = request.with_client_secret(secret);
        }
        let mut state = OAuthState::new(url, None).await?;
        state.start_authorization(request).await?;
        let redirect = consent(&state.get_authorization_url().await?).await?;
        state.handle_callback_url(&redirect).await?;
        let manager = state.into_authorization_manager().ok_or("nothing was authorised")?;
        Ok(Self { client: AuthClient::new(toolgate_http::client_builder().build()?, manager) })
    }

    async fn widen(&self, scope: &str) -> Result<(), Failure> {
        let manager = self.client.auth_manager.lock().await;
        let redirect = consent(&manager.request_scope_upgrade(scope).await?).await?;
        let callback = AuthorizationCallback::from_redirect_url(&redirect)?;
        let issuer = callback.issuer.as_deref();
        manager
            .exchange_code_for_token_with_issuer(&callback.code, &callback.csrf_token, issuer)
            .await?;
        Ok(())
    }
}

/// Visits the consent page. Returns the redirect URL.
async fn consent(url: &str) -> Result<String, Failure> {
    let browser =
        toolgate_http::client_builder().redirect(reqwest::redirect::Policy::none()).build()?;
    let response = browser.get(url).send().await?;
    let location = response.headers().get(reqwest::header::LOCATION);
    Ok(location.ok_or("nobody was sent anywhere")?.to_str()?.to_owned())
}
