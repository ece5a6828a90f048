const warehouses = ['north', 'south', 'returns'];
const order_states = ['placed', 'confirmed', 'received', 'cancelled'];
const categories = ['kitchen', 'garden', 'office', 'toys', 'lighting'];
const packaging = {
  width_cm: amount('Width in centimetres.'),
  height_cm: amount('Height in centimetres.'),
  depth_cm: amount('Depth in centimetres.'),
  weight_kg: amount('Weight in kilograms.', optional),
};
const order_item = {
  sku: text('Product to order.'),
  quantity: integer('How many pieces.', { range: [1, 100000] }),
  unit_cost: amount('Agreed price of a piece in EUR.', optional),
};
const category = choice(categories, 'Category of the product.');
const category_filter = choice(categories, 'Only products of this category.', optional);
const sku = text('Stock keeping unit of the product, such as SKU-100, as returned by list_products.', { example: 'SKU-100' });

server({
  name: 'inventory',
  description: 'Products, stock levels by warehouse, suppliers and purchase orders.',
  version: '0.9.3',
  modern: false,
  annotations: false,
  tables: {
    products: {
      singular: 'product', idPrefix: 'SKU-',
      columns: {
        sku: text('Stock keeping unit.'),
        name: text('Name of the product.'),
        category,
        price: amount('Sales price in EUR.'),
        quantity: integer('Pieces in all warehouses.'),
        reorder_point: integer('Quantity below which it is ordered again.'),
        supplier_id: text('Supplier of the product.'),
        discontinued: boolean('Whether it is no longer sold.', { default: false }),
        dimensions: object(packaging, 'Size of the package.', optional),
      },
      rows: `
        SKU-100 | Copper kettle       | kitchen  | 49.9 | 120 | 30  | SUP-1 | false
        SKU-101 | Bread knife         | kitchen  | 24.5 | 18  | 25  | SUP-1 | false
        SKU-102 | Cast iron pan       | kitchen  | 64   | 75  | 20  | SUP-1 | false
        SKU-200 | Watering can        | garden   | 19.9 | 210 | 40  | SUP-2 | false
        SKU-201 | Pruning shears      | garden   | 32   | 9   | 15  | SUP-2 | false
        SKU-202 | Herb planter        | garden   | 27.8 | 64  | 20  | SUP-2 | false
        SKU-300 | Desk lamp           | lighting | 58   | 41  | 10  | SUP-3 | false
        SKU-301 | String lights, 10 m | lighting | 22   | 330 | 60  | SUP-3 | false
        SKU-400 | Notebook, dotted    | office   | 8.5  | 900 | 200 | SUP-4 | false
        SKU-401 | Fountain pen        | office   | 38   | 12  | 20  | SUP-4 | false
        SKU-500 | Wooden train        | toys     | 44   | 27  | 15  | SUP-5 | false
        SKU-501 | Tin robot           | toys     | 29   | 0   | 0   | SUP-5 | true
      `,
    },
    stock: {
      singular: 'stock record',
      columns: {
        id: text('Product and warehouse.'),
        sku: text('Product.'),
        warehouse: choice(warehouses, 'Warehouse.'),
        quantity: integer('Pieces on the shelf.'),
      },
      rows: `
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
      `,
    },
    suppliers: {
      singular: 'supplier', idPrefix: 'SUP-',
      columns: {
        id: text('Supplier id.'),
        name: text('Name of the supplier.'),
        country: text('Two-letter country code.'),
        lead_time_days: integer('Days from order to delivery.'),
        email: text('Address for orders.'),
      },
      rows: `
        SUP-1 | Ironside Wares  | SE | 14 | orders@ironside.example
        SUP-2 | Greenleaf Tools | NL | 7  | sales@greenleaf.example
        SUP-3 | Lumen Works     | PL | 21 | trade@lumen.example
        SUP-4 | Paper & Plume   | IT | 10 | desk@plume.example
        SUP-5 | Timber Toys     | DK | 18 | hello@timber.example
      `,
    },
    orders: {
      singular: 'purchase order', idPrefix: 'PO-',
      columns: {
        id: text('Purchase order id.'),
        supplier_id: text('Supplier that it went to.'),
        status: choice(order_states, 'State of the order.', { default: 'placed' }),
        items: list(object(order_item), 'What was ordered.'),
        expected_on: date('When it should arrive.', optional),
        warehouse: text('Where it is delivered to.', { default: 'north' }),
      },
      rows: `
        PO-31 | SUP-4 | confirmed | SKU-401, 50, 17.5 | 2026-10-21 | north
        PO-32 | SUP-2 | placed    | SKU-201, 40, 14   | 2026-10-19 | south
        PO-30 | SUP-1 | received  | SKU-100, 60, 22   | 2026-10-01 | north
      `,
    },
  },
  tools: {
    list_products: {
      about: 'List products with optional filters on category, supplier, price and whether they are discontinued.',
      input: {
        category: category_filter,
        supplier_id: text('Only products of this supplier.', optional),
        min_price: amount('Only products that cost at least this.', optional),
        max_price: amount('Only products that cost at most this.', optional),
        discontinued: boolean('Only products that are, or are not, discontinued.', optional),
        limit: limit(200, 50),
        offset,
      },
      action: 'list', table: 'products', output: 'row',
    },
    get_product: {
      about: 'Get a product by its stock keeping unit, with price and total quantity.',
      input: { sku },
      action: 'get', table: 'products',
    },
    search_products: {
      about: 'Find products by words of their name or category.',
      input: {
        query: text('Words to look for.', { example: 'kettle' }),
        limit: limit(50, 10),
      },
      action: 'list', table: 'products',
    },
    create_product: {
      about: 'Add a product to the catalogue. Its stock starts at zero; use adjust_stock to count it in.',
      input: {
        name: text('Name of the product.', { example: 'Enamel mug' }),
        category,
        price: amount('Sales price in EUR.', { example: 12.5 }),
        supplier_id: text('Supplier of the product.', { example: 'SUP-1' }),
        reorder_point: integer('Quantity below which it is ordered again.', { range: [0, 100000], default: 10 }),
        dimensions: object(packaging, 'Size of the package.', optional),
      },
      action: 'create', table: 'products',
    },
    update_product: {
      about: 'Change the name, price, supplier or reorder point of a product. Fields that are left out stay as they are. Quantities are changed with adjust_stock.',
      input: {
        sku,
        name: text('New name.', optional),
        price: amount('New sales price in EUR.', { optional: true, example: 52 }),
        supplier_id: text('New supplier.', optional),
        reorder_point: integer('New reorder point.', { range: [0, 100000], optional: true }),
      },
      action: 'update', table: 'products',
    },
    discontinue_product: {
      about: 'Mark a product as discontinued: it is no longer sold or ordered.',
      input: {
        sku,
        replacement_sku: text('Product to offer instead.', optional),
      },
      action: 'destroy', table: 'products', set: { discontinued: true },
    },
    get_stock_levels: {
      about: 'Get the stock of products by warehouse, optionally of one product or one warehouse.',
      input: {
        sku: text('Only this product.', optional),
        warehouse: choice(warehouses, 'Only this warehouse.', optional),
        max_quantity: integer('Only where there are at most so many pieces.', { range: [0, 100000], optional: true }),
      },
      action: 'list', table: 'stock', output: 'row',
    },
    list_low_stock: {
      about: "List products whose quantity is below their reorder point, with how many are missing and the supplier's lead time.",
      input: { category: category_filter },
      action: 'compute',
      output: list(object({
        sku: text('Product.'),
        name: text('Name of the product.'),
        quantity: integer('Pieces in stock.'),
        missing: integer('Pieces below the reorder point.'),
        supplier_id: text('Supplier to order from.'),
        lead_time_days: integer('Days from order to delivery.'),
      })),
      run(args, { products, suppliers }) {
        const low = products.select(args).rows.filter((row) => !row.discontinued && row.quantity < row.reorder_point);
        return low.map(({ sku, name, quantity, reorder_point, supplier_id }) => {
          const { lead_time_days } = suppliers.find(supplier_id);
          return { sku, name, quantity, missing: reorder_point - quantity, supplier_id, lead_time_days };
        });
      },
    },
    adjust_stock: {
      about: 'Correct the stock of a product in a warehouse by a difference, for example after a count or a breakage. Stock cannot fall below zero.',
      input: {
        sku,
        warehouse: choice(warehouses, 'Warehouse that was counted.'),
        difference: integer('Pieces to add, or to take away where negative.', { range: [-100000, 100000], example: -2 }),
        reason: choice(['count', 'damage', 'loss', 'return', 'delivery'], 'Why the stock changed.'),
      },
      action: 'change',
      run({ sku, warehouse, difference }, { products, stock }) {
        const product = products.find(sku);
        const id = `${sku}@${warehouse}`;
        const before = stock.lookup(id)?.quantity ?? 0;
        require(before + difference >= 0, `There are only ${before} pieces in ${warehouse}`);
        require(before + difference <= 10_000_000, `There is no room for more pieces in ${warehouse}`);
        const changed = stock.put({ id, sku, warehouse, quantity: before + difference });
        const { quantity } = products.update(sku, { quantity: product.quantity + difference });
        return { stock: changed, total_quantity: quantity };
      },
    },
    transfer_stock: {
      about: 'Move pieces of a product from one warehouse to another.',
      input: {
        sku,
        from_warehouse: choice(warehouses, 'Where the pieces are.'),
        to_warehouse: choice(warehouses, 'Where they go.', { example: 'south' }),
        quantity: integer('How many pieces.', { range: [1, 100000], example: 10 }),
      },
      action: 'change',
      run({ sku, from_warehouse, to_warehouse, quantity }, { products, stock }) {
        products.find(sku);
        const count = (warehouse) => stock.lookup(`${sku}@${warehouse}`)?.quantity ?? 0;
        const put = (warehouse, quantity) => stock.put({ id: `${sku}@${warehouse}`, sku, warehouse, quantity });
        const before = count(from_warehouse);
        require(before >= quantity, `There are only ${before} pieces in ${from_warehouse}`);
        const from = put(from_warehouse, before - quantity);
        const after = count(to_warehouse) + quantity;
        require(after <= 10_000_000, `There is no room for more pieces in ${to_warehouse}`);
        return { from, to: put(to_warehouse, after) };
      },
    },
    list_suppliers: {
      about: 'List suppliers with their lead times and addresses.',
      input: {
        country: text('Only suppliers of this country.', optional),
        max_lead_time_days: integer('Only suppliers that deliver within so many days.', { range: [1, 365], optional: true }),
      },
      action: 'list', table: 'suppliers',
    },
    create_purchase_order: {
      about: 'Order products from a supplier. The order is placed at once and can be cancelled until it is confirmed.',
      input: {
        supplier_id: text('Supplier to order from.', { example: 'SUP-1' }),
        items: list(object(order_item), 'What to order; at least one.', { example: [{ sku: 'SKU-101', quantity: 40 }] }),
        warehouse: choice(warehouses, 'Where to deliver it.', { default: 'north' }),
        expected_on: date('When it should arrive.', optional),
        notes: list(text(), 'Remarks for the supplier.', optional),
      },
      action: 'create', table: 'orders', set: { status: 'placed' },
    },
    list_purchase_orders: {
      about: 'List purchase orders with optional filters on supplier and state.',
      input: {
        supplier_id: text('Only orders to this supplier.', optional),
        status: choice(order_states, 'Only orders in this state.', optional),
      },
      action: 'list', table: 'orders',
    },
    cancel_purchase_order: {
      about: 'Cancel a purchase order that has not been received.',
      input: { order_id: text('Id of the purchase order.', { example: 'PO-32' }) },
      action: 'destroy', table: 'orders', set: { status: 'cancelled' },
    },
  },
});
