//! The report of a worker about its lockdown.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

/// The measures that restrict a worker, as the worker reports them before it reads a script.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockdownReport {
    /// The measures, in the order in which they were applied.
    pub measures: Vec<Measure>,
    /// The packages of the configuration that Python could not import, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub packages: BTreeMap<String, String>,
}

/// A measure and its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measure {
    /// The kind of the measure.
    pub kind: MeasureKind,
    /// Whether the measure is in force.
    pub state: MeasureState,
}

/// The measures that restrict a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum MeasureKind {
    /// The worker dies with its host.
    ParentDeath,
    /// The worker has no descriptor but its pipe.
    Descriptors,
    /// Other processes of the user cannot inspect the worker, and it leaves no core dump.
    Undumpable,
    /// The worker cannot gain privileges.
    NoNewPrivileges,
    /// The worker has no privileges, even if root started it.
    Capabilities,
    /// The worker sees no user, network, file and process of the system.
    Namespaces,
    /// The worker reaches no file, port or process outside (Landlock).
    Landlock,
    /// The worker cannot open descriptors, start processes or create files, and its memory and time
    /// are limited.
    Resources,
    /// The worker can make only the system calls that it needs (seccomp).
    SystemCalls,
}

/// Whether a measure is in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum MeasureState {
    /// The measure is in force, to this extent.
    InForce(String),
    /// The measure is not in force, for this reason.
    Missing(String),
}

impl LockdownReport {
    /// Adds the result of a measure.
    pub(crate) fn note<E: fmt::Display>(&mut self, kind: MeasureKind, result: Result<String, E>) {
        let state = match result {
            Ok(detail) => MeasureState::InForce(detail),
            Err(error) => MeasureState::Missing(error.to_string()),
        };
        self.measures.push(Measure { kind, state });
    }

    /// Whether a measure is in force.
    pub fn has(&self, kind: MeasureKind) -> bool {
        let in_force = |measure: &&Measure| matches!(measure.state, MeasureState::InForce(_));
        self.measures.iter().filter(in_force).any(|measure| measure.kind == kind)
    }

    /// A required measure that is not in force. No script may run without it on this system.
    pub fn lacking(&self) -> Option<&Measure> {
        let needed = |kind| match kind {
            MeasureKind::Descriptors | MeasureKind::Resources => true,
            MeasureKind::SystemCalls | MeasureKind::NoNewPrivileges => cfg!(target_os = "linux"),
            // Not every system has them, and seccomp refuses the same calls.
            MeasureKind::Landlock
            | MeasureKind::Namespaces
            | MeasureKind::Capabilities
            | MeasureKind::ParentDeath
            | MeasureKind::Undumpable => false,
        };
        self.measures.iter().find(|measure| {
            needed(measure.kind) && matches!(measure.state, MeasureState::Missing(_))
        })
    }
}

impl fmt::Display for MeasureKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::ParentDeath => "ends with its host",
            Self::Descriptors => "no inherited descriptors",
            Self::Undumpable => "not inspectable",
            Self::NoNewPrivileges => "no new privileges",
            Self::Capabilities => "no capabilities",
            Self::Namespaces => "own namespaces",
            Self::Landlock => "no files, no ports (Landlock)",
            Self::Resources => "resource limits",
            Self::SystemCalls => "system calls (seccomp)",
        })
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.state {
            MeasureState::InForce(detail) if detail.is_empty() => self.kind.fmt(formatter),
            MeasureState::InForce(detail) => write!(formatter, "{}: {detail}", self.kind),
            MeasureState::Missing(why) => write!(formatter, "{}: missing: {why}", self.kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_landlock_suffices_and_one_without_seccomp_does_not() {
        let mut report = LockdownReport::default();
        report.note(MeasureKind::Landlock, Err::<String, _>("not in this kernel"));
        assert_eq!(report.lacking(), None);
        report.note(MeasureKind::SystemCalls, Err::<String, _>("refused"));
        if cfg!(target_os = "linux") {
            let lacking = report.lacking().unwrap();
            assert_eq!(lacking.to_string(), "system calls (seccomp): missing: refused");
        }
    }
}
