//! Web pages: allowed origins and CORS.

use reqwest::{Method, RequestBuilder};
use toolgate_gateway::CredentialRequirement;

use super::{Guarded, ask};
use crate::support::{Endpoint, status};

async fn endpoint() -> Endpoint {
    Endpoint::with(|settings| {
        settings.allowed_hosts = vec!["tools.example.com".to_owned(), "named:81".to_owned()];
        settings.allowed_origins = vec!["https://app.example.com".to_owned()];
    })
    .await
}

#[tokio::test]
async fn dns_rebinding_is_refused() {
    let endpoint = endpoint().await;
    let port = endpoint.address.port();
    let to = |host: String| ask(&endpoint).header("host", host);
    for host in [
        format!("localhost:{port}"),
        format!("127.0.0.1:{port}"),
        format!("[::1]:{port}"),
        "tools.example.com".to_owned(),
        "TOOLS.example.com:443".to_owned(),
        "named:81".to_owned(),
    ] {
        assert_eq!(status(to(host.clone())).await, 200, "{host}");
    }
    for host in [
        format!("evil.example:{port}"),
        format!("localhost.evil.example:{port}"),
        format!("127.0.0.1.evil.example:{port}"),
        format!("10.0.0.1:{port}"),
        "localhost:1".to_owned(),
        "evil.tools.example.com".to_owned(),
        "named:82".to_owned(),
        "named".to_owned(),
    ] {
        assert_eq!(status(to(host.clone())).await, 403, "{host}");
    }
    let forwarded = to("evil.example".to_owned()).header("x-forwarded-host", "tools.example.com");
    assert_eq!(status(forwarded).await, 403, "what is forwarded says nothing");
}

#[tokio::test]
async fn other_origins_are_refused() {
    let endpoint = endpoint().await;
    let from = |origin: &str| ask(&endpoint).header("origin", origin);
    let allowed = ["https://app.example.com", "http://localhost:5173", "http://127.0.0.1"];
    for origin in allowed {
        let response = from(origin).send().await.unwrap();
        assert_eq!(response.status(), 200, "{origin}");
        assert_eq!(response.headers()["access-control-allow-origin"], origin);
        assert_eq!(response.headers()["vary"], "origin");
    }
    for origin in [
        "null",
        "https://evil.example",
        "http://app.example.com",
        "https://app.example.com.evil.example",
        "http://localhost.evil.example",
        "file://",
        "chrome-extension://abc",
    ] {
        let response = from(origin).send().await.unwrap();
        assert_eq!(response.status(), 403, "{origin}");
        assert!(!response.headers().contains_key("access-control-allow-origin"), "{origin}");
    }
}

#[tokio::test]
async fn cors_preflight_needs_no_token() {
    let guarded = Guarded::start(CredentialRequirement::Required).await;
    let endpoint = &guarded.endpoint;
    let asking = |origin: &str| -> RequestBuilder {
        endpoint
            .client
            .request(Method::OPTIONS, endpoint.url())
            .header("origin", origin)
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "authorization,mcp-session-id")
    };
    let response = asking("http://localhost:5173").send().await.unwrap();
    assert_eq!(response.status(), 204);
    let headers = response.headers();
    assert_eq!(headers["access-control-allow-origin"], "http://localhost:5173");
    assert_eq!(headers["access-control-allow-headers"], "authorization,mcp-session-id");
    assert!(!headers.contains_key("access-control-allow-credentials"));
    assert_eq!(status(asking("https://evil.example")).await, 403);
    let refused = guarded.ask().header("origin", "http://localhost:5173").send().await.unwrap();
    assert_eq!(refused.status(), 401);
    let exposed = refused.headers()["access-control-expose-headers"].to_str().unwrap();
    assert!(exposed.contains("www-authenticate"), "a page has to see where to get a token");
    let plain = endpoint.client.request(Method::OPTIONS, endpoint.url());
    assert_eq!(status(plain).await, 401);
}
