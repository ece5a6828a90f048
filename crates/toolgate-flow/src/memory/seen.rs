//! The hashes of results, with a filter in front: nearly all hashes of arguments are not among them.

use std::collections::{HashMap, hash_map::Entry};

use super::LeafId;

/// Where each hash occurred first.
#[derive(Debug, Default)]
pub(super) struct SeenHashes {
    places: HashMap<u64, LeafId>,
    /// A bit for each hash, and more bits than hashes. Hashes that were removed keep theirs.
    filter: Vec<u64>,
    /// How many bits were set.
    set: usize,
}

/// Words of the filter for each hash: with 16 bits a hash, one in 16 of the others passes.
const HASHES_A_WORD: usize = 4;
const SMALLEST: usize = 64;

impl SeenHashes {
    /// Returns false if the hash has a place already.
    pub(super) fn insert(&mut self, hash: u64, place: LeafId) -> bool {
        let Entry::Vacant(entry) = self.places.entry(hash) else { return false };
        entry.insert(place);
        self.set += 1;
        if self.set > self.filter.len() * HASHES_A_WORD {
            let words = self.places.len().div_ceil(HASHES_A_WORD) * 2;
            self.filter = vec![0; words.next_power_of_two().max(SMALLEST)];
            self.set = self.places.len();
            for hash in self.places.keys() {
                mark(&mut self.filter, *hash);
            }
        } else {
            mark(&mut self.filter, hash);
        }
        true
    }

    pub(super) fn get(&self, hash: u64) -> Option<&LeafId> {
        let (word, bit) = position(self.filter.len(), hash)?;
        if self.filter[word] & bit == 0 {
            return None;
        }
        self.places.get(&hash)
    }

    pub(super) fn remove(&mut self, hash: u64) {
        self.places.remove(&hash);
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }
}

fn mark(filter: &mut [u64], hash: u64) {
    if let Some((word, bit)) = position(filter.len(), hash) {
        filter[word] |= bit;
    }
}

/// The word and the bit of a hash, in a filter whose length is a power of two.
fn position(words: usize, hash: u64) -> Option<(usize, u64)> {
    let mask = words.checked_sub(1)?;
    Some((usize::try_from(hash >> 6).unwrap_or_default() & mask, 1 << (hash & 63)))
}
