//! Checks a literal against a JSON Schema, as far as both are certain.
//!
//! The check never reports an error for a value that the broker's validator accepts, except for
//! arguments that an open schema does not name: a server takes them and ignores them. Unknown keywords, foreign references and deep schemas are left to the broker. That is safe because
//! keywords only restrict: ignoring one can only accept more.

mod object;
mod scalar;

use std::{cell::Cell, fmt};

use serde_json::{Map, Value};

use self::scalar::{fits, types};
use super::{
    CheckSeverity, Language,
    literal::{Literal, LiteralEntry, LiteralKind},
    lookup::CheckBudget,
    wording::cut,
};

/// A part of a literal that the schema does not accept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) severity: CheckSeverity,
    pub(super) offset: usize,
    pub(super) message: String,
    pub(super) hint: Option<String>,
    /// Whether the value differs from the only allowed ones. Of several alternatives, the one with
    /// such a violation is not meant.
    is_other_value: bool,
    /// Whether there is one such value, as that of a property that tells alternatives apart.
    is_only_value: bool,
}

impl Violation {
    fn error(offset: usize, message: String, hint: Option<String>) -> Self {
        let severity = CheckSeverity::Error;
        Self { severity, offset, message, hint, is_other_value: false, is_only_value: false }
    }
}

/// The drafts of JSON Schema, as far as they differ for literals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Draft {
    Four,
    /// Drafts 6 and 7.
    Seven,
    /// Draft 2019-09.
    Nineteen,
    /// Draft 2020-12, which is also the default.
    Twenty,
}

/// The depth to which schemas are followed, because they may be recursive.
const MAX_DEPTH: usize = 64;
/// The number of schemas that are checked for one call, because references can make a small schema
/// large.
const MAX_STEPS: u32 = 20_000;
const MAX_VIOLATIONS: usize = 10;

/// A tool's schema, prepared for checking literals.
pub(super) struct SchemaChecker<'s> {
    root: &'s Value,
    draft: Draft,
    language: Language,
    budget: &'s CheckBudget,
    steps: Cell<u32>,
    /// How many alternatives of schemas are around the current one.
    branching: Cell<u32>,
    /// The arguments that the call itself names. Those that the schema does not are refused, even if it
    /// is open: they are misspelt, or made up.
    named: &'s [String],
}

impl<'s> SchemaChecker<'s> {
    pub(super) fn new(root: &'s Value, language: Language, budget: &'s CheckBudget) -> Self {
        let declared = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let draft = match declared {
            _ if declared.contains("draft-04") => Draft::Four,
            _ if declared.contains("draft-0") => Draft::Seven,
            _ if declared.contains("2019-09") => Draft::Nineteen,
            _ => Draft::Twenty,
        };
        let (steps, branching) = (Cell::new(0), Cell::new(0));
        Self { root, draft, language, budget, steps, branching, named: &[] }
    }

    /// Refuses those of these arguments that the schema does not name, unless it says that it takes
    /// others.
    pub(super) fn refusing(self, named: &'s [String]) -> Self {
        Self { named, ..self }
    }

    /// The violations of the arguments of a tool, at most ten.
    pub(super) fn check(&self, tool: &str, arguments: &Literal) -> Vec<Violation> {
        let mut violations = Vec::new();
        self.walk(self.root, &GivenValue::root(tool, arguments), 0, &mut violations);
        violations.truncate(MAX_VIOLATIONS);
        violations
    }

    fn walk(&self, schema: &Value, given: &GivenValue<'_>, depth: usize, out: &mut Vec<Violation>) {
        if matches!(
            given.literal.kind,
            LiteralKind::Unknown | LiteralKind::Undefined | LiteralKind::Promise(_)
        ) || !self.may_go_on(depth)
        {
            return;
        }
        if let Some(all) = given.literal.kind.alternatives() {
            let is_each = matches!(given.literal.kind, LiteralKind::Each(_));
            self.check_alternatives(schema, all, is_each, given, depth, out);
            return;
        }
        let keywords = match schema {
            Value::Bool(false) => {
                let message = format!("{given} may not be given");
                out.push(given.violation(message, Some("leave it out".to_owned())));
                return;
            }
            Value::Object(keywords) => keywords,
            _ => return,
        };
        if self.is_foreign(schema, keywords) {
            return;
        }
        if let Some(reference) = keywords.get("$ref") {
            if let Some(target) = reference.as_str().and_then(|pointer| self.resolve(pointer)) {
                self.walk(target, given, depth + 1, out);
            }
            if self.draft <= Draft::Seven {
                return;
            }
        }
        let before = out.len();
        self.check_scalar(keywords, given, out);
        if out.len() > before {
            // Further checks would report the same again.
            return;
        }
        match &given.literal.kind {
            LiteralKind::Object { entries, complete } => {
                let object = object::ObjectLiteral { given, entries, complete: *complete };
                self.check_object(schema, keywords, &object, depth, out);
            }
            LiteralKind::ListOf(item) => {
                if list(keywords, "prefixItems").is_empty()
                    && let Some(schema) = keywords.get("items").filter(|schema| schema.is_object())
                {
                    self.walk(schema, &given.item(0, item), depth + 1, out);
                }
            }
            LiteralKind::Array { items, complete } => {
                let prefix = match self.draft {
                    Draft::Twenty => list(keywords, "prefixItems"),
                    _ => list(keywords, "items"),
                };
                let every = keywords.get("items").filter(|schema| schema.is_object());
                for (index, item) in items.iter().enumerate() {
                    // After a spread, the positions of the items are unknown.
                    if (prefix.is_empty() || *complete)
                        && let Some(schema) = prefix.get(index).or(every)
                    {
                        self.walk(schema, &given.item(index, item), depth + 1, out);
                    }
                }
            }
            _ => {}
        }
        for part in list(keywords, "allOf") {
            self.walk(part, given, depth + 1, out);
        }
        for keyword in ["anyOf", "oneOf"] {
            let branches = list(keywords, keyword);
            if !branches.is_empty() {
                self.check_branches(branches, given, depth, out);
            }
        }
    }

