// Private data stays inside.
const customer = await crm_get_customer({ id: "7" });
await notes_write({ text: customer.note });
