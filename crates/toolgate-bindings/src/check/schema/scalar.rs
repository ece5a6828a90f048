//! Checks types, enumerations and bounds.

use serde_json::{Map, Value};

use super::{Draft, GivenValue, SchemaChecker, Violation, list};
use crate::check::{
    Language,
    literal::{Literal, LiteralKind},
    wording::{cut, nearest},
};

/// Larger integers are not exact as doubles.
pub(super) const EXACT: f64 = 9_007_199_254_740_992.0;

impl SchemaChecker<'_> {
    pub(super) fn check_scalar(
        &self,
        keywords: &Map<String, Value>,
        given: &GivenValue<'_>,
        out: &mut Vec<Violation>,
    ) {
        let literal = given.literal;
        let types = types(keywords);
        if !types.is_empty() && !types.iter().any(|name| fits(name, literal)) {
            out.push(self.mistyped(&types, keywords, given));
            return;
        }
        if let Some(Value::Array(values)) = keywords.get("enum")
            && !values.is_empty()
            && values.iter().all(|value| equals(literal, value) == Some(false))
        {
            let values: Vec<&Value> = values.iter().collect();
            out.push(self.not_one_of(&values, given));
            return;
        }
        if let Some(value) = keywords.get("const")
            && self.draft > Draft::Four
            && equals(literal, value) == Some(false)
        {
            out.push(self.not_one_of(&[value], given));
            return;
        }
        match &literal.kind {
            LiteralKind::Number(number) => check_range(keywords, *number, given, out),
            LiteralKind::Text(Some(text)) => {
                let length = text.chars().count();
                let size = Size { least: length, most: Some(length), unit: "characters" };
                size.check(keywords, ["minLength", "maxLength"], given, out);
            }
            LiteralKind::Array { items, complete } => {
                let most = complete.then_some(items.len());
                let size = Size { least: items.len(), most, unit: "items" };
                size.check(keywords, ["minItems", "maxItems"], given, out);
            }
            _ => {}
        }
    }
}

/// The names of a schema's types. Empty if the schema declares none.
pub(super) fn types(keywords: &Map<String, Value>) -> Vec<&str> {
    match keywords.get("type") {
        Some(Value::String(name)) => vec![name],
        _ => list(keywords, "type").iter().filter_map(Value::as_str).collect(),
    }
}

/// Whether a literal can have a type.
pub(super) fn fits(name: &str, literal: &Literal) -> bool {
    match (name, &literal.kind) {
        (_, LiteralKind::Unknown | LiteralKind::Undefined | LiteralKind::Promise(_))
        | ("number" | "integer", LiteralKind::SomeNumber)
        | ("array", LiteralKind::ListOf(_) | LiteralKind::Array { .. })
        | ("string", LiteralKind::Text(_))
        | ("number", LiteralKind::Number(_))
        | ("boolean", LiteralKind::Boolean(_))
        | ("null", LiteralKind::Null)
        | ("object", LiteralKind::Object { .. }) => true,
        ("integer", LiteralKind::Number(number)) => number.fract() == 0.0,
        (_, LiteralKind::Each(all) | LiteralKind::OneOf(all)) => {
            all.iter().any(|one| fits(name, one))
        }
        ("string" | "number" | "integer" | "boolean" | "null" | "array" | "object", _) => false,
        // An unknown type is left to the broker.
        _ => true,
    }
}

