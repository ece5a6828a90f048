//! The lines of a file of past uses.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs,
    io::{self, Read as _, Seek as _, SeekFrom},
    sync::atomic::{AtomicU64, Ordering},
};

use serde::{Deserialize, Serialize};

use super::{PastUse, UsageFile};

/// No first line is longer.
pub(super) const HEADER_BYTES: u64 = 128;

/// The content of a usage file.
#[derive(Debug, Default)]
pub(super) struct UsageLines {
    /// The id of the file, where its beginning was read.
    pub(super) id: String,
    /// As they stand there.
    pub(super) uses: Vec<PastUse>,
    /// The end of the last whole line.
    pub(super) end: u64,
}

#[derive(Serialize, Deserialize)]
struct UsageHeader {
    usage: String,
}

/// Reads whole lines from `offset` on, at most `limit` bytes.
pub(super) fn read(file: &mut fs::File, offset: u64, limit: u64) -> io::Result<UsageLines> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(offset))?;
    file.take(limit).read_to_end(&mut bytes)?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let mut lines = UsageLines { end: offset + whole as u64, ..UsageLines::default() };
    for line in bytes[..whole].split(|byte| *byte == b'\n') {
        if let Ok(past) = serde_json::from_slice::<PastUse>(line) {
            if past.is_sound() {
                lines.uses.push(past);
            }
        } else if let Ok(header) = serde_json::from_slice::<UsageHeader>(line) {
            lines.id = header.usage;
        }
    }
    Ok(lines)
}

/// The first line of a new file.
pub(super) fn header() -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let nanoseconds = crate::since_epoch().as_nanos();
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    let unique = format!("{}-{nanoseconds}-{count}", std::process::id());
    let id = &blake3::hash(unique.as_bytes()).to_hex()[..16];
    format!("{{\"usage\":\"{id}\"}}\n")
}

/// Merges uses of the same tool for the same query, and keeps the newest, ordered by time.
pub(super) fn merged(uses: Vec<PastUse>) -> Vec<PastUse> {
    let mut merged: BTreeMap<[String; 4], PastUse> = BTreeMap::new();
    for past in uses {
        let key = [&past.server, &past.tool, &past.query, &past.caller].map(String::clone);
        merged
            .entry(key)
            .and_modify(|known| {
                known.at = known.at.max(past.at);
                known.count = known.count.saturating_add(past.count);
                known.against = known.against.saturating_add(past.against);
            })
            .or_insert(past);
    }
    let mut uses: Vec<PastUse> = merged.into_values().collect();
    // The newest are kept, up to the limits.
    uses.sort_by_key(|past| std::cmp::Reverse(past.at));
    let mut of_tool: HashMap<[String; 3], usize> = HashMap::new();
    uses.retain(|past| {
        let key = [&past.server, &past.tool, &past.caller].map(String::clone);
        let count = of_tool.entry(key).or_default();
        *count += 1;
        *count <= UsageFile::MAX_FOR_TOOL
    });
    if uses.len() > UsageFile::MAX_TOTAL {
        keep_fairly(&mut uses);
    }
    uses.truncate(UsageFile::MAX_TOTAL);
    uses.reverse();
    uses
}

/// Each caller keeps the same number of entries, so that nobody pushes out those of others.
fn keep_fairly(uses: &mut Vec<PastUse>) {
    let callers: HashSet<String> = uses.iter().map(|past| past.caller.clone()).collect();
    let share = (UsageFile::MAX_TOTAL / callers.len().max(1)).max(1);
    let mut of_caller: HashMap<String, usize> = HashMap::new();
    uses.retain(|past| {
        let count = of_caller.entry(past.caller.clone()).or_default();
        *count += 1;
        *count <= share
    });
}

/// A text without control characters and within bounds.
pub(super) fn one_line(text: &str) -> String {
    let plain: String = text
        .chars()
        .take(UsageFile::MAX_QUERY_BYTES)
        .map(|character| if character.is_control() { ' ' } else { character })
        .collect();
    let plain = plain.trim();
    plain[..plain.floor_char_boundary(UsageFile::MAX_QUERY_BYTES)].trim_end().to_owned()
}

impl PastUse {
    pub(super) fn to_line(&self) -> Option<String> {
        if !self.is_sound() {
            return None;
        }
        Some(serde_json::to_string(self).ok()? + "\n")
    }

    /// Whether this can be stored: files are edited, and servers name tools as they like.
    pub fn is_sound(&self) -> bool {
        !self.query.is_empty()
            && self.query == one_line(&self.query)
            && self.server.len() + self.tool.len() <= UsageFile::MAX_NAME_BYTES
            && self.caller.len() <= UsageFile::MAX_NAME_BYTES
    }
}
