//! Tests whether a difference is significant.

use serde::Serialize;

use super::mean;

/// A mean difference and its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// 2.5 % are below this.
    pub low: f64,
    /// 2.5 % are above this.
    pub high: f64,
}

/// The number of samples.
const ROUNDS: usize = 2_000;

/// The interval of a mean of differences, one per query, by resampling with replacement.
///
/// The samples depend only on the number of differences, so the same measurements always give the
/// same interval.
pub fn paired_bootstrap(differences: &[f64]) -> Interval {
    if differences.is_empty() {
        return Interval::default();
    }
    let mut random = Random::new(differences.len() as u64);
    let mut means: Vec<f64> = (0..ROUNDS)
        .map(|_| mean((0..differences.len()).map(|_| differences[random.below(differences.len())])))
        .collect();
    means.sort_by(f64::total_cmp);
    let tail = ROUNDS / 40;
    Interval {
        mean: mean(differences.iter().copied()),
        low: means[tail],
        high: means[ROUNDS - 1 - tail],
    }
}

/// The generator of Steele, Lea and Flood.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below the end, and 0 if that is 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        // The high half of the product is below the end, and as even as the number itself.
        let product = u128::from(mixed) * end as u128;
        usize::try_from(product >> 64).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_difference_is_certain_and_a_mixed_one_is_not() {
        let even = paired_bootstrap(&[0.5; 40]);
        assert!((even.low - 0.5).abs() < 1e-9 && (even.high - 0.5).abs() < 1e-9);
        let mixed: Vec<f64> = (0..40).map(|n| if n % 2 == 0 { 1.0 } else { -1.0 }).collect();
        let mixed = paired_bootstrap(&mixed);
        assert!(mixed.low < -0.1 && mixed.high > 0.1, "{mixed:?}");
        // The textbook: 1.96 standard errors of the mean, here 0.158 each.
        assert!((mixed.high - 0.31).abs() < 0.05, "{mixed:?}");
    }

    #[test]
    fn the_same_measurements_give_the_same_interval() {
        let differences: Vec<f64> = (0..101_u32).map(|n| f64::from(n % 7) - 2.0).collect();
        assert_eq!(paired_bootstrap(&differences), paired_bootstrap(&differences));
        assert_eq!(paired_bootstrap(&[]), Interval::default());
    }
}
