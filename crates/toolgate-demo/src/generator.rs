//! A tiny seeded generator: the demo's data is the same in every run on every machine.

/// A `SplitMix64`-like generator. Good enough to scatter demo data, for nothing else.
#[derive(Debug, Clone)]
pub(crate) struct Generator(u64);

impl Generator {
    /// The stream of numbers of `seed`.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The stream of numbers of a text: the same text gives the same stream.
    pub(crate) fn of(text: &str) -> Self {
        let seed = text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(seed)
    }

    /// A number below `bound`; 0 where `bound` is 0.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        let upper = u32::try_from(self.next() >> 32).unwrap_or(0);
        upper.checked_rem(bound).unwrap_or(0)
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// One of `choices`.
    pub(crate) fn pick<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        let bound = u32::try_from(choices.len()).unwrap_or(u32::MAX);
        choices.get(self.below(bound) as usize)
    }

    /// Sixteen hexadecimal digits, as trace identifiers have them.
    pub(crate) fn hexadecimal(&mut self) -> String {
        format!("{:016x}", self.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_within_bounds() {
        let (mut one, mut two) = (Generator::of("seed"), Generator::of("seed"));
        for _ in 0..1_000 {
            let number = one.between(3, 9);
            assert_eq!(number, two.between(3, 9));
            assert!((3..=9).contains(&number));
        }
        assert_eq!(one.below(0), 0);
        assert_eq!(one.pick::<u8>(&[]), None);
        assert_ne!(Generator::new(1).hexadecimal(), Generator::new(2).hexadecimal());
    }
}
