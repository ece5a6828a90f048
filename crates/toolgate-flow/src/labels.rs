//! What is said of servers and tools.

use serde::{Deserialize, Serialize};

/// What is said of a tool's results, or of what it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Label {
    /// What it returns is not for everybody.
    Private,
    /// What it returns may have been written by anybody, and may try to steer who reads it.
    Untrusted,
    /// What it is given can leave the house.
    Egress,
}

/// A set of labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Labels(u8);

impl Label {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Private, Self::Untrusted, Self::Egress];

    /// Its name in a configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Untrusted => "untrusted",
            Self::Egress => "egress",
        }
    }

    /// The label of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|label| label.name() == name)
    }

    fn bit(self) -> u8 {
        match self {
            Self::Private => 1,
            Self::Untrusted => 2,
            Self::Egress => 4,
        }
    }
}

impl Labels {
    /// No label.
    pub const NONE: Self = Self(0);

    /// Whether it is one of them.
    pub fn contains(self, label: Label) -> bool {
        self.0 & label.bit() != 0
    }

    /// Those of both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// One after the other.
    pub fn iter(self) -> impl Iterator<Item = Label> {
        Label::ALL.into_iter().filter(move |label| self.contains(*label))
    }
}

impl FromIterator<Label> for Labels {
    fn from_iter<I: IntoIterator<Item = Label>>(labels: I) -> Self {
        Self(labels.into_iter().fold(0, |bits, label| bits | label.bit()))
    }
}

impl std::fmt::Display for Labels {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, label) in self.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(formatter, "{separator}{}", label.name())?;
        }
        Ok(())
    }
}
