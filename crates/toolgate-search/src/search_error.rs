//! Errors of queries.

use std::fmt;

use thiserror::Error;

use crate::limits::MAX_PATTERN_BYTES;

/// A query that cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SearchError {
    /// The query is not a regular expression, as the strategy requires.
    #[error("the query is not a regular expression: {0}")]
    Pattern(PatternFault),
    /// The regular expression is too long.
    #[error("the regular expression is longer than {MAX_PATTERN_BYTES} bytes")]
    PatternTooLong,
    /// The regular expression is too large after its repetitions are expanded, as `a{9}{9}{9}` is.
    #[error("the regular expression is too large once its repetitions are written out")]
    PatternTooLarge,
}

/// A fault in a regular expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternFault {
    /// The reason.
    pub reason: String,
    /// The part of the pattern around the fault, on one line.
    pub excerpt: String,
    /// The position of the fault in the excerpt, in characters from 0.
    pub column: usize,
}

/// The number of characters that are shown before and after a fault.
const CONTEXT: usize = 40;

impl PatternFault {
    /// The fault at a byte of a pattern.
    pub(crate) fn new(pattern: &str, offset: usize, reason: impl Into<String>) -> Self {
        let before = &pattern[..pattern.floor_char_boundary(offset)];
        let position = before.chars().count();
        let start = position.saturating_sub(CONTEXT);
        // A line break or a tab would move the caret.
        let plain = |character: char| if character.is_control() { ' ' } else { character };
        let excerpt = pattern.chars().skip(start).take(2 * CONTEXT).map(plain).collect();
        Self { reason: reason.into(), excerpt, column: position - start }
    }
}

impl fmt::Display for PatternFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reason, excerpt, column } = self;
        write!(formatter, "{reason}\n    {excerpt}\n    {:column$}^", "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_under_the_fault() {
        let fault = PatternFault::new("naïve(x", 6, "unclosed group");
        assert_eq!(fault.to_string(), "unclosed group\n    naïve(x\n         ^");
    }

    #[test]
    fn a_long_pattern_is_shown_in_part_and_on_one_line() {
        let pattern = format!("{}\n({}", "a".repeat(200), "b".repeat(200));
        let fault = PatternFault::new(&pattern, 201, "unclosed group");
        assert_eq!(fault.excerpt.chars().count(), 2 * CONTEXT);
        assert_eq!(fault.excerpt.chars().nth(fault.column), Some('('));
        assert!(!fault.excerpt.contains('\n'));
    }
}
