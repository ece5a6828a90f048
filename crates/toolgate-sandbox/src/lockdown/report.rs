//! What is in force.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What holds a worker, as the worker itself says before it reads a script.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockdownReport {
    /// Each thing that was tried, in the order in which it was done.
    pub measures: Vec<Measure>,
}

/// One thing that was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measure {
    /// What.
    pub kind: MeasureKind,
    /// What came of it.
    pub state: MeasureState,
}

/// The things that hold a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum MeasureKind {
    /// It dies with its host.
    ParentDeath,
    /// It has no descriptor but its pipe.
    Descriptors,
    /// Other processes of the user cannot look into it, and it leaves no core dump.
    Undumpable,
    /// It can gain no privilege.
    NoNewPrivileges,
    /// It reaches no file, no port and no process outside (Landlock).
    Landlock,
    /// It can have no further descriptor, process or file, and only so much memory and time.
    Resources,
    /// It can make no system call but those it needs (seccomp).
    SystemCalls,
}

/// Whether a measure is in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum MeasureState {
    /// It is; how far.
    InForce(String),
    /// It is not; why.
    Missing(String),
}

impl LockdownReport {
    /// Notes what came of a measure.
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

    /// What is not in force though no script may run without it on this system.
    pub fn lacking(&self) -> Option<&Measure> {
        let needed = |kind| match kind {
            MeasureKind::Descriptors | MeasureKind::Resources => true,
            MeasureKind::SystemCalls | MeasureKind::NoNewPrivileges => cfg!(target_os = "linux"),
            // Not every kernel has it, and seccomp refuses the same calls.
            MeasureKind::Landlock | MeasureKind::ParentDeath | MeasureKind::Undumpable => false,
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
