//! Computes the vector of a text.

use std::ops::ControlFlow;

use super::table::{Table, Token};
use crate::analysis::{Piece, for_each_word};

/// A unit vector, or zeros if no word of the text is known.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Embedding {
    pub(super) vector: Vec<f32>,
    /// The share of the text's words that the table has as they are.
    pub(super) known: f32,
}

/// How many tokens of a text count. Each counts less than the one before.
const MAX_TOKENS: usize = 512;

/// At this place in the text a token counts half.
const HALVING: f32 = 20.0;

/// Letters of a piece of a word that the table does not have as a whole.
const SHORTEST_PIECE: usize = 3;
/// The longest token of a script without blanks, in characters.
const LONGEST_IN_RUN: usize = 6;

/// The vector of a text: the sum of its tokens' rows, earlier ones counting for more.
pub(super) fn embed(table: &Table<'_>, text: &str) -> Embedding {
    let mut vector = vec![0.0; table.dimensions()];
    let mut weight_at = 0.0_f32;
    let (mut words, mut known) = (0.0_f32, 0.0_f32);
    for_each_token(table, text, &mut |found| match found {
        TextPart::Token(token) => {
            table.add(token, 1.0 / (1.0 + weight_at / HALVING), &mut vector);
            weight_at += 1.0;
        }
        TextPart::Word { is_known } => {
            words += 1.0;
            known += if is_known { 1.0 } else { 0.0 };
        }
    });
    normalise(&mut vector);
    Embedding { vector, known: if words > 0.0 { known / words } else { 0.0 } }
}

/// Makes the length of a vector one, unless it is zero.
pub(super) fn normalise(vector: &mut [f32]) {
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    if length > 0.0 {
        for number in vector {
            *number /= length;
        }
    }
}

/// A part of a text.
enum TextPart {
    /// A token of the table.
    Token(Token),
    /// The end of a word, after its tokens.
    Word { is_known: bool },
}

fn for_each_token(table: &Table<'_>, text: &str, sink: &mut dyn FnMut(TextPart)) {
    let mut remaining = MAX_TOKENS;
    for_each_word(text, &mut |word, piece| {
        if word.chars().all(char::is_numeric) {
            return ControlFlow::Continue(());
        }
        let whole = if piece == Piece::Word { table.token(word) } else { None };
        let mut count = 0_usize;
        match (whole, piece) {
            (Some(token), _) => {
                remaining -= 1;
                count += 1;
                sink(TextPart::Token(token));
            }
            (None, Piece::Word) => {
                pieces(table, word, SHORTEST_PIECE, usize::MAX, &mut remaining, sink);
            }
            (None, Piece::Run) => {
                count += pieces(table, word, 1, LONGEST_IN_RUN, &mut remaining, sink);
            }
        }
        sink(TextPart::Word { is_known: count > 0 });
        if remaining > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
}

/// Splits a word into the longest tokens from the left, and skips letters with which no token
/// begins.
fn pieces(
    table: &Table<'_>,
    word: &str,
    shortest: usize,
    longest: usize,
    remaining: &mut usize,
    sink: &mut dyn FnMut(TextPart),
) -> usize {
    let mut rest = word;
    let mut count = 0;
    while let Some(first) = rest.chars().next()
        && *remaining > 0
    {
        let taken = match table.longest(rest, shortest, longest) {
            Some((token, bytes)) => {
                *remaining -= 1;
                count += 1;
                sink(TextPart::Token(token));
                bytes
            }
            None => first.len_utf8(),
        };
        rest = &rest[taken..];
    }
    count
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::{super::table::built_in, *};

    #[derive(Deserialize)]
    struct Case {
        text: String,
        tokens: Vec<String>,
        vector: Vec<f32>,
    }

    /// The cases were written by the program that made the table.
    #[test]
    fn texts_become_what_the_table_was_made_for() {
        let table = built_in().unwrap();
        let cases: Vec<Case> =
            serde_json::from_str(include_str!("../../tests/data/table_reference.json")).unwrap();
        assert!(cases.len() >= 40);
        for case in cases {
            let mut tokens = Vec::new();
            for_each_token(table, &case.text, &mut |found| {
                if let TextPart::Token(token) = found {
                    tokens.push(table.text(token.place()).to_owned());
                }
            });
            assert_eq!(tokens, case.tokens, "{:?}", case.text);
            let vector = embed(table, &case.text).vector;
            assert_eq!(vector.len(), case.vector.len());
            for (got, expected) in vector.iter().zip(&case.vector) {
                assert!((got - expected).abs() < 1e-4, "{:?}", case.text);
            }
        }
    }

    #[test]
    fn the_share_of_known_words_is_reported() {
        let table = built_in().unwrap();
        assert!((embed(table, "delete a file").known - 1.0).abs() < 1e-6);
        assert!((embed(table, "delete qwrtzpsdfg").known - 0.5).abs() < 1e-6);
        assert!(embed(table, "12 ?!").known < 1e-6);
        assert!(embed(table, "").vector.iter().all(|number| *number == 0.0));
    }

    #[test]
    fn a_long_text_is_read_in_part() {
        let table = built_in().unwrap();
        let long = "file ".repeat(MAX_TOKENS);
        let mut longer = long.clone();
        longer.push_str("weather");
        assert_eq!(embed(table, &long).vector, embed(table, &longer).vector);
    }
}
