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
    let mut text = String::new();
    write_value(&mut text, value, strictness, DEPTH_LIMIT)?;
    RawValue::from_string(text).map_err(|error| ValueError::Text(error.to_string()))
}

/// Appends a string as JSON.
pub(super) fn write_string(text: &mut String, string: &str) {
    text.push('"');
    let mut plain = 0;
    for (index, byte) in string.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..0x20 => "",
            _ => continue,
        };
        text.push_str(&string[plain..index]);
        plain = index + 1;
        if escape.is_empty() {
            let _ = write!(text, "\\u{byte:04x}");
        } else {
            text.push_str(escape);
        }
    }
    text.push_str(&string[plain..]);
    text.push('"');
}

/// Appends a value as JSON. `depth` is the remaining depth.
pub(super) fn write_value(
    text: &mut String,
    value: &MontyObject,
    strictness: Strictness,
    depth: usize,
) -> Result<(), ValueError> {
    let Some(depth) = depth.checked_sub(1) else { return Err(ValueError::Deep) };
    match value {
        MontyObject::None | MontyObject::Ellipsis | MontyObject::NotImplemented => {
            text.push_str("null");
        }
        MontyObject::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        MontyObject::Int(value) => text.push_str(&value.to_string()),
        MontyObject::BigInt(value) => text.push_str(&value.to_string()),
        MontyObject::Float(value) => write_float(text, *value, strictness)?,
        MontyObject::String(value) | MontyObject::Path(value) => write_string(text, value),
        MontyObject::List(items)
        | MontyObject::Tuple(items)
        | MontyObject::Set(items)
        | MontyObject::FrozenSet(items) => write_items(text, items, strictness, depth)?,
        MontyObject::NamedTuple { field_names, values, .. } => {
            text.push('{');
            for (index, (name, value)) in field_names.iter().zip(values).enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_string(text, name);
                text.push(':');
                write_value(text, value, strictness, depth)?;
            }
            text.push('}');
        }
        MontyObject::Dict(pairs) => write_pairs(text, pairs, strictness, depth)?,
        MontyObject::ClassInstance(instance) => match member_value(&instance.attrs) {
            Some(value) => write_value(text, value, strictness, depth)?,
            None => write_pairs(text, &instance.attrs, strictness, depth)?,
        },
        MontyObject::Date(date) => write_string(text, &date_text(date)),
        MontyObject::DateTime(moment) => write_string(text, &moment_text(moment)),
        MontyObject::Time(time) => write_string(text, &time_text(time)),
        MontyObject::TimeDelta(delta) => {
            let whole = i64::from(delta.days) * 86_400 + i64::from(delta.seconds);
            #[expect(clippy::cast_precision_loss, reason = "seconds of at most 2^47 are exact")]
            let seconds = whole as f64 + f64::from(delta.microseconds) / 1e6;
            write_float(text, seconds, strictness)?;
        }
        MontyObject::Cycle(..) => return Err(ValueError::Circular),
        MontyObject::Repr(shown) if shown.starts_with("<coroutine ") => {
            return Err(ValueError::Coroutine);
        }
        // Monty returns this if its own depth limit is lower.
        MontyObject::Repr(shown) if shown == "<deeply nested>" => return Err(ValueError::Deep),
        MontyObject::Bytes(bytes) if strictness == Strictness::Shown => {
            write_string(text, &String::from_utf8_lossy(bytes));
        }
        other if strictness == Strictness::Shown => write_string(text, &other.py_repr()),
        other => return Err(ValueError::Type(type_name(other))),
    }
    Ok(())
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

fn write_items(
    text: &mut String,
    items: &[MontyObject],
    strictness: Strictness,
    depth: usize,
) -> Result<(), ValueError> {
    text.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        write_value(text, item, strictness, depth)?;
    }
    text.push(']');
    Ok(())
}

fn write_pairs(
    text: &mut String,
    pairs: &DictPairs,
    strictness: Strictness,
    depth: usize,
) -> Result<(), ValueError> {
    text.push('{');
    for (index, (key, value)) in pairs.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        write_key(text, key, strictness)?;
        text.push(':');
        write_value(text, value, strictness, depth)?;
    }
    text.push('}');
    Ok(())
}

/// The value of a member of an enumeration, which the prelude marks.
fn member_value(attributes: &DictPairs) -> Option<&MontyObject> {
    let get = |name: &str| {
        let mut pairs = attributes.into_iter();
        pairs.find(|(key, _)| matches!(key, MontyObject::String(key) if key == name))
    };
    get("_tg_enum").and_then(|_| get("value")).map(|(_, value)| value)
}

/// Writes a key as Python's `json.dumps` does.
fn write_key(
    text: &mut String,
    key: &MontyObject,
    strictness: Strictness,
) -> Result<(), ValueError> {
    match key {
        MontyObject::String(key) => write_string(text, key),
        MontyObject::None => text.push_str("\"null\""),
        MontyObject::Bool(value) => text.push_str(if *value { "\"true\"" } else { "\"false\"" }),
        MontyObject::Int(_) | MontyObject::BigInt(_) | MontyObject::Float(_) => {
            write_string(text, &key.py_repr());
        }
        MontyObject::Date(date) => write_string(text, &date_text(date)),
        MontyObject::DateTime(moment) => write_string(text, &moment_text(moment)),
        MontyObject::ClassInstance(instance)
            if let Some(MontyObject::String(value)) = member_value(&instance.attrs) =>
        {
            write_string(text, value);
        }
        other if strictness == Strictness::Shown => write_string(text, &other.py_repr()),
        other => return Err(ValueError::Key(type_name(other))),
    }
    Ok(())
}

fn write_float(text: &mut String, value: f64, strictness: Strictness) -> Result<(), ValueError> {
    if value.is_finite() {
        text.push_str(&FormatFloat(value).to_string());
    } else if strictness == Strictness::Shown {
        text.push_str("null");
    } else {
        return Err(ValueError::Float);
    }
    Ok(())
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
