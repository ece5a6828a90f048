//! Where to log in, and as whom; and whom not to believe.

use std::{collections::BTreeMap, time::Duration};

use toolgate_testkit::{AuthorizationFault, AuthorizationOptions, Discovery, visit};
use toolgate_upstream::{AuthorizationSettings, CallbackListener, LoginError};

use super::Guarded;
use crate::support::{Gate, within};

/// The error that a login ends with.
async fn error(fault: AuthorizationFault) -> (Guarded, String) {
    let options = AuthorizationOptions { fault: Some(fault), ..Default::default() };
    let guarded = Guarded::start(options).await;
    let error = guarded.login().await.unwrap_err().to_string();
    assert!(guarded.authorizer().state().await.unwrap().is_none());
    assert!(!error.contains("-secret-"), "{error}");
    (guarded, error)
}

#[tokio::test]
async fn every_form_of_metadata_is_found() {
    for discovery in [Discovery::Challenge, Discovery::WellKnown, Discovery::Endpoints] {
        let options = AuthorizationOptions { discovery, ..AuthorizationOptions::default() };
        let guarded = Guarded::start(options).await;
        guarded.login().await.unwrap_or_else(|error| panic!("{discovery:?}: {error}"));
        Gate::ready(guarded.spec()).await;
        guarded.authorization.expire_access_tokens();
        Gate::ready(guarded.spec()).await;
        let record = guarded.authorization.record();
        assert_eq!((record.renewals, record.registrations.len()), (1, 1), "{discovery:?}");
        let resources = record.token_requests.iter().map(|request| request["resource"].as_str());
        assert!(resources.into_iter().all(|resource| resource == guarded.server.url()));
    }
}

#[tokio::test]
async fn the_client_id_is_configured_a_document_or_registered() {
    let options = AuthorizationOptions {
        reads_documents: true,
        client: Some(("agreed".into(), "the secret".into())),
        methods: vec!["none".into(), "client_secret_basic".into()],
        ..AuthorizationOptions::default()
    };
    let document = "https://client.example/toolgate.json";
    let mut guarded = Guarded::start(options).await;
    for (settings, client, registrations) in [
        (AuthorizationSettings::default(), "client-", 1),
        (
            AuthorizationSettings {
                client_metadata_url: Some(document.into()),
                ..AuthorizationSettings::default()
            },
            document,
            1,
        ),
        (
            AuthorizationSettings {
                client_id: Some("agreed".into()),
                client_secret: Some("the secret".into()),
                client_metadata_url: Some(document.into()),
                ..AuthorizationSettings::default()
            },
            "agreed",
            1,
        ),
    ] {
        guarded.settings = settings;
        guarded.login().await.unwrap();
        let record = guarded.authorization.record();
        let asked = &record.authorizations.last().unwrap()["client_id"];
        assert!(asked.starts_with(client), "{asked}");
        assert_eq!(record.registrations.len(), registrations);
        guarded.authorization.expire_access_tokens();
        Gate::ready(guarded.spec()).await;
    }
    assert_eq!(guarded.authorization.record().renewals, 3);
}

#[tokio::test]
async fn the_client_authenticates_with_an_offered_method() {
    for (method, field) in
        [("client_secret_basic", "authorization"), ("client_secret_post", "client_secret")]
    {
        let methods = vec![method.to_owned()];
        let guarded = Guarded::start(AuthorizationOptions { methods, ..Default::default() }).await;
        guarded.login().await.unwrap();
        guarded.authorization.expire_access_tokens();
        // A new process knows the secret too.
        Gate::ready(guarded.spec()).await;
        let requests = guarded.authorization.record().token_requests;
        assert_eq!(requests.len(), 2);
        assert!(requests.iter().all(|request| request.contains_key(field)), "{requests:?}");
    }
}

#[tokio::test]
async fn scopes_come_from_the_person_then_the_challenge_then_the_metadata() {
    let scopes = vec!["all".to_owned()];
    let options = AuthorizationOptions { scopes, ..AuthorizationOptions::default() };
    let challenge_scope = Some("some".to_owned());
    let challenged = AuthorizationOptions { challenge_scope, ..options.clone() };
    for (options, expected) in [
        (AuthorizationOptions::default(), None),
        (options, Some("all")),
        (challenged.clone(), Some("some")),
    ] {
        let guarded = Guarded::start(options).await;
        guarded.login().await.unwrap();
        let asked = guarded.authorization.record().authorizations;
        assert_eq!(asked[0].get("scope").map(String::as_str), expected);
    }
    let mut guarded = Guarded::start(challenged).await;
    guarded.settings.scopes = vec!["configured".into()];
    guarded.login().await.unwrap();
    guarded.login_for(&["typed", "too"]).await.unwrap();
    let asked = guarded.authorization.record().authorizations;
    let asked: Vec<&str> = asked.iter().map(|asked| asked["scope"].as_str()).collect();
    assert_eq!(asked, ["configured", "typed too"]);
}

