//! Servers: what their files say, and a running one.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

use crate::action;
use crate::error::DemoError;
use crate::field::Object;
use crate::store::Store;
use crate::table::Table;
use crate::tool::Tool;

/// A demo server, as a menu shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DemoServer {
    /// The name that [`serve`](crate::serve) takes.
    pub name: String,
    /// What the server is for, in a sentence.
    pub description: String,
    /// The prefix to configure for its tools' exposed names. `None` leaves it to the default,
    /// the server's name; an empty one exposes its tools under their own names.
    pub prefix: Option<String>,
    /// How many tools it has.
    pub tools: usize,
    /// Whether it answers `server/discover` of 2026-07-28 as well as `initialize`.
    pub modern: bool,
}

/// What the file of a server says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServerFile {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) version: String,
    prefix: Option<String>,
    pub(crate) modern: bool,
    /// Whether its tools are annotated with their effects.
    annotations: bool,
    tables: Vec<Table>,
    tools: Vec<Tool>,
    /// What `"@name"` stands for elsewhere in the file; already replaced here.
    #[serde(default, rename = "shared")]
    _shared: Object,
}

/// The files, in the order in which a menu shows the servers.
const FILES: [(&str, &str); 10] = [
    ("logging", include_str!("../servers/logging.json")),
    ("ticketing", include_str!("../servers/ticketing.json")),
    ("team", include_str!("../servers/team.json")),
    ("calendar", include_str!("../servers/calendar.json")),
    ("notifications", include_str!("../servers/notifications.json")),
    ("crm", include_str!("../servers/crm.json")),
    ("inventory", include_str!("../servers/inventory.json")),
    ("deploy", include_str!("../servers/deploy.json")),
    ("docs", include_str!("../servers/docs.json")),
    ("metrics", include_str!("../servers/metrics.json")),
];

/// All demo servers, in the order in which a menu should show them.
pub fn servers() -> &'static [DemoServer] {
    static SERVERS: LazyLock<Vec<DemoServer>> = LazyLock::new(|| {
        let files = FILES.iter().filter_map(|(name, _)| ServerFile::read(name).ok());
        files
            .map(|file| DemoServer {
                tools: file.tools.len(),
                name: file.name,
                description: file.description,
                prefix: file.prefix,
                modern: file.modern,
            })
            .collect()
    });
    &SERVERS
}

/// The tools of a server, as its `tools/list` gives them.
pub fn definitions(server: &str) -> Result<Vec<Value>, DemoError> {
    Ok(Instance::open(server)?.definitions())
}

/// Calls a tool of a server in its first state; what the call changes is forgotten.
///
/// ```
/// use serde_json::json;
///
/// let budget = toolgate_demo::call("team", "get_budget_by_level", json!({ "level": "senior" }))?;
/// assert_eq!(budget["travel_limit"], 8000);
/// # Ok::<(), toolgate_demo::DemoError>(())
/// ```
pub fn call(server: &str, tool: &str, arguments: Value) -> Result<Value, DemoError> {
    Instance::open(server)?.call(tool, arguments)
}

/// A demo server with its own state, without a process and without a protocol.
///
/// ```
/// use serde_json::json;
/// use toolgate_demo::Instance;
///
/// let mut ticketing = Instance::open("ticketing")?;
/// let issue = ticketing.call("createIssue", json!({ "title": "Checkout times out" }))?;
/// let found = ticketing.call("getIssue", json!({ "issueId": issue["id"] }))?;
/// assert_eq!(found["status"], "open");
/// # Ok::<(), toolgate_demo::DemoError>(())
/// ```
#[derive(Debug)]
pub struct Instance {
    pub(crate) file: ServerFile,
    store: Store,
}

impl Instance {
    /// The server of this name, with the state that every server starts with.
    pub fn open(server: &str) -> Result<Self, DemoError> {
        let mut file = ServerFile::read(server)?;
        let store = Store::open(std::mem::take(&mut file.tables));
        Ok(Self { file, store })
    }

    /// The tools, as `tools/list` gives them.
    pub(crate) fn definitions(&self) -> Vec<Value> {
        let definition = |tool: &Tool| tool.definition(&self.store, self.file.annotations);
        self.file.tools.iter().map(definition).collect()
    }

    /// Calls a tool. The value is what its text says: a list is a list here, see the crate's page.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, DemoError> {
        action::run(self.file.tool(tool)?, &mut self.store, arguments)
    }
}

