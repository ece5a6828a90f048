//! Converts JSON to Python values and back.
//!
//! Integers of any size are preserved.

use std::fmt::Write;

use jiter::JsonValue;
use monty_types::{DictPairs, FormatFloat, MontyDate, MontyDateTime, MontyObject, MontyTime};
use serde_json::value::RawValue;

/// The largest depth of a value.
pub(super) const DEPTH_LIMIT: usize = 180;

/// Why a value cannot be converted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ValueError {
    /// The value contains itself.
    #[error("Circular reference detected")]
    Circular,
    /// The value is nested too deeply.
    #[error("the value is nested more than {DEPTH_LIMIT} levels deep")]
    Deep,
    /// The value is NaN or infinite.
    #[error("Out of range float values are not JSON compliant")]
    Float,
    /// The key of a dictionary is neither text nor a simple value.
    #[error("keys must be str, int, float, bool or None, not {0}")]
    Key(&'static str),
    /// The value is a coroutine that was never awaited.
    #[error("a coroutine was never awaited: write `await` before the call that makes it")]
    Coroutine,
    /// The value exists only inside of the script.
    #[error("Object of type {0} is not JSON serializable")]
    Type(&'static str),
    /// The text from outside is not JSON.
    #[error("the result is not JSON: {0}")]
    Text(String),
}

/// Whether a value must have a JSON form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strictness {
    /// An argument of a tool: a value without a JSON form is an error.
    Argument,
    /// The result of a script: a value without a JSON form becomes its text.
    Shown,
}

/// Converts JSON to a Python value.
pub(super) fn from_json(text: &RawValue) -> Result<MontyObject, ValueError> {
    let value = JsonValue::parse(text.get().as_bytes(), false)
        .map_err(|error| ValueError::Text(error.to_string()))?;
    from_parsed(value, DEPTH_LIMIT)
}

/// Converts a Python value to JSON.
pub(super) fn to_json(
    value: &MontyObject,
    strictness: Strictness,
) -> Result<Box<RawValue>, ValueError> {
    let mut json = JsonWriter::new(strictness);
    json.value(value, DEPTH_LIMIT)?;
    json.finish()
}

/// Writes Python values as JSON.
pub(super) struct JsonWriter {
    pub(super) text: String,
    strictness: Strictness,
}

impl JsonWriter {
    pub(super) fn new(strictness: Strictness) -> Self {
        Self { text: String::new(), strictness }
    }

    /// The written JSON.
    pub(super) fn finish(self) -> Result<Box<RawValue>, ValueError> {
        RawValue::from_string(self.text).map_err(|error| ValueError::Text(error.to_string()))
    }

    pub(super) fn string(&mut self, string: &str) {
        // Writing a string does not fail.
        self.text.push_str(&serde_json::to_string(string).unwrap_or_default());
    }

