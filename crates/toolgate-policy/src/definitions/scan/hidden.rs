//! Characters that a model reads and a person does not see.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// The kinds of hidden characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HiddenKind {
    /// It changes the direction of the text after it, so that the text looks different from what it
    /// is.
    Direction,
    /// It has no width.
    ZeroWidth,
    /// It is a tag character. Tag characters repeat all of ASCII invisibly.
    Tag,
    /// It selects a variant of the character before it; several in a row can carry a text.
    Variation,
    /// It controls a terminal, or breaks a line in an unusual way.
    Control,
}

impl HiddenKind {
    /// The kind of a character, or `None` for a visible one. Line breaks and tabs are `Control`;
    /// [`find`] ignores them.
    pub(crate) fn of(character: char) -> Option<Self> {
        Some(match character {
            '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => Self::Direction,
            '\u{ad}'
            | '\u{34f}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200d}'
            | '\u{2060}'..='\u{2064}'
            | '\u{206a}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}' => Self::ZeroWidth,
            '\u{e0000}'..='\u{e007f}' => Self::Tag,
            '\u{180b}'..='\u{180d}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => {
                Self::Variation
            }
            '\u{2028}' | '\u{2029}' => Self::Control,
            _ if character.is_control() => Self::Control,
            _ => return None,
        })
    }

    /// Whether removing it would join two words.
    pub(super) fn is_blank(self) -> bool {
        self == Self::Control
    }
}

/// The hidden characters of a text, each kind once, with an excerpt that shows them.
pub(super) fn find(text: &str) -> Vec<(HiddenKind, String)> {
    let mut found: Vec<(HiddenKind, String)> = Vec::new();
    let is_right_to_left = text.chars().any(|character| matches!(character, '\u{590}'..='\u{8ff}'));
    let mut before = [' '; 2];
    for (at, character) in text.char_indices() {
        if let Some(kind) = HiddenKind::of(character)
            && !is_honest(character, kind, before, is_right_to_left)
            && !found.iter().any(|(known, _)| *known == kind)
        {
            found.push((kind, excerpt(text, at, kind)));
        }
        before = [before[1], character];
    }
    found
}

/// Whether a hidden character is used as intended: in a script that needs it, in an emoji, at the
/// end of a line.
fn is_honest(character: char, kind: HiddenKind, before: [char; 2], is_right_to_left: bool) -> bool {
    let previous = before[1];
    let is_picture = |character: char| matches!(character, '\u{a9}' | '\u{ae}' | '\u{203c}'..='\u{3299}' | '\u{1f000}'..='\u{1faff}');
    match kind {
        HiddenKind::Control => matches!(character, '\n' | '\r' | '\t'),
        HiddenKind::Direction => {
            is_right_to_left && matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}')
        }
        // Arabic, the scripts of India and related ones join and separate letters with these.
        HiddenKind::ZeroWidth if matches!(character, '\u{200c}' | '\u{200d}') => {
            matches!(previous, '\u{600}'..='\u{10ff}')
                || is_picture(previous)
                || (previous == '\u{fe0f}' && is_picture(before[0]))
        }
        HiddenKind::ZeroWidth | HiddenKind::Tag => false,
        HiddenKind::Variation => {
            is_picture(previous)
                || matches!(previous, '0'..='9' | '#' | '*')
                || matches!(previous, '\u{1800}'..='\u{18af}' | '\u{3400}'..='\u{9fff}')
        }
    }
}

/// The text around the character. Tag characters are shown as the ASCII that they represent.
fn excerpt(text: &str, at: usize, kind: HiddenKind) -> String {
    if kind == HiddenKind::Tag {
        let hidden = text.chars().filter(|character| HiddenKind::of(*character) == Some(kind));
        let ascii = hidden.filter_map(|character| char::from_u32(character as u32 - 0xe_0000));
        return shown(&ascii.collect::<String>(), super::LONGEST_EXCERPT);
    }
    let start =
        text[..at].char_indices().rev().nth(super::AROUND - 1).map_or(0, |(start, _)| start);
    shown(&text[start..], 3 * super::AROUND)
}

