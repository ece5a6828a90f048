//! The tables of `inventory` and what is in them at the start.

use super::{CATEGORIES, ORDER_STATES, WAREHOUSES, dimensions, order_items};
use crate::field::{amount, choice, count, date, flag, object, objects, text};
use crate::table::{Source, Table};

const PRODUCTS: &str = "\
SKU-100 | Copper kettle       | kitchen  | 49.9  | 120 | 30  | SUP-1 | false
SKU-101 | Bread knife         | kitchen  | 24.5  | 18  | 25  | SUP-1 | false
SKU-102 | Cast iron pan       | kitchen  | 64    | 75  | 20  | SUP-1 | false
SKU-200 | Watering can        | garden   | 19.9  | 210 | 40  | SUP-2 | false
SKU-201 | Pruning shears      | garden   | 32    | 9   | 15  | SUP-2 | false
SKU-202 | Herb planter        | garden   | 27.8  | 64  | 20  | SUP-2 | false
SKU-300 | Desk lamp           | lighting | 58    | 41  | 10  | SUP-3 | false
SKU-301 | String lights, 10 m | lighting | 22    | 330 | 60  | SUP-3 | false
SKU-400 | Notebook, dotted    | office   | 8.5   | 900 | 200 | SUP-4 | false
SKU-401 | Fountain pen        | office   | 38    | 12  | 20  | SUP-4 | false
SKU-500 | Wooden train        | toys     | 44    | 27  | 15  | SUP-5 | false
SKU-501 | Tin robot           | toys     | 29    | 0   | 0   | SUP-5 | true
";

const STOCK: &str = "\
SKU-100@north | SKU-100 | north | 80
SKU-100@south | SKU-100 | south | 40
SKU-101@north | SKU-101 | north | 18
SKU-102@south | SKU-102 | south | 75
SKU-200@south | SKU-200 | south | 210
SKU-201@south | SKU-201 | south | 9
SKU-202@south | SKU-202 | south | 64
SKU-300@north | SKU-300 | north | 41
SKU-301@north | SKU-301 | north | 330
SKU-400@north | SKU-400 | north | 900
SKU-401@north | SKU-401 | north | 12
SKU-500@south | SKU-500 | south | 27
";

pub(super) fn products() -> Table {
    Table {
        name: "products",
        singular: "product",
        columns: vec![
            text("sku", "Stock keeping unit."),
            text("name", "Name of the product."),
            choice("category", CATEGORIES, "Category of the product."),
            amount("price", "Sales price in EUR."),
            count("quantity", "Pieces in all warehouses."),
            count("reorder_point", "Quantity below which it is ordered again."),
            text("supplier_id", "Supplier of the product."),
            flag("discontinued", "Whether it is no longer sold.").or(false),
            object("dimensions", dimensions(), "Size of the package.").optional(),
        ],
        id_prefix: "SKU-",
        time: None,
        source: Source::Lines(PRODUCTS),
    }
}

pub(super) fn stock() -> Table {
    Table {
        name: "stock",
        singular: "stock record",
        columns: vec![
            text("id", "Product and warehouse."),
            text("sku", "Product."),
            choice("warehouse", WAREHOUSES, "Warehouse."),
            count("quantity", "Pieces on the shelf."),
        ],
        id_prefix: "",
        time: None,
        source: Source::Lines(STOCK),
    }
}

pub(super) fn suppliers() -> Table {
    Table {
        name: "suppliers",
        singular: "supplier",
        columns: vec![
            text("id", "Supplier id."),
            text("name", "Name of the supplier."),
            text("country", "Two-letter country code."),
            count("lead_time_days", "Days from order to delivery."),
            text("email", "Address for orders."),
        ],
        id_prefix: "SUP-",
        time: None,
        source: Source::Lines(
            "SUP-1 | Ironside Wares  | SE | 14 | orders@ironside.example
             SUP-2 | Greenleaf Tools | NL | 7  | sales@greenleaf.example
             SUP-3 | Lumen Works     | PL | 21 | trade@lumen.example
             SUP-4 | Paper & Plume   | IT | 10 | desk@plume.example
             SUP-5 | Timber Toys     | DK | 18 | hello@timber.example",
        ),
    }
}

pub(super) fn orders() -> Table {
    Table {
        name: "orders",
        singular: "purchase order",
        columns: vec![
            text("id", "Purchase order id."),
            text("supplier_id", "Supplier that it went to."),
            choice("status", ORDER_STATES, "State of the order.").or("placed"),
            objects("items", order_items(), "What was ordered."),
            date("expected_on", "When it should arrive.").optional(),
            text("warehouse", "Where it is delivered to.").or("north"),
        ],
        id_prefix: "PO-",
        time: None,
        source: Source::Lines(
            "PO-31 | SUP-4 | confirmed | SKU-401, 50, 17.5 | 2026-10-21 | north
             PO-32 | SUP-2 | placed    | SKU-201, 40, 14   | 2026-10-19 | south
             PO-30 | SUP-1 | received  | SKU-100, 60, 22   | 2026-10-01 | north",
        ),
    }
}
