//! Makes a server's texts safe for generated code.

/// A description for a comment: without control and invisible characters, common indentation and
/// trailing spaces, with at most one empty line in a row, cut to `limit` characters.
pub(crate) fn clean(text: &str, limit: usize) -> String {
    let mut kept = String::new();
    let mut count = 0;
    let mut characters = text.trim().chars().peekable();
    while let Some(character) = characters.next() {
        if count == limit {
            kept.push_str(" …");
            break;
        }
        count += 1;
        match character {
            '\r' if characters.peek() == Some(&'\n') => {}
            '\n' | '\r' | '\u{2028}' | '\u{2029}' | '\u{85}' => kept.push('\n'),
            '\t' => kept.push_str("  "),
            _ if character.is_control() || is_invisible(character) => {}
            _ => kept.push(character),
        }
    }
    tidy_lines(&kept)
}

/// Whether this is a plain identifier in both languages, keywords aside.
pub(crate) fn is_identifier(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(|character| character.is_ascii_alphanumeric() || character == '_')
}

/// `name` with `_` for all characters that an identifier cannot have.
pub(crate) fn identifier(name: &str, is_keyword: impl Fn(&str) -> bool) -> String {
    const MAX_CHARACTERS: usize = 128;
    let mut safe: String = name
        .chars()
        .take(MAX_CHARACTERS)
        .map(|character| if character.is_ascii_alphanumeric() { character } else { '_' })
        .collect();
    if safe.is_empty() || safe.starts_with(|first: char| first.is_ascii_digit()) {
        safe.insert(0, '_');
    }
    if is_keyword(&safe) {
        safe.push('_');
    }
    safe
}

/// Converts `create_issue`, `create-issue` and `createIssue` to `CreateIssue`. Empty if no
/// character can be part of a name.
pub(crate) fn pascal_case(name: &str) -> String {
    const MAX_CHARACTERS: usize = 48;
    let mut result = String::new();
    let mut capital = true;
    for character in name.chars() {
        if result.len() == MAX_CHARACTERS {
            break;
        }
        if !character.is_ascii_alphanumeric() {
            capital = true;
        } else if result.is_empty() && character.is_ascii_digit() {
            // A name cannot start with it.
        } else if capital {
            result.push(character.to_ascii_uppercase());
            capital = false;
        } else {
            result.push(character);
        }
    }
    result
}

/// The singular of a name, such as `label` for `labels`, by rules that rarely fail.
pub(crate) fn singular(name: &str) -> String {
    if let Some(stem) = name.strip_suffix("ies").filter(|stem| stem.len() > 2) {
        return format!("{stem}y");
    }
    let kept = ["ss", "us", "is", "news", "series"].iter().any(|end| name.ends_with(end));
    match name.strip_suffix('s') {
        Some(stem) if !kept && stem.len() > 2 => {
            let hissing = ["sse", "xe", "che", "she"].iter().any(|end| stem.ends_with(end));
            stem.strip_suffix('e').filter(|_| hissing).unwrap_or(stem).to_owned()
        }
        _ => name.to_owned(),
    }
}

/// How a string literal escapes a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escape {
    /// `\u{1F600}`
    TypeScript,
    /// `\U0001F600`
    Python,
}

/// A string literal in double quotes without invisible characters.
pub(crate) fn quoted(text: &str, escape: Escape) -> String {
    let mut result = String::with_capacity(text.len() + 2);
    result.push('"');
    for character in text.chars() {
        match character {
            '"' => result.push_str("\\\""),
            '\\' => result.push_str("\\\\"),
            '\n' => result.push_str("\\n"),
            '\r' => result.push_str("\\r"),
            '\t' => result.push_str("\\t"),
            _ if character.is_control()
                || is_invisible(character)
                || matches!(character, '\u{2028}' | '\u{2029}') =>
            {
                let code = u32::from(character);
                let escaped = match escape {
                    _ if code <= 0xffff => format!("\\u{code:04x}"),
                    Escape::TypeScript => format!("\\u{{{code:x}}}"),
                    Escape::Python => format!("\\U{code:08x}"),
                };
                result.push_str(&escaped);
            }
            _ => result.push(character),
        }
    }
    result.push('"');
    result
}

/// `text` with `indent` before each line but the first.
pub(crate) fn indented(text: &str, indent: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for (index, line) in text.lines().enumerate() {
        if index > 0 {
            result.push('\n');
            if !line.is_empty() {
                result.push_str(indent);
            }
        }
        result.push_str(line);
    }
    result
}

/// Invisible characters that change how a text is read: joiners, directions, tags, selectors.
fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

fn tidy_lines(text: &str) -> String {
    let width = |line: &str| line.len() - line.trim_start().len();
    let common = text.lines().skip(1).filter(|line| !line.trim().is_empty()).map(width).min();
    let mut result = String::with_capacity(text.len());
    let mut empty = 0;
    for (index, line) in text.lines().enumerate() {
        let dedented =
            if index == 0 { line } else { line.get(common.unwrap_or(0)..).unwrap_or("") };
        let dedented = dedented.trim_end();
        if dedented.is_empty() {
            empty += 1;
            continue;
        }
        if !result.is_empty() {
            result.push_str(if empty > 0 { "\n\n" } else { "\n" });
        }
        empty = 0;
        result.push_str(dedented);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_have_no_invisible_characters() {
        assert_eq!(clean("a\u{200b}b\u{202e}c\u{7}\u{e0041}d", 100), "abcd");
        assert_eq!(clean("one\r\ntwo\u{2028}three\u{85}four", 100), "one\ntwo\nthree\nfour");
    }

    #[test]
    fn indentation_and_empty_lines_are_tidied() {
        let text = "\n  First.\n\n\n    Args:\n        x: of it  \n    Done.\n  ";
        assert_eq!(clean(text, 100), "First.\n\nArgs:\n    x: of it\nDone.");
        // White space of several bytes is never cut in two.
        assert_eq!(clean("a\n\u{2003}b\n c", 100), "a\n\nc");
    }

    #[test]
    fn long_texts_are_cut_with_a_mark() {
        assert_eq!(clean("abcdef", 3), "abc …");
        assert_eq!(clean("abc", 3), "abc");
    }

    #[test]
    fn literals_show_invisible_characters() {
        assert_eq!(quoted("a\"b\\c\n", Escape::Python), r#""a\"b\\c\n""#);
        assert_eq!(quoted("\u{202e}\u{2028}", Escape::TypeScript), r#""\u202e\u2028""#);
        assert_eq!(quoted("\u{e0041}", Escape::TypeScript), r#""\u{e0041}""#);
        assert_eq!(quoted("\u{e0041}", Escape::Python), r#""\U000e0041""#);
        assert_eq!(quoted("größe 😀", Escape::Python), "\"größe 😀\"");
    }

    #[test]
    fn any_text_becomes_an_identifier() {
        assert_eq!(pascal_case("create-issue_now"), "CreateIssueNow");
        assert_eq!(pascal_case("createIssue"), "CreateIssue");
        assert_eq!(pascal_case("3d model"), "DModel");
        assert_eq!(pascal_case("查询"), "");
        assert_eq!(identifier("delete", |word| word == "delete"), "delete_");
        assert_eq!(identifier("3scale list", |_| false), "_3scale_list");
    }

    #[test]
    fn one_of_many() {
        let pairs = [
            ("labels", "label"),
            ("entries", "entry"),
            ("status", "status"),
            ("addresses", "address"),
            ("boxes", "box"),
            ("issues", "issue"),
            ("bus", "bus"),
        ];
        for (many, one) in pairs {
            assert_eq!(singular(many), one);
        }
    }
}
