//! Splits a request into its sentences and clauses.
//!
//! The vector of a long text is the mean of many words, and similar to everything. One of its
//! sentences often says what is wanted.

use crate::bm25::query_terms::words;

/// How many parts of a request are compared with every tool. Each costs as much as the whole.
const MAX_PARTS: usize = 12;
/// A clause with fewer words belongs to the next one: `Hi, …`, `red, green and blue`.
const FEWEST_WORDS: usize = 3;

/// The sentences of a text, and the clauses of those that have several. Empty if the text is a
/// single clause.
pub(super) fn parts(text: &str) -> Vec<&str> {
    let sentences = split(text, ends_sentence);
    let mut parts: Vec<&str> = Vec::new();
    for sentence in &sentences {
        let clauses = split(sentence, ends_clause);
        if sentences.len() > 1 {
            parts.push(sentence);
        }
        if clauses.len() > 1 {
            parts.extend(clauses);
        }
    }
    parts.truncate(MAX_PARTS);
    parts
}

/// Whether a character ends a sentence, if this one follows. `example.com` and `1.5` are no ends.
fn ends_sentence(character: char, next: Option<char>) -> bool {
    match character {
        '.' | '?' | '!' | ';' | ':' => next.is_none_or(char::is_whitespace),
        '\n' | '。' | '！' | '？' | '；' | '：' => true,
        _ => false,
    }
}

fn ends_clause(character: char, next: Option<char>) -> bool {
    match character {
        ',' | '–' | '—' => next.is_none_or(char::is_whitespace),
        '，' | '、' => true,
        _ => false,
    }
}

/// Splits a text after each end. A part with few words is joined to the next one, and the last one
/// to the one before.
fn split(text: &str, ends: fn(char, Option<char>) -> bool) -> Vec<&str> {
    let mut starts = vec![0];
    let mut start = 0;
    let mut characters = text.char_indices().peekable();
    while let Some((place, character)) = characters.next() {
        let end = place + character.len_utf8();
        let is_end = ends(character, characters.peek().map(|(_, next)| *next));
        if is_end && has_words(&text[start..end]) {
            start = end;
            starts.push(start);
        }
    }
    if starts.len() > 1 && !has_words(&text[start..]) {
        starts.pop();
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().zip(ends).map(|(start, end)| text[*start..end].trim()).collect()
}

fn has_words(text: &str) -> bool {
    words(text).len() >= FEWEST_WORDS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_sentences_and_their_clauses() {
        assert_eq!(
            parts(
                "Hi, I plan a trip to Paris. Find cheap flights for May, then book a hotel \
                 near the river! Thanks."
            ),
            [
                "Hi, I plan a trip to Paris.",
                "Find cheap flights for May, then book a hotel near the river! Thanks.",
                "Find cheap flights for May,",
                "then book a hotel near the river! Thanks.",
            ]
        );
        assert_eq!(parts("查询明天的天气。发送邮件给同事"), ["查询明天的天气。", "发送邮件给同事"]);
    }

    #[test]
    fn a_single_clause_has_no_parts() {
        for text in [
            "",
            "list issues",
            "fetch example.com/a.b and count 1,000 words",
            "mix red, green and blue",
            "please, list all open issues of the project",
        ] {
            assert_eq!(parts(text), Vec::<&str>::new(), "{text}");
        }
    }

    #[test]
    fn there_are_few_parts_of_a_long_text() {
        assert_eq!(parts(&"Send one long letter. ".repeat(200)).len(), MAX_PARTS);
    }
}
