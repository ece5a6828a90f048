//! Literal values in a script of either language.

use std::{collections::HashSet, rc::Rc};

use super::{
    Language,
    declared::one_of,
    wording::{cut, nearest, quoted_list},
};

/// The number of names that a hint lists.
const SHOWN_NAMES: usize = 12;

/// A value, as far as the source determines it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Literal {
    /// The byte offset of the value; [`NOWHERE`] if the source does not contain it.
    pub(super) offset: usize,
    pub(super) kind: LiteralKind,
    /// The result of a tool that it is, or that it is a part of.
    pub(super) origin: Option<Rc<Origin>>,
}

/// The offset of a value that is not in the source, such as a part of a result.
pub(super) const NOWHERE: usize = usize::MAX;

/// A part of the result of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) tool: Rc<str>,
    /// The names from the result to the part, such as `.items[]`; empty for the result itself.
    pub(super) path: String,
}

impl Origin {
    /// The part in words.
    pub(super) fn subject(&self) -> String {
        let tool = cut(&self.tool);
        match self.path.trim_start_matches('.') {
            "" => format!("the result of `{tool}`"),
            "[]" => format!("an item of the result of `{tool}`"),
            "{}" => format!("a key of the result of `{tool}`"),
            path => match path.strip_suffix("{}") {
                Some(path) => format!("a key of `{}` in the result of `{tool}`", cut(path)),
                None => format!("`{}` in the result of `{tool}`", cut(path)),
            },
        }
    }
}

impl Literal {
    /// What the value has instead of `name`.
    pub(super) fn contents(&self, name: &str, language: Language) -> String {
        match &self.kind {
            LiteralKind::Object { entries, .. } => {
                let names: Vec<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
                if let Some(meant) = nearest(name, names.iter().copied()) {
                    return format!("did you mean `{}`?", cut(meant));
                }
                let more = if names.len() > SHOWN_NAMES { " …" } else { "" };
                let shown = &names[..names.len().min(SHOWN_NAMES)];
                format!("it has {}{more}", quoted_list(shown, "and"))
            }
            LiteralKind::Array { .. } | LiteralKind::ListOf(_) => "it is a list".to_owned(),
            LiteralKind::Text(_) => "it is a text".to_owned(),
            LiteralKind::Number(_) | LiteralKind::SomeNumber => "it is a number".to_owned(),
            _ => match language {
                Language::TypeScript => "it is `true` or `false`".to_owned(),
                Language::Python => "it is `True` or `False`".to_owned(),
            },
        }
    }
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
    /// A number that is known only at run time.
    SomeNumber,
    /// `None` if the text is composed at run time.
    Text(Option<String>),
    Array {
        items: Rc<[Literal]>,
        /// Whether these are all items, at their final positions.
        complete: bool,
    },
    /// An array of any length, with values of one kind.
    ListOf(Rc<Literal>),
    Object {
        entries: Rc<[LiteralEntry]>,
        /// Whether these are all the entries.
        complete: bool,
    },
    /// Each of these: the script contains all of them, as in `x ? a : b`.
    Each(Rc<[Literal]>),
    /// One of these, and the script may know which: a type such as `string | null`.
    OneOf(Rc<[Literal]>),
    /// A promise of a value.
    Promise(Rc<Literal>),
}

impl LiteralKind {
    pub(super) fn array(items: Vec<Literal>, complete: bool) -> Self {
        Self::Array { items: items.into(), complete }
    }

    pub(super) fn object(entries: Vec<LiteralEntry>, complete: bool) -> Self {
        Self::Object { entries: entries.into(), complete }
    }

    /// The values that this may be one of; itself, if it is no choice.
    pub(super) fn alternatives(&self) -> Option<&[Literal]> {
        match self {
            Self::Each(all) | Self::OneOf(all) => Some(all),
            _ => None,
        }
    }

    /// Whether the value may be absent.
    pub(super) fn may_be_undefined(&self) -> bool {
        match self.alternatives() {
            Some(all) => all.iter().any(|one| one.kind.may_be_undefined()),
            None => *self == Self::Undefined,
        }
    }

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

/// The number of values that a value may be one of. With more of them it is unknown.
pub(super) const MAX_ALTERNATIVES: usize = 100;
/// The depth to which literals are read. Deeper values are unknown.
pub(super) const MAX_DEPTH: usize = 32;

impl Literal {
    pub(super) fn new(offset: usize, kind: LiteralKind) -> Self {
        Self { offset, kind, origin: None }
    }

    pub(super) fn unknown(offset: usize) -> Self {
        Self::new(offset, LiteralKind::Unknown)
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

    /// Adds entries of an object that may not be added at run time.
    pub(super) fn push_possible(&mut self, entries: &[LiteralEntry], complete: bool) {
        if !complete {
            self.push_unknown();
        }
        for entry in entries {
            let is_given = self.entries.iter().any(|known| known.key == entry.key);
            let mut entry = entry.clone();
            let undefined = Literal::new(NOWHERE, LiteralKind::Undefined);
            // The earlier value may stay.
            entry.value.kind = if is_given {
                LiteralKind::Unknown
            } else {
                LiteralKind::OneOf(Rc::new([undefined, entry.value.clone()]))
            };
            self.entries.push(entry);
        }
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
        LiteralKind::object(self.entries, complete)
    }
}

/// The value that a promise has.
pub(super) fn awaited(value: Literal) -> Literal {
    match &value.kind {
        LiteralKind::Promise(inner) => (**inner).clone(),
        LiteralKind::Each(all) => each(all.iter().cloned().map(awaited).collect()),
        LiteralKind::OneOf(all) => one_of(all.iter().cloned().map(awaited).collect()),
        _ => value,
    }
}

/// Each of several values that the script contains.
pub(super) fn each(all: Vec<Literal>) -> Literal {
    let mut flat: Vec<Literal> = Vec::with_capacity(all.len());
    for one in all {
        match &one.kind {
            LiteralKind::Each(inner) => flat.extend(inner.iter().cloned()),
            _ => flat.push(one),
        }
    }
    if flat.len() > MAX_ALTERNATIVES || flat.iter().all(|one| one.kind == LiteralKind::Unknown) {
        return Literal::unknown(NOWHERE);
    }
    if flat.len() == 1 {
        return flat.swap_remove(0);
    }
    Literal::new(NOWHERE, LiteralKind::Each(flat.into()))
}

/// One of several values, if the script may choose which.
pub(super) fn some_of(value: Literal) -> Literal {
    match value.kind {
        LiteralKind::Each(all) => one_of(all.to_vec()),
        _ => value,
    }
}
