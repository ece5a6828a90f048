//! The interface of a model that chooses among candidates.

use std::{collections::HashSet, fmt, future::Future, pin::Pin};

use thiserror::Error;

/// Chooses tools for a request from candidates that a strategy found.
///
/// The result is not trusted: [`ChoiceRequest::order`] accepts only names of candidates.
pub trait Chooser: fmt::Debug + Send + Sync {
    /// The names of the tools that fit, best first. The caller limits the time.
    fn choose<'a>(&'a self, request: &'a ChoiceRequest) -> Choosing<'a>;
}

/// The future of [`Chooser::choose`].
pub type Choosing<'a> = Pin<Box<dyn Future<Output = Result<Vec<String>, ChoiceError>> + Send + 'a>>;

/// The queries and the candidates of a choice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChoiceRequest {
    /// The queries.
    pub queries: Vec<String>,
    /// The candidates, in the order of the strategy that found them.
    pub candidates: Vec<ChoiceCandidate>,
    /// The largest number of tools to choose.
    pub limit: usize,
}

/// A tool that can be chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChoiceCandidate {
    /// Its exposed name.
    pub name: String,
    /// The description from its server.
    pub description: String,
    /// Its parameters as text.
    pub signature: String,
}

/// Why nothing was chosen. The candidates keep their order.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{reason}")]
pub struct ChoiceError {
    /// The reason, without credentials.
    pub reason: String,
}

impl ChoiceRequest {
    /// The positions of the candidates: first the chosen ones in the order of `chosen`, then the
    /// others in their order. Names that are unknown or repeated are ignored. `None` if no candidate
    /// was chosen.
    pub fn order(&self, chosen: &[String]) -> Option<Vec<usize>> {
        let place = |name: &String| {
            let name = name.trim();
            self.candidates.iter().position(|candidate| candidate.name == name)
        };
        let mut seen = HashSet::new();
        let first: Vec<usize> =
            chosen.iter().filter_map(place).filter(|place| seen.insert(*place)).collect();
        let rest = (0..self.candidates.len()).filter(|place| !seen.contains(place));
        (!first.is_empty()).then(|| first.iter().copied().chain(rest).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_candidates_can_be_chosen_and_only_once() {
        let candidate =
            |name: &str| ChoiceCandidate { name: name.into(), ..ChoiceCandidate::default() };
        let candidates = ["a", "b", "c"].map(candidate).to_vec();
        let request = ChoiceRequest { candidates, ..ChoiceRequest::default() };
        let order = |names: &[&str]| {
            request.order(&names.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(order(&["c", "invented", " a ", "c"]), Some(vec![2, 0, 1]));
        assert_eq!(order(&["invented", "A"]), None);
        assert_eq!(order(&[]), None);
    }
}
