//! The settings of a server beside its transport.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use toolgate_policy::{Label, LabelSet, Trust};

use super::oauth;
use super::report::Path;
use super::scope::Scope;
use crate::document::{Member, Object, Value};
use crate::keys;
use crate::{ServerSettings, Severity, ToolFilter, ToolSettings};

/// The longest description of a server, in characters.
const LONGEST_DESCRIPTION: usize = 2_000;
/// The longest prefix of tools' names, in characters.
const LONGEST_PREFIX: usize = 32;

/// Reads the settings. A setting that only tunes keeps its default when it is wrong, with a
/// warning; one that holds something back (`disabled`, `excludeTools`, `approval`, `labels`) is an error
/// instead, so that a mistake in it never lets more through.
pub(super) fn read(scope: &mut Scope<'_, '_>) -> ServerSettings {
    let defaults = ServerSettings::default();
    let enabled = enabled(scope);
    if !enabled {
        scope.error_severity = Severity::Warning;
    }
    let (call_idle_timeout, call_total_timeout) = call_timeouts(scope, &defaults);
    let (tool_filter, tools) = tools(scope);
    let lazy = scope.boolean("lazy", Severity::Warning).unwrap_or(defaults.lazy);
    ServerSettings {
        prefix: prefix(scope),
        description: description(scope),
        defer_loading: scope
            .boolean("deferLoading", Severity::Warning)
            .or_else(|| scope.boolean("alwaysLoad", Severity::Warning).map(|load| !load)),
        lazy,
        idle_timeout: idle_timeout(scope, lazy),
        enabled,
        connect_timeout: seconds(scope, "connectTimeoutSeconds")
            .or_else(|| seconds(scope, "startup_timeout_sec"))
            .or_else(|| milliseconds(scope, "startup_timeout_ms"))
            .unwrap_or(defaults.connect_timeout),
        call_idle_timeout,
        call_total_timeout,
        max_result_bytes: scope
            .integer("maxResultBytes", 1_024, 1_073_741_824)
            .and_then(|bytes| usize::try_from(bytes).ok())
            .unwrap_or(defaults.max_result_bytes),
        validate_arguments: scope
            .boolean("validateArguments", Severity::Warning)
            .unwrap_or(defaults.validate_arguments),
        tool_filter,
        trust: match scope.boolean("trusted", Severity::Error) {
            Some(true) => Trust::Trusted,
            Some(false) | None => Trust::Unknown,
        },
        labels: labels(scope).unwrap_or_default(),
        tools,
        oauth: oauth::read(scope),
    }
}

/// What is said of the data of a server or a tool.
fn labels(scope: &mut Scope<'_, '_>) -> Option<LabelSet> {
    Some(scope.choices::<Label>("labels")?.into_iter().collect())
}

/// Whether the server is served: no client's way of switching it off is used.
fn enabled(scope: &mut Scope<'_, '_>) -> bool {
    let enabled = scope.boolean("enabled", Severity::Error).unwrap_or(true);
    let disabled = scope.boolean("disabled", Severity::Error).unwrap_or(false);
    let active = scope.boolean("isActive", Severity::Warning).unwrap_or(true);
    enabled && !disabled && active
}

/// A server may hold state, so that only a lazy one is stopped unless it is said. Zero is never.
fn idle_timeout(scope: &mut Scope<'_, '_>, lazy: bool) -> Option<Duration> {
    const LONGEST_SECONDS: f64 = 31_536_000.0;
    let unless_said = lazy.then_some(ServerSettings::LAZY_IDLE_TIMEOUT);
    let said = scope.number("idleTimeoutSeconds", 0.0, LONGEST_SECONDS);
    said.map_or(unless_said, |seconds| (seconds > 0.0).then(|| Duration::from_secs_f64(seconds)))
}

fn prefix(scope: &mut Scope<'_, '_>) -> Option<String> {
    let member = scope.object.get("prefix")?;
    if let Value::String(prefix) = &member.node.value {
        let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
        if prefix.len() <= LONGEST_PREFIX && prefix.chars().all(is_word) {
            return Some(prefix.to_string());
        }
    }
    let path = Path::Key(scope.path, &member.key);
    let expected = format!("at most {LONGEST_PREFIX} letters, digits and underscores");
    scope.unfit(Severity::Warning, &path, &member.node, &expected, None);
    None
}

fn description(scope: &mut Scope<'_, '_>) -> Option<String> {
    let member = scope.object.get("description")?;
    if let Value::String(description) = &member.node.value
        && description.chars().nth(LONGEST_DESCRIPTION).is_none()
    {
        return Some(description.to_string());
    }
    let path = Path::Key(scope.path, &member.key);
    let expected = format!("a string of at most {LONGEST_DESCRIPTION} characters");
    scope.unfit(Severity::Warning, &path, &member.node, &expected, None);
    None
}

