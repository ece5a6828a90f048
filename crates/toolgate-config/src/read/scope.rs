//! One object of the file while it is read: typed access to its keys.

use super::Context;

use super::report::Path;
use crate::choice::Choice;
use crate::document::{Member, Node, Object, Value};
use crate::expand::Unexpanded;
use crate::keys::{PROTECTING, is_comment, nearest};
use crate::position::printable;
use crate::{Problem, Severity};

/// What is wrong with a key that is there twice, where no one of them can be chosen.
pub(super) const WRITTEN_TWICE: &str = "is written more than once, which cannot be understood";

/// An object, the way to it, and what went wrong in it.
pub(super) struct Scope<'r, 'c> {
    pub(super) object: &'r Object<'r>,
    pub(super) path: &'r Path<'r>,
    pub(super) context: &'r mut Context<'c>,
    /// The first error, which makes a server unusable.
    pub(super) first_error: Option<Problem>,
    /// What an error counts as in the report: a server that is switched off has none.
    pub(super) error_severity: Severity,
}

impl<'r, 'c> Scope<'r, 'c> {
    pub(super) fn new(
        object: &'r Object<'r>,
        path: &'r Path<'r>,
        context: &'r mut Context<'c>,
    ) -> Self {
        Self { object, path, context, first_error: None, error_severity: Severity::Error }
    }

    /// Records a problem at a path.
    pub(super) fn complain(
        &mut self,
        severity: Severity,
        path: &Path<'_>,
        offset: usize,
        predicate: &str,
        hint: Option<String>,
    ) {
        let is_error = severity == Severity::Error;
        let severity = if is_error { self.error_severity } else { severity };
        let report = &mut self.context.report;
        if is_error && self.first_error.is_none() {
            let problem = report.problem(severity, path, offset, predicate, hint);
            report.push(problem.clone());
            self.first_error = Some(problem);
        } else {
            report.add(severity, path, offset, predicate, hint);
        }
    }

    /// Reads an object within this one; an error there is an error here.
    pub(super) fn within<T>(
        &mut self,
        object: &Object<'_>,
        path: &Path<'_>,
        read: impl FnOnce(&mut Scope<'_, 'c>) -> T,
    ) -> T {
        let mut inner = Scope {
            object,
            path,
            context: self.context,
            first_error: self.first_error.take(),
            error_severity: self.error_severity,
        };
        let result = read(&mut inner);
        self.first_error = inner.first_error;
        result
    }

    /// Records that a value is of another kind than its key takes.
    pub(super) fn mismatch(
        &mut self,
        severity: Severity,
        path: &Path<'_>,
        node: &Node<'_>,
        expected: &str,
        hint: Option<String>,
    ) {
        let expected = format!("{expected}, but is {}", node.value.kind());
        self.unfit(severity, path, node, &expected, hint);
    }

    /// Records that a value is not one that its key takes.
    pub(super) fn unfit(
        &mut self,
        severity: Severity,
        path: &Path<'_>,
        node: &Node<'_>,
        expected: &str,
        hint: Option<String>,
    ) {
        let consequence = if severity == Severity::Warning { "; it is ignored" } else { "" };
        let predicate = format!("must be {expected}{consequence}");
        self.complain(severity, path, node.offset, &predicate, hint);
    }

    /// Expands a text; on failure records an error.
    pub(super) fn expand(&mut self, path: &Path<'_>, offset: usize, text: &str) -> Option<String> {
        let expanded = self.context.expander.expand(text);
        self.expanded(path, offset, expanded, ", or write `${NAME:-default}`")
    }

    /// The value of a variable that a setting names; if unset, records an error.
    pub(super) fn variable(
        &mut self,
        path: &Path<'_>,
        offset: usize,
        name: &str,
    ) -> Option<String> {
        let value = self.context.expander.variable(name);
        self.expanded(path, offset, value, "")
    }

