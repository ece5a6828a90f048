//! `calendar`: meetings, rooms and who is free.

mod answers;
mod tables;

use serde_json::{Value, json};

use crate::field::{
    Field, Object, choice, choices, flag, integer, limit, moment, object, text, texts,
};
use crate::moment::Moment;
use crate::spec::{Era, Spec};
use crate::store::{Read, Store};
use crate::tool::{Action, Annotations, Shape, Tool, tool};

const ANSWERS: &[&str] = &["accepted", "declined", "tentative"];
const VISIBILITIES: &[&str] = &["default", "public", "private"];
const WEEKDAYS: &[&str] = &["MO", "TU", "WE", "TH", "FR", "SA", "SU"];

pub(super) fn server() -> Spec {
    Spec {
        name: "calendar",
        description: "Meetings, meeting rooms and availability.",
        version: "2.4.1",
        prefix: None,
        era: Era::Handshake,
        annotations: Annotations::Given,
        tables: vec![tables::events(), tables::rooms()],
        tools: event_tools().into_iter().chain(people_tools()).collect(),
    }
}

const EQUIPMENT: &[&str] = &["screen", "whiteboard", "video", "phone"];

fn event_id() -> Field {
    text("event_id", "Id of the event, as returned by list_events or create_event.")
        .example("EVT-2")
}

fn event_tools() -> Vec<Tool> {
    vec![
        tool(
            "list_events",
            "List calendar events that start within a time range, optionally of one calendar or \
            with one attendee.",
            vec![
                moment("from", "Start of the range, inclusive.")
                    .optional()
                    .example("2026-10-15T00:00:00Z"),
                moment("to", "End of the range, exclusive.").optional(),
                text("calendar_id", "Only events of this calendar, such as work or personal.")
                    .optional(),
                text("attendees", "Only events that this user attends.").optional(),
                limit(50, 250),
            ],
            Action::List("events", Shape::Bare),
        )
        .typed(),
        tool(
            "get_event",
            "Get a calendar event with its attendees and their answers.",
            vec![event_id()],
            Action::Get("events"),
        )
        .typed(),
        tool(
            "search_events",
            "Find calendar events by words of their title, notes or attendees.",
            vec![text("query", "Words to look for.").example("review"), limit(20, 100)],
            Action::List("events", Shape::Bare),
        ),
        tool(
            "create_event",
            "Create a calendar event and invite people to it. Times are ISO 8601 with a time \
            zone. Check free times with find_free_slots first.",
            vec![
                text("title", "Title of the event.").example("Release check"),
                moment("start", "When it starts.").example("2026-10-19T13:00:00Z"),
                moment("end", "When it ends; after the start.").example("2026-10-19T13:30:00Z"),
                texts("attendees", "User names of the people to invite.").optional(),
                text("room_id", "Room to book, from list_rooms.").optional(),
                text("description", "Notes for the invitation.").optional(),
                text("calendar_id", "Calendar to put it in.").or("work"),
                object(
                    "recurrence",
                    vec![
                        choice(
                            "frequency",
                            &["daily", "weekly", "monthly"],
                            "How often it repeats.",
                        ),
                        integer("interval", 1..=52, "Every so many days, weeks or months.").or(1),
                        choices("weekdays", WEEKDAYS, "Days of the week, for weekly events.")
                            .optional(),
                        integer("count", 1..=200, "Number of occurrences.").optional(),
                    ],
                    "How the event repeats; once when left out.",
                )
                .optional(),
                choice("visibility", VISIBILITIES, "Who sees the details.").or("default"),
            ],
            Action::Change(answers::create),
        ),
        tool(
            "update_event",
            "Change the title, time, room or notes of a calendar event. Fields that are left out \
            stay as they are.",
            vec![
                event_id(),
                text("title", "New title.").optional(),
                moment("start", "New start.").optional(),
                moment("end", "New end.").optional(),
                text("room_id", "New room.").optional(),
                text("description", "New notes.").optional(),
                flag("notify_attendees", "Whether to tell the attendees of the change.").or(true),
            ],
            Action::Update("events", &[]),
        ),
        tool(
            "cancel_event",
            "Cancel a calendar event and tell its attendees. The event stays in the calendar as \
            cancelled.",
            vec![event_id(), text("message", "Message to the attendees.").optional()],
            Action::Destroy("events", &[("status", "cancelled")]),
        ),
    ]
}

