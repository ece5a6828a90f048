//! One server of the file.

use super::report::Path;
use super::scope::Scope;
use super::{Context, settings, transport};
use crate::document::{Member, Value};
use crate::keys;
use crate::{ServerEntry, ServerSettings, Severity};

/// Reads an entry; whatever is wrong with it stays with it.
pub(super) fn read(
    context: &mut Context<'_>,
    path: &Path<'_>,
    member: &Member<'_>,
    is_gemini: bool,
) -> ServerEntry {
    let name = member.key.to_string();
    let Value::Object(object) = &member.node.value else {
        let kind = member.node.value.kind();
        let predicate = format!("must be an object with a `command` or a `url`, but is {kind}");
        let offset = member.node.offset;
        let problem = context.report.problem(Severity::Error, path, offset, &predicate, None);
        context.report.push(problem.clone());
        return ServerEntry { name, transport: Err(problem), settings: ServerSettings::default() };
    };
    let mut scope = Scope::new(object, path, context);
    scope.report_replaced(object, path);
    let settings = settings::read(&mut scope);
    let transport = transport::read(&mut scope, member.key_offset, is_gemini);
    report_unknown(&mut scope);
    let error = scope.first_error.take();
    let transport = match (transport, error) {
        (Some(transport), None) => Ok(transport),
        (_, Some(problem)) => Err(problem),
        // Nothing is left out without a word, so this does not happen; if it did, it should be
        // told apart from a server that works.
        (None, None) => Err(context.report.problem(
            Severity::Error,
            path,
            member.key_offset,
            "cannot be read",
            None,
        )),
    };
    ServerEntry { name, transport, settings }
}

/// Warns of keys without a meaning here and of those whose meaning is missing.
fn report_unknown(scope: &mut Scope<'_, '_>) {
    for (key, way_out) in keys::SERVER_UNSUPPORTED {
        if let Some(member) = scope.object.get(key) {
            let path = Path::Key(scope.path, key);
            let hint = Some((*way_out).to_owned());
            let predicate = "is not supported; it is ignored";
            scope.complain(Severity::Warning, &path, member.key_offset, predicate, hint);
        }
    }
    let unsupported: Vec<&str> = keys::SERVER_UNSUPPORTED.iter().map(|(key, _)| *key).collect();
    // The key whose mistake is already told as the reason that the server has no transport.
    let told = transport::misspelt(scope.object).map(|(member, _)| [&*member.key]);
    let told: &[&str] = told.as_ref().map_or(&[], |key| key.as_slice());
    let accepted = [keys::SERVER, keys::SERVER_MAPPED, keys::SERVER_IGNORED, &unsupported, told];
    scope.report_unknown(&accepted, keys::SERVER);
}
