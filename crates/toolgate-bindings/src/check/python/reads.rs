//! Reads of results: keys that a result does not have.

use super::{uses::KeyRead, values::Values};
use crate::check::{
    CheckSeverity, Language,
    finding::FindingCollector,
    literal::{Literal, LiteralKind},
    wording::cut,
};

/// Keys by which results say that something went wrong.
const ERRORS: &[&str] = &["error", "errors", "isError", "ok", "status", "success"];

#[rustfmt::skip]
const DICT_PARTS: &[&str] = &[
    "clear", "copy", "fromkeys", "get", "items", "keys", "pop", "popitem", "setdefault", "update",
    "values",
];
#[rustfmt::skip]
const LIST_PARTS: &[&str] = &[
    "append", "clear", "copy", "count", "extend", "index", "insert", "pop", "remove", "reverse",
    "sort",
];
#[rustfmt::skip]
const TEXT_PARTS: &[&str] = &[
    "capitalize", "casefold", "center", "count", "encode", "endswith", "expandtabs", "find",
    "format", "format_map", "index", "isalnum", "isalpha", "isascii", "isdecimal", "isdigit",
    "isidentifier", "islower", "isnumeric", "isprintable", "isspace", "istitle", "isupper", "join",
    "ljust", "lower", "lstrip", "maketrans", "partition", "removeprefix", "removesuffix", "replace",
    "rfind", "rindex", "rjust", "rpartition", "rsplit", "rstrip", "split", "splitlines",
    "startswith", "strip", "swapcase", "title", "translate", "upper", "zfill",
];
#[rustfmt::skip]
const NUMBER_PARTS: &[&str] = &[
    "as_integer_ratio", "bit_count", "bit_length", "conjugate", "denominator", "from_bytes",
    "fromhex", "hex", "imag", "is_integer", "numerator", "real", "to_bytes",
];

/// Reports keys that results do not have.
pub(super) fn check<'a>(
    reads: &[KeyRead<'a>],
    expected: &std::collections::HashSet<&'a str>,
    values: &Values<'_, 'a, '_>,
    report: &mut FindingCollector<'_>,
) {
    // A script that asks whether something went wrong may read what a result has then.
    let looks = values.looks_into_results() || ERRORS.iter().any(|key| expected.contains(key));
    for read in reads {
        if report.is_full() {
            return;
        }
        if values.may_store(read.key) || read.key.starts_with("__") {
            continue;
        }
        let value = values.read(read.value);
        let Some(lacking) = lacking(&value, read) else { continue };
        let Some(origin) = &lacking.origin else { continue };
        let key = cut(read.key);
        let subject = origin.subject();
        let is_dict = matches!(lacking.kind, LiteralKind::Object { .. });
        let has_key = matches!(&lacking.kind, LiteralKind::Object { entries, .. }
            if entries.iter().any(|entry| entry.key == read.key));
        let is_method = read.is_attribute && is_dict && DICT_PARTS.contains(&read.key);
        let message = match (read.is_attribute, is_dict) {
            (true, true) if is_method => {
                format!("{subject} is a dict, and `{key}` is a method of it")
            }
            (true, true) => format!("{subject} is a dict, which has no attribute `{key}`"),
            _ => format!("{subject} has no `{key}`"),
        };
        let hint = match (&lacking.kind, read.is_attribute) {
            (LiteralKind::Object { .. }, true) if has_key => format!("write `[\"{key}\"]`"),
            _ if is_method => format!("call it: `.{key}()`"),
            (LiteralKind::Object { complete: false, .. }, false)
                if origin.path.is_empty() || !origin.path.ends_with('}') =>
            {
                let contents = lacking.contents(read.key, Language::Python);
                format!("{contents}; if it is there all the same, write `.get(\"{key}\")`")
            }
            _ => lacking.contents(read.key, Language::Python),
        };
        let is_expected =
            read.is_tried || !read.is_attribute && (looks || expected.contains(read.key));
        let severity = if is_expected { CheckSeverity::Warning } else { CheckSeverity::Error };
        report.add(severity, read.offset, message, Some(hint));
    }
}

/// The value, or the alternative of it, that does not have a key or an attribute, if it is certain that
/// none has.
fn lacking(value: &Literal, read: &KeyRead<'_>) -> Option<Literal> {
    if let Some(all) = value.kind.alternatives() {
        let is_absent =
            |one: &&Literal| matches!(one.kind, LiteralKind::Null | LiteralKind::Undefined);
        let mut found = None;
        for one in all.iter().filter(|one| !is_absent(one)) {
            found = Some(lacking(one, read)?);
        }
        return found;
    }
    value.origin.as_ref()?;
    let has = |parts: &[&str]| read.is_attribute && parts.contains(&read.key);
    let is_known = match &value.kind {
        LiteralKind::Object { entries, .. } => {
            if read.is_attribute {
                DICT_PARTS.contains(&read.key) && !read.is_data
            } else {
                entries.iter().any(|entry| entry.key == read.key)
            }
        }
        LiteralKind::Array { .. } | LiteralKind::ListOf(_) => has(LIST_PARTS),
        LiteralKind::Text(_) => has(TEXT_PARTS),
        LiteralKind::Number(_) | LiteralKind::SomeNumber | LiteralKind::Boolean(_) => {
            has(NUMBER_PARTS)
        }
        _ => true,
    };
    (!is_known).then(|| value.clone())
}