/// The text with all invisible characters escaped, cut to `limit` characters.
pub fn shown(text: &str, limit: usize) -> String {
    let mut safe = String::new();
    for (index, character) in text.chars().enumerate() {
        if index == limit {
            safe.push('…');
            break;
        }
        match character {
            '\n' | '\r' | '\t' => safe.push(' '),
            _ if HiddenKind::of(character).is_some() => safe.extend(character.escape_unicode()),
            _ => safe.push(character),
        }
    }
    safe
}

/// The text for a terminal. Characters that control it, change the direction of the text or are
/// invisible are spelt out, such as `\u{202e}`. Line breaks, tabs and characters that are used as
/// intended (in an emoji, in a script that needs them) stay.
pub fn spelled_out(text: &str) -> Cow<'_, str> {
    let is_plain = |letter: char| "\n\t".contains(letter) || HiddenKind::of(letter).is_none();
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let is_right_to_left = text.chars().any(|character| matches!(character, '\u{590}'..='\u{8ff}'));
    let mut safe = String::with_capacity(text.len());
    let (mut before, mut rest) = ([' '; 2], text.chars().peekable());
    while let Some(character) = rest.next() {
        let is_honest = match (character, HiddenKind::of(character)) {
            ('\r', _) => rest.peek() == Some(&'\n'),
            (_, Some(kind)) => is_honest(character, kind, before, is_right_to_left),
            (_, None) => true,
        };
        if is_honest {
            safe.push(character);
        } else {
            safe.extend(character.escape_unicode());
        }
        before = [before[1], character];
    }
    Cow::Owned(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<HiddenKind> {
        find(text).into_iter().map(|(kind, _)| kind).collect()
    }

    #[test]
    fn control_characters_are_spelt_out() {
        let hostile = "a\u{1b}[2Jb\rc\u{202e}d\u{200b}e\u{9b}f\u{e0041}\u{7}";
        let safe = r"a\u{1b}[2Jb\u{d}c\u{202e}d\u{200b}e\u{9b}f\u{e0041}\u{7}";
        assert_eq!(spelled_out(hostile), safe);
        for honest in ["a\tb\r\nc", "👩\u{200d}💻 ❤\u{fe0f}", "سلام\u{200f}", "é日本"]
        {
            assert_eq!(spelled_out(honest), honest);
        }
    }

    #[test]
    fn what_hides_is_found() {
        assert_eq!(kinds("a\u{202e}txt.exe"), [HiddenKind::Direction]);
        assert_eq!(kinds("ig\u{200b}nore\u{200d}"), [HiddenKind::ZeroWidth]);
        assert_eq!(kinds("a\u{1b}[8mhidden\u{1b}[0m"), [HiddenKind::Control]);
        assert_eq!(kinds("a\u{fe00}\u{fe01}"), [HiddenKind::Variation]);
        assert_eq!(kinds("\u{1f600}\u{fe0f}\u{fe0e}"), [HiddenKind::Variation]);
        let tags: String = "read me"
            .bytes()
            .filter_map(|byte| char::from_u32(0xe_0000 + u32::from(byte)))
            .collect();
        assert_eq!(find(&format!("Adds.{tags}")), [(HiddenKind::Tag, "read me".to_owned())]);
    }

    #[test]
    fn what_is_needed_is_not() {
        for honest in [
            "two\nlines\r\n\tand a tab",
            "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} \u{2764}\u{fe0f}\u{200d}\u{1f525} 1\u{fe0f}\u{20e3} \u{26a0}\u{fe0f}",
            "می\u{200c}خواهم",
            "क्\u{200d}ष",
            "שלום\u{200f}!",
            "größe — 天气 · ñ",
        ] {
            assert!(kinds(honest).is_empty(), "{honest}");
        }
    }
}

#[cfg(test)]
mod shown_tests {
    use super::*;

    #[test]
    fn invisible_characters_are_spelt_out() {
        assert_eq!(shown("a\u{1b}[31m\nb\u{202e}", 80), r"a\u{1b}[31m b\u{202e}");
        assert_eq!(shown("abc", 2), "ab…");
        assert_eq!(shown("größe 天气", 80), "größe 天气");
    }
}
