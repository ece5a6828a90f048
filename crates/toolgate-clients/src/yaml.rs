//! Changes entries of a YAML text by its lines. What is not written in lines, such as `{ a: 1 }`, is not edited.

use std::fmt::Write as _;

use saphyr_parser::{Event, Parser};
use serde_json::{Map, Value};

use crate::edit::{Edit, EditError};

/// A block mapping: its keys with their lines and columns, and the last line of each value.
#[derive(Debug, Default)]
struct Block {
    entries: Vec<Entry>,
    is_block: bool,
}

#[derive(Debug)]
struct Entry {
    key: String,
    /// From 0.
    line: usize,
    column: usize,
    last_line: usize,
    value: Part,
}

#[derive(Debug)]
enum Part {
    Block(Block),
    /// A scalar or a list, with the lines and columns (in characters) where it begins and ends.
    Other {
        start: (usize, usize),
        end: (usize, usize),
    },
}

/// A key, its line and its column.
type Key = (String, usize, usize);

/// The text with one change.
pub(crate) fn edit(text: &str, edit: &Edit) -> Result<String, EditError> {
    let [container] = edit.container() else { return Err(EditError::Unsupported) };
    let root = read(text)?;
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    if let Some(last) = lines.last_mut().filter(|last| !last.ends_with('\n')) {
        last.push_str(end);
    }
    let found = root.entries.iter().find(|entry| entry.key == *container);
    let block = match found.map(|entry| &entry.value) {
        Some(Part::Block(block)) if block.is_block && !block.entries.is_empty() => Some(block),
        Some(Part::Other { start, end }) if start == end => None,
        Some(_) => return Err(EditError::Unsupported),
        None => None,
    };
    let old = block.and_then(|block| block.entries.iter().find(|entry| entry.key == edit.name()));
    match edit {
        Edit::Set { name, entry, .. } => {
            let column =
                block.and_then(|block| block.entries.first()).map_or(2, |first| first.column);
            let new = written(name, entry, column, end);
            match (old, block, found) {
                (Some(old), ..) => drop(lines.splice(old.line..=old.last_line, [new])),
                (None, Some(block), _) => {
                    let at = block
                        .entries
                        .iter()
                        .map(|entry| entry.last_line + 1)
                        .max()
                        .unwrap_or_default();
                    lines.insert(at.min(lines.len()), new);
                }
                (None, None, Some(empty)) => lines.insert(empty.line + 1, new),
                (None, None, None) => lines.push(format!("{container}:{end}{new}")),
            }
        }
        Edit::Switch { key, value, .. } => {
            let Some(old) = old else { return Ok(text.to_owned()) };
            let Part::Block(fields) = &old.value else { return Err(EditError::Unsupported) };
            match fields.entries.iter().find(|field| field.key == *key).map(|field| &field.value) {
                Some(Part::Other { start, end }) if start.0 == end.0 && start.1 < end.1 => {
                    let line = &mut lines[start.0];
                    let letters: Vec<char> = line.chars().collect();
                    let (before, after) = (&letters[..start.1], &letters[end.1..]);
                    *line = before
                        .iter()
                        .chain(value.to_string().chars().collect::<Vec<_>>().iter())
                        .chain(after)
                        .collect();
                }
                Some(_) => return Err(EditError::Unsupported),
                None => {
                    let first = fields
                        .entries
                        .first()
                        .filter(|_| fields.is_block)
                        .ok_or(EditError::Unsupported)?;
                    lines.insert(
                        first.line,
                        format!("{}{key}: {value}{end}", " ".repeat(first.column)),
                    );
                }
            }
        }
        // No client with such a file has one.
        Edit::List { .. } => return Err(EditError::Unsupported),
        Edit::Remove { .. } => {
            let Some(old) = old else { return Ok(text.to_owned()) };
            if block.is_some_and(|block| block.entries.len() == 1) {
                // An empty value would be null, and not an empty object.
                return Err(EditError::Unsupported);
            }
            lines.drain(old.line..=old.last_line);
        }
    }
    Ok(lines.concat())
}

