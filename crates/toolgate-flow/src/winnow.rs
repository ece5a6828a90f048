//! Winnowing: selects hashes of a text so that texts with enough in common share a selected hash.

/// Bytes that are hashed together.
pub(crate) const PIECE: usize = 14;
/// Of so many hashes in a row, at least one is selected.
const WINDOW: usize = 7;

/// Two texts that have this many letters and digits in a row in common (counted in bytes, after case
/// and all else is taken off) are found to.
pub const SHORTEST: usize = PIECE + WINDOW - 1;

const BASE: u64 = 0x0100_0000_01b3;

/// A selected hash and the position of its piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SelectedHash {
    pub(crate) hash: u64,
    pub(crate) at: usize,
}

/// Selects hashes of a reduced text, of those pieces that count.
pub(crate) fn winnow(reduced: &[u8], counts: impl Fn(usize) -> bool) -> Vec<SelectedHash> {
    let mut kept: Vec<SelectedHash> = Vec::new();
    // The smallest hash of each window; the later one where two are equal, so that a repetitive text
    // keeps few.
    let mut window: [SelectedHash; WINDOW] =
        [SelectedHash { hash: u64::MAX, at: usize::MAX }; WINDOW];
    let mut smallest = 0;
    for (index, hash) in hashes(reduced).enumerate() {
        let hash = if counts(index) { hash } else { u64::MAX };
        let slot = index % WINDOW;
        window[slot] = SelectedHash { hash, at: index };
        if slot == smallest {
            // The smallest one has left the window.
            let order = |slot: &usize| (window[*slot].hash, usize::MAX - window[*slot].at);
            smallest = (0..WINDOW).min_by_key(order).unwrap_or(slot);
        } else if hash <= window[smallest].hash {
            smallest = slot;
        }
        let selected = window[smallest];
        let is_new = kept.last().is_none_or(|last| last.at != selected.at);
        if index + 1 >= WINDOW && is_new && selected.hash != u64::MAX {
            kept.push(selected);
        }
    }
    kept
}

/// The hash of every piece, each from the one before it.
pub(crate) fn hashes(reduced: &[u8]) -> impl Iterator<Item = u64> {
    let highest = (1..PIECE).fold(1_u64, |power, _| power.wrapping_mul(BASE));
    let mut rolling = 0_u64;
    reduced.iter().enumerate().filter_map(move |(index, byte)| {
        if index >= PIECE {
            let leaving = value(reduced[index - PIECE]);
            rolling = rolling.wrapping_sub(leaving.wrapping_mul(highest));
        }
        rolling = rolling.wrapping_mul(BASE).wrapping_add(value(*byte));
        (index + 1 >= PIECE).then(|| mix(rolling))
    })
}

/// The hash of a whole word. Never that of a piece.
pub(crate) fn word(reduced: &[u8]) -> u64 {
    let hash = reduced.iter().fold(0x51_7c_c1_b7_27_22_0a_95, |hash: u64, byte| {
        hash.wrapping_mul(BASE).wrapping_add(value(*byte))
    });
    mix(hash ^ reduced.len() as u64)
}

fn value(byte: u8) -> u64 {
    u64::from(byte) + 1
}

/// Spreads a hash, so that the smallest of a window is any of them.
fn mix(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn texts_with_enough_in_common_share_a_hash(
            before in "[a-z]{0,40}", common in "[a-z0-9]{20,60}", after in "[a-z]{0,40}",
            other_before in "[a-z]{0,40}", other_after in "[a-z]{0,40}",
        ) {
            let first = format!("{before}{common}{after}");
            let second = format!("{other_before}{common}{other_after}");
            let first: HashSet<u64> = winnow(first.as_bytes(), |_| true).iter().map(|kept| kept.hash).collect();
            let second = winnow(second.as_bytes(), |_| true);
            prop_assert!(second.iter().any(|kept| first.contains(&kept.hash)));
        }

        #[test]
        fn a_share_is_kept(text in "[a-z0-9]{200,400}") {
            let kept = winnow(text.as_bytes(), |_| true).len();
            prop_assert!(kept * 2 < text.len());
        }
    }

    #[test]
    fn a_repetitive_text_keeps_few() {
        let kept = winnow(&[b'a'; 10_000], |_| true);
        let distinct: HashSet<u64> = kept.iter().map(|kept| kept.hash).collect();
        assert_eq!(distinct.len(), 1);
    }
}
