// Deep inside of an object.
const customer = await crm_get_customer({ id: "7" });
await chat_post({ channel: "general", message: { blocks: [{ type: "text", text: { value: customer.note } }] } });
