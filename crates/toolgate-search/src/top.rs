//! Keeps the best of many candidates.

use std::{cmp::Ordering, collections::BinaryHeap};

use crate::{query::Hit, text::ToolKey};

/// A tool that may be among the best.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Candidate<'i> {
    pub(crate) score: f32,
    pub(crate) key: &'i ToolKey,
    pub(crate) server: &'i str,
    /// How well it fits, if that is known.
    pub(crate) fit: Option<f32>,
}

impl Eq for Candidate<'_> {}

impl PartialOrd for Candidate<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The better candidate is the lesser, so that the top of the heap is the worst one. Equal scores
/// are ordered by key, and then by server.
impl Ord for Candidate<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        other
            .score
            .total_cmp(&self.score)
            .then_with(|| self.key.cmp(other.key))
            .then_with(|| self.server.cmp(other.server))
    }
}

/// Keeps the best `limit` candidates.
#[derive(Debug)]
pub(crate) struct Top<'i> {
    limit: usize,
    heap: BinaryHeap<Candidate<'i>>,
    /// The lowest score that is accepted.
    threshold: f32,
}

impl<'i> Top<'i> {
    pub(crate) fn new(limit: usize) -> Self {
        let threshold = if limit == 0 { f32::INFINITY } else { f32::NEG_INFINITY };
        Self { limit, heap: BinaryHeap::new(), threshold }
    }

    /// A fast check before [`Self::offer`], which may compare names.
    pub(crate) fn may_enter(&self, score: f32) -> bool {
        score >= self.threshold
    }

    pub(crate) fn offer(&mut self, candidate: Candidate<'i>) {
        if self.heap.len() < self.limit {
            self.heap.push(candidate);
        } else if let Some(mut worst) = self.heap.peek_mut()
            && candidate < *worst
        {
            *worst = candidate;
        }
        if self.heap.len() == self.limit
            && let Some(worst) = self.heap.peek()
        {
            self.threshold = worst.score;
        }
    }

    pub(crate) fn into_hits(self) -> Vec<Hit> {
        let sorted = self.heap.into_sorted_vec();
        sorted
            .into_iter()
            .map(|best| Hit { fit: best.fit, ..Hit::new(best.key.clone(), best.score) })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_are_kept_in_order_whatever_the_order_of_offers() {
        let keys = ["d", "b", "a", "c"].map(ToolKey::from);
        let scores = [1.0, 2.0, 2.0, 3.0];
        let mut offers: Vec<_> = keys
            .iter()
            .zip(scores)
            .map(|(key, score)| Candidate { score, key, server: "s", fit: None })
            .collect();
        for _ in 0..offers.len() {
            offers.rotate_left(1);
            let mut top = Top::new(3);
            for offer in &offers {
                if top.may_enter(offer.score) {
                    top.offer(*offer);
                }
            }
            let hits: Vec<_> = top.into_hits().iter().map(|hit| hit.key.to_string()).collect();
            assert_eq!(hits, ["c", "a", "b"]);
        }
    }

    #[test]
    fn none_wanted_none_kept() {
        let key = ToolKey::from("a");
        let mut top = Top::new(0);
        assert!(!top.may_enter(1.0));
        top.offer(Candidate { score: 1.0, key: &key, server: "s", fit: None });
        assert!(top.into_hits().is_empty());
    }
}
