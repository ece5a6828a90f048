//! What tools returned, and what of it is in the arguments of a call.

use std::collections::{HashMap, HashSet, VecDeque, hash_map::Entry};

use serde_json::Value;

use crate::{
    decode,
    labels::LabelSet,
    text,
    winnow::{self, PIECE, SHORTEST},
};

/// The results of a run or a session.
#[derive(Debug, Default)]
pub struct Memory {
    limits: Limits,
    /// Where a hash was first seen. What was seen first is where it comes from.
    seen: HashMap<u64, Place>,
    /// The leaves of all results.
    leaves: usize,
    results: VecDeque<Learnt>,
    /// The number of the oldest result that is still remembered.
    oldest: usize,
    /// What the caller brought along.
    known: HashSet<u64>,
    /// The end of what was sent before, by tool and field.
    tails: HashMap<(String, String), Vec<u8>>,
    touched: LabelSet,
    forgotten: bool,
}

/// How much is remembered.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Hashes of results: about one in four bytes of text, and 40 bytes of memory each.
    pub hashes: usize,
    /// Bytes of one result, or of one call's arguments, that are looked at.
    pub bytes: usize,
    /// Matches that are told of one call.
    pub matches: usize,
}

/// Where data comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The number of the call.
    pub call: u64,
    /// The tool.
    pub tool: String,
    /// What is said of what it returns.
    pub labels: LabelSet,
}

/// What the arguments of a call contain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// What was found, the most first.
    pub matches: Vec<Match>,
    /// Whether there was more to remember, or to look at, than there is room for: what was not found
    /// may still be there.
    pub incomplete: bool,
}

/// A part of the arguments that an earlier result has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// Where in the arguments, as a JSON pointer.
    pub field: String,
    /// Which result.
    pub origin: Origin,
    /// Where in it, as a JSON pointer.
    pub from: String,
    /// At least so many letters and digits are the same.
    pub bytes: usize,
    /// The start of it, as it is in the argument.
    pub excerpt: String,
    /// How it was written.
    pub via: Via,
}

/// How data was written where it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Via {
    /// As it was.
    Plain,
    /// In base64.
    Base64,
    /// In hexadecimal.
    Hexadecimal,
    /// With percent signs.
    Percent,
    /// A little at a time, over several calls.
    Pieces,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    result: usize,
    leaf: u32,
}

#[derive(Debug)]
struct Learnt {
    origin: Origin,
    leaves: Vec<String>,
    hashes: Vec<u64>,
}

/// A leaf of a value and where it is.
struct Leaf<'a> {
    pointer: String,
    text: std::borrow::Cow<'a, str>,
}

const EXCERPT: usize = 48;
/// Leaves of one value that are told apart; further ones count as the last.
const LEAVES: usize = 20_000;
const DEEPEST: usize = 64;
/// Results that are told apart.
const RESULTS: usize = 65_536;
/// Fields whose small pieces are put together.
const TAILS: usize = 4_096;

impl Default for Limits {
    fn default() -> Self {
        Self { hashes: 1_000_000, bytes: 4 * 1024 * 1024, matches: 32 }
    }
}

impl Origin {
    /// A result without labels.
    pub fn new(call: u64, tool: impl Into<String>) -> Self {
        Self { call, tool: tool.into(), labels: LabelSet::EMPTY }
    }

    /// With these labels.
    #[must_use]
    pub fn with_labels(mut self, labels: LabelSet) -> Self {
        self.labels = labels;
        self
    }
}

