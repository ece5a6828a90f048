//! `gateway`.

use insta::assert_snapshot;
use toolgate_config::GatewayConfig;

use crate::{problems, read};

fn file(gateway: &str) -> String {
    format!(r#"{{ "mcpServers": {{ "a": {{ "command": "x" }} }}, "gateway": {gateway} }}"#)
}

#[test]
fn all_of_it_is_read() {
    let configuration = read(&file(
        r#"{ "requireToken": true, "allowedHosts": ["tools.example.com", "10.0.0.1:8080", "[::1]:9"],
            "allowedOrigins": ["https://App.example.com", "http://localhost:5173"],
            "oauth": { "issuer": "https://${HOST}/", "resource": "https://tools.example.com/mcp",
                "audience": "tools", "jwksUrl": "http://127.0.0.1:9/keys", "requiredScopes": ["mcp:use"] },
            "maxBodyBytes": 2048, "maxSessionsPerCaller": 7 }"#,
    ));
    assert_eq!(configuration.problems, []);
    let gateway = configuration.gateway;
    assert!(gateway.require_token);
    assert_eq!(gateway.allowed_hosts, ["tools.example.com", "10.0.0.1:8080", "[::1]:9"]);
    assert_eq!(gateway.allowed_origins, ["https://app.example.com", "http://localhost:5173"]);
    assert_eq!((gateway.max_body_bytes, gateway.max_sessions_per_caller), (2048, 7));
    assert_eq!(gateway.max_sessions, GatewayConfig::default().max_sessions);
    let oauth = gateway.oauth.expect("an issuer");
    assert_eq!(oauth.issuer, "https://crm.example/", "as it is written");
    assert_eq!(oauth.audience.as_deref(), Some("tools"));
    assert_eq!(oauth.required_scopes, ["mcp:use"]);
}

#[test]
fn a_mistake_in_the_access_settings_requires_a_token() {
    let mut told = Vec::new();
    for gateway in [
        "true",
        r#"{ "requireToken": "yes" }"#,
        r#"{ "oauth": "https://idp.example" }"#,
        r#"{ "oauth": {} }"#,
        r#"{ "oauth": { "issuer": "http://idp.example", "resource": "https://a.example/mcp" } }"#,
        r#"{ "oauth": { "issuer": "idp", "resource": "https://a.example/mcp#x" } }"#,
        r#"{ "oauth": { "issuer": "https://i.example", "resource": "https://a.example/mcp",
            "audience": "${MISSING}" } }"#,
        r#"{ "oauth": { "issuer": "https://i.example", "resource": "https://a.example/mcp",
            "requiredScopes": ["a b"] } }"#,
        r#"{ "oauth": { "issuer": "https://i.example", "resource": "https://a.example/mcp",
            "jwksUrl": "http://keys.example/" } }"#,
    ] {
        let read = read(&file(gateway)).gateway;
        assert_eq!((read.require_token, read.oauth), (true, None), "{gateway}");
        told.push(problems(&file(gateway)));
    }
    assert_snapshot!(told.join("\n"), @r#"
    error: toolgate.json:1:57: `gateway` must be an object, but is a boolean; every client needs a token
    error: toolgate.json:1:75: `gateway.requireToken` must be true or false, but is a string
    error: toolgate.json:1:68: `gateway.oauth` must be an object, but is a string
      hint: write `"oauth": { "issuer": "https://…", "resource": "https://…/mcp" }`
    error: toolgate.json:1:68: `gateway.oauth` has no `issuer`
      hint: add `"issuer": "https://…"`
    error: toolgate.json:1:68: `gateway.oauth` has no `resource`
      hint: add `"resource": "https://…"`
    error: toolgate.json:1:80: `gateway.oauth.issuer` must begin with `https://`, unless it is on this machine
      hint: somebody who changes its response on the way could decide who may connect
    error: toolgate.json:1:80: `gateway.oauth.issuer` is not a URL that begins with `https://`
      hint: write the whole URL, without `?` and `#`
    error: toolgate.json:1:99: `gateway.oauth.resource` is not a URL that begins with `https://`
      hint: write the whole URL, without `?` and `#`
    error: toolgate.json:2:25: `gateway.oauth.audience` needs the environment variable `MISSING`, which is not set
      hint: set `MISSING`, or write `${MISSING:-default}`
    error: toolgate.json:2:32: `gateway.oauth.requiredScopes[0]` must be one scope
    error: toolgate.json:2:24: `gateway.oauth.jwksUrl` must begin with `https://`, unless it is on this machine
      hint: somebody who changes its response on the way could decide who may connect
    "#);
    assert_snapshot!(problems(&file(
        r#"{ "allowedHosts": ["https://a.example", "*.example", "a.example/x"], "maxSessions": 0,
            "allowedOrigins": ["*", "https://a.example/", "null"], "requireTokens": true }"#
    )), @"
    warning: toolgate.json:1:76: `gateway.allowedHosts[0]` must be a host with or without a port, such as `tools.example.com`; it is ignored
    warning: toolgate.json:1:97: `gateway.allowedHosts[1]` must be a host with or without a port, such as `tools.example.com`; it is ignored
    warning: toolgate.json:1:110: `gateway.allowedHosts[2]` must be a host with or without a port, such as `tools.example.com`; it is ignored
    warning: toolgate.json:1:141: `gateway.maxSessions` must be a whole number from 1 to 1,000,000; it is ignored
    warning: toolgate.json:2:32: `gateway.allowedOrigins[0]` must be an origin, such as `https://app.example.com`; it is ignored
    warning: toolgate.json:2:37: `gateway.allowedOrigins[1]` must be an origin, such as `https://app.example.com`; it is ignored
    warning: toolgate.json:2:59: `gateway.allowedOrigins[2]` must be an origin, such as `https://app.example.com`; it is ignored
    warning: toolgate.json:2:68: `gateway.requireTokens` is not a known key; it is ignored
      hint: did you mean `requireToken`?
    ");
}
