//! Where in the arguments a value stands.

use std::fmt;

use crate::check::words::cut;

/// A way into the arguments, such as `labels[2].name`.
#[derive(Clone, Copy)]
pub(in crate::check) struct Place<'a> {
    step: Step<'a>,
    parent: Option<&'a Place<'a>>,
    /// Whether it may not be left out.
    pub(super) required: bool,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    /// The arguments themselves.
    Tool(&'a str),
    Key(&'a str),
    Index(usize),
}

impl<'a> Place<'a> {
    pub(in crate::check) fn root(tool: &'a str) -> Self {
        Self { step: Step::Tool(tool), parent: None, required: true }
    }

    pub(super) fn key<'b>(&'b self, key: &'b str, required: bool) -> Place<'b> {
        Place { step: Step::Key(key), parent: Some(self), required }
    }

    pub(super) fn item(&self, index: usize) -> Place<'_> {
        Place { step: Step::Index(index), parent: Some(self), required: true }
    }

    /// The tool, where this is the arguments as a whole.
    pub(super) fn tool(&self) -> Option<&'a str> {
        match self.step {
            Step::Tool(tool) => Some(tool),
            _ => None,
        }
    }

    fn write(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent.filter(|parent| parent.tool().is_none()) {
            parent.write(formatter)?;
        }
        match self.step {
            Step::Tool(name) => write!(formatter, "{}", cut(name)),
            Step::Index(index) => write!(formatter, "[{index}]"),
            Step::Key(key) if self.parent.is_some_and(|parent| parent.tool().is_none()) => {
                write!(formatter, ".{}", cut(key))
            }
            Step::Key(key) => write!(formatter, "{}", cut(key)),
        }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`")?;
        self.write(formatter)?;
        write!(formatter, "`")
    }
}
