//! The `telemetry` key.

use super::Context;
use super::endpoint;
use super::report::Path;
use super::scope::Scope;
use super::transport::headers;
use crate::document::{Member, Value};
use crate::keys::TELEMETRY;
use crate::{Severity, TelemetryKey};

/// Reads the settings. What is not understood sends nothing, with an error.
pub(super) fn read(
    context: &mut Context<'_>,
    path: &Path<'_>,
    member: &Member<'_>,
) -> TelemetryKey {
    let off = TelemetryKey { is_off: true, ..TelemetryKey::default() };
    let object = match &member.node.value {
        Value::Object(object) => object,
        Value::Boolean(false) => return off,
        other => {
            let predicate = format!("must be an object or `false`, but is {}", other.kind());
            context.report.add(Severity::Error, path, member.node.offset, &predicate, None);
            return off;
        }
    };
    let mut scope = Scope::new(object, path, context);
    scope.report_replaced(object, path);
    scope.report_unknown(&[TELEMETRY], TELEMETRY);
    let hint = "write the base URL of a collector, such as `http://127.0.0.1:4318`";
    let otlp_endpoint =
        object.get("otlpEndpoint").and_then(|member| endpoint::web_url(&mut scope, member, hint));
    let headers = headers(&mut scope);
    let service_name = object.get("serviceName").and_then(|member| scope.text(member));
    let is_off = scope.first_error.is_some();
    TelemetryKey { is_off, otlp_endpoint, headers, service_name }
}
