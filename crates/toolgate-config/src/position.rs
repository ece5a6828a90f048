//! Converts byte offsets to lines and columns.

use std::borrow::Cow;
use std::cell::Cell;

use crate::SourcePosition;

/// How many characters of a long line an excerpt shows on each side of its caret.
const EXCERPT_SIDE: usize = 50;

/// Where a text begins.
const START: SourcePosition = SourcePosition { line: 1, column: 1 };

/// A text and its name in messages.
#[derive(Debug)]
pub(crate) struct SourceText<'a> {
    text: &'a str,
    name: Cow<'a, str>,
    /// The last offset and its position. Most lookups are in order, so a file is walked once.
    last: Cell<(usize, SourcePosition)>,
}

impl<'a> SourceText<'a> {
    /// Takes a text without its byte order mark, which editors on Windows leave.
    pub(crate) fn new(text: &'a str, name: &'a str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Self { text, name: printable(name), last: Cell::new((0, START)) }
    }

    /// The text that offsets refer to.
    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// The name, fit to print.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The line and column of an offset; one past the end counts as the end.
    pub(crate) fn position(&self, offset: usize) -> SourcePosition {
        let offset = self.floor(offset);
        let (from, mut position) = self.last.get();
        let from = if from <= offset {
            from
        } else {
            position = START;
            0
        };
        let walked = &self.text[from..offset];
        if let Some(newline) = walked.rfind('\n') {
            position.line += walked.matches('\n').count();
            position.column = walked[newline + 1..].chars().count() + 1;
        } else {
            position.column += walked.chars().count();
        }
        self.last.set((offset, position));
        position
    }

    /// The line around an offset and a caret under it.
    pub(crate) fn excerpt(&self, offset: usize) -> String {
        let offset = self.floor(offset);
        let (before, after) = self.text.split_at(offset);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let left: Vec<char> = before[line_start..].chars().rev().take(EXCERPT_SIDE + 1).collect();
        let right: Vec<char> = after
            .chars()
            .take_while(|character| !matches!(character, '\n' | '\r'))
            .take(EXCERPT_SIDE + 1)
            .collect();

        let mut shown = String::new();
        let mut caret = left.len().min(EXCERPT_SIDE);
        if left.len() > EXCERPT_SIDE {
            shown.push('…');
            caret += 1;
        }
        let visible = left.iter().take(EXCERPT_SIDE).rev().chain(right.iter().take(EXCERPT_SIDE));
        // A control character, a tab above all, would move the text away from its caret.
        shown
            .extend(visible.map(|character| if character.is_control() { ' ' } else { *character }));
        if right.len() > EXCERPT_SIDE {
            shown.push('…');
        }
        let line = self.position(offset).line.to_string();
        let gutter = " ".repeat(line.len());
        format!("{gutter} |\n{line} | {shown}\n{gutter} | {}^", " ".repeat(caret))
    }

    /// The nearest character boundary at or before an offset.
    fn floor(&self, offset: usize) -> usize {
        self.text.floor_char_boundary(offset)
    }
}

/// A text of a file as it may appear in a message: short, and without characters that a terminal
/// would act on.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    const LONGEST: usize = 200;
    let harmless = |character: char| !character.is_control() && !is_invisible(character);
    if text.len() <= LONGEST && text.chars().all(harmless) {
        return Cow::Borrowed(text);
    }
    let mut shown: String = text
        .chars()
        .take(LONGEST)
        .map(|character| if harmless(character) { character } else { '\u{fffd}' })
        .collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    Cow::Owned(shown)
}

/// Characters that change the direction of a line or cannot be seen at all.
fn is_invisible(character: char) -> bool {
    matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, offset: usize) -> (usize, usize) {
        let SourcePosition { line, column } = SourceText::new(text, "test").position(offset);
        (line, column)
    }

    #[test]
    fn columns_count_characters() {
        let text = "é = 1\r\nßx = 2";
        assert_eq!(at(text, 0), (1, 1));
        assert_eq!(at(text, 2), (1, 2));
        assert_eq!(at(text, text.find('x').unwrap()), (2, 2));
    }

    #[test]
    fn offsets_within_and_beyond_are_safe() {
        assert_eq!(at("é", 1), (1, 1));
        assert_eq!(at("ab", 99), (1, 3));
        assert_eq!(at("", 0), (1, 1));
    }

    #[test]
    fn a_long_line_is_cut_around_the_caret() {
        let text = format!("{}!{}", "a".repeat(500), "b".repeat(500));
        let excerpt = SourceText::new(&text, "test").excerpt(500);
        let lines: Vec<&str> = excerpt.lines().collect();
        let column = |line: &str, mark: char| line.chars().position(|found| found == mark);
        assert_eq!(column(lines[1], '!'), column(lines[2], '^'));
        assert!(lines[1].chars().count() < 120);
    }

    #[test]
    fn control_characters_are_not_printed() {
        assert_eq!(printable("a\u{1b}[31m\u{202e}b"), "a\u{fffd}[31m\u{fffd}b");
        assert_eq!(printable(&"x".repeat(300)).chars().count(), 201);
    }
}
