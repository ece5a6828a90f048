//! The answers of `crm` that need code.

use serde_json::{Value, json};

use super::STAGES;
use super::tables::deals;
use crate::error::Failure;
use crate::field::Object;
use crate::moment::Moment;
use crate::store::{Read, Store};

pub(super) fn pipeline(store: &Store, arguments: &Object) -> Value {
    let table = deals();
    let of = |stage: &&str| {
        let rows = store.rows("deals").iter();
        let in_stage =
            rows.filter(|deal| deal.text("stage") == *stage && table.matches(deal, arguments));
        let (mut deals, mut value, mut weighted) = (0, 0.0, 0.0);
        for deal in in_stage {
            deals += 1;
            value += deal.number("value");
            weighted += deal.number("value") * deal.number("probability") / 100.0;
        }
        json!({ "stage": stage, "deals": deals, "value": value, "weightedValue": weighted })
    };
    STAGES.iter().map(of).collect()
}

pub(super) fn create_invoice(store: &mut Store, arguments: &Object) -> Result<Value, Failure> {
    store.find("customers", &arguments["customerId"])?;
    let items = arguments.items("lineItems");
    if items.is_empty() {
        return Err(Failure::argument("lineItems", "must have at least one item"));
    }
    let price = |item: &Object| {
        item.number("quantity")
            * item.number("unitPrice")
            * (1.0 + item.number("taxPercent") / 100.0)
    };
    let total: f64 = items.iter().filter_map(Value::as_object).map(price).sum();
    let now = Moment::now();
    let mut invoice = arguments.clone();
    invoice.insert("total".to_owned(), json!((total * 100.0).round() / 100.0));
    invoice.insert("issuedOn".to_owned(), json!(now.date()));
    invoice.insert("dueOn".to_owned(), json!(now.plus_days(arguments.integer("dueInDays")).date()));
    store.insert("invoices", &invoice).map(Value::from)
}

pub(super) fn revenue(store: &Store, arguments: &Object) -> Value {
    let (from, to) = (arguments.text("fromDate"), arguments.text("toDate"));
    let mut sums = Object::new();
    for invoice in store.rows("invoices") {
        // Dates of one form compare as text.
        let issued = invoice.text("issuedOn");
        if issued < from || (!to.is_empty() && issued > to) {
            continue;
        }
        let key = format!("{} {}", invoice.text("currency"), invoice.text("status"));
        let sum = sums.number(&key) + invoice.number("total");
        sums.insert(key, json!(sum));
    }
    json!({ "totals": sums })
}
