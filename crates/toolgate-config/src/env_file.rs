//! The text of an `envFile`: lines of `NAME=value`.
//!
//! Nothing in it is expanded and nothing is run: a `$` means a `$`, also in `$(…)`.

use std::collections::BTreeMap;

use crate::expand::is_variable_name;

/// The largest env file that is read.
pub const MAX_ENV_FILE_BYTES: usize = 128 * 1024;

/// Reads an env file of a configuration. It gets the path as it is written there, with its variables
/// expanded.
pub type EnvFiles<'a> = &'a dyn Fn(&str) -> Result<String, EnvFileError>;

/// Why the text of an env file is not there. No variant holds a part of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvFileError {
    /// Nobody said how to read files.
    #[error("cannot be read here")]
    NoAccess,
    /// There is no file.
    #[error("names a file that does not exist")]
    Missing,
    /// It is a folder, a device or a pipe.
    #[error("names something that is not a file")]
    NotAFile,
    /// The system does not let this user read it.
    #[error("names a file that you may not read")]
    Denied,
    /// It has more than [`MAX_ENV_FILE_BYTES`].
    #[error("names a file that is too large")]
    TooLarge,
    /// It is not text.
    #[error("names a file that is not UTF-8")]
    NotText,
    /// The system gave another reason.
    #[error("names a file that cannot be read: {0}")]
    Failed(std::io::ErrorKind),
}

/// A line of an env file that cannot be understood. It does not hold the line, which may be a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("line {line} {problem}")]
pub struct EnvFileSyntaxError {
    /// The line, from 1.
    pub line: usize,
    problem: &'static str,
}

impl EnvFileError {
    /// What to do.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::NoAccess => "write the variables under `env`",
            Self::Missing => {
                "create it, correct the path, or remove `envFile`; a relative path starts at the folder \
                 of this file"
            }
            Self::NotAFile => "write the path of a file with lines of `NAME=value`",
            Self::Denied => "let yourself read it, or remove `envFile`",
            Self::TooLarge => "an env file may have at most 131,072 bytes",
            Self::NotText => "save the file as UTF-8",
            Self::Failed(_) => "correct the path, or remove `envFile`",
        }
    }
}

/// The names of the variables in an env file, in order.
pub fn env_file_names(text: &str) -> Result<Vec<String>, EnvFileSyntaxError> {
    Ok(read(text)?.into_keys().collect())
}

/// The variables of an env file. Of two lines with the same name the last one counts.
pub(crate) fn read(text: &str) -> Result<BTreeMap<String, String>, EnvFileSyntaxError> {
    let mut variables = BTreeMap::new();
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut line = 1;
    while !rest.is_empty() {
        let (this, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let trimmed = this.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            (rest, line) = (after, line + 1);
            continue;
        }
        let wrong = |problem| EnvFileSyntaxError { line, problem };
        let (name, value) = this.split_once('=').ok_or(wrong("is not `NAME=value`"))?;
        let name = without_export(name.trim_start()).trim_end();
        if !is_name(name) {
            return Err(wrong("does not begin with the name of a variable"));
        }
        let start = value.trim_start();
        if let Some(quote @ ('"' | '\'')) = start.chars().next() {
            // The value may go on in the lines below.
            let quoted = &rest[this.len() - start.len() + 1..];
            let (value, length) = read_quoted(quoted, quote)
                .ok_or(wrong("begins with a quote that is never closed"))?;
            let (end, next) = quoted[length..].split_once('\n').unwrap_or((&quoted[length..], ""));
            let lines = quoted[..length].matches('\n').count();
            if !(end.trim().is_empty() || end.trim_start().starts_with('#')) {
                let problem = "has something after the closing quote";
                return Err(EnvFileSyntaxError { line: line + lines, problem });
            }
            variables.insert(name.to_owned(), value);
            (rest, line) = (next, line + lines + 1);
        } else {
            variables.insert(name.to_owned(), without_comment(value).to_owned());
            (rest, line) = (after, line + 1);
        }
    }
    Ok(variables)
}

/// A name behind the `export` of shells.
fn without_export(name: &str) -> &str {
    match name.strip_prefix("export") {
        Some(exported) if exported.starts_with([' ', '\t']) => exported.trim_start(),
        _ => name,
    }
}

