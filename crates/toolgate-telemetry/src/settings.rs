//! The collector and the name of the service.

use std::{collections::BTreeMap, fmt};

use percent_encoding::percent_decode_str;
use thiserror::Error;
use url::Url;

/// The collector that telemetry is sent to. `Debug` shows no header.
#[derive(Clone, PartialEq, Eq)]
pub struct TelemetrySettings {
    /// The base URL of the collector's OTLP/HTTP receiver, such as `http://127.0.0.1:4318`.
    pub endpoint: Url,
    /// Headers for every request to it.
    pub headers: BTreeMap<String, String>,
    /// The `service.name` of all spans and metrics.
    pub service_name: String,
}

/// The settings of the configuration. The environment completes them.
#[derive(Clone, Default)]
pub struct TelemetryOptions {
    /// The base URL.
    pub endpoint: Option<String>,
    /// Headers; if there are none, those of the environment.
    pub headers: BTreeMap<String, String>,
    /// The `service.name` of all spans and metrics.
    pub service_name: Option<String>,
}

/// A variable of the environment has no valid value. Everything else works without telemetry.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0} is no URL that begins with `http://` or `https://`")]
pub struct InvalidEnvironment(&'static str);

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";
const DISABLED: &str = "OTEL_SDK_DISABLED";

impl TelemetryOptions {
    /// The settings, completed by the standard variables. `None` if there is no endpoint, or if
    /// `OTEL_SDK_DISABLED` is `true`.
    pub fn resolve(
        self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<TelemetrySettings>, InvalidEnvironment> {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        if set(DISABLED).is_some_and(|value| value.trim().eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let Some(endpoint) = self.endpoint.or_else(|| set(ENDPOINT)) else { return Ok(None) };
        let endpoint = Url::parse(endpoint.trim()).ok();
        let endpoint = endpoint.filter(|url| matches!(url.scheme(), "http" | "https"));
        let endpoint = endpoint.ok_or(InvalidEnvironment(ENDPOINT))?;
        let headers = match set(HEADERS) {
            Some(listed) if self.headers.is_empty() => read_headers(&listed),
            _ => self.headers,
        };
        let service_name = self.service_name.or_else(|| set(SERVICE_NAME));
        let service_name = service_name.unwrap_or_else(|| "toolgate".to_owned());
        Ok(Some(TelemetrySettings { endpoint, headers, service_name }))
    }
}

/// `key=value,key=value`, the values with percent signs. Other parts are ignored.
fn read_headers(listed: &str) -> BTreeMap<String, String> {
    let pairs = listed.split(',').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(name, value)| {
            let value = percent_decode_str(value.trim()).decode_utf8_lossy();
            (name.trim().to_owned(), value.into_owned())
        })
        .collect()
}

impl fmt::Debug for TelemetrySettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TelemetrySettings")
            .field("host", &self.endpoint.host_str())
            .field("headers", &format_args!("[{} headers]", self.headers.len()))
            .field("service_name", &self.service_name)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for TelemetryOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TelemetryOptions").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        move |name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn variables_replace_missing_settings() {
        let environment = [
            (ENDPOINT, "https://collector.example:4318"),
            (HEADERS, "api-key=a%20b, x = y ,nothing"),
            (SERVICE_NAME, "gate"),
        ];
        let resolved =
            TelemetryOptions::default().resolve(variables(&environment)).unwrap().unwrap();
        assert_eq!(resolved.endpoint.as_str(), "https://collector.example:4318/");
        let headers: Vec<_> = resolved.headers.into_iter().collect();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(headers, [pair("api-key", "a b"), pair("x", "y")]);
        assert_eq!(resolved.service_name, "gate");
        let said = TelemetryOptions {
            endpoint: Some("http://127.0.0.1:1".to_owned()),
            headers: BTreeMap::from([pair("x", "z")]),
            service_name: None,
        };
        let resolved = said.clone().resolve(variables(&environment)).unwrap().unwrap();
        assert_eq!(resolved.endpoint.as_str(), "http://127.0.0.1:1/");
        assert_eq!(resolved.headers, said.headers);
        assert!(!format!("{resolved:?}{said:?}").contains('z'));
    }

    #[test]
    fn nothing_is_sent_without_an_endpoint() {
        assert_eq!(TelemetryOptions::default().resolve(variables(&[])), Ok(None));
        let off = [(ENDPOINT, "http://127.0.0.1:1"), (DISABLED, "True")];
        assert_eq!(TelemetryOptions::default().resolve(variables(&off)), Ok(None));
        let wrong = TelemetryOptions::default().resolve(variables(&[(ENDPOINT, "collector:4317")]));
        assert_eq!(wrong, Err(InvalidEnvironment(ENDPOINT)));
    }
}