fn people_tools() -> Vec<Tool> {
    vec![
        tool(
            "respond_to_event",
            "Answer the invitation to a calendar event on behalf of an attendee.",
            vec![
                event_id(),
                text("attendee", "Who answers.").example("mateo"),
                choice("response", ANSWERS, "The answer."),
                text("comment", "A remark for the organiser.").optional(),
            ],
            Action::Append("events", "responses"),
        ),
        tool(
            "add_attendees",
            "Invite more people to a calendar event.",
            vec![
                event_id(),
                texts("attendees", "User names of the people to add.").example(json!(["hana"])),
            ],
            Action::Change(answers::add_attendees),
        ),
        tool(
            "find_free_slots",
            "Find times at which all given people are free, within working hours (08:00 to 17:00 \
            UTC) of the days of a range. Returns up to the limit of slots of the wanted length, \
            earliest first.",
            vec![
                texts("attendees", "User names of everybody who must be free.")
                    .example(json!(["amara", "jonas"])),
                integer("duration_minutes", 15..=480, "Length of the meeting.").example(30),
                moment("from", "Earliest start.").example("2026-10-15T08:00:00Z"),
                moment("to", "Latest end.").example("2026-10-16T17:00:00Z"),
                limit(5, 20),
            ],
            Action::Report(answers::free_slots),
        )
        .returns_list(vec![
            moment("start", "Start of the slot."),
            moment("end", "End of the slot."),
        ]),
        tool(
            "check_availability",
            "Check whether one person is free in a time range, and what they attend if not.",
            vec![
                text("user", "User name of the person.").example("amara"),
                moment("start", "Start of the range.").example("2026-10-16T09:30:00Z"),
                moment("end", "End of the range.").example("2026-10-16T10:30:00Z"),
            ],
            Action::Report(answers::availability),
        )
        .returns(vec![
            flag("available", "Whether the person is free."),
            texts("conflicts", "Titles of what they attend."),
        ]),
        tool(
            "list_rooms",
            "List meeting rooms, optionally those with enough seats, in a building or with \
            certain equipment.",
            vec![
                integer("min_capacity", 1..=100, "Only rooms with at least so many seats.")
                    .optional(),
                text("building", "Only rooms in this building.").optional(),
                choices("equipment", EQUIPMENT, "Only rooms with all of this.").optional(),
            ],
            Action::List("rooms", Shape::Bare),
        ),
        tool(
            "book_room",
            "Book a meeting room for an existing calendar event. Replaces a room that was booked \
            before.",
            vec![event_id(), text("room_id", "Id of the room.").example("R-3")],
            Action::Update("events", &[]),
        ),
        tool(
            "get_working_hours",
            "Get the working hours and time zone of a user.",
            vec![text("user", "User name of the person.").example("hana")],
            Action::Report(answers::working_hours),
        ),
    ]
}

/// The events that one of these people attends in a range.
fn conflicts<'a>(
    store: &'a Store,
    people: &[Value],
    start: Moment,
    end: Moment,
) -> Vec<&'a Object> {
    let clashes = |event: &&Object| {
        event.text("status") != "cancelled"
            && event.items("attendees").iter().any(|attendee| people.contains(attendee))
            && Moment::parse(event.text("start")) < Some(end)
            && Moment::parse(event.text("end")) > Some(start)
    };
    store.rows("events").iter().filter(clashes).collect()
}
