//! A literal against a JSON Schema, as far as both say something for certain.
//!
//! The rule for every line here: what the broker's validator would take is never an error. A
//! keyword that is not understood, a reference that leads elsewhere, a depth that is not followed:
//! all of them are left to the broker. That is safe because keywords only ever forbid, so that one
//! that is passed over can only let more through.

mod branches;
mod object;
mod place;
mod scalar;
mod wording;

use std::cell::Cell;

use serde_json::{Map, Value};

pub(super) use self::place::Place;
use super::{
    CheckSeverity, Language,
    literal::{Kind, Literal},
    lookup::Budget,
};

/// Something about a literal that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) severity: CheckSeverity,
    pub(super) offset: usize,
    pub(super) message: String,
    pub(super) hint: Option<String>,
    /// Whether it is another value than the only ones that may be. Where there are several forms,
    /// such a value says which is not meant.
    is_other_value: bool,
}

impl Violation {
    fn error(offset: usize, message: String, hint: Option<String>) -> Self {
        Self { severity: CheckSeverity::Error, offset, message, hint, is_other_value: false }
    }
}

/// The drafts, as far as a literal can tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Draft {
    Four,
    /// Six and seven.
    Seven,
    /// 2019-09.
    Nineteen,
    /// 2020-12, and where nothing is declared.
    Twenty,
}

/// Schemas in schemas are followed no deeper: they may refer to themselves.
const MAX_DEPTH: usize = 64;
/// Schemas that are looked at for one call: references can make a small one large.
const MAX_STEPS: u32 = 20_000;
const MAX_VIOLATIONS: usize = 10;

/// A tool's schema, ready to check literals.
pub(super) struct Checker<'s> {
    root: &'s Value,
    draft: Draft,
    language: Language,
    budget: &'s Budget,
    steps: Cell<u32>,
}

impl<'s> Checker<'s> {
    pub(super) fn new(root: &'s Value, language: Language, budget: &'s Budget) -> Self {
        let declared = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let draft = match declared {
            _ if declared.contains("draft-04") => Draft::Four,
            _ if declared.contains("draft-0") => Draft::Seven,
            _ if declared.contains("2019-09") => Draft::Nineteen,
            _ => Draft::Twenty,
        };
        Self { root, draft, language, budget, steps: Cell::new(0) }
    }

    /// All that does not fit, at most ten of it.
    pub(super) fn check(&self, literal: &Literal, place: &Place<'_>) -> Vec<Violation> {
        let mut violations = Vec::new();
        self.walk(self.root, literal, place, 0, &mut violations);
        violations.truncate(MAX_VIOLATIONS);
        violations
    }

    fn walk(
        &self,
        schema: &Value,
        literal: &Literal,
        place: &Place<'_>,
        depth: usize,
        out: &mut Vec<Violation>,
    ) {
        if matches!(literal.kind, Kind::Unknown | Kind::Undefined) || !self.may_go_on(depth) {
            return;
        }
        let keywords = match schema {
            Value::Bool(false) => {
                let message = format!("{place} may not be given");
                let hint = Some("leave it out".to_owned());
                out.push(Violation::error(literal.offset, message, hint));
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
                self.walk(target, literal, place, depth + 1, out);
            }
            if self.draft <= Draft::Seven {
                return;
            }
        }
        let before = out.len();
        self.check_scalar(keywords, literal, place, out);
        if out.len() > before {
            // The rest would say the same thing again.
            return;
        }
        match &literal.kind {
            Kind::Object { entries, complete } => {
                let object = object::Given { literal, entries, complete: *complete };
                self.check_object(schema, keywords, &object, place, depth, out);
            }
            Kind::Array { items, complete } => {
                self.check_items(keywords, items, *complete, place, depth, out);
            }
            _ => {}
        }
        for part in list(keywords, "allOf") {
            self.walk(part, literal, place, depth + 1, out);
        }
        for keyword in ["anyOf", "oneOf"] {
            let branches = list(keywords, keyword);
            if !branches.is_empty() {
                self.check_branches(branches, literal, place, depth, out);
            }
        }
    }

    fn check_items(
        &self,
        keywords: &Map<String, Value>,
        items: &[Literal],
        complete: bool,
        place: &Place<'_>,
        depth: usize,
        out: &mut Vec<Violation>,
    ) {
        let prefix = match self.draft {
            Draft::Twenty => list(keywords, "prefixItems"),
            _ => list(keywords, "items"),
        };
        if !prefix.is_empty() && !complete {
            // A spread moves the items to places that are not known.
            return;
        }
        let every = keywords.get("items").filter(|schema| schema.is_object());
        for (index, item) in items.iter().enumerate() {
            let schema = prefix.get(index).or(every);
            if let Some(schema) = schema {
                self.walk(schema, item, &place.item(index), depth + 1, out);
            }
        }
    }

    fn may_go_on(&self, depth: usize) -> bool {
        let steps = self.steps.get() + 1;
        self.steps.set(steps);
        depth <= MAX_DEPTH && steps <= MAX_STEPS && self.budget.take(1)
    }

    /// Whether a schema is a document of its own, in which references mean something else.
    fn is_foreign(&self, schema: &Value, keywords: &Map<String, Value>) -> bool {
        let is_text = |keyword: &str| keywords.get(keyword).is_some_and(Value::is_string);
        !std::ptr::eq(schema, self.root)
            && (is_text("$id") || is_text("$schema") || self.draft == Draft::Four && is_text("id"))
    }

    /// The part of the schema that a reference names, if it is one within it.
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
