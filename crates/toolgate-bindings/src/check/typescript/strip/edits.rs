//! Changes to a text that leave its lines where they are.

use oxc_span::Span;

/// Changes to one text, to be made all at once.
pub(super) struct Edits<'t> {
    text: &'t str,
    edits: Vec<Edit>,
}

struct Edit {
    start: usize,
    end: usize,
    change: EditKind,
}

enum EditKind {
    /// Spaces, with a text of the same number of characters in front.
    Blank(&'static str),
    /// Another text, and the line breaks that were there.
    Replace(String),
}

impl<'t> Edits<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, edits: Vec::new() }
    }

    /// The text between two places, as it was.
    pub(super) fn slice(&self, start: u32, end: u32) -> &'t str {
        self.text.get(start as usize..end as usize).unwrap_or_default()
    }

    /// Spaces instead of what was there. What follows stays in its column.
    pub(super) fn blank(&mut self, start: u32, end: u32) {
        self.push(start, end, EditKind::Blank(""));
    }

    /// As [`Self::blank`], for a whole statement: without it the lines before and after could
    /// become one statement.
    pub(super) fn blank_statement(&mut self, span: Span) {
        self.push(span.start, span.end, EditKind::Blank(";"));
    }

    /// One character instead of another.
    pub(super) fn put(&mut self, at: u32, character: &'static str) {
        self.push(at, at + 1, EditKind::Blank(character));
    }

    pub(super) fn replace(&mut self, start: u32, end: u32, text: String) {
        self.push(start, end, EditKind::Replace(text));
    }

    pub(super) fn insert(&mut self, at: u32, text: String) {
        self.replace(at, at, text);
    }

    /// The place of a character behind `from`, with nothing but spaces and comments before it.
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

    /// The text with all changes; `None` where there are none.
    pub(super) fn apply(mut self) -> Option<String> {
        if self.edits.is_empty() {
            return None;
        }
        // What was put in at a place comes before what is changed there.
        self.edits.sort_by_key(|edit| (edit.start, edit.end != edit.start));
        let mut out = String::with_capacity(self.text.len() + 64);
        let mut at = 0;
        for edit in &self.edits {
            // Within something that is gone already.
            if edit.start < at {
                continue;
            }
            out.push_str(&self.text[at..edit.start]);
            let gone = &self.text[edit.start..edit.end];
            match &edit.change {
                EditKind::Blank(first) => {
                    out.push_str(first);
                    let skipped = first.chars().count();
                    out.extend(gone.chars().skip(skipped).map(|c| match c {
                        '\n' | '\r' | '\u{2028}' | '\u{2029}' => c,
                        _ => ' ',
                    }));
                }
                EditKind::Replace(text) => {
                    out.push_str(text);
                    out.extend(gone.chars().filter(|c| *c == '\n'));
                }
            }
            at = edit.end;
        }
        out.push_str(&self.text[at..]);
        Some(out)
    }

    fn push(&mut self, start: u32, end: u32, change: EditKind) {
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
