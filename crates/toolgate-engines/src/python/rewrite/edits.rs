//! Edits of a text, and the mapping from positions in the edited text to the original.

use ruff_text_size::{Ranged, TextRange, TextSize};

use crate::engine::ScriptPosition;

/// The edits that are collected while a tree is walked.
#[derive(Debug, Default)]
pub(super) struct Edits(Vec<Edit>);

#[derive(Debug)]
struct Edit {
    range: TextRange,
    text: String,
}

/// An edited text with the origin of its parts.
#[derive(Debug)]
pub(in crate::python) struct Changed {
    /// The text.
    pub(in crate::python) text: String,
    original_lines: Vec<usize>,
    original: String,
    lines: Vec<usize>,
    /// The starts of the unchanged parts: in the edited text, and in the original.
    stretches: Vec<(usize, usize)>,
    /// The edits that made the original from the text of the author, if there were any.
    pub(super) before: Option<Box<Self>>,
}

impl Edits {
    /// Inserts a text at `at`. Of two texts at one offset, the outer one is inserted first.
    pub(super) fn insert(&mut self, at: TextSize, text: impl Into<String>) {
        self.replace(TextRange::empty(at), text);
    }

    /// Replaces a range by a text.
    pub(super) fn replace(&mut self, range: TextRange, text: impl Into<String>) {
        self.0.push(Edit { range, text: text.into() });
    }

    /// Inserts a text before an expression. The caller walks the expression and then calls
    /// [`Self::close`].
    pub(super) fn open(&mut self, node: &impl Ranged, text: impl Into<String>) {
        self.insert(node.start(), text);
    }

    /// Inserts a text after an expression.
    pub(super) fn close(&mut self, node: &impl Ranged, text: impl Into<String>) {
        self.insert(node.end(), text);
    }

    /// Applies all edits.
    pub(super) fn apply(mut self, original: &str) -> Changed {
        // Stable: insertions at one offset stay in the order in which they were made.
        self.0.sort_by_key(|edit| edit.range.start());
        let mut text = String::with_capacity(original.len() + 64);
        let mut stretches = vec![(0, 0)];
        let mut done = 0;
        for Edit { range, text: replacement } in self.0 {
            let (start, end) = (range.start().to_usize(), range.end().to_usize());
            if start < done {
                continue;
            }
            text.push_str(&original[done..start]);
            stretches.push((text.len(), start));
            text.push_str(&replacement);
            done = end;
            stretches.push((text.len(), done));
        }
        text.push_str(&original[done..]);
        Changed {
            original_lines: line_starts(original),
            original: original.to_owned(),
            lines: line_starts(&text),
            stretches,
            before: None,
            text,
        }
    }
}

impl Changed {
    /// The original position for a position in the edited text. Inserted text maps to the position
    /// of its insertion.
    pub(in crate::python) fn original(&self, position: ScriptPosition) -> ScriptPosition {
        let line = position.line.saturating_sub(1) as usize;
        let Some(start) = self.lines.get(line) else { return position };
        let column = position.column.saturating_sub(1) as usize;
        let offset = self.text[*start..]
            .char_indices()
            .nth(column)
            .map_or(self.text.len(), |(index, _)| start + index);
        let index = self.stretches.partition_point(|(changed, _)| *changed <= offset);
        let (changed, original) = self.stretches[index.saturating_sub(1)];
        let limit = self.stretches.get(index).map_or(self.original.len(), |(_, next)| *next);
        self.position((original + (offset - changed)).min(limit.max(original)))
    }

    /// The position of an offset in the original.
    pub(super) fn position(&self, offset: usize) -> ScriptPosition {
        let position = position(&self.original, &self.original_lines, offset);
        self.before.as_ref().map_or(position, |before| before.original(position))
    }
}

/// The position of an offset in a text.
pub(super) fn locate(text: &str, offset: TextSize) -> ScriptPosition {
    position(text, &line_starts(text), offset.to_usize())
}

fn position(text: &str, lines: &[usize], offset: usize) -> ScriptPosition {
    let line = lines.partition_point(|start| *start <= offset);
    let start = lines[line.saturating_sub(1)];
    let column = text.get(start..offset.min(text.len())).map_or(0, |part| part.chars().count());
    ScriptPosition {
        line: u32::try_from(line).unwrap_or(u32::MAX),
        column: u32::try_from(column + 1).unwrap_or(u32::MAX),
    }
}

fn line_starts(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(memchr_lines(text)).collect()
}

fn memchr_lines(text: &str) -> impl Iterator<Item = usize> {
    text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(index, _)| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_map_to_the_original_script() {
        let original = "a = 'é' % x\nb\nc + d\n";
        let mut edits = Edits::default();
        edits.insert(TextSize::new(4), "f(");
        edits.insert(TextSize::new(12), ")\nextra");
        edits.replace(TextRange::new(TextSize::new(15), TextSize::new(16)), "long\nname");
        let changed = edits.apply(original);
        assert_eq!(changed.text, "a = f('é' % x)\nextra\nb\nlong\nname + d\n");
        for ((line, column), expected) in [
            ((1, 1), (1, 1)),
            ((1, 5), (1, 5)),
            ((1, 7), (1, 5)),
            ((1, 13), (1, 11)),
            ((3, 1), (2, 1)),
            ((4, 1), (3, 1)),
            ((5, 6), (3, 3)),
            ((5, 8), (3, 5)),
            ((99, 1), (99, 1)),
        ] {
            let position = changed.original(ScriptPosition { line, column });
            assert_eq!((position.line, position.column), expected, "{line}:{column}");
        }
    }
}
