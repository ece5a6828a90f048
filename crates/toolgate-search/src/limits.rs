//! How much of a text is read.
//!
//! Texts come from servers and models, and can be long. A longer text is not refused; its rest is
//! ignored.

/// Bytes of one description that are read.
pub const MAX_TEXT_BYTES: usize = 16 * 1024;

/// Bytes of one name or title that are read.
pub const MAX_NAME_BYTES: usize = 512;

/// Words of one field of a tool that are counted. All parameters together are one field.
pub const MAX_FIELD_TOKENS: usize = 2_000;

/// Parameters of one tool that are read.
pub const MAX_PARAMETERS: usize = 256;

/// Allowed values of one parameter that are read.
pub const MAX_VALUES: usize = 64;

/// Bytes of a query that are read.
pub const MAX_QUERY_BYTES: usize = 4 * 1024;

/// Distinct words of a query that are looked up.
pub const MAX_QUERY_TERMS: usize = 64;

/// Bytes of a regular expression; a longer one is refused, since a part of it means something else.
pub const MAX_PATTERN_BYTES: usize = 1024;

/// Bytes of one description that the strategies `keyword` and `regex` store.
pub const MAX_KEPT_BYTES: usize = 4 * 1024;

/// Bytes of a query that are remembered.
pub const MAX_PAST_QUERY_BYTES: usize = 512;

/// Bytes of a tool's key that is remembered; exposed names are far shorter.
pub const MAX_KEY_BYTES: usize = 256;

/// Characters of one word; a longer run is a key or a blob, which nobody searches for.
pub const MAX_WORD_CHARACTERS: usize = 64;

/// The text up to `bytes`, cut at a character boundary.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}
