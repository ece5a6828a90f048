//! The results of earlier calls, and the search for them in the arguments of a call.

mod leaves;
mod seen;

use std::collections::{HashMap, HashSet, VecDeque, hash_map::Entry};

use serde_json::Value;

use self::{
    leaves::{Leaf, cut, joined_lists, leaves},
    seen::SeenHashes,
};
use crate::{
    decode, generic,
    labels::LabelSet,
    text,
    winnow::{self, PIECE, SHORTEST},
};

/// The results of a run or a session.
#[derive(Debug, Default)]
pub struct Memory {
    limits: FlowLimits,
    /// The result in which each hash occurred first. Data comes from there.
    seen: SeenHashes,
    /// The leaves of all results.
    leaves: usize,
    results: VecDeque<StoredResult>,
    /// The number of the oldest result that is stored.
    oldest: usize,
    /// Hashes of text that the caller wrote itself.
    known: HashSet<u64>,
    /// The end of the text that was sent before, by tool and field.
    tails: HashMap<(String, String), Vec<u8>>,
    touched: LabelSet,
    forgotten: bool,
}

/// How much a [`Memory`] stores.
#[derive(Debug, Clone, Copy)]
pub struct FlowLimits {
    /// Hashes of results: about one in four bytes of text, and 40 bytes of memory each.
    pub hashes: usize,
    /// Bytes of one result, or of one call's arguments, that are searched.
    pub bytes: usize,
    /// Matches that are reported for one call.
    pub matches: usize,
}

/// The call that data came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataOrigin {
    /// The number of the call.
    pub call: u64,
    /// The tool.
    pub tool: String,
    /// The labels of the tool's results.
    pub labels: LabelSet,
}

/// The earlier results that the arguments of a call contain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// The matches, the longest first.
    pub matches: Vec<Match>,
    /// Whether a limit was reached. Then arguments may contain data that was not found.
    pub incomplete: bool,
}

/// A part of the arguments that an earlier result contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// The JSON pointer into the arguments.
    pub field: String,
    /// The call that returned the result.
    pub origin: DataOrigin,
    /// The JSON pointer into the result.
    pub from: String,
    /// The number of equal letters and digits, at least.
    pub bytes: usize,
    /// The start of the match, as the argument spells it.
    pub excerpt: String,
    /// The encoding in the argument.
    pub via: Via,
}

/// The encoding in which data was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Via {
    /// Not encoded.
    Plain,
    /// In base64.
    Base64,
    /// In hexadecimal.
    Hexadecimal,
    /// In base32.
    Base32,
    /// In percent-encoding.
    Percent,
    /// In the entities of HTML.
    Entities,
    /// In quoted-printable.
    QuotedPrintable,
    /// As numbers that stand for characters.
    CharacterCodes,
    /// In characters that nobody sees.
    Invisible,
    /// Backwards, by letters or by words.
    Reversed,
    /// With other letters between its letters.
    Interleaved,
    /// In small pieces, over several calls.
    Pieces,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct LeafId {
    result: usize,
    leaf: u32,
}

#[derive(Debug)]
struct StoredResult {
    origin: DataOrigin,
    leaves: Vec<String>,
    hashes: Vec<u64>,
}

const EXCERPT: usize = 48;
/// Leaves of one value that have their own number. Further ones count as the last.
const LEAVES: usize = 20_000;
/// The most results that are stored.
const RESULTS: usize = 65_536;
/// Fields whose small pieces are joined.
const TAILS: usize = 4_096;

impl Default for FlowLimits {
    fn default() -> Self {
        Self { hashes: 1_000_000, bytes: 4 * 1024 * 1024, matches: 32 }
    }
}

impl DataOrigin {
    /// A result without labels.
    pub fn new(call: u64, tool: impl Into<String>) -> Self {
        Self { call, tool: tool.into(), labels: LabelSet::EMPTY }
    }

    /// Sets the labels.
    #[must_use]
    pub fn with_labels(mut self, labels: LabelSet) -> Self {
        self.labels = labels;
        self
    }
}

