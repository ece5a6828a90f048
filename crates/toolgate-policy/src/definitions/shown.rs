//! A server's text, fit to be shown to a person.

use super::scan::HiddenKind;

/// The text with everything that cannot be seen written out, cut to `limit` characters.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_written_out() {
        assert_eq!(shown("a\u{1b}[31m\nb\u{202e}", 80), r"a\u{1b}[31m b\u{202e}");
        assert_eq!(shown("abc", 2), "ab…");
        assert_eq!(shown("größe 天气", 80), "größe 天气");
    }
}
