//! What is said about a value that does not fit.

use serde_json::{Map, Value};

use super::{Checker, Place, Violation, scalar::EXACT};
use crate::check::{
    Language,
    literal::{Kind, Literal},
    words::{cut, nearest},
};

const SHOWN_VALUES: usize = 10;

impl Checker<'_> {
    /// The violation that says which of a few values it has to be.
    pub(super) fn not_one_of(
        &self,
        values: &[&Value],
        literal: &Literal,
        place: &Place<'_>,
    ) -> Violation {
        let shown: Vec<String> =
            values.iter().take(SHOWN_VALUES).map(|value| self.show(value)).collect();
        let more = if values.len() > SHOWN_VALUES {
            format!(" … ({} in all)", values.len())
        } else {
            String::new()
        };
        let message = match values {
            [_] => format!("{place} can only be {}", shown.join("")),
            _ => format!("{place} is one of {}{more}", shown.join(", ")),
        };
        let texts = || values.iter().filter_map(|value| value.as_str());
        let meant = match &literal.kind {
            Kind::Text(Some(text)) => nearest(text, texts()),
            _ => None,
        };
        let hint = meant.map(|text| format!("did you mean {}?", self.show(&Value::from(text))));
        Violation { is_other_value: true, ..Violation::error(literal.offset, message, hint) }
    }

    /// The violation that says which type was wanted.
    pub(super) fn mistyped(
        &self,
        types: &[&str],
        keywords: &Map<String, Value>,
        literal: &Literal,
        place: &Place<'_>,
    ) -> Violation {
        let wanted = self.wanted(types);
        let given = match literal.kind {
            Kind::Number(number) if types.contains(&"integer") => show_number(number),
            _ => self.noun(literal).to_owned(),
        };
        let message = format!("{place} takes {wanted}, not {given}");
        Violation::error(literal.offset, message, self.remedy(types, keywords, literal, place))
    }

    fn remedy(
        &self,
        types: &[&str],
        keywords: &Map<String, Value>,
        literal: &Literal,
        place: &Place<'_>,
    ) -> Option<String> {
        let wants = |name: &str| types.contains(&name);
        match &literal.kind {
            Kind::Null if !place.required => Some("leave it out".to_owned()),
            Kind::Text(Some(text))
                if (wants("integer") || wants("number"))
                    && text.parse::<f64>().is_ok_and(f64::is_finite)
                    && text.len() <= 20 =>
            {
                Some(format!("write `{text}` without quotes"))
            }
            Kind::Text(Some(text)) if wants("boolean") && (text == "true" || text == "false") => {
                Some(format!("write {}", self.show(&Value::Bool(text == "true"))))
            }
            Kind::Number(number) if wants("string") => {
                Some(format!("write `\"{}\"`", show_number(*number)))
            }
            Kind::Text(_) | Kind::Number(_) | Kind::Boolean(_) | Kind::Object { .. }
                if wants("array") =>
            {
                let mut inner = Vec::new();
                // One level is enough to know whether the brackets are all that is missing.
                if let Some(Value::Object(items)) = keywords.get("items") {
                    self.check_scalar(items, literal, &place.item(0), &mut inner);
                }
                inner.is_empty().then(|| "put it into brackets: `[…]`".to_owned())
            }
            _ => None,
        }
    }

    /// `a string or an integer`.
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
            Kind::Unknown | Kind::Undefined => "this",
            Kind::Null => self.type_noun("null"),
            Kind::Boolean(_) => self.type_noun("boolean"),
            Kind::Number(_) => self.type_noun("number"),
            Kind::Text(_) => self.type_noun("string"),
            Kind::Array { .. } => self.type_noun("array"),
            Kind::Object { .. } => self.type_noun("object"),
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

/// Whole numbers without a point, huge ones with an exponent.
pub(super) fn show_number(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() < EXACT {
        format!("{number}")
    } else {
        format!("{number:?}")
    }
}