/// Names that some programs use have points and hyphens.
fn is_name(name: &str) -> bool {
    is_variable_name(&name.replace(['.', '-'], "_")) && !name.starts_with(['.', '-'])
}

/// A value without quotes: a `#` begins a comment only after a space, as in a shell.
fn without_comment(value: &str) -> &str {
    let comment = value
        .char_indices()
        .find(|(at, letter)| *letter == '#' && value[..*at].ends_with([' ', '\t']));
    value[..comment.map_or(value.len(), |(at, _)| at)].trim()
}

/// The value up to the closing quote, and the length of its text with that quote.
fn read_quoted(text: &str, quote: char) -> Option<(String, usize)> {
    let mut value = String::new();
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            _ if letter == quote => return Some((value, at + quote.len_utf8())),
            '\r' if letters.peek().is_some_and(|(_, next)| *next == '\n') => {}
            '\\' if quote == '"' => match letters.next()?.1 {
                'n' => value.push('\n'),
                'r' => value.push('\r'),
                't' => value.push('\t'),
                escaped @ ('"' | '\\' | '$' | '`') => value.push(escaped),
                // A line that goes on.
                '\n' => {}
                other => value.extend(['\\', other]),
            },
            _ => value.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(text: &str) -> Vec<(String, String)> {
        read(text).unwrap().into_iter().collect()
    }

    fn value(line: &str) -> String {
        let all = all(line);
        assert_eq!(all.len(), 1, "{line}");
        assert_eq!(all[0].0, "A", "{line}");
        all[0].1.clone()
    }

    #[test]
    fn the_usual_forms_are_read() {
        for (line, expected) in [
            ("A=plain", "plain"),
            ("A=", ""),
            ("  A = spaced out  ", "spaced out"),
            ("export A=x", "x"),
            ("export\tA='x'", "x"),
            ("A=x # a comment", "x"),
            ("A=pass#word", "pass#word"),
            ("A= # only a comment", ""),
            ("A=a=b==", "a=b=="),
            ("A='one $B `c` \\n # two'", "one $B `c` \\n # two"),
            ("A=\"one\\ntwo\\t\\\"three\\\" \\\\ \\$ \\x\" # said", "one\ntwo\t\"three\" \\ $ \\x"),
            ("A=\"first\nsecond\r\nthird\"\r\n", "first\nsecond\nthird"),
            ("A='first\nsecond'", "first\nsecond"),
            ("A=it's", "it's"),
            ("\u{feff}A=marked", "marked"),
            ("A=windows\r\n", "windows"),
            ("A=1\nA=2", "2"),
            ("A=\u{e9}\u{4e2d}", "\u{e9}\u{4e2d}"),
        ] {
            assert_eq!(value(line), expected, "{line}");
        }
        let text = "# a file\n\nA=1\n  # more\nB=\"x\ny\"\nexport C=3\nD.e-f=4";
        let names: Vec<String> = all(text).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["A", "B", "C", "D.e-f"]);
        assert_eq!(env_file_names(text).unwrap(), names);
    }

    #[test]
    fn nothing_is_expanded_or_run() {
        for text in ["$HOME", "${HOME}", "$(touch PWNED)", "`touch PWNED`"] {
            assert_eq!(value(&format!("A={text}")), text);
            assert_eq!(value(&format!("A='{text}'")), text);
            assert_eq!(value(&format!("A=\"{text}\"")), text);
        }
    }

    #[test]
    fn what_cannot_be_understood_has_a_line_and_no_content() {
        for (text, line) in [
            ("hunter2", 1),
            ("A=1\n\nhunter2\n", 3),
            ("1A=hunter2", 1),
            ("A B=hunter2", 1),
            ("=hunter2", 1),
            ("export =hunter2", 1),
            ("A=1\nB=\"hunter2\nmore", 2),
            ("B='hunter2", 1),
            ("A=\"x\ny\" hunter2", 2),
            ("A=\"hunter2\\", 1),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(error.line, line, "{text}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[A-C=\"'\\\\#$ \n\r\t\u{feff}\u{e9}]{0,60}") {
            let _ = read(&text);
        }

        #[test]
        fn what_is_quoted_comes_back(secret in "[ -~\n\u{e9}]{0,40}") {
            let quoted = secret.replace('\\', "\\\\").replace('"', "\\\"");
            prop_assert_eq!(value(&format!("A=\"{quoted}\" # end\n")), secret);
        }
    }
}