    /// Writes parts with commas between them and brackets around them.
    pub(super) fn sequence<T, E>(
        &mut self,
        [open, close]: [char; 2],
        parts: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T) -> Result<(), E>,
    ) -> Result<(), E> {
        self.text.push(open);
        for (index, part) in parts.into_iter().enumerate() {
            if index > 0 {
                self.text.push(',');
            }
            write(self, part)?;
        }
        self.text.push(close);
        Ok(())
    }

    /// Writes a value. `depth` is the remaining depth.
    pub(super) fn value(&mut self, value: &MontyObject, depth: usize) -> Result<(), ValueError> {
        let Some(depth) = depth.checked_sub(1) else { return Err(ValueError::Deep) };
        match value {
            MontyObject::None | MontyObject::Ellipsis | MontyObject::NotImplemented => {
                self.text.push_str("null");
            }
            MontyObject::Bool(value) => self.text.push_str(if *value { "true" } else { "false" }),
            MontyObject::Int(value) => self.text.push_str(&value.to_string()),
            MontyObject::BigInt(value) => self.text.push_str(&value.to_string()),
            MontyObject::Float(value) => self.float(*value)?,
            MontyObject::String(value) | MontyObject::Path(value) => self.string(value),
            MontyObject::List(items)
            | MontyObject::Tuple(items)
            | MontyObject::Set(items)
            | MontyObject::FrozenSet(items) => {
                self.sequence(['[', ']'], items, |json, item| json.value(item, depth))?;
            }
            MontyObject::NamedTuple { field_names, values, .. } => {
                let fields = field_names.iter().zip(values);
                self.sequence(['{', '}'], fields, |json, (name, value)| {
                    json.string(name);
                    json.text.push(':');
                    json.value(value, depth)
                })?;
            }
            MontyObject::Dict(pairs) => self.pairs(pairs, depth)?,
            MontyObject::ClassInstance(instance) => match member_value(&instance.attrs) {
                Some(value) => self.value(value, depth)?,
                None => self.pairs(&instance.attrs, depth)?,
            },
            MontyObject::Date(date) => self.string(&date_text(date)),
            MontyObject::DateTime(moment) => self.string(&moment_text(moment)),
            MontyObject::Time(time) => self.string(&time_text(time)),
            MontyObject::TimeDelta(delta) => {
                let whole = i64::from(delta.days) * 86_400 + i64::from(delta.seconds);
                #[expect(clippy::cast_precision_loss, reason = "seconds of at most 2^47 are exact")]
                let seconds = whole as f64 + f64::from(delta.microseconds) / 1e6;
                self.float(seconds)?;
            }
            MontyObject::Cycle(..) => return Err(ValueError::Circular),
            MontyObject::Repr(shown) if shown.starts_with("<coroutine ") => {
                return Err(ValueError::Coroutine);
            }
            // Monty returns this if its own depth limit is lower.
            MontyObject::Repr(shown) if shown == "<deeply nested>" => return Err(ValueError::Deep),
            MontyObject::Bytes(bytes) if self.strictness == Strictness::Shown => {
                self.string(&String::from_utf8_lossy(bytes));
            }
            other if self.strictness == Strictness::Shown => self.string(&other.py_repr()),
            other => return Err(ValueError::Type(type_name(other))),
        }
        Ok(())
    }

    fn pairs(&mut self, pairs: &DictPairs, depth: usize) -> Result<(), ValueError> {
        self.sequence(['{', '}'], pairs, |json, (key, value)| {
            json.key(key)?;
            json.text.push(':');
            json.value(value, depth)
        })
    }

    /// Writes a key as Python's `json.dumps` does.
    fn key(&mut self, key: &MontyObject) -> Result<(), ValueError> {
        match key {
            MontyObject::String(key) => self.string(key),
            MontyObject::None => self.string("null"),
            MontyObject::Bool(value) => self.string(if *value { "true" } else { "false" }),
            MontyObject::Int(_) | MontyObject::BigInt(_) | MontyObject::Float(_) => {
                self.string(&key.py_repr());
            }
            MontyObject::Date(date) => self.string(&date_text(date)),
            MontyObject::DateTime(moment) => self.string(&moment_text(moment)),
            MontyObject::ClassInstance(instance)
                if let Some(MontyObject::String(value)) = member_value(&instance.attrs) =>
            {
                self.string(value);
            }
            other if self.strictness == Strictness::Shown => self.string(&other.py_repr()),
            other => return Err(ValueError::Key(type_name(other))),
        }
        Ok(())
    }

    fn float(&mut self, value: f64) -> Result<(), ValueError> {
        if value.is_finite() {
            self.text.push_str(&FormatFloat(value).to_string());
        } else if self.strictness == Strictness::Shown {
            // JSON has no such number, and a `null` would hide that it was one.
            self.string(match value {
                value if value.is_nan() => "NaN",
                value if value > 0.0 => "Infinity",
                _ => "-Infinity",
            });
        } else {
            return Err(ValueError::Float);
        }
        Ok(())
    }
}

