//! How much of a definition is read. All of it is the server's to choose, so all of it is bounded.

/// No tool's declaration is longer than this many bytes, its share of the named types included.
pub const MAX_DECLARATION_BYTES: usize = 4 * 1024 * 1024;

/// How deep types may nest where they are written.
pub(crate) const MAX_DEPTH: usize = 32;

/// How deep types may nest once references are followed.
pub(crate) const MAX_HEIGHT: usize = 48;

/// How many schemas, properties and alternatives are read of one tool.
pub(crate) const MAX_STEPS: usize = 12_000;

/// How many characters of names, values and descriptions are kept of one tool.
pub(crate) const MAX_TEXT: usize = 200_000;

/// The longest description of a tool.
pub(crate) const MAX_TOOL_DESCRIPTION: usize = 16_000;

/// The longest description of anything in it.
pub(crate) const MAX_DESCRIPTION: usize = 4_000;

/// The longest name of a property and the longest string in an enumeration.
pub(crate) const MAX_NAME: usize = 200;

/// How many values of an enumeration are shown, and how many alternatives a type may have.
pub(crate) const MAX_VALUES: usize = 200;

/// How many properties an object may have.
pub(crate) const MAX_PROPERTIES: usize = 1_000;

/// How many types may be intersected.
pub(crate) const MAX_PARTS: usize = 32;

/// What may still be read of one tool.
#[derive(Debug)]
pub(crate) struct ReadBudget {
    steps: usize,
    text: usize,
    exceeded: bool,
}

impl ReadBudget {
    pub(crate) fn new() -> Self {
        Self { steps: MAX_STEPS, text: MAX_TEXT, exceeded: false }
    }

    /// Takes one step; `false` where none is left.
    pub(crate) fn step(&mut self) -> bool {
        self.steps(1)
    }

    /// Takes several steps at once; `false` where fewer are left.
    pub(crate) fn steps(&mut self, count: usize) -> bool {
        Self::take(&mut self.steps, count, &mut self.exceeded)
    }

    /// Takes room for a text of `bytes`; `false` where there is none left.
    pub(crate) fn text(&mut self, bytes: usize) -> bool {
        Self::take(&mut self.text, bytes, &mut self.exceeded)
    }

    /// Remembers that something was left out.
    pub(crate) fn exceed(&mut self) {
        self.exceeded = true;
    }

    /// Whether something was left out.
    pub(crate) fn exceeded(&self) -> bool {
        self.exceeded
    }

    fn take(from: &mut usize, amount: usize, exceeded: &mut bool) -> bool {
        if let Some(rest) = from.checked_sub(amount) {
            *from = rest;
            true
        } else {
            *exceeded = true;
            false
        }
    }
}
