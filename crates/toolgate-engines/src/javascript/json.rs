//! Converts values from and to JSON.

use rquickjs::{Ctx, Error, Exception, Function, Result, Value};
use serde_json::value::RawValue;

/// Converts JSON to a value. Integers that a number cannot represent become `BigInt` with
/// `parse_exact`, which is slower and rarely needed.
pub(super) fn read<'js>(
    ctx: &Ctx<'js>,
    parse_exact: &Function<'js>,
    text: &str,
) -> Result<Value<'js>> {
    if has_long_integer(text.as_bytes()) { parse_exact.call((text,)) } else { ctx.json_parse(text) }
}

/// Converts a value to JSON; `None` for values without a JSON form, such as `undefined`.
pub(super) fn write<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Option<Box<RawValue>>> {
    let Some(text) = ctx.json_stringify(value)? else { return Ok(None) };
    let text = replace_lone_surrogates(text.to_string()?);
    match RawValue::from_string(text) {
        Ok(json) => Ok(Some(json)),
        Err(error) => Err(not_json(ctx, &error)),
    }
}

/// Converts the value of a script to JSON. JSON has no numbers such as `NaN`, and a `null` would hide that it was one:
/// it is its text.
pub(super) fn write_shown<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Option<Box<RawValue>>> {
    let written = write(ctx, value.clone())?;
    // Few values have a `null`, and to look at each number takes its time.
    if written.as_ref().is_none_or(|json| !json.get().contains("null")) {
        return Ok(written);
    }
    let named: Function<'js> = ctx.eval(NAMED)?;
    let Some(text) = ctx.json_stringify_replacer(value, named)? else { return Ok(None) };
    let text = replace_lone_surrogates(text.to_string()?);
    RawValue::from_string(text).map(Some).map_err(|error| not_json(ctx, &error))
}

/// Replaces numbers that JSON does not have by their names.
const NAMED: &str =
    "(key, value) => typeof value === 'number' && value - value !== 0 ? `${value}` : value";

/// The error for an invalid JSON text, which QuickJS should never write.
fn not_json(ctx: &Ctx<'_>, error: &serde_json::Error) -> Error {
    Exception::throw_type(ctx, &format!("the value has no JSON: {error}"))
}

/// Whether the text contains an integer of 16 digits or more, which may exceed 2^53. A false
/// positive costs only time.
fn has_long_integer(text: &[u8]) -> bool {
    const LONG: usize = 16;
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'"' => rest = after_string(rest),
            b'0'..=b'9' => {
                let digits = 1 + rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                rest = &rest[digits - 1..];
                if matches!(rest.first(), Some(b'.' | b'e' | b'E')) {
                    let tail =
                        |byte: &&u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
                    rest = &rest[rest.iter().take_while(tail).count()..];
                } else if digits >= LONG {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

/// The text after a string, given the text after its opening quote.
fn after_string(text: &[u8]) -> &[u8] {
    let mut rest = text;
    loop {
        match rest {
            [b'"', after @ ..] => return after,
            [b'\\', _, after @ ..] | [_, after @ ..] => rest = after,
            [] => return rest,
        }
    }
}

/// Replaces lone surrogates, which JavaScript strings may contain and Unicode text cannot.
/// `JSON.stringify` escapes them and no other character of that range.
fn replace_lone_surrogates(text: String) -> String {
    if !text.contains("\\ud") {
        return text;
    }
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find('\\') {
        cleaned.push_str(&rest[..at]);
        let escape = &rest[at..];
        // An escape is `\uXXXX` or a backslash and one ASCII character.
        let length = if escape.starts_with("\\u") { 6 } else { 2 };
        let (escape, after) = escape.split_at_checked(length).unwrap_or((escape, ""));
        cleaned.push_str(if escape.starts_with("\\ud") { "\u{fffd}" } else { escape });
        rest = after;
    }
    cleaned.push_str(rest);
    cleaned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_integers_are_found_and_only_there() {
        for (text, long) in [
            ("[1, 2.5, -3]", false),
            ("9007199254740993", true),
            ("{\"a\": [-9223372036854775808]}", true),
            ("\"9007199254740993\"", false),
            ("\"a\\\"9007199254740993\"", false),
            ("\"a\\\\\", 9007199254740993", true),
            ("0.1234567890123456789", false),
            ("1234567890123456789.5", false),
            ("1234567890123456789e2", false),
            ("[1.5e-3, 12345678901234567890]", true),
            ("\"open", false),
            ("\"open\\", false),
            ("", false),
        ] {
            assert_eq!(has_long_integer(text.as_bytes()), long, "{text}");
        }
    }

    #[test]
    fn lone_surrogates_are_replaced_and_escapes_kept() {
        for (text, cleaned) in [
            (r#""plain""#, "\"plain\""),
            (r#""a\ud800b""#, "\"a\u{fffd}b\""),
            (r#""\\ud800""#, r#""\\ud800""#),
            (r#""\\\ud800""#, "\"\\\\\u{fffd}\""),
            (r#""\u0007\udfffé""#, "\"\\u0007\u{fffd}é\""),
        ] {
            assert_eq!(replace_lone_surrogates(text.to_owned()), cleaned, "{text}");
        }
    }
}
