//! What we are to the authorisation server: RFC 9728.

use serde_json::{Value, json};
use url::Url;

use super::IssuerError;

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
/// Where the default namespace is.
const DEFAULT: &str = "/mcp";

/// The URLs under which clients know us. Every namespace is a resource of its own.
#[derive(Debug)]
pub(super) struct Resource {
    /// As it was configured, without a slash at its end.
    configured: String,
    /// The scheme and the host.
    origin: String,
    host: String,
    /// What a proxy has before our own paths; mostly nothing.
    prefix: String,
}

impl Resource {
    pub(super) fn new(configured: &str) -> Result<Self, IssuerError> {
        let wrong = IssuerError::Address("resource");
        let Ok(url) = Url::parse(configured) else { return Err(wrong) };
        let (Some(host), true) = (url.host_str(), matches!(url.scheme(), "http" | "https")) else {
            return Err(wrong);
        };
        let host = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let path = url.path().trim_end_matches('/');
        let prefix = path.strip_suffix(DEFAULT).unwrap_or(path).to_owned();
        let origin = format!("{}://{host}", url.scheme());
        let configured = configured.trim_end_matches('/').to_owned();
        Ok(Self { configured, origin, host, prefix })
    }

    pub(super) fn host(&self) -> String {
        self.host.clone()
    }

    /// The URL of what is at a path of ours.
    fn url(&self, place: &str) -> String {
        format!("{}{}{place}", self.origin, self.prefix)
    }

    /// Who a token for a place may be meant for: all of us, or that place.
    pub(super) fn audiences(&self, place: &str) -> Vec<String> {
        vec![self.configured.clone(), format!("{}/", self.configured), self.url(place)]
    }

    pub(super) fn metadata_url(&self, place: &str) -> String {
        format!("{}{WELL_KNOWN}{}{place}", self.origin, self.prefix)
    }

    /// The document for a path below the well-known one: ours, or the one that clients know. The
    /// bare well-known path is about the first place.
    pub(super) fn metadata(
        &self,
        path: &str,
        places: &[&str],
        issuer: &str,
        scopes: &[String],
    ) -> Option<Value> {
        let rest = path.strip_prefix(WELL_KNOWN)?.trim_end_matches('/');
        let is_asked = |place: &&&str| {
            rest == **place || rest.strip_prefix(&self.prefix).is_some_and(|rest| rest == **place)
        };
        let place = match rest {
            "" => places.first(),
            _ => places.iter().find(is_asked),
        };
        let mut document = json!({
            "resource": self.url(place?),
            "authorization_servers": [issuer],
            "bearer_methods_supported": ["header"],
            "resource_name": "toolgate",
        });
        if !scopes.is_empty() {
            document["scopes_supported"] = json!(scopes);
        }
        Some(document)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: &[&str] = &["/mcp", "/mcp/work"];

    fn resource_of(configured: &str, path: &str) -> Option<String> {
        let resource = Resource::new(configured).unwrap();
        let document = resource.metadata(path, PLACES, "https://idp.example", &[])?;
        Some(document["resource"].as_str().unwrap().to_owned())
    }

    #[test]
    fn every_namespace_is_a_resource() {
        let told = |path: &str| resource_of("https://tools.example.com/mcp", path);
        let whole = Some("https://tools.example.com/mcp".to_owned());
        assert_eq!(told("/.well-known/oauth-protected-resource"), whole);
        assert_eq!(told("/.well-known/oauth-protected-resource/"), whole);
        assert_eq!(told("/.well-known/oauth-protected-resource/mcp"), whole);
        let work = "https://tools.example.com/mcp/work";
        assert_eq!(told("/.well-known/oauth-protected-resource/mcp/work").as_deref(), Some(work));
        assert_eq!(told("/.well-known/oauth-protected-resource/mcp/other"), None);
        assert_eq!(told("/.well-known/oauth-protected-resources"), None);
        let bare = resource_of("https://t.example/", "/.well-known/oauth-protected-resource/mcp");
        assert_eq!(bare.as_deref(), Some("https://t.example/mcp"));
    }

    #[test]
    fn a_proxy_may_have_a_path_before_ours() {
        let configured = "https://example.com:8443/tools/mcp";
        let told = |path: &str| resource_of(configured, path);
        let expected = Some(configured.to_owned());
        assert_eq!(told("/.well-known/oauth-protected-resource/tools/mcp"), expected);
        assert_eq!(told("/.well-known/oauth-protected-resource/mcp"), expected);
        let resource = Resource::new(configured).unwrap();
        assert_eq!(
            resource.metadata_url("/mcp/work"),
            "https://example.com:8443/.well-known/oauth-protected-resource/tools/mcp/work"
        );
        assert_eq!(resource.host(), "example.com:8443");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for wrong in ["", "tools", "ftp://a.example", "data:x"] {
            assert!(Resource::new(wrong).is_err(), "{wrong}");
        }
    }
}
