//! The tables of `calendar` and what is in them at the start.

use super::{ANSWERS, EQUIPMENT};
use crate::field::{choice, choices, count, moment, objects, text, texts};
use crate::table::{Source, Table};

const EVENTS: &str = "\
EVT-1 | Platform stand-up     | 2026-10-15T10:00:00Z | 2026-10-15T10:15:00Z | work     | amara;jonas;zofia        | R-2 |                      | confirmed
EVT-2 | Design review: cart   | 2026-10-15T13:00:00Z | 2026-10-15T14:00:00Z | work     | clara;mateo;samuel       | R-1 | Bring the prototypes | confirmed
EVT-3 | One-to-one Priya      | 2026-10-15T15:30:00Z | 2026-10-15T16:00:00Z | work     | amara;priya              |     |                      | confirmed
EVT-4 | Incident review       | 2026-10-16T09:00:00Z | 2026-10-16T10:00:00Z | work     | amara;jonas;tariq;zofia  | R-1 | The mail relay       | confirmed
EVT-5 | Supplier call         | 2026-10-16T11:00:00Z | 2026-10-16T11:45:00Z | work     | renata;ravi              |     |                      | tentative
EVT-6 | Dentist               | 2026-10-16T14:00:00Z | 2026-10-16T15:00:00Z | personal | amara                    |     |                      | confirmed
EVT-7 | Sprint planning       | 2026-10-19T09:00:00Z | 2026-10-19T11:00:00Z | work     | amara;jonas;priya;hana   | R-3 |                      | confirmed
EVT-8 | Quarter closing       | 2026-10-20T13:00:00Z | 2026-10-20T14:30:00Z | work     | margaret;ravi            | R-2 |                      | confirmed
EVT-9 | All hands             | 2026-10-22T15:00:00Z | 2026-10-22T16:00:00Z | work     | amara;margaret;renata    | R-3 |                      | confirmed
";

pub(super) fn events() -> Table {
    Table {
        name: "events",
        singular: "event",
        columns: vec![
            text("id", "Event id."),
            text("title", "Title of the event."),
            moment("start", "When it starts."),
            moment("end", "When it ends."),
            text("calendar_id", "Calendar that it is in.").or("work"),
            texts("attendees", "User names of those invited."),
            text("room_id", "Room that is booked.").optional(),
            text("description", "Notes of the event.").optional(),
            choice("status", &["confirmed", "tentative", "cancelled"], "State of the event.")
                .or("confirmed"),
            objects(
                "responses",
                vec![
                    text("attendee", "Who answered."),
                    choice("response", ANSWERS, "The answer."),
                    text("comment", "A remark.").optional(),
                    moment("at", "When."),
                ],
                "Answers to the invitation.",
            ),
        ],
        id_prefix: "EVT-",
        time: Some("start"),
        source: Source::Lines(EVENTS),
    }
}

pub(super) fn rooms() -> Table {
    Table {
        name: "rooms",
        singular: "room",
        columns: vec![
            text("id", "Room id."),
            text("name", "Name of the room."),
            count("capacity", "Number of seats."),
            text("building", "Building that it is in."),
            choices("equipment", EQUIPMENT, "What it has."),
        ],
        id_prefix: "R-",
        time: None,
        source: Source::Lines(
            "R-1 | Harbour | 8  | North | screen;whiteboard
             R-2 | Lantern | 4  | North | screen
             R-3 | Meadow  | 20 | South | screen;whiteboard;video;phone
             R-4 | Pebble  | 2  | South | phone",
        ),
    }
}
