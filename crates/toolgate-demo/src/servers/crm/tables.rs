//! The tables of `crm` and what is in them at the start.

use super::{ACTIVITIES, INVOICE_STATES, SEGMENTS, STAGES};
use crate::field::{Kind, amount, choice, count, date, flag, map, moment, objects, text};
use crate::table::{Source, Table};

const CUSTOMERS: &str = "\
CUS-001 | Aster Robotics    | enterprise | DE | renata | ops@aster.example       | true  | 2021-02-11
CUS-002 | Bluefin Logistics | midmarket  | PT | tobias | it@bluefin.example      | true  | 2022-06-30
CUS-003 | Cobalt Kitchens   | startup    | FR | mei    | hello@cobalt.example    | true  | 2025-01-20
CUS-004 | Dovetail Studio   | startup    | GB | tobias | team@dovetail.example   | false | 2023-09-14
CUS-005 | Ember Energy      | enterprise | NO | renata | buying@ember.example    | true  | 2020-11-03
CUS-006 | Foxglove Clinics  | midmarket  | IE | mei    | admin@foxglove.example  | true  | 2024-04-08
CUS-007 | Granite Insurance | enterprise | CH | renata | it@granite.example      | true  | 2019-07-22
CUS-008 | Hazel Books       | startup    | NL | mei    | info@hazel.example      | true  | 2025-08-01
";

const DEALS: &str = "\
DEAL-01 | Warehouse roll-out     | CUS-001 | negotiation | 184000 | 70  | 2026-11-15 | renata
DEAL-02 | Second site            | CUS-002 | proposal    | 42000  | 45  | 2026-12-01 | tobias
DEAL-03 | Starter plan           | CUS-003 | won         | 6800   | 100 | 2026-09-12 | mei
DEAL-04 | Grid analytics         | CUS-005 | qualified   | 230000 | 20  | 2027-02-28 | renata
DEAL-05 | Booking add-on         | CUS-006 | proposal    | 27500  | 50  | 2026-11-20 | mei
DEAL-06 | Claims portal          | CUS-007 | negotiation | 310000 | 65  | 2026-12-18 | renata
DEAL-07 | Web shop               | CUS-008 | lost        | 5200   | 0   | 2026-08-30 | mei
DEAL-08 | Renewal, three years   | CUS-007 | won         | 96000  | 100 | 2026-07-02 | renata
";

const INVOICES: &str = "\
INV-2001 | CUS-001 | 46000 | EUR | paid    | 2026-07-01 | 2026-07-31 | DEAL-01
INV-2002 | CUS-002 | 8200  | EUR | paid    | 2026-07-15 | 2026-08-14 |
INV-2003 | CUS-003 | 6800  | EUR | open    | 2026-09-20 | 2026-10-20 | DEAL-03
INV-2004 | CUS-004 | 1900  | GBP | overdue | 2026-06-10 | 2026-07-10 |
INV-2005 | CUS-005 | 57500 | EUR | paid    | 2026-08-05 | 2026-09-04 |
INV-2006 | CUS-006 | 9400  | EUR | overdue | 2026-08-20 | 2026-09-19 |
INV-2007 | CUS-007 | 96000 | CHF | paid    | 2026-07-05 | 2026-08-04 | DEAL-08
INV-2008 | CUS-007 | 12500 | CHF | open    | 2026-10-01 | 2026-10-31 |
INV-2009 | CUS-008 | 780   | EUR | draft   | 2026-10-12 | 2026-11-11 |
";

pub(super) fn customers() -> Table {
    Table {
        name: "customers",
        singular: "customer",
        columns: vec![
            text("id", "Customer id."),
            text("name", "Name of the company."),
            choice("segment", SEGMENTS, "Size of the company."),
            text("country", "Two-letter country code."),
            text("owner", "User who looks after the customer."),
            text("email", "Main contact address."),
            flag("active", "Whether there is a contract.").or(true),
            date("customerSince", "First contract."),
            map("attributes", Kind::Text, "Further attributes.").optional(),
            objects(
                "activities",
                vec![
                    choice("type", ACTIVITIES, "Kind of contact."),
                    text("summary", "What it was about."),
                    text("contact", "With whom.").optional(),
                    moment("at", "When."),
                ],
                "Contacts with the customer, oldest first.",
            ),
        ],
        id_prefix: "CUS-",
        time: None,
        source: Source::Lines(CUSTOMERS),
    }
}

pub(super) fn deals() -> Table {
    Table {
        name: "deals",
        singular: "deal",
        columns: vec![
            text("id", "Deal id."),
            text("name", "Name of the deal."),
            text("customerId", "Customer that it is with."),
            choice("stage", STAGES, "Stage in the pipeline.").or("qualified"),
            amount("value", "Value in EUR."),
            count("probability", "Chance of winning it, in percent."),
            date("closeDate", "When it is expected to close."),
            text("owner", "User who works on it."),
        ],
        id_prefix: "DEAL-",
        time: None,
        source: Source::Lines(DEALS),
    }
}

pub(super) fn invoices() -> Table {
    Table {
        name: "invoices",
        singular: "invoice",
        columns: vec![
            text("id", "Invoice id."),
            text("customerId", "Customer that owes it."),
            amount("total", "Total of the invoice."),
            text("currency", "Currency of the total.").or("EUR"),
            choice("status", INVOICE_STATES, "State of the invoice.").or("draft"),
            date("issuedOn", "Date of the invoice."),
            date("dueOn", "When it must be paid."),
            text("dealId", "Deal that it belongs to.").optional(),
        ],
        id_prefix: "INV-",
        time: None,
        source: Source::Lines(INVOICES),
    }
}
