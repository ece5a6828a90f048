//! One object of the file while it is read: access to its keys, and the record of its problems.

use std::sync::Arc;

use toolgate_policy::RuleOrigin;

use crate::document::{Member, Object, Value};
use crate::expand::{Expander, Unexpanded};
use crate::keys::{PROTECTING, is_comment, nearest};
use crate::position::{SourceText, printable};
use crate::section::{Choice, Section, Setting};
use crate::{EnvFiles, MAX_PROBLEMS, Problem, ProblemSeverity, SourcePosition, Surroundings};

/// What is wrong with a key that is there twice, where neither of them can be chosen.
const WRITTEN_TWICE: &str = "is written more than once, which cannot be understood";

/// A value in the file: the path of its keys, and its offset in the text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Location {
    pub(crate) path: String,
    pub(crate) offset: usize,
}

/// The file that is read, and its problems so far.
pub(crate) struct FileReader<'c> {
    pub(crate) expander: Expander<'c>,
    pub(crate) env_files: EnvFiles<'c>,
    pub(crate) working_folder: Option<&'c str>,
    source: &'c SourceText<'c>,
    name: Arc<str>,
    problems: Vec<Problem>,
    left_out: usize,
}

/// An object, its location, and the first error in it.
pub(crate) struct Scope<'r, 'c> {
    pub(crate) object: &'r Object<'r>,
    pub(crate) at: Location,
    pub(crate) file: &'r mut FileReader<'c>,
    /// The first error, which makes a server unusable.
    pub(crate) first_error: Option<Problem>,
    /// The severity of errors in the report: those of a disabled server are warnings.
    pub(crate) error_severity: ProblemSeverity,
}

impl Location {
    /// The location of a key in the object here. Keys that would be misread are quoted.
    pub(crate) fn child(&self, key: &str, offset: usize) -> Self {
        let (path, key) = (&self.path, printable(key));
        let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '$');
        let path = if key.is_empty() || !key.chars().all(plain) {
            format!("{path}[\"{key}\"]")
        } else if path.is_empty() {
            key.into_owned()
        } else {
            format!("{path}.{key}")
        };
        Self { path, offset }
    }

    /// The location of the value of a member.
    pub(crate) fn value(&self, member: &Member<'_>) -> Self {
        self.child(&member.key, member.node.offset)
    }

    /// The location of the key of a member.
    pub(crate) fn key(&self, member: &Member<'_>) -> Self {
        self.child(&member.key, member.key_offset)
    }

    /// The location of an element of the list here.
    pub(crate) fn element(&self, index: usize, offset: usize) -> Self {
        Self { path: format!("{}[{index}]", self.path), offset }
    }
}

impl<'c> FileReader<'c> {
    pub(crate) fn new(source: &'c SourceText<'c>, surroundings: Surroundings<'c>) -> Self {
        let expander = Expander::new(&surroundings);
        let (name, env_files) = (source.name().into(), surroundings.env_files);
        let working_folder = surroundings.working_folder;
        Self {
            expander,
            env_files,
            working_folder,
            source,
            name,
            problems: Vec::new(),
            left_out: 0,
        }
    }

    /// The origin of a rule, for explanations: its path, and `toolgate.json:3:7`.
    pub(crate) fn origin(&self, at: &Location) -> RuleOrigin {
        let position = format!("{}:{}", self.name, self.source.position(at.offset));
        RuleOrigin::Configured { path: at.path.as_str().into(), position: Some(position.into()) }
    }

    /// Makes a problem whose message begins with the path: `` `path` predicate ``.
    pub(crate) fn problem(
        &self,
        severity: ProblemSeverity,
        at: &Location,
        predicate: &str,
        hint: &str,
    ) -> Problem {
        Problem {
            severity,
            source: Arc::clone(&self.name),
            path: at.path.clone(),
            position: self.source.position(at.offset),
            message: format!("`{}` {predicate}", at.path),
            hint: (!hint.is_empty()).then(|| hint.to_owned()),
        }
    }

    /// Records a problem of the file as a whole.
    pub(crate) fn complain_of_file(&mut self, message: &str, hint: String) {
        let problem = self.problem_of_file(ProblemSeverity::Error, message.to_owned(), hint);
        self.push(problem);
    }

    fn problem_of_file(&self, severity: ProblemSeverity, message: String, hint: String) -> Problem {
        let position = SourcePosition { line: 1, column: 1 };
        let source = Arc::clone(&self.name);
        Problem { severity, source, path: String::new(), position, message, hint: Some(hint) }
    }

