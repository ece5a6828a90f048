//! The strings and numbers of a value.

use serde_json::Value;

use crate::winnow::PIECE;

/// A string or number of a value, and its JSON pointer.
pub(super) struct Leaf<'a> {
    pub(super) pointer: String,
    pub(super) text: std::borrow::Cow<'a, str>,
}

/// The deepest level that is looked at.
const DEEPEST: usize = 64;

/// Calls `seen` with every string, number and long key of a value. Returns false if a limit was reached.
pub(super) fn leaves(value: &Value, bytes: usize, seen: &mut impl FnMut(Leaf<'_>)) -> bool {
    let mut budget = bytes;
    walk(value, &mut String::new(), DEEPEST, &mut budget, seen)
}

fn walk(
    value: &Value,
    pointer: &mut String,
    depth: usize,
    budget: &mut usize,
    seen: &mut impl FnMut(Leaf<'_>),
) -> bool {
    if depth == 0 || *budget == 0 {
        return false;
    }
    match value {
        Value::Null | Value::Bool(_) => true,
        Value::Number(number) => {
            let text = number.to_string();
            *budget = budget.saturating_sub(text.len());
            seen(Leaf { pointer: pointer.clone(), text: text.into() });
            true
        }
        Value::String(text) => {
            let looked = cut(text, *budget);
            *budget -= looked.len();
            // JSON in a string is searched as JSON: the text of a result often is JSON.
            let inner = looked
                .trim_start()
                .starts_with(['{', '['])
                .then(|| serde_json::from_str(looked).ok());
            if let Some(inner) = inner.flatten() {
                return walk(&inner, pointer, depth - 1, &mut looked.len().max(1), seen);
            }
            seen(Leaf { pointer: pointer.clone(), text: looked.into() });
            looked.len() == text.len()
        }
        Value::Array(items) => {
            let mut complete = true;
            for (index, item) in items.iter().enumerate() {
                let length = pointer.len();
                pointer.push('/');
                pointer.push_str(&index.to_string());
                complete &= walk(item, pointer, depth - 1, budget, seen);
                pointer.truncate(length);
            }
            complete
        }
        Value::Object(fields) => {
            let mut complete = true;
            for (key, item) in fields {
                let length = pointer.len();
                pointer.push('/');
                let escaped = key.replace('~', "~0").replace('/', "~1");
                pointer.push_str(cut(&escaped, LONGEST_KEY));
                // A key can carry data too.
                if key.len() >= PIECE {
                    *budget = budget.saturating_sub(key.len());
                    seen(Leaf { pointer: pointer.clone(), text: cut(key, *budget).into() });
                }
                complete &= walk(item, pointer, depth - 1, budget, seen);
                pointer.truncate(length);
            }
            complete
        }
    }
}

/// Calls `seen` with every list of small strings and numbers, as one text: data may be sent letter
/// by letter.
pub(super) fn joined_lists(value: &Value, bytes: usize, seen: &mut impl FnMut(Leaf<'_>)) {
    join(value, &mut String::new(), DEEPEST, &mut bytes.clone(), seen);
}

fn join(
    value: &Value,
    pointer: &mut String,
    depth: usize,
    budget: &mut usize,
    seen: &mut impl FnMut(Leaf<'_>),
) {
    let length = pointer.len();
    match value {
        _ if depth == 0 || *budget == 0 => {}
        Value::Array(items) => {
            let is_small = |item: &Value| match item {
                Value::String(text) => text.len() < PIECE,
                Value::Number(_) => true,
                _ => false,
            };
            if items.len() > 1 && items.iter().all(is_small) {
                let mut text = String::new();
                for item in items {
                    match item {
                        Value::String(part) => text.push_str(part),
                        number => {
                            text.push_str(&number.to_string());
                            text.push(' ');
                        }
                    }
                }
                let looked = cut(&text, *budget);
                *budget -= looked.len();
                seen(Leaf { pointer: pointer.clone(), text: looked.into() });
                return;
            }
            for (index, item) in items.iter().enumerate() {
                pointer.push('/');
                pointer.push_str(&index.to_string());
                join(item, pointer, depth - 1, budget, seen);
                pointer.truncate(length);
            }
        }
        Value::Object(fields) => {
            for (key, item) in fields {
                pointer.push('/');
                let escaped = key.replace('~', "~0").replace('/', "~1");
                pointer.push_str(cut(&escaped, LONGEST_KEY));
                join(item, pointer, depth - 1, budget, seen);
                pointer.truncate(length);
            }
        }
        _ => {}
    }
}

const LONGEST_KEY: usize = 64;

/// The start of a text, cut at a character.
pub(super) fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}
