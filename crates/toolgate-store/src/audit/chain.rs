//! The lines of the chain with their hashes, and the head file.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use toolgate_catalog::hex;

use super::AuditRecord;
use crate::journal;

/// The previous hash of the first line.
pub(super) const FIRST: &str = "";
/// The previous hash of a line if the end of the chain was lost. It stays visible.
pub(super) const LOST: &str = "lost";
/// The longest line. toolgate writes no longer ones.
pub(super) const LONGEST: u64 = 4 * 1024 * 1024;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct AuditLine {
    pub(super) number: u64,
    /// Milliseconds since 1970.
    pub(super) time: u64,
    pub(super) before: String,
    #[serde(flatten)]
    pub(super) record: AuditRecord,
    #[serde(default)]
    pub(super) hash: String,
}

/// A line that is to be written, as an [`AuditLine`] is read.
#[derive(Debug)]
pub(super) struct WrittenLine<'r> {
    pub(super) number: u64,
    pub(super) time: u64,
    /// The hash of the line before.
    pub(super) before: &'r str,
    pub(super) record: &'r AuditRecord,
}

/// The content of the head file.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChainHead {
    /// The last number.
    pub(super) number: u64,
    /// The hash of the last line.
    pub(super) hash: String,
    /// The first number that should be there.
    #[serde(default)]
    pub(super) from: u64,
    /// How often a file was put aside.
    #[serde(default)]
    pub(super) rolled: u64,
    /// Records that could not be written, and that no line reports yet.
    #[serde(default)]
    pub(super) missing: u64,
    /// Records that could not be written, and that lines report.
    #[serde(default)]
    pub(super) told: u64,
    /// The number of the last line that reports missing records.
    #[serde(default)]
    pub(super) told_at: u64,
}

impl WrittenLine<'_> {
    /// Writes the line with the hash of everything else in it, and returns the hash.
    pub(super) fn write(&self, text: &mut Vec<u8>) -> io::Result<String> {
        let Self { number, time, before, record } = self;
        let start = text.len();
        // The fields of the record follow in the same object. To flatten it takes twice as long.
        write!(text, "{{\"number\":{number},\"time\":{time},\"before\":")?;
        serde_json::to_writer(&mut *text, before)?;
        let fields = text.len();
        serde_json::to_writer(&mut *text, record)?;
        if let Some(brace) = text.get_mut(fields) {
            *brace = b',';
        }
        let hash = hex(blake3::hash(&text[start..]).as_bytes());
        text.pop();
        text.extend_from_slice(closing(&hash).as_bytes());
        text.push(b'\n');
        Ok(hash)
    }
}

impl AuditLine {
    /// Whether the text is this line, unchanged.
    pub(super) fn is_own(&self, text: &[u8]) -> bool {
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        text.strip_suffix(closing(&self.hash).as_bytes()).is_some_and(|covered| {
            let mut hasher = blake3::Hasher::new();
            hasher.update(covered).update(b"}");
            hasher.finalize().to_hex().as_str() == self.hash
        })
    }
}

impl ChainHead {
    /// `None` if it is missing or damaged.
    pub(super) fn read(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }

    /// Always of the same length, so that it overwrites the earlier one.
    pub(super) fn text(&self) -> String {
        let Self { number, hash, from, rolled, missing, told, told_at } = self;
        let numbers = [
            ("number", number),
            ("from", from),
            ("rolled", rolled),
            ("missing", missing),
            ("told", told),
            ("told_at", told_at),
        ];
        // Written with every call. Formatting takes several times as long.
        let mut text = String::with_capacity(HEAD_BYTES);
        text.push('{');
        for (name, number) in numbers {
            let digits = number.to_string();
            text.extend([
                "\"",
                name,
                "\":",
                &BLANKS[digits.len().min(BLANKS.len())..],
                &digits,
                ",",
            ]);
        }
        text.extend(["\"hash\":\"", hash, "\"}\n"]);
        text
    }

    /// How many records are missing between the existing lines.
    pub(super) fn unrecorded(&self) -> u64 {
        // The lines that report the others may have been removed with an old file.
        let told = if self.told_at >= self.from { self.told } else { 0 };
        self.missing.saturating_add(told)
    }
}

/// Every number of the head file takes as much space as the longest one.
const BLANKS: &str = "                    ";
/// The size of the head file, about.
const HEAD_BYTES: usize = 320;

/// The head file.
pub(super) fn head_path(path: &Path) -> PathBuf {
    path.with_extension("head")
}

/// A file beside the folder. It shows that there was a log, even if the folder is gone.
pub(super) fn began_path(path: &Path) -> Option<PathBuf> {
    Some(path.parent()?.with_extension("began"))
}

/// Whether something beside the folder shows that there was a log: the file, or the journal.
pub(super) fn was_begun(path: &Path) -> bool {
    let Some(began) = began_path(path) else { return false };
    began.exists() || journal::knows_audit(&began.with_file_name("journal.db"))
}

/// The name of a file that was put aside when its last line had this number.
pub(super) fn aside_path(path: &Path, last: u64) -> PathBuf {
    path.with_file_name(format!("{}-{last:020}.jsonl", stem(path)))
}

/// The files that were put aside, with the numbers of their last lines, oldest first.
pub(super) fn put_aside(path: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let Some(folder) = path.parent() else { return Ok(Vec::new()) };
    let prefix = format!("{}-", stem(path));
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| {
            let digits = name.strip_prefix(&prefix)?.strip_suffix(".jsonl")?;
            (digits.len() == 20).then(|| digits.parse().ok())?
        });
        found.extend(number.map(|number: u64| (number, entry.path())));
    }
    found.sort();
    Ok(found)
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn closing(hash: &str) -> String {
    [",\"hash\":\"", hash, "\"}"].concat()
}
