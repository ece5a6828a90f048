//! The number of tokens that o200k makes of a text.
//!
//! The encoder of `bpe-openai` needs 32 MB of tables. To count, the merges are enough: 1 MB in the binary, and a hash
//! table of 4 MB that is built at the first use. `scripts/o200k-table` makes the table of merges.

use std::{cmp::Reverse, collections::BinaryHeap, sync::LazyLock};

use regex_automata::{Anchored, Input, meta::Regex};

/// The two halves of each token, 20 bits each, in the order of the ranks.
const MERGES: &[u8] = include_bytes!("o200k.bin");
const ENTRY: usize = 5;
const HALF_BITS: u32 = 20;
/// Ids below are single bytes.
const BYTES: u32 = 256;

/// The most bytes that are merged as one piece, so that the time is linear in the text whatever a server sends. Longer words are
/// cut here, which may add a token for each cut.
const LONGEST: usize = 16 * 1024;

const SLOT_BITS: u32 = 19;
const SLOTS: usize = 1 << SLOT_BITS;
/// Ids have 18 bits. A slot holds the two halves and the token that they make: 54 bits.
const ID_BITS: u32 = 18;
const EMPTY: u64 = u64::MAX;

/// The mark of a token that was merged into the one before it. No merge contains it.
const GONE: u32 = (1 << ID_BITS) - 1;

/// The split of o200k, without its look-ahead `\s+(?!\S)`: [`piece`] does that.
const PIECES: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*",
    r"|\s*[\r\n]+",
    r"|\s+",
);

pub(super) struct Tokenizer {
    pieces: Regex,
    merges: Vec<u64>,
}

/// The tokenizer, built at the first use.
pub(super) static O200K: LazyLock<Tokenizer> = LazyLock::new(Tokenizer::new);

/// A possible merge: the token that it makes, and the position of its left half. The token with the lowest id is
/// merged first, and of equal ones the leftmost.
type MergeCandidate = Reverse<(u32, usize)>;

/// The memory of [`Tokenizer::merge`], which is used again for each piece.
#[derive(Default)]
struct Buffers {
    ids: Vec<u32>,
    previous: Vec<usize>,
    next: Vec<usize>,
    heap: BinaryHeap<MergeCandidate>,
}

impl Tokenizer {
    #[expect(clippy::expect_used, reason = "the pattern is a constant, which the tests compile")]
    fn new() -> Self {
        let mut merges = vec![EMPTY; SLOTS];
        for (id, entry) in (BYTES..).zip(MERGES.chunks_exact(ENTRY)) {
            let mut bytes = [0; 8];
            bytes[..ENTRY].copy_from_slice(entry);
            let halves = u64::from_le_bytes(bytes);
            let (left, right) = (halves & ((1 << HALF_BITS) - 1), halves >> HALF_BITS);
            let key = left << ID_BITS | right;
            let mut slot = slot_of(key);
            while merges[slot] != EMPTY {
                slot = (slot + 1) % SLOTS;
            }
            merges[slot] = key << ID_BITS | u64::from(id);
        }
        Self { pieces: Regex::new(PIECES).expect("a good pattern"), merges }
    }

    pub(super) fn count(&self, text: &str) -> usize {
        let (mut count, mut start) = (0, 0);
        let mut buffers = Buffers::default();
        // A search from `start` alone: without the anchor the automaton gets far more states.
        let input = Input::new(text).anchored(Anchored::Yes);
        while let Some(found) = self.pieces.find(input.clone().range(start..)) {
            let piece = piece(text, found.range());
            start += piece.len();
            count += piece
                .as_bytes()
                .chunks(LONGEST)
                .map(|part| self.merge(part, &mut buffers))
                .sum::<usize>();
        }
        count
    }

    /// Merges what can be merged, the lowest rank first, and returns how many tokens remain.
    fn merge(&self, piece: &[u8], buffers: &mut Buffers) -> usize {
        let Buffers { ids, previous, next, heap } = buffers;
        let length = piece.len();
        ids.clear();
        ids.extend(piece.iter().map(|byte| u32::from(*byte)));
        previous.clear();
        previous.extend((0..length).map(|at| at.wrapping_sub(1)));
        next.clear();
        next.extend(1..=length);
        heap.clear();
        for at in 1..length {
            heap.extend(self.candidate(ids, at - 1, at));
        }
        let mut count = length;
        while let Some(Reverse((id, at))) = heap.pop() {
            let there = next[at];
            // Either of the two may have been merged with another since.
            if there >= length || self.merged(ids[at], ids[there]) != Some(id) {
                continue;
            }
            let after = next[there];
            (ids[at], ids[there], next[at]) = (id, GONE, after);
            count -= 1;
            if after < length {
                previous[after] = at;
                heap.extend(self.candidate(ids, at, after));
            }
            if at > 0 {
                heap.extend(self.candidate(ids, previous[at], at));
            }
        }
        count
    }

    fn candidate(&self, ids: &[u32], left: usize, right: usize) -> Option<MergeCandidate> {
        self.merged(ids[left], ids[right]).map(|id| Reverse((id, left)))
    }

    /// The token that two tokens make.
    fn merged(&self, left: u32, right: u32) -> Option<u32> {
        let key = u64::from(left) << ID_BITS | u64::from(right);
        let mut slot = slot_of(key);
        while self.merges[slot] >> ID_BITS != key {
            if self.merges[slot] == EMPTY {
                return None;
            }
            slot = (slot + 1) % SLOTS;
        }
        Some((self.merges[slot] & ((1 << ID_BITS) - 1)) as u32)
    }
}

/// The piece that a match of [`PIECES`] stands for. Spaces before a word leave their last one to it.
fn piece(text: &str, found: std::ops::Range<usize>) -> &str {
    let (piece, is_last) = (&text[found.start..found.end], found.end == text.len());
    let last = piece
        .chars()
        .next_back()
        .filter(|last| last.is_whitespace() && !matches!(last, '\r' | '\n'));
    match last.map(|last| piece.len() - last.len_utf8()) {
        Some(shorter) if shorter > 0 && !is_last => &piece[..shorter],
        _ => piece,
    }
}

fn slot_of(key: u64) -> usize {
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - SLOT_BITS)) as usize
}
