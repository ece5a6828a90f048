//! The `codeMode` key.

use super::Context;
use super::report::Path;
use super::scope::Scope;
use crate::document::{Member, Value};
use crate::keys::{CODE_MODE, JOURNAL};
use crate::{CodeMode, RunJournal, Severity};

/// Reads the settings. What only tunes keeps its default when it is wrong, with a warning;
/// `enabled`, which holds something back, is an error that leaves scripts off.
pub(super) fn read(context: &mut Context<'_>, path: &Path<'_>, member: &Member<'_>) -> CodeMode {
    let defaults = CodeMode::default();
    let object = match &member.node.value {
        Value::Object(object) => object,
        Value::Boolean(enabled) => return CodeMode { enabled: *enabled, ..defaults },
        other => {
            let predicate = format!("must be an object, but is {}; scripts are off", other.kind());
            context.report.add(Severity::Error, path, member.node.offset, &predicate, None);
            return CodeMode { enabled: false, ..defaults };
        }
    };
    let mut scope = Scope::new(object, path, context);
    scope.report_replaced(object, path);
    let enabled = match object.get("enabled") {
        Some(_) => scope.boolean("enabled", Severity::Error).unwrap_or(false),
        None => defaults.enabled,
    };
    let mut integer = |key, min, max, default| scope.integer(key, min, max).unwrap_or(default);
    let settings = CodeMode {
        enabled,
        memory_mb: integer("memoryMb", 2, 4_096, defaults.memory_mb),
        stack_kb: integer("stackKb", 64, 4_096, defaults.stack_kb),
        warm_workers: integer("warmWorkers", 0, 100, defaults.warm_workers),
        max_runs: integer("maxRuns", 1, 10_000, defaults.max_runs),
        max_calls: integer("maxCalls", 0, 1_000_000, defaults.max_calls),
        max_calls_in_flight: integer("maxCallsInFlight", 1, 100_000, defaults.max_calls_in_flight),
        max_parallel_calls: integer("maxParallelCalls", 1, 10_000, defaults.max_parallel_calls),
        max_result_bytes: integer("maxResultBytes", 1_024, 268_435_456, defaults.max_result_bytes),
        max_output_bytes: integer("maxOutputBytes", 1_024, 67_108_864, defaults.max_output_bytes),
        max_output_tokens: integer("maxOutputTokens", 100, 1_000_000, defaults.max_output_tokens),
        timeout_seconds: scope
            .number("timeoutSeconds", 0.1, 86_400.0)
            .unwrap_or(defaults.timeout_seconds),
        cpu_seconds: scope.number("cpuSeconds", 0.01, 3_600.0).unwrap_or(defaults.cpu_seconds),
        journal: journal(&mut scope),
    };
    scope.report_unknown(&[CODE_MODE], CODE_MODE);
    settings
}

fn journal(scope: &mut Scope<'_, '_>) -> RunJournal {
    let defaults = RunJournal::default();
    let Some(member) = scope.object.get("journal") else { return defaults };
    let path = Path::Key(scope.path, &member.key);
    let Value::Object(object) = &member.node.value else {
        scope.mismatch(Severity::Warning, &path, &member.node, "an object", None);
        return defaults;
    };
    scope.report_replaced(object, &path);
    scope.within(object, &path, |scope| {
        let mut integer = |key, min, max, default| scope.integer(key, min, max).unwrap_or(default);
        let journal = RunJournal {
            runs: integer("runs", 0, 1_000_000, defaults.runs),
            days: integer("days", 1, 3_650, defaults.days),
            megabytes: integer("megabytes", 1, 1_048_576, defaults.megabytes),
        };
        scope.report_unknown(&[JOURNAL], JOURNAL);
        journal
    })
}
