//! `crm`: customers, deals and invoices.

mod answers;
mod tables;

use serde_json::json;

use crate::field::{
    Field, Kind, amount, choice, choices, count, date, flag, integer, limit, map, object, objects,
    offset, text, texts,
};
use crate::spec::{Era, Spec};
use crate::tool::{Action, Annotations, Shape, Tool, tool};

const SEGMENTS: &[&str] = &["startup", "midmarket", "enterprise"];
const STAGES: &[&str] = &["qualified", "proposal", "negotiation", "won", "lost"];
const INVOICE_STATES: &[&str] = &["draft", "open", "paid", "overdue", "void"];
const ACTIVITIES: &[&str] = &["call", "email", "meeting", "note"];

pub(super) fn server() -> Spec {
    Spec {
        name: "crm",
        description: "Customers, deals and invoices.",
        version: "4.1.7",
        prefix: None,
        era: Era::HandshakeAndDiscover,
        annotations: Annotations::Given,
        tables: vec![tables::customers(), tables::deals(), tables::invoices()],
        tools: customer_tools().into_iter().chain(deal_tools()).chain(invoice_tools()).collect(),
    }
}

fn customer_id() -> Field {
    text("customerId", "Id of the customer, such as CUS-001; find it with searchCustomers.")
        .example("CUS-006")
}

fn customer_tools() -> Vec<Tool> {
    vec![
        tool(
            "listCustomers",
            "List customers with optional filters on segment, country, owner and whether they \
            are active.",
            vec![
                choice("segment", SEGMENTS, "Only customers of this size.").optional(),
                text("country", "Only customers of this country, as a two-letter code.").optional(),
                text("owner", "Only customers of this user.").optional(),
                flag("active", "Only customers with, or without, a contract.").optional(),
                limit(50, 200),
                offset(),
            ],
            Action::List("customers", Shape::Page("customers")),
        ),
        tool(
            "searchCustomers",
            "Find customers by words of their name, contact address or activities.",
            vec![text("query", "Words to look for.").example("clinics"), limit(10, 50)],
            Action::List("customers", Shape::Page("customers")),
        ),
        tool(
            "getCustomer",
            "Get a customer's record with attributes and activities.",
            vec![customer_id()],
            Action::Get("customers"),
        )
        .typed(),
        tool(
            "createCustomer",
            "Create a customer record. Search for the name first so that there are no duplicates.",
            vec![
                text("name", "Name of the company.").example("Indigo Farms"),
                text("email", "Main contact address.").example("office@indigo.example"),
                choice("segment", SEGMENTS, "Size of the company."),
                text("country", "Two-letter country code.").example("DK"),
                text("owner", "User who looks after the customer.").optional(),
                object(
                    "billingAddress",
                    vec![
                        text("street", "Street and number."),
                        text("city", "City."),
                        text("postalCode", "Postal code."),
                        text("country", "Two-letter country code."),
                        text("vatNumber", "Value added tax number.").optional(),
                    ],
                    "Where invoices go; the main address when left out.",
                )
                .optional(),
                map("attributes", Kind::Text, "Further attributes by name.").optional(),
            ],
            Action::Create("customers", &[]),
        ),
        tool(
            "updateCustomer",
            "Change a customer's record. Fields that are left out stay as they are.",
            vec![
                customer_id(),
                text("name", "New name.").optional(),
                text("email", "New contact address.").optional(),
                choice("segment", SEGMENTS, "New segment.").optional(),
                text("owner", "New owner.").optional().example("tobias"),
                flag("active", "Whether there is a contract.").optional(),
                map("attributes", Kind::Text, "New set of further attributes.").optional(),
            ],
            Action::Update("customers", &[]),
        ),
        tool(
            "logActivity",
            "Log a call, email, meeting or note on a customer's timeline.",
            vec![
                customer_id(),
                choice("type", ACTIVITIES, "Kind of contact."),
                text("summary", "What it was about.").example("Asked for an offer"),
                text("contact", "Person at the customer.").optional(),
            ],
            Action::Append("customers", "activities"),
        ),
    ]
}

