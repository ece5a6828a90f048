//! Servers on demand: lazy servers, disabled servers, registries, skills, namespaces.

mod consent;
mod lazy;
mod namespaces;
mod registry;
mod skills;

use std::path::Path;

use serde_json::{Value, json};
use toolgate_testkit::Fixture;

use crate::support::entry;

/// The configuration's entry for a fixture whose process writes a line to `log` when it starts.
fn logged(fixture: &Fixture, log: &Path, settings: Value) -> Value {
    let entry = entry(fixture);
    let script = format!("echo started >> '{}'; exec \"$0\" \"$@\"", log.display());
    let mut args = vec![json!("-c"), json!(script), entry["command"].clone()];
    args.extend(entry["args"].as_array().unwrap().clone());
    let mut logged = json!({ "command": "/bin/sh", "args": args });
    let (Value::Object(all), Value::Object(settings)) = (&mut logged, settings) else {
        panic!("settings are an object");
    };
    all.extend(settings);
    logged
}

/// How often it was started.
fn starts(log: &Path) -> usize {
    std::fs::read_to_string(log).unwrap_or_default().lines().count()
}
