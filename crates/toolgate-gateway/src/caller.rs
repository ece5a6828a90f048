//! Who asks.

use std::{fmt, sync::Arc};

/// An identity that the endpoint has established. What one caller began, no other can go on with.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Caller(Arc<str>);

/// No identity that the endpoint makes of a token is this.
const LOCAL: &str = "local";

impl Caller {
    /// Whoever can reach a loopback address or our stdin: one and the same person.
    pub fn local() -> Self {
        Self::named(LOCAL)
    }

    /// Whether it is [`Caller::local`].
    pub fn is_local(&self) -> bool {
        &*self.0 == LOCAL
    }

    /// A caller that was told apart from others by `identity`, which is no secret.
    pub fn named(identity: &str) -> Self {
        Self(identity.into())
    }

    /// The identity.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Caller({})", self.0)
    }
}
