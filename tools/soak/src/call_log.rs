//! Compares how every call ended for its client with what the servers logged.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
};

use parking_lot::Mutex;
use serde_json::Value;

use crate::SoakError;

/// How a call ended for the client that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallEnding {
    /// The result, and it was this call's.
    Answered,
    /// An error, with this message.
    Failed(String),
    /// A result that belongs to another call.
    Mixed(String),
    /// Nothing, or nothing that is an answer.
    Unanswered(String),
}

/// The numbers of calls, from the clients and from the logs of the servers.
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
    /// Calls that servers logged.
    pub arrived: u64,
}

/// How every call ended for its client.
#[derive(Debug, Default)]
pub(super) struct CallLog {
    calls: Mutex<HashMap<String, CallEnding>>,
    answered: AtomicU64,
}

/// The number of problems of a kind that the report lists.
const MAX_SHOWN: usize = 5;

impl CallLog {
    /// Records the end of a call.
    pub(super) fn record(&self, id: String, ending: CallEnding) {
        if ending == CallEnding::Answered {
            self.answered.fetch_add(1, Ordering::Relaxed);
        }
        self.calls.lock().insert(id, ending);
    }

    pub(super) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Compares the clients' records with the logs of the servers.
    pub(super) fn compare(
        &self,
        logs: &[PathBuf],
        problems: &mut Vec<String>,
    ) -> Result<Counts, SoakError> {
        let arrivals = read_logs(logs)?;
        let calls = self.calls.lock();
        let mut counts = Counts { made: calls.len() as u64, ..Counts::default() };
        let mut mismatches = Vec::new();
        for (id, ending) in calls.iter() {
            let times = arrivals.get(id).copied().unwrap_or_default();
            match ending {
                CallEnding::Answered if times == 0 => {
                    mismatches.push(format!("{id} was answered and never arrived"));
                }
                CallEnding::Mixed(other) => {
                    mismatches.push(format!("{id} got the answer of {other}"));
                }
                CallEnding::Unanswered(what) => {
                    mismatches.push(format!("{id} was never answered: {what}"));
                }
                CallEnding::Failed(message) => {
                    counts.refused += 1;
                    *counts.errors.entry(message.clone()).or_default() += 1;
                    counts.refused_but_arrived += times.min(1);
                }
                CallEnding::Answered => counts.answered += 1,
            }
        }
        for (id, times) in &arrivals {
            counts.arrived += times;
            if *times > 1 {
                mismatches.push(format!("{id} arrived {times} times"));
            }
            if !calls.contains_key(id) {
                mismatches.push(format!("{id} arrived, and nobody made it"));
            }
        }
        let more = mismatches.len().saturating_sub(MAX_SHOWN);
        problems.extend(mismatches.into_iter().take(MAX_SHOWN));
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

    fn compared(endings: &[(&str, CallEnding)], log: &str) -> (Counts, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calls");
        std::fs::write(&path, log).unwrap();
        let call_log = CallLog::default();
        for (id, ending) in endings {
            call_log.record((*id).to_owned(), ending.clone());
        }
        let mut problems = Vec::new();
        let counts =
            call_log.compare(&[path, folder.path().join("absent")], &mut problems).unwrap();
        (counts, problems)
    }

    fn line(id: &str) -> String {
        format!("{{\"name\":\"echo\",\"arguments\":{{\"id\":\"{id}\"}}}}\n")
    }

    #[test]
    fn calls_that_are_in_order_are_counted() {
        let refused = || CallEnding::Failed("it stopped".to_owned());
        let endings = [("a", CallEnding::Answered), ("b", refused()), ("c", refused())];
        let (counts, problems) = compared(&endings, &(line("a") + &line("b")));
        assert!(problems.is_empty(), "{problems:?}");
        let errors = BTreeMap::from([("it stopped".to_owned(), 2)]);
        let expected =
            Counts { made: 3, answered: 1, refused: 2, refused_but_arrived: 1, errors, arrived: 2 };
        assert_eq!(counts, expected);
    }

    #[test]
    fn every_difference_is_reported() {
        let endings = [
            ("a", CallEnding::Answered),
            ("b", CallEnding::Answered),
            ("c", CallEnding::Mixed("b".into())),
            ("d", CallEnding::Unanswered("closed".into())),
        ];
        let (_, mut problems) = compared(&endings, &(line("b") + &line("b") + &line("x")));
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
