//! The one description of a section: its keys, their documentation, defaults, ranges and readers.
//!
//! [`section!`] makes of it the type with the settings, its defaults, the list of known keys, the
//! reader and the part of the JSON Schema.

use std::str::FromStr;
use std::time::Duration;

use serde_json::{Map, Value as Json, json};
use toolgate_policy::RememberTime;

use crate::document::{Member, Value};
use crate::scope::Scope;
use crate::{ProblemSeverity, Secret};

/// An object of the configuration.
pub(crate) trait Section: Default {
    /// Its name among the definitions of the JSON Schema.
    const NAME: &'static str;
    /// The known keys.
    const KEYS: &'static [&'static str];

    /// The JSON Schema of the object.
    fn schema(definitions: &mut Definitions) -> Json;

    /// Reads the keys that have a field; a key that is missing or wrong leaves its field as it is.
    fn read_keys(&mut self, scope: &mut Scope<'_, '_>);
}

/// How the value of a key is read and described.
pub(crate) trait Setting {
    type Value;

    /// The value. None where it is wrong, which is recorded.
    fn read(&self, scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<Self::Value>;

    /// The JSON Schema of the value.
    fn schema(&self, definitions: &mut Definitions) -> Json;

    /// A value as it is written, for the default in the JSON Schema.
    fn written(&self, _value: &Self::Value) -> Json {
        Json::Null
    }
}

/// The named parts of the JSON Schema.
#[derive(Default)]
pub(crate) struct Definitions(pub(crate) Map<String, Json>);

/// What a wrong value costs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wrong<T> {
    /// A warning; the setting stays as it is.
    Ignored,
    /// An error; the setting stays as it is.
    Refused,
    /// An error; the setting becomes this, the safe choice.
    Becomes(T),
}

/// A setting that takes one word of a few.
///
/// The reader, its messages and the JSON Schema all use the one table.
pub(crate) trait Choice: Copy + PartialEq + 'static {
    /// The words and their meaning.
    const CHOICES: &'static [(&'static str, Self)];
    /// Older words, which are read and not offered.
    const OLD: &'static [(&'static str, Self)] = &[];

    fn from_value(value: &Value<'_>) -> Option<Self> {
        let Value::String(word) = value else { return None };
        let mut all = Self::CHOICES.iter().chain(Self::OLD);
        all.find(|(known, _)| known == word).map(|(_, value)| *value)
    }

    fn word(self) -> &'static str {
        let mut all = Self::CHOICES.iter().chain(Self::OLD);
        all.find(|(_, value)| *value == self).map_or("", |(word, _)| word)
    }

    /// The words for a message: `` `a`, `b` or `c` ``.
    fn names() -> String {
        let names: Vec<_> = Self::CHOICES.iter().map(|(name, _)| format!("`{name}`")).collect();
        match names.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
            None => String::new(),
        }
    }

    /// The JSON Schema of one word.
    fn schema() -> Json {
        let words: Vec<_> = Self::CHOICES.iter().map(|(word, _)| *word).collect();
        json!({ "type": "string", "enum": words })
    }

    /// The JSON Schema of one word or a list of words.
    fn list_schema() -> Json {
        one_or_many(&Self::schema())
    }
}

/// Gives types their words.
macro_rules! choices {
    ($($type:ident: $($word:literal => $value:ident),+ $(| $($old:literal => $older:ident),+)?;)+) => {$(
        impl crate::section::Choice for $type {
            const CHOICES: &'static [(&'static str, Self)] = &[$(($word, Self::$value)),+];
            $(const OLD: &'static [(&'static str, Self)] = &[$(($old, Self::$older)),+];)?
        }
    )+};
}

