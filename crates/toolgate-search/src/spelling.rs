//! Corrects words that nobody knows.
//!
//! A word of a query is unknown if neither the catalogue nor the table of word vectors has it. It
//! becomes the nearest word of the catalogue. Other languages have words that nobody knows too, so a
//! query with signs of one stays as it is.

use std::cmp::Reverse;

use crate::limits::{MAX_QUERY_BYTES, cut};

/// The words that are known.
pub(crate) trait KnownWords {
    /// Whether a word in lower case needs no correction.
    fn knows(&self, word: &str) -> bool;

    /// Calls `sink` with all known words that may be near to `word`, and in how many tools each of
    /// them is.
    fn for_each_near(&self, word: &Misspelled<'_>, sink: &mut dyn FnMut(&str, usize));
}

/// An unknown word.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Misspelled<'w> {
    /// In lower case, letters from `a` to `z` only.
    pub(crate) word: &'w str,
    letters: Letters,
    /// How many letters may differ.
    most: usize,
}

/// Which letters a word has, and how many. Words with other letters are not near, which is seen
/// faster than a distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Letters {
    which: u32,
    count: u8,
}

/// Shorter words have too many neighbours.
const SHORTEST: usize = 4;
/// Words of so many letters may have two typing errors.
const LONG: usize = 8;
const LONGEST: usize = 24;
/// How many words of one query are corrected.
const MAX_CORRECTED: usize = 8;

/// The text with its unknown words corrected; `None` if there is nothing to correct.
pub(crate) fn corrected(text: &str, known: &dyn KnownWords) -> Option<String> {
    let text = cut(text, MAX_QUERY_BYTES);
    if is_foreign(text) {
        return None;
    }
    let mut result = String::new();
    let (mut rest, mut count) = (text, 0);
    while let Some(start) = rest.find(|character: char| !character.is_whitespace()) {
        let end = rest[start..].find(char::is_whitespace).map_or(rest.len(), |end| start + end);
        let raw = &rest[start..end];
        let word = raw.trim_matches(|character: char| !character.is_alphanumeric());
        result.push_str(&rest[..start]);
        match nearest(word, known).filter(|_| count < MAX_CORRECTED) {
            Some(better) => {
                result.push_str(&raw.replacen(word, &better, 1));
                count += 1;
            }
            None => result.push_str(raw),
        }
        rest = &rest[end..];
    }
    (count > 0).then_some(result)
}

/// The known word that an unknown one most probably stands for.
fn nearest(word: &str, known: &dyn KnownWords) -> Option<String> {
    let is_plain = (SHORTEST..=LONGEST).contains(&word.len())
        && word.bytes().all(|byte| byte.is_ascii_alphabetic())
        // `GitHub` is a name.
        && (word.bytes().skip(1).all(|byte| byte.is_ascii_lowercase())
            || word.bytes().all(|byte| byte.is_ascii_uppercase()));
    if !is_plain {
        return None;
    }
    let word = word.to_ascii_lowercase();
    if known.knows(&word) {
        return None;
    }
    let misspelled = Misspelled::new(&word)?;
    let mut best = None;
    known.for_each_near(&misspelled, &mut |near, tools| {
        let Some(distance) = misspelled.distance(near) else { return };
        // People rarely mistype the first letter.
        let begins_other = near.as_bytes().first() != word.as_bytes().first();
        if begins_other && word.len() <= SHORTEST {
            return;
        }
        let place = (distance, begins_other, Reverse(tools));
        if best.as_ref().is_none_or(|(best, text): &(_, String)| {
            place < *best || (place == *best && near < text.as_str())
        }) {
            best = Some((place, near.to_owned()));
        }
    });
    best.map(|(_, near)| near)
}

impl<'w> Misspelled<'w> {
    fn new(word: &'w str) -> Option<Self> {
        let most = if word.len() < LONG { 1 } else { 2 };
        Some(Self { word, letters: Letters::of(word)?, most })
    }

    /// Whether a word with these letters can be near.
    pub(crate) fn may_be(&self, letters: Letters) -> bool {
        let others = (self.letters.which ^ letters.which).count_ones() as usize;
        usize::from(self.letters.count.abs_diff(letters.count)) <= self.most
            && others <= 2 * self.most
    }

    /// How many letters are missing, additional, different or exchanged with their neighbour;
    /// `None` if there are too many.
    fn distance(&self, other: &str) -> Option<usize> {
        let (left, right) = (self.word.as_bytes(), other.as_bytes());
        if left.len().abs_diff(right.len()) > self.most {
            return None;
        }
        let mut before: Vec<usize> = Vec::new();
        let mut row: Vec<usize> = (0..=right.len()).collect();
        for (line, letter) in left.iter().enumerate() {
            let mut next = vec![line + 1];
            for (column, other) in right.iter().enumerate() {
                let same = usize::from(letter != other);
                let mut least = (row[column] + same).min(row[column + 1] + 1).min(next[column] + 1);
                let is_exchanged = line > 0
                    && column > 0
                    && left[line - 1] == *other
                    && right[column - 1] == *letter;
                if is_exchanged {
                    least = least.min(before[column - 1] + 1);
                }
                next.push(least);
            }
            before = std::mem::replace(&mut row, next);
        }
        row.last().copied().filter(|distance| *distance <= self.most)
    }
}

impl Letters {
    /// Of a word of letters from `a` to `z`; `None` of another one.
    pub(crate) fn of(word: &str) -> Option<Self> {
        let mut which = 0;
        for byte in word.bytes() {
            if !byte.is_ascii_lowercase() {
                return None;
            }
            which |= 1 << (byte - b'a');
        }
        Some(Self { which, count: u8::try_from(word.len()).ok()? })
    }
}

