//! What may become of a call, and what holds where no rule speaks.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What becomes of a call. The order is that of strictness: `Allow < Ask < Deny`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It goes through.
    Allow,
    /// A person is asked first.
    Ask,
    /// It is refused, and nobody can grant it.
    Deny,
}

/// What holds for a tool that no rule speaks of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Every call goes through. So it is without a policy.
    #[default]
    Allow,
    /// Calls of read-only tools go through, a person is asked for the others.
    Ask,
    /// A person is asked for every call.
    AskAlways,
    /// Calls of read-only tools go through, the others are refused.
    DenyWrites,
    /// Every call is refused that no rule lets through.
    Deny,
}

/// Whose claims of harmlessness count: that a tool only reads, that it destroys nothing.
///
/// A claim that a tool does harm always counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Claims {
    /// Those of every server.
    #[default]
    All,
    /// Those of servers with `trusted: true`.
    Trusted,
}

/// How it is judged which data a call carries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FlowMode {
    /// It is not: rules about flows never apply.
    Off,
    /// By content: what of earlier results is found in the arguments.
    #[default]
    Content,
    /// By labels alone: whatever the run has touched may be in the arguments, however it is hidden.
    Labels,
}

/// What becomes of tools that a known server did not have before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NewTools {
    /// They are used, and pinned as they are.
    #[default]
    Allow,
    /// They are held back until somebody approves them.
    Hold,
}

/// What becomes of tools in whose definition something is suspicious: hidden characters, instructions
/// aimed at the model, a name that can be taken for another's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Findings {
    /// They are told of, and used.
    #[default]
    Warn,
    /// They are held back until somebody approves them.
    Hold,
}

impl Verdict {
    /// The word that the configuration uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl Mode {
    /// What holds for a tool, by whether it counts as read-only.
    pub fn verdict(self, read_only: bool) -> Verdict {
        match self {
            Self::Allow => Verdict::Allow,
            Self::Ask | Self::DenyWrites if read_only => Verdict::Allow,
            Self::Ask | Self::AskAlways => Verdict::Ask,
            Self::DenyWrites | Self::Deny => Verdict::Deny,
        }
    }

    /// Whether it makes a difference that a tool only reads.
    pub fn heeds_read_only(self) -> bool {
        self.verdict(true) != self.verdict(false)
    }

    /// The word that the configuration uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::AskAlways => "ask-always",
            Self::DenyWrites => "deny-writes",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_is_never_judged_more_strictly_than_writing() {
        for mode in [Mode::Allow, Mode::Ask, Mode::AskAlways, Mode::DenyWrites, Mode::Deny] {
            assert!(mode.verdict(true) <= mode.verdict(false), "{mode}");
        }
        assert_eq!(Mode::Ask.verdict(true), Verdict::Allow);
        assert_eq!(Mode::DenyWrites.verdict(false), Verdict::Deny);
        assert!(!Mode::Deny.heeds_read_only());
    }
}
