//! `inventory`: products, stock and suppliers. A server without annotations, as many are.

mod answers;
mod tables;

use serde_json::json;

use crate::field::{
    Field, amount, choice, count, date, flag, integer, limit, object, objects, offset, text, texts,
};
use crate::spec::{Era, Spec};
use crate::tool::{Action, Annotations, Shape, Tool, tool};

const CATEGORIES: &[&str] = &["kitchen", "garden", "office", "toys", "lighting"];
const WAREHOUSES: &[&str] = &["north", "south", "returns"];
const ORDER_STATES: &[&str] = &["placed", "confirmed", "received", "cancelled"];

pub(super) fn server() -> Spec {
    Spec {
        name: "inventory",
        description: "Products, stock levels by warehouse, suppliers and purchase orders.",
        version: "0.9.3",
        prefix: None,
        era: Era::Handshake,
        annotations: Annotations::Omitted,
        tables: vec![tables::products(), tables::stock(), tables::suppliers(), tables::orders()],
        tools: product_tools().into_iter().chain(stock_tools()).chain(supply_tools()).collect(),
    }
}

fn dimensions() -> Vec<Field> {
    vec![
        amount("width_cm", "Width in centimetres."),
        amount("height_cm", "Height in centimetres."),
        amount("depth_cm", "Depth in centimetres."),
        amount("weight_kg", "Weight in kilograms.").optional(),
    ]
}

fn order_items() -> Vec<Field> {
    vec![
        text("sku", "Product to order."),
        integer("quantity", 1..=100_000, "How many pieces."),
        amount("unit_cost", "Agreed price of a piece in EUR.").optional(),
    ]
}

fn sku() -> Field {
    text("sku", "Stock keeping unit of the product, such as SKU-100, as returned by list_products.")
        .example("SKU-100")
}

fn product_tools() -> Vec<Tool> {
    vec![
        tool(
            "list_products",
            "List products with optional filters on category, supplier, price and whether they \
            are discontinued.",
            vec![
                choice("category", CATEGORIES, "Only products of this category.").optional(),
                text("supplier_id", "Only products of this supplier.").optional(),
                amount("min_price", "Only products that cost at least this.").optional(),
                amount("max_price", "Only products that cost at most this.").optional(),
                flag("discontinued", "Only products that are, or are not, discontinued.")
                    .optional(),
                limit(50, 200),
                offset(),
            ],
            Action::List("products", Shape::Bare),
        )
        .typed(),
        tool(
            "get_product",
            "Get a product by its stock keeping unit, with price and total quantity.",
            vec![sku()],
            Action::Get("products"),
        ),
        tool(
            "search_products",
            "Find products by words of their name or category.",
            vec![text("query", "Words to look for.").example("kettle"), limit(10, 50)],
            Action::List("products", Shape::Bare),
        ),
        tool(
            "create_product",
            "Add a product to the catalogue. Its stock starts at zero; use adjust_stock to count \
            it in.",
            vec![
                text("name", "Name of the product.").example("Enamel mug"),
                choice("category", CATEGORIES, "Category of the product."),
                amount("price", "Sales price in EUR.").example(12.5),
                text("supplier_id", "Supplier of the product.").example("SUP-1"),
                integer("reorder_point", 0..=100_000, "Quantity below which it is ordered again.")
                    .or(10),
                object("dimensions", dimensions(), "Size of the package.").optional(),
            ],
            Action::Create("products", &[]),
        ),
        tool(
            "update_product",
            "Change the name, price, supplier or reorder point of a product. Fields that are \
            left out stay as they are. Quantities are changed with adjust_stock.",
            vec![
                sku(),
                text("name", "New name.").optional(),
                amount("price", "New sales price in EUR.").optional().example(52),
                text("supplier_id", "New supplier.").optional(),
                integer("reorder_point", 0..=100_000, "New reorder point.").optional(),
            ],
            Action::Update("products", &[]),
        ),
        tool(
            "discontinue_product",
            "Mark a product as discontinued: it is no longer sold or ordered.",
            vec![sku(), text("replacement_sku", "Product to offer instead.").optional()],
            Action::Destroy("products", &[("discontinued", "true")]),
        ),
    ]
}