    /// Records a problem, up to the limit.
    pub(crate) fn push(&mut self, problem: Problem) {
        if self.has_capacity() {
            self.problems.push(problem);
        } else {
            self.left_out += 1;
        }
    }

    /// Whether anything was wrong that is more than a warning.
    pub(crate) fn has_errors(&self) -> bool {
        let is_error = |problem: &Problem| problem.severity == ProblemSeverity::Error;
        self.left_out > 0 || self.problems.iter().any(is_error)
    }

    /// Whether one more problem is recorded; the last one is the number of the others.
    fn has_capacity(&self) -> bool {
        self.problems.len() < MAX_PROBLEMS - 1
    }

    /// The problems in the order of the file, and one more that says how many were left out.
    pub(crate) fn finish(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| problem.position);
        if self.left_out > 0 {
            let message = format!("{} more problems are not shown", self.left_out);
            let hint = "fix the ones above first".to_owned();
            self.problems.push(self.problem_of_file(ProblemSeverity::Warning, message, hint));
        }
        self.problems
    }
}

impl<'r, 'c> Scope<'r, 'c> {
    pub(crate) fn new(object: &'r Object<'r>, at: Location, file: &'r mut FileReader<'c>) -> Self {
        Self { object, at, file, first_error: None, error_severity: ProblemSeverity::Error }
    }

    /// Records a problem. A file of nothing but mistakes costs a text for the first of them only.
    pub(crate) fn complain(
        &mut self,
        severity: ProblemSeverity,
        at: &Location,
        predicate: &str,
        hint: &str,
    ) {
        let is_first = severity == ProblemSeverity::Error && self.first_error.is_none();
        let severity = severity.min(self.error_severity);
        if !is_first && !self.file.has_capacity() {
            self.file.left_out += 1;
            return;
        }
        let problem = self.file.problem(severity, at, predicate, hint);
        if is_first {
            self.first_error = Some(problem.clone());
        }
        self.file.push(problem);
    }

    /// Records an error at the value of a member.
    pub(crate) fn error(&mut self, member: &Member<'_>, predicate: &str, hint: &str) {
        self.complain(ProblemSeverity::Error, &self.at.value(member), predicate, hint);
    }

    /// Records a warning at the value of a member.
    pub(crate) fn warn(&mut self, member: &Member<'_>, predicate: &str, hint: &str) {
        self.complain(ProblemSeverity::Warning, &self.at.value(member), predicate, hint);
    }

    /// Records that a value is of another kind than its key takes.
    pub(crate) fn mismatch(
        &mut self,
        severity: ProblemSeverity,
        at: &Location,
        value: &Value<'_>,
        expected: &str,
        hint: &str,
    ) {
        self.unfit(severity, at, &format!("{expected}, but is {}", value.kind()), hint);
    }

    /// Records that a value is not one that its key takes.
    pub(crate) fn unfit(
        &mut self,
        severity: ProblemSeverity,
        at: &Location,
        expected: &str,
        hint: &str,
    ) {
        let is_warning = severity == ProblemSeverity::Warning;
        let consequence = if is_warning { "; it is ignored" } else { "" };
        self.complain(severity, at, &format!("must be {expected}{consequence}"), hint);
    }

    /// Reads an object within this one. An error there is an error here.
    pub(crate) fn within<T>(
        &mut self,
        object: &Object<'_>,
        at: Location,
        read: impl FnOnce(&mut Scope<'_, 'c>) -> T,
    ) -> T {
        let first_error = self.first_error.take();
        let error_severity = self.error_severity;
        let mut inner = Scope { object, at, file: self.file, first_error, error_severity };
        let result = read(&mut inner);
        self.first_error = inner.first_error;
        result
    }

    /// Reads the value of a member, which must be an object. An error there is an error here.
    pub(crate) fn nested<T>(
        &mut self,
        member: &Member<'_>,
        hint: &str,
        read: impl FnOnce(&mut Scope<'_, 'c>) -> T,
    ) -> Option<T> {
        let at = self.at.value(member);
        let Value::Object(object) = &member.node.value else {
            let error = ProblemSeverity::Error;
            self.mismatch(error, &at, &member.node.value, "an object", hint);
            return None;
        };
        Some(self.within(object, at, |inner| {
            inner.report_replaced();
            read(inner)
        }))
    }

