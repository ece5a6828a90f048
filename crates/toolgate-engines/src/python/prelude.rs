//! The parts of the library that Monty lacks, in Python: modules, functions and methods without
//! I/O.
//!
//! A part is compiled only for a script that mentions it. The parts bind the built-in functions
//! that they use as default parameters, so that a script may name a variable `list`.

use std::{collections::HashSet, sync::LazyLock};

/// A part of the prelude.
#[derive(Debug)]
pub(super) struct Piece {
    /// The name of the module, or of the part.
    pub(super) name: &'static str,
    /// Which names of the module it provides.
    pub(super) extent: Extent,
    /// The source.
    pub(super) source: &'static str,
    /// The parts that it uses.
    pub(super) needs: &'static [&'static str],
}

/// The names of a module that a part of the prelude provides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// All names; Monty lacks the module.
    Whole,
    /// The names in the last `_tg_module(…)` of the source; Monty has the others.
    Part,
}

/// The built-in names that only the prelude provides: those that `builtins.py` binds.
static BUILTINS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let lines = include_str!("prelude/builtins.py").lines();
    lines
        .filter(|line| line.starts_with(|first: char| first.is_ascii_alphabetic()))
        .flat_map(|line| match line.strip_prefix("def ").and_then(|rest| rest.split_once('(')) {
            Some((name, _)) => vec![name],
            // `a = b = value`, or `a, b = values`.
            None => line.rsplit(" = ").skip(1).flat_map(|names| names.split(", ")).collect(),
        })
        .collect()
});

/// Whether only the prelude provides a built-in name.
pub(super) fn is_builtin(name: &str) -> bool {
    BUILTINS.contains(name)
}

impl Piece {
    /// The variable that contains the module.
    pub(super) fn variable(&self) -> String {
        format!("_tg_{}", self.name.replace('.', "_"))
    }

    /// Whether this part provides a name of its module.
    pub(super) fn provides(&self, name: &str) -> bool {
        let attributes = self.source.rsplit_once("_tg_module(").map_or("", |(_, rest)| rest);
        self.extent == Extent::Whole || attributes.contains(&format!("\"{name}\":"))
    }
}

/// A module of the prelude.
pub(super) fn module(name: &str) -> Option<&'static Piece> {
    PIECES.iter().find(|piece| piece.name == name)
}

/// The modules that can be imported, at least in part.
pub fn modules() -> Vec<&'static str> {
    let native = ["__future__", "base64", "binascii", "pathlib", "unicodedata"];
    native.into_iter().chain(PIECES.iter().map(|piece| piece.name)).collect()
}

/// The parts that most scripts need, except those that change built-in functions.
#[rustfmt::skip]
pub(super) const COMMON: &[&str] = &[
    "<await>", "<core>", "<iterating>", "<methods>", "<numbers>", "<percent>", "asyncio",
    "dataclasses", "functools", "itertools", "json", "math", "random", "re", "statistics", "sys",
    "time", "typing",
];

/// The named parts and their dependencies, in an order in which they can run.
pub(super) fn pieces<'a>(
    names: impl IntoIterator<Item = &'a &'static str>,
) -> impl Iterator<Item = &'static Piece> {
    let mut taken = [false; PIECES.len() + PARTS.len()];
    for name in names {
        take(name, &mut taken);
    }
    let all = PARTS.iter().chain(PIECES);
    all.zip(taken).filter(|(_, taken)| *taken).map(|(piece, _)| piece)
}

fn take(name: &str, taken: &mut [bool]) {
    let found = PARTS.iter().chain(PIECES).zip(taken.iter_mut()).find(|(p, _)| p.name == name);
    let Some((piece, mark)) = found else { return };
    if !std::mem::replace(mark, true) {
        for other in piece.needs {
            take(other, taken);
        }
    }
}

macro_rules! piece {
    ($name:literal, $extent:expr) => {
        piece!($name, $extent, $name)
    };
    ($name:literal, $extent:expr, $file:literal) => {
        Piece {
            name: $name,
            extent: $extent,
            source: include_str!(concat!("prelude/", $file, ".py")),
            needs: needs($name),
        }
    };
}

/// The parts that a part uses.
const fn needs(name: &str) -> &'static [&'static str] {
    match name.as_bytes() {
        b"<core>" | b"<iterating>" | b"<methods>" | b"<numbers>" | b"<percent>" | b"<records>" => {
            &["<module>"]
        }
        b"<builtins>" | b"<classes>" => &["<core>"],
        [b'<', ..] => &[],
        b"math" | b"statistics" => &["<exact>", "<module>"],
        b"functools" | b"contextlib" => &["<core>", "<module>"],
        b"asyncio" => &["<await>", "<module>"],
        b"logging" => &["<module>", "<percent>"],
        _ => &["<module>"],
    }
}

/// The parts that are not modules.
const PARTS: &[Piece] = &[
    piece!("<await>", Extent::Whole, "await"),
    piece!("<module>", Extent::Whole, "module"),
    piece!("<core>", Extent::Whole, "core"),
    piece!("<exact>", Extent::Whole, "exact"),
    piece!("<iterating>", Extent::Whole, "iterating"),
    piece!("<numbers>", Extent::Whole, "numbers"),
    piece!("<percent>", Extent::Whole, "percent"),
    piece!("<records>", Extent::Whole, "records"),
    piece!("<sets>", Extent::Whole, "sets"),
    piece!("<builtins>", Extent::Whole, "builtins"),
    piece!("<classes>", Extent::Whole, "classes"),
    piece!("<methods>", Extent::Whole, "methods"),
];

/// The modules.
const PIECES: &[Piece] = &[
    piece!("abc", Extent::Whole),
    piece!("asyncio", Extent::Part),
    piece!("bisect", Extent::Whole),
    piece!("calendar", Extent::Whole),
    piece!("collections", Extent::Part),
    piece!("collections.abc", Extent::Whole, "collections_abc"),
    piece!("contextlib", Extent::Whole),
    piece!("copy", Extent::Whole),
    piece!("csv", Extent::Whole),
    piece!("dataclasses", Extent::Part),
    piece!("datetime", Extent::Part),
    piece!("enum", Extent::Whole),
    piece!("functools", Extent::Part),
    piece!("hashlib", Extent::Whole),
    piece!("heapq", Extent::Whole),
    piece!("html", Extent::Whole),
    piece!("io", Extent::Whole),
    piece!("itertools", Extent::Part),
    piece!("json", Extent::Part),
    piece!("logging", Extent::Whole),
    piece!("math", Extent::Part),
    piece!("operator", Extent::Whole),
    piece!("os", Extent::Part),
    piece!("os.path", Extent::Whole, "os"),
    piece!("random", Extent::Whole),
    piece!("re", Extent::Part),
    piece!("statistics", Extent::Whole),
    piece!("string", Extent::Whole),
    piece!("sys", Extent::Part),
    piece!("textwrap", Extent::Whole),
    piece!("time", Extent::Whole),
    piece!("typing", Extent::Part),
    piece!("urllib", Extent::Whole),
    piece!("urllib.parse", Extent::Whole, "urllib"),
    piece!("uuid", Extent::Whole),
    piece!("warnings", Extent::Whole),
];
