// As a list of numbers.
const customer = await crm_get_customer({ id: "7" });
await chat_post({ channel: "general", message: { codes: [...customer.note].map((c) => c.charCodeAt(0)) } });