fn deal_tools() -> Vec<Tool> {
    let deal_id = || {
        text("dealId", "Id of the deal, such as DEAL-01, as returned by listDeals.")
            .example("DEAL-02")
    };
    vec![
        tool(
            "listDeals",
            "List deals of the pipeline with optional filters on stage, owner, customer and value.",
            vec![
                choices("stage", STAGES, "Only deals in one of these stages.").optional(),
                text("owner", "Only deals of this user.").optional(),
                text("customerId", "Only deals with this customer.").optional(),
                amount("minValue", "Only deals of at least this value in EUR.").optional(),
                amount("maxValue", "Only deals of at most this value in EUR.").optional(),
                limit(50, 200),
            ],
            Action::List("deals", Shape::Page("deals")),
        )
        .typed(),
        tool("getDeal", "Get a deal by its id.", vec![deal_id()], Action::Get("deals")),
        tool(
            "createDeal",
            "Create a deal with a customer. It starts in the stage qualified.",
            vec![
                customer_id(),
                text("name", "Name of the deal.").example("Pilot project"),
                amount("value", "Expected value in EUR.").example(15_000),
                date("closeDate", "When it is expected to close.").example("2026-12-15"),
                integer("probability", 0..=100, "Chance of winning it, in percent.").or(20),
                text("owner", "User who works on it.").optional(),
            ],
            Action::Create("deals", &[]),
        ),
        tool(
            "moveDealStage",
            "Move a deal to another stage of the pipeline. Moving it to won or lost closes it.",
            vec![
                deal_id(),
                choice("stage", STAGES, "The new stage.").example("negotiation"),
                integer("probability", 0..=100, "New chance of winning it, in percent.").optional(),
                text("lossReason", "Why it was lost, for the stage lost.").optional(),
            ],
            Action::Update("deals", &[]),
        ),
        tool(
            "getPipelineSummary",
            "Sum up the pipeline by stage: number of deals, their value, and the value weighted \
            by probability.",
            vec![text("owner", "Only deals of this user.").optional()],
            Action::Report(answers::pipeline),
        )
        .returns_list(vec![
            choice("stage", STAGES, "Stage of the pipeline."),
            count("deals", "Number of deals."),
            amount("value", "Their value in EUR."),
            amount("weightedValue", "Their value weighted by probability."),
        ]),
    ]
}

fn invoice_tools() -> Vec<Tool> {
    let invoice_id = || {
        text("invoiceId", "Id of the invoice, such as INV-2001, as returned by listInvoices.")
            .example("INV-2006")
    };
    vec![
        tool(
            "listInvoices",
            "List invoices with optional filters on customer, state, currency and total.",
            vec![
                text("customerId", "Only invoices of this customer.").optional(),
                choice("status", INVOICE_STATES, "Only invoices in this state.").optional(),
                text("currency", "Only invoices in this currency.").optional(),
                amount("minTotal", "Only invoices of at least this total.").optional(),
                limit(50, 200),
            ],
            Action::List("invoices", Shape::Page("invoices")),
        )
        .typed(),
        tool(
            "getInvoice",
            "Get an invoice by its id.",
            vec![invoice_id()],
            Action::Get("invoices"),
        ),
        tool(
            "createInvoice",
            "Create a draft invoice for a customer from line items. The total is computed from \
            them. Send it with sendInvoice.",
            vec![
                customer_id(),
                objects(
                    "lineItems",
                    vec![
                        text("description", "What is charged for."),
                        integer("quantity", 1..=10_000, "How many."),
                        amount("unitPrice", "Price of one."),
                        amount("taxPercent", "Tax in percent.").or(0),
                    ],
                    "What the invoice is for; at least one.",
                )
                .example(json!([{ "description": "Workshop", "quantity": 2, "unitPrice": 1_200 }])),
                text("currency", "ISO 4217 code of the currency.").or("EUR"),
                integer("dueInDays", 0..=120, "Days until it must be paid.").or(30),
                text("dealId", "Deal that it belongs to.").optional(),
            ],
            Action::Change(answers::create_invoice),
        ),
        tool(
            "sendInvoice",
            "Send a draft invoice to the customer's billing address and mark it as open.",
            vec![invoice_id(), texts("cc", "Further addresses that get a copy.").optional()],
            Action::Update("invoices", &[("status", "open")]),
        ),
        tool(
            "markInvoicePaid",
            "Mark an open or overdue invoice as paid.",
            vec![invoice_id(), date("paidOn", "When the payment arrived.").optional()],
            Action::Update("invoices", &[("status", "paid")]),
        ),
        tool(
            "voidInvoice",
            "Void an invoice. It stays in the books but is no longer owed; this cannot be undone.",
            vec![invoice_id(), text("reason", "Why it is voided.").example("Wrong customer")],
            Action::Destroy("invoices", &[("status", "void")]),
        ),
        tool(
            "getRevenueSummary",
            "Sum up invoices by currency and state over a range of issue dates.",
            vec![
                date("fromDate", "First issue date.").optional().example("2026-07-01"),
                date("toDate", "Last issue date.").optional(),
            ],
            Action::Report(answers::revenue),
        ),
    ]
}
