//! Verdicts, and the settings that hold without a rule.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The verdict about a call. The order is that of strictness: `Allow < Ask < Deny`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The call is allowed.
    Allow,
    /// A person is asked first.
    Ask,
    /// The call is refused, and no grant can allow it.
    Deny,
}

/// The verdict about tools that no rule matches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Every call is allowed.
    #[default]
    Allow,
    /// For calls of tools that declare themselves destructive a person is asked, where somebody can
    /// be asked; all others are allowed. A configuration without a policy has this mode.
    AskDestructive,
    /// Calls of read-only tools are allowed; for others a person is asked.
    Ask,
    /// For every call a person is asked.
    AskAlways,
    /// Calls of read-only tools are allowed; others are refused.
    DenyWrites,
    /// Every call is refused unless a rule allows it.
    Deny,
}

// The order of the following settings is that of strictness, as with `Verdict`.

/// Which servers' claims of harmlessness count: that a tool is read-only, that it destroys nothing.
///
/// A claim that a tool does harm always counts.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Claims {
    /// Claims of every server count.
    #[default]
    All,
    /// Only claims of servers with `trusted: true` count.
    Trusted,
}

/// How the data of a call is determined.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum FlowMode {
    /// Not at all: rules about data never apply.
    Off,
    /// By content: parts of earlier results that occur in the arguments.
    Content,
    /// By the program: in a script, what its text says about the results of its own calls. For all
    /// other results by content.
    #[default]
    Program,
    /// By labels alone: everything that the run has received may be in the arguments, in any
    /// encoding.
    Labels,
}

/// How tools are treated that a known server did not have before.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum NewTools {
    /// They are used and pinned.
    #[default]
    Allow,
    /// They are held back until a person approves them.
    Hold,
}

/// How tools with suspicious definitions are treated: hidden characters, instructions to the model,
/// names that look like other names.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum FindingsMode {
    /// They are used, with a warning.
    #[default]
    Warn,
    /// They are held back until a person approves them.
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
    /// The verdict about a tool, by whether it counts as read-only and whether it declares itself
    /// destructive.
    pub fn verdict(self, read_only: bool, destructive: bool) -> Verdict {
        match self {
            Self::AskDestructive if destructive => Verdict::Ask,
            Self::Allow | Self::AskDestructive => Verdict::Allow,
            Self::Ask | Self::DenyWrites if read_only => Verdict::Allow,
            Self::Ask | Self::AskAlways => Verdict::Ask,
            Self::DenyWrites | Self::Deny => Verdict::Deny,
        }
    }

    /// Whether the mode treats read-only tools differently.
    pub fn heeds_read_only(self) -> bool {
        self.verdict(true, false) != self.verdict(false, false)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Display for Mode {
    /// Displays the word that the configuration uses.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_is_never_judged_more_strictly_than_writing() {
        for mode in [
            Mode::Allow,
            Mode::AskDestructive,
            Mode::Ask,
            Mode::AskAlways,
            Mode::DenyWrites,
            Mode::Deny,
        ] {
            assert!(mode.verdict(true, false) <= mode.verdict(false, false), "{mode}");
            assert!(mode.verdict(false, false) <= mode.verdict(false, true), "{mode}");
        }
        assert_eq!(Mode::Ask.verdict(true, false), Verdict::Allow);
        assert_eq!(Mode::DenyWrites.verdict(false, false), Verdict::Deny);
        assert_eq!(Mode::AskDestructive.verdict(false, false), Verdict::Allow);
        assert_eq!(Mode::AskDestructive.verdict(false, true), Verdict::Ask);
        assert!(!Mode::Deny.heeds_read_only() && !Mode::AskDestructive.heeds_read_only());
    }
}
