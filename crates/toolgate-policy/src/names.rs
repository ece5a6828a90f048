//! The names that a tool goes by, and what they look like.
//!
//! What a tool is called is up to its server, and which of its names it gets depends on other servers
//! too. A rule that forbids must not be slipped out of by a collision of names, by other case or by
//! letters that look alike. A rule that allows is for the very name that it was written for.

use toolgate_catalog::{ToolId, possible_names};
use unicode_security::confusable_detection::skeleton;

/// What a rule's names are compared with.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    /// The name that it has.
    pub(crate) exposed: String,
    /// What its possible exposed names look like.
    pub(crate) exposed_looks: Vec<[String; 2]>,
    /// What its own name looks like.
    pub(crate) own_looks: [String; 2],
}

/// How alike a name must be to the one in a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closeness {
    /// It is that name.
    Exact,
    /// It could be had in the place of that name, or be taken for it.
    Alike,
}

impl Names {
    /// The names of a tool that has the name `exposed` now.
    pub(crate) fn new(id: &ToolId, prefix: Option<&str>, exposed: &str) -> Self {
        let own_looks = looks(&id.tool);
        let [plain, hashed] = possible_names(id, prefix);
        // Letters of other alphabets are lost in an exposed name.
        let [spelt, _] = possible_names(&ToolId::new(id.server.clone(), &*own_looks[0]), prefix);
        let mut exposed_looks: Vec<[String; 2]> = Vec::new();
        for name in [exposed, &plain, &hashed, &spelt] {
            let look = looks(name);
            if !exposed_looks.contains(&look) {
                exposed_looks.push(look);
            }
        }
        Self { exposed: exposed.to_owned(), exposed_looks, own_looks }
    }
}

/// A text as it looks, in two ways: `I` is an `i` in `createIssue`, and looks like an `l` in
/// `send_emaiI`.
pub(crate) fn looks(text: &str) -> [String; 2] {
    let fold = |text: &str| skeleton(text).collect::<String>().to_lowercase();
    [fold(&text.to_lowercase()), fold(text)]
}
