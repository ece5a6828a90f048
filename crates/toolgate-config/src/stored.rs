//! Values that a configuration refers to and that are stored elsewhere: `${file:PATH}`,
//! `${command:LINE}` and `${keychain:NAME}`.

use std::fmt;

/// The largest value that is read from a file or a command.
pub const MAX_STORED_BYTES: usize = 64 * 1024;

/// Reads a stored value. It gets the reference as it is written.
pub type StoredValues<'a> = &'a dyn Fn(StoredReference<'_>) -> Result<String, StoredValueError>;

/// When the commands of `${command:LINE}` run that are written in the `args`, `env` and `headers` of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CommandTime {
    /// When the file is read.
    #[default]
    Reading,
    /// When the server starts. Until then the reference stays as it is written, and
    /// [`ServerConfig::commands`](crate::ServerConfig::commands) has the line.
    Start,
}

/// A reference to a value that is stored elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StoredReference<'t> {
    /// `${file:PATH}`: the content of a file, without the line break at its end. A relative path starts at
    /// the folder of the configuration, and `~/` at the user's home.
    File(&'t str),
    /// `${command:LINE}`: what a command line of the shell prints, without the line break at its end.
    Command(&'t str),
    /// `${keychain:NAME}`: a value that `toolgate secret set NAME` has stored.
    Keychain(&'t str),
    /// `${input:ID}` of VS Code, which asks for the value: stored like [`StoredReference::Keychain`].
    Input(&'t str),
}

/// Why a stored value is not there. No variant holds a part of a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoredValueError {
    /// Nobody said how to read it.
    #[error("cannot be read here")]
    NoAccess,
    /// The configuration is not trusted, so that nothing is read or run for it.
    #[error("is not used before the file is trusted")]
    NotTrusted,
    /// There is no such file, or nothing is stored under the name.
    #[error("is not there")]
    Missing,
    /// It has more than [`MAX_STORED_BYTES`].
    #[error("is too large")]
    TooLarge,
    /// It is not text.
    #[error("is not UTF-8")]
    NotText,
    /// The command took too long.
    #[error("did not end in time")]
    TimedOut,
    /// The command failed, with its exit code.
    #[error("failed{}", .0.map(|code| format!(" with exit code {code}")).unwrap_or_default())]
    Exited(Option<i32>),
    /// Another reason, which says nothing of the value.
    #[error("cannot be read: {0}")]
    Failed(String),
}

impl<'t> StoredReference<'t> {
    /// The reference that is written between `${` and `}`.
    pub(crate) fn read(inner: &'t str) -> Option<Self> {
        let (kind, rest) = inner.split_once(':')?;
        let is_given = !rest.trim().is_empty();
        Some(match kind {
            "file" if is_given => Self::File(rest),
            "command" if is_given => Self::Command(rest),
            "keychain" if is_given => Self::Keychain(rest),
            "input" if is_given => Self::Input(rest),
            _ => return None,
        })
    }

    /// What to do if the value is not there.
    pub fn hint(&self, error: &StoredValueError) -> String {
        match (self, error) {
            (_, StoredValueError::NotTrusted) => "`toolgate trust` shows it, and asks".to_owned(),
            (_, StoredValueError::TooLarge) => "a value may have at most 65,536 bytes".to_owned(),
            (Self::Keychain(name) | Self::Input(name), _) => {
                format!("store it: `toolgate secret set {name}`")
            }
            (Self::File(_), _) => {
                "correct the path; a relative one starts at the folder of this file".to_owned()
            }
            (Self::Command(_), StoredValueError::TimedOut) => {
                "it must not ask anything; run it in a shell to see what it waits for".to_owned()
            }
            (Self::Command(_), _) => "run it in a shell to see why".to_owned(),
        }
    }
}

impl fmt::Display for StoredReference<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, rest) = match self {
            Self::File(path) => ("file", path),
            Self::Command(line) => ("command", line),
            Self::Keychain(name) => ("keychain", name),
            Self::Input(id) => ("input", id),
        };
        write!(formatter, "${{{kind}:{rest}}}")
    }
}