    /// Checks a value that is one of several. Of those that the script contains, each has to fit. Of
    /// others, and where the schema has alternatives too, one has to.
    fn check_alternatives(
        &self,
        schema: &Value,
        all: &[Literal],
        is_each: bool,
        given: &GivenValue<'_>,
        depth: usize,
        out: &mut Vec<Violation>,
    ) {
        let mut refused = Vec::new();
        let mut has_fitting = false;
        for one in all.iter().filter(|one| one.kind != LiteralKind::Undefined) {
            let mut violations = Vec::new();
            let mut one_given = *given;
            one_given.literal = one;
            self.walk(schema, &one_given, depth + 1, &mut violations);
            has_fitting |=
                !violations.iter().any(|violation| violation.severity == CheckSeverity::Error);
            refused.extend(violations);
        }
        if is_each && self.branching.get() == 0 || !has_fitting {
            out.extend(refused);
        }
    }

    fn may_go_on(&self, depth: usize) -> bool {
        let steps = self.steps.get() + 1;
        self.steps.set(steps);
        depth <= MAX_DEPTH && steps <= MAX_STEPS && self.budget.take(1)
    }

    /// Whether a schema is a document of its own, in which references have another base.
    fn is_foreign(&self, schema: &Value, keywords: &Map<String, Value>) -> bool {
        let is_text = |keyword: &str| keywords.get(keyword).is_some_and(Value::is_string);
        !std::ptr::eq(schema, self.root)
            && (is_text("$id") || is_text("$schema") || self.draft == Draft::Four && is_text("id"))
    }

    /// The part of the schema that a reference points to, if it is in this document.
    fn resolve(&self, reference: &str) -> Option<&'s Value> {
        let pointer = reference.strip_prefix('#')?;
        if pointer.is_empty() {
            return Some(self.root);
        }
        let mut schema = self.root;
        for step in pointer.strip_prefix('/')?.split('/') {
            if step.contains('%') {
                return None;
            }
            let step = step.replace("~1", "/").replace("~0", "~");
            schema = match schema {
                Value::Object(keywords) if !self.is_foreign(schema, keywords) => {
                    keywords.get(&step)?
                }
                Value::Array(items) => items.get(step.parse::<usize>().ok()?)?,
                _ => return None,
            };
        }
        Some(schema)
    }
}

fn list<'v>(keywords: &'v Map<String, Value>, keyword: &str) -> &'v [Value] {
    keywords.get(keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A value that a script passes, with its location in the arguments, such as `labels[2].name`.
#[derive(Clone, Copy)]
struct GivenValue<'a> {
    literal: &'a Literal,
    step: LocationStep<'a>,
    parent: Option<&'a GivenValue<'a>>,
    /// Whether the schema requires the value.
    required: bool,
}

