//! Literal values in a script of either language.

use std::collections::HashSet;

/// A value, as far as the source determines it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Literal {
    /// The byte offset of the value.
    pub(super) offset: usize,
    pub(super) kind: LiteralKind,
}

/// What the source says about a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum LiteralKind {
    /// The value is known only at run time.
    Unknown,
    /// The value is absent: JavaScript's `undefined`.
    Undefined,
    Null,
    /// `None` if the value is known only at run time.
    Boolean(Option<bool>),
    Number(f64),
    /// `None` if the text is composed at run time.
    Text(Option<String>),
    Array {
        items: Vec<Literal>,
        /// Whether these are all items, at their final positions.
        complete: bool,
    },
    Object {
        entries: Vec<LiteralEntry>,
        /// Whether these are all the entries.
        complete: bool,
    },
}

impl LiteralKind {
    /// A number. JSON has no infinite numbers, so these are unknown.
    pub(super) fn number(value: f64) -> Self {
        if value.is_finite() { Self::Number(value) } else { Self::Unknown }
    }
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LiteralEntry {
    pub(super) key: String,
    /// The byte offset of the key.
    pub(super) offset: usize,
    pub(super) value: Literal,
}

/// The depth to which literals are read. Deeper values are unknown.
pub(super) const MAX_DEPTH: usize = 32;

impl Literal {
    pub(super) fn unknown(offset: usize) -> Self {
        Self { offset, kind: LiteralKind::Unknown }
    }
}

/// The entries of an object literal, read from left to right.
#[derive(Default)]
pub(super) struct LiteralEntries {
    entries: Vec<LiteralEntry>,
    /// The number of entries that unknown keys may overwrite; `None` if all keys are known.
    overwritten: Option<usize>,
}

impl LiteralEntries {
    /// Adds an entry. It replaces an earlier one with the same key.
    pub(super) fn push(&mut self, entry: LiteralEntry) {
        self.entries.push(entry);
    }

    /// Adds keys that are known only at run time. They may overwrite earlier entries.
    pub(super) fn push_unknown(&mut self) {
        self.overwritten = Some(self.entries.len());
    }

    pub(super) fn finish(mut self) -> LiteralKind {
        let complete = self.overwritten.is_none();
        for entry in self.entries.iter_mut().take(self.overwritten.unwrap_or_default()) {
            entry.value.kind = LiteralKind::Unknown;
        }
        let mut seen = HashSet::new();
        let last: Vec<bool> =
            self.entries.iter().rev().map(|entry| seen.insert(entry.key.clone())).collect();
        let mut last = last.into_iter().rev();
        self.entries.retain(|_| last.next().unwrap_or(true));
        LiteralKind::Object { entries: self.entries, complete }
    }
}
