//! The answers of `metrics` that need code.

use serde_json::{Value, json};

use super::{MAX_POINTS, SERVICES};
use crate::error::Failure;
use crate::field::Object;
use crate::generator::Generator;
use crate::moment::{Moment, parse_duration};
use crate::store::{Read, Store};

/// The values of a series, oldest first: a wave around what the metric usually is, with a bump in
/// the last stretch for the shop, whose payments are slow since the last release.
fn series(store: &Store, metric: &Value, service: &str, points: u32) -> Result<Vec<f64>, Failure> {
    let typical = store.find("metrics", metric)?.number("typicalValue");
    let mut generator = Generator::of(&format!("{metric} {service}"));
    let scale = f64::from(generator.between(60, 140)) / 100.0;
    let bump = if service == "shop" { 2.5 } else { 1.0 };
    let value = |index: u32| {
        let noise = f64::from(generator.between(90, 110)) / 100.0;
        let recent = if index + points / 8 >= points { bump } else { 1.0 };
        (typical * scale * noise * recent * 100.0).round() / 100.0
    };
    Ok((0..points).map(value).collect())
}

/// The number of points that a range has at a step.
fn points_of(range: &str, step: i64) -> u32 {
    let length = parse_duration(range).unwrap_or(3_600);
    u32::try_from(length / step.max(1)).unwrap_or(MAX_POINTS).max(1)
}

/// The series of a call's arguments at steps of five minutes, no matter how many.
fn asked_for(store: &Store, arguments: &Object, service: &str) -> Result<Vec<f64>, Failure> {
    series(store, &arguments["metric"], service, points_of(arguments.text("range"), 300))
}

pub(super) fn query(store: &Store, arguments: &Object) -> Result<Value, Failure> {
    let step = parse_duration(arguments.text("step"))
        .filter(|step| *step > 0)
        .ok_or_else(|| Failure::argument("step", "must be a duration such as 1m or 1h"))?;
    let points = points_of(arguments.text("range"), step);
    if points > MAX_POINTS {
        let problem = format!("gives {points} points, more than {MAX_POINTS}; take a longer one");
        return Err(Failure::argument("step", problem));
    }
    let metric = store.find("metrics", &arguments["metric"])?;
    let values = series(store, &arguments["metric"], arguments.text("service"), points)?;
    let ages = (0..i64::from(points)).rev();
    let point = |(value, age): (f64, i64)| json!({ "time": Moment::now().plus(-age * step).to_string(), "value": value });
    Ok(json!({
        "metric": metric["name"],
        "service": arguments["service"],
        "unit": metric["unit"],
        "points": values.into_iter().zip(ages).map(point).collect::<Vec<_>>(),
    }))
}

fn aggregate(values: &[f64], how: &str) -> f64 {
    let sum: f64 = values.iter().sum();
    let value = match how {
        "min" => values.iter().copied().fold(f64::MAX, f64::min),
        "max" => values.iter().copied().fold(f64::MIN, f64::max),
        "sum" => sum,
        _ => sum / f64::from(u32::try_from(values.len()).unwrap_or(u32::MAX).max(1)),
    };
    (value * 100.0).round() / 100.0
}

pub(super) fn summary(store: &Store, arguments: &Object) -> Result<Value, Failure> {
    let values = asked_for(store, arguments, arguments.text("service"))?;
    let [avg, min, max] = ["avg", "min", "max"].map(|how| aggregate(&values, how));
    Ok(json!({ "avg": avg, "min": min, "max": max, "points": values.len() }))
}

pub(super) fn compare(store: &Store, arguments: &Object) -> Result<Value, Failure> {
    let wanted = arguments.items("services");
    let mut compared = Vec::new();
    for service in SERVICES {
        if wanted.is_empty() || wanted.contains(&json!(service)) {
            let values = asked_for(store, arguments, service)?;
            compared.push((*service, aggregate(&values, arguments.text("aggregation"))));
        }
    }
    compared.sort_by(|one, two| two.1.total_cmp(&one.1));
    Ok(compared
        .into_iter()
        .map(|(service, value)| json!({ "service": service, "value": value }))
        .collect())
}

pub(super) fn anomalies(store: &Store, arguments: &Object) -> Result<Value, Failure> {
    let values = asked_for(store, arguments, arguments.text("service"))?;
    let average = aggregate(&values, "avg");
    let factor = match arguments.text("sensitivity") {
        "low" => 2.5,
        "high" => 1.05,
        _ => 1.5,
    };
    let total = i64::try_from(values.len()).unwrap_or(0);
    let far = (0..total).zip(values).filter(|(_, value)| *value > average * factor);
    let point = |(index, value): (i64, f64)| json!({ "time": Moment::now().plus((index + 1 - total) * 300).to_string(), "value": value });
    Ok(json!({ "average": average, "anomalies": far.map(point).collect::<Vec<_>>() }))
}

pub(super) fn error_budget(store: &Store, arguments: &Object) -> Result<Value, Failure> {
    let objective = store.find("objectives", &arguments["objectiveId"])?;
    let allowed = 100.0 - objective.number("targetPercent");
    let used = f64::from(Generator::of(objective.text("id")).between(15, 130)) / 100.0;
    let achieved = ((100.0 - allowed * used) * 1_000.0).round() / 1_000.0;
    Ok(json!({
        "objectiveId": objective["id"],
        "achievedPercent": achieved,
        "budgetLeftPercent": ((1.0 - used) * 100.0).round(),
        "met": used <= 1.0,
    }))
}
