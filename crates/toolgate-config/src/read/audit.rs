//! The `audit` key.

use super::Context;
use super::report::Path;
use super::scope::Scope;
use crate::document::{Member, Value};
use crate::keys::AUDIT;
use crate::{AuditLogging, Severity};

/// Reads the settings. What is not understood records, and keeps no arguments; a `required` that is
/// not understood requires.
pub(super) fn read(
    context: &mut Context<'_>,
    path: &Path<'_>,
    member: &Member<'_>,
) -> AuditLogging {
    let defaults = AuditLogging::default();
    let object = match &member.node.value {
        Value::Object(object) => object,
        Value::Boolean(enabled) => return AuditLogging { enabled: *enabled, ..defaults },
        other => {
            let predicate = format!("must be an object, but is {}", other.kind());
            context.report.add(Severity::Error, path, member.node.offset, &predicate, None);
            return AuditLogging { required: true, ..defaults };
        }
    };
    let mut scope = Scope::new(object, path, context);
    scope.report_replaced(object, path);
    scope.refuse_unknown(AUDIT);
    let misspelt = scope.first_error.is_some();
    let mut boolean = |key, missing, wrong| match object.get(key) {
        None => missing,
        Some(_) => scope.boolean(key, Severity::Error).unwrap_or(wrong),
    };
    let (enabled, arguments, required) = (
        boolean("enabled", defaults.enabled, true),
        boolean("arguments", defaults.arguments, false),
        boolean("required", misspelt, true),
    );
    AuditLogging {
        enabled,
        arguments,
        required,
        max_megabytes: scope.integer("maxMegabytes", 1, 65_536).unwrap_or(defaults.max_megabytes),
        keep_files: scope.integer("keepFiles", 0, 10_000).unwrap_or(defaults.keep_files),
    }
}
