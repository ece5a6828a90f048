//! Converts texts to terms, so that different spellings become equal.
//!
//! Tools and queries go through the same steps: characters are classified ([`characters`]),
//! identifiers are split ([`identifier`]), accents are removed ([`fold`]), stop words are marked
//! ([`stop_words`]), and the other words are stemmed.

mod characters;
mod fold;
mod identifier;
mod stop_words;

use std::{iter::Peekable, ops::ControlFlow, str::Chars};

use rust_stemmers::{Algorithm, Stemmer};

use self::characters::Class;
pub(crate) use self::identifier::canonical_name;
use crate::limits::MAX_WORD_CHARACTERS;

/// The kind of a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TermKind {
    /// A word, or a part of an identifier.
    Word,
    /// A stop word. It has no meaning in a sentence, but may have one in a name.
    StopWord,
    /// The parts of an identifier written as one word: `getlogs` for `get_logs`.
    Joined,
}

/// Joined forms are for names that people type as one word, not for paths and sentences in snake
/// case.
const MAX_JOINED_PARTS: usize = 4;
const MAX_JOINED_BYTES: usize = 32;

/// Calls `sink` with the terms of `text` in the order of the text, stopping after `max_terms`.
pub(crate) fn for_each_term(text: &str, max_terms: usize, sink: &mut dyn FnMut(&str, TermKind)) {
    let stemmer = Stemmer::create(Algorithm::English);
    let mut analyzer = Analyzer { stemmer, remaining: max_terms, sink };
    let mut characters = text.chars().peekable();
    while analyzer.remaining > 0 {
        let Some(&character) = characters.peek() else { return };
        match characters::classify(character) {
            Class::Word => {
                let identifier = read_identifier(&mut characters);
                analyzer.identifier(&identifier);
            }
            Class::Unsegmented => analyzer.bigrams(&mut characters),
            Class::Ignored | Class::Connector | Class::Apostrophe | Class::Separator => {
                characters.next();
            }
        }
    }
}

/// What kind of piece a text has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A word or a part of an identifier, in lower case and without accents.
    Word,
    /// Characters of a script without blanks between words.
    Run,
}

/// Calls `sink` with the plain words of `text`, neither stemmed nor joined, in order, until `sink`
/// stops it. The table of vectors was made from texts that were split in this way.
pub(crate) fn for_each_word(text: &str, sink: &mut dyn FnMut(&str, Piece) -> ControlFlow<()>) {
    let mut characters = text.chars().peekable();
    while let Some(&character) = characters.peek() {
        let flow = match characters::classify(character) {
            Class::Word => {
                let run = read_run(&mut characters);
                if characters
                    .peek()
                    .is_some_and(|next| characters::classify(*next) == Class::Apostrophe)
                {
                    skip_contraction(&mut characters);
                }
                identifier::split(&run).try_for_each(|part| sink(&fold::fold(part), Piece::Word))
            }
            Class::Unsegmented => sink(&read_unsegmented(&mut characters), Piece::Run),
            Class::Ignored | Class::Connector | Class::Apostrophe | Class::Separator => {
                characters.next();
                ControlFlow::Continue(())
            }
        };
        if flow.is_break() {
            return;
        }
    }
}

fn read_unsegmented(characters: &mut Peekable<Chars<'_>>) -> String {
    let mut run = String::new();
    while let Some(&character) = characters.peek() {
        match characters::classify(character) {
            Class::Unsegmented => run.push(character),
            Class::Ignored => {}
            _ => break,
        }
        characters.next();
    }
    run
}

/// Reads runs of word characters that single connectors hold together, `get_logs` or `a.b-c`.
fn read_identifier(characters: &mut Peekable<Chars<'_>>) -> Vec<Vec<char>> {
    let mut runs = Vec::new();
    loop {
        runs.push(read_run(characters));
        let Some(&next) = characters.peek() else { return runs };
        match characters::classify(next) {
            Class::Connector => {
                characters.next();
                let Some(&after) = characters.peek() else { return runs };
                // A double underscore connects; a full stop and a blank do not.
                if next == '_' && after == '_' {
                    characters.next();
                }
                let Some(&after) = characters.peek() else { return runs };
                if characters::classify(after) != Class::Word {
                    return runs;
                }
            }
            Class::Apostrophe => {
                skip_contraction(characters);
                return runs;
            }
            _ => return runs,
        }
    }
}