/// The idle and the total time of a call. Other clients have one limit; where it is longer than
/// our total, the total follows.
fn call_timeouts(scope: &mut Scope<'_, '_>, defaults: &ServerSettings) -> (Duration, Duration) {
    let idle = seconds(scope, "callIdleTimeoutSeconds")
        .or_else(|| seconds(scope, "tool_timeout_sec"))
        .or_else(|| foreign_timeout(scope))
        .unwrap_or(defaults.call_idle_timeout);
    let total = seconds(scope, "callTotalTimeoutSeconds")
        .unwrap_or_else(|| defaults.call_total_timeout.max(idle));
    (idle, total)
}

/// `timeout` is in milliseconds for most clients and in seconds for some. Nobody gives a tool less
/// than a second, so a number under 1,000 is in seconds; with a key of the clients that count
/// seconds, up to their maximum of an hour.
fn foreign_timeout(scope: &mut Scope<'_, '_>) -> Option<Duration> {
    const MARKS_OF_SECONDS: [&str; 3] = ["alwaysAllow", "autoApprove", "disabledTools"];
    const LONGEST_MILLISECONDS: f64 = 86_400_000.0;
    let number = scope.number("timeout", 1.0, LONGEST_MILLISECONDS)?;
    let counts_seconds = MARKS_OF_SECONDS.iter().any(|key| scope.object.get(key).is_some());
    let is_seconds = number < 1_000.0 || (counts_seconds && number <= 3_600.0);
    Some(Duration::from_secs_f64(if is_seconds { number } else { number / 1_000.0 }))
}

fn seconds(scope: &mut Scope<'_, '_>, key: &str) -> Option<Duration> {
    scope.number(key, 0.1, 86_400.0).map(Duration::from_secs_f64)
}

fn milliseconds(scope: &mut Scope<'_, '_>, key: &str) -> Option<Duration> {
    scope.integer(key, 100, 86_400_000).map(Duration::from_millis)
}

/// Which tools there are, and the settings of single ones.
fn tools(scope: &mut Scope<'_, '_>) -> (ToolFilter, BTreeMap<String, ToolSettings>) {
    let mut filter = ToolFilter::default();
    for key in ["includeTools", "enabled_tools"] {
        if let Some(names) = scope.object.get(key).and_then(|member| names(scope, member)) {
            filter.include.get_or_insert_default().extend(names);
        }
    }
    for key in ["excludeTools", "disabled_tools", "disabledTools"] {
        if let Some(names) = scope.object.get(key).and_then(|member| names(scope, member)) {
            filter.exclude.extend(names);
        }
    }
    let mut settings = BTreeMap::new();
    match scope.object.get("tools").map(|member| (member, &member.node.value)) {
        None => {}
        // GitHub Copilot has a list of names here, of which `*` is all.
        Some((member, Value::Array(_))) => {
            let names = names(scope, member).filter(|names| !names.contains("*"));
            if let Some(names) = names {
                filter.include.get_or_insert_default().extend(names);
            }
        }
        Some((member, _)) => {
            let hint = "write `\"tools\": { \"tool_name\": { \"deferLoading\": false } }`";
            if let Some(object) = scope.members(member, hint) {
                settings = settings_of_tools(scope, &Path::Key(scope.path, &member.key), object);
            }
        }
    }
    (filter, settings)
}

fn names<'r>(scope: &mut Scope<'r, '_>, member: &'r Member<'r>) -> Option<BTreeSet<String>> {
    let strings = scope.strings(member)?;
    Some(strings.into_iter().map(|(name, _)| name.to_owned()).collect())
}

fn settings_of_tools(
    scope: &mut Scope<'_, '_>,
    path: &Path<'_>,
    object: &Object<'_>,
) -> BTreeMap<String, ToolSettings> {
    let mut settings = BTreeMap::new();
    for member in &object.members {
        let path = Path::Key(path, &member.key);
        let Value::Object(tool) = &member.node.value else {
            scope.mismatch(Severity::Error, &path, &member.node, "an object", None);
            continue;
        };
        let tool = scope.within(tool, &path, |inner| {
            inner.report_replaced(tool, &path);
            // Codex keeps its own approvals in the same place.
            inner.report_unknown(&[keys::TOOL, &["approval_mode"]], keys::TOOL);
            ToolSettings {
                defer_loading: inner.boolean("deferLoading", Severity::Warning),
                validate_arguments: inner.boolean("validateArguments", Severity::Warning),
                approval: inner.choice("approval", Severity::Error),
                labels: labels(inner),
            }
        });
        settings.insert(member.key.to_string(), tool);
    }
    settings
}