impl ServerFile {
    fn read(name: &str) -> Result<Self, DemoError> {
        let Some((server, text)) = FILES.iter().find(|(server, _)| *server == name) else {
            let name = name.chars().take(80).collect();
            let known = FILES.map(|(name, _)| name).join(", ");
            return Err(DemoError::UnknownServer { name, known });
        };
        let broken =
            |error: serde_json::Error| DemoError::BrokenFile { server, reason: error.to_string() };
        let mut file: Value = serde_json::from_str(text).map_err(broken)?;
        let shared = file["shared"].as_object().cloned().unwrap_or_default();
        replace_references(&mut file, &shared);
        serde_json::from_value(file).map_err(broken)
    }

    pub(crate) fn tool(&self, name: &str) -> Result<&Tool, DemoError> {
        self.tools.iter().find(|tool| tool.name == name).ok_or_else(|| DemoError::UnknownTool {
            server: self.name.clone(),
            tool: name.chars().take(80).collect(),
        })
    }
}

/// Puts what is shared in the place of every `"@name"`.
fn replace_references(value: &mut Value, shared: &Object) {
    if let Some(replacement) =
        value.as_str().and_then(|text| text.strip_prefix('@')).and_then(|name| shared.get(name))
    {
        *value = replacement.clone();
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| replace_references(item, shared)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| replace_references(field, shared));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::field::read_arguments;
    use crate::formula::Expression;
    use crate::tool::Action;

    fn files() -> impl Iterator<Item = ServerFile> {
        FILES.iter().map(|(name, _)| ServerFile::read(name).unwrap())
    }

    #[test]
    fn every_row_at_the_start_fits_its_columns() {
        for file in files() {
            let names: Vec<String> = file.tables.iter().map(|table| table.name.clone()).collect();
            let store = Store::open(file.tables);
            for name in &names {
                let (table, rows) = (store.table(name).unwrap(), store.rows(name));
                let ids: BTreeSet<_> = rows.iter().map(|row| row[table.id()].to_string()).collect();
                assert_eq!(ids.len(), rows.len(), "{name} has an identifier twice");
                for row in rows {
                    let fits = read_arguments(&table.columns, row.clone().into());
                    assert!(fits.is_ok(), "{name}: {row:?}: {fits:?}");
                }
            }
        }
    }

    #[test]
    fn every_tool_is_about_tables_and_columns_that_exist() {
        for file in files() {
            for tool in &file.tools {
                let (Action::List { table, .. }
                | Action::Get { table }
                | Action::Create { table, .. }
                | Action::Update { table, .. }
                | Action::Destroy { table, .. }
                | Action::Append { table, .. }
                | Action::Delete { table }) = &tool.action
                else {
                    continue;
                };
                let found = file.tables.iter().find(|it| it.name == *table);
                let table = found.unwrap_or_else(|| panic!("{}: no table {table}", tool.name));
                let columns: Vec<&str> = match &tool.action {
                    Action::Append { column, .. } => vec![column],
                    Action::Create { set, .. }
                    | Action::Update { set, .. }
                    | Action::Destroy { set, .. } => set.keys().map(String::as_str).collect(),
                    _ => Vec::new(),
                };
                for column in columns {
                    assert!(table.column(column).is_some(), "{}: {column}", tool.name);
                }
                if !matches!(tool.action, Action::List { .. } | Action::Create { .. }) {
                    assert!(tool.input[0].is_required(), "{}", tool.name);
                }
            }
        }
    }

    /// A name that nothing has is null, so that a typing error would pass unnoticed.
    #[test]
    fn every_name_in_a_formula_is_known() {
        for file in files() {
            for tool in &file.tools {
                let (Action::Compute { r#do } | Action::Change { r#do }) = &tool.action else {
                    continue;
                };
                let mut known: Vec<&str> = vec!["it", "index", "args", "now"];
                known.extend(file.tables.iter().map(|table| table.name.as_str()));
                known.extend(tool.input.iter().map(|input| input.name.as_str()));
                for formula in r#do {
                    check(&formula.expression, &known, &tool.name);
                    known.extend(formula.name.as_deref());
                }
            }
        }
    }

    fn check(expression: &Expression, known: &[&str], tool: &str) {
        let each = |parts: &[Expression]| parts.iter().for_each(|part| check(part, known, tool));
        match expression {
            Expression::Literal(_) => {}
            Expression::Name(name) => assert!(known.contains(&name.as_str()), "{tool}: {name}"),
            Expression::Field(of, _) => check(of, known, tool),
            Expression::List(parts) | Expression::Call(_, parts) => each(parts),
            Expression::Object(parts) => {
                for (_, part) in parts {
                    check(part, known, tool);
                }
            }
            Expression::Operation(_, left, right) => {
                check(left, known, tool);
                check(right, known, tool);
            }
        }
    }
}
