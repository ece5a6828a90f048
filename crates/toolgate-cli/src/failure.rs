//! Why a command failed, and what to do about it.

use std::{fmt, process::ExitCode};

use toolgate_catalog::nearest;
use toolgate_config::Problem;
use toolgate_store::{AuditError, DamagedChoices, JournalError, StoreError};

/// The result of a command.
pub(crate) type CommandResult = Result<ExitCode, Failure>;

/// The exit code after Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;

/// An error message for a person, with hints and an exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    hints: Vec<String>,
    code: u8,
}

impl Failure {
    /// The command failed: exit code 1.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hints: Vec::new(), code: 1 }
    }

    /// The arguments or the configuration are wrong: exit code 2.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { code: 2, ..Self::new(message) }
    }

    /// The person pressed Ctrl-C: exit code 130.
    pub(crate) fn interrupted(message: impl Into<String>) -> Self {
        Self { code: INTERRUPTED, ..Self::new(message) }
    }

    /// Adds a hint for an unknown name: similar names, or all names if they are few.
    pub(crate) fn meaning<'a>(self, name: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        /// A longer list would not be read.
        const LISTED: usize = 10;
        let known: Vec<&str> = known.into_iter().collect();
        match (nearest(name, known.iter().copied(), 3).as_slice(), known.as_slice()) {
            ([], []) => self,
            ([], known) if known.len() > LISTED => self,
            ([], known) => self.hint(format!("there are: {}", known.join(", "))),
            (near, _) => self.hint(format!("did you mean {}?", near.join(" or "))),
        }
    }

    /// Adds a hint: what to do.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds a hint, if there is one.
    pub(crate) fn hint_if(self, hint: Option<&str>) -> Self {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// The message in one line, without an excerpt of the file, which may contain a secret.
    pub(crate) fn first_line(&self) -> &str {
        self.message.lines().next().unwrap_or_default()
    }

    /// What to do.
    pub(crate) fn hints(&self) -> &[String] {
        &self.hints
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl From<&Problem> for Failure {
    /// A problem of the configuration that stops the command.
    fn from(problem: &Problem) -> Self {
        let Problem { source, position, message, .. } = problem;
        Self::usage(format!("{source}:{position}: {message}")).hint_if(problem.hint.as_deref())
    }
}

impl From<JournalError> for Failure {
    fn from(error: JournalError) -> Self {
        Self::new(error.to_string()).hint_if(error.remedy())
    }
}

impl From<DamagedChoices> for Failure {
    fn from(error: DamagedChoices) -> Self {
        Self::new(error.to_string()).hint(
            "correct it, or remove it: then all servers are enabled, and none of a registry approved",
        )
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<AuditError> for Failure {
    fn from(error: AuditError) -> Self {
        Self::new(error.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "error: {}", self.message)?;
        self.hints.iter().try_for_each(|hint| write!(formatter, "\n  hint: {hint}"))
    }
}