    fn expanded(
        &mut self,
        path: &Path<'_>,
        offset: usize,
        result: Result<String, Unexpanded>,
        alternative: &str,
    ) -> Option<String> {
        let (predicate, hint) = match result {
            Ok(value) => return Some(value),
            Err(Unexpanded::Unset(name)) => {
                let name = printable(&name);
                (
                    format!("needs the environment variable `{name}`, which is not set"),
                    format!("set `{name}`{}", alternative.replace("NAME", &name)),
                )
            }
            Err(Unexpanded::Editor(reference)) => {
                let reference = printable(&reference);
                (
                    format!("uses `{reference}`, which only the editor it was written for knows"),
                    "write the value, or `${NAME}` for an environment variable".to_owned(),
                )
            }
            Err(Unexpanded::Nested) => (
                "has a variable within the default of another, which is not supported".to_owned(),
                "write the default as plain text".to_owned(),
            ),
            Err(Unexpanded::TooLong) => (
                "is too long once its variables are filled in".to_owned(),
                "a value may have at most 131,072 bytes".to_owned(),
            ),
            Err(Unexpanded::Nul) => (
                "contains a NUL character".to_owned(),
                "remove the `\\u0000`, or the character from the variable".to_owned(),
            ),
        };
        self.complain(Severity::Error, path, offset, &predicate, Some(hint));
        None
    }

    /// A non-empty, expanded string.
    pub(super) fn text(&mut self, member: &'r Member<'r>) -> Option<String> {
        let path = Path::Key(self.path, &member.key);
        let Value::String(text) = &member.node.value else {
            self.mismatch(Severity::Error, &path, &member.node, "a string", None);
            return None;
        };
        let expanded = self.expand(&path, member.node.offset, text)?;
        if expanded.trim().is_empty() {
            self.complain(Severity::Error, &path, member.node.offset, "is empty", None);
            return None;
        }
        Some(expanded)
    }

    /// The members of an object, or an error.
    pub(super) fn members(&mut self, member: &'r Member<'r>, hint: &str) -> Option<&'r Object<'r>> {
        let path = Path::Key(self.path, &member.key);
        if let Value::Object(object) = &member.node.value {
            self.report_replaced(object, &path);
            return Some(object);
        }
        self.mismatch(Severity::Error, &path, &member.node, "an object", Some(hint.to_owned()));
        None
    }

