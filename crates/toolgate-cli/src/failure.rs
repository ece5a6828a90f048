//! Why a command could not do its work, and the way out.

use std::{fmt, process::ExitCode};

use toolgate_catalog::nearest;
use toolgate_config::Problem;

/// What programs exit with after Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;

/// What went wrong, for a person.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    hints: Vec<String>,
    code: u8,
}

impl Failure {
    /// Something could not be done: exit code 1.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hints: Vec::new(), code: 1 }
    }

    /// What was asked for is wrong, the arguments or the configuration: exit code 2.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { code: 2, ..Self::new(message) }
    }

    /// The person did not want to wait: what programs exit with after Ctrl-C.
    pub(crate) fn interrupted(message: impl Into<String>) -> Self {
        Self { code: INTERRUPTED, ..Self::new(message) }
    }

    /// Something that was named is not there: says what may have been meant, or else what there is.
    pub(crate) fn meaning<'a>(self, name: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        /// More would be a list that nobody reads.
        const LISTED: usize = 10;
        let known: Vec<&str> = known.into_iter().collect();
        match (nearest(name, known.iter().copied(), 3).as_slice(), known.as_slice()) {
            ([], []) => self,
            ([], known) if known.len() > LISTED => self,
            ([], known) => self.hint(format!("there are: {}", known.join(", "))),
            (near, _) => self.hint(format!("did you mean {}?", near.join(" or "))),
        }
    }

    /// Adds a way out.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl From<&Problem> for Failure {
    /// Something in the configuration is in the way.
    fn from(problem: &Problem) -> Self {
        let Problem { source, position, message, .. } = problem;
        let failure = Self::usage(format!("{source}:{position}: {message}"));
        match &problem.hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "error: {}", self.message)?;
        self.hints.iter().try_for_each(|hint| write!(formatter, "\n  hint: {hint}"))
    }
}
