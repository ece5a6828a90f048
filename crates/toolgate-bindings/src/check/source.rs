//! Prepares the text of a script for parsing.

use std::borrow::Cow;

use super::{Language, MAX_SOURCE_BYTES};

/// Why a script is not parsed.
pub(super) struct ParseRefusal {
    pub(super) offset: usize,
    pub(super) message: String,
    pub(super) hint: &'static str,
}

/// The largest depth of brackets, because parsers recurse on a small stack.
const MAX_NESTING: usize = 200;

/// Removes the Markdown fence around a script. Line numbers do not change.
pub(super) fn without_fence(source: &str) -> Cow<'_, str> {
    let body = source.trim_start();
    if !body.starts_with("```") {
        return Cow::Borrowed(source);
    }
    let opening = source.len() - body.len();
    let opening_end = source[opening..].find('\n').map_or(source.len(), |end| opening + end);
    let mut text = format!("{}{}", &source[..opening], &source[opening_end..]);
    let end = text.trim_end().len();
    if let Some(closing) = text[..end].strip_suffix("```")
        && closing.trim_end_matches([' ', '\t']).ends_with('\n')
    {
        let start = closing.len();
        text.replace_range(start..end, "");
    }
    Cow::Owned(text)
}

/// The contents of the only fence in a text, for a text that has prose around the script. Line
/// numbers do not change.
pub(super) fn within_fence(source: &str) -> Option<String> {
    let is_fence = |line: &&str| line.trim_start().starts_with("```");
    let mut fences =
        source.lines().enumerate().filter(|(_, line)| is_fence(line)).map(|(index, _)| index);
    let (opening, closing) = (fences.next()?, fences.next()?);
    if fences.next().is_some() {
        return None;
    }
    let inner = |(index, line): (usize, &'_ str)| match line.strip_suffix('\n') {
        _ if opening < index && index < closing => line.to_owned(),
        Some(_) => "\n".to_owned(),
        None => String::new(),
    };
    Some(source.split_inclusive('\n').enumerate().map(inner).collect())
}

/// Why a script must not be parsed, if so.
pub(super) fn refusal(text: &str, language: Language) -> Option<ParseRefusal> {
    if text.len() > MAX_SOURCE_BYTES {
        let message =
            format!("the script has {} bytes, and at most {MAX_SOURCE_BYTES} are read", text.len());
        let hint = "fetch data with tools instead of writing it into the script";
        return Some(ParseRefusal { offset: 0, message, hint });
    }
    Some(ParseRefusal {
        offset: too_deep(text, language)?,
        message: format!("more than {MAX_NESTING} brackets are open here"),
        hint: "put parts of it into variables or functions",
    })
}

/// The position where brackets are nested too deeply. This is an estimate that knows only strings
/// and comments.
fn too_deep(text: &str, language: Language) -> Option<usize> {
    let bytes = text.as_bytes();
    // The open brackets, with a backtick for a template literal.
    let mut open: Vec<u8> = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let rest = &bytes[at..];
        if open.last() == Some(&b'`') {
            match byte {
                b'\\' => at += 1,
                b'`' => {
                    open.pop();
                }
                b'$' if rest.get(1) == Some(&b'{') => {
                    open.push(b'{');
                    at += 1;
                }
                _ => {}
            }
            at += 1;
        } else {
            match (byte, language) {
                (b'(' | b'[' | b'{', _) | (b'`', Language::TypeScript) => open.push(byte),
                (b')' | b']' | b'}', _) => {
                    open.pop();
                }
                (b'"' | b'\'', _) => at += string_length(rest, byte, language),
                (b'#', Language::Python) => at += length_until(rest, b"\n"),
                (b'/', Language::TypeScript) if rest.starts_with(b"//") => {
                    at += length_until(rest, b"\n");
                }
                (b'/', Language::TypeScript) if rest.starts_with(b"/*") => {
                    at += length_until(&rest[2..], b"*/") + 3;
                }
                _ => {}
            }
            at += 1;
        }
        if open.len() > MAX_NESTING {
            return Some(at - 1);
        }
    }
    None
}

/// The length of a string that starts at its opening quote.
fn string_length(rest: &[u8], quote: u8, language: Language) -> usize {
    let triple = [quote; 3];
    if language == Language::Python && rest.starts_with(&triple) {
        return length_until(&rest[3..], &triple) + 5;
    }
    let mut at = 1;
    while let Some(&byte) = rest.get(at) {
        match byte {
            b'\\' => at += 1,
            // An apostrophe in a regular expression starts no string, so a string ends with the
            // line.
            b'\n' => break,
            _ if byte == quote => break,
            _ => {}
        }
        at += 1;
    }
    at
}

fn length_until(rest: &[u8], end: &[u8]) -> usize {
    rest.windows(end.len()).position(|window| window == end).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use Language::{Python, TypeScript};

    use super::*;

    #[test]
    fn a_code_fence_is_removed_and_line_numbers_stay() {
        let text = |source| without_fence(source).into_owned();
        assert_eq!(text("```ts\nreturn 1;\n```\n"), "\nreturn 1;\n\n");
        assert_eq!(text("\n  ```typescript\nreturn 1;\n```"), "\n  \nreturn 1;\n");
        assert_eq!(text("```\nprint(1)"), "\nprint(1)");
        assert_eq!(text("```"), "");
        assert_eq!(text("return `a`"), "return `a`");
        assert_eq!(text("```js\nreturn `x```"), "\nreturn `x```");
    }

    #[test]
    fn prose_around_a_single_code_fence_is_removed() {
        let text = within_fence;
        assert_eq!(
            text("Here:\n\n```ts\nreturn 1;\n```\nIt does.\n").unwrap(),
            "\n\n\nreturn 1;\n\n\n"
        );
        assert_eq!(text("A\r\n  ```\r\n1\r\n```\r\nB").unwrap(), "\n\n1\r\n\n");
        assert_eq!(text("```\n1\n```\n```\n2\n```"), None);
        assert_eq!(text("```\n1"), None);
        assert_eq!(text("return 1"), None);
    }

    #[test]
    fn brackets_in_strings_are_not_nesting() {
        let deep = "(".repeat(MAX_NESTING + 1);
        let refused =
            |text: String, language| refusal(&text, language).map(|refusal| refusal.offset);
        assert_eq!(refused(deep.clone(), TypeScript), Some(MAX_NESTING));
        assert_eq!(refused(deep.clone(), Python), Some(MAX_NESTING));
        assert!(refused("`${".repeat(150), TypeScript).is_some());
        for (text, language) in [
            (format!("'{deep}'"), TypeScript),
            (format!("\"a\\\"{deep}\""), TypeScript),
            (format!("`{deep}\n{deep}`"), TypeScript),
            (format!("// {deep}\n/* {deep}\n{deep} */"), TypeScript),
            (format!("'{deep}'"), Python),
            (format!("'''{deep}\n{deep}'''"), Python),
            (format!("# {deep}\n\"\"\"{deep}"), Python),
            ("[(), {}],".repeat(1000), TypeScript),
            ("/*".to_owned(), TypeScript),
            ("'''".to_owned(), Python),
            ("\\".to_owned(), Python),
        ] {
            assert_eq!(refused(text.clone(), language), None, "{text}");
        }
        assert!(refused(" ".repeat(MAX_SOURCE_BYTES + 1), Python).is_some());
    }
}