    /// Reads the value of a member, which must be an object. An error there stays there.
    pub(crate) fn section<T>(
        &mut self,
        member: &Member<'_>,
        severity: ProblemSeverity,
        consequence: &str,
        hint: &str,
        read: impl FnOnce(&mut Scope<'_, 'c>) -> T,
    ) -> Option<T> {
        let at = self.at.value(member);
        let Value::Object(object) = &member.node.value else {
            let kind = member.node.value.kind();
            let predicate = format!("must be an object, but is {kind}{consequence}");
            self.complain(severity, &at, &predicate, hint);
            return None;
        };
        let outer_error = self.first_error.take();
        let result = self.within(object, at, |inner| {
            inner.report_replaced();
            read(inner)
        });
        self.first_error = outer_error;
        Some(result)
    }

    /// Reads a section of which what is missing or wrong keeps its default.
    pub(crate) fn lenient_section<S: Section>(
        &mut self,
        member: &Member<'_>,
        severity: ProblemSeverity,
        consequence: &str,
        hint: &str,
    ) -> Option<S> {
        self.section(member, severity, consequence, hint, |inner| {
            inner.report_unknown::<S>();
            let mut settings = S::default();
            settings.read_keys(inner);
            settings
        })
    }

    /// Reads a section that an error in it makes unusable. `check` looks at its keys together.
    pub(crate) fn sound_section<S: Section>(
        &mut self,
        member: &Member<'_>,
        hint: &str,
        check: impl FnOnce(&mut Scope<'_, 'c>),
    ) -> Option<S> {
        let sound = self.section(member, ProblemSeverity::Error, "", hint, |inner| {
            inner.report_unknown::<S>();
            check(inner);
            let mut settings = S::default();
            settings.read_keys(inner);
            inner.first_error.is_none().then_some(settings)
        });
        sound.flatten()
    }

    /// Records an error where a key is missing.
    pub(crate) fn require(&mut self, key: &str, hint: &str) {
        if self.object.get(key).is_none() {
            let (error, at) = (ProblemSeverity::Error, self.at.clone());
            self.complain(error, &at, &format!("has no `{key}`"), hint);
        }
    }

    /// The value of a key, if it is there and can be read.
    pub(crate) fn setting<S: Setting>(&mut self, key: &str, setting: &S) -> Option<S::Value> {
        let member = self.object.get(key)?;
        setting.read(self, member)
    }

    /// Expands the variables of a text; records an error on failure.
    pub(crate) fn expand(&mut self, at: &Location, text: &str) -> Option<String> {
        let expanded = self.file.expander.expand(text);
        self.expanded(at, expanded, ", or write `${NAME:-default}`")
    }

