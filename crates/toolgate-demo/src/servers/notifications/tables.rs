//! The tables of `notifications` and what is in them at the start.

use super::{MEDIA, STATES, URGENCIES, quiet_hours};
use crate::field::{choice, choices, flag, moment, object, text, texts};
use crate::table::{Source, Table};

const SENT: &str = "\
NTF-1 | user    | amara              | Release 2026.10.2 is out       | normal | delivered | 2026-10-14T16:02:00Z
NTF-2 | channel | #deployments       | Release 2026.10.2 is out       | normal | delivered | 2026-10-14T16:02:05Z
NTF-3 | email   | ravi@example.com   | Your expense report is due     | low    | delivered | 2026-10-14T17:30:00Z
NTF-4 | sms     | +351900000001      | Checkout error rate above 5 %  | high   | delivered | 2026-10-15T06:41:00Z
NTF-5 | channel | #incidents         | Checkout error rate above 5 %  | high   | delivered | 2026-10-15T06:41:02Z
NTF-6 | push    | device-77          | Order 4412 has shipped         | normal | failed    | 2026-10-15T08:15:00Z
NTF-7 | user    | priya              | You were assigned ISS-111      | normal | delivered | 2026-10-15T08:50:00Z
";

pub(super) fn deliveries() -> Table {
    Table {
        name: "deliveries",
        singular: "notification",
        columns: vec![
            text("id", "Notification id."),
            choice("medium", MEDIA, "How it was sent."),
            text("recipient", "Who it was sent to."),
            text("message", "Text of the notification."),
            choice("urgency", URGENCIES, "How urgent it is.").or("normal"),
            choice("status", STATES, "What became of it.").or("queued"),
            moment("sent_at", "When it was sent."),
            text("subject", "Subject line, for email.").optional(),
            moment("deliver_at", "When it will be delivered, if scheduled.").optional(),
        ],
        id_prefix: "NTF-",
        time: Some("sent_at"),
        source: Source::Lines(SENT),
    }
}

pub(super) fn channels() -> Table {
    Table {
        name: "channels",
        singular: "channel",
        columns: vec![
            text("name", "Name of the channel, with its #."),
            text("topic", "What it is about."),
            texts("members", "User names of its members."),
            flag("archived", "Whether it is read-only.").or(false),
        ],
        id_prefix: "#channel-",
        time: None,
        source: Source::Lines(
            "#deployments | Releases and rollbacks  | amara;jonas;zofia;viktor | false
             #incidents   | What is on fire         | amara;tariq;zofia        | false
             #lunch       | Who eats what and where | clara;mateo;samuel;ravi  | false
             #summer-2025 | The summer party        | clara;renata             | true",
        ),
    }
}

pub(super) fn templates() -> Table {
    Table {
        name: "templates",
        singular: "template",
        columns: vec![
            text("id", "Template id."),
            text("name", "Name of the template."),
            text("body", "Text with {{placeholders}}."),
            texts("placeholders", "Names of the placeholders."),
        ],
        id_prefix: "TPL-",
        time: None,
        source: Source::Lines(
            "TPL-1 | Release notice | Release {{version}} is out in {{environment}}. | version;environment
             TPL-2 | Invoice due    | Dear {{name}}, invoice {{invoice}} is due.     | name;invoice
             TPL-3 | Welcome        | Welcome aboard, {{name}}!                      | name",
        ),
    }
}

pub(super) fn preferences() -> Table {
    Table {
        name: "preferences",
        singular: "user",
        columns: vec![
            text("user", "User name."),
            choices("enabled_media", MEDIA, "How the user may be reached."),
            object("quiet_hours", quiet_hours(), "When only urgent notifications arrive.")
                .optional(),
            choice("digest", &["off", "daily", "weekly"], "How often minor ones are bundled.")
                .or("off"),
        ],
        id_prefix: "",
        time: None,
        source: Source::Lines(
            "amara | user;email;push;sms | 22:00, 07:00 | off
             priya | user;email          | 20:00, 08:00 | daily
             ravi  | email               |              | weekly",
        ),
    }
}
