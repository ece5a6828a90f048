//! Traces and metrics of this process, whatever it serves.

use std::{env, sync::OnceLock};

use toolgate_config::TelemetryKey;
use toolgate_telemetry::{Telemetry, Unsettled};

/// Namespaces share it: a process has one way out.
static TELEMETRY: OnceLock<Telemetry> = OnceLock::new();

/// What the configuration and the environment say, from the first host on.
pub(crate) fn of(key: &TelemetryKey) -> Telemetry {
    TELEMETRY.get_or_init(|| start(key)).clone()
}

/// Sends what waits, for a short time.
pub(crate) async fn end() {
    if let Some(telemetry) = TELEMETRY.get() {
        telemetry.shutdown().await;
    }
}

fn start(key: &TelemetryKey) -> Telemetry {
    if key.is_off {
        return Telemetry::off();
    }
    let said = Unsettled {
        endpoint: key.otlp_endpoint.clone(),
        headers: key
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.expose().to_owned()))
            .collect(),
        service_name: key.service_name.clone(),
    };
    let settings = match said.settle(|name| env::var(name).ok()) {
        Ok(Some(settings)) => settings,
        Ok(None) => return Telemetry::off(),
        Err(error) => {
            tracing::warn!("there is no telemetry: {error}");
            return Telemetry::off();
        }
    };
    Telemetry::start(&settings).unwrap_or_else(|error| {
        tracing::warn!("{error}");
        Telemetry::off()
    })
}
