//! The answers of `deploy` that need code.

use serde_json::{Value, json};

use crate::error::Failure;
use crate::field::Object;
use crate::generator::Generator;
use crate::store::{Read, Store};

pub(super) fn compare(store: &Store, arguments: &Object) -> Result<Value, Failure> {
    let base = store.find("releases", &arguments["base_version"])?;
    let head = store.find("releases", &arguments["head_version"])?;
    if base.text("service") != head.text("service") {
        return Err(Failure::Refused("The releases are of different services".into()));
    }
    let between = store.rows("releases").iter().filter(|release| {
        release.text("service") == base.text("service")
            && release.text("created_at") > base.text("created_at")
            && release.text("created_at") <= head.text("created_at")
    });
    let changes: Vec<&Value> = between.flat_map(|release| release.items("changes")).collect();
    Ok(json!({
        "service": base["service"],
        "base": base["commit"],
        "head": head["commit"],
        "changes": changes,
    }))
}

pub(super) fn trigger(store: &mut Store, arguments: &Object) -> Result<Value, Failure> {
    let release = store.find("releases", &arguments["version"])?;
    if release["service"] != arguments["service"] {
        return Err(Failure::Refused(format!(
            "{} is a release of {}",
            release["version"], release["service"]
        )));
    }
    let environment = store.find("environments", &arguments["environment"])?;
    if environment.flag("locked") {
        let reason = environment.text("lock_reason");
        return Err(Failure::Refused(format!("The environment is locked: {reason}")));
    }
    if arguments.flag("dry_run") {
        return Ok(json!({ "possible": true, "needs_approval": environment["protected"] }));
    }
    let mut deployment = arguments.clone();
    deployment.insert("status".to_owned(), json!("running"));
    store.insert("deployments", &deployment).map(Value::from)
}

pub(super) fn rollback(store: &mut Store, arguments: &Object) -> Result<Value, Failure> {
    let mut done = store.rows("deployments").iter().rev().filter(|deployment| {
        deployment["service"] == arguments["service"]
            && deployment["environment"] == arguments["environment"]
            && deployment.text("status") == "succeeded"
    });
    let (Some(current), Some(previous)) = (done.next(), done.next()) else {
        return Err(Failure::Refused("There is no earlier deployment to go back to".into()));
    };
    let (current, mut restored) = (current["id"].clone(), previous.clone());
    for column in ["id", "started_at", "triggered_by"] {
        restored.remove(column);
    }
    store.find_mut("deployments", &current)?.insert("status".to_owned(), json!("rolled_back"));
    store.insert("deployments", &restored).map(Value::from)
}

pub(super) fn logs(store: &Store, arguments: &Object) -> Result<Value, Failure> {
    let deployment = store.find("deployments", &arguments["deployment_id"])?;
    let steps = [
        "Pulling image",
        "Running migrations",
        "Starting instance",
        "Health check passed",
        "Shifting traffic",
    ];
    let lines = (1..=arguments.integer("lines")).zip(steps.iter().cycle());
    let line = |(number, step): (i64, &&str)| {
        format!(
            "[{:>4}s] {} {}: {step}",
            number * 3,
            deployment.text("service"),
            deployment.text("version")
        )
    };
    Ok(json!({ "status": deployment["status"], "lines": lines.map(line).collect::<Vec<_>>() }))
}

pub(super) fn evaluate(store: &Store, arguments: &Object) -> Result<Value, Failure> {
    let flag = store.find("flags", &arguments["key"])?;
    let attributes = arguments.get("attributes").and_then(Value::as_object);
    let ruled = flag.items("rules").iter().filter_map(Value::as_object).any(|rule| {
        attributes.and_then(|attributes| attributes.get(rule.text("attribute"))).is_some_and(
            |actual| {
                let listed = rule.items("values").contains(actual);
                match rule.text("operator") {
                    "not_equals" => !listed,
                    "starts_with" => {
                        rule.items("values").iter().filter_map(Value::as_str).any(|start| {
                            actual.as_str().is_some_and(|actual| actual.starts_with(start))
                        })
                    }
                    _ => listed,
                }
            },
        )
    });
    let seed = format!("{} {}", flag.text("key"), arguments.text("user_id"));
    let sampled = i64::from(Generator::of(&seed).below(100)) < flag.integer("rollout_percent");
    let (enabled, reason) = match (flag.flag("enabled"), ruled, sampled) {
        (false, ..) => (false, "the flag is off"),
        (true, true, _) => (true, "a rule matches"),
        (true, false, true) => (true, "within the rollout"),
        (true, false, false) => (false, "outside the rollout"),
    };
    Ok(json!({ "key": flag["key"], "enabled": enabled, "reason": reason }))
}