fn stock_tools() -> Vec<Tool> {
    vec![
        tool(
            "get_stock_levels",
            "Get the stock of products by warehouse, optionally of one product or one warehouse.",
            vec![
                text("sku", "Only this product.").optional(),
                choice("warehouse", WAREHOUSES, "Only this warehouse.").optional(),
                integer(
                    "max_quantity",
                    0..=100_000,
                    "Only where there are at most so many pieces.",
                )
                .optional(),
            ],
            Action::List("stock", Shape::Bare),
        )
        .typed(),
        tool(
            "list_low_stock",
            "List products whose quantity is below their reorder point, with how many are \
            missing and the supplier's lead time.",
            vec![choice("category", CATEGORIES, "Only products of this category.").optional()],
            Action::Compute(answers::low_stock),
        )
        .returns_list(vec![
            text("sku", "Product."),
            text("name", "Name of the product."),
            count("quantity", "Pieces in stock."),
            count("missing", "Pieces below the reorder point."),
            text("supplier_id", "Supplier to order from."),
            count("lead_time_days", "Days from order to delivery."),
        ]),
        tool(
            "adjust_stock",
            "Correct the stock of a product in a warehouse by a difference, for example after a \
            count or a breakage. Stock cannot fall below zero.",
            vec![
                sku(),
                choice("warehouse", WAREHOUSES, "Warehouse that was counted."),
                integer(
                    "difference",
                    -100_000..=100_000,
                    "Pieces to add, or to take away where negative.",
                )
                .example(-2),
                choice(
                    "reason",
                    &["count", "damage", "loss", "return", "delivery"],
                    "Why the stock changed.",
                ),
            ],
            Action::Change(answers::adjust),
        ),
        tool(
            "transfer_stock",
            "Move pieces of a product from one warehouse to another.",
            vec![
                sku(),
                choice("from_warehouse", WAREHOUSES, "Where the pieces are."),
                choice("to_warehouse", WAREHOUSES, "Where they go.").example("south"),
                integer("quantity", 1..=100_000, "How many pieces.").example(10),
            ],
            Action::Change(answers::transfer),
        ),
    ]
}

fn supply_tools() -> Vec<Tool> {
    vec![
        tool(
            "list_suppliers",
            "List suppliers with their lead times and addresses.",
            vec![
                text("country", "Only suppliers of this country.").optional(),
                integer(
                    "max_lead_time_days",
                    1..=365,
                    "Only suppliers that deliver within so many days.",
                )
                .optional(),
            ],
            Action::List("suppliers", Shape::Bare),
        ),
        tool(
            "create_purchase_order",
            "Order products from a supplier. The order is placed at once and can be cancelled \
            until it is confirmed.",
            vec![
                text("supplier_id", "Supplier to order from.").example("SUP-1"),
                objects("items", order_items(), "What to order; at least one.")
                    .example(json!([{ "sku": "SKU-101", "quantity": 40 }])),
                choice("warehouse", WAREHOUSES, "Where to deliver it.").or("north"),
                date("expected_on", "When it should arrive.").optional(),
                texts("notes", "Remarks for the supplier.").optional(),
            ],
            Action::Create("orders", &[("status", "placed")]),
        ),
        tool(
            "list_purchase_orders",
            "List purchase orders with optional filters on supplier and state.",
            vec![
                text("supplier_id", "Only orders to this supplier.").optional(),
                choice("status", ORDER_STATES, "Only orders in this state.").optional(),
            ],
            Action::List("orders", Shape::Bare),
        ),
        tool(
            "cancel_purchase_order",
            "Cancel a purchase order that has not been received.",
            vec![text("order_id", "Id of the purchase order.").example("PO-32")],
            Action::Destroy("orders", &[("status", "cancelled")]),
        ),
    ]
}
