//! What a call of a tool does.

use serde_json::{Value, json};

use crate::error::{DemoError, invalid_argument};
use crate::evaluate;
use crate::field::{Kind, Object, read_arguments};
use crate::moment::Moment;
use crate::store::Store;
use crate::table::Table;
use crate::tool::{Action, Tool};

/// The most items of a list of a row, such as a comment thread.
const MAX_APPENDED: usize = 500;

/// Checks the arguments and does what the tool does.
pub(crate) fn run(tool: &Tool, store: &mut Store, arguments: Value) -> Result<Value, DemoError> {
    let arguments = read_arguments(&tool.input, arguments)?;
    let id_name = tool.input.first().map_or("id", |input| &input.name);
    let id = arguments.get(id_name).cloned().unwrap_or_default();
    match &tool.action {
        Action::Compute { r#do } | Action::Change { r#do } => evaluate::run(r#do, store, arguments),
        Action::List { table, page } => {
            let (rows, total) = select(store, table, &arguments)?;
            Ok(match page {
                None => rows.into(),
                Some(name) => json!({ name: rows, "total": total }),
            })
        }
        Action::Get { table } => Ok(store.find(table, &id)?.clone().into()),
        Action::Create { table, set } => {
            let values = arguments.into_iter().chain(set.clone()).collect();
            Ok(store.insert(table, &values)?.into())
        }
        Action::Update { table, set } | Action::Destroy { table, set } => {
            let values = arguments.into_iter().filter(|(name, _)| name != id_name);
            store.update(table, &id, values.chain(set.clone()).collect())
        }
        Action::Append { table, column } => {
            let now = store.tick();
            let item = store.table(table).map(|it| item_of(it, column, &arguments, id_name, now));
            let items = store.find(table, &id)?.get(column).and_then(Value::as_array);
            let mut items = items.cloned().unwrap_or_default();
            if items.len() >= MAX_APPENDED {
                return Err(DemoError::Refused(format!("There is no room for more {column}")));
            }
            items.extend(item);
            store.update(table, &id, Object::from_iter([(column.clone(), items.into())]))
        }
        Action::Delete { table } => {
            store.remove(table, &id)?;
            Ok(json!({ "deleted": true, "id": id }))
        }
    }
}

/// The rows of a table that match, after paging, and how many match before it.
pub(crate) fn select(
    store: &Store,
    name: &str,
    filter: &Object,
) -> Result<(Vec<Value>, usize), DemoError> {
    let Some(table) = store.table(name) else { return Ok((Vec::new(), 0)) };
    check_since(table, store.rows(name), filter)?;
    let count = |name: &str| {
        filter.get(name).and_then(Value::as_u64).and_then(|count| usize::try_from(count).ok())
    };
    let rows = store.rows(name).iter().filter(|row| table.matches(row, filter));
    let total = rows.clone().count();
    let rows = rows.skip(count("offset").unwrap_or(0)).take(count("limit").unwrap_or(usize::MAX));
    Ok((rows.cloned().map(Value::from).collect(), total))
}

/// Refuses a time after the newest row. The demo's clock stands still and a caller's does not, so
/// that a caller who computes times would wonder at an empty list.
fn check_since(table: &Table, rows: &[Object], filter: &Object) -> Result<(), DemoError> {
    let Some(newest) = rows.iter().filter_map(|row| table.time_of(row)).max() else {
        return Ok(());
    };
    for (name, value) in filter {
        let wanted = value.as_str().and_then(Moment::parse_since);
        if table.is_since(name) && wanted > Some(newest) {
            let problem = format!(
                "is after the newest {}, which is of {newest}; give a duration such as 6h instead",
                table.singular
            );
            return Err(invalid_argument(name, &problem));
        }
    }
    Ok(())
}

/// The arguments as an item of a column that is a list: of objects, or of single values.
fn item_of(table: &Table, column: &str, arguments: &Object, id: &str, now: Moment) -> Value {
    let mut rest = arguments.iter().filter(|(name, _)| *name != id);
    match table.column(column).map(|column| &column.kind) {
        Some(Kind::List { of }) if let Kind::Object { fields } = &**of => {
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
