//! The tables of `ticketing` and what is in them at the start.

use super::{PRIORITIES, RESOLUTIONS, STATUSES, comment_fields, link_fields};
use crate::field::{choice, date, moment, objects, text, texts};
use crate::table::{Source, Table};

const ISSUES: &str = "\
ISS-101 | Checkout button does nothing on small screens | Seen on phones in landscape.         | open        | high   | bug;frontend       | mateo   | M-2 | 2026-09-18T08:12:00Z | 2026-10-02T10:00:00Z
ISS-102 | Export invoices as CSV                        | Finance asks for it every month.     | in_progress | medium | feature;billing    | priya   | M-2 | 2026-09-20T13:40:00Z | 2026-10-12T09:20:00Z
ISS-103 | Search returns discontinued products          | The index is not pruned.             | open        | medium | bug;search         | hana    | M-1 | 2026-09-22T07:55:00Z | 2026-09-30T16:45:00Z
ISS-104 | Upgrade the mail relay                        | The relay refuses old ciphers.       | blocked     | high   | chore;messaging    | zofia   | M-1 | 2026-09-23T11:05:00Z | 2026-10-09T12:00:00Z
ISS-105 | Dark mode for the admin pages                 | Requested by support.                | open        | low    | feature;frontend   |         |     | 2026-09-25T15:30:00Z | 2026-09-25T15:30:00Z
ISS-106 | Deadlock when two orders reserve the same item| Happens under load.                  | open        | urgent | bug;inventory      | jonas   | M-1 | 2026-09-28T06:20:00Z | 2026-10-14T18:10:00Z
ISS-107 | Document the webhook payloads                 | Partners keep asking.                | open        | low    | docs               |         | M-2 | 2026-09-29T09:45:00Z | 2026-09-29T09:45:00Z
ISS-108 | Password reset mails arrive late              | Queue is drained only once a minute. | closed      | medium | bug;messaging      | zofia   | M-1 | 2026-09-30T10:15:00Z | 2026-10-06T08:30:00Z
ISS-109 | Rate limit per API key                        | Today it is per address.             | in_progress | high   | feature;api        | tariq   | M-2 | 2026-10-01T14:00:00Z | 2026-10-13T15:25:00Z
ISS-110 | Flaky test in the cart suite                  | Fails once in twenty runs.           | open        | low    | chore;tests        | beatriz |     | 2026-10-03T12:35:00Z | 2026-10-03T12:35:00Z
ISS-111 | Totals differ by a cent on some invoices      | Rounding happens twice.              | open        | high   | bug;billing        | priya   | M-1 | 2026-10-05T07:10:00Z | 2026-10-11T09:00:00Z
ISS-112 | Retire the legacy login page                  | Nobody has used it since June.       | closed      | low    | chore;frontend     | mateo   |     | 2026-10-07T16:20:00Z | 2026-10-10T11:40:00Z
";

pub(super) fn issues() -> Table {
    Table {
        name: "issues",
        singular: "issue",
        columns: vec![
            text("id", "Issue id, such as ISS-101."),
            text("title", "One-line summary."),
            text("body", "Description in Markdown."),
            choice("status", STATUSES, "State of the issue.").or("open"),
            choice("priority", PRIORITIES, "Priority of the issue.").or("medium"),
            texts("labels", "Names of its labels."),
            text("assignee", "User name of the assignee.").optional(),
            text("milestoneId", "Milestone that it is planned for.").optional(),
            moment("createdAt", "When it was created."),
            moment("updatedAt", "When it last changed."),
            choice("resolution", RESOLUTIONS, "How it was resolved.").optional(),
            date("dueDate", "When it should be done.").optional(),
            objects("comments", comment_fields(), "Its comments, oldest first."),
            objects("links", link_fields(), "Its links to other issues."),
            texts("watchers", "Users who are told of changes."),
        ],
        id_prefix: "ISS-",
        time: Some("createdAt"),
        source: Source::Lines(ISSUES),
    }
}

pub(super) fn labels() -> Table {
    Table {
        name: "labels",
        singular: "label",
        columns: vec![
            text("name", "Name of the label."),
            text("color", "Colour as six hexadecimal digits."),
            text("description", "What the label is for.").optional(),
        ],
        id_prefix: "",
        time: None,
        source: Source::Lines(
            "bug | d73a4a | Something is broken
             feature | a2eeef | Something new
             chore | cfd3d7 | Upkeep
             docs | 0075ca | Documentation
             billing | f9d0c4 | Invoices and payments
             frontend | bfdadc | What users see",
        ),
    }
}

pub(super) fn milestones() -> Table {
    Table {
        name: "milestones",
        singular: "milestone",
        columns: vec![
            text("id", "Milestone id."),
            text("title", "Name of the milestone."),
            date("dueDate", "When it is due."),
            choice("status", &["open", "closed"], "Whether it is done.").or("open"),
            text("description", "What it is about.").optional(),
        ],
        id_prefix: "M-",
        time: None,
        source: Source::Lines(
            "M-1 | Stability October  | 2026-10-31 | open   | No errors in the morning report
             M-2 | Partner interface  | 2026-11-30 | open   | What partners have asked for
             M-0 | Summer clean-up    | 2026-08-31 | closed |",
        ),
    }
}
