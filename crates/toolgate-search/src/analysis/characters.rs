//! The classes of characters.

/// The class of a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// A letter or a digit of a script that puts blanks between words.
    Word,
    /// A letter of a script that does not.
    Unsegmented,
    /// Holds the parts of an identifier together: `_`, `-`, `.`.
    Connector,
    /// `'` and the typographic apostrophe.
    Apostrophe,
    /// Invisible to readers, so it does not end a word.
    Ignored,
    /// Everything else ends a word.
    Separator,
}

pub(super) fn classify(character: char) -> Class {
    match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' => Class::Word,
        '_' | '-' | '.' => Class::Connector,
        '\'' | '\u{2019}' => Class::Apostrophe,
        _ if character.is_ascii() => Class::Separator,
        // The non-breaking hyphen and the hyphen proper are the same to a reader.
        '\u{2010}' | '\u{2011}' => Class::Connector,
        _ if is_ignored(character) => Class::Ignored,
        _ if is_unsegmented(character) => Class::Unsegmented,
        _ if character.is_alphanumeric() => Class::Word,
        _ => Class::Separator,
    }
}

/// The plain form of a full-width Latin letter or digit, as East Asian input methods write them.
pub(super) fn narrow(character: char) -> char {
    match character {
        '\u{FF10}'..='\u{FF19}' | '\u{FF21}'..='\u{FF3A}' | '\u{FF41}'..='\u{FF5A}' => {
            char::from_u32(u32::from(character) - 0xFEE0).unwrap_or(character)
        }
        _ => character,
    }
}

/// Soft hyphens, combining accents, zero-width and direction characters, variation selectors, tags.
pub(super) fn is_ignored(character: char) -> bool {
    matches!(
        character,
        '\u{00AD}'
            | '\u{0300}'..='\u{036F}'
            | '\u{061C}'
            | '\u{180B}'..='\u{180F}'
            | '\u{200B}'..='\u{200F}'
            | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}'
            | '\u{FE00}'..='\u{FE0F}'
            | '\u{FEFF}'
            | '\u{E0000}'..='\u{E0FFF}'
    )
}

/// Han, Hiragana, Katakana, Hangul, Thai, Lao, Myanmar, Khmer.
///
/// Korean does put blanks between words, but glues particles to them; pairs find the word inside.
fn is_unsegmented(character: char) -> bool {
    matches!(
        character,
        '\u{0E01}'..='\u{0E4E}'
            | '\u{0E81}'..='\u{0ECD}'
            | '\u{1000}'..='\u{109F}'
            | '\u{1100}'..='\u{11FF}'
            | '\u{1780}'..='\u{17D3}'
            | '\u{3005}'..='\u{3007}'
            | '\u{3041}'..='\u{3096}'
            | '\u{309D}'..='\u{309F}'
            | '\u{30A1}'..='\u{30FA}'
            | '\u{30FC}'..='\u{30FF}'
            | '\u{3131}'..='\u{318E}'
            | '\u{31F0}'..='\u{31FF}'
            | '\u{3400}'..='\u{4DBF}'
            | '\u{4E00}'..='\u{9FFF}'
            | '\u{AC00}'..='\u{D7A3}'
            | '\u{F900}'..='\u{FAFF}'
            | '\u{FF66}'..='\u{FF9D}'
            | '\u{20000}'..='\u{323AF}'
    )
}
