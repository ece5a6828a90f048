//! The client alone: what rmcp does is the measure.

use rmcp::service::{
    ClientInitializeError, RoleClient, RunningService, ServiceError, serve_client_with_lifecycle,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, StreamableHttpClientTransport,
    StreamableHttpClientTransportConfig,
};

use super::Scenario;
use super::answers::AcceptingClient;
use super::authorise::Authorised;
use super::steps;
use crate::Failure;

/// How often a server may ask for authorisation before the client gives up.
const MAX_CHALLENGES: usize = 3;

/// Connects and does what the scenario wants, and authorises itself as often as it is asked to, within reason.
pub(super) async fn run(url: &str, scenario: &Scenario) -> Result<(), Failure> {
    let mut authorised = None;
    for _ in 0..MAX_CHALLENGES {
        let Err(error) = attempt(url, scenario, authorised.as_ref()).await else { return Ok(()) };
        let Some(challenge) = challenge(error.as_ref()) else { return Err(error) };
        authorised = Some(Authorised::answer(url, scenario, authorised, &challenge).await?);
    }
    Err("the server asks for authorisation again and again".into())
}

async fn attempt(
    url: &str,
    scenario: &Scenario,
    authorised: Option<&Authorised>,
) -> Result<(), Failure> {
    let client = connect(url, scenario, authorised).await?;
    let outcome = steps::take(&client, scenario).await;
    // The end of the connection is not part of the scenario.
    let _ = client.cancel().await;
    outcome.map(drop).map_err(unwrapped)
}

async fn connect(
    url: &str,
    scenario: &Scenario,
    authorised: Option<&Authorised>,
) -> Result<RunningService<RoleClient, AcceptingClient>, ClientInitializeError> {
    let config = StreamableHttpClientTransportConfig::with_uri(url);
    let lifecycle = scenario.lifecycle.clone();
    match authorised {
        None => {
            let transport = StreamableHttpClientTransport::from_config(config);
            serve_client_with_lifecycle(AcceptingClient, transport, lifecycle).await
        }
        Some(authorised) => {
            let transport = StreamableHttpClientTransport::with_client(authorised.client(), config);
            serve_client_with_lifecycle(AcceptingClient, transport, lifecycle).await
        }
    }
}

/// rmcp does not name the error of a transport as the source of its own.
fn unwrapped(error: ServiceError) -> Failure {
    match error {
        ServiceError::TransportSend(error) => error.error,
        error => error.into(),
    }
}

/// The challenge of a server that wants to be authorised to.
fn challenge(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    if let Some(error) = error.downcast_ref::<ClientInitializeError>() {
        return error.auth_challenge().map(str::to_owned);
    }
    let mut source = Some(error);
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<AuthRequiredError>() {
            return Some(error.www_authenticate_header.clone());
        }
        if let Some(error) = error.downcast_ref::<InsufficientScopeError>() {
            return Some(error.www_authenticate_header.clone());
        }
        source = error.source();
    }
    None
}
