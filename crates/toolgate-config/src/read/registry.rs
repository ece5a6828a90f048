//! The `registry` and `skills` keys.

use std::path::PathBuf;
use std::time::Duration;

use super::Context;
use super::report::Path;
use super::scope::Scope;
use crate::document::{Member, Object, Value};
use crate::keys::REGISTRY;
use crate::{Registry, RegistrySource, Severity};

/// How many sources, and how many folders of skills, are read.
const MOST: usize = 32;

/// Reads where servers can be found. What is wrong costs the source it is wrong with.
pub(super) fn read(context: &mut Context<'_>, path: &Path<'_>, member: &Member<'_>) -> Registry {
    let mut registry = Registry::default();
    let Value::Object(object) = &member.node.value else {
        let predicate = format!("must be an object, but is {}", member.node.value.kind());
        let hint = Some("write `\"registry\": { \"sources\": [\"./servers\"] }`".to_owned());
        context.report.add(Severity::Error, path, member.node.offset, &predicate, hint);
        return registry;
    };
    let mut scope = Scope::new(object, path, context);
    scope.report_replaced(object, path);
    scope.report_unknown(&[REGISTRY], REGISTRY);
    if let Some(member) = object.get("sources") {
        for (text, offset) in texts(&mut scope, member) {
            registry.sources.extend(source(&mut scope, member, &text, offset));
        }
    }
    if let Some(hours) = scope.number("cacheHours", 0.0, 8_760.0) {
        registry.cache = Duration::from_secs_f64(hours * 3_600.0);
    }
    registry
}

/// Reads the folders of skills.
pub(super) fn skills(context: &mut Context<'_>, member: &Member<'_>) -> Vec<PathBuf> {
    let root = Object::default();
    let mut scope = Scope::new(&root, &Path::Root, context);
    texts(&mut scope, member).into_iter().map(|(text, _)| PathBuf::from(text)).collect()
}

/// The texts of a list with their variables filled in; those that cannot be are left out with an
/// error.
fn texts<'r>(scope: &mut Scope<'r, '_>, member: &'r Member<'r>) -> Vec<(String, usize)> {
    let path = Path::Key(scope.path, &member.key);
    let mut texts = Vec::new();
    for (index, (text, offset)) in scope.strings(member).unwrap_or_default().into_iter().enumerate()
    {
        let path = Path::Index(&path, index);
        if index == MOST {
            let predicate = format!("and what follows is ignored: {MOST} are enough");
            scope.complain(Severity::Warning, &path, offset, &predicate, None);
            break;
        }
        match scope.expand(&path, offset, text) {
            Some(text) if text.trim().is_empty() => {
                scope.complain(Severity::Error, &path, offset, "is empty", None);
            }
            Some(text) => texts.push((text, offset)),
            None => {}
        }
    }
    texts
}

/// A source says what programs to run: nobody on the way may change it.
fn source(
    scope: &mut Scope<'_, '_>,
    member: &Member<'_>,
    text: &str,
    offset: usize,
) -> Option<RegistrySource> {
    let Some((scheme, _)) = text.split_once("://") else {
        return Some(RegistrySource::Path(PathBuf::from(text)));
    };
    let url = url::Url::parse(text).ok().filter(url::Url::has_host);
    let local = url.as_ref().is_some_and(|url| match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    });
    if url.is_some() && (scheme.eq_ignore_ascii_case("https") || local && scheme == "http") {
        return Some(RegistrySource::Url(text.to_owned()));
    }
    let path = Path::Key(scope.path, &member.key);
    let predicate = "has a source that is neither an `https` URL nor a path; it is left out";
    scope.complain(Severity::Error, &path, offset, predicate, None);
    None
}
