//! Measures a ranking against labels.

use std::collections::HashSet;
use std::hash::Hash;

/// The share of needs met within the first `k` of `ranking`. A need is met by any one of its
/// entries.
///
/// ```
/// use toolgate_search::metrics::recall_at;
///
/// let needs = [vec!["read"], vec!["write", "append"]];
/// assert_eq!(recall_at(2, &["append", "list", "read"], &needs), 0.5);
/// ```
pub fn recall_at<T: PartialEq>(k: usize, ranking: &[T], needs: &[Vec<T>]) -> f64 {
    if needs.is_empty() {
        return 0.0;
    }
    let first = &ranking[..k.min(ranking.len())];
    let met = needs.iter().filter(|need| need.iter().any(|entry| first.contains(entry))).count();
    ratio(met, needs.len())
}

/// One divided by the rank of the first labelled entry; 0 if there is none.
pub fn reciprocal_rank<T: PartialEq>(ranking: &[T], needs: &[Vec<T>]) -> f64 {
    let is_labelled = |entry: &T| needs.iter().any(|need| need.contains(entry));
    ranking.iter().position(is_labelled).map_or(0.0, |place| ratio(1, place + 1))
}

/// The discounted gain of the first `k` of `ranking`, as a share of the best possible one.
///
/// `gain` returns the gain of an entry. `gains` lists the gains of all labelled entries, in any
/// order. A repeated entry counts once.
pub fn ndcg_at<T: Eq + Hash>(
    k: usize,
    ranking: &[T],
    gains: &[f64],
    gain: impl Fn(&T) -> f64,
) -> f64 {
    let mut ideal = gains.to_vec();
    ideal.sort_by(|left, right| right.total_cmp(left));
    let best = discounted(ideal.into_iter().take(k));
    if best <= 0.0 {
        return 0.0;
    }
    let mut seen = HashSet::new();
    let got =
        ranking.iter().take(k).map(|entry| if seen.insert(entry) { gain(entry) } else { 0.0 });
    discounted(got) / best
}

fn discounted(gains: impl Iterator<Item = f64>) -> f64 {
    gains.zip(2_u32..).map(|(gain, place)| gain / f64::from(place).log2()).sum()
}

#[expect(clippy::cast_precision_loss, reason = "counts of labels are far below 2^52")]
fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recall_counts_needs_and_not_entries() {
        let needs = [vec!["a", "b"], vec!["c"]];
        assert!((recall_at(5, &["a", "b"], &needs) - 0.5).abs() < 1e-12);
        assert!((recall_at(5, &["b", "x", "c"], &needs) - 1.0).abs() < 1e-12);
        assert!(recall_at(0, &["b"], &needs) < 1e-12);
        assert!(recall_at::<&str>(5, &["b"], &[]) < 1e-12);
    }

    #[test]
    fn the_first_labelled_entry_gives_the_reciprocal_rank() {
        let needs = [vec!["a", "b"], vec!["c"]];
        assert!((reciprocal_rank(&["x", "c", "a"], &needs) - 0.5).abs() < 1e-12);
        assert!(reciprocal_rank(&["x"], &needs) < 1e-12);
    }

    #[test]
    fn ndcg_is_one_for_the_ideal_order_and_less_for_others() {
        let gain = |entry: &&str| match *entry {
            "best" => 2.0,
            "good" => 1.0,
            _ => 0.0,
        };
        let gains = [1.0, 2.0];
        assert!((ndcg_at(10, &["best", "good"], &gains, gain) - 1.0).abs() < 1e-12);
        let swapped = ndcg_at(10, &["good", "best"], &gains, gain);
        assert!(swapped < 1.0 && swapped > 0.8, "{swapped}");
        assert!(ndcg_at(10, &["best", "best"], &gains, gain) < 0.77);
        assert!(ndcg_at(10, &["best"], &[], gain) < 1e-12);
    }
}