/// Reads the mappings of the first document.
fn read(text: &str) -> Result<Block, EditError> {
    let letters: Vec<char> = text.chars().collect();
    let lines: Vec<&str> = text.lines().collect();
    let mut root = None;
    // The open mappings with their keys, and how many lists are open within each.
    let mut open: Vec<(Block, Option<Key>, usize)> = Vec::new();
    // Where each open list begins, and its last line so far.
    let mut lists_begin: Vec<((usize, usize), usize)> = Vec::new();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| EditError::Syntax(error.info().to_owned()))?;
        let at = |marker: saphyr_parser::Marker| (marker.line() - 1, marker.col());
        let (start, mut end) = (at(span.start), at(span.end));
        // A text of several lines ends where the next thing begins.
        let is_blank = |line: &str| line.chars().take(end.1).all(char::is_whitespace);
        if end.0 > start.0 && lines.get(end.0).is_none_or(|line| is_blank(line)) {
            end = (end.0 - 1, usize::MAX);
        }
        let part = match event {
            Event::MappingStart(..) => {
                let is_block = letters.get(span.start.index()) != Some(&'{');
                open.push((Block { entries: Vec::new(), is_block }, None, 0));
                continue;
            }
            Event::SequenceStart(..) => {
                if let Some((.., lists)) = open.last_mut() {
                    *lists += 1;
                    lists_begin.push((start, start.0));
                }
                continue;
            }
            Event::SequenceEnd => match open.last_mut() {
                Some((.., lists)) => {
                    *lists -= 1;
                    let (begin, last) = lists_begin.pop().unwrap_or((start, start.0));
                    // The end of a list in lines is where the next thing begins: its items say where it ends.
                    let is_flow = letters.get(span.end.index().saturating_sub(1)) == Some(&']');
                    let end = if is_flow { end } else { (last, usize::MAX) };
                    Part::Other { start: begin, end }
                }
                None => continue,
            },
            Event::MappingEnd => match open.pop() {
                Some((block, ..)) => {
                    if open.is_empty() {
                        root = Some(block);
                        continue;
                    }
                    Part::Block(block)
                }
                None => continue,
            },
            Event::Scalar(text, ..) => {
                if let Some((_, key @ None, 0)) = open.last_mut() {
                    *key = Some((text.into_owned(), start.0, start.1));
                    continue;
                }
                Part::Other { start, end }
            }
            Event::Alias(_) => Part::Other { start, end },
            Event::DocumentEnd => break,
            _ => continue,
        };
        let Some((block, key, lists)) = open.last_mut() else { continue };
        let last = match &part {
            Part::Block(inner) => {
                let lines = inner.entries.iter().map(|entry| entry.last_line);
                if inner.is_block { lines.max().unwrap_or(start.0) } else { end.0 }
            }
            Part::Other { end, .. } => end.0,
        };
        if *lists > 0 {
            // Within a list only the last line matters.
            if let Some((_, last_line)) = lists_begin.last_mut() {
                *last_line = last.max(*last_line);
            }
            continue;
        }
        if let Some((key, line, column)) = key.take() {
            let last_line = last.max(line);
            block.entries.push(Entry { key, line, column, last_line, value: part });
        }
    }
    Ok(root.unwrap_or_default())
}

/// An entry in lines.
fn written(name: &str, entry: &Map<String, Value>, column: usize, end: &str) -> String {
    let mut text = format!("{}{}:{end}", " ".repeat(column), scalar(&Value::from(name)));
    write_fields(&mut text, entry, column + 2, end);
    text
}

fn write_fields(text: &mut String, fields: &Map<String, Value>, column: usize, end: &str) {
    let indent = " ".repeat(column);
    for (key, value) in fields {
        let key = scalar(&Value::from(key.as_str()));
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                let _ = write!(text, "{indent}{key}:{end}");
                write_fields(text, inner, column + 2, end);
            }
            Value::Array(items) if !items.is_empty() => {
                let _ = write!(text, "{indent}{key}:{end}");
                for item in items {
                    let _ = write!(text, "{indent}  - {}{end}", scalar(item));
                }
            }
            value => drop(write!(text, "{indent}{key}: {}{end}", scalar(value))),
        }
    }
}

/// A value on one line. JSON is YAML; a word needs no quotes.
fn scalar(value: &Value) -> String {
    const WORDS: [&str; 6] = ["true", "false", "null", "yes", "no", "on"];
    match value {
        Value::String(text)
            if text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/')
                && text.chars().all(|it| it.is_ascii_alphanumeric() || "_-/.".contains(it))
                && !WORDS.contains(&text.to_ascii_lowercase().as_str())
                && !text.eq_ignore_ascii_case("off") =>
        {
            text.clone()
        }
        value => value.to_string(),
    }
}
