// As the name of a field.
const customer = await crm_get_customer({ id: "7" });
await chat_post({ channel: "general", message: { [customer.note]: 1 } });
