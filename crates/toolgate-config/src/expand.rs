//! References to environment variables and stored values in values.
//!
//! `${NAME}` and VS Code's `${env:NAME}` mean the variable. `${NAME:-default}` means the default if
//! the variable is unset or empty, as in a shell. `${userHome}` and `${pathSeparator}` (`${/}`) of
//! editors are supported too, and `${workspaceFolder}` where it is known. `${file:PATH}`, `${command:LINE}`
//! and `${keychain:NAME}` mean values that are stored elsewhere. Other texts that look like a reference,
//! such as a shell's `${name%%.*}`, stay unchanged.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::MAIN_SEPARATOR_STR;

use crate::stored::{CommandTime, StoredReference, StoredValueError, StoredValues};
use crate::{Environment, Secret, Surroundings};

/// The longest value after expansion; no operating system takes a longer argument.
const MAX_VALUE_BYTES: usize = 128 * 1024;
/// The largest size of all expanded values of a file, so that a small file cannot fill the memory.
const MAX_TOTAL_BYTES: usize = 16 * 1024 * 1024;

/// Expands the values of one file.
pub(crate) struct Expander<'a> {
    environment: Environment<'a>,
    stored: StoredValues<'a>,
    workspace_folder: Option<&'a str>,
    remaining: usize,
    /// The variables of the server that is read, which count before those of the environment.
    pub(crate) of_server: BTreeMap<String, Secret>,
    /// How the client of the file writes references.
    pub(crate) style: ReferenceStyle,
    commands: CommandTime,
    /// Whether the value that is read is needed only when its server starts.
    pub(crate) is_of_start: bool,
    /// The command lines of the server that is read, which run when it starts.
    pub(crate) lines: BTreeSet<String>,
}

/// How a client writes references to variables, beside `${NAME}`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReferenceStyle {
    /// Not at all.
    #[default]
    Plain,
    /// `{env:NAME}` and `{file:PATH}`, as opencode and Kilo do.
    Braces,
    /// `$NAME` and `$(command)`, as Crush does.
    Shell,
}

/// Why a value cannot be expanded. Names come from the file; values of variables are not stored.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unexpanded {
    /// The variable is not set and there is no default.
    Unset(String),
    /// A stored value is not there, with its hint.
    Stored { reference: String, error: StoredValueError, hint: String },
    /// A stored value without a name, such as `${keychain:}`.
    Unnamed(String),
    /// Only an editor can expand the reference, such as `${config:token}`.
    Editor(String),
    /// There is a reference within a default.
    Nested,
    /// The value would be too long.
    TooLong,
    /// The value has a NUL character, which neither a process nor a header can carry.
    Nul,
}

/// The text between `${` and `}`.
enum Reference<'t> {
    Variable { name: &'t str, default: Option<&'t str> },
    UserHome,
    WorkspaceFolder,
    PathSeparator,
    Stored(StoredReference<'t>),
    Unnamed,
    Editor,
    Literal,
}

impl<'a> Expander<'a> {
    pub(crate) fn new(surroundings: &Surroundings<'a>) -> Self {
        let Surroundings { environment, stored, workspace_folder, commands, .. } = *surroundings;
        Self {
            environment,
            stored,
            workspace_folder,
            remaining: MAX_TOTAL_BYTES,
            of_server: BTreeMap::new(),
            style: ReferenceStyle::Plain,
            commands,
            is_of_start: false,
            lines: BTreeSet::new(),
        }
    }

    /// The value of a variable that a setting names.
    pub(crate) fn variable(&mut self, name: &str) -> Result<String, Unexpanded> {
        let value = (self.environment)(name).ok_or_else(|| Unexpanded::Unset(name.to_owned()))?;
        self.finish(value)
    }

    /// A value that is stored elsewhere.
    pub(crate) fn stored(&mut self, reference: StoredReference<'_>) -> Result<String, Unexpanded> {
        let value = self.look_up(reference)?;
        self.finish(value)
    }

    fn look_up(&self, reference: StoredReference<'_>) -> Result<String, Unexpanded> {
        (self.stored)(reference).map_err(|error| Unexpanded::Stored {
            reference: reference.to_string(),
            hint: reference.hint(&error),
            error,
        })
    }

