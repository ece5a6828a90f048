//! A value that must not be shown.

use std::fmt;

/// A string that may hold a credential: the value of an environment variable or of a header.
///
/// Neither `Debug` nor `Display` shows it, so it cannot reach a log or a message by accident; the
/// one way to the value is [`Secret::expose`], which is easy to find in a review.
///
/// ```
/// use toolgate_config::Secret;
///
/// let token = Secret::new("hunter2");
/// assert_eq!(format!("{token} {token:?}"), "[secret] [secret]");
/// assert_eq!(token.expose(), "hunter2");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself, for the code that sends it to a server.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[secret]")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[secret]")
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self(value)
    }
}
