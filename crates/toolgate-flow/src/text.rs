//! Texts reduced to what copying and quoting do not change.

/// The letters and digits of `text` in lower case, as bytes, added to `reduced`. Escapes that JSON and
/// programs write for line breaks and quotes are left out, so that a text and its quoted form are the same.
pub(crate) fn reduce(text: &str, reduced: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        if byte.is_ascii() {
            if byte == b'\\' {
                at += escape(&bytes[at..], reduced);
                continue;
            }
            if byte.is_ascii_alphanumeric() {
                reduced.push(byte.to_ascii_lowercase());
            }
            at += 1;
            continue;
        }
        let Some(character) = text[at..].chars().next() else { return };
        push(character, reduced);
        at += character.len_utf8();
    }
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
    let inside = |character: char| character.is_alphanumeric() || "@._-+".contains(character);
    text.split(move |character: char| !inside(character)).filter_map(|word| {
        let mut reduced = Vec::new();
        reduce(word, &mut reduced);
        let digits = reduced.iter().filter(|byte| byte.is_ascii_digit()).count();
        let long = reduced.len() >= LONG_WORD && word.contains(['@', '.', '_', '-']);
        let numbered = reduced.len() >= NUMBERED_WORD && digits >= TELLING_DIGITS;
        ((long || numbered) && !is_date(word)).then_some(reduced)
    })
}

/// A word of this many letters is telling if it is composed, as addresses and identifiers are.
const LONG_WORD: usize = 10;
/// A word with digits is telling from this length on: an order number, a postcode with its town, a key.
const NUMBERED_WORD: usize = 6;
const TELLING_DIGITS: usize = 4;

/// Dates are in nearly every result and nearly every argument, and tell nothing of where they are from.
fn is_date(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let dated = word.starts_with("19") || word.starts_with("20");
    let plain = word.bytes().all(|byte| byte.is_ascii_digit() || b"-.TZ+".contains(&byte));
    dated && plain && (8..=20).contains(&digits) && word.contains('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduced(text: &str) -> String {
        let mut bytes = Vec::new();
        reduce(text, &mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    fn words(text: &str) -> Vec<String> {
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
        let text = "Order A-48213 of ada.lovelace@example.com, 2026-11-16T10:00:00Z, page 12, internationally";
        assert_eq!(words(text), ["a48213", "adalovelaceexamplecom"]);
    }
}