#[tokio::test]
async fn a_server_with_false_metadata_gets_no_login() {
    use AuthorizationFault as Fault;
    for (fault, expected) in [
        (Fault::OtherIssuer, "issuer mismatch"),
        (Fault::OtherIss, "issuer mismatch"),
        (Fault::NoIss, "missing required issuer"),
        (Fault::NoPkce, "PKCE"),
        (Fault::OtherResource, "resource mismatch"),
        (Fault::Denies, "access_denied (not today)"),
    ] {
        let (guarded, error) = error(fault.clone()).await;
        assert!(error.contains(expected), "{fault:?}: {error}");
        assert!(guarded.authorization.record().token_requests.is_empty(), "{fault:?}");
    }
}

#[tokio::test]
async fn metadata_cannot_name_forbidden_addresses() {
    use AuthorizationFault as Fault;
    for fault in [
        Fault::PointsTo("https://169.254.169.254/".into()),
        Fault::PointsTo("https://10.0.0.1/".into()),
        Fault::PointsTo("http://login.example/".into()),
        Fault::PointsTo("file:///etc/passwd".into()),
        Fault::RedirectsTo("https://169.254.169.254/latest/meta-data/".into()),
        Fault::RedirectsTo("http://localhost:1/".into()),
        Fault::TokenEndpoint("https://169.254.169.254/token".into()),
        Fault::TokenEndpoint("http://login.example/token".into()),
        Fault::Page("javascript:alert(1)".into()),
        Fault::Page("file:///etc/passwd".into()),
        Fault::Page("http://login.example/".into()),
    ] {
        let (_, error) = error(fault.clone()).await;
        let told = [
            "no host to ask",
            "inside of a network",
            "not reached by `https`",
            "rejected",
            "none published",
        ];
        assert!(told.iter().any(|told| error.contains(told)), "{fault:?}: {error}");
    }
}

#[tokio::test]
async fn endless_responses_and_redirects_end() {
    use AuthorizationFault as Fault;
    let (_, endless) = error(Fault::Endless).await;
    assert!(endless.contains("more than 262144 bytes"), "{endless}");
    let (guarded, many) = error(Fault::PointsToMany).await;
    assert!(many.contains("more than 40 requests"), "{many}");
    assert!(guarded.authorization.record().metadata_requests < 40);
    let fault = Some(Fault::RedirectsTo("?again".into()));
    let guarded = Guarded::start(AuthorizationOptions { fault, ..Default::default() }).await;
    let looped = guarded.login().await.unwrap_err().to_string();
    assert!(looped.contains("redirects"), "{looped}");
}

#[tokio::test]
async fn a_redirect_of_another_login_is_ignored() {
    let guarded = Guarded::start(AuthorizationOptions::default()).await;
    let listener = CallbackListener::bind(None).await.unwrap();
    let address = listener.redirect_uri();
    let login = guarded.authorizer().begin(&address, &[], &BTreeMap::new()).await.unwrap();
    let browser = tokio::spawn({
        let page = login.url().to_string();
        async move {
            let root = address.strip_suffix("/callback").unwrap();
            let mut seen = Vec::new();
            for stray in ["/favicon.ico", "/callback?code=x&state=forged", "/callback"] {
                seen.push(visit(&format!("{root}{stray}")).await.unwrap().status);
            }
            let back = visit(&page).await.unwrap().location.unwrap();
            seen.push(visit(&back).await.unwrap().status);
            seen
        }
    });
    let answer = within("the browser", listener.answer(&login)).await.unwrap();
    assert_eq!(browser.await.unwrap(), [404, 400, 400, 200]);
    let foreign = "http://127.0.0.1:1/callback?code=x&state=forged";
    assert!(login.read_answer(foreign).is_none() && login.read_answer("no url").is_none());
    login.finish(&answer).await.unwrap();
}

#[tokio::test]
async fn a_server_that_asks_for_nothing_needs_no_login() {
    let fixture = toolgate_testkit::Fixture::new("open");
    let server = fixture.serve_http(([127, 0, 0, 1], 0).into()).await.unwrap();
    let guarded = Guarded::start(AuthorizationOptions::default()).await;
    let authorizer = guarded.authorizer_at(server.url());
    let begun = authorizer.begin("http://127.0.0.1:1/callback", &[], &BTreeMap::new()).await;
    assert!(matches!(begun, Err(LoginError::NotAsked)), "{begun:?}");
}

#[tokio::test]
async fn a_silent_client_does_not_hold_the_listener() {
    let guarded = Guarded::start(AuthorizationOptions::default()).await;
    let listener = CallbackListener::bind(None).await.unwrap();
    let redirect = listener.redirect_uri();
    let login = guarded.authorizer().begin(&redirect, &[], &BTreeMap::new()).await.unwrap();
    let host = redirect.trim_start_matches("http://").trim_end_matches("/callback").to_owned();
    let _silent = tokio::net::TcpStream::connect(&host).await.unwrap();
    let back = visit(login.url().as_str()).await.unwrap().location.unwrap();
    let browser = tokio::spawn(async move { visit(&back).await.unwrap() });
    let answer = tokio::time::timeout(
        toolgate_testkit::scaled(Duration::from_secs(5)),
        listener.answer(&login),
    )
    .await;
    answer.expect("the silent client was waited for").unwrap();
    browser.await.unwrap();
}
