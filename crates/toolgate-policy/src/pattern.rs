//! Patterns that select tools by name.

use serde::Serialize;
use thiserror::Error;
use toolgate_catalog::{PossibleNames, ToolId, possible_names};
use unicode_security::confusable_detection::skeleton;
use wildmatch::WildMatch;

/// The longest pattern of a name, in bytes. A tool's own name may have 512.
pub const MAX_PATTERN_BYTES: usize = 512;

/// The largest number of `*` in a pattern, because each can make a match start over.
const MAX_STARS: usize = 16;

/// A name, or a pattern of names: `*` matches any characters, `?` one character. Case matters.
#[derive(Debug, Clone, PartialEq)]
pub enum NamePattern {
    /// Only this name.
    Exactly(Box<str>),
    /// Every name that matches.
    Like(WildMatch),
}

/// A pattern of tools as it is written: `github_*`, `github/create_*`.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolPattern {
    pub(crate) name: NamePattern,
    pub(crate) naming: Naming,
    /// The pattern in its two look-alike forms, to match names that look similar.
    looks: [NamePattern; 2],
}

/// The names of a tool that a pattern is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Naming {
    /// The exposed name.
    Exposed,
    /// The name that its server gives it.
    Own,
    /// Either name. The server is given separately, so no other tool can be meant.
    Either,
}

/// Why a text is no pattern. The rest of its rule is still used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error, Serialize)]
pub enum PatternError {
    /// The text is empty.
    #[error("is empty")]
    Empty,
    /// The text is longer than any name.
    #[error("is longer than {MAX_PATTERN_BYTES} bytes")]
    TooLong,
    /// The pattern would take too long to match.
    #[error("has more than {MAX_STARS} `*`")]
    TooManyStars,
}

impl NamePattern {
    /// Reads a pattern.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        if text.len() > MAX_PATTERN_BYTES {
            return Err(PatternError::TooLong);
        }
        if text.chars().filter(|character| *character == '*').count() > MAX_STARS {
            return Err(PatternError::TooManyStars);
        }
        Ok(if text.contains(['*', '?']) {
            Self::Like(WildMatch::new(text))
        } else {
            Self::Exactly(text.into())
        })
    }

    /// Whether a name matches.
    pub fn matches(&self, name: &str) -> bool {
        match self {
            Self::Exactly(exact) => **exact == *name,
            Self::Like(pattern) => pattern.matches(name),
        }
    }

    /// The name, if the pattern matches only one.
    pub fn exact(&self) -> Option<&str> {
        match self {
            Self::Exactly(exact) => Some(exact),
            Self::Like(_) => None,
        }
    }

    /// Whether a name looks like one that matches.
    pub(crate) fn resembles(&self, name: &str) -> bool {
        self.looks().iter().zip(looks(name)).any(|(pattern, look)| pattern.matches(&look))
    }

    /// Patterns for the look-alike forms of matching names.
    fn looks(&self) -> [Self; 2] {
        looks(&self.to_string()).map(|look| match self {
            Self::Exactly(_) => Self::Exactly(look.into()),
            Self::Like(_) => Self::Like(WildMatch::new(&look)),
        })
    }

    /// The start that all matching names have.
    pub(crate) fn literal_start(&self) -> String {
        let text = self.to_string();
        text.split(['*', '?']).next().unwrap_or_default().to_owned()
    }
}

impl ToolPattern {
    /// Reads a pattern of exposed names, or of `server/tool`, for which the pattern of the server
    /// is returned as well.
    pub fn new(text: &str) -> Result<(Option<NamePattern>, Self), PatternError> {
        match text.split_once('/') {
            Some((server, tool)) => {
                let pattern = Self::named(NamePattern::new(tool)?, Naming::Own);
                Ok((Some(NamePattern::new(server)?), pattern))
            }
            None => Ok((None, Self::named(NamePattern::new(text)?, Naming::Exposed))),
        }
    }

    /// Reads a pattern for the tools of a server that is given separately. It matches their own
    /// names or their exposed names.
    pub fn of_server(text: &str) -> Result<Self, PatternError> {
        Ok(Self::named(NamePattern::new(text)?, Naming::Either))
    }

    /// A pattern for the tool with exactly this name at its server. A `*` is an ordinary character
    /// here.
    pub fn own_name(name: &str) -> Self {
        Self::named(NamePattern::Exactly(name.into()), Naming::Own)
    }

    /// Whether a tool with these names matches.
    pub fn matches(&self, own: &str, exposed: &str) -> bool {
        match self.naming {
            Naming::Exposed => self.name.matches(exposed),
            Naming::Own => self.name.matches(own),
            Naming::Either => self.name.matches(own) || self.name.matches(exposed),
        }
    }

