//! JSON with comments and trailing commas.

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::errors::{ParseError, ParseErrorKind as Kind};
use jsonc_parser::tokens::Token;
use jsonc_parser::{
    CollectOptions, ParseOptions, ParseStringErrorKind as StringKind, Scanner, ScannerOptions,
    parse_to_ast,
};

use super::{Member, Node, Object, Value, syntax, too_deep};
use crate::position::SourceText;
use crate::{ConfigError, MAX_DEPTH};

/// Reads a text; `None` if it has only white space and comments.
pub(super) fn read<'a>(source: &SourceText<'a>) -> Result<Option<Node<'a>>, ConfigError> {
    check_depth(source)?;
    // Editors and clients accept comments and trailing commas. Other extensions of the parser are
    // off, because other programs could not read such a file.
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let parsed = parse_to_ast(source.text(), &CollectOptions::default(), &options)
        .map_err(|error| translate(source, &error))?;
    Ok(parsed.value.map(convert))
}

/// Refuses a text that is nested too deep before the parser, which recurses, meets it.
fn check_depth(source: &SourceText<'_>) -> Result<(), ConfigError> {
    let mut scanner = Scanner::new(source.text(), &ScannerOptions::default());
    let mut depth = 0_usize;
    // A text that cannot even be split into tokens gets its message from the parser.
    while let Ok(Some(token)) = scanner.scan() {
        match token {
            Token::OpenBrace | Token::OpenBracket => depth += 1,
            Token::CloseBrace | Token::CloseBracket => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err(too_deep(source, scanner.token_start()));
        }
    }
    Ok(())
}

/// Recurses at most [`MAX_DEPTH`] times, which `check_depth` has seen to.
fn convert(value: ast::Value<'_>) -> Node<'_> {
    let offset = value.start();
    let value = match value {
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::BooleanLit(literal) => Value::Boolean(literal.value),
        ast::Value::NumberLit(literal) => Value::Number(literal.value.into()),
        ast::Value::StringLit(literal) => Value::String(literal.value),
        ast::Value::Array(array) => Value::Array(array.elements.into_iter().map(convert).collect()),
        ast::Value::Object(object) => {
            let members = object.properties.into_iter().map(|property| {
                let key_offset = property.name.start();
                let key = match property.name {
                    ast::ObjectPropName::String(literal) => literal.value,
                    ast::ObjectPropName::Word(word) => word.value.into(),
                };
                Member { key, key_offset, node: convert(property.value) }
            });
            Value::Object(Object::new(members.collect()))
        }
    };
    Node { value, offset }
}

/// Translates a message of the parser to the terms of other messages.
fn translate(source: &SourceText<'_>, error: &ParseError) -> ConfigError {
    let message = match error.kind() {
        Kind::ExpectedColonAfterObjectKey => "expected `:` after the key",
        Kind::ExpectedObjectValue => "expected a value after `:`",
        Kind::ExpectedStringObjectProperty => "expected a key in double quotes",
        Kind::UnexpectedTokenInObject => "expected a key in double quotes or `}`",
        Kind::ExpectedComma => "expected `,` before the next entry",
        Kind::MultipleRootJsonValues => "expected the end of the file after the closing `}`",
        Kind::SingleQuotedStringsNotAllowed => "expected double quotes instead of single ones",
        Kind::UnexpectedCloseBrace => "expected a value, but found `}`",
        Kind::UnexpectedCloseBracket => "expected a value, but found `]`",
        Kind::UnexpectedColon => "expected a value, but found `:`",
        Kind::UnexpectedComma => "expected a value, but found `,`",
        Kind::UnexpectedWord | Kind::UnexpectedToken => {
            "expected a value: a string in double quotes, a number, true, false, null, `[` or `{`"
        }
        Kind::UnterminatedArray => "expected a `]` that closes this `[`",
        Kind::UnterminatedObject => "expected a `}` that closes this `{`",
        Kind::UnterminatedCommentBlock => "expected a `*/` that closes this comment",
        Kind::NestingDepthExceeded => return too_deep(source, error.range().start),
        Kind::String(StringKind::UnterminatedStringLiteral) => {
            "expected a closing `\"` on the same line"
        }
        Kind::String(StringKind::ExpectedFourHexDigits) => {
            "expected four hexadecimal digits after `\\u`"
        }
        Kind::String(StringKind::InvalidUnicodeEscapeSequence(_)) => {
            "expected a valid character after `\\u`"
        }
        Kind::String(_) => {
            "expected a valid escape after `\\`; a backslash itself is written `\\\\`"
        }
        _ => "expected a number such as 5, -1 or 0.5",
    };
    syntax(source, error.range().start, message.to_owned())
}
