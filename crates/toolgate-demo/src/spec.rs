//! A server as data, and the list of all of them.

use std::sync::LazyLock;

use serde_json::Value;

use crate::error::DemoError;
use crate::servers::all;
use crate::table::Table;
use crate::tool::{Annotations, Tool};

/// A demo server, as a menu shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DemoServer {
    /// The name that [`serve`](crate::serve) takes.
    pub name: &'static str,
    /// What the server is for, in a sentence.
    pub description: &'static str,
    /// The prefix to configure for its tools' exposed names. `None` leaves it to the default,
    /// the server's name; an empty one exposes its tools under their own names.
    pub prefix: Option<&'static str>,
    /// How many tools it has.
    pub tools: usize,
    /// How it can be connected to.
    pub era: Era,
}

/// The generations of the protocol that a demo server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// `initialize` alone, up to 2025-11-25; `server/discover` is an unknown method.
    Handshake,
    /// `initialize` as well as `server/discover` of 2026-07-28.
    HandshakeAndDiscover,
}

/// Everything about a server but its state.
#[derive(Debug)]
pub(crate) struct Spec {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) version: &'static str,
    pub(crate) prefix: Option<&'static str>,
    pub(crate) era: Era,
    pub(crate) annotations: Annotations,
    pub(crate) tables: Vec<Table>,
    pub(crate) tools: Vec<Tool>,
}

static SPECS: LazyLock<Vec<Spec>> = LazyLock::new(all);

static SERVERS: LazyLock<Vec<DemoServer>> = LazyLock::new(|| {
    let server = |spec: &Spec| DemoServer {
        name: spec.name,
        description: spec.description,
        prefix: spec.prefix,
        tools: spec.tools.len(),
        era: spec.era,
    };
    SPECS.iter().map(server).collect()
});

/// All demo servers, in the order in which a menu should show them.
pub fn servers() -> &'static [DemoServer] {
    &SERVERS
}

/// The tools of a server, as its `tools/list` gives them.
pub fn definitions(server: &str) -> Result<Vec<Value>, DemoError> {
    Spec::named(server).map(Spec::definitions)
}

impl Spec {
    /// The server of this name.
    pub(crate) fn named(name: &str) -> Result<&'static Self, DemoError> {
        SPECS.iter().find(|spec| spec.name == name).ok_or_else(|| {
            let known: Vec<&str> = SPECS.iter().map(|spec| spec.name).collect();
            let name = name.chars().take(80).collect();
            DemoError::UnknownServer { name, known: known.join(", ") }
        })
    }

    /// Its tools' definitions.
    pub(crate) fn definitions(&self) -> Vec<Value> {
        self.tools.iter().map(|tool| tool.definition(&self.tables, self.annotations)).collect()
    }

    /// The tool of this name.
    pub(crate) fn tool(&self, name: &str) -> Result<&Tool, DemoError> {
        self.tools.iter().find(|tool| tool.name == name).ok_or_else(|| DemoError::UnknownTool {
            server: self.name,
            tool: name.chars().take(80).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::{Presence, read_arguments};
    use crate::table::Rule;
    use crate::tool::{Action, Output};

    #[test]
    fn every_row_at_the_start_fits_its_columns() {
        for table in SPECS.iter().flat_map(|spec| &spec.tables) {
            let rows = table.first_rows();
            let mut ids: Vec<_> = rows.iter().map(|row| row[table.id()].to_string()).collect();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), rows.len(), "{} has an identifier twice", table.name);
            for row in rows {
                let fits = read_arguments(&table.columns, row.clone().into());
                assert!(fits.is_ok(), "{}: {row:?}: {fits:?}", table.name);
            }
        }
    }

    #[test]
    fn every_tool_is_about_a_table_that_exists_and_columns_that_exist() {
        for spec in SPECS.iter() {
            for tool in &spec.tools {
                let Some(name) = tool.action.table() else {
                    assert!(
                        !matches!(tool.output, Output::OfAction),
                        "{} types nothing",
                        tool.name
                    );
                    continue;
                };
                let table = spec.tables.iter().find(|table| table.name == name);
                let table = table.unwrap_or_else(|| panic!("{}: no table {name}", tool.name));
                match &tool.action {
                    Action::List(..) => {
                        for input in &tool.inputs {
                            let rule = table.rule(input.name);
                            assert!(
                                rule.is_some(),
                                "{}: {} filters nothing",
                                tool.name,
                                input.name
                            );
                            let defaulted =
                                matches!(rule, Some(Rule::Paging)) || input.default.is_none();
                            assert!(defaulted, "{}: {} filters unasked", tool.name, input.name);
                        }
                    }
                    Action::Append(_, column) => assert!(table.column(column).is_some()),
                    Action::Create(_, presets)
                    | Action::Update(_, presets)
                    | Action::Destroy(_, presets) => {
                        for (column, _) in *presets {
                            assert!(table.column(column).is_some(), "{}: {column}", tool.name);
                        }
                    }
                    _ => {}
                }
                if !matches!(tool.action, Action::List(..) | Action::Create(..)) {
                    let id = tool.inputs.first();
                    assert!(
                        id.is_some_and(|id| id.presence == Presence::Required),
                        "{}",
                        tool.name
                    );
                }
            }
        }
    }
}