#[derive(Clone, Copy)]
enum LocationStep<'a> {
    /// The arguments as a whole.
    Tool(&'a str),
    Key(&'a str),
    Index(usize),
}

impl<'a> GivenValue<'a> {
    fn root(tool: &'a str, literal: &'a Literal) -> Self {
        Self { literal, step: LocationStep::Tool(tool), parent: None, required: true }
    }

    fn entry<'b>(&'b self, entry: &'b LiteralEntry, required: bool) -> GivenValue<'b> {
        let step = LocationStep::Key(&entry.key);
        GivenValue { literal: &entry.value, step, parent: Some(self), required }
    }

    fn item<'b>(&'b self, index: usize, literal: &'b Literal) -> GivenValue<'b> {
        let step = LocationStep::Index(index);
        GivenValue { literal, step, parent: Some(self), required: true }
    }

    /// A violation at this value.
    fn violation(&self, message: String, hint: Option<String>) -> Violation {
        Violation::error(self.literal.offset, message, hint)
    }

    /// The tool, if this is the value of all arguments.
    fn tool(&self) -> Option<&'a str> {
        match self.step {
            LocationStep::Tool(tool) => Some(tool),
            _ => None,
        }
    }

    fn write(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent.filter(|parent| parent.tool().is_none()) {
            parent.write(formatter)?;
        }
        match self.step {
            LocationStep::Tool(name) => write!(formatter, "{}", cut(name)),
            LocationStep::Index(index) => write!(formatter, "[{index}]"),
            LocationStep::Key(key) if self.parent.is_some_and(|parent| parent.tool().is_none()) => {
                write!(formatter, ".{}", cut(key))
            }
            LocationStep::Key(key) => write!(formatter, "{}", cut(key)),
        }
    }
}

/// The location in backticks.
impl fmt::Display for GivenValue<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`")?;
        self.write(formatter)?;
        write!(formatter, "`")
    }
}

/// The largest number of branches that are compared.
const MAX_BRANCHES: usize = 64;

impl SchemaChecker<'_> {
    fn check_branches(
        &self,
        branches: &[Value],
        given: &GivenValue<'_>,
        depth: usize,
        out: &mut Vec<Violation>,
    ) {
        if branches.len() > MAX_BRANCHES {
            return;
        }
        let mut refused = Vec::new();
        for branch in branches {
            let mut violations = Vec::new();
            self.branching.set(self.branching.get() + 1);
            self.walk(branch, given, depth + 1, &mut violations);
            self.branching.set(self.branching.get() - 1);
            violations.retain(|violation| violation.severity == CheckSeverity::Error);
            if violations.is_empty() {
                return;
            }
            refused.push((self.behind_references(branch), violations));
        }
        if let Some(values) = values(&refused) {
            out.push(self.not_one_of(&values, given));
            return;
        }
        let mut near: Vec<&(&Value, Vec<Violation>)> = refused
            .iter()
            .filter(|(schema, _)| {
                let names = types_of(schema);
                names.is_empty() || names.iter().any(|name| fits(name, given.literal))
            })
            .collect();
        // The branch that has most of the keys is meant, unless a key tells that it is not.
        let distance = |(schema, violations): &(&Value, Vec<Violation>)| {
            let only = violations.iter().filter(|violation| violation.is_only_value).count();
            let others = violations.iter().filter(|violation| violation.is_other_value).count();
            (only, foreign_keys(schema, given.literal), others, violations.len())
        };
        near.sort_by_key(|branch| distance(branch));
        match near.as_slice() {
            // No branch has the right type, so list the types.
            [] => {
                let mut names: Vec<&str> = Vec::new();
                for name in refused.iter().flat_map(|(schema, _)| types_of(schema)) {
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
                let (wanted, noun) = (self.wanted(&names), self.noun(given.literal));
                out.push(given.violation(format!("{given} takes {wanted}, not {noun}"), None));
            }
            [(_, violations)] => out.extend(violations.iter().cloned()),
            // One branch is closer than the others and is most likely the one that was meant.
            [first, second, ..] if distance(first) < distance(second) => {
                out.extend(first.1.iter().cloned());
            }
            [(_, first), ..] => {
                let message = format!("{given} fits none of the {} forms it may have", near.len());
                let hint =
                    first.first().map(|violation| format!("in the first, {}", violation.message));
                out.push(given.violation(message, hint));
            }
        }
    }

    /// Follows schemas that consist of a reference only.
    fn behind_references<'v>(&'v self, mut schema: &'v Value) -> &'v Value {
        for _ in 0..8 {
            let pointer = schema.get("$ref").and_then(Value::as_str);
            match pointer.and_then(|pointer| self.resolve(pointer)) {
                Some(target) => schema = target,
                None => break,
            }
        }
        schema
    }
}

/// The number of keys of an object that a schema does not name.
fn foreign_keys(schema: &Value, literal: &Literal) -> usize {
    let properties = schema.get("properties").and_then(Value::as_object);
    let (LiteralKind::Object { entries, .. }, Some(properties)) = (&literal.kind, properties)
    else {
        return 0;
    };
    entries.iter().filter(|entry| !properties.contains_key(&entry.key)).count()
}

fn types_of(schema: &Value) -> Vec<&str> {
    schema.as_object().map(types).unwrap_or_default()
}

/// The values of branches that are only enumerations.
fn values<'v>(refused: &[(&'v Value, Vec<Violation>)]) -> Option<Vec<&'v Value>> {
    let mut values = Vec::new();
    for (schema, _) in refused {
        match (schema.get("const"), schema.get("enum")) {
            (Some(value), None) => values.push(value),
            (None, Some(Value::Array(several))) => values.extend(several),
            _ => return None,
        }
    }
    Some(values)
}
