//! Tokens that an issuer has signed.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use toolgate_testkit::{Issuer, SigningKey};

use super::{METADATA, RESOURCE, answer, ask, signed};
use crate::support::{Events, call, deadline, initialize, status};

fn expected(error: &str) -> String {
    let error = if error.is_empty() { String::new() } else { format!("error=\"{error}\", ") };
    format!("Bearer {error}resource_metadata=\"{METADATA}\", scope=\"tools:call\"")
}

/// Good claims but for one.
fn but(issuer: &Issuer, key: &str, value: Value) -> Value {
    let mut claims = issuer.claims(RESOURCE);
    if value.is_null() {
        claims.as_object_mut().unwrap().remove(key);
    } else {
        claims[key] = value;
    }
    claims
}

#[tokio::test]
async fn a_valid_token_gives_access_and_a_missing_one_gets_401() {
    let issuer = Issuer::start().await.unwrap();
    let endpoint = signed(&issuer, |_| {}).await;
    assert_eq!(answer(ask(&endpoint)).await, (401, Some(expected(""))));
    let good = issuer.sign(&issuer.claims(RESOURCE)).unwrap();
    for _ in 0..3 {
        assert_eq!(status(ask(&endpoint).bearer_auth(&good)).await, 200);
    }
    assert_eq!(issuer.requests(), 1, "keys are kept");
    for claims in [
        but(&issuer, "aud", json!(["elsewhere", RESOURCE])),
        but(&issuer, "nbf", Value::Null),
        but(&issuer, "sub", Value::Null),
        but(&issuer, "scope", json!("tools:call")),
    ] {
        let token = issuer.sign(&claims).unwrap();
        assert_eq!(status(ask(&endpoint).bearer_auth(&token)).await, 200, "{claims}");
    }
    let mut claims = but(&issuer, "scope", Value::Null);
    claims["scp"] = json!(["tools:call"]);
    let token = issuer.sign(&claims).unwrap();
    assert_eq!(status(ask(&endpoint).bearer_auth(&token)).await, 200);
}

#[tokio::test]
async fn every_invalid_token_gets_the_same_response() {
    let issuer = Issuer::start().await.unwrap();
    let now = issuer.claims("")["iat"].as_u64().unwrap();
    let mut wrong: Vec<(String, String)> = Vec::new();
    for (key, value) in [
        ("aud", json!("https://other.example/mcp")),
        ("aud", json!(["https://other.example/mcp"])),
        ("aud", json!([])),
        ("aud", Value::Null),
        ("iss", json!("https://other.example")),
        ("iss", json!([issuer.url()])),
        ("iss", Value::Null),
        ("exp", json!(now - 3_600)),
        ("exp", json!("tomorrow")),
        ("exp", Value::Null),
        ("nbf", json!(now + 3_600)),
        ("cnf", json!({ "jkt": "abc" })),
        ("sub", json!("x".repeat(2_000))),
    ] {
        let claims = but(&issuer, key, value.clone());
        wrong.push((format!("{key} {value}"), issuer.sign(&claims).unwrap()));
    }
    wrong.extend(forged(&issuer));
    for (what, token) in wrong {
        // Failures are counted: each gets an endpoint of its own.
        let endpoint = signed(&issuer, |_| {}).await;
        let told = answer(ask(&endpoint).bearer_auth(token)).await;
        assert_eq!(told, (401, Some(expected("invalid_token"))), "{what}");
    }
}

/// Tokens whose claims are good.
fn forged(issuer: &Issuer) -> Vec<(String, String)> {
    let claims = issuer.claims(RESOURCE);
    let key = issuer.key().unwrap();
    let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let none =
        |alg: &str| format!("{}.{}.", part(&json!({ "alg": alg, "typ": "JWT" })), part(&claims));
    let mut forged: Vec<(String, String)> =
        ["none", "None", "nOnE"].map(|alg| (alg.to_owned(), none(alg))).to_vec();
    // The public key as a shared secret, in the forms that have been fallen for.
    let public = key.public().unwrap();
    let raw = BASE64_URL_SAFE_NO_PAD.decode(public["x"].as_str().unwrap()).unwrap();
    for secret in [public.to_string().into_bytes(), raw] {
        let header = json!({ "alg": "HS256", "kid": "first", "typ": "JWT" });
        let message = format!("{}.{}", part(&header), part(&claims));
        let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &secret);
        let signature = ring::hmac::sign(&secret, message.as_bytes());
        let signature = BASE64_URL_SAFE_NO_PAD.encode(signature);
        forged.push(("HS256".to_owned(), format!("{message}.{signature}")));
    }
    let other = SigningKey::generate("first", "ES256").unwrap();
    let header = json!({ "alg": "ES256", "kid": "first", "typ": "JWT" });
    forged.push(("another's key".to_owned(), other.sign(&header, &claims).unwrap()));
    for (what, header) in [
        ("a key that is not known", json!({ "alg": "ES256", "kid": "second" })),
        ("its own key", json!({ "alg": "ES256", "jwk": other.public().unwrap() })),
        ("its own address of keys", json!({ "alg": "ES256", "jku": "http://127.0.0.1:9/k" })),
    ] {
        forged.push((what.to_owned(), other.sign(&header, &claims).unwrap()));
    }
    for (what, header) in [
        ("another type", json!({ "alg": "ES256", "kid": "first", "typ": "dpop+jwt" })),
        ("an extension", json!({ "alg": "ES256", "kid": "first", "crit": ["exp"] })),
        ("another algorithm", json!({ "alg": "ES384", "kid": "first" })),
        ("another family", json!({ "alg": "RS256", "kid": "first" })),
    ] {
        forged.push((what.to_owned(), key.sign(&header, &claims).unwrap()));
    }
    let good = issuer.sign(&claims).unwrap();
    let (head, signature) = good.rsplit_once('.').unwrap();
    let (header, _) = head.split_once('.').unwrap();
    let mut more = claims.clone();
    more["sub"] = json!("root");
    forged.push(("other claims".to_owned(), format!("{header}.{}.{signature}", part(&more))));
    forged.push(("no signature".to_owned(), format!("{head}.")));
    forged.push(("two parts".to_owned(), head.to_owned()));
    forged
}