/// Describes a section.
///
/// The documentation of the keys is that of the fields and of the JSON Schema. `fields` have no key
/// of their own. `keys` are read by hand, since their meaning depends on others; here they have
/// their part of the schema. With `impl` in place of `struct` the type exists already.
macro_rules! section {
    (
        $(#[doc = $doc:literal])*
        impl $name:ident as $definition:literal, $defaults:expr
        $(, keys { $($(#[doc = $key_doc:literal])* $key:literal => $key_schema:expr;)* })?
        $(, { $($(#[doc = $field_doc:literal])* $field_key:literal => $field:ident, $setting:expr;)* })?
    ) => {
        impl crate::section::Section for $name {
            const NAME: &'static str = $definition;
            const KEYS: &'static [&'static str] = &[$($($key,)*)? $($($field_key,)*)?];

            fn schema(definitions: &mut crate::section::Definitions) -> serde_json::Value {
                let mut properties = serde_json::Map::new();
                $($(
                    let schema: fn(&mut crate::section::Definitions) -> serde_json::Value =
                        $key_schema;
                    let property = crate::section::property(schema(definitions), &[$($key_doc),*]);
                    properties.insert($key.to_owned(), property);
                )*)?
                let _defaults: Self = $defaults;
                $($(
                    let property = crate::section::described(
                        &$setting, &_defaults.$field, &[$($field_doc),*], definitions,
                    );
                    properties.insert($field_key.to_owned(), property);
                )*)?
                let description = crate::section::description(&[$($doc),*]);
                serde_json::json!({
                    "type": "object", "properties": properties, "description": description,
                })
            }

            fn read_keys(&mut self, _scope: &mut crate::scope::Scope<'_, '_>) {
                $($(
                    if let Some(value) = _scope.setting($field_key, &$setting) {
                        self.$field = value.into();
                    }
                )*)?
            }
        }
    };
    (
        $(#[doc = $doc:literal])*
        $vis:vis struct $name:ident as $definition:literal
        $(fields { $($(#[doc = $plain_doc:literal])* $plain:ident: $plain_type:ty;)* })?
        $(keys { $($keys:tt)* })?
        $({ $(
            $(#[doc = $field_doc:literal])*
            $field_key:literal => $field:ident: $type:ty = $default:expr, $setting:expr;
        )* })?
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq)]
        $vis struct $name {
            $($($(#[doc = $plain_doc])* pub $plain: $plain_type,)*)?
            $($($(#[doc = $field_doc])* pub $field: $type,)*)?
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($($plain: Default::default(),)*)? $($($field: $default,)*)? }
            }
        }

        crate::section::section! {
            $(#[doc = $doc])*
            impl $name as $definition, Self::default()
            $(, keys { $($keys)* })?
            $(, { $($(#[doc = $field_doc])* $field_key => $field, $setting;)* })?
        }
    };
}

pub(crate) use {choices, section};

impl Definitions {
    /// A reference to the definition of a section, which is added.
    pub(crate) fn reference<S: Section>(&mut self) -> Json {
        if !self.0.contains_key(S::NAME) {
            self.0.insert(S::NAME.to_owned(), Json::Null);
            let schema = S::schema(self);
            self.0.insert(S::NAME.to_owned(), schema);
        }
        json!({ "$ref": format!("#/$defs/{}", S::NAME) })
    }
}

/// The text of a documentation comment.
pub(crate) fn description(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join("\n")
}

/// The JSON Schema of a key. A `null` is as good as no value.
pub(crate) fn property(mut schema: Json, documentation: &[&str]) -> Json {
    if let Some(one @ Json::String(_)) = schema.get("type") {
        schema["type"] = json!([one, "null"]);
    } else if let Some(Json::Array(kinds)) = schema.get_mut("anyOf") {
        kinds.push(json!({ "type": "null" }));
    } else if schema.get("$ref").is_some() {
        schema = json!({ "anyOf": [schema, { "type": "null" }] });
    }
    if let Some(Json::Array(values)) = schema.get_mut("enum") {
        values.push(Json::Null);
    }
    schema["description"] = description(documentation).into();
    schema
}

/// The JSON Schema of a key with a field, and the default where there is one.
pub(crate) fn described<'v, S: Setting>(
    setting: &S,
    default: impl Into<Option<&'v S::Value>>,
    documentation: &[&str],
    definitions: &mut Definitions,
) -> Json
where
    S::Value: 'v,
{
    let mut schema = property(setting.schema(definitions), documentation);
    match default.into().map_or(Json::Null, |value| setting.written(value)) {
        Json::Null => {}
        default => schema["default"] = default,
    }
    schema
}

/// One value or a list of them.
pub(crate) fn one_or_many(schema: &Json) -> Json {
    json!({ "anyOf": [schema, { "type": "array", "items": schema }] })
}

/// A number within bounds; anything else is ignored with a warning, or an error.
pub(crate) struct Bounded<T> {
    min: f64,
    max: f64,
    kind: &'static str,
    severity: ProblemSeverity,
    parse: fn(&str) -> Option<T>,
    write: fn(&T) -> String,
}

pub(crate) fn integer(min: u32, max: u32) -> Bounded<usize> {
    whole(min, max)
}

pub(crate) fn whole<T: FromStr + ToString>(min: u32, max: u32) -> Bounded<T> {
    let parse = |text: &str| text.parse().ok();
    let (min, max, severity) = (min.into(), max.into(), ProblemSeverity::Warning);
    Bounded { min, max, kind: "integer", severity, parse, write: T::to_string }
}

pub(crate) fn number(min: f64, max: f64) -> Bounded<f64> {
    let (severity, write) = (ProblemSeverity::Warning, f64::to_string);
    Bounded { min, max, kind: "number", severity, parse: |text| text.parse().ok(), write }
}

pub(crate) fn seconds(min: f64, max: f64) -> Bounded<Duration> {
    let parse = |text: &str| Duration::try_from_secs_f64(text.parse().ok()?).ok();
    let write = |duration: &Duration| duration.as_secs_f64().to_string();
    Bounded { min, max, kind: "number", severity: ProblemSeverity::Warning, parse, write }
}

pub(crate) fn hours(min: f64, max: f64) -> Bounded<Duration> {
    let parse = |text: &str| Duration::try_from_secs_f64(text.parse::<f64>().ok()? * 3_600.0).ok();
    let write = |duration: &Duration| (duration.as_secs_f64() / 3_600.0).to_string();
    Bounded { parse, write, ..seconds(min, max) }
}

pub(crate) fn remember_minutes(min: f64, max: f64) -> Bounded<RememberTime> {
    let parse = |text: &str| {
        Duration::try_from_secs_f64(text.parse::<f64>().ok()? * 60.0).ok().map(RememberTime)
    };
    let write = |time: &RememberTime| (time.0.as_secs_f64() / 60.0).to_string();
    Bounded { min, max, kind: "number", severity: ProblemSeverity::Warning, parse, write }
}

impl<T> Bounded<T> {
    /// The same, where a wrong number is an error.
    pub(crate) fn refused(self) -> Self {
        Self { severity: ProblemSeverity::Error, ..self }
    }
}

impl<T> Setting for Bounded<T> {
    type Value = T;

    fn read(&self, scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<T> {
        let is_within =
            |text: &str| text.parse().is_ok_and(|it| (self.min..=self.max).contains(&it));
        let value = match &member.node.value {
            Value::Number(text) if is_within(text) => (self.parse)(text),
            _ => None,
        };
        if value.is_none() {
            let kind = if self.kind == "integer" { "a whole number" } else { "a number" };
            let (min, max) = (grouped(self.min), grouped(self.max));
            let expected = format!("{kind} from {min} to {max}");
            let at = scope.at.value(member);
            scope.unfit(self.severity, &at, &expected, "");
        }
        value
    }

    fn schema(&self, _: &mut Definitions) -> Json {
        let (min, max) = (as_json(&self.min.to_string()), as_json(&self.max.to_string()));
        json!({ "type": self.kind, "minimum": min, "maximum": max })
    }

    fn written(&self, value: &T) -> Json {
        as_json(&(self.write)(value))
    }
}

/// A number as JSON writes it: a whole one without a fraction.
fn as_json(number: &str) -> Json {
    serde_json::from_str(number).unwrap_or_default()
}

/// A number with commas between its thousands.
fn grouped(number: f64) -> String {
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

impl<T: Copy> Wrong<T> {
    fn severity(self) -> ProblemSeverity {
        if matches!(self, Self::Ignored) {
            ProblemSeverity::Warning
        } else {
            ProblemSeverity::Error
        }
    }

    fn value(self) -> Option<T> {
        if let Self::Becomes(value) = self { Some(value) } else { None }
    }
}

/// True or false.
pub(crate) struct Flag(pub(crate) Wrong<bool>);

impl Setting for Flag {
    type Value = bool;

    fn read(&self, scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<bool> {
        if let Value::Boolean(value) = member.node.value {
            return Some(value);
        }
        let at = scope.at.value(member);
        scope.mismatch(self.0.severity(), &at, &member.node.value, "true or false", "");
        self.0.value()
    }

    fn schema(&self, _: &mut Definitions) -> Json {
        json!({ "type": "boolean" })
    }

    fn written(&self, value: &bool) -> Json {
        (*value).into()
    }
}

/// One word of a few.
pub(crate) struct Word<C>(pub(crate) Wrong<C>);

impl<C: Choice> Setting for Word<C> {
    type Value = C;

    fn read(&self, scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<C> {
        C::from_value(&member.node.value).or_else(|| {
            let at = scope.at.value(member);
            scope.unfit(self.0.severity(), &at, &C::names(), "");
            self.0.value()
        })
    }

    fn schema(&self, _: &mut Definitions) -> Json {
        C::schema()
    }

    fn written(&self, value: &C) -> Json {
        value.word().into()
    }
}

/// A short text without variables; anything else is ignored with a warning.
pub(crate) struct Plain {
    pub(crate) longest: usize,
    pub(crate) fits: fn(char) -> bool,
    pub(crate) expected: &'static str,
    pub(crate) pattern: Option<&'static str>,
}

impl Setting for Plain {
    type Value = String;

    fn read(&self, scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<String> {
        if let Value::String(text) = &member.node.value
            && text.chars().nth(self.longest).is_none()
            && text.chars().all(self.fits)
        {
            return Some(text.to_string());
        }
        let at = scope.at.value(member);
        scope.unfit(ProblemSeverity::Warning, &at, self.expected, "");
        None
    }

    fn schema(&self, _: &mut Definitions) -> Json {
        match self.pattern {
            Some(pattern) => json!({ "type": "string", "pattern": pattern }),
            None => json!({ "type": "string", "maxLength": self.longest }),
        }
    }
}

/// A setting with a reader of its own.
pub(crate) struct Custom<T> {
    pub(crate) schema: fn(&mut Definitions) -> Json,
    pub(crate) read: fn(&mut Scope<'_, '_>, &Member<'_>) -> Option<T>,
}

impl<T> Setting for Custom<T> {
    type Value = T;

    fn read(&self, scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<T> {
        (self.read)(scope, member)
    }

    fn schema(&self, definitions: &mut Definitions) -> Json {
        (self.schema)(definitions)
    }
}

/// A setting with a reader of its own.
pub(crate) fn custom<T>(
    schema: fn(&mut Definitions) -> Json,
    read: fn(&mut Scope<'_, '_>, &Member<'_>) -> Option<T>,
) -> Custom<T> {
    Custom { schema, read }
}

/// A text that is not empty, with its variables expanded.
pub(crate) fn text() -> Custom<String> {
    custom(text_schema, read_text)
}

fn read_text(scope: &mut Scope<'_, '_>, member: &Member<'_>) -> Option<String> {
    scope.text(member)
}

/// The same, which no log and no message shows.
pub(crate) fn secret() -> Custom<Secret> {
    custom(text_schema, |scope, member| scope.text(member).map(Secret::new))
}

pub(crate) fn text_schema(_: &mut Definitions) -> Json {
    json!({ "type": "string", "minLength": 1 })
}

pub(crate) fn flag_schema(_: &mut Definitions) -> Json {
    json!({ "type": "boolean" })
}

pub(crate) fn strings_schema(_: &mut Definitions) -> Json {
    json!({ "type": "array", "items": { "type": "string" } })
}

/// Names and values; numbers and booleans are taken as they are written.
pub(crate) fn values_schema(_: &mut Definitions) -> Json {
    json!({ "type": "object", "additionalProperties": { "type": ["string", "number", "boolean"] } })
}

/// Objects of one kind by name.
pub(crate) fn map_schema<S: Section>(definitions: &mut Definitions) -> Json {
    json!({ "type": "object", "additionalProperties": definitions.reference::<S>() })
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn thousands_are_grouped() {
        let shown = [grouped(0.1), grouped(100.0), grouped(1_000.0), grouped(86_400.0)];
        assert_eq!(shown, ["0.1", "100", "1,000", "86,400"]);
        assert_eq!(grouped(1_073_741_824.0), "1,073,741,824");
    }
}