    /// Replaces the references in a text.
    pub(crate) fn expand(&mut self, text: &str) -> Result<String, Unexpanded> {
        let text = &*in_references(text, self.style);
        let mut expanded = String::with_capacity(text.len().min(MAX_VALUE_BYTES));
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            let (before, reference) = rest.split_at(start);
            expanded.push_str(before);
            let Some(end) = end_of(reference) else {
                rest = reference;
                break;
            };
            let (whole, after) = reference.split_at(end + 1);
            self.push_reference(&mut expanded, whole)?;
            rest = after;
            if expanded.len() > MAX_VALUE_BYTES {
                return Err(Unexpanded::TooLong);
            }
        }
        expanded.push_str(rest);
        self.finish(expanded)
    }

    /// Appends the value of a reference.
    fn push_reference(&mut self, expanded: &mut String, whole: &str) -> Result<(), Unexpanded> {
        match classify(&whole[2..whole.len() - 1]) {
            Reference::Variable { name, default } => {
                let kept = default.and_then(kept_default);
                if kept.is_none() && default.is_some_and(|default| default.contains("${")) {
                    return Err(Unexpanded::Nested);
                }
                let own = self.of_server.get(name).map(|value| value.expose().to_owned());
                let ours = (self.environment)(name);
                if self.is_of_start && own.is_some() && own != ours {
                    // No client replaces it: the program does, such as mcp-remote or a shell. Everybody can see
                    // the arguments of a process, and only its user the variables.
                    expanded.extend(["${", name, "}"]);
                    return Ok(());
                }
                let value = own.or(ours);
                let is_empty = value.as_ref().is_some_and(String::is_empty);
                match (value.filter(|_| default.is_none() || !is_empty), default, kept) {
                    (Some(value), ..) => expanded.push_str(&value),
                    (None, _, Some(kept)) => expanded.push_str(&self.look_up(kept)?),
                    (None, Some(default), None) => expanded.push_str(default),
                    (None, None, None) => return Err(Unexpanded::Unset(name.to_owned())),
                }
            }
            Reference::UserHome => {
                let home = ["HOME", "USERPROFILE"].into_iter().find_map(self.environment);
                expanded.push_str(&home.ok_or_else(|| Unexpanded::Unset("HOME".to_owned()))?);
            }
            Reference::WorkspaceFolder => match self.workspace_folder {
                Some(folder) => expanded.push_str(folder),
                None => return Err(Unexpanded::Editor(whole.to_owned())),
            },
            Reference::PathSeparator => expanded.push_str(MAIN_SEPARATOR_STR),
            Reference::Stored(StoredReference::Command(line))
                if self.is_of_start && self.commands == CommandTime::Start =>
            {
                self.lines.insert(line.to_owned());
                expanded.push_str(whole);
            }
            Reference::Stored(reference) => expanded.push_str(&self.look_up(reference)?),
            Reference::Unnamed => return Err(Unexpanded::Unnamed(whole.to_owned())),
            Reference::Editor => return Err(Unexpanded::Editor(whole.to_owned())),
            Reference::Literal => expanded.push_str(whole),
        }
        Ok(())
    }

    /// Checks the size of an expanded value.
    pub(crate) fn finish(&mut self, value: String) -> Result<String, Unexpanded> {
        if value.contains('\0') {
            return Err(Unexpanded::Nul);
        }
        if value.len() > MAX_VALUE_BYTES {
            return Err(Unexpanded::TooLong);
        }
        self.remaining = self.remaining.checked_sub(value.len()).ok_or(Unexpanded::TooLong)?;
        Ok(value)
    }
}

/// Where a reference ends. A default may be a reference itself.
fn end_of(reference: &str) -> Option<usize> {
    let end = reference.find('}')?;
    let is_whole =
        reference[2..end].contains(":-${keychain:") && reference[end..].starts_with("}}");
    Some(if is_whole { end + 1 } else { end })
}

/// The value in the vault that is a default: `${NAME:-${keychain:…}}`.
fn kept_default(default: &str) -> Option<StoredReference<'_>> {
    let inner = default.strip_prefix("${")?.strip_suffix('}')?;
    StoredReference::read(inner).filter(|it| matches!(it, StoredReference::Keychain(_)))
}

