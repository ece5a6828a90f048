//! Edits of a text that do not move its lines.

use oxc_span::Span;

use crate::check::positions::TextChange;

/// The edits of one text. They are applied together.
pub(super) struct Edits<'t> {
    text: &'t str,
    edits: Vec<Edit>,
}

struct Edit {
    start: usize,
    end: usize,
    change: Change,
}

enum Change {
    /// The range becomes spaces, except for its first characters, which become this text.
    Blank(&'static str),
    /// The range becomes this text and its own line breaks.
    Replace(String),
}

impl<'t> Edits<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, edits: Vec::new() }
    }

    /// The original text between two offsets.
    pub(super) fn slice(&self, start: u32, end: u32) -> &'t str {
        self.text.get(start as usize..end as usize).unwrap_or_default()
    }

    /// Replaces a range by spaces, so that later text stays in its column.
    pub(super) fn blank(&mut self, start: u32, end: u32) {
        self.push(start, end, Change::Blank(""));
    }

    /// Replaces a whole statement by a semicolon and spaces. Without the semicolon, the lines before
    /// and after could become one statement.
    pub(super) fn blank_statement(&mut self, span: Span) {
        self.push(span.start, span.end, Change::Blank(";"));
    }

    /// Replaces one character.
    pub(super) fn put(&mut self, at: u32, character: &'static str) {
        self.push(at, at + 1, Change::Blank(character));
    }

    pub(super) fn replace(&mut self, start: u32, end: u32, text: String) {
        self.push(start, end, Change::Replace(text));
    }

    pub(super) fn insert(&mut self, at: u32, text: String) {
        self.replace(at, at, text);
    }

    /// The offset of the next character after spaces and comments, if it is one of `wanted`.
    pub(super) fn find(&self, from: u32, wanted: &[char]) -> Option<u32> {
        let mut rest = self.text.get(from as usize..)?;
        loop {
            let trimmed = rest.trim_start();
            if let Some(comment) = trimmed.strip_prefix("//") {
                rest = &comment[comment.find('\n')?..];
            } else if let Some(comment) = trimmed.strip_prefix("/*") {
                rest = &comment[comment.find("*/")? + 2..];
            } else {
                let at = self.text.len() - trimmed.len();
                return trimmed.starts_with(wanted).then(|| u32::try_from(at).ok()).flatten();
            }
        }
    }

    /// The edited text, and what moves columns in it; `None` if there are no edits.
    pub(super) fn apply(mut self) -> Option<(String, Vec<TextChange>)> {
        if self.edits.is_empty() {
            return None;
        }
        // An insertion comes before another edit at the same offset.
        self.edits.sort_by_key(|edit| (edit.start, edit.end != edit.start));
        let mut out = String::with_capacity(self.text.len() + 64);
        let (mut at, mut changes) = (0, Vec::new());
        for edit in &self.edits {
            // The edit is inside of an edited range.
            if edit.start < at {
                continue;
            }
            out.push_str(&self.text[at..edit.start]);
            let removed = &self.text[edit.start..edit.end];
            match &edit.change {
                Change::Blank(first) => {
                    out.push_str(first);
                    let skipped = first.chars().count();
                    out.extend(removed.chars().skip(skipped).map(|c| match c {
                        '\n' | '\r' | '\u{2028}' | '\u{2029}' => c,
                        _ => ' ',
                    }));
                }
                Change::Replace(text) => {
                    let start = out.len();
                    out.push_str(text);
                    out.extend(removed.chars().filter(|c| *c == '\n'));
                    if text.len() != removed.len() || removed.contains('\n') {
                        let (new, old) = (start..out.len(), edit.start..edit.end);
                        changes.push(TextChange { new, old, has_meaning: true });
                    }
                }
            }
            at = edit.end;
        }
        out.push_str(&self.text[at..]);
        Some((out, changes))
    }

    fn push(&mut self, start: u32, end: u32, change: Change) {
        let (start, end) = (start as usize, end as usize);
        let is_valid = start <= end
            && end <= self.text.len()
            && self.text.is_char_boundary(start)
            && self.text.is_char_boundary(end);
        if is_valid {
            self.edits.push(Edit { start, end, change });
        }
    }
}
