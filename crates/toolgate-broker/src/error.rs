//! Why a call has no result.

use thiserror::Error;
use toolgate_upstream::CallError;

use crate::validate::{InvalidArguments, Uncheckable};

/// Why a call has no result.
#[derive(Debug, Error)]
pub enum BrokerError {
    /// There is no such tool. Nothing was sent.
    #[error("there is no tool `{name}`{}", suggestion(nearest))]
    UnknownTool {
        /// What was asked for.
        name: String,
        /// What may have been meant.
        nearest: Vec<String>,
    },
    /// The arguments do not fit. Nothing was sent.
    #[error(transparent)]
    InvalidArguments(#[from] InvalidArguments),
    /// The schema is broken, so that arguments cannot be checked. Nothing was sent.
    #[error(transparent)]
    Uncheckable(#[from] Uncheckable),
    /// The call may not be made. Nothing was sent; calls of other tools, or with other arguments,
    /// may still go through.
    #[error("`{tool}` was not called: {why}")]
    Denied {
        /// The tool's exposed name.
        tool: String,
        /// Who said no, and why.
        why: String,
    },
    /// A person has to be asked, and was not there. Nothing was sent; once they said yes, the same
    /// call goes through.
    #[error(
        "`{tool}` was not called: waiting for approval, id {id}. A person runs `toolgate approve {id}`; \
         then make the same call again"
    )]
    Waiting {
        /// The question, in the queue of approvals.
        id: String,
        /// The tool's exposed name.
        tool: String,
    },
    /// The record cannot be written, and has to be. Nothing was sent, and nothing will be until it can.
    #[error(
        "`{tool}` was not called: the audit log cannot be written, and `audit.required` is set"
    )]
    Unrecorded {
        /// The tool's exposed name.
        tool: String,
    },
    /// The run cannot be written down, so that it cannot be known later what it did. Nothing was sent.
    #[error("`{tool}` was not called: {why}")]
    Unwritten {
        /// The tool's exposed name.
        tool: String,
        /// What is wrong with the journal.
        why: String,
    },
    /// The server has no result; the error says whether the call may have had an effect.
    #[error("{0}")]
    Call(Box<CallError>),
}

impl BrokerError {
    /// The same for whoever knows the tool by another name than the exposed one.
    #[must_use]
    pub fn of_tool(mut self, name: &str) -> Self {
        match &mut self {
            Self::Denied { tool, .. }
            | Self::Waiting { tool, .. }
            | Self::Unrecorded { tool }
            | Self::Unwritten { tool, .. } => name.clone_into(tool),
            Self::UnknownTool { .. }
            | Self::InvalidArguments(_)
            | Self::Uncheckable(_)
            | Self::Call(_) => {}
        }
        self
    }
}

impl From<CallError> for BrokerError {
    fn from(error: CallError) -> Self {
        Self::Call(Box::new(error))
    }
}

fn suggestion(nearest: &[String]) -> String {
    match nearest {
        [] => "; a search finds those there are".to_owned(),
        [only] => format!("; did you mean `{only}`?"),
        [others @ .., last] => format!("; did you mean `{}` or `{last}`?", others.join("`, `")),
    }
}