impl Memory {
    /// With room for so much.
    pub fn with_limits(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// The labels of all results so far, those that are forgotten included.
    pub fn touched(&self) -> LabelSet {
        self.touched
    }

    /// Takes in what the caller wrote itself: a script's text, a request in words. It is no flow where
    /// it turns up in arguments, even if a result repeats it.
    pub fn knows(&mut self, text: &str) {
        let text = cut(text, self.limits.bytes);
        let mut reduced = Vec::new();
        text::reduce(text, &mut reduced);
        if self.known.len() < self.limits.hashes {
            self.known.extend(winnow::hashes(&reduced));
            self.known.extend(text::telling_words(text).map(|word| winnow::word(&word)));
        }
    }

    /// Takes in a result.
    pub fn learn(&mut self, origin: Origin, result: &Value) {
        self.touched = self.touched.union(origin.labels);
        let number = self.oldest + self.results.len();
        let mut learnt = Learnt { origin, leaves: Vec::new(), hashes: Vec::new() };
        let complete = leaves(result, self.limits.bytes, &mut |leaf| {
            let index = u32::try_from(learnt.leaves.len().min(LEAVES)).unwrap_or(u32::MAX);
            if learnt.leaves.len() <= LEAVES {
                learnt.leaves.push(leaf.pointer);
            }
            let mut reduced = Vec::new();
            text::reduce(&leaf.text, &mut reduced);
            let pieces = winnow::winnow(&reduced).into_iter().map(|kept| kept.hash);
            let words = text::telling_words(&leaf.text).map(|word| winnow::word(&word));
            for hash in pieces.chain(words) {
                let place = Place { result: number, leaf: index };
                if let Entry::Vacant(entry) = self.seen.entry(hash) {
                    entry.insert(place);
                    learnt.hashes.push(hash);
                }
            }
        });
        self.forgotten |= !complete;
        if learnt.hashes.is_empty() {
            // All of it was in earlier results: nothing will be found to be from here.
            learnt.leaves = Vec::new();
        }
        self.leaves += learnt.leaves.len();
        self.results.push_back(learnt);
        self.forget_oldest();
    }

    /// Says which earlier results the arguments of a call contain.
    pub fn trace(&mut self, tool: &str, arguments: &Value) -> Trace {
        let mut found = Findings::default();
        let mut ends = Vec::new();
        let complete = leaves(arguments, self.limits.bytes, &mut |leaf| {
            decode::views(&leaf.text, &mut |view, via| {
                let mut reduced = Vec::new();
                text::reduce(view, &mut reduced);
                let place = Looked { text: view, field: &leaf.pointer, via };
                self.look(&reduced, place, &mut found);
                for word in text::telling_words(view) {
                    let shown = || String::from_utf8_lossy(&word).into_owned();
                    self.found(winnow::word(&word), word.len(), place, shown, &mut found);
                }
                if via == Via::Plain {
                    self.look_at_pieces(tool, &leaf.pointer, &reduced, &mut found);
                    ends.push((leaf.pointer.clone(), reduced));
                }
            });
        });
        for (field, reduced) in ends {
            self.remember_end(tool, field, &reduced);
        }
        let matches = self.matches(found);
        if matches.is_empty() {
            // What comes from no result was brought by the caller, and stays known if it comes back.
            let _ = leaves(arguments, self.limits.bytes, &mut |leaf| self.knows(&leaf.text));
        }
        Trace { matches, incomplete: self.forgotten || !complete }
    }

    fn look(&self, reduced: &[u8], place: Looked<'_>, found: &mut Findings) {
        for (at, hash) in winnow::hashes(reduced).enumerate() {
            let shown = || text::excerpt(place.text, at, EXCERPT);
            self.found(hash, PIECE, place, shown, found);
        }
    }

    /// Puts what is sent now behind what was sent before to the same field of the same tool.
    fn look_at_pieces(&self, tool: &str, field: &str, reduced: &[u8], found: &mut Findings) {
        let Some(tail) = self.tails.get(&(tool.to_owned(), field.to_owned())) else { return };
        // What was sent before was looked at then: only what reaches into what is sent now is news.
        let mut joined = tail[tail.len().saturating_sub(PIECE - 1)..].to_vec();
        joined.extend_from_slice(&reduced[..reduced.len().min(SHORTEST)]);
        let text = String::from_utf8_lossy(&joined);
        self.look(&joined, Looked { text: &text, field, via: Via::Pieces }, found);
    }

    fn remember_end(&mut self, tool: &str, field: String, reduced: &[u8]) {
        let key = (tool.to_owned(), field);
        if !self.tails.contains_key(&key) && self.tails.len() >= TAILS {
            self.forgotten = true;
            return;
        }
        let tail = self.tails.entry(key).or_default();
        tail.extend_from_slice(&reduced[reduced.len().saturating_sub(TAIL)..]);
        let extra = tail.len().saturating_sub(TAIL);
        tail.drain(..extra);
    }

    fn found(
        &self,
        hash: u64,
        bytes: usize,
        looked: Looked<'_>,
        shown: impl FnOnce() -> String,
        found: &mut Findings,
    ) {
        let Some(place) = self.seen.get(&hash) else { return };
        if !self.known.contains(&hash) {
            found.add(*place, bytes, looked, shown);
        }
    }

    fn matches(&self, found: Findings) -> Vec<Match> {
        let mut matches: Vec<Match> = found
            .findings
            .into_iter()
            .filter_map(|((field, result), finding)| {
                let learnt = self.results.get(result.checked_sub(self.oldest)?)?;
                let leaf = usize::try_from(finding.leaf).unwrap_or_default();
                let from = learnt.leaves.get(leaf).or(learnt.leaves.last()).cloned();
                let origin = learnt.origin.clone();
                let Finding { bytes, excerpt, via, .. } = finding;
                Some(Match { field, origin, from: from.unwrap_or_default(), bytes, excerpt, via })
            })
            .collect();
        matches.sort_by(|left, right| {
            let by = |found: &Match| (usize::MAX - found.bytes, found.origin.call);
            by(left).cmp(&by(right)).then_with(|| left.field.cmp(&right.field))
        });
        matches.truncate(self.limits.matches);
        matches
    }

    fn forget_oldest(&mut self) {
        while self.seen.len() > self.limits.hashes
            || self.leaves > self.limits.hashes
            || self.results.len() > RESULTS
        {
            let Some(oldest) = self.results.pop_front() else { return };
            self.leaves -= oldest.leaves.len();
            self.forgotten |= !oldest.hashes.is_empty();
            for hash in oldest.hashes {
                self.seen.remove(&hash);
            }
            self.oldest += 1;
        }
    }
}

/// What is kept of the end of a field: enough for pieces of any size to be joined.
const TAIL: usize = 4 * SHORTEST;

/// What was found of each result in each field.
#[derive(Debug, Default)]
struct Findings {
    findings: HashMap<(String, usize), Finding>,
}

#[derive(Debug)]
struct Finding {
    leaf: u32,
    bytes: usize,
    excerpt: String,
    via: Via,
}

/// A text that is looked at, and where it is.
#[derive(Debug, Clone, Copy)]
struct Looked<'a> {
    text: &'a str,
    field: &'a str,
    via: Via,
}

