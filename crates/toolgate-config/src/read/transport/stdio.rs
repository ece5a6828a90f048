//! A server that is a process.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::values::{self, Kind};
use crate::document::{Member, Value};
use crate::expand::is_variable_name;
use crate::read::report::Path;
use crate::read::scope::Scope;
use crate::{Secret, Severity, Transport};

/// Reads a process from its `command` and the keys beside it.
pub(super) fn read<'r>(scope: &mut Scope<'r, '_>, member: &'r Member<'r>) -> Option<Transport> {
    let cwd = scope.object.get("cwd").and_then(|member| scope.text(member)).map(PathBuf::from);
    let (command, args, mut env) = if let Value::Object(inner) = &member.node.value {
        // Zed keeps the program, its arguments and its variables one level down.
        let path = Path::Key(scope.path, &member.key);
        scope.within(inner, &path, |nested| {
            let command = if let Some(program) = nested.object.get("path") {
                nested.text(program)
            } else {
                let hint = Some("write the program as a string: `\"command\": \"…\"`".to_owned());
                nested.complain(Severity::Error, &path, member.node.offset, "has no `path`", hint);
                None
            };
            (command, arguments(nested), values::read(nested, "env", Kind::Variable))
        })
    } else if matches!(member.node.value, Value::Array(_)) {
        let path = Path::Key(scope.path, &member.key);
        let hint = Some("write the first as `command` and the others as `args`".to_owned());
        scope.mismatch(Severity::Error, &path, &member.node, "a string", hint);
        return None;
    } else {
        (scope.text(member), arguments(scope), values::read(scope, "env", Kind::Variable))
    };
    passed_on(scope, &mut env);
    let command = command?;
    warn_of_command_line(scope, member, &command, &args);
    Some(Transport::Stdio { command, args, env, cwd })
}

/// A whole command line in `command` is a frequent mistake; it would be looked up as one program.
fn warn_of_command_line(
    scope: &mut Scope<'_, '_>,
    member: &Member<'_>,
    command: &str,
    args: &[String],
) {
    let first_word = command.split_whitespace().next().unwrap_or(command);
    if args.is_empty() && first_word != command && !first_word.contains(['/', '\\']) {
        let path = Path::Key(scope.path, &member.key);
        let predicate = "has spaces, but is taken as the name of one program";
        let hint = Some("write what follows the program as a list under `args`".to_owned());
        scope.complain(Severity::Warning, &path, member.node.offset, predicate, hint);
    }
}

fn arguments(scope: &mut Scope<'_, '_>) -> Vec<String> {
    let Some(member) = scope.object.get("args") else { return Vec::new() };
    let path = Path::Key(scope.path, &member.key);
    let strings = scope.strings(member).unwrap_or_default();
    let expanded = strings.into_iter().enumerate();
    expanded
        .filter_map(|(index, (text, offset))| {
            scope.expand(&Path::Index(&path, index), offset, text)
        })
        .collect()
}

/// Codex names variables to hand on from its own environment; one that is unset is not handed on.
fn passed_on(scope: &mut Scope<'_, '_>, env: &mut BTreeMap<String, Secret>) {
    let Some(Member { node, .. }) = scope.object.get("env_vars") else { return };
    let Value::Array(elements) = &node.value else { return };
    for element in elements {
        let name = match &element.value {
            Value::String(name) => Some(name),
            Value::Object(object) => match object.get("name").map(|member| &member.node.value) {
                Some(Value::String(name)) => Some(name),
                _ => None,
            },
            _ => None,
        };
        if let Some(name) = name.filter(|name| is_variable_name(name))
            && let Ok(value) = scope.context.expander.variable(name)
        {
            env.entry(name.to_string()).or_insert_with(|| Secret::new(value));
        }
    }
}
