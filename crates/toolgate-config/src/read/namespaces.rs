//! The `namespaces` key.

use toolgate_policy::PolicySettings;

use super::report::Path;
use super::scope::Scope;
use super::{Context, policy, tool_search};
use crate::document::{Member, Value};
use crate::keys::NAMESPACE;
use crate::{Configuration, ExposureMode, Namespace, Severity};

/// How many namespaces are read.
const MOST: usize = 100;
/// The longest name.
const LONGEST_NAME: usize = 64;

/// Reads the namespaces. One that is not understood is left out, with an error: it would show what
/// was to be kept apart. Their policies build on `base`.
pub(super) fn read(
    context: &mut Context<'_>,
    member: &Member<'_>,
    configuration: &Configuration,
    base: &PolicySettings,
) -> Vec<Namespace> {
    let path = Path::Key(&Path::Root, &member.key);
    let Value::Object(object) = &member.node.value else {
        let predicate = format!("must be an object, but is {}", member.node.value.kind());
        let hint = "write `\"namespaces\": { \"work\": { \"servers\": [\"…\"] } }`".to_owned();
        context.report.add(Severity::Error, &path, member.node.offset, &predicate, Some(hint));
        return Vec::new();
    };
    for replaced in &object.replaced {
        context.report.add_replaced(&Path::Key(&path, &replaced.key), replaced.later_offset);
    }
    let mut namespaces = Vec::new();
    for member in &object.members {
        let path = Path::Key(&path, &member.key);
        if let Some(predicate) = refusal(&member.key, namespaces.len()) {
            context.report.add(Severity::Error, &path, member.key_offset, &predicate, None);
            continue;
        }
        namespaces.extend(namespace(context, &path, member, configuration, base));
    }
    namespaces
}

fn refusal(name: &str, count: usize) -> Option<String> {
    let plain = |character: char| {
        character.is_ascii_lowercase() || character.is_ascii_digit() || "-_".contains(character)
    };
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(plain) {
        return Some(format!(
            "is ignored: the name of a namespace must have 1 to {LONGEST_NAME} lower-case letters, \
             digits, `-` and `_`, since it is part of a path"
        ));
    }
    (count >= MOST).then(|| format!("is ignored: a file may have at most {MOST} namespaces"))
}

fn namespace(
    context: &mut Context<'_>,
    path: &Path<'_>,
    member: &Member<'_>,
    configuration: &Configuration,
    base: &PolicySettings,
) -> Option<Namespace> {
    let Value::Object(object) = &member.node.value else {
        let predicate = format!("must be an object, but is {}", member.node.value.kind());
        context.report.add(Severity::Error, path, member.node.offset, &predicate, None);
        return None;
    };
    let mut scope = Scope::new(object, path, context);
    scope.report_replaced(object, path);
    scope.report_unknown(&[NAMESPACE], NAMESPACE);
    if scope.first_error.is_some() {
        // Nobody knows what was to be held back in it.
        return None;
    }
    let Some(listed) = object.get("servers") else {
        let hint = Some("add `\"servers\": [\"…\"]`".to_owned());
        scope.complain(Severity::Error, path, member.key_offset, "has no `servers`", hint);
        return None;
    };
    let mut servers: Vec<String> = Vec::new();
    let listed_path = Path::Key(path, &listed.key);
    for (index, (name, offset)) in scope.strings(listed)?.into_iter().enumerate() {
        if !configuration.servers.iter().any(|server| server.name == name) {
            let path = Path::Index(&listed_path, index);
            let predicate = "names no server of this file; it is ignored";
            scope.complain(Severity::Warning, &path, offset, predicate, None);
        } else if !servers.iter().any(|server| server == name) {
            servers.push(name.to_owned());
        }
    }
    // It holds something back, so that what is not understood does so too.
    let exclusive = match object.get("exclusive") {
        Some(_) => scope.boolean("exclusive", Severity::Error).unwrap_or(true),
        None => false,
    };
    let mode = scope.choice::<ExposureMode>("mode", Severity::Warning);
    let inherited = configuration.tool_search.clone();
    let mut tool_search = match object.get("toolSearch") {
        Some(member) => {
            let path = Path::Key(path, &member.key);
            tool_search::read(scope.context, &path, member, inherited)
        }
        None => inherited,
    };
    if let Some(mode) = mode {
        mode.apply(&mut tool_search);
    }
    let policy = match object.get("policy") {
        Some(member) if !matches!(member.node.value, Value::Null) => {
            let path = Path::Key(path, &member.key);
            let inherited =
                PolicySettings { servers: configuration.policy.servers.clone(), ..base.clone() };
            policy::read(scope.context, &path, member, inherited)
        }
        _ => configuration.policy.clone(),
    };
    Some(Namespace { name: member.key.to_string(), servers, exclusive, tool_search, policy })
}