/// A few words about data.
pub(super) fn shape(value: &MontyObject, depth: usize) -> String {
    const KEYS: usize = 12;
    let cut = |text: String, most: usize| match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    };
    match value {
        MontyObject::Dict(pairs) => {
            let keys: Vec<String> =
                pairs.into_iter().map(|(key, _)| cut(key.py_repr(), 40)).take(KEYS).collect();
            let more = pairs.into_iter().count().saturating_sub(KEYS);
            match (keys.is_empty(), more) {
                (true, _) => "an empty dict".to_owned(),
                (_, 0) => format!("a dict with the keys {}", keys.join(", ")),
                _ => format!("a dict with the keys {} and {more} more", keys.join(", ")),
            }
        }
        MontyObject::List(items) => match items.first() {
            None => "an empty list".to_owned(),
            Some(first) if depth > 0 => {
                format!("a list of {}, the first is {}", items.len(), shape(first, depth - 1))
            }
            Some(_) => format!("a list of {}", items.len()),
        },
        MontyObject::String(text) => {
            let shown = MontyObject::String(cut(text.clone(), 60)).py_repr();
            format!("a text: {shown}")
        }
        MontyObject::None => "None".to_owned(),
        MontyObject::Bool(_) => format!("the truth value {}", value.py_repr()),
        other => format!("the number {}", other.py_repr()),
    }
}

fn from_parsed(value: JsonValue<'_>, depth: usize) -> Result<MontyObject, ValueError> {
    let Some(depth) = depth.checked_sub(1) else { return Err(ValueError::Deep) };
    Ok(match value {
        JsonValue::Null => MontyObject::None,
        JsonValue::Bool(value) => MontyObject::Bool(value),
        JsonValue::Int(value) => MontyObject::Int(value),
        JsonValue::BigInt(value) => MontyObject::BigInt(value),
        JsonValue::Float(value) => MontyObject::Float(value),
        JsonValue::Str(value) => MontyObject::String(value.into_owned()),
        JsonValue::Array(items) => MontyObject::List(
            std::sync::Arc::unwrap_or_clone(items)
                .into_iter()
                .map(|item| from_parsed(item, depth))
                .collect::<Result<_, _>>()?,
        ),
        JsonValue::Object(pairs) => {
            let pairs: Vec<(MontyObject, MontyObject)> = std::sync::Arc::unwrap_or_clone(pairs)
                .into_iter()
                .map(|(key, value)| {
                    Ok((MontyObject::String(key.into_owned()), from_parsed(value, depth)?))
                })
                .collect::<Result<_, ValueError>>()?;
            MontyObject::Dict(DictPairs::from(pairs))
        }
    })
}

/// The value of a member of an enumeration, which the prelude marks.
fn member_value(attributes: &DictPairs) -> Option<&MontyObject> {
    let get = |name: &str| {
        let mut pairs = attributes.into_iter();
        pairs.find(|(key, _)| matches!(key, MontyObject::String(key) if key == name))
    };
    get("_tg_enum").and_then(|_| get("value")).map(|(_, value)| value)
}

fn date_text(date: &MontyDate) -> String {
    format!("{:04}-{:02}-{:02}", date.year, date.month, date.day)
}

fn moment_text(moment: &MontyDateTime) -> String {
    let MontyDateTime { year, month, day, hour, minute, second, microsecond, .. } = moment;
    let mut text = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    write_fraction_and_offset(&mut text, *microsecond, moment.offset_seconds);
    text
}

fn time_text(time: &MontyTime) -> String {
    let MontyTime { hour, minute, second, microsecond, .. } = time;
    let mut text = format!("{hour:02}:{minute:02}:{second:02}");
    write_fraction_and_offset(&mut text, *microsecond, time.offset_seconds);
    text
}

fn write_fraction_and_offset(text: &mut String, microsecond: u32, offset: Option<i32>) {
    if microsecond != 0 {
        let _ = write!(text, ".{microsecond:06}");
    }
    if let Some(offset) = offset {
        let sign = if offset < 0 { '-' } else { '+' };
        let minutes = offset.unsigned_abs() / 60;
        let _ = write!(text, "{sign}{:02}:{:02}", minutes / 60, minutes % 60);
    }
}

fn type_name(value: &MontyObject) -> &'static str {
    match value {
        MontyObject::Bytes(_) => "bytes",
        MontyObject::Tuple(_) => "tuple",
        MontyObject::FrozenSet(_) => "frozenset",
        MontyObject::Exception { .. } => "exception",
        MontyObject::Type(_) => "type",
        MontyObject::BuiltinFunction(_) | MontyObject::Function { .. } => "function",
        MontyObject::TimeZone(_) => "timezone",
        MontyObject::FileHandle(_) => "file",
        MontyObject::ClassInstance(_) => "instance",
        _ => "object",
    }
}
