//! Asking a person whether a call may be made.
//!
//! There are three ways, in this order: an elicitation to the client that made the call, whoever
//! else is there ([`Asker`], the person at a terminal), and the queue of approvals in the journal. A
//! model is never asked: no tool and no script leads here.

mod elicit;
mod inquiry;

use std::fmt;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

pub(crate) use elicit::elicit;
pub use inquiry::Inquiry;
pub(crate) use inquiry::rule;

/// Somebody who can be asked now.
pub trait Asker: fmt::Debug + Send + Sync {
    /// Asks. `None` where there is no answer after all, so that the next way is taken.
    fn ask<'a>(&'a self, inquiry: &'a Inquiry) -> BoxFuture<'a, Option<PersonAnswer>>;
}

/// What a person said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PersonAnswer {
    /// Yes.
    Allow {
        /// For how long.
        lasts: Lasts,
        /// Whether only with the arguments that were shown.
        these_arguments: bool,
    },
    /// No.
    Deny,
}

/// How long a person's yes holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lasts {
    /// For this call.
    Once,
    /// For the run that makes it.
    Run,
    /// For the conversation.
    Session,
    /// Until it is revoked.
    Always,
}

impl PersonAnswer {
    /// Yes, to this call.
    pub const ONCE: Self = Self::Allow { lasts: Lasts::Once, these_arguments: true };
}

impl Lasts {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Run => "run",
            Self::Session => "session",
            Self::Always => "always",
        }
    }
}
