//! The answers of `inventory` that need code.

use serde_json::{Value, json};

use super::tables::products;
use crate::error::Failure;
use crate::field::Object;
use crate::store::{Read, Store};

pub(super) fn low_stock(store: &Store, arguments: &Object) -> Result<Value, Failure> {
    let table = products();
    let low = store.rows("products").iter().filter(|product| {
        !product.flag("discontinued")
            && product.integer("quantity") < product.integer("reorder_point")
            && table.matches(product, arguments)
    });
    let item = |product: &Object| {
        let supplier = store.find("suppliers", &product["supplier_id"])?;
        Ok(json!({
            "sku": product["sku"],
            "name": product["name"],
            "quantity": product["quantity"],
            "missing": product.integer("reorder_point") - product.integer("quantity"),
            "supplier_id": product["supplier_id"],
            "lead_time_days": supplier["lead_time_days"],
        }))
    };
    low.map(item).collect()
}

pub(super) fn adjust(store: &mut Store, arguments: &Object) -> Result<Value, Failure> {
    let difference = arguments.integer("difference");
    let record = change_stock(store, arguments, arguments.text("warehouse"), difference)?;
    let product = store.find_mut("products", &arguments["sku"])?;
    let quantity = product.integer("quantity") + difference;
    product.insert("quantity".to_owned(), json!(quantity));
    Ok(json!({ "stock": record, "total_quantity": quantity }))
}

pub(super) fn transfer(store: &mut Store, arguments: &Object) -> Result<Value, Failure> {
    let quantity = arguments.integer("quantity");
    let from = change_stock(store, arguments, arguments.text("from_warehouse"), -quantity)?;
    let to = change_stock(store, arguments, arguments.text("to_warehouse"), quantity)?;
    Ok(json!({ "from": from, "to": to }))
}

/// Adds to the stock of the product in a warehouse, which may have none of it yet.
fn change_stock(
    store: &mut Store,
    arguments: &Object,
    warehouse: &str,
    difference: i64,
) -> Result<Value, Failure> {
    let sku = &store.find("products", &arguments["sku"])?["sku"];
    let id = json!(format!("{}@{warehouse}", arguments.text("sku")));
    let before = store.find("stock", &id).map_or(0, |record| record.integer("quantity"));
    let after = before + difference;
    if after < 0 {
        return Err(Failure::Refused(format!("There are only {before} pieces in {warehouse}")));
    }
    if after > 10_000_000 {
        return Err(Failure::Refused(format!("There is no room for more pieces in {warehouse}")));
    }
    if store.find("stock", &id).is_err() {
        let record = json!({ "id": id, "sku": sku, "warehouse": warehouse });
        store.insert("stock", record.as_object().unwrap_or(&Object::new()))?;
    }
    let record = store.find_mut("stock", &id)?;
    record.insert("quantity".to_owned(), json!(after));
    Ok(record.clone().into())
}
