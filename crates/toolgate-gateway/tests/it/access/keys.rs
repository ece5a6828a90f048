//! The keys of an issuer: where they are searched, and what happens if they are not available.

use serde_json::json;
use toolgate_gateway::{AccessControl, CredentialRequirement, IssuerSettings};
use toolgate_testkit::{Issuer, IssuerFault, SigningKey};

use super::{RESOURCE, ask, signed};
use crate::support::status;

#[tokio::test]
async fn an_unreachable_issuer_does_not_count_as_a_failure_of_the_client() {
    let issuer = Issuer::start().await.unwrap();
    let good = issuer.sign(&issuer.claims(RESOURCE)).unwrap();
    let elsewhere = Issuer::start().await.unwrap();
    for fault in [
        IssuerFault::Status(500),
        IssuerFault::Status(404),
        IssuerFault::OtherIssuer,
        IssuerFault::KeysAt("http://169.254.169.254/latest".to_owned()),
        IssuerFault::KeysAt("file:///etc/passwd".to_owned()),
        IssuerFault::Redirect(elsewhere.keys_url()),
        IssuerFault::Keys(json!([])),
        IssuerFault::Keys(json!({ "keys": [] })),
        IssuerFault::Keys(json!({ "keys": [{ "kty": "RSA" }, 7] })),
        IssuerFault::Padding(1024 * 1024),
    ] {
        issuer.fault(Some(fault.clone()));
        let endpoint = signed(&issuer, |_| {}).await;
        let response = ask(&endpoint).bearer_auth(&good).send().await.unwrap();
        let told = response.status().as_u16();
        // A set that holds other keys is an answer; the others are none.
        let is_set = matches!(&fault, IssuerFault::Keys(keys) if keys["keys"][0].is_object());
        assert_eq!(told, if is_set { 401 } else { 503 }, "{fault:?}");
        assert!(is_set || response.headers().contains_key("retry-after"));
    }
    assert_eq!(elsewhere.requests(), 0, "redirects are not followed");
}

#[tokio::test]
async fn one_bad_key_does_not_affect_the_others() {
    let issuer = Issuer::start().await.unwrap();
    let key = issuer.key().unwrap();
    let mut unsigned_use = key.public().unwrap();
    unsigned_use["use"] = json!("enc");
    let keys = json!({ "keys": [{ "kty": "future", "kid": "first" }, 7, { "kty": "oct", "k": "AAAA",
        "kid": "first" }, unsigned_use, key.public().unwrap()] });
    issuer.fault(Some(IssuerFault::Keys(keys)));
    let endpoint = signed(&issuer, |_| {}).await;
    let good = issuer.sign(&issuer.claims(RESOURCE)).unwrap();
    assert_eq!(status(ask(&endpoint).bearer_auth(&good)).await, 200);
}

#[tokio::test]
async fn a_token_without_a_key_id_uses_the_only_key() {
    let issuer = Issuer::start().await.unwrap();
    let key = issuer.key().unwrap();
    let nameless = key.sign(&json!({ "alg": "ES256" }), &issuer.claims(RESOURCE)).unwrap();
    let endpoint = signed(&issuer, |_| {}).await;
    assert_eq!(status(ask(&endpoint).bearer_auth(&nameless)).await, 200);
    issuer.replace_keys(vec![key, SigningKey::generate("second", "ES256").unwrap()]);
    let endpoint = signed(&issuer, |_| {}).await;
    assert_eq!(status(ask(&endpoint).bearer_auth(&nameless)).await, 401);
}

#[tokio::test]
async fn keys_are_read_from_the_configured_url() {
    let issuer = Issuer::start().await.unwrap();
    let keys = issuer.keys_url();
    // There is no metadata under this name.
    let endpoint = signed(&issuer, |settings| {
        settings.issuer.push_str("/tenant");
        settings.jwks_url = Some(keys);
    });
    let endpoint = endpoint.await;
    let mut claims = issuer.claims(RESOURCE);
    claims["iss"] = json!(format!("{}/tenant", issuer.url()));
    let good = issuer.sign(&claims).unwrap();
    assert_eq!(status(ask(&endpoint).bearer_auth(&good)).await, 200);
}

#[tokio::test]
async fn unknown_keys_do_not_cause_repeated_requests() {
    let issuer = Issuer::start().await.unwrap();
    let endpoint = signed(&issuer, |_| {}).await;
    let stranger = SigningKey::generate("strange", "ES256").unwrap();
    let header = |number: u32| json!({ "alg": "ES256", "kid": format!("k{number}") });
    for number in 0..15 {
        let token = stranger.sign(&header(number), &issuer.claims(RESOURCE)).unwrap();
        assert_eq!(status(ask(&endpoint).bearer_auth(&token)).await, 401);
    }
    assert_eq!(issuer.requests(), 1);
    let good = issuer.sign(&issuer.claims(RESOURCE)).unwrap();
    let asking = (0..20).map(|_| status(ask(&endpoint).bearer_auth(&good)));
    let statuses = futures::future::join_all(asking).await;
    assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
    assert_eq!(issuer.requests(), 1);
}

#[test]
fn key_urls_without_https_are_refused() {
    let settings = |issuer: &str, jwks: Option<&str>| IssuerSettings {
        issuer: issuer.to_owned(),
        resource: RESOURCE.to_owned(),
        audience: None,
        jwks_url: jwks.map(str::to_owned),
        required_scopes: Vec::new(),
    };
    let made = |issuer: &str, jwks: Option<&str>| {
        AccessControl::new(CredentialRequirement::Optional)
            .with_issuer(settings(issuer, jwks))
            .is_ok()
    };
    assert!(made("https://idp.example", None));
    assert!(!made("http://idp.example", None));
    assert!(!made("https://idp.example", Some("http://idp.example/keys")));
    assert!(!made("https://idp.example", Some("http://127.0.0.1/keys")));
    assert!(!made("nonsense", None));
}
