//! The answers of `logging` that need code.

use serde_json::{Value, json};

use super::entries;
use super::tables::entries_table;
use crate::action::list;
use crate::error::Failure;
use crate::field::Object;
use crate::store::{Read, Store};
use crate::tool::Shape;

pub(super) fn list_services(store: &Store, _: &Object) -> Value {
    let of = |(name, owner): &(&str, &str)| {
        let mut entries = store.rows("entries").iter().filter(|row| row.text("service") == *name);
        // Newest first, so the first one is the latest.
        let latest = entries.next().map(|row| row.text("timestamp")).unwrap_or_default();
        let stored = usize::from(!latest.is_empty()) + entries.count();
        json!({ "name": name, "owner": owner, "entries": stored, "lastSeen": latest })
    };
    entries::SERVICES.iter().map(of).collect()
}

pub(super) fn stats(store: &Store, arguments: &Object) -> Result<Value, Failure> {
    let entries = list(&entries_table(), store.rows("entries"), arguments, Shape::Bare)?;
    let entries = entries.as_array().map_or(&[][..], Vec::as_slice);
    let group = arguments.text("groupBy");
    let mut counts = Object::new();
    for entry in entries.iter().filter_map(Value::as_object) {
        let key = match group {
            // As far as the hour: 2026-10-15T09.
            "hour" => entry.text("timestamp").get(..13).unwrap_or_default(),
            column => entry.text(column),
        };
        let before = counts.integer(key);
        counts.insert(key.to_owned(), json!(before + 1));
    }
    Ok(json!({ "groupBy": group, "total": entries.len(), "counts": counts }))
}

pub(super) fn export(store: &Store, arguments: &Object) -> Result<Value, Failure> {
    let filter = arguments.get("filter").and_then(Value::as_object).cloned().unwrap_or_default();
    let page = list(&entries_table(), store.rows("entries"), &filter, Shape::Page("entries"))?;
    let suffix = if arguments.flag("compress") { ".gz" } else { "" };
    let location = format!("archive://logs/export-0001.{}{suffix}", arguments.text("format"));
    Ok(json!({ "status": "started", "entries": page["total"], "location": location }))
}

pub(super) fn run_saved(store: &Store, arguments: &Object) -> Result<Value, Failure> {
    let query = store.find("queries", &arguments["queryId"])?;
    let mut filter = query.get("filter").and_then(Value::as_object).cloned().unwrap_or_default();
    filter.insert("limit".to_owned(), arguments["limit"].clone());
    list(&entries_table(), store.rows("entries"), &filter, Shape::Page("entries"))
}

pub(super) fn storage_cost(store: &Store, arguments: &Object) -> Value {
    // The stored day stands for one in a thousand entries of about 400 bytes.
    let entries = u32::try_from(store.rows("entries").len()).unwrap_or(u32::MAX);
    let daily_gigabytes = f64::from(entries) * 1_000.0 * 400.0 / 1e9;
    let stored = daily_gigabytes * arguments.number("retentionDays");
    let cost = (stored * arguments.number("pricePerGigabyte") * 100.0).round() / 100.0;
    json!({ "dailyGigabytes": daily_gigabytes, "monthlyCost": cost, "currency": "USD" })
}
