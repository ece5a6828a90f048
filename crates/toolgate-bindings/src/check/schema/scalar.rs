//! Types, enumerations and bounds.

use serde_json::{Map, Value};

use super::{Checker, Draft, Place, Violation, list, wording::show_number};
use crate::check::literal::{Kind, Literal};

/// Integers beyond are not all different as doubles.
pub(super) const EXACT: f64 = 9_007_199_254_740_992.0;

impl Checker<'_> {
    pub(super) fn check_scalar(
        &self,
        keywords: &Map<String, Value>,
        literal: &Literal,
        place: &Place<'_>,
        out: &mut Vec<Violation>,
    ) {
        let types = types(keywords);
        if !types.is_empty() && !types.iter().any(|name| fits(name, literal)) {
            out.push(self.mistyped(&types, keywords, literal, place));
            return;
        }
        if let Some(Value::Array(values)) = keywords.get("enum")
            && !values.is_empty()
            && values.iter().all(|value| equals(literal, value) == Some(false))
        {
            let values: Vec<&Value> = values.iter().collect();
            out.push(self.not_one_of(&values, literal, place));
            return;
        }
        if let Some(value) = keywords.get("const")
            && self.draft > Draft::Four
            && equals(literal, value) == Some(false)
        {
            out.push(self.not_one_of(&[value], literal, place));
            return;
        }
        match &literal.kind {
            Kind::Number(number) => check_range(keywords, *number, literal, place, out),
            Kind::Text(Some(text)) => {
                let length = text.chars().count();
                let size = Size { least: length, most: Some(length), unit: "characters" };
                size.check(keywords, ["minLength", "maxLength"], literal, place, out);
            }
            Kind::Array { items, complete } => {
                let most = complete.then_some(items.len());
                let size = Size { least: items.len(), most, unit: "items" };
                size.check(keywords, ["minItems", "maxItems"], literal, place, out);
            }
            _ => {}
        }
    }
}

/// The names of a schema's types; none where it does not say.
pub(super) fn types(keywords: &Map<String, Value>) -> Vec<&str> {
    match keywords.get("type") {
        Some(Value::String(name)) => vec![name],
        _ => list(keywords, "type").iter().filter_map(Value::as_str).collect(),
    }
}

/// Whether a literal can be of a type.
pub(super) fn fits(name: &str, literal: &Literal) -> bool {
    match (name, &literal.kind) {
        (_, Kind::Unknown | Kind::Undefined)
        | ("string", Kind::Text(_))
        | ("number", Kind::Number(_))
        | ("boolean", Kind::Boolean(_))
        | ("null", Kind::Null)
        | ("array", Kind::Array { .. })
        | ("object", Kind::Object { .. }) => true,
        ("integer", Kind::Number(number)) => number.fract() == 0.0,
        ("string" | "number" | "integer" | "boolean" | "null" | "array" | "object", _) => false,
        // No type that is known: not for us to say.
        _ => true,
    }
}

/// Whether a literal is a value; `None` where only a run would say.
fn equals(literal: &Literal, value: &Value) -> Option<bool> {
    match (&literal.kind, value) {
        (Kind::Null, Value::Null) => Some(true),
        (Kind::Boolean(Some(left)), Value::Bool(right)) => Some(left == right),
        // Doubles: two numbers that differ by less may be taken for one, never the other way.
        (Kind::Number(left), Value::Number(right)) => {
            right.as_f64().map(|right| left.total_cmp(&right).is_eq() || *left - right == 0.0)
        }
        (Kind::Text(Some(left)), Value::String(right)) => Some(left == right),
        (Kind::Array { items, complete: true }, Value::Array(values)) => {
            if items.len() != values.len() {
                return Some(false);
            }
            every(items.iter().zip(values).map(|(item, value)| equals(item, value)))
        }
        (Kind::Object { entries, complete: true }, Value::Object(values)) => {
            let known = every(entries.iter().map(|entry| match values.get(&entry.key) {
                Some(value) => equals(&entry.value, value),
                None if entry.value.kind == Kind::Unknown => None,
                None if entry.value.kind == Kind::Undefined => Some(true),
                None => Some(false),
            }));
            let missing = values.keys().any(|key| !entries.iter().any(|entry| entry.key == *key));
            if missing { Some(false) } else { known }
        }
        // Some of it is not written out.
        (Kind::Unknown | Kind::Undefined, _)
        | (Kind::Boolean(None), Value::Bool(_))
        | (Kind::Text(None), Value::String(_))
        | (Kind::Array { .. }, Value::Array(_))
        | (Kind::Object { .. }, Value::Object(_)) => None,
        _ => Some(false),
    }
}

fn every(answers: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut all = Some(true);
    for one in answers {
        match one {
            Some(true) => {}
            Some(false) => return Some(false),
            None => all = None,
        }
    }
    all
}

fn check_range(
    keywords: &Map<String, Value>,
    number: f64,
    literal: &Literal,
    place: &Place<'_>,
    out: &mut Vec<Violation>,
) {
    let bound = |keyword: &str| keywords.get(keyword).and_then(Value::as_f64);
    let exact = |bound: f64| number.abs() < EXACT && bound.abs() < EXACT;
    let mut violated = |bound: Option<f64>, is_violated: &dyn Fn(f64) -> bool, words: &str| {
        if let Some(bound) = bound.filter(|bound| is_violated(*bound)) {
            out.push(out_of_bounds(place, literal, &format!("{words} {}", show_number(bound))));
        }
    };
    violated(bound("minimum"), &|bound| number < bound, "at least");
    violated(bound("maximum"), &|bound| number > bound, "at most");
    let below = |bound: f64| number < bound || exact(bound) && number <= bound;
    violated(bound("exclusiveMinimum"), &below, "more than");
    let above = |bound: f64| number > bound || exact(bound) && number >= bound;
    violated(bound("exclusiveMaximum"), &above, "less than");
}

/// How large something is.
struct Size {
    least: usize,
    /// `None` where there may be more.
    most: Option<usize>,
    unit: &'static str,
}

impl Size {
    fn check(
        &self,
        keywords: &Map<String, Value>,
        [least, most]: [&str; 2],
        literal: &Literal,
        place: &Place<'_>,
        out: &mut Vec<Violation>,
    ) {
        let bound = |keyword: &str| keywords.get(keyword).and_then(Value::as_f64);
        let words = |words: &str, bound: f64| {
            let shown = show_number(bound);
            let unit = if shown == "1" { self.unit.trim_end_matches('s') } else { self.unit };
            format!("{words} {shown} {unit}")
        };
        if let (Some(bound), Some(size)) = (bound(least), self.most)
            && as_number(size) < bound
        {
            out.push(out_of_bounds(place, literal, &words("at least", bound)));
        }
        if let Some(bound) = bound(most)
            && as_number(self.least) > bound
        {
            out.push(out_of_bounds(place, literal, &words("at most", bound)));
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a size of what was written")]
fn as_number(size: usize) -> f64 {
    size as f64
}

fn out_of_bounds(place: &Place<'_>, literal: &Literal, bound: &str) -> Violation {
    Violation::error(literal.offset, format!("{place} takes {bound}"), None)
}
