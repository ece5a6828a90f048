//! The `audit`, `telemetry`, `registry` and `skills` keys.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value as Json, json};
use url::Url;

use crate::document::{Member, Value};
use crate::gateway::is_guarded;
use crate::scope::{Location, Scope};
use crate::section::{
    Definitions, Flag, Section, Wrong, custom, hours, integer, section, text, text_schema,
    values_schema, whole,
};
use crate::tool_search::web_url;
use crate::transport::headers;
use crate::{ProblemSeverity, Secret};

section! {
    /// The audit log of decisions and calls: the `audit` key.
    pub struct AuditConfig as "AuditLogging" {
        /// Whether toolgate writes the audit log.
        "enabled" => enabled: bool = true, Flag(Wrong::Becomes(true));
        /// Whether the log contains the arguments, without secrets, in addition to their hash.
        "arguments" => arguments: bool = false, Flag(Wrong::Becomes(false));
        /// Whether toolgate refuses a call that it cannot log.
        "required" => required: bool = false, Flag(Wrong::Becomes(true));
        /// The size in megabytes at which toolgate begins a new file of the audit log.
        "maxMegabytes" => max_megabytes: u64 = 64, whole::<u64>(1, 65_536);
        /// How many old files toolgate keeps. It removes older files.
        "keepFiles" => keep_files: usize = 15, integer(0, 10_000);
        /// After how many days toolgate removes lines; 0 for never. The limits of size hold too.
        "keepDays" => keep_days: u32 = 0, whole::<u32>(0, 36_500);
    }
}

section! {
    /// Where toolgate sends traces and metrics: the `telemetry` key.
    ///
    /// `${NAME}` and `${NAME:-default}` in all texts stand for environment variables.
    pub struct TelemetryConfig as "Telemetry" {
        /// The base URL of a collector that accepts OTLP over HTTP, such as
        /// `http://127.0.0.1:4318`.
        "otlpEndpoint" => otlp_endpoint: Option<String> = None, custom(text_schema, |scope, member| {
            let hint = "write the base URL of a collector, such as `http://127.0.0.1:4318`";
            web_url(scope, member, hint)
        });
        /// Headers for every request to the collector, preferably with values as `${NAME}`.
        "headers" => headers: BTreeMap<String, Secret> = BTreeMap::new(),
            custom(values_schema, |scope, _| Some(headers(scope)));
        /// The service name in the traces. The default is `toolgate`.
        "serviceName" => service_name: Option<String> = None, text();
    }
}

section! {
    /// Where toolgate finds servers that are not in the file: the `registry` key.
    pub struct RegistryConfig as "Registry" {
        /// The `https` URLs of registries, and files or folders of `server.json` files. If two
        /// sources have a server of the same name, toolgate uses the first source.
        "sources" => sources: Vec<String> = Vec::new(),
            custom(texts_schema, |scope, member| Some(sources(scope, member)));
        /// How many hours toolgate uses a response of a registry before it asks again.
        "cacheHours" => cache: Duration = Duration::from_hours(24), hours(0.0, 8_760.0);
    }
}

/// How many sources, and how many folders of skills, are read.
const MOST: usize = 32;

/// The JSON Schema of [`texts`].
pub(crate) fn texts_schema(_: &mut Definitions) -> Json {
    json!({ "type": "array", "items": { "type": "string" }, "maxItems": MOST })
}

/// Reads the section. A mistake never stops recording and never keeps arguments. A `required` that
/// cannot be read, or that may have been misspelt, requires.
pub(crate) fn read_audit(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> AuditConfig {
    let mut settings = AuditConfig::default();
    if let Value::Boolean(enabled) = member.node.value {
        return AuditConfig { enabled, ..settings };
    }
    let is_object = scope.section(member, ProblemSeverity::Error, "", "", |scope| {
        scope.refuse_unknown::<AuditConfig>();
        settings.required = scope.first_error.is_some();
        settings.read_keys(scope);
    });
    settings.required |= is_object.is_none();
    settings
}

/// Reads the section. With a mistake in it, or with `false`, nothing is sent: `None`.
pub(crate) fn read_telemetry(
    scope: &mut Scope<'_, '_>,
    member: &Member<'_>,
) -> Option<TelemetryConfig> {
    match &member.node.value {
        Value::Object(_) => scope.sound_section(member, "", |_| {}),
        Value::Boolean(false) => None,
        other => {
            let predicate = format!("must be an object or `false`, but is {}", other.kind());
            scope.error(member, &predicate, "");
            None
        }
    }
}

/// Reads the section. A mistake costs the source that it is in.
pub(crate) fn read_registry(
    scope: &mut Scope<'_, '_>,
    member: &Member<'_>,
) -> Option<RegistryConfig> {
    let hint = "write `\"registry\": { \"sources\": [\"./servers\"] }`";
    scope.lenient_section(member, ProblemSeverity::Error, "", hint)
}

/// Reads the folders of skills.
pub(crate) fn read_skills(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Vec<PathBuf> {
    texts(scope, member).into_iter().map(|(text, _)| PathBuf::from(text)).collect()
}

/// The texts of a list with their variables expanded; an error leaves one out.
fn texts(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Vec<(String, usize)> {
    let mut texts = Vec::new();
    for (index, (text, at)) in scope.strings(member).unwrap_or_default().into_iter().enumerate() {
        if index == MOST {
            let predicate = format!("and what follows is ignored: {MOST} are enough");
            scope.complain(ProblemSeverity::Warning, &at, &predicate, "");
            break;
        }
        match scope.expand(&at, text) {
            Some(text) if text.trim().is_empty() => {
                scope.complain(ProblemSeverity::Error, &at, "is empty", "");
            }
            Some(text) => texts.push((text, at.offset)),
            None => {}
        }
    }
    texts
}

/// A source says which programs run, so nobody on the way may change it.
fn sources(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Vec<String> {
    let mut sources = Vec::new();
    for (text, offset) in texts(scope, member) {
        let is_url = text.contains("://");
        let url = Url::parse(&text).ok().filter(Url::has_host);
        let is_safe =
            url.is_some_and(|url| matches!(url.scheme(), "http" | "https") && is_guarded(&url));
        if !is_url || is_safe {
            sources.push(text);
            continue;
        }
        let at = Location { offset, ..scope.at.value(member) };
        let predicate = "has a source that is neither an `https` URL nor a path; it is left out";
        scope.complain(ProblemSeverity::Error, &at, predicate, "");
    }
    sources
}
