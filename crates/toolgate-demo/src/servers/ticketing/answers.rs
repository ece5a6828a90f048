//! The answers of `ticketing` that need code.

use serde_json::{Value, json};

use super::tables::issues;
use crate::action::append;
use crate::error::Failure;
use crate::field::Object;
use crate::store::{Read, Store};

pub(super) fn comments(store: &Store, arguments: &Object) -> Result<Value, Failure> {
    store.find("issues", &arguments["issueId"]).map(|issue| issue["comments"].clone())
}

pub(super) fn add_labels(store: &mut Store, arguments: &Object) -> Result<Value, Failure> {
    let issue = store.find_mut("issues", &arguments["issueId"])?;
    for label in arguments.items("labels") {
        if !issue.items("labels").contains(label) {
            append(issue, "labels", label.clone())?;
        }
    }
    Ok(issue.clone().into())
}

pub(super) fn stats(store: &Store, arguments: &Object) -> Value {
    let mut filter =
        arguments.get("filter").and_then(Value::as_object).cloned().unwrap_or_default();
    if let Some(days) = filter.remove("createdWithinDays") {
        filter.insert("since".to_owned(), json!(format!("{days}d")));
    }
    let (table, group) = (issues(), arguments.text("groupBy"));
    let mut counts = Object::new();
    let mut total = 0;
    for issue in store.rows("issues").iter().filter(|issue| table.matches(issue, &filter)) {
        total += 1;
        let several = issue.items(group).iter().filter_map(Value::as_str);
        for key in several.chain(issue.get(group).and_then(Value::as_str)) {
            let before = counts.integer(key);
            counts.insert(key.to_owned(), json!(before + 1));
        }
    }
    json!({ "groupBy": group, "total": total, "counts": counts })
}