/// Reads word characters up to the next of another class. Returns an empty text if it is too long
/// for a word.
fn read_run(characters: &mut Peekable<Chars<'_>>) -> Vec<char> {
    let mut run = Vec::new();
    let mut length = 0_usize;
    while let Some(&character) = characters.peek() {
        match characters::classify(character) {
            Class::Word => {
                length += 1;
                if length <= MAX_WORD_CHARACTERS {
                    run.push(characters::narrow(character));
                }
            }
            Class::Ignored => {}
            _ => break,
        }
        characters.next();
    }
    if length > MAX_WORD_CHARACTERS { Vec::new() } else { run }
}

/// Skips the `s` of `user's` and the `t` of `don't`, which have no meaning.
fn skip_contraction(characters: &mut Peekable<Chars<'_>>) {
    let mut ahead = characters.clone();
    ahead.next();
    let suffix = read_run(&mut ahead);
    let suffix: String = suffix.into_iter().flat_map(char::to_lowercase).collect();
    if matches!(suffix.as_str(), "s" | "t" | "m" | "d" | "ll" | "re" | "ve") {
        *characters = ahead;
    } else {
        characters.next();
    }
}

/// The parts as one word, if people would type them like that.
fn join(runs: &[Vec<char>], parts: &[String]) -> Option<String> {
    // A run is empty where it was too long to be a word.
    let complete = runs.iter().all(|run| !run.is_empty());
    if !complete || !(2..=MAX_JOINED_PARTS).contains(&parts.len()) {
        return None;
    }
    let joined = parts.concat();
    let numeric = joined.bytes().all(|byte| byte.is_ascii_digit());
    (joined.len() <= MAX_JOINED_BYTES && !numeric).then_some(joined)
}

struct Analyzer<'s> {
    stemmer: Stemmer,
    remaining: usize,
    sink: &'s mut dyn FnMut(&str, TermKind),
}

impl Analyzer<'_> {
    fn identifier(&mut self, runs: &[Vec<char>]) {
        let parts: Vec<String> =
            runs.iter().flat_map(|run| identifier::split(run)).map(fold::fold).collect();
        let joined = join(runs, &parts);
        if let Some(joined) = &joined
            && stop_words::is_stop_word(joined)
        {
            // `e.g.` and `i.e.`: their letters mean nothing either.
            self.emit(joined, TermKind::StopWord);
            return;
        }
        for part in &parts {
            self.word(part, TermKind::Word);
        }
        if let Some(joined) = joined {
            self.word(&joined, TermKind::Joined);
        }
    }

    fn word(&mut self, word: &str, kind: TermKind) {
        if stop_words::is_stop_word(word) {
            self.emit(word, TermKind::StopWord);
        } else if word.bytes().all(|byte| byte.is_ascii_lowercase()) {
            let stem = self.stemmer.stem(word).into_owned();
            self.emit(&stem, kind);
        } else {
            self.emit(word, kind);
        }
    }

    /// Scripts without blanks between words: every two neighbours are a term, and a lone one is
    /// too.
    fn bigrams(&mut self, characters: &mut Peekable<Chars<'_>>) {
        let mut previous: Option<char> = None;
        let mut alone = true;
        while let Some(&character) = characters.peek() {
            match characters::classify(character) {
                Class::Unsegmented if self.remaining > 0 => {
                    if let Some(previous) = previous {
                        alone = false;
                        self.emit(&String::from_iter([previous, character]), TermKind::Word);
                    }
                    previous = Some(character);
                }
                Class::Ignored => {}
                _ => break,
            }
            characters.next();
        }
        if let (Some(character), true) = (previous, alone) {
            self.emit(&String::from(character), TermKind::Word);
        }
    }

    fn emit(&mut self, term: &str, kind: TermKind) {
        if self.remaining > 0 && !term.is_empty() {
            self.remaining -= 1;
            (self.sink)(term, kind);
        }
    }
}

#[cfg(test)]
mod tests;
