//! The tables of `logging` and what is in them at the start.

use super::{LEVELS, SEVERITIES, entries, filter_fields};
use crate::field::{Kind, choice, count, flag, map, moment, object, text};
use crate::table::{Source, Table};

pub(super) fn entries_table() -> Table {
    Table {
        name: "entries",
        singular: "log entry",
        columns: vec![
            text("id", "Identifier of the entry."),
            moment("timestamp", "When the entry was written."),
            choice("level", LEVELS, "Severity of the entry."),
            text("service", "Service that wrote the entry."),
            text("host", "Host the service ran on."),
            text("message", "The message, without variable parts."),
            text("traceId", "Trace that the entry belongs to."),
            map("context", Kind::Text, "Variable parts of the message."),
        ],
        id_prefix: "log-",
        time: Some("timestamp"),
        source: Source::Made(entries::make),
    }
}

pub(super) fn rules_table() -> Table {
    Table {
        name: "rules",
        singular: "alert rule",
        columns: vec![
            text("id", "Identifier of the rule."),
            text("name", "Name of the rule."),
            text("service", "Service that it watches.").optional(),
            choice("level", LEVELS, "Lowest level that counts."),
            count("threshold", "Entries within the window that set it off."),
            text("window", "Length of the window, such as 5m."),
            choice("severity", SEVERITIES, "Severity of the alert.").or("warning"),
            text("mutedUntil", "Until when it is silent.").optional(),
            flag("enabled", "Whether it is evaluated.").or(true),
        ],
        id_prefix: "rule-",
        time: None,
        source: Source::Lines(
            "rule-1 | Checkout errors   | checkout | error | 10 | 5m  | critical |                      | true
             rule-2 | Login failures    | auth     | warn  | 50 | 10m | warning  |                      | true
             rule-3 | Any error burst   |          | error | 80 | 15m | critical |                      | true
             rule-4 | Slow search       | search   | warn  | 40 | 30m | info     | 2026-10-16T00:00:00Z | true
             rule-5 | Billing retries   | billing  | warn  | 25 | 30m | warning  |                      | false",
        ),
    }
}

pub(super) fn queries_table() -> Table {
    Table {
        name: "queries",
        singular: "saved query",
        columns: vec![
            text("id", "Identifier of the saved query."),
            text("name", "Name of the saved query."),
            object("filter", filter_fields(), "What the query asks for."),
        ],
        id_prefix: "query-",
        time: None,
        source: Source::Lines(
            "query-1 | Payment errors | error, billing
             query-2 | Auth warnings  | warn, auth
             query-3 | Search errors  | error, search",
        ),
    }
}
