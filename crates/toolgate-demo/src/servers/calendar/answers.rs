//! The answers of `calendar` that need code.

use serde_json::{Value, json};

use super::{WEEKDAYS, conflicts};
use crate::action::append;
use crate::error::Failure;
use crate::field::Object;
use crate::moment::Moment;
use crate::store::{Read, Store};

pub(super) fn create(store: &mut Store, arguments: &Object) -> Result<Value, Failure> {
    if Moment::parse(arguments.text("end")) <= Moment::parse(arguments.text("start")) {
        return Err(Failure::argument("end", "must be after the start"));
    }
    store.insert("events", arguments).map(Value::from)
}

pub(super) fn add_attendees(store: &mut Store, arguments: &Object) -> Result<Value, Failure> {
    let event = store.find_mut("events", &arguments["event_id"])?;
    for attendee in arguments.items("attendees") {
        if !event.items("attendees").contains(attendee) {
            append(event, "attendees", attendee.clone())?;
        }
    }
    Ok(event.clone().into())
}

pub(super) fn free_slots(store: &Store, arguments: &Object) -> Value {
    const QUARTER_HOUR: i64 = 900;
    // Two weeks in steps of a quarter of an hour.
    const MAX_STEPS: u32 = 14 * 96;
    let length = arguments.integer("duration_minutes") * 60;
    let now = Moment::now();
    let mut start = Moment::parse(arguments.text("from")).unwrap_or(now).max(now);
    let latest = Moment::parse(arguments.text("to")).unwrap_or(now);
    let wanted = usize::try_from(arguments.integer("limit")).unwrap_or(0);
    let mut slots = Vec::new();
    for _ in 0..MAX_STEPS {
        let end = start.plus(length);
        if end > latest || slots.len() >= wanted {
            break;
        }
        let midnight = Moment::parse(&start.date()).unwrap_or(now);
        let working =
            start.seconds_since(midnight) >= 8 * 3_600 && end.seconds_since(midnight) <= 17 * 3_600;
        if working && conflicts(store, arguments.items("attendees"), start, end).is_empty() {
            slots.push(json!({ "start": start.to_string(), "end": end.to_string() }));
            start = end;
        } else {
            start = start.plus(QUARTER_HOUR);
        }
    }
    slots.into()
}

pub(super) fn availability(store: &Store, arguments: &Object) -> Value {
    let [start, end] =
        ["start", "end"].map(|name| Moment::parse(arguments.text(name)).unwrap_or(Moment::now()));
    let people = [arguments["user"].clone()];
    let conflicts = conflicts(store, &people, start, end);
    let titles: Vec<&str> = conflicts.iter().map(|event| event.text("title")).collect();
    json!({ "available": titles.is_empty(), "conflicts": titles })
}

pub(super) fn working_hours(_: &Store, arguments: &Object) -> Value {
    let zone = match arguments.text("user") {
        "hana" | "wei" | "mei" => "Asia/Tokyo",
        "renata" | "samuel" => "America/Bogota",
        _ => "Europe/Lisbon",
    };
    json!({
        "user": arguments["user"],
        "timeZone": zone,
        "start": "09:00",
        "end": "17:30",
        "weekdays": &WEEKDAYS[..5],
    })
}
