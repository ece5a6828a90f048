//! What became of every call, at both ends.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
};

use parking_lot::Mutex;
use serde_json::Value;

use crate::SoakError;

/// What a client heard of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Heard {
    /// The result, and it was this call's.
    Answer,
    /// An error, in these words.
    Refusal(String),
    /// A result that belongs to another call.
    Mixed(String),
    /// Nothing, or nothing that is an answer.
    Nothing(String),
}

/// What the two ends say of the calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls that clients made.
    pub made: u64,
    /// Calls whose result came back.
    pub answered: u64,
    /// Calls that ended in an error, as they do where a server crashes.
    pub refused: u64,
    /// Of those, the ones that had reached their server.
    pub refused_but_arrived: u64,
    /// How often each error came.
    pub errors: BTreeMap<String, u64>,
    /// Calls that servers wrote down.
    pub arrived: u64,
}

/// What clients heard.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    calls: Mutex<HashMap<String, Heard>>,
    answered: AtomicU64,
}

/// How many problems of a kind are told one by one.
const TOLD: usize = 5;

impl Ledger {
    /// Keeps what became of a call.
    pub(super) fn heard(&self, id: String, heard: Heard) {
        if heard == Heard::Answer {
            self.answered.fetch_add(1, Ordering::Relaxed);
        }
        self.calls.lock().insert(id, heard);
    }

    pub(super) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Compares with what the servers wrote down.
    pub(super) fn compare(
        &self,
        logs: &[PathBuf],
        problems: &mut Vec<String>,
    ) -> Result<Counts, SoakError> {
        let arrivals = read_logs(logs)?;
        let calls = self.calls.lock();
        let mut counts = Counts { made: calls.len() as u64, ..Counts::default() };
        let mut found = Vec::new();
        for (id, heard) in calls.iter() {
            let times = arrivals.get(id).copied().unwrap_or_default();
            match heard {
                Heard::Answer if times == 0 => {
                    found.push(format!("{id} was answered and never arrived"));
                }
                Heard::Mixed(other) => found.push(format!("{id} got the answer of {other}")),
                Heard::Nothing(what) => found.push(format!("{id} was never answered: {what}")),
                Heard::Refusal(words) => {
                    counts.refused += 1;
                    *counts.errors.entry(words.clone()).or_default() += 1;
                    counts.refused_but_arrived += times.min(1);
                }
                Heard::Answer => counts.answered += 1,
            }
        }
        for (id, times) in &arrivals {
            counts.arrived += times;
            if *times > 1 {
                found.push(format!("{id} arrived {times} times"));
            }
            if !calls.contains_key(id) {
                found.push(format!("{id} arrived, and nobody made it"));
            }
        }
        let more = found.len().saturating_sub(TOLD);
        problems.extend(found.into_iter().take(TOLD));
        if more > 0 {
            problems.push(format!("and {more} more calls"));
        }
        Ok(counts)
    }
}

/// How often each id arrived.
fn read_logs(logs: &[PathBuf]) -> Result<HashMap<String, u64>, SoakError> {
    let mut arrivals = HashMap::new();
    for log in logs {
        if !log.exists() {
            continue;
        }
        for line in std::fs::read_to_string(log)?.lines() {
            let call: Value = serde_json::from_str(line)?;
            if let Some(id) = call["arguments"]["id"].as_str() {
                *arrivals.entry(id.to_owned()).or_default() += 1;
            }
        }
    }
    Ok(arrivals)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(heard: &[(&str, Heard)], log: &str) -> (Counts, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calls");
        std::fs::write(&path, log).unwrap();
        let ledger = Ledger::default();
        for (id, heard) in heard {
            ledger.heard((*id).to_owned(), heard.clone());
        }
        let mut problems = Vec::new();
        let counts = ledger.compare(&[path, folder.path().join("absent")], &mut problems).unwrap();
        (counts, problems)
    }

    fn line(id: &str) -> String {
        format!("{{\"name\":\"echo\",\"arguments\":{{\"id\":\"{id}\"}}}}\n")
    }

    #[test]
    fn calls_that_are_in_order_are_counted() {
        let refused = || Heard::Refusal("it stopped".to_owned());
        let heard = [("a", Heard::Answer), ("b", refused()), ("c", refused())];
        let (counts, problems) = compared(&heard, &(line("a") + &line("b")));
        assert!(problems.is_empty(), "{problems:?}");
        let errors = BTreeMap::from([("it stopped".to_owned(), 2)]);
        let expected =
            Counts { made: 3, answered: 1, refused: 2, refused_but_arrived: 1, errors, arrived: 2 };
        assert_eq!(counts, expected);
    }

    #[test]
    fn every_disagreement_is_told() {
        let heard = [
            ("a", Heard::Answer),
            ("b", Heard::Answer),
            ("c", Heard::Mixed("b".into())),
            ("d", Heard::Nothing("closed".into())),
        ];
        let (_, mut problems) = compared(&heard, &(line("b") + &line("b") + &line("x")));
        problems.sort();
        assert_eq!(
            problems,
            [
                "a was answered and never arrived",
                "b arrived 2 times",
                "c got the answer of b",
                "d was never answered: closed",
                "x arrived, and nobody made it",
            ]
        );
    }
}
