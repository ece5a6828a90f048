//! What a call of a tool does.

use serde_json::{Value, json};

use crate::error::Failure;
use crate::field::{Kind, Object, read_arguments};
use crate::moment::Moment;
use crate::store::{Read, Store};
use crate::table::{Rule, Table};
use crate::tool::{Action, Shape, Tool};

/// A comment thread or a list of watchers ends somewhere.
const MAX_APPENDED: usize = 500;

/// Checks the arguments and does what the tool does.
pub(crate) fn run(
    tool: &Tool,
    tables: &[Table],
    store: &mut Store,
    arguments: Value,
) -> Result<Value, Failure> {
    let arguments = read_arguments(&tool.inputs, arguments)?;
    let table = tables.iter().find(|table| Some(table.name) == tool.action.table());
    let id_name = tool.inputs.first().map_or("id", |input| input.name);
    let id = arguments.get(id_name).unwrap_or(&Value::Null);
    match (&tool.action, table) {
        (Action::Report(report), _) => Ok(report(store, &arguments)),
        (Action::Compute(compute), _) => compute(store, &arguments),
        (Action::Change(change), _) => change(store, &arguments),
        (Action::List(name, shape), Some(table)) => {
            list(table, store.rows(name), &arguments, *shape)
        }
        (Action::Get(name), _) => store.find(name, id).cloned().map(Value::from),
        (Action::Create(name, presets), _) => {
            store.insert(name, &with_presets(arguments, presets)).map(Value::from)
        }
        (Action::Update(name, presets) | Action::Destroy(name, presets), Some(table)) => {
            // The table's own identifier stays; the argument may have another name.
            let row = store.find_mut(name, id)?;
            for (key, value) in with_presets(arguments.clone(), presets) {
                if key != id_name && key != table.id() && table.column(&key).is_some() {
                    row.insert(key, value);
                }
            }
            Ok(row.clone().into())
        }
        (Action::Append(name, column), Some(table)) => {
            let item = item_of(table, column, &arguments, id_name, store.tick());
            let row = store.find_mut(name, id)?;
            append(row, column, item)?;
            Ok(row.clone().into())
        }
        (Action::Delete(name), Some(table)) => {
            let row = store.remove(name, id)?;
            Ok(json!({ "deleted": true, "id": row.get(table.id()) }))
        }
        // A test sees to it that every tool's table exists.
        (_, None) => Err(Failure::Refused("This tool has no data".into())),
    }
}

/// The rows that match, as a list tool gives them.
pub(crate) fn list(
    table: &Table,
    rows: &[Object],
    arguments: &Object,
    shape: Shape,
) -> Result<Value, Failure> {
    let mut matching = Vec::new();
    check_since(table, rows, arguments)?;
    let mut total = 0_u32;
    let skipped = usize::try_from(arguments.integer("offset")).unwrap_or(0);
    let taken = arguments
        .get("limit")
        .map_or(usize::MAX, |_| usize::try_from(arguments.integer("limit")).unwrap_or(usize::MAX));
    for row in rows.iter().filter(|row| table.matches(row, arguments)) {
        total += 1;
        if total as usize > skipped && matching.len() < taken {
            matching.push(Value::from(row.clone()));
        }
    }
    Ok(match shape {
        Shape::Bare => matching.into(),
        Shape::Page(name) => json!({ name: matching, "total": total }),
    })
}

/// The demo stands still, and a caller's clock does not: an empty list would be a riddle.
fn check_since(table: &Table, rows: &[Object], arguments: &Object) -> Result<(), Failure> {
    let Some(column) = table.time else { return Ok(()) };
    let moments = rows.iter().filter_map(|row| Moment::parse(row.text(column)));
    let Some(newest) = moments.max() else { return Ok(()) };
    for (name, value) in arguments {
        let wanted = value.as_str().and_then(Moment::parse_since);
        if table.rule(name) == Some(Rule::Since) && wanted > Some(newest) {
            let problem = format!(
                "is after the newest {}, which is of {newest}; give a duration such as 6h instead",
                table.singular
            );
            return Err(Failure::argument(name, problem));
        }
    }
    Ok(())
}

/// Adds an item to a list of a row.
pub(crate) fn append(row: &mut Object, column: &str, item: Value) -> Result<(), Failure> {
    let items = row.entry(column).or_insert_with(|| json!([]));
    match items.as_array_mut() {
        Some(items) if items.len() < MAX_APPENDED => items.push(item),
        _ => return Err(Failure::Refused(format!("There is no room for more {column}"))),
    }
    Ok(())
}

/// The arguments as an item of a column that is a list: of objects, or of single values.
fn item_of(table: &Table, column: &str, arguments: &Object, id: &str, now: Moment) -> Value {
    let mut rest = arguments.iter().filter(|(name, _)| *name != id);
    match table.column(column).map(|column| &column.kind) {
        Some(Kind::List(kind)) if let Kind::Object(fields) = &**kind => {
            let known = |name: &str| fields.iter().any(|field| field.name == name);
            let mut item: Object = rest
                .filter(|(name, _)| known(name))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            if known("at") {
                item.insert("at".to_owned(), json!(now.to_string()));
            }
            item.into()
        }
        _ => rest.next().map(|(_, value)| value.clone()).unwrap_or_default(),
    }
}

fn with_presets(mut values: Object, presets: &[(&str, &str)]) -> Object {
    for (name, value) in presets {
        // Presets are written as text; the two words that are no text are the booleans.
        let value = value.parse::<bool>().map_or_else(|_| json!(value), |flag| json!(flag));
        values.insert((*name).to_owned(), value);
    }
    values
}