    /// Reads values that a server needs only when it starts.
    pub(crate) fn of_start<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        self.file.expander.is_of_start = true;
        let read = read(self);
        self.file.expander.is_of_start = false;
        read
    }

    /// The value of a variable that a setting names; records an error if it is unset.
    pub(crate) fn variable(&mut self, at: &Location, name: &str) -> Option<String> {
        let value = self.file.expander.variable(name);
        self.expanded(at, value, "")
    }

    /// The value, or an error in the scope. `alternative` is a second way out for an unset variable.
    pub(crate) fn expanded(
        &mut self,
        at: &Location,
        result: Result<String, Unexpanded>,
        alternative: &str,
    ) -> Option<String> {
        let (predicate, hint) = match result {
            Ok(value) => return Some(value),
            Err(Unexpanded::Unset(name)) => {
                let name = printable(&name);
                let hint = format!("set `{name}`{}", alternative.replace("NAME", &name));
                (format!("needs the environment variable `{name}`, which is not set"), hint)
            }
            Err(Unexpanded::Stored { reference, error, hint }) => (
                format!("uses `{}`, which {error}", printable(&reference)),
                printable(&hint).into_owned(),
            ),
            Err(Unexpanded::Unnamed(reference)) => (
                format!("has `{}`, which names nothing", printable(&reference)),
                "write the name or the path of the value after the colon".to_owned(),
            ),
            Err(Unexpanded::Editor(reference)) => {
                let reference = printable(&reference);
                let hint = "write the value, or `${NAME}` for an environment variable";
                let known = "which only the editor it was written for knows";
                (format!("uses `{reference}`, {known}"), hint.to_owned())
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
        self.complain(ProblemSeverity::Error, at, &predicate, &hint);
        None
    }

    /// A non-empty, expanded string.
    pub(crate) fn text(&mut self, member: &Member<'_>) -> Option<String> {
        let at = self.at.value(member);
        let Value::String(text) = &member.node.value else {
            let error = ProblemSeverity::Error;
            self.mismatch(error, &at, &member.node.value, "a string", "");
            return None;
        };
        let expanded = self.expand(&at, text)?;
        if expanded.trim().is_empty() {
            self.error(member, "is empty", "");
            return None;
        }
        Some(expanded)
    }

    /// The strings of a list as they are written, with their locations.
    pub(crate) fn strings<'m>(
        &mut self,
        member: &'m Member<'_>,
    ) -> Option<Vec<(&'m str, Location)>> {
        let (error, list) = (ProblemSeverity::Error, self.at.value(member));
        let Value::Array(elements) = &member.node.value else {
            let hint = format!("write `\"{}\": [\"…\", \"…\"]`", member.key);
            self.mismatch(error, &list, &member.node.value, "a list of strings", &hint);
            return None;
        };
        let mut strings = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            let at = list.element(index, element.offset);
            let Value::String(text) = &element.value else {
                let hint = "write the value in double quotes";
                self.mismatch(error, &at, &element.value, "a string", hint);
                return None;
            };
            strings.push((&**text, at));
        }
        Some(strings)
    }

    /// One word or a list of words; anything else is an error.
    pub(crate) fn words<C: Choice, T: FromIterator<C>>(
        &mut self,
        member: &Member<'_>,
    ) -> Option<T> {
        let nodes = match &member.node.value {
            Value::Array(nodes) => nodes.as_slice(),
            _ => std::slice::from_ref(&member.node),
        };
        let mut words = Vec::with_capacity(nodes.len().min(C::CHOICES.len()));
        for node in nodes {
            if let Some(word) = C::from_value(&node.value) {
                words.push(word);
                continue;
            }
            let at = Location { offset: node.offset, ..self.at.value(member) };
            let expected = format!("{}, or a list of them", C::names());
            self.unfit(ProblemSeverity::Error, &at, &expected, "");
            return None;
        }
        Some(words.into_iter().collect())
    }

    /// Warns of keys that are written twice. For a protecting key it is an error.
    pub(crate) fn report_replaced(&mut self) {
        for replaced in &self.object.replaced {
            if PROTECTING.contains(&&*replaced.key) {
                self.refuse_replaced_key(&replaced.key, replaced.later_offset, "");
            } else {
                self.report_replaced_key(&replaced.key, replaced.later_offset);
            }
        }
    }

    /// Warns of a key that is written more than once.
    pub(crate) fn report_replaced_key(&mut self, key: &str, offset: usize) {
        let predicate = "is written more than once; the last one is used";
        let at = self.at.child(key, offset);
        self.complain(ProblemSeverity::Warning, &at, predicate, "remove the others");
    }

    /// Refuses keys that are written twice. In a policy, the replaced one may be the stricter one.
    pub(crate) fn refuse_replaced(&mut self) {
        for replaced in &self.object.replaced {
            self.refuse_replaced_key(&replaced.key, replaced.later_offset, "");
        }
    }

    /// Refuses a key that is written more than once.
    pub(crate) fn refuse_replaced_key(&mut self, key: &str, offset: usize, hint: &str) {
        let at = self.at.child(key, offset);
        self.complain(ProblemSeverity::Error, &at, WRITTEN_TWICE, hint);
    }

    /// Warns of keys that a section does not have. One that resembles a protecting key is an error.
    pub(crate) fn report_unknown<S: Section>(&mut self) {
        self.unknown(ProblemSeverity::Warning, S::KEYS, |_| false);
    }

    /// Refuses keys that a section does not have, where a missing key changes what the others mean.
    pub(crate) fn refuse_unknown<S: Section>(&mut self) {
        self.unknown(ProblemSeverity::Error, S::KEYS, |_| false);
    }

    /// Reports the keys that are neither known, nor accepted from other clients, nor comments.
    pub(crate) fn unknown(
        &mut self,
        severity: ProblemSeverity,
        known: &[&str],
        is_foreign: impl Fn(&str) -> bool,
    ) {
        for member in &self.object.members {
            let key: &str = &member.key;
            if is_comment(key) || known.contains(&key) || is_foreign(key) {
                continue;
            }
            let is_protecting = nearest(key, PROTECTING).is_some();
            // The nearest key takes a while to find; nobody would read it beyond the limit.
            let near = self.file.has_capacity().then(|| nearest(key, known)).flatten();
            let hint = near.map(|near| format!("did you mean `{near}`?")).unwrap_or_default();
            let severity = if is_protecting { ProblemSeverity::Error } else { severity };
            let predicate = match severity {
                ProblemSeverity::Warning => "is not a known key; it is ignored",
                ProblemSeverity::Error => "is not a known key",
            };
            self.complain(severity, &self.at.key(member), predicate, &hint);
        }
    }
}
