//! TOML.

use std::borrow::Cow;

use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};
use toml_parser::Source;
use toml_parser::lexer::TokenKind;

use super::{Member, Node, Object, Value, syntax, too_deep};
use crate::position::SourceText;
use crate::{ConfigError, MAX_DEPTH};

/// Reads a text, which is always a table.
pub(super) fn read<'a>(source: &SourceText<'a>) -> Result<Option<Node<'a>>, ConfigError> {
    check_depth(source)?;
    let table = DeTable::parse(source.text()).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        syntax(source, offset, translate(source.text(), offset, error.message()))
    })?;
    let offset = table.span().start;
    let object = convert_table(source, table.into_inner(), 1)?;
    Ok(Some(Node { value: Value::Object(object), offset }))
}

/// Translates misleading messages of the parser to the terms of other messages.
fn translate(text: &str, offset: usize, message: &str) -> String {
    let is_word = text.get(offset..).is_some_and(|rest| rest.starts_with(char::is_alphabetic));
    if is_word && ["float", "integer", "boolean"].iter().any(|kind| message.contains(kind)) {
        return "expected a value: a string in double quotes, a number, true, false, `[` or `{`"
            .into();
    }
    match message {
        "duplicate key" => {
            "expected each key once, but this one is already written further up".into()
        }
        // The parser puts what it found and what it expected on separate lines.
        _ => message.trim().replace('\n', "; "),
    }
}

/// Refuses a text that is nested too deep before the parser meets it. The parser bounds the depth
/// of brackets and the dots of a key, but not the two multiplied: `a.a.a = { a.a.a = { …`.
fn check_depth(source: &SourceText<'_>) -> Result<(), ConfigError> {
    // The open brackets, each with its levels: its own, and one for each dot of its key.
    let mut open: Vec<(TokenKind, usize)> = Vec::new();
    let mut depth = 0_usize;
    let mut dots = 0_usize;
    for token in Source::new(source.text()).lex() {
        let closes = match token.kind() {
            TokenKind::Dot => {
                dots += 1;
                continue;
            }
            TokenKind::Comma | TokenKind::Newline => {
                dots = 0;
                continue;
            }
            TokenKind::LeftSquareBracket | TokenKind::LeftCurlyBracket => {
                let levels = 1 + std::mem::take(&mut dots);
                depth += levels;
                if depth > MAX_DEPTH {
                    return Err(too_deep(source, token.span().start()));
                }
                open.push((token.kind(), levels));
                continue;
            }
            TokenKind::RightSquareBracket => TokenKind::LeftSquareBracket,
            TokenKind::RightCurlyBracket => TokenKind::LeftCurlyBracket,
            _ => continue,
        };
        // A bracket that closes nothing is left to the parser's message.
        if let Some((_, levels)) = open.pop_if(|(kind, _)| *kind == closes) {
            depth -= levels;
            dots = 0;
        }
    }
    Ok(())
}

fn convert_table<'a>(
    source: &SourceText<'a>,
    table: DeTable<'a>,
    depth: usize,
) -> Result<Object<'a>, ConfigError> {
    let mut members = Vec::with_capacity(table.len());
    for (key, value) in table {
        let key_offset = key.span().start;
        members.push(Member {
            key: key.into_inner(),
            key_offset,
            node: convert(source, value, depth)?,
        });
    }
    // The parser's map sorts by name; people expect the order of their file.
    members.sort_by_key(|member| member.key_offset);
    Ok(Object::new(members))
}

fn convert<'a>(
    source: &SourceText<'a>,
    value: Spanned<DeValue<'a>>,
    depth: usize,
) -> Result<Node<'a>, ConfigError> {
    let offset = value.span().start;
    if depth > MAX_DEPTH {
        return Err(too_deep(source, offset));
    }
    let value = match value.into_inner() {
        DeValue::String(text) => Value::String(text),
        DeValue::Integer(integer) => Value::Number(decimal(&integer)),
        DeValue::Float(float) => Value::Number(float.as_str().to_owned().into()),
        DeValue::Boolean(boolean) => Value::Boolean(boolean),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(array) => Value::Array(
            array
                .into_iter()
                .map(|element| convert(source, element, depth + 1))
                .collect::<Result<_, _>>()?,
        ),
        DeValue::Table(table) => Value::Object(convert_table(source, table, depth + 1)?),
    };
    Ok(Node { value, offset })
}

/// An integer in base ten; TOML has hexadecimal, octal and binary ones too.
fn decimal<'a>(integer: &DeInteger<'a>) -> Cow<'a, str> {
    let text = integer.as_str();
    match i128::from_str_radix(text, integer.radix()) {
        Ok(number) => number.to_string().into(),
        // Too large for any setting; as it is written it fails the range check of each.
        Err(_) => text.to_owned().into(),
    }
}