#[tokio::test]
async fn a_missing_scope_is_told() {
    let issuer = Issuer::start().await.unwrap();
    let endpoint = signed(&issuer, |_| {}).await;
    for scope in [json!("tools:read"), json!("tools:calls"), json!(""), Value::Null, json!(7)] {
        let token = issuer.sign(&but(&issuer, "scope", scope.clone())).unwrap();
        let told = answer(ask(&endpoint).bearer_auth(&token)).await;
        assert_eq!(told, (403, Some(expected("insufficient_scope"))), "{scope}");
    }
}

#[tokio::test]
async fn all_public_key_algorithms_are_understood() {
    let issuer = Issuer::start().await.unwrap();
    let names = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];
    let keys: Vec<SigningKey> =
        names.iter().map(|name| SigningKey::generate(name, name).unwrap()).collect();
    issuer.replace_keys(keys.clone());
    let endpoint = signed(&issuer, |_| {}).await;
    for key in keys {
        let name = key.algorithm();
        let header = json!({ "alg": name, "kid": name, "typ": "JWT" });
        let token = key.sign(&header, &issuer.claims(RESOURCE)).unwrap();
        assert_eq!(status(ask(&endpoint).bearer_auth(&token)).await, 200, "{name}");
    }
}

#[tokio::test]
async fn a_caller_is_issuer_subject_and_client() {
    let issuer = Issuer::start().await.unwrap();
    let endpoint = signed(&issuer, |_| {}).await;
    let ada = issuer.sign(&issuer.claims(RESOURCE)).unwrap();
    let begun = endpoint.post(&initialize("2025-11-25")).bearer_auth(&ada).send().await.unwrap();
    let id = begun.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let in_session = |token: &str| {
        endpoint.post(&call(1, "echo")).bearer_auth(token).header("mcp-session-id", &id)
    };
    for (key, value) in [("sub", json!("bob")), ("client_id", json!("other")), ("sub", Value::Null)]
    {
        let other = issuer.sign(&but(&issuer, key, value)).unwrap();
        assert_eq!(status(in_session(&other)).await, 404);
    }
    let refreshed = issuer.sign(&but(&issuer, "jti", json!("2"))).unwrap();
    assert_ne!(refreshed, ada);
    assert_eq!(status(in_session(&refreshed)).await, 200, "the same caller with a new token");
}

#[tokio::test]
async fn clients_are_told_where_tokens_come_from() {
    let issuer = Issuer::start().await.unwrap();
    let endpoint = signed(&issuer, |_| {}).await;
    let at = |path: &str| endpoint.client.get(format!("http://{}{path}", endpoint.address));
    for path in ["", "/mcp"] {
        let path = format!("/.well-known/oauth-protected-resource{path}");
        let document: Value = at(&path).send().await.unwrap().json().await.unwrap();
        assert_eq!(
            document,
            json!({
                "resource": RESOURCE,
                "authorization_servers": [issuer.url()],
                "bearer_methods_supported": ["header"],
                "resource_name": "toolgate",
                "scopes_supported": ["tools:call"],
            })
        );
    }
    assert_eq!(status(at("/.well-known/oauth-protected-resource/other")).await, 404);
    let rebound = at("/.well-known/oauth-protected-resource").header("host", "evil.example");
    assert_eq!(status(rebound).await, 403);
    let known = at("/.well-known/oauth-protected-resource").header("host", "tools.example.com");
    assert_eq!(status(known).await, 200, "the host of the resource is ours");
    let open = crate::support::Endpoint::start().await;
    let path = format!("http://{}/.well-known/oauth-protected-resource", open.address);
    assert_eq!(status(open.client.get(path)).await, 404);
}

#[tokio::test]
async fn the_audience_can_be_configured() {
    let issuer = Issuer::start().await.unwrap();
    let endpoint = signed(&issuer, |settings| settings.audience = Some("tools".to_owned())).await;
    let named = issuer.sign(&issuer.claims("tools")).unwrap();
    assert_eq!(status(ask(&endpoint).bearer_auth(&named)).await, 200);
    let by_url = issuer.sign(&issuer.claims(RESOURCE)).unwrap();
    assert_eq!(status(ask(&endpoint).bearer_auth(&by_url)).await, 401);
}

#[tokio::test]
async fn a_stream_ends_when_its_signed_token_expires() {
    let issuer = Issuer::start().await.unwrap();
    let endpoint = signed(&issuer, |_| {}).await;
    // Clocks may differ by a minute, so that it is good for a few seconds yet.
    let now = issuer.claims("")["iat"].as_u64().unwrap();
    let token = issuer.sign(&but(&issuer, "exp", json!(now - 60 + 6))).unwrap();
    let begun = endpoint.post(&initialize("2025-11-25")).bearer_auth(&token).send().await.unwrap();
    let id = begun.headers()["mcp-session-id"].clone();
    let stream = endpoint.client.get(endpoint.url()).header("accept", "text/event-stream");
    let stream = stream.header("mcp-session-id", id).bearer_auth(&token).send().await.unwrap();
    tokio::time::timeout(deadline(), Events::new(stream).rest()).await.expect("the stream ends");
    assert_eq!(answer(ask(&endpoint).bearer_auth(&token)).await.0, 401);
}
