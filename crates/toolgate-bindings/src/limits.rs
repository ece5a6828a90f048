//! Limits for reading definitions, because servers choose every part of them.

/// The longest declaration of a tool in bytes, including its share of the named types.
pub const MAX_DECLARATION_BYTES: usize = 4 * 1024 * 1024;

/// The largest depth of types as they are written.
pub(crate) const MAX_DEPTH: usize = 32;

/// The largest depth of types after references are followed.
pub(crate) const MAX_HEIGHT: usize = 48;

/// The number of schemas, properties and alternatives that are read per tool.
pub(crate) const MAX_STEPS: usize = 12_000;

/// The number of characters of names, values and descriptions that are read per tool.
pub(crate) const MAX_TEXT: usize = 200_000;

/// The longest description of a tool.
pub(crate) const MAX_TOOL_DESCRIPTION: usize = 16_000;

/// The longest description of anything inside a tool.
pub(crate) const MAX_DESCRIPTION: usize = 4_000;

/// The longest name of a property and the longest string in an enumeration.
pub(crate) const MAX_NAME: usize = 200;

/// The number of enumeration values that are shown, and of alternatives that a type may have.
pub(crate) const MAX_VALUES: usize = 200;

/// The largest number of properties of an object.
pub(crate) const MAX_PROPERTIES: usize = 1_000;

/// The largest number of types in an intersection.
pub(crate) const MAX_PARTS: usize = 32;

/// The remaining budget for reading one tool.
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

    /// Uses one step. Returns `false` if none is left.
    pub(crate) fn step(&mut self) -> bool {
        self.steps(1)
    }

    /// Uses several steps. Returns `false` if fewer are left.
    pub(crate) fn steps(&mut self, count: usize) -> bool {
        Self::take(&mut self.steps, count, &mut self.exceeded)
    }

    /// Uses `bytes` of the budget for text. Returns `false` if less is left.
    pub(crate) fn text(&mut self, bytes: usize) -> bool {
        Self::take(&mut self.text, bytes, &mut self.exceeded)
    }

    /// Records that something was left out.
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