/// Whether a literal equals a value; `None` if that is known only at run time.
fn equals(literal: &Literal, value: &Value) -> Option<bool> {
    match (&literal.kind, value) {
        (LiteralKind::Null, Value::Null) => Some(true),
        (LiteralKind::Boolean(Some(left)), Value::Bool(right)) => Some(left == right),
        // Doubles may treat two different numbers as equal, but never equal ones as different.
        (LiteralKind::Number(left), Value::Number(right)) => {
            right.as_f64().map(|right| left.total_cmp(&right).is_eq() || *left - right == 0.0)
        }
        (LiteralKind::Text(Some(left)), Value::String(right)) => Some(left == right),
        (LiteralKind::Array { items, complete: true }, Value::Array(values)) => {
            if items.len() != values.len() {
                return Some(false);
            }
            every(items.iter().zip(values).map(|(item, value)| equals(item, value)))
        }
        (LiteralKind::Object { entries, complete: true }, Value::Object(values)) => {
            let known = every(entries.iter().map(|entry| match values.get(&entry.key) {
                Some(value) => equals(&entry.value, value),
                None if entry.value.kind == LiteralKind::Unknown => None,
                None if entry.value.kind == LiteralKind::Undefined => Some(true),
                None => Some(false),
            }));
            let missing = values.keys().any(|key| !entries.iter().any(|entry| entry.key == *key));
            if missing { Some(false) } else { known }
        }
        // A part of the value is known only at run time.
        (LiteralKind::Each(all) | LiteralKind::OneOf(all), _) => {
            let is_other = |one: &Literal| equals(one, value) == Some(false);
            all.iter().all(is_other).then_some(false)
        }
        (LiteralKind::Unknown | LiteralKind::Undefined | LiteralKind::Promise(_), _)
        | (LiteralKind::SomeNumber, Value::Number(_))
        | (LiteralKind::ListOf(_) | LiteralKind::Array { .. }, Value::Array(_))
        | (LiteralKind::Boolean(None), Value::Bool(_))
        | (LiteralKind::Text(None), Value::String(_))
        | (LiteralKind::Object { .. }, Value::Object(_)) => None,
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
    given: &GivenValue<'_>,
    out: &mut Vec<Violation>,
) {
    let bound = |keyword: &str| keywords.get(keyword).and_then(Value::as_f64);
    let exact = |bound: f64| number.abs() < EXACT && bound.abs() < EXACT;
    let mut violated = |bound: Option<f64>, is_violated: &dyn Fn(f64) -> bool, words: &str| {
        if let Some(bound) = bound.filter(|bound| is_violated(*bound)) {
            out.push(
                given.violation(format!("{given} takes {words} {}", show_number(bound)), None),
            );
        }
    };
    violated(bound("minimum"), &|bound| number < bound, "at least");
    violated(bound("maximum"), &|bound| number > bound, "at most");
    let below = |bound: f64| number < bound || exact(bound) && number <= bound;
    violated(bound("exclusiveMinimum"), &below, "more than");
    let above = |bound: f64| number > bound || exact(bound) && number >= bound;
    violated(bound("exclusiveMaximum"), &above, "less than");
}

/// The size of a text or an array.
struct Size {
    least: usize,
    /// `None` if the final size is unknown.
    most: Option<usize>,
    unit: &'static str,
}

impl Size {
    fn check(
        &self,
        keywords: &Map<String, Value>,
        [least, most]: [&str; 2],
        given: &GivenValue<'_>,
        out: &mut Vec<Violation>,
    ) {
        let bound = |keyword: &str| keywords.get(keyword).and_then(Value::as_f64);
        let words = |words: &str, bound: f64| {
            let shown = show_number(bound);
            let unit = if shown == "1" { self.unit.trim_end_matches('s') } else { self.unit };
            format!("{given} takes {words} {shown} {unit}")
        };
        if let (Some(bound), Some(size)) = (bound(least), self.most)
            && as_number(size) < bound
        {
            out.push(given.violation(words("at least", bound), None));
        }
        if let Some(bound) = bound(most)
            && as_number(self.least) > bound
        {
            out.push(given.violation(words("at most", bound), None));
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a script is smaller than 2^53 bytes")]
fn as_number(size: usize) -> f64 {
    size as f64
}

const SHOWN_VALUES: usize = 10;

impl SchemaChecker<'_> {
    /// The violation for a value that is not one of the allowed ones.
    pub(super) fn not_one_of(&self, values: &[&Value], given: &GivenValue<'_>) -> Violation {
        let shown: Vec<String> =
            values.iter().take(SHOWN_VALUES).map(|value| self.show(value)).collect();
        let more = if values.len() > SHOWN_VALUES {
            format!(" … ({} in all)", values.len())
        } else {
            String::new()
        };
        let message = match values {
            [_] => format!("{given} can only be {}", shown.join("")),
            _ => format!("{given} is one of {}{more}", shown.join(", ")),
        };
        let texts = || values.iter().filter_map(|value| value.as_str());
        let meant = match &given.literal.kind {
            LiteralKind::Text(Some(text)) => nearest(text, texts()),
            _ => None,
        };
        let hint = meant.map(|text| format!("did you mean {}?", self.show(&Value::from(text))));
        let is_to_be_left_out = given.literal.kind == LiteralKind::Null && !given.required;
        let hint = hint.or_else(|| is_to_be_left_out.then(|| "leave it out".to_owned()));
        let is_only_value = values.len() == 1;
        Violation { is_other_value: true, is_only_value, ..given.violation(message, hint) }
    }

    /// The violation for a value of another type.
    pub(super) fn mistyped(
        &self,
        types: &[&str],
        keywords: &Map<String, Value>,
        given: &GivenValue<'_>,
    ) -> Violation {
        let wanted = self.wanted(types);
        let actual = match given.literal.kind {
            LiteralKind::Number(number) if types.contains(&"integer") => show_number(number),
            _ => self.noun(given.literal).to_owned(),
        };
        let message = format!("{given} takes {wanted}, not {actual}");
        given.violation(message, self.remedy(types, keywords, given))
    }

    /// How to correct a value of another type, if that is known.
    fn remedy(
        &self,
        types: &[&str],
        keywords: &Map<String, Value>,
        given: &GivenValue<'_>,
    ) -> Option<String> {
        let wants = |name: &str| types.contains(&name);
        match &given.literal.kind {
            LiteralKind::Null if !given.required => Some("leave it out".to_owned()),
            LiteralKind::Text(Some(text))
                if (wants("integer") || wants("number"))
                    && text.parse::<f64>().is_ok_and(f64::is_finite)
                    && text.len() <= 20 =>
            {
                Some(format!("write `{text}` without quotes"))
            }
            LiteralKind::Text(Some(text))
                if wants("boolean") && (text == "true" || text == "false") =>
            {
                Some(format!("write {}", self.show(&Value::Bool(text == "true"))))
            }
            LiteralKind::Number(number) if wants("string") => {
                Some(format!("write `\"{}\"`", show_number(*number)))
            }
            LiteralKind::Text(_)
            | LiteralKind::Number(_)
            | LiteralKind::Boolean(_)
            | LiteralKind::Object { .. }
                if wants("array") =>
            {
                let mut inner = Vec::new();
                // One level is enough to know whether only the brackets are missing.
                if let Some(Value::Object(items)) = keywords.get("items") {
                    self.check_scalar(items, &given.item(0, given.literal), &mut inner);
                }
                inner.is_empty().then(|| "put it into brackets: `[…]`".to_owned())
            }
            _ => None,
        }
    }

    /// The types as a phrase: `a string or an integer`.
    pub(super) fn wanted(&self, types: &[&str]) -> String {
        let nouns: Vec<&str> = types.iter().map(|name| self.type_noun(name)).collect();
        match nouns.as_slice() {
            [] => "something else".to_owned(),
            [one] => (*one).to_owned(),
            [first @ .., last] => format!("{} or {last}", first.join(", ")),
        }
    }

    fn type_noun<'n>(&self, name: &'n str) -> &'n str {
        match (name, self.language) {
            ("string", _) => "a string",
            ("integer", _) => "an integer",
            ("number", _) => "a number",
            ("boolean", _) => "a boolean",
            ("array", Language::TypeScript) => "an array",
            ("array", Language::Python) => "a list",
            ("object", Language::TypeScript) => "an object",
            ("object", Language::Python) => "a dict",
            ("null", Language::TypeScript) => "null",
            ("null", Language::Python) => "None",
            _ => name,
        }
    }

    pub(super) fn noun(&self, literal: &Literal) -> &'static str {
        match literal.kind {
            LiteralKind::Unknown
            | LiteralKind::Undefined
            | LiteralKind::Promise(_)
            | LiteralKind::Each(_)
            | LiteralKind::OneOf(_) => "this",
            LiteralKind::Null => self.type_noun("null"),
            LiteralKind::Boolean(_) => self.type_noun("boolean"),
            LiteralKind::Number(_) | LiteralKind::SomeNumber => self.type_noun("number"),
            LiteralKind::Text(_) => self.type_noun("string"),
            LiteralKind::Array { .. } | LiteralKind::ListOf(_) => self.type_noun("array"),
            LiteralKind::Object { .. } => self.type_noun("object"),
        }
    }

    fn show(&self, value: &Value) -> String {
        let text = match (value, self.language) {
            (Value::Null, Language::Python) => "None".to_owned(),
            (Value::Bool(true), Language::Python) => "True".to_owned(),
            (Value::Bool(false), Language::Python) => "False".to_owned(),
            _ => value.to_string(),
        };
        format!("`{}`", cut(&text))
    }
}

/// The text of a number. Whole numbers have no decimal point, huge ones have an exponent.
pub(super) fn show_number(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() < EXACT {
        format!("{number}")
    } else {
        format!("{number:?}")
    }
}