fn classify(inner: &str) -> Reference<'_> {
    const EDITOR_PREFIXES: [&str; 1] = ["config:"];
    const EDITOR_NAMES: [&str; 2] = ["workspaceFolderBasename", "workspaceRoot"];
    match inner {
        "userHome" => return Reference::UserHome,
        "workspaceFolder" => return Reference::WorkspaceFolder,
        "pathSeparator" | "/" => return Reference::PathSeparator,
        _ => {}
    }
    if let Some(reference) = StoredReference::read(inner) {
        return Reference::Stored(reference);
    }
    if ["file", "command", "keychain", "input"]
        .contains(&inner.split(':').next().unwrap_or_default())
        && inner.contains(':')
    {
        return Reference::Unnamed;
    }
    let of_editor = EDITOR_NAMES.contains(&inner)
        || inner.starts_with("workspaceFolder:")
        || EDITOR_PREFIXES.iter().any(|prefix| inner.starts_with(prefix));
    if of_editor {
        return Reference::Editor;
    }
    let inner = inner.strip_prefix("env:").unwrap_or(inner);
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    };
    if is_variable_name(name) { Reference::Variable { name, default } } else { Reference::Literal }
}

/// A text with the references of another client written as `${…}`. An unset variable of opencode is an empty
/// text, as there.
pub fn in_references(text: &str, style: ReferenceStyle) -> Cow<'_, str> {
    let mark = match style {
        ReferenceStyle::Braces if text.contains('{') => '{',
        ReferenceStyle::Shell if text.contains('$') => '$',
        _ => return Cow::Borrowed(text),
    };
    let mut written = String::with_capacity(text.len() + 8);
    let mut rest = text;
    while let Some(start) = rest.find(mark) {
        let (before, reference) = rest.split_at(start);
        written.push_str(before);
        let is_ours = before.ends_with('$') || reference.starts_with("${");
        let found = if is_ours { None } else { foreign_reference(reference, style) };
        let (reference, length) = found.unwrap_or_else(|| (mark.to_string(), 1));
        written.push_str(&reference);
        rest = &rest[start + length..];
    }
    written.push_str(rest);
    Cow::Owned(written)
}

/// The reference at the beginning of a text as `${…}`, and how long it is there.
fn foreign_reference(text: &str, style: ReferenceStyle) -> Option<(String, usize)> {
    if style == ReferenceStyle::Braces {
        let inner = &text[1..text.find('}')?];
        let (kind, rest) = inner.split_once(':')?;
        let reference = match kind {
            "env" if is_variable_name(rest) => format!("${{{rest}:-}}"),
            "file" if !rest.is_empty() => format!("${{file:{rest}}}"),
            _ => return None,
        };
        return Some((reference, inner.len() + 2));
    }
    if let Some(line) = text.strip_prefix("$(") {
        let line = &line[..line.find(')')?];
        // A brace would end the reference.
        let is_simple = !line.trim().is_empty() && !line.contains(['(', '}']);
        return is_simple.then(|| (format!("${{command:{line}}}"), line.len() + 3));
    }
    let name = text[1..].split(|it: char| !it.is_ascii_alphanumeric() && it != '_').next()?;
    is_variable_name(name).then(|| (format!("${{{name}}}"), name.len() + 1))
}