/// Whether a text has a letter or a small word of another language than English.
fn is_foreign(text: &str) -> bool {
    let letters = |character: char| character.is_alphabetic() && !character.is_ascii();
    text.contains(letters)
        || text
            .split(|character: char| !character.is_ascii_alphabetic())
            .any(|word| FOREIGN.binary_search(&word.to_ascii_lowercase().as_str()).is_ok())
}

/// Small words of German, French, Spanish, Italian, Portuguese, Dutch, Polish, Swedish, Danish,
/// Norwegian, Finnish, Czech, Turkish and Indonesian that are neither English nor common in names of
/// software. Sorted.
#[rustfmt::skip]
const FOREIGN: &[&str] = &[
    "aan", "af", "alle", "alles", "anche", "att", "auf", "aus", "aux", "av", "avec", "bana", "bei", "beim", "bir",
    "bitte", "chce", "che", "chez", "ciao", "como", "cosa", "cual", "cuando", "czy", "dalam", "dans", "das", "datei",
    "daten", "de", "degli", "deine", "del", "dela", "della", "delle", "dem", "denne", "der", "deze", "diese",
    "diesen", "dieser", "dla", "dobry", "donde", "durch", "een", "ein", "eine", "einem", "einen", "einer", "eines",
    "el", "elle", "ellos", "erste", "esto", "estou", "ett", "fazer", "finde", "gli", "gracias", "grazie", "haben",
    "hacer", "het", "hoe", "hola", "hur", "hvad", "hvor", "ich", "icin", "il", "ile", "ist", "itu", "jeden", "jest",
    "kaikki", "kann", "kein", "keine", "kilka", "kuin", "la", "lass", "le", "les", "leur", "loschen", "mais", "med",
    "mein", "meine", "meinem", "meinen", "meiner", "mij", "mijn", "minha", "mir", "mit", "moje", "mostra", "mostrar",
    "muestra", "naar", "nach", "nao", "nasil", "nel", "nella", "nicht", "nie", "niet", "noch", "notre", "nous",
    "nuestro", "och", "oder", "og", "ook", "oraz", "otra", "para", "pelo", "pero", "por", "pour", "prosze", "quale",
    "quali", "quando", "que", "quel", "quelle", "quels", "questo", "qui", "quiero", "saya", "sein", "seine", "semua",
    "sich", "sie", "sind", "sobre", "som", "sono", "suche", "sul", "tampilkan", "todas", "tous", "toutes", "tutte",
    "tutti", "uber", "un", "una", "unas", "und", "une", "unos", "untuk", "voglio", "vom", "von", "voor", "vorrei",
    "votre", "vous", "wat", "welche", "welcher", "welches", "wem", "wenn", "werden", "wie", "wir", "wird",
    "wszystkie", "yang", "zeig", "zeige", "zij", "zijn", "zu", "zum", "zur",
];

#[cfg(test)]
mod tests {
    use super::*;

    struct Few(&'static [(&'static str, usize)]);

    impl KnownWords for Few {
        fn knows(&self, word: &str) -> bool {
            self.0.iter().any(|(known, _)| *known == word)
        }

        fn for_each_near(&self, word: &Misspelled<'_>, sink: &mut dyn FnMut(&str, usize)) {
            for (known, tools) in self.0 {
                if Letters::of(known).is_some_and(|letters| word.may_be(letters)) {
                    sink(known, *tools);
                }
            }
        }
    }

    const KNOWN: Few = Few(&[
        ("send", 3),
        ("email", 5),
        ("issue", 9),
        ("tissue", 1),
        ("repository", 2),
        ("calendar", 2),
        ("list", 7),
        ("last", 1),
        ("form", 1),
    ]);

    fn correct(text: &str) -> String {
        corrected(text, &KNOWN).unwrap_or_else(|| "as it is".to_owned())
    }

    #[test]
    fn unknown_words_become_the_nearest_known_ones() {
        for (text, expected) in [
            ("sned an emial", "send an email"),
            ("Lits  the isue, of a repositroy!", "list  the issue, of a repository!"),
            ("calendra repsitoyr", "calendar repository"),
            ("mail the issuee", "mail the issue"),
        ] {
            assert_eq!(correct(text), expected, "{text}");
        }
    }

    #[test]
    fn known_short_and_strange_words_stay() {
        for text in [
            "send email",
            "",
            "get the src",
            "iSsuee x_isuse a/isuse.md isuse2",
            "quuxbarbaz",
            "fro",
        ] {
            assert_eq!(correct(text), "as it is", "{text}");
        }
    }

    #[test]
    fn other_languages_stay() {
        for text in [
            "zeige mir die issuen",
            "muestra los emails del calendario",
            "sendt en emial med repositori",
            "envoie un e-mail à isuse",
            "список isuse",
        ] {
            assert_eq!(correct(text), "as it is", "{text}");
        }
    }

    #[test]
    fn the_more_common_of_equally_near_words_is_taken() {
        assert_eq!(correct("lsst"), "list");
        assert_eq!(correct("xtissue"), "tissue");
    }

    #[test]
    fn few_words_of_a_query_are_corrected() {
        let corrected = corrected(&"isuse ".repeat(20), &KNOWN).unwrap();
        assert_eq!(corrected.matches("issue").count(), MAX_CORRECTED);
    }

    #[test]
    fn the_small_words_are_sorted_and_not_english() {
        assert!(FOREIGN.is_sorted_by(|left, right| left < right));
    }
}
