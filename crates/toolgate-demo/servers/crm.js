const segments = ['startup', 'midmarket', 'enterprise'];
const activities = ['call', 'email', 'meeting', 'note'];
const stages = ['qualified', 'proposal', 'negotiation', 'won', 'lost'];
const invoice_states = ['draft', 'open', 'paid', 'overdue', 'void'];
const customerId = text('Id of the customer, such as CUS-001; find it with searchCustomers.', { example: 'CUS-006' });
const dealId = text('Id of the deal, such as DEAL-01, as returned by listDeals.', { example: 'DEAL-02' });
const invoiceId = text('Id of the invoice, such as INV-2001, as returned by listInvoices.', { example: 'INV-2006' });

server({
  name: 'crm',
  description: 'Customers, deals and invoices.',
  version: '4.1.7',
  modern: true,
  annotations: true,
  tables: {
    customers: {
      singular: 'customer', idPrefix: 'CUS-',
      columns: {
        id: text('Customer id.'),
        name: text('Name of the company.'),
        segment: choice(segments, 'Size of the company.'),
        country: text('Two-letter country code.'),
        owner: text('User who looks after the customer.'),
        email: text('Main contact address.'),
        active: boolean('Whether there is a contract.', { default: true }),
        customerSince: date('First contract.'),
        attributes: map(text(), 'Further attributes.', optional),
        activities: list(object({
          type: choice(activities, 'Kind of contact.'),
          summary: text('What it was about.'),
          contact: text('With whom.', optional),
          at: time('When.'),
        }), 'Contacts with the customer, oldest first.'),
      },
      rows: `
        CUS-001 | Aster Robotics    | enterprise | DE | renata | ops@aster.example      | true  | 2021-02-11
        CUS-002 | Bluefin Logistics | midmarket  | PT | tobias | it@bluefin.example     | true  | 2022-06-30
        CUS-003 | Cobalt Kitchens   | startup    | FR | mei    | hello@cobalt.example   | true  | 2025-01-20
        CUS-004 | Dovetail Studio   | startup    | GB | tobias | team@dovetail.example  | false | 2023-09-14
        CUS-005 | Ember Energy      | enterprise | NO | renata | buying@ember.example   | true  | 2020-11-03
        CUS-006 | Foxglove Clinics  | midmarket  | IE | mei    | admin@foxglove.example | true  | 2024-04-08
        CUS-007 | Granite Insurance | enterprise | CH | renata | it@granite.example     | true  | 2019-07-22
        CUS-008 | Hazel Books       | startup    | NL | mei    | info@hazel.example     | true  | 2025-08-01
      `,
    },
    deals: {
      singular: 'deal', idPrefix: 'DEAL-',
      columns: {
        id: text('Deal id.'),
        name: text('Name of the deal.'),
        customerId: text('Customer that it is with.'),
        stage: choice(stages, 'Stage in the pipeline.', { default: 'qualified' }),
        value: amount('Value in EUR.'),
        probability: integer('Chance of winning it, in percent.'),
        closeDate: date('When it is expected to close.'),
        owner: text('User who works on it.'),
      },
      rows: `
        DEAL-01 | Warehouse roll-out   | CUS-001 | negotiation | 184000 | 70  | 2026-11-15 | renata
        DEAL-02 | Second site          | CUS-002 | proposal    | 42000  | 45  | 2026-12-01 | tobias
        DEAL-03 | Starter plan         | CUS-003 | won         | 6800   | 100 | 2026-09-12 | mei
        DEAL-04 | Grid analytics       | CUS-005 | qualified   | 230000 | 20  | 2027-02-28 | renata
        DEAL-05 | Booking add-on       | CUS-006 | proposal    | 27500  | 50  | 2026-11-20 | mei
        DEAL-06 | Claims portal        | CUS-007 | negotiation | 310000 | 65  | 2026-12-18 | renata
        DEAL-07 | Web shop             | CUS-008 | lost        | 5200   | 0   | 2026-08-30 | mei
        DEAL-08 | Renewal, three years | CUS-007 | won         | 96000  | 100 | 2026-07-02 | renata
      `,
    },
    invoices: {
      singular: 'invoice', idPrefix: 'INV-',
      columns: {
        id: text('Invoice id.'),
        customerId: text('Customer that owes it.'),
        total: amount('Total of the invoice.'),
        currency: text('Currency of the total.', { default: 'EUR' }),
        status: choice(invoice_states, 'State of the invoice.', { default: 'draft' }),
        issuedOn: date('Date of the invoice.'),
        dueOn: date('When it must be paid.'),
        dealId: text('Deal that it belongs to.', optional),
      },
      rows: `
        INV-2001 | CUS-001 | 46000 | EUR | paid    | 2026-07-01 | 2026-07-31 | DEAL-01
        INV-2002 | CUS-002 | 8200  | EUR | paid    | 2026-07-15 | 2026-08-14 |
        INV-2003 | CUS-003 | 6800  | EUR | open    | 2026-09-20 | 2026-10-20 | DEAL-03
        INV-2004 | CUS-004 | 1900  | GBP | overdue | 2026-06-10 | 2026-07-10 |
        INV-2005 | CUS-005 | 57500 | EUR | paid    | 2026-08-05 | 2026-09-04 |
        INV-2006 | CUS-006 | 9400  | EUR | overdue | 2026-08-20 | 2026-09-19 |
        INV-2007 | CUS-007 | 96000 | CHF | paid    | 2026-07-05 | 2026-08-04 | DEAL-08
        INV-2008 | CUS-007 | 12500 | CHF | open    | 2026-10-01 | 2026-10-31 |
        INV-2009 | CUS-008 | 780   | EUR | draft   | 2026-10-12 | 2026-11-11 |
      `,
    },
  },
  tools: {
    listCustomers: {
      about: 'List customers with optional filters on segment, country, owner and whether they are active.',
      input: {
        segment: choice(segments, 'Only customers of this size.', optional),
        country: text('Only customers of this country, as a two-letter code.', optional),
        owner: text('Only customers of this user.', optional),
        active: boolean('Only customers with, or without, a contract.', optional),
        limit: limit(200, 50),
        offset,
      },
      action: 'list', table: 'customers', page: 'customers',
    },
    searchCustomers: {
      about: 'Find customers by words of their name, contact address or activities.',
      input: {
        query: text('Words to look for.', { example: 'clinics' }),
        limit: limit(50, 10),
      },
      action: 'list', table: 'customers', page: 'customers',
    },
    getCustomer: {
      about: "Get a customer's record with attributes and activities.",
      input: { customerId },
      action: 'get', table: 'customers', output: 'row',
    },
    createCustomer: {
      about: 'Create a customer record. Search for the name first so that there are no duplicates.',
      input: {
        name: text('Name of the company.', { example: 'Indigo Farms' }),
        email: text('Main contact address.', { example: 'office@indigo.example' }),
        segment: choice(segments, 'Size of the company.'),
        country: text('Two-letter country code.', { example: 'DK' }),
        owner: text('User who looks after the customer.', optional),
        billingAddress: object({
          street: text('Street and number.'),
          city: text('City.'),
          postalCode: text('Postal code.'),
          country: text('Two-letter country code.'),
          vatNumber: text('Value added tax number.', optional),
        }, 'Where invoices go; the main address when left out.', optional),
        attributes: map(text(), 'Further attributes by name.', optional),
      },
      action: 'create', table: 'customers',
    },
    updateCustomer: {
      about: "Change a customer's record. Fields that are left out stay as they are.",
      input: {
        customerId,
        name: text('New name.', optional),
        email: text('New contact address.', optional),
        segment: choice(segments, 'New segment.', optional),
        owner: text('New owner.', { optional: true, example: 'tobias' }),
        active: boolean('Whether there is a contract.', optional),
        attributes: map(text(), 'New set of further attributes.', optional),
      },
      action: 'update', table: 'customers',
    },
    logActivity: {
      about: "Log a call, email, meeting or note on a customer's timeline.",
      input: {
        customerId,
        type: choice(activities, 'Kind of contact.'),
        summary: text('What it was about.', { example: 'Asked for an offer' }),
        contact: text('Person at the customer.', optional),
      },
      action: 'append', table: 'customers', column: 'activities',
    },
    listDeals: {
      about: 'List deals of the pipeline with optional filters on stage, owner, customer and value.',
      input: {
        stage: list(choice(stages), 'Only deals in one of these stages.', optional),
        owner: text('Only deals of this user.', optional),
        customerId: text('Only deals with this customer.', optional),
        minValue: amount('Only deals of at least this value in EUR.', optional),
        maxValue: amount('Only deals of at most this value in EUR.', optional),
        limit: limit(200, 50),
      },
      action: 'list', table: 'deals', page: 'deals', output: 'row',
    },
    getDeal: {
      about: 'Get a deal by its id.',
      input: { dealId },
      action: 'get', table: 'deals',
    },
    createDeal: {
      about: 'Create a deal with a customer. It starts in the stage qualified.',
      input: {
        customerId,
        name: text('Name of the deal.', { example: 'Pilot project' }),
        value: amount('Expected value in EUR.', { example: 15000 }),
        closeDate: date('When it is expected to close.', { example: '2026-12-15' }),
        probability: integer('Chance of winning it, in percent.', { range: [0, 100], default: 20 }),
        owner: text('User who works on it.', optional),
      },
      action: 'create', table: 'deals',
    },
    moveDealStage: {
      about: 'Move a deal to another stage of the pipeline. Moving it to won or lost closes it.',
      input: {
        dealId,
        stage: choice(stages, 'The new stage.', { example: 'negotiation' }),
        probability: integer('New chance of winning it, in percent.', { range: [0, 100], optional: true }),
        lossReason: text('Why it was lost, for the stage lost.', optional),
      },
      action: 'update', table: 'deals',
    },
    getPipelineSummary: {
      about: 'Sum up the pipeline by stage: number of deals, their value, and the value weighted by probability.',
      input: { owner: text('Only deals of this user.', optional) },
      action: 'compute',
      output: list(object({
        stage: choice(stages, 'Stage of the pipeline.'),
        deals: integer('Number of deals.'),
        value: amount('Their value in EUR.'),
        weightedValue: amount('Their value weighted by probability.'),
      })),
      run({ owner }, { deals }) {
        const mine = deals.select({ owner }).rows;
        return stages.map((stage) => {
          const found = mine.filter((deal) => deal.stage === stage);
          const value = float(sum(found.map((deal) => deal.value)));
          return { stage, deals: found.length, value, weightedValue: float(sum(found.map((deal) => (deal.value * deal.probability) / 100))) };
        });
      },
    },
    listInvoices: {
      about: 'List invoices with optional filters on customer, state, currency and total.',
      input: {
        customerId: text('Only invoices of this customer.', optional),
        status: choice(invoice_states, 'Only invoices in this state.', optional),
        currency: text('Only invoices in this currency.', optional),
        minTotal: amount('Only invoices of at least this total.', optional),
        limit: limit(200, 50),
      },
      action: 'list', table: 'invoices', page: 'invoices', output: 'row',
    },
    getInvoice: {
      about: 'Get an invoice by its id.',
      input: { invoiceId },
      action: 'get', table: 'invoices',
    },
    createInvoice: {
      about: 'Create a draft invoice for a customer from line items. The total is computed from them. Send it with sendInvoice.',
      input: {
        customerId,
        lineItems: list(object({
          description: text('What is charged for.'),
          quantity: integer('How many.', { range: [1, 10000] }),
          unitPrice: amount('Price of one.'),
          taxPercent: amount('Tax in percent.', { default: 0 }),
        }), 'What the invoice is for; at least one.', { example: [{ description: 'Workshop', quantity: 2, unitPrice: 1200 }] }),
        currency: text('ISO 4217 code of the currency.', { default: 'EUR' }),
        dueInDays: integer('Days until it must be paid.', { range: [0, 120], default: 30 }),
        dealId: text('Deal that it belongs to.', optional),
      },
      action: 'change',
      run({ customerId, lineItems, currency, dueInDays, dealId }, { customers, invoices }) {
        customers.find(customerId);
        require(lineItems.length > 0, 'Invalid argument `lineItems`: must have at least one item');
        const price = ({ quantity, unitPrice, taxPercent = 0 }) => quantity * unitPrice * (1 + taxPercent / 100);
        const dueOn = dateOf(parseTime(NOW) + dueInDays * DAY);
        return invoices.insert({ customerId, total: round(sum(lineItems.map(price))), currency, issuedOn: NOW.slice(0, 10), dueOn, dealId });
      },
    },
    sendInvoice: {
      about: "Send a draft invoice to the customer's billing address and mark it as open.",
      input: {
        invoiceId,
        cc: list(text(), 'Further addresses that get a copy.', optional),
      },
      action: 'update', table: 'invoices', set: { status: 'open' },
    },
    markInvoicePaid: {
      about: 'Mark an open or overdue invoice as paid.',
      input: {
        invoiceId,
        paidOn: date('When the payment arrived.', optional),
      },
      action: 'update', table: 'invoices', set: { status: 'paid' },
    },
    voidInvoice: {
      about: 'Void an invoice. It stays in the books but is no longer owed; this cannot be undone.',
      input: {
        invoiceId,
        reason: text('Why it is voided.', { example: 'Wrong customer' }),
      },
      action: 'destroy', table: 'invoices', set: { status: 'void' },
    },
    getRevenueSummary: {
      about: 'Sum up invoices by currency and state over a range of issue dates.',
      input: {
        fromDate: date('First issue date.', { optional: true, example: '2026-07-01' }),
        toDate: date('Last issue date.', optional),
      },
      action: 'compute',
      run({ fromDate = '', toDate = '9999' }, { invoices }) {
        const found = invoices.rows.filter(({ issuedOn }) => issuedOn >= fromDate && issuedOn <= toDate);
        const sums = totals(found, ({ currency, status }) => `${currency} ${status}`, ({ total }) => total);
        return { totals: Object.fromEntries(Object.entries(sums).map(([key, total]) => [key, float(total)])) };
      },
    },
  },
});