    /// Whether a tool with these names matches, or looks like one that does.
    pub(crate) fn fits(&self, own: &str, names: &CompiledNames, closeness: Closeness) -> bool {
        self.matches(own, &names.exposed)
            || names.former.as_ref().is_some_and(|former| self.matches(own, former))
            || (closeness == Closeness::Alike && self.resembles(names))
    }

    /// The look-alike forms of an exact name, or of the start of a pattern.
    pub(crate) fn looks(&self) -> &[NamePattern; 2] {
        &self.looks
    }

    fn resembles(&self, names: &CompiledNames) -> bool {
        let fits = |look: &[String; 2]| {
            self.looks.iter().zip(look).any(|(pattern, look)| pattern.matches(look))
        };
        let (own, exposed) = (self.naming != Naming::Exposed, self.naming != Naming::Own);
        (own && fits(&names.own_looks)) || (exposed && names.exposed_looks.iter().any(fits))
    }

    fn named(name: NamePattern, naming: Naming) -> Self {
        let looks = name.looks();
        Self { name, naming, looks }
    }
}

impl std::fmt::Display for NamePattern {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exactly(exact) => formatter.write_str(exact),
            Self::Like(pattern) => pattern.fmt(formatter),
        }
    }
}

/// The names of a tool that rules are compared with.
#[derive(Debug, Clone)]
pub(crate) struct CompiledNames {
    /// The current exposed name.
    pub(crate) exposed: String,
    /// The name with a doubled prefix, which rules may still use.
    pub(crate) former: Option<String>,
    /// The look-alike forms of its possible exposed names.
    pub(crate) exposed_looks: Vec<[String; 2]>,
    /// The look-alike forms of its own name.
    pub(crate) own_looks: [String; 2],
}

/// How similar a name must be to the one in a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closeness {
    /// The names are equal.
    Exact,
    /// The tool could have had that name, or its name looks like it.
    Alike,
}

impl CompiledNames {
    /// The names of a tool that is currently exposed as `exposed`.
    pub(crate) fn new(id: &ToolId, prefix: Option<&str>, exposed: &str) -> Self {
        let own_looks = looks(&id.tool);
        let PossibleNames { plain, hashed, short } = possible_names(id, prefix);
        // Letters of other alphabets are lost in an exposed name.
        let spelt = possible_names(&ToolId::new(id.server.clone(), &*own_looks[0]), prefix);
        let mut exposed_looks: Vec<[String; 2]> = Vec::new();
        let possible = [exposed, &plain, &hashed, &spelt.plain].into_iter();
        for name in possible.chain(short.as_deref()).chain(spelt.short.as_deref()) {
            let look = looks(name);
            if !exposed_looks.contains(&look) {
                exposed_looks.push(look);
            }
        }
        let former = (short.as_deref() == Some(exposed)).then_some(plain);
        Self { exposed: exposed.to_owned(), former, exposed_looks, own_looks }
    }
}

/// A text as it looks, in two ways: `I` is an `i` in `createIssue`, and looks like an `l` in
/// `send_emaiI`.
pub(crate) fn looks(text: &str) -> [String; 2] {
    let fold = |text: &str| skeleton(text).collect::<String>().to_lowercase();
    [fold(&text.to_lowercase()), fold(text)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks() {
        let like = |pattern: &str, name: &str| NamePattern::new(pattern).unwrap().matches(name);
        assert!(like("github_*", "github_create_issue") && like("github_*", "github_"));
        assert!(!like("github_*", "my_github_list"));
        assert!(like("*_delete_*", "fs_delete_file") && like("v?", "v1") && !like("v?", "v"));
        assert!(like("exact", "exact") && !like("exact", "Exact"));
    }

    #[test]
    fn a_slash_means_the_identity() {
        let (server, tool) = ToolPattern::new("git*/list/all").unwrap();
        assert!(server.unwrap().matches("github"));
        assert!(tool.matches("list/all", "github_list_all") && !tool.matches("all", "list/all"));
        let (server, tool) = ToolPattern::new("github_*").unwrap();
        assert!(server.is_none() && tool.matches("anything", "github_x"));
        assert!(!tool.matches("github_x", "other_github_x"), "a server cannot choose to fit");
    }

    #[test]
    fn limits_are_told() {
        assert_eq!(NamePattern::new(""), Err(PatternError::Empty));
        assert_eq!(NamePattern::new(&"a".repeat(513)), Err(PatternError::TooLong));
        assert_eq!(NamePattern::new(&"*a".repeat(17)), Err(PatternError::TooManyStars));
        assert_eq!(ToolPattern::new("github/").unwrap_err(), PatternError::Empty);
    }

    #[test]
    fn what_a_name_begins_with() {
        assert_eq!(NamePattern::new("git?ub*").unwrap().literal_start(), "git");
        assert_eq!(NamePattern::new("*").unwrap().literal_start(), "");
        assert_eq!(NamePattern::new("ab").unwrap().literal_start(), "ab");
    }
}