    /// The strings of a list, as they are written, with their places.
    pub(super) fn strings(&mut self, member: &'r Member<'r>) -> Option<Vec<(&'r str, usize)>> {
        let path = Path::Key(self.path, &member.key);
        let Value::Array(elements) = &member.node.value else {
            let hint = format!("write `\"{}\": [\"…\", \"…\"]`", member.key);
            self.mismatch(Severity::Error, &path, &member.node, "a list of strings", Some(hint));
            return None;
        };
        let mut strings = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            let Value::String(text) = &element.value else {
                let path = Path::Index(&path, index);
                let hint = Some("write the value in double quotes".to_owned());
                self.mismatch(Severity::Error, &path, element, "a string", hint);
                return None;
            };
            strings.push((&**text, element.offset));
        }
        Some(strings)
    }

    /// A boolean; anything else is recorded with the severity.
    pub(super) fn boolean(&mut self, key: &str, severity: Severity) -> Option<bool> {
        let member = self.object.get(key)?;
        if let Value::Boolean(value) = member.node.value {
            return Some(value);
        }
        let path = Path::Key(self.path, &member.key);
        self.mismatch(severity, &path, &member.node, "true or false", None);
        None
    }

    /// A number in a range; anything else is ignored with a warning.
    pub(super) fn number(&mut self, key: &str, min: f64, max: f64) -> Option<f64> {
        let member = self.object.get(key)?;
        let number = match &member.node.value {
            Value::Number(text) => text.parse::<f64>().ok(),
            _ => None,
        };
        let found = number.filter(|number| (min..=max).contains(number));
        if found.is_none() {
            let path = Path::Key(self.path, &member.key);
            let expected = format!("a number from {} to {}", grouped(&min), grouped(&max));
            self.unfit(Severity::Warning, &path, &member.node, &expected, None);
        }
        found
    }

    /// A whole number in a range; anything else is ignored with a warning.
    pub(super) fn integer(&mut self, key: &str, min: u64, max: u64) -> Option<u64> {
        let member = self.object.get(key)?;
        let number = match &member.node.value {
            Value::Number(text) => text.parse::<u64>().ok(),
            _ => None,
        };
        let found = number.filter(|number| (min..=max).contains(number));
        if found.is_none() {
            let path = Path::Key(self.path, &member.key);
            let expected = format!("a whole number from {} to {}", grouped(&min), grouped(&max));
            self.unfit(Severity::Warning, &path, &member.node, &expected, None);
        }
        found
    }

    /// One word of a few; anything else is recorded with the severity.
    pub(super) fn choice<C: Choice>(&mut self, key: &str, severity: Severity) -> Option<C> {
        let member = self.object.get(key)?;
        if let Value::String(name) = &member.node.value
            && let Some(value) = C::named(name)
        {
            return Some(value);
        }
        let path = Path::Key(self.path, &member.key);
        self.unfit(severity, &path, &member.node, &C::names(), None);
        None
    }

    /// One name or a list of names; anything else is an error.
    pub(super) fn choices<C: Choice>(&mut self, key: &str) -> Option<Vec<C>> {
        let member = self.object.get(key)?;
        let path = Path::Key(self.path, &member.key);
        let one = std::slice::from_ref(&member.node);
        let nodes = match &member.node.value {
            Value::Array(nodes) => nodes.as_slice(),
            _ => one,
        };
        let mut chosen = Vec::with_capacity(nodes.len().min(C::CHOICES.len()));
        for node in nodes {
            match &node.value {
                Value::String(name) if C::named(name).is_some() => chosen.extend(C::named(name)),
                _ => {
                    let expected = format!("{}, or a list of them", C::names());
                    self.unfit(Severity::Error, &path, node, &expected, None);
                    return None;
                }
            }
        }
        Some(chosen)
    }

    /// Warns of keys that are written twice; of those that hold something back it is an error.
    pub(super) fn report_replaced(&mut self, object: &Object<'_>, path: &Path<'_>) {
        for replaced in &object.replaced {
            let (path, offset) = (Path::Key(path, &replaced.key), replaced.later_offset);
            if PROTECTING.contains(&&*replaced.key) {
                self.complain(Severity::Error, &path, offset, WRITTEN_TWICE, None);
            } else {
                self.context.report.add_replaced(&path, offset);
            }
        }
    }

    /// The same as errors: in a policy, the one that is left out may be the stricter one.
    pub(super) fn refuse_replaced(&mut self, object: &Object<'_>, path: &Path<'_>) {
        for replaced in &object.replaced {
            let path = Path::Key(path, &replaced.key);
            self.complain(Severity::Error, &path, replaced.later_offset, WRITTEN_TWICE, None);
        }
    }

    /// Warns of the keys that are neither known nor comments. One that was to hold something back is an
    /// error.
    pub(super) fn report_unknown(&mut self, accepted: &[&[&str]], suggested: &[&str]) {
        self.unknown(Severity::Warning, accepted, suggested);
    }

    /// The same as errors: in a rule, a key that is left out changes what the others mean.
    pub(super) fn refuse_unknown(&mut self, accepted: &[&str]) {
        self.unknown(Severity::Error, &[accepted], accepted);
    }

    fn unknown(&mut self, severity: Severity, accepted: &[&[&str]], suggested: &[&str]) {
        for member in &self.object.members {
            let key: &str = &member.key;
            if is_comment(key) || accepted.iter().any(|keys| keys.contains(&key)) {
                continue;
            }
            let protecting = nearest(key, PROTECTING).is_some();
            // The nearest key takes a while to find; nobody would read it beyond the limit.
            let near = self.context.report.has_room().then(|| nearest(key, suggested)).flatten();
            let hint = near.map(|near| format!("did you mean `{near}`?"));
            let severity = if protecting { Severity::Error } else { severity };
            let path = Path::Key(self.path, key);
            let predicate = match severity {
                Severity::Warning => "is not a known key; it is ignored",
                Severity::Error => "is not a known key",
            };
            self.complain(severity, &path, member.key_offset, predicate, hint);
        }
    }
}

/// A number with commas between its thousands.
fn grouped(number: &impl ToString) -> String {
    let number = number.to_string();
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) => (whole, format!(".{fraction}")),
        None => (number.as_str(), String::new()),
    };
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + &fraction
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn thousands_are_grouped() {
        let shown = [grouped(&0.1), grouped(&100), grouped(&1_000), grouped(&86_400.0)];
        assert_eq!(shown, ["0.1", "100", "1,000", "86,400"]);
        assert_eq!(grouped(&1_073_741_824_u64), "1,073,741,824");
    }
}