/// Fields and results that are told apart; more are counted with those that are there.
const FINDINGS: usize = 256;

impl Findings {
    fn add(
        &mut self,
        place: Place,
        bytes: usize,
        looked: Looked<'_>,
        shown: impl FnOnce() -> String,
    ) {
        let key = (looked.field.to_owned(), place.result);
        let full = self.findings.len() >= FINDINGS;
        match self.findings.entry(key) {
            Entry::Occupied(mut entry) => {
                let finding = entry.get_mut();
                // Pieces lie over each other, and one in four was kept: each stands for a few bytes of its own.
                finding.bytes += 4;
                finding.via = finding.via.min(looked.via);
            }
            Entry::Vacant(entry) if !full => {
                let (leaf, excerpt, via) = (place.leaf, shown(), looked.via);
                entry.insert(Finding { leaf, bytes, excerpt, via });
            }
            Entry::Vacant(_) => {}
        }
    }
}

/// Gives `seen` every string, number and key of a value; says whether it looked at all of it.
fn leaves(value: &Value, bytes: usize, seen: &mut impl FnMut(Leaf<'_>)) -> bool {
    let mut room = bytes;
    walk(value, &mut String::new(), DEEPEST, &mut room, seen)
}

fn walk(
    value: &Value,
    pointer: &mut String,
    depth: usize,
    room: &mut usize,
    seen: &mut impl FnMut(Leaf<'_>),
) -> bool {
    if depth == 0 || *room == 0 {
        return false;
    }
    match value {
        Value::Null | Value::Bool(_) => true,
        Value::Number(number) => {
            let text = number.to_string();
            *room = room.saturating_sub(text.len());
            seen(Leaf { pointer: pointer.clone(), text: text.into() });
            true
        }
        Value::String(text) => {
            let looked = cut(text, *room);
            *room -= looked.len();
            // A string that holds JSON is looked at as what it holds, and so is the text of a result.
            let inner = looked
                .trim_start()
                .starts_with(['{', '['])
                .then(|| serde_json::from_str(looked).ok());
            if let Some(inner) = inner.flatten() {
                return walk(&inner, pointer, depth - 1, &mut looked.len().max(1), seen);
            }
            seen(Leaf { pointer: pointer.clone(), text: looked.into() });
            looked.len() == text.len()
        }
        Value::Array(items) => {
            let mut complete = true;
            for (index, item) in items.iter().enumerate() {
                let length = pointer.len();
                pointer.push('/');
                pointer.push_str(&index.to_string());
                complete &= walk(item, pointer, depth - 1, room, seen);
                pointer.truncate(length);
            }
            complete
        }
        Value::Object(fields) => {
            let mut complete = true;
            for (key, item) in fields {
                let length = pointer.len();
                pointer.push('/');
                let escaped = key.replace('~', "~0").replace('/', "~1");
                pointer.push_str(cut(&escaped, LONGEST_KEY));
                // A key can carry data too.
                if key.len() >= PIECE {
                    *room = room.saturating_sub(key.len());
                    seen(Leaf { pointer: pointer.clone(), text: cut(key, *room).into() });
                }
                complete &= walk(item, pointer, depth - 1, room, seen);
                pointer.truncate(length);
            }
            complete
        }
    }
}

const LONGEST_KEY: usize = 64;

/// The start of a text, whole characters of it.
fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests;
