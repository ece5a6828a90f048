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
    AuditLogging {
        enabled: boolean("enabled", defaults.enabled, true),
        arguments: boolean("arguments", defaults.arguments, false),
        required: boolean("required", misspelt, true),
    }
}
