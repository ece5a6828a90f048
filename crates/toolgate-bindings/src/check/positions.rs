//! Which position of a script a position of its source stands for.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// A line and a column in characters, both from 1.
type Position = (u32, u32);

/// The positions of a source that differs from its script. Lines have the same numbers in both.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourcePositions {
    /// From the source to a text, from that to the next, and at last to the script.
    steps: Vec<Vec<PositionChange>>,
}

/// A part of a text that the text before it does not have in this form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PositionChange {
    start: Position,
    end: Position,
    /// What the part stands for; `None` if that is nothing of the script.
    meaning: Option<Position>,
    /// Where the end was before.
    after: Position,
}

/// A range of bytes of a new text, and the range of the text before it that it replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextChange {
    pub(super) new: Range<usize>,
    pub(super) old: Range<usize>,
    /// Whether it stands for what it replaces.
    pub(super) has_meaning: bool,
}

impl SourcePositions {
    /// Adds the changes that made `new` of `old`, in their order. The steps are added from the source to the script.
    pub(super) fn add(&mut self, new: &str, old: &str, changes: &[TextChange]) {
        if changes.is_empty() {
            return;
        }
        let (mut new, mut old) = (Cursor::at_start(new), Cursor::at_start(old));
        let change = |change: &TextChange| {
            let begins = old.position(change.old.start);
            PositionChange {
                start: new.position(change.new.start),
                end: new.position(change.new.end),
                meaning: change.has_meaning.then_some(begins),
                after: old.position(change.old.end),
            }
        };
        self.steps.push(changes.iter().map(change).collect());
    }

    /// The position in the script; `None` if the script does not have what is there.
    pub fn original(&self, line: u32, column: u32) -> Option<Position> {
        self.steps.iter().try_fold((line, column), |at, changes| {
            let next = changes.partition_point(|change| change.start <= at);
            match next.checked_sub(1).and_then(|last| changes.get(last)) {
                Some(change) if at < change.end => change.meaning,
                Some(PositionChange { end, after, .. }) if at.0 == end.0 => {
                    Some((after.0, after.1.saturating_add(at.1 - end.1)))
                }
                _ => Some(at),
            }
        })
    }
}

/// Finds the positions of offsets that grow.
struct Cursor<'t> {
    text: &'t str,
    offset: usize,
    at: Position,
}

impl<'t> Cursor<'t> {
    fn at_start(text: &'t str) -> Self {
        Self { text, offset: 0, at: (1, 1) }
    }

    fn position(&mut self, offset: usize) -> Position {
        for character in self.text.get(self.offset..offset).unwrap_or_default().chars() {
            self.at = match character {
                '\n' => (self.at.0.saturating_add(1), 1),
                _ => (self.at.0, self.at.1.saturating_add(1)),
            };
        }
        self.offset = offset;
        self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_found_around_changes() {
        let (old, new) = ("ä(x: {\n a })+y;\nz", "ä<longer>\n+y;\nz");
        let changes = [TextChange {
            new: new.find('<').unwrap()..new.find('+').unwrap(),
            old: old.find('(').unwrap()..old.find('+').unwrap(),
            has_meaning: true,
        }];
        let mut positions = SourcePositions::default();
        positions.add(new, old, &changes);
        for (new, old) in [
            ((1, 1), (1, 1)),
            ((1, 2), (1, 2)),
            ((1, 7), (1, 2)),
            ((2, 2), (2, 7)),
            ((3, 1), (3, 1)),
        ] {
            assert_eq!(positions.original(new.0, new.1), Some(old), "{new:?}");
        }
        // A call was put around it.
        let first = "f(ä(x: {\n a })+y;\nz)";
        let end = first.len() - 1;
        let inserted = |new: Range<usize>, old| TextChange { new, old, has_meaning: false };
        let changes = [inserted(0..2, 0..0), inserted(end..end + 1, old.len()..old.len())];
        positions.add(first, old, &changes);
        assert_eq!(positions.original(1, 1), None);
        assert_eq!(positions.original(2, 2), Some((2, 7)));
        assert_eq!(positions.original(3, 2), None);
    }
}