impl Memory {
    /// Creates a memory with other limits.
    pub fn with_limits(limits: FlowLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// The labels of all results so far, those that are forgotten included.
    pub fn touched(&self) -> LabelSet {
        self.touched
    }

    /// How many hashes are stored.
    pub fn hashes(&self) -> usize {
        self.seen.len() + self.known.len()
    }

    /// Stores text that the caller wrote itself, such as a script. It is no match where it occurs in arguments, even if a
    /// result repeats it.
    pub fn knows(&mut self, text: &str) {
        let text = &text::plain(cut(text, self.limits.bytes));
        let mut reduced = Vec::new();
        text::reduce(text, &mut reduced);
        if self.known.len() < self.limits.hashes {
            self.known.extend(winnow::hashes(&reduced));
            self.known.extend(text::telling_words(text).map(|word| winnow::word(&word)));
        }
    }

    /// Stores a result.
    pub fn learn(&mut self, origin: DataOrigin, result: &Value) {
        self.touched = self.touched.union(origin.labels);
        let number = self.oldest + self.results.len();
        let mut learnt = StoredResult { origin, leaves: Vec::new(), hashes: Vec::new() };
        let complete = leaves(result, self.limits.bytes, &mut |leaf| {
            let index = u32::try_from(learnt.leaves.len().min(LEAVES)).unwrap_or(u32::MAX);
            if learnt.leaves.len() <= LEAVES {
                learnt.leaves.push(leaf.pointer);
            }
            let text = text::plain(&leaf.text);
            let (reduced, specific) = text::reduce_specific(&text);
            let specific = generic::specific_pieces(&specific);
            let pieces = winnow::winnow(&reduced, |at| specific[at]);
            let words = text::telling_words(&text).map(|word| winnow::word(&word));
            for hash in pieces.into_iter().map(|kept| kept.hash).chain(words) {
                let place = LeafId { result: number, leaf: index };
                if self.seen.insert(hash, place) {
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

    /// Finds the earlier results that the arguments of a call contain.
    pub fn trace(&mut self, tool: &str, arguments: &Value) -> Trace {
        let mut found = PartialMatches::default();
        let mut ends = Vec::new();
        let mut decoded = true;
        let mut look_at = |leaf: Leaf<'_>| {
            decoded &= decode::views(&leaf.text, &mut |view, via| {
                let mut reduced = Vec::new();
                text::reduce(view, &mut reduced);
                let place = ArgumentView { text: view, field: &leaf.pointer, via };
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
        };
        let complete = leaves(arguments, self.limits.bytes, &mut look_at);
        joined_lists(arguments, self.limits.bytes, &mut look_at);
        for (field, reduced) in ends {
            self.remember_end(tool, field, &reduced);
        }
        let matches = self.matches(found);
        if matches.is_empty() {
            // What comes from no result was brought by the caller, and stays known if it comes back.
            let _ = leaves(arguments, self.limits.bytes, &mut |leaf| self.knows(&leaf.text));
        }
        Trace { matches, incomplete: self.forgotten || !complete || !decoded }
    }

    fn look(&self, reduced: &[u8], place: ArgumentView<'_>, found: &mut PartialMatches) {
        for (at, hash) in winnow::hashes(reduced).enumerate() {
            let shown = || text::excerpt(place.text, at, EXCERPT);
            self.found(hash, PIECE, place, shown, found);
        }
    }

    /// Joins the text with what was sent before to the same field of the same tool.
    fn look_at_pieces(&self, tool: &str, field: &str, reduced: &[u8], found: &mut PartialMatches) {
        let Some(tail) = self.tails.get(&(tool.to_owned(), field.to_owned())) else { return };
        // The earlier text was searched when it was sent. Only what reaches into the new text is new.
        let mut joined = tail[tail.len().saturating_sub(PIECE - 1)..].to_vec();
        joined.extend_from_slice(&reduced[..reduced.len().min(SHORTEST)]);
        let text = String::from_utf8_lossy(&joined);
        self.look(&joined, ArgumentView { text: &text, field, via: Via::Pieces }, found);
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
        looked: ArgumentView<'_>,
        shown: impl FnOnce() -> String,
        found: &mut PartialMatches,
    ) {
        let Some(place) = self.seen.get(hash) else { return };
        if !self.known.contains(&hash) {
            found.add(*place, bytes, looked, shown);
        }
    }

    fn matches(&self, found: PartialMatches) -> Vec<Match> {
        let mut matches: Vec<Match> = found
            .findings
            .into_iter()
            .filter_map(|((field, result), finding)| {
                let learnt = self.results.get(result.checked_sub(self.oldest)?)?;
                let leaf = usize::try_from(finding.leaf).unwrap_or_default();
                let from = learnt.leaves.get(leaf).or(learnt.leaves.last()).cloned();
                let origin = learnt.origin.clone();
                let PartialMatch { bytes, excerpt, via, .. } = finding;
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
                self.seen.remove(hash);
            }
            self.oldest += 1;
        }
    }
}

/// Bytes that are stored of the end of a field: enough to join pieces of any size.
const TAIL: usize = 4 * SHORTEST;

/// The matches of each result in each field, before they are reported.
#[derive(Debug, Default)]
struct PartialMatches {
    findings: HashMap<(String, usize), PartialMatch>,
}

#[derive(Debug)]
struct PartialMatch {
    leaf: u32,
    bytes: usize,
    excerpt: String,
    via: Via,
}

/// A text of the arguments, with its field and encoding.
#[derive(Debug, Clone, Copy)]
struct ArgumentView<'a> {
    text: &'a str,
    field: &'a str,
    via: Via,
}

/// Further fields and results are not reported.
const MAX_PARTIAL_MATCHES: usize = 256;

impl PartialMatches {
    fn add(
        &mut self,
        place: LeafId,
        bytes: usize,
        looked: ArgumentView<'_>,
        shown: impl FnOnce() -> String,
    ) {
        let key = (looked.field.to_owned(), place.result);
        let full = self.findings.len() >= MAX_PARTIAL_MATCHES;
        match self.findings.entry(key) {
            Entry::Occupied(mut entry) => {
                let finding = entry.get_mut();
                // Pieces overlap and one in four is stored, so each stands for about four bytes.
                finding.bytes += 4;
                finding.via = finding.via.min(looked.via);
            }
            Entry::Vacant(entry) if !full => {
                let (leaf, excerpt, via) = (place.leaf, shown(), looked.via);
                entry.insert(PartialMatch { leaf, bytes, excerpt, via });
            }
            Entry::Vacant(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
