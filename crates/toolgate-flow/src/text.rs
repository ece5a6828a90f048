//! Texts reduced to what copying and quoting do not change.

use std::borrow::Cow;

use crate::generic::{is_generic, is_time};

/// The letters and digits of `text` in lower case, as bytes, added to `reduced`. Escapes that JSON and
/// programs write for line breaks and quotes are left out, so that a text and its quoted form are the same.
pub(crate) fn reduce(text: &str, reduced: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        at += step(text, at, reduced);
    }
}

/// The same, and for each byte whether its word says anything specific.
pub(crate) fn reduce_specific(text: &str) -> (Vec<u8>, Vec<bool>) {
    let (mut reduced, mut specific) = (Vec::with_capacity(text.len()), Vec::new());
    let (mut at, mut word) = (0, 0..0);
    while at <= text.len() {
        let rest = &text[at..];
        let mut letters = rest.chars();
        let letter = letters.next();
        let is_inside = letter.is_some_and(|letter| {
            let joins = ",.:-+'_".contains(letter)
                && word.end == at
                && !word.is_empty()
                && letters.next().is_some_and(char::is_alphanumeric);
            letter.is_alphanumeric() || joins
        });
        if !is_inside {
            let is_specific = !is_generic(&text[word.clone()]);
            specific.resize(reduced.len(), is_specific);
            word = at..at;
        }
        if letter.is_none() {
            break;
        }
        at += step(text, at, &mut reduced);
        if is_inside {
            word.end = at;
        } else {
            // What an escape stood for belongs to no word.
            specific.resize(reduced.len(), true);
            word = at..at;
        }
    }
    (reduced, specific)
}

/// Adds what is at this place, and returns its length.
fn step(text: &str, at: usize, reduced: &mut Vec<u8>) -> usize {
    let bytes = text.as_bytes();
    let byte = bytes[at];
    if byte == b'\\' {
        return escape(&bytes[at..], reduced);
    }
    if byte.is_ascii() {
        if byte.is_ascii_alphanumeric() {
            reduced.push(byte.to_ascii_lowercase());
        }
        return 1;
    }
    let Some(character) = text[at..].chars().next() else { return bytes.len() - at };
    push(character, reduced);
    character.len_utf8()
}

/// The length of the escape that starts here. What it stands for is added.
fn escape(bytes: &[u8], reduced: &mut Vec<u8>) -> usize {
    match bytes.get(1) {
        Some(b'n' | b'r' | b't' | b'b' | b'f' | b'"' | b'\\' | b'/') => 2,
        Some(b'u') => {
            let digits = bytes.get(2..6).and_then(|digits| std::str::from_utf8(digits).ok());
            let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
            // Half of a surrogate pair is no character, and stands for nothing here.
            let Some(code) = code else { return 2 };
            if let Some(character) = char::from_u32(code) {
                push(character, reduced);
            }
            6
        }
        _ => 1,
    }
}

fn push(character: char, reduced: &mut Vec<u8>) {
    if character.is_alphanumeric() {
        for lower in character.to_lowercase() {
            let mut buffer = [0; 4];
            reduced.extend_from_slice(lower.encode_utf8(&mut buffer).as_bytes());
        }
    }
}

/// The text with letters that look like Latin ones replaced by these, and without characters that
/// nobody sees.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().filter(|letter| !is_invisible(*letter)).map(latin).collect())
}

/// Whether a character has no width, or only changes the one before it.
pub(crate) fn is_invisible(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e01ef}')
}

/// The Latin letter, digit or sign that a character of another block looks like.
fn latin(letter: char) -> char {
    let code = u32::from(letter);
    let from = |first: u32, base: char| char::from_u32(u32::from(base) + code - first);
    let plain = match code {
        // Full width.
        0xff01..=0xff5e => from(0xff01, '!'),
        0x3000 => Some(' '),
        // Mathematical letters in thirteen styles, and digits in five.
        0x1d400..=0x1d6a3 => {
            let at = (code - 0x1d400) % 52;
            char::from_u32(if at < 26 { 0x41 + at } else { 0x61 + at - 26 })
        }
        0x1d7ce..=0x1d7ff => char::from_u32(0x30 + (code - 0x1d7ce) % 10),
        // In circles, in brackets and as flags.
        0x24b6..=0x24cf => from(0x24b6, 'A'),
        0x24d0..=0x24e9 => from(0x24d0, 'a'),
        0x2460..=0x2468 => from(0x2460, '1'),
        0x249c..=0x24b5 => from(0x249c, 'a'),
        0x1f130..=0x1f149 => from(0x1f130, 'A'),
        0x1f1e6..=0x1f1ff => from(0x1f1e6, 'A'),
        _ => LOOKS.chars().position(|known| known == letter).and_then(|at| LIKE.chars().nth(at)),
    };
    plain.unwrap_or(letter)
}

