//! Converts a query to terms.

use super::document::name_term;
use crate::{
    analysis::{TermKind, canonical_name, for_each_term},
    limits::{MAX_NAME_BYTES, MAX_QUERY_BYTES, MAX_QUERY_TERMS, cut},
    paraphrases::meant,
};

/// The distinct words of a query, in order. Repetitions do not count: measurements showed no gain.
///
/// Stop words count only if there are no other words: `who am i` may be a tool's name.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut small: Vec<String> = Vec::new();
    let text = cut(text, MAX_QUERY_BYTES);
    for_each_term(text, MAX_QUERY_BYTES, &mut |term, kind| {
        let list = if kind == TermKind::StopWord { &mut small } else { &mut words };
        if list.len() < MAX_QUERY_TERMS && !list.iter().any(|known| known == term) {
            list.push(term.to_owned());
        }
    });
    if words.is_empty() { small } else { words }
}

/// The words that phrases of a query stand for, without its own.
pub(super) fn paraphrased(text: &str, own: &[String]) -> Vec<String> {
    let mut added = words(&meant(text, own));
    added.retain(|word| !own.contains(word));
    added
}

/// The tool names that a query may contain.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct NameTerms {
    /// The query as a whole is this name.
    pub(super) whole: Vec<String>,
    /// One word of the query is this name, and looks like one.
    pub(super) words: Vec<String>,
}

/// How many words of one query are tried as names of tools.
const MAX_NAMES: usize = 16;

/// How many words the name of a server may be spread over: `google maps platform`.
const MAX_SERVER_WORDS: usize = 3;

/// Reads a query as names.
pub(super) fn name_terms(text: &str) -> NameTerms {
    let text = cut(text, MAX_QUERY_BYTES).trim();
    let mut names = NameTerms::default();
    if text.len() <= MAX_NAME_BYTES {
        names.whole = spellings(text);
    }
    let words = text.split(|character: char| {
        character.is_whitespace() || matches!(character, ',' | ';' | '`' | '"' | '(' | ')')
    });
    let identifiers = words.filter(|word| looks_like_identifier(word));
    names.words = identifiers.take(MAX_NAMES).flat_map(spellings).collect();
    names
}

/// The server names that a query may contain: single words, and two or three neighbours joined.
pub(super) fn server_name_terms(text: &str) -> Vec<String> {
    let text = cut(text, MAX_QUERY_BYTES);
    let words: Vec<String> = text
        .split_whitespace()
        .map(canonical_name)
        .filter(|word| !word.is_empty())
        .take(MAX_QUERY_TERMS)
        .collect();
    let mut names: Vec<String> = (1..=MAX_SERVER_WORDS)
        .flat_map(|length| words.windows(length).map(|window| name_term(&window.concat())))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The name, and the name without the `mcp` that some hosts put before it.
fn spellings(name: &str) -> Vec<String> {
    let canonical = canonical_name(name);
    let bare = canonical.strip_prefix("mcp").filter(|bare| !bare.is_empty());
    let whole = (!canonical.is_empty()).then(|| name_term(&canonical));
    whole.into_iter().chain(bare.map(name_term)).collect()
}

/// `list_issues` and `listIssues` are not plain words.
fn looks_like_identifier(word: &str) -> bool {
    let inner = word.trim_matches(|character: char| !character.is_alphanumeric());
    let humps = inner.chars().zip(inner.chars().skip(1));
    inner.contains('_')
        || humps.into_iter().any(|(left, right)| left.is_lowercase() && right.is_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_once_and_small_words_only_alone() {
        assert_eq!(words("the issues of an issue"), ["issu"]);
        assert_eq!(words("who am I"), ["who", "am", "i"]);
        assert!(words("").is_empty());
    }

    #[test]
    fn no_more_words_than_the_limit() {
        let long = (0..2_000).map(|number| format!("word{number}")).collect::<Vec<_>>().join(" ");
        assert_eq!(words(&long).len(), MAX_QUERY_TERMS);
        assert!(server_name_terms(&long).len() <= MAX_QUERY_TERMS * MAX_SERVER_WORDS);
    }

    #[test]
    fn a_server_may_be_named_in_several_words() {
        assert_eq!(
            server_name_terms("in Google Maps"),
            ["=google", "=googlemaps", "=in", "=ingoogle", "=ingooglemaps", "=maps"]
        );
        assert!(server_name_terms(" - ").is_empty());
    }

    #[test]
    fn names_are_the_whole_query_or_words_that_look_like_one() {
        let names = name_terms("mcp__git__status");
        assert_eq!(names.whole, ["=mcpgitstatus", "=gitstatus"]);
        let names = name_terms("call `create_issue`, then listIssues please");
        assert_eq!(names.words, ["=createissue", "=listissues"]);
        assert_eq!(name_terms("git status").words, Vec::<String>::new());
        assert_eq!(name_terms("--- !"), NameTerms::default());
    }
}
