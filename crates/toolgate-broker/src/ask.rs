//! Asking a person whether a call may be made.
//!
//! There are three ways, in this order: an elicitation to the client that made the call, whoever
//! else is there ([`Asker`], the person at a terminal), and the queue of approvals in the journal. A
//! model is never asked: no tool and no script leads here.

mod arguments;
mod elicit;
mod inquiry;

use std::fmt;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_policy::{ArgumentConditions, Verdict};

pub(crate) use elicit::elicit;
pub use inquiry::Inquiry;
pub(crate) use inquiry::rule;

/// Somebody who can be asked now.
pub trait Asker: fmt::Debug + Send + Sync {
    /// Asks. `None` where there is no answer after all, so that the next way is taken.
    fn ask<'a>(&'a self, inquiry: &'a Inquiry) -> BoxFuture<'a, Option<PersonAnswer>>;
}

/// What a person said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PersonAnswer {
    /// Yes.
    Allow {
        /// For how long.
        lasts: Lasts,
        /// With which arguments.
        extent: Extent,
    },
    /// No.
    Deny,
}

/// With which arguments a person's yes holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Extent {
    /// With any.
    Any,
    /// With those that were shown. A yes to one call never means others.
    These,
    /// With those that certainly fit.
    Where(ArgumentConditions),
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
    pub const ONCE: Self = Self::Allow { lasts: Lasts::Once, extent: Extent::These };
}

impl Extent {
    /// Whether it covers the arguments of the call that was asked for.
    pub(crate) fn covers(&self, arguments: &Value) -> bool {
        match self {
            Self::Any | Self::These => true,
            Self::Where(conditions) => conditions.apply(arguments, Verdict::Allow),
        }
    }
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