/// Whether a text can be the name of a variable as shells write it.
pub(crate) fn is_variable_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn environment(name: &str) -> Option<String> {
        match name {
            "USER" => Some("ada".to_owned()),
            "HOME" => Some("/home/ada".to_owned()),
            "EMPTY" => Some(String::new()),
            "BIG" => Some("x".repeat(100_000)),
            "TRAP" => Some("${USER}".to_owned()),
            _ => None,
        }
    }

    fn expand(text: &str) -> Result<String, Unexpanded> {
        expander(None, ReferenceStyle::Plain).expand(text)
    }

    fn expander(workspace_folder: Option<&str>, style: ReferenceStyle) -> Expander<'_> {
        let surroundings =
            Surroundings { workspace_folder, stored: &stored, ..Surroundings::of(&environment) };
        Expander { style, ..Expander::new(&surroundings) }
    }

    fn stored(reference: StoredReference<'_>) -> Result<String, StoredValueError> {
        match reference {
            StoredReference::File("/run/key") => Ok("${USER}".to_owned()),
            StoredReference::Command("pass show x") => Ok("from a command".to_owned()),
            StoredReference::Keychain("github/TOKEN") => Ok("kept".to_owned()),
            _ => Err(StoredValueError::Missing),
        }
    }

    #[test]
    fn references_are_replaced() {
        assert_eq!(expand("a ${USER} b${USER}").unwrap(), "a ada bada");
        assert_eq!(expand("${env:USER}").unwrap(), "ada");
        assert_eq!(expand("${NONE:-fall back}!").unwrap(), "fall back!");
        assert_eq!(expand("${EMPTY:-fall back}|${EMPTY}|${NONE:-}").unwrap(), "fall back||");
        assert_eq!(expand("${userHome}/x").unwrap(), "/home/ada/x");
        let mut here = expander(Some("/src/app"), ReferenceStyle::Plain);
        assert_eq!(here.expand("${workspaceFolder}/x").unwrap(), "/src/app/x");
    }

    #[test]
    fn text_without_references_stays() {
        for text in ["", "$USER", "${", "${USER", "${}", "${a b}", "${x%%.*}", "$$", "${1}", "é${"]
        {
            assert_eq!(expand(text).unwrap(), text);
        }
    }

    #[test]
    fn stored_values_are_replaced() {
        assert_eq!(expand("Bearer ${keychain:github/TOKEN}").unwrap(), "Bearer kept");
        assert_eq!(expand("${command:pass show x}!").unwrap(), "from a command!");
        assert_eq!(expand("a ${NONE:-${keychain:github/TOKEN}} b").unwrap(), "a kept b");
        assert_eq!(expand("${USER:-${keychain:none}}").unwrap(), "ada");
        assert_eq!(expand("${NONE:-${keychain:github/TOKEN}").unwrap_err(), Unexpanded::Nested);
        assert_eq!(expand("${file:/run/key}").unwrap(), "${USER}", "not expanded again");
        for (text, hint) in [
            ("${input:api-key}", "store it: `toolgate secret set api-key`"),
            ("${keychain:a}", "store it: `toolgate secret set a`"),
            ("${command:false}", "run it in a shell to see why"),
        ] {
            let reference = text.to_owned();
            let (error, hint) = (StoredValueError::Missing, hint.to_owned());
            assert_eq!(expand(text), Err(Unexpanded::Stored { reference, error, hint }), "{text}");
        }
        for text in ["${file:}", "${command: }", "${keychain:}", "${input:}"] {
            assert_eq!(expand(text), Err(Unexpanded::Unnamed(text.to_owned())));
        }
    }

    #[test]
    fn references_of_other_clients_are_written_as_ours() {
        for (style, text, expected) in [
            (
                ReferenceStyle::Braces,
                "Bearer {env:USER}{env:NONE}|{x}|${USER}",
                "Bearer ada|{x}|ada",
            ),
            (ReferenceStyle::Braces, "{file:/run/key}{", "${USER}{"),
            (
                ReferenceStyle::Shell,
                "$USER-$(pass show x)-${USER}-$-$1",
                "ada-from a command-ada-$-$1",
            ),
            (ReferenceStyle::Shell, "$(", "$("),
            (ReferenceStyle::Plain, "$USER {env:USER}", "$USER {env:USER}"),
        ] {
            assert_eq!(expander(None, style).expand(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn a_value_is_not_expanded_again() {
        assert_eq!(expand("${TRAP}").unwrap(), "${USER}");
    }

    #[test]
    fn a_reference_that_cannot_be_expanded_has_a_reason() {
        assert_eq!(expand("x${NONE}"), Err(Unexpanded::Unset("NONE".to_owned())));
        assert_eq!(expand("${config:key}"), Err(Unexpanded::Editor("${config:key}".to_owned())));
        assert_eq!(expand("${NONE:-${USER}}"), Err(Unexpanded::Nested));
        assert_eq!(expand("${BIG}${BIG}"), Err(Unexpanded::TooLong));
        assert_eq!(expand("a\0b"), Err(Unexpanded::Nul));
    }

    #[test]
    fn expansion_is_limited() {
        let mut expander = expander(None, ReferenceStyle::Plain);
        let grown = (0..1_000).take_while(|_| expander.expand("${BIG}").is_ok()).count();
        assert_eq!(grown, MAX_TOTAL_BYTES / 100_000);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[${}():a-z\\-é/]{0,40}") {
            for style in [ReferenceStyle::Plain, ReferenceStyle::Braces, ReferenceStyle::Shell] {
                let _ = expander(None, style).expand(&text);
            }
        }
    }
}
