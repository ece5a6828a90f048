//! The seam behind which a model chooses among candidates.

use std::{collections::HashSet, fmt, future::Future, pin::Pin};

use thiserror::Error;

/// Chooses tools for a request from candidates that a strategy found.
///
/// What it answers is not trusted: [`ChoiceRequest::order`] takes the names that were offered.
pub trait Chooser: fmt::Debug + Send + Sync {
    /// The names of the tools that fit, best first. Whoever asks limits the time.
    fn choose<'a>(&'a self, request: &'a ChoiceRequest) -> Choosing<'a>;
}

/// The answer of a [`Chooser`], to be waited for.
pub type Choosing<'a> = Pin<Box<dyn Future<Output = Result<Vec<String>, ChoiceError>> + Send + 'a>>;

/// What is chosen from, and for what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChoiceRequest {
    /// What is looked for.
    pub queries: Vec<String>,
    /// What there is, best first by the strategy that found them.
    pub candidates: Vec<ChoiceCandidate>,
    /// How many are wanted at most.
    pub limit: usize,
}

/// A tool that can be chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChoiceCandidate {
    /// Its exposed name.
    pub name: String,
    /// What it does, in its server's words.
    pub description: String,
    /// Its parameters, in a form to be read.
    pub signature: String,
}

/// Why nothing was chosen. The candidates stand as they were found.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{reason}")]
pub struct ChoiceError {
    /// What went wrong, without credentials.
    pub reason: String,
}

impl ChoiceRequest {
    /// The places of the candidates: those that were chosen in the order of the answer, then the
    /// others as they were. A name that was not offered counts for nothing, nor does one that comes
    /// twice. `None` where no candidate is left that was chosen.
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
    fn only_what_was_offered_can_be_chosen_and_once() {
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