/// Cyrillic and Greek letters that look like Latin ones.
const LOOKS: &str = "аеорсухіјѕһԁԛԝАВЕКМНОРСТХІЈЅοαΑΒΕΖΗΙΚΜΝΟΡΤΥΧ";
const LIKE: &str = "aeopcyxijshdqwABEKMHOPCTXIJSoaABEZHIKMNOPTYX";

/// What of a text is at this place of its reduced form, on one line and at most so many characters.
pub(crate) fn excerpt(text: &str, at: usize, characters: usize) -> String {
    let mut reduced = Vec::new();
    let mut start = text.len();
    for (index, character) in text.char_indices() {
        if reduced.len() >= at && character.is_alphanumeric() {
            start = index;
            break;
        }
        push(character, &mut reduced);
    }
    let shown = text[start..].chars().take(characters);
    shown.map(|character| if character.is_control() { ' ' } else { character }).collect()
}

/// The words of a text that are telling in themselves: long, or with digits in them. Each is given
/// reduced.
pub(crate) fn telling_words(text: &str) -> impl Iterator<Item = Vec<u8>> {
    words(text).filter_map(|word| {
        let mut reduced = Vec::new();
        reduce(word, &mut reduced);
        let digits = reduced.iter().filter(|byte| byte.is_ascii_digit()).count();
        let long = reduced.len() >= LONG_WORD && word.contains(['@', '.', '_', '-']);
        let numbered = reduced.len() >= NUMBERED_WORD && digits >= TELLING_DIGITS;
        ((long || numbered) && !is_time(word.trim_matches(['.', '-', '_', '+']))).then_some(reduced)
    })
}

/// Words with the signs that addresses, identifiers and times have inside.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let inside = |letter: char| letter.is_alphanumeric() || "@._-+".contains(letter);
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|letter| !inside(letter));
        if rest.is_empty() {
            return None;
        }
        let bytes = rest.as_bytes();
        let is_clock = |at: usize| {
            let digit =
                |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
            bytes[at] == b':' && digit(at.checked_sub(1)) && digit(Some(at + 1))
        };
        let end = rest.char_indices().find(|(at, letter)| !inside(*letter) && !is_clock(*at));
        let (word, after) = rest.split_at(end.map_or(rest.len(), |(at, _)| at));
        rest = after;
        Some(word)
    })
}

/// A word of this many letters is telling if it is composed, as addresses and identifiers are.
const LONG_WORD: usize = 10;
/// A word with digits is telling from this length on: an order number, a postcode with its town, a key.
const NUMBERED_WORD: usize = 6;
const TELLING_DIGITS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn reduced(text: &str) -> String {
        let mut bytes = Vec::new();
        reduce(text, &mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    fn told(text: &str) -> Vec<String> {
        telling_words(text).map(|word| String::from_utf8(word).unwrap()).collect()
    }

    #[test]
    fn case_space_and_quoting_do_not_matter() {
        let text = "Hello,  \"World\"\nline 2 \u{e9}t\u{c9}";
        assert_eq!(reduced(text), "helloworldline2été");
        let quoted = serde_json::to_string(text).unwrap();
        assert_eq!(reduced(&quoted), reduced(text));
        assert_eq!(reduced("\\u00e9t\\u00c9 \\u 12"), "été12");
        assert_eq!(reduced("ends in \\"), "endsin");
    }

    #[test]
    fn telling_words_are_told() {
        let text = "Order A-48213 of ada.lovelace@example.com, 2026-11-16T10:00:00.331245Z, page 12, internationally";
        assert_eq!(told(text), ["a48213", "adalovelaceexamplecom"]);
        assert_eq!(told("at 10:42:07.331245 or 1763287200123"), Vec::<String>::new());
        assert_eq!(told("id:A-48213"), ["a48213"]);
    }

    #[test]
    fn letters_of_other_blocks_are_read_as_what_they_look_like() {
        assert_eq!(plain("Ｏｗｅｓ　４８"), "Owes 48");
        assert_eq!(plain("𝐎𝓌ⓔ🅂".replace('🅂', "ѕ").as_str()), "Owes");
        assert_eq!(plain("o\u{200b}w\u{200d}e\u{feff}s"), "owes");
        assert_eq!(LOOKS.chars().count(), LIKE.chars().count());
    }

    #[test]
    fn the_words_of_messages_are_not_specific() {
        let (reduced, specific) = reduce_specific("No results found for Ada, 2026-11-16T10:00Z");
        assert_eq!(reduced.len(), specific.len());
        let kept: Vec<u8> = reduced
            .iter()
            .zip(&specific)
            .filter(|(_, specific)| **specific)
            .map(|(byte, _)| *byte)
            .collect();
        assert_eq!(kept, b"ada");
    }
}
