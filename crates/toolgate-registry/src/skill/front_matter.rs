//! The head of a `SKILL.md`: the part of YAML that people write there, read strictly.
//!
//! Understood are, at the left edge, `key: text` (plain, or in single or double quotes), `key: [a, b]`,
//! a list of `- item` lines, and the blocks of `|` and `>`. What is nested deeper belongs to keys that
//! mean nothing here; where it does not, its key is remembered as not understood.

use std::collections::BTreeMap;

/// The keys and their values.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FrontMatter {
    values: BTreeMap<String, Scalar>,
    /// Keys whose values are written in another way.
    pub(super) not_understood: Vec<String>,
}

/// A value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Text(String),
    List(Vec<String>),
}

/// How many lines a head may have.
const MAX_LINES: usize = 400;

impl FrontMatter {
    /// Splits a text into its head and the rest.
    pub(super) fn split(text: &str) -> Result<(Self, &str), String> {
        let text = text.trim_start_matches('\u{feff}');
        let rest = text.strip_prefix("---").filter(|rest| rest.starts_with(['\n', '\r']));
        let Some(rest) = rest else { return Err("it does not begin with `---`".to_owned()) };
        let mut end = None;
        let mut place = 0;
        for line in rest.split_inclusive('\n').take(MAX_LINES) {
            if place > 0 && line.trim_end() == "---" {
                end = Some((place, place + line.len()));
                break;
            }
            place += line.len();
        }
        let Some((end, body)) = end else {
            return Err("its front matter has no end (`---`)".to_owned());
        };
        let lines: Vec<&str> = rest[..end].lines().collect();
        Ok((Self::read(&lines), &rest[body..]))
    }

    pub(super) fn get(&self, key: &str) -> Option<&Scalar> {
        self.values.get(key)
    }

    fn read(lines: &[&str]) -> Self {
        let mut read = Self::default();
        let mut rest = lines;
        while let Some((line, after)) = rest.split_first() {
            rest = after;
            let is_key = !line.starts_with([' ', '\t', '-', '#']) && !line.trim().is_empty();
            let Some((key, value)) = line.split_once(':').filter(|_| is_key) else { continue };
            // What belongs to the key: deeper lines, and items at the left edge.
            let belongs = |line: &&&str| {
                line.trim().is_empty() || line.starts_with([' ', '\t']) || is_item(line)
            };
            let count = rest.iter().take_while(belongs).count();
            let (own, next) = rest.split_at(count);
            rest = next;
            match value_of(value, own) {
                Some(value) => {
                    read.values.insert(key.trim().to_owned(), value);
                }
                None => read.not_understood.push(key.trim().to_owned()),
            }
        }
        read
    }
}

fn value_of(written: &str, own: &[&str]) -> Option<Scalar> {
    let written = without_comment(written).trim();
    let nothing_below = own.iter().all(|line| line.trim().is_empty());
    match written.chars().next() {
        Some('|') => block(written, own, "\n").map(Scalar::Text),
        Some('>') => block(written, own, " ").map(Scalar::Text),
        Some('[') if nothing_below => {
            let inner = written.strip_prefix('[')?.strip_suffix(']')?;
            if inner.trim().is_empty() {
                return Some(Scalar::List(Vec::new()));
            }
            inner.split(',').map(scalar).collect::<Option<_>>().map(Scalar::List)
        }
        // Anchors, references, tags, maps: nobody needs them here.
        Some('&' | '*' | '!' | '{' | '[' | '%' | '@' | '`') => None,
        Some('"' | '\'') if !nothing_below => None,
        Some(_) => {
            // A plain text may go on in deeper lines.
            let mut text = scalar(written)?;
            for line in own.iter().map(|line| line.trim()).filter(|line| !line.is_empty()) {
                if line.starts_with("- ") || line.contains(": ") {
                    return None;
                }
                text.push(' ');
                text.push_str(line);
            }
            Some(Scalar::Text(text))
        }
        None if nothing_below => Some(Scalar::Text(String::new())),
        None => {
            let lines = own.iter().filter(|line| !line.trim().is_empty());
            let items = lines.map(|line| line.trim_start().strip_prefix("- ").and_then(scalar));
            items.collect::<Option<_>>().map(Scalar::List)
        }
    }
}

fn is_item(line: &str) -> bool {
    line.starts_with("- ")
}

/// A text in quotes, or one that needs none.
fn scalar(text: &str) -> Option<String> {
    let text = without_comment(text).trim();
    for quote in ['"', '\''] {
        if let Some(rest) = text.strip_prefix(quote) {
            let inner = rest.strip_suffix(quote)?;
            return match quote {
                '\'' => Some(inner.replace("''", "'")),
                // The escapes are those of JSON, and few more.
                _ => serde_json::from_str(text).ok(),
            };
        }
    }
    let is_plain = !text.is_empty() && !text.starts_with(['{', '[', '&', '*', '!', '|', '>']);
    (is_plain && !text.ends_with(':')).then(|| text.to_owned())
}

fn block(written: &str, own: &[&str], joined_by: &str) -> Option<String> {
    if !matches!(written, "|" | ">" | "|-" | ">-" | "|+" | ">+") {
        return None;
    }
    let depth = own.iter().find(|line| !line.trim().is_empty())?;
    let depth = depth.len() - depth.trim_start().len();
    let lines: Vec<&str> =
        own.iter().map(|line| line.get(depth..).unwrap_or_default().trim_end()).collect();
    Some(lines.join(joined_by).trim_end().to_owned())
}

/// What stands before a ` #`, which begins a comment unless it is in quotes.
fn without_comment(text: &str) -> &str {
    if text.trim_start().starts_with(['"', '\'']) {
        return text;
    }
    text.find(" #").map_or(text, |place| &text[..place])
}
