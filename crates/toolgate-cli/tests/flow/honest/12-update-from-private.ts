// A record is updated inside with private data.
const customer = await crm_get_customer({ id: "7" });
await store_update_record({ id: "7", fields: { iban: customer.iban } });
