//! Values as they are written in a script, of either language.

use std::collections::HashSet;

/// A value, as far as the script's text says what it is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Literal {
    /// Where it is written, in bytes.
    pub(super) offset: usize,
    pub(super) kind: LiteralKind,
}

/// What is known of a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum LiteralKind {
    /// Only a run would say.
    Unknown,
    /// It will not be there: JavaScript's `undefined`.
    Undefined,
    Null,
    /// `None` where it is one or the other.
    Boolean(Option<bool>),
    Number(f64),
    /// `None` where the text is put together in the run.
    Text(Option<String>),
    Array {
        items: Vec<Literal>,
        /// Whether these are all the items, and each is where it will be.
        complete: bool,
    },
    Object {
        entries: Vec<LiteralEntry>,
        /// Whether these are all the entries.
        complete: bool,
    },
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LiteralEntry {
    pub(super) key: String,
    /// Where the key is written, in bytes.
    pub(super) offset: usize,
    pub(super) value: Literal,
}

/// Literals are followed no deeper than this; what is below is unknown.
pub(super) const MAX_DEPTH: usize = 32;

impl Literal {
    pub(super) fn unknown(offset: usize) -> Self {
        Self { offset, kind: LiteralKind::Unknown }
    }
}

/// The entries of an object literal, as they are read from left to right.
#[derive(Default)]
pub(super) struct LiteralEntries {
    entries: Vec<LiteralEntry>,
    /// How many of the entries may be overwritten by keys that are not known; `None` where all
    /// keys are known.
    overwritten: Option<usize>,
}

impl LiteralEntries {
    /// A key that is written out. It takes the place of the same key before it.
    pub(super) fn push(&mut self, entry: LiteralEntry) {
        self.entries.push(entry);
    }

    /// Keys that only a run would know. They may overwrite what stands before them.
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
