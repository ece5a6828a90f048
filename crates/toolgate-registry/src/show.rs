//! Shows untrusted texts to a person without hidden characters.

/// A text in which every character is what it looks like: what is not printable ASCII is written as
/// `\u{…}`, and a backslash twice.
///
/// ```
/// use toolgate_registry::visible;
///
/// assert_eq!(visible("npx\n\u{202e}gpj"), "npx\\u{a}\\u{202e}gpj");
/// ```
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' => shown.push_str("\\\\"),
            ' '..='~' => shown.push(character),
            other => shown.extend(other.escape_unicode()),
        }
    }
    shown
}

/// A word of a command, quoted for a shell if needed.
pub(crate) fn word(text: &str) -> String {
    let plain =
        |character: char| character.is_ascii_alphanumeric() || "-_./:@=+,%".contains(character);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", visible(text).replace('\'', "'\\''"))
}

/// A text on one line, cut, with hidden characters spelt out: for what helps to decide and is not decided on.
pub(crate) fn summary(text: &str, limit: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().take(limit).collect();
    let mut line = String::new();
    for character in words.join(" ").chars() {
        if hides(character) {
            line.extend(character.escape_unicode());
        } else {
            line.push(character);
        }
    }
    match line.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Whether a character moves a cursor, turns a line around or hides text.
fn hides(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
                | '\u{feff}' | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hides() {
        assert_eq!(word("--port=8080"), "--port=8080");
        assert_eq!(word("a b; rm -rf ~"), "'a b; rm -rf ~'");
        assert_eq!(word("it's"), "'it'\\''s'");
        assert_eq!(word(""), "''");
        assert_eq!(word("а"), "'\\u{430}'", "a Cyrillic letter is not a Latin one");
        assert_eq!(summary(" a\n\u{202e}b\u{1b}[2J c ", 40), "a \\u{202e}b\\u{1b}[2J c");
        assert_eq!(summary(&"word ".repeat(100), 9), "word word…");
    }
}
