//! The error of a call.

use serde_json::{Value, json};
use thiserror::Error;
use toolgate_mcp::{ErrorObject, meta};
use toolgate_store::QuestionReference;
use toolgate_upstream::{CallError, RequestError};

use crate::limits::CallLimitReached;
use crate::validate::{InvalidArguments, Uncheckable};

/// The most data of a server's error that is passed on beside its text.
const MAX_DATA_BYTES: usize = 16 * 1024;

/// Why a call has no result.
#[derive(Debug, Error)]
pub enum BrokerError {
    /// No tool has this name. Nothing was sent.
    #[error("there is no tool `{name}`{}", suggestion(nearest))]
    UnknownTool {
        /// The name that was called.
        name: String,
        /// Similar names.
        nearest: Vec<String>,
    },
    /// The arguments do not match the schema. Nothing was sent.
    #[error(transparent)]
    InvalidArguments(#[from] InvalidArguments),
    /// The schema does not compile, so arguments cannot be checked. Nothing was sent.
    #[error(transparent)]
    Uncheckable(#[from] Uncheckable),
    /// The call was denied. Nothing was sent. Calls of other tools, or with other arguments, may be
    /// allowed.
    #[error("`{tool}` was not called: {why}")]
    Denied {
        /// The tool's exposed name.
        tool: String,
        /// Who denied it, and why.
        why: String,
    },
    /// The call needs an approval, and nobody was there to give it. Nothing was sent. After the
    /// approval the same call goes through.
    #[error(
        "`{tool}` was not called: waiting for approval, question {reference}. Only a person can allow it: \
         `toolgate approve`, in a terminal of their own, shows the question and asks them. Then make the \
         same call again"
    )]
    Waiting {
        /// Names the question in the queue; it does not answer it.
        reference: QuestionReference,
        /// The tool's exposed name.
        tool: String,
    },
    /// A limit does not allow the call now. Nothing was sent.
    #[error("`{tool}` was not called: {reached}")]
    Limited {
        /// The tool's exposed name.
        tool: String,
        /// The limit, and until when it refuses.
        reached: Box<CallLimitReached>,
    },
    /// The audit log is required and cannot be written. Nothing was sent.
    #[error("`{tool}` was not called: `audit.required` is set, and {why}")]
    Unrecorded {
        /// The tool's exposed name.
        tool: String,
        /// Why nothing can be written.
        why: String,
    },
    /// The journal of the run cannot be written, so it would be unknown later what the run did.
    /// Nothing was sent.
    #[error("`{tool}` was not called: {why}")]
    Unwritten {
        /// The tool's exposed name.
        tool: String,
        /// What is wrong with the journal.
        why: String,
    },
    /// The model that the call asked gave no answer that can be used. The value was sent to it.
    #[error("{why}")]
    NoAnswer {
        /// The name of the function.
        tool: String,
        /// What was wrong, which may quote the model.
        why: String,
    },
    /// No request has this method. Nothing was sent.
    #[error("{0} is no method")]
    UnknownMethod(String),
    /// A raw connection has no result: the server answered with an error, or could not be reached.
    #[error("{0}")]
    Raw(RequestError),
    /// The server has no result. The error says whether the call may have had an effect.
    #[error("{0}")]
    Call(Box<CallError>),
}

impl BrokerError {
    /// Whether nothing was sent, because what the request was judged by has changed meanwhile.
    pub(crate) fn is_outdated(&self) -> bool {
        matches!(self, Self::Call(error) if matches!(**error, CallError::DefinitionChanged { .. }))
    }

    /// The same error with another name of the tool, for a client that does not know the exposed
    /// name.
    #[must_use]
    pub fn of_tool(mut self, name: &str) -> Self {
        match &mut self {
            Self::Denied { tool, .. }
            | Self::Waiting { tool, .. }
            | Self::Limited { tool, .. }
            | Self::Unrecorded { tool, .. }
            | Self::NoAnswer { tool, .. }
            | Self::Unwritten { tool, .. } => name.clone_into(tool),
            Self::UnknownTool { .. }
            | Self::InvalidArguments(_)
            | Self::Uncheckable(_)
            | Self::UnknownMethod(_)
            | Self::Raw(_)
            | Self::Call(_) => {}
        }
        self
    }
}

impl BrokerError {
    /// The error for programs, as `_meta` of a result or `data` of a JSON-RPC error.
    pub fn data(&self) -> Option<Value> {
        match self {
            Self::Limited { reached, .. } => Some(json!({ "toolgate/limit": reached.to_value() })),
            Self::Call(error) => match &**error {
                CallError::Refused { error, .. } => Some(json!({ meta::ERROR: said(error) })),
                _ => None,
            },
            _ => None,
        }
    }
}

impl From<CallError> for BrokerError {
    fn from(error: CallError) -> Self {
        Self::Call(Box::new(error))
    }
}

/// The error of a server without its text. Data that is too long is left out.
fn said(error: &ErrorObject) -> Value {
    let mut said = json!({ "code": error.code });
    let data = error.data.as_ref().filter(|data| data.to_string().len() <= MAX_DATA_BYTES);
    if let Some(data) = data {
        said["data"] = data.clone();
    }
    said
}

fn suggestion(nearest: &[String]) -> String {
    match nearest {
        [] => "; a search finds those there are".to_owned(),
        [only] => format!("; did you mean `{only}`?"),
        [others @ .., last] => format!("; did you mean `{}` or `{last}`?", others.join("`, `")),
    }
}
